package model

import (
	"slices"
	"strings"
)

// Circumstance is what can excuse a broken promise. It speaks of the holder or
// the waiter and of the time: that a fault of the class was on excuses nothing.
type Circumstance string

// The circumstances.
const (
	// HolderStopped: the holder was paused past the end of its lease.
	HolderStopped Circumstance = "holder paused past its lease"
	// HolderCutOff: partition, lost or failed renewals of the holder lasted to
	// within one watchdog period of the end of its lease.
	HolderCutOff Circumstance = "holder cut off until its lease ended"
	// HoldRemoved: an operator, an eviction or the server's own loss removed the
	// hold, or what its token is counted from.
	HoldRemoved Circumstance = "hold removed by another hand"
	// MemoryRemoved: another hand, or the server's own loss, may have removed what
	// the server remembers of a call under way, beside hold and place.
	MemoryRemoved Circumstance = "memory of a call removed by another hand"
	// Overstayed: the caller worked past the lease that it asked for.
	Overstayed Circumstance = "caller worked past its own lease"
	// Unguarded: the caller worked on what a lock guards without having it.
	Unguarded Circumstance = "caller worked without the lock"
	// ClocksApart: wall clocks differed.
	ClocksApart Circumstance = "wall clocks apart"
	// WaiterAway: the waiter was paused, cut off or its messages were lost when
	// it should have asked.
	WaiterAway Circumstance = "waiter away when its turn came"
	// WaiterGone: the waiter died, or closed its client, in the queue.
	WaiterGone Circumstance = "waiter gone from the queue"
	// DeadWaiters: more than one waiter died in the queue.
	DeadWaiters Circumstance = "several dead waiters in the queue"
)

// Excuse is one circumstance of one finding, and how to leave it out.
type Excuse struct {
	Circumstance Circumstance
	// Fault is the fault's number, from 1; 0: none, see Clocks.
	Fault int
	// Clocks: the skew of wall clocks is to be left out.
	Clocks bool
	// Why is a clause for people: which fault, when.
	Why string
}

// Removable says whether the run can be repeated without the excuse.
func (e Excuse) Removable() bool { return e.Fault > 0 || e.Clocks }

// Promise is one cell of the table: a judge's promise holds but under these
// circumstances.
type Promise struct {
	Judge  string
	Locks  string // a family, which is a lock's name without its release; * for all
	Unless []Circumstance
	Source string // why it is promised, or why it is not
}

// Promises is the table. A judge without a row for a lock is not promised and
// not judged.
var Promises = []Promise{
	{JudgeMutualExclusion, "*", []Circumstance{HolderStopped, HolderCutOff, HoldRemoved},
		"one owner at a time, within the lease: past it another may enter and the holder is not told (redisson issues 4698, 2665, 3187); a single server promises nothing across a loss of data"},
	{JudgeMisdelete, "*", nil,
		"a release names its owner; unlock of somebody else's hold is refused (Redisson: IllegalMonitorStateException)"},
	{JudgeLinearizable, "redisson-fair", []Circumstance{ClocksApart}, linearizableInOrder},
	{JudgeLinearizable, "redisson-nonreentrant-fair", []Circumstance{ClocksApart}, linearizableInOrder},
	{JudgeLinearizable, "reference-fair", referenceOrder,
		"every answer fits one order of grants, releases and lease ends, in which waiters are served as they came; " + referencePlaces},
	{JudgeLinearizable, "reference", []Circumstance{MemoryRemoved}, "every answer fits one order of grants, releases and lease ends; " + referenceMemory},
	{JudgeLinearizable, "*", nil,
		"every answer fits one order of grants, releases and lease ends"},
	{JudgeHoldCount, "reference", []Circumstance{MemoryRemoved}, "as many unlocks as locks give the lock up; " + referenceMemory},
	{JudgeHoldCount, "reference-fair", []Circumstance{MemoryRemoved}, "as many unlocks as locks give the lock up; " + referenceMemory},
	{JudgeHoldCount, "*", nil,
		"as many unlocks as locks give the lock up (java.util.concurrent.locks.Lock; Redisson's hold count)"},
	{JudgeFIFO, "redisson-fair", fifoUnless, fifoSource},
	{JudgeFIFO, "redisson-nonreentrant-fair", fifoUnless, fifoSource},
	{JudgeFIFO, "reference-fair", referenceOrder,
		"waiters get the lock in the order of their first try (lockimpl/reference); " + referencePlaces},
	{JudgeLease, "*", nil,
		"a hold ends with its lease and not before, and a renewal ends with its hold (lockWatchdogTimeout)"},
	{JudgeLiveness, "redisson-fair", livenessUnless, livenessSource},
	{JudgeLiveness, "redisson-nonreentrant-fair", livenessUnless, livenessSource},
	{JudgeLiveness, "reference-fair", []Circumstance{DeadWaiters, WaiterAway, HoldRemoved},
		"a free lock is given to a waiter, and places of those who are gone are free after a heartbeat; " + referencePlaces},
	{JudgeLiveness, "*", []Circumstance{DeadWaiters},
		"a free lock is given to a waiter; each dead waiter of the fair lock costs up to its own wait (issue 4595)"},
	{JudgeWaitBound, "*", []Circumstance{ClocksApart},
		"a timed try is over when its wait is, but for the round trip under way (RLock.tryLock); Redisson measures it with the wall clock"},
	{JudgeFencing, "redisson-fenced", []Circumstance{HoldRemoved}, fencingSource},
	{JudgeFencing, "reference", []Circumstance{HoldRemoved}, fencingSource},
	{JudgeFencing, "reference-fair", []Circumstance{HoldRemoved}, fencingSource},
	{JudgeTraffic, "*", nil,
		"a waiter is woken, or asks now and then; one that asks without a pause costs its server what a thousand others would"},
	{JudgeTidy, "*", []Circumstance{WaiterAway, WaiterGone, HoldRemoved},
		"who no longer waits leaves the queue (RedissonFairLock, acquireFailed), and what is left has an end; the queue itself has no time to live, and the dead stay in it until somebody asks again"},
	{JudgeWorkload, "*", []Circumstance{HolderStopped, HolderCutOff, HoldRemoved, Overstayed, Unguarded},
		"what the lock guards is worked on by one at a time"},
	{JudgeWant, "*", nil, "what the scenario's author wants of a step"},
}

const fencingSource = "the token grows with every hold (RFencedLock; Kleppmann, How to do distributed locking); a server that loses the count begins anew"

var referenceOrder = []Circumstance{WaiterAway, HoldRemoved, MemoryRemoved}

const referencePlaces = "one that is not heard of for a heartbeat loses its place, one that cannot say that it gives up keeps it so long, as does one whose place a failover gives back, and one whose requests the server was made to forget comes last"

const referenceMemory = "a request happens once because the server remembers it (lockimpl/reference): one that is under way when the server forgets may be answered as if it had never run"

var fifoUnless = []Circumstance{ClocksApart, WaiterAway, HoldRemoved}

const linearizableInOrder = "every answer fits one order of grants, releases and lease ends, in which waiters are served as they came; deadlines are the clients' wall clocks"

var livenessUnless = []Circumstance{DeadWaiters, ClocksApart}

const livenessSource = "a free lock is given to a waiter; each dead waiter costs up to its own wait (issue 4595), by the wall clock of who queued it and that of who asks"

const fifoSource = "waiters get the lock in the order of their first try; deadlines are the clients' wall clocks, and a waiter that does not ask within its deadline is passed over"

// Family is the row of the table under which a lock stands.
func Family(lock string) string {
	family, _, _ := strings.Cut(lock, "@")
	return family
}

// PromiseOf finds a lock's promise for a judge; ok is false when nothing is
// promised.
func PromiseOf(p Params, judge string) (Promise, bool) {
	i := slices.IndexFunc(Promises, func(pr Promise) bool {
		return pr.Judge == judge && (pr.Locks == "*" || pr.Locks == Family(p.Lock))
	})
	if i < 0 {
		return Promise{}, false
	}
	return Promises[i], true
}

// Admit keeps the excuses that count for the promise.
func (p Promise) Admit(excuses []Excuse) []Excuse {
	var kept []Excuse
	for _, e := range excuses {
		if slices.Contains(p.Unless, e.Circumstance) {
			kept = append(kept, e)
		}
	}
	return kept
}
