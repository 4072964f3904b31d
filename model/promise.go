package model

import (
	"slices"
	"strings"
	"time"
)

// Circumstance is a fact that can excuse a broken promise. It is about the holder or
// the waiter, and about the time: a fault elsewhere in the run excuses nothing.
type Circumstance string

// The circumstances.
const (
	// HolderStopped: the holder was paused beyond the end of its lease.
	HolderStopped Circumstance = "holder paused past its lease"
	// HolderCutOff: a partition, or lost or failed renewals of the holder, lasted until less than
	// one renewal period before the end of its lease.
	HolderCutOff Circumstance = "holder cut off until its lease ended"
	// HoldRemoved: an operator, an eviction or the server's own loss removed the hold, or the
	// counter of its token.
	HoldRemoved Circumstance = "hold removed by another hand"
	// MemoryRemoved: an operator, an eviction or the server's own loss may have removed the
	// server's memory of a call under way, besides its hold and its place.
	MemoryRemoved Circumstance = "memory of a call removed by another hand"
	// Overstayed: the caller worked beyond the lease that it asked for.
	Overstayed Circumstance = "caller worked past its own lease"
	// Unguarded: the caller worked on a guarded resource without holding the lock.
	Unguarded Circumstance = "caller worked without the lock"
	// ClocksApart: wall clocks differed.
	ClocksApart Circumstance = "wall clocks apart"
	// ServerClockStepped: the wall clock of a server jumped, and its keys ended earlier or
	// later.
	ServerClockStepped Circumstance = "wall clock of a server stepped"
	// WaiterAway: the waiter was paused or cut off, or its messages were lost, when it should have
	// asked.
	WaiterAway Circumstance = "waiter away when its turn came"
	// WaiterGone: the waiter died, or closed its client, in the queue.
	WaiterGone Circumstance = "waiter gone from the queue"
	// HolderGone: the holder died, closed its client, or never learned of its hold, and a hold of
	// the lock does not end by itself.
	HolderGone Circumstance = "holder gone from a hold without a lease"
	// DeadWaiters: more than one waiter died in the queue.
	DeadWaiters Circumstance = "several dead waiters in the queue"
)

// Excuse is one circumstance of one finding, and the way to replay the run without it.
type Excuse struct {
	Circumstance Circumstance
	// Fault is the fault's number, from 1; 0: none, see Clocks.
	Fault int
	// Clocks: a replay without the excuse has no skew of wall clocks.
	Clocks bool
	// Cause is for people.
	Cause Cause
}

// Cause is the cause of a circumstance: for example a fault, with its time. Its kind determines
// which other fields are set.
type Cause struct {
	Kind       CauseKind
	Fault      string // the text of the fault
	Thread     string // process/thread, or only the process
	Other      string // another thread
	AtNs, ToNs int64  // simulated time since the start
	Lease      time.Duration
}

// CauseKind is a kind of causes.
type CauseKind string

// The kinds of causes.
const (
	CauseFault      CauseKind = "fault"      // Fault, at any time
	CauseFaultAt    CauseKind = "fault-at"   // Fault at AtNs
	CauseFaultFrom  CauseKind = "fault-from" // Fault from AtNs to ToNs
	CauseFaultLast  CauseKind = "fault-last" // Fault, last at ToNs
	CauseForced     CauseKind = "forced"     // Thread forced the lock open at AtNs
	CauseClocks     CauseKind = "clocks"     // the wall clocks of the processes differ
	CauseClosed     CauseKind = "closed"     // the client of Thread closed at AtNs
	CauseOwnClosed  CauseKind = "own-closed" // the client of the finding's thread closed at AtNs
	CauseInterrupt  CauseKind = "interrupt"  // Thread was interrupted at AtNs
	CauseOverstayed CauseKind = "overstayed" // Thread worked beyond Lease
	CauseNoLock     CauseKind = "no-lock"    // Thread and Other held no lock in common
)

// Removable reports whether a replay can leave the excuse out.
func (e Excuse) Removable() bool { return e.Fault > 0 || e.Clocks }

// Promise is a promise of a lock that one judge checks.
type Promise struct {
	// Waived reports that the lock does not make the promise, so the judge's findings are left out.
	Waived bool
	// Unjudged reports whether it is waived because the lock does not show the facts that the judge needs,
	// such as the state of its servers.
	Unjudged bool
	// Unless are the circumstances that excuse a broken promise.
	Unless []Circumstance
	// Source says why it is promised, or why it is not.
	Source string
}

// Promises are the promises of one lock that differ from the promises that its traits imply, by judge.
// The zero value promises what the traits imply.
type Promises map[string]Promise

// Implies returns the promise, checked by a judge, that a lock with these traits makes unless it
// declares otherwise. ok is false if it makes none.
func (t Traits) Implies(judge string) (p Promise, ok bool) {
	switch judge {
	case JudgeMutualExclusion:
		return Promise{Unless: []Circumstance{HolderStopped, HolderCutOff, HoldRemoved, ServerClockStepped},
			Source: "one owner at a time, within the lease: past it another may enter and the holder is not told; a single server promises nothing across a loss of data"}, true
	case JudgeMisdelete:
		return Promise{Source: "a release names its owner; an unlock of somebody else's hold is refused"}, true
	case JudgeLinearizable:
		p.Unless, p.Source = []Circumstance{MemoryRemoved}, "every answer fits one order of grants, releases and lease ends"
		if t.Fair {
			p.Unless = []Circumstance{WaiterAway, HoldRemoved, MemoryRemoved, ServerClockStepped}
			p.Source += ", in which waiters are served as they came"
		}
		return p, true
	case JudgeHoldCount:
		return Promise{Source: "as many unlocks as locks give the lock up (java.util.concurrent.locks.Lock)"}, true
	case JudgeFIFO:
		return Promise{Unless: []Circumstance{WaiterAway, HoldRemoved, MemoryRemoved, ServerClockStepped},
			Source: "waiters get the lock in the order of their first try"}, t.Fair
	case JudgeLease:
		return Promise{Unless: []Circumstance{ServerClockStepped},
			Source: "a hold ends with its lease and not before, and a renewal ends with its hold"}, true
	case JudgeLiveness:
		p.Unless, p.Source = []Circumstance{DeadWaiters, ServerClockStepped}, "a free lock is given to a waiter; each dead waiter in a queue costs up to its own wait"
		if t.Endless {
			p.Unless = append(p.Unless, HolderGone)
		}
		return p, true
	case JudgeWaitBound:
		return Promise{Unless: []Circumstance{ServerClockStepped},
			Source: "a timed try is over when its wait is, measured on a monotonic clock, but for the round trip under way"}, true
	case JudgeFencing:
		return Promise{Unless: []Circumstance{HoldRemoved, ServerClockStepped},
			Source: "the token grows with every hold (Kleppmann, How to do distributed locking); a server that loses the count begins anew"}, t.Fenced
	case JudgeTraffic:
		return Promise{Source: "a waiter is woken, or asks now and then; one that asks without a pause costs its server what a thousand others would"}, true
	case JudgeTidy:
		return Promise{Unless: []Circumstance{WaiterAway, WaiterGone, HoldRemoved, ServerClockStepped},
			Source: "a thread that no longer waits leaves the queue, and what is left has an end"}, true
	case JudgeWorkload:
		return Promise{Unless: []Circumstance{HolderStopped, HolderCutOff, HoldRemoved, ServerClockStepped, Overstayed, Unguarded},
			Source: "what the lock guards is worked on by one at a time"}, true
	case JudgeWant:
		return Promise{Source: "what the scenario's author wants of a step"}, true
	}
	return Promise{}, false
}

// Promise returns the promise of the lock under test that a judge checks: the lock's own
// declaration, or else the promise that its traits imply. ok is false if it makes none.
func (p *Params) Promise(judge string) (promise Promise, ok bool) {
	if own, said := p.Promises[judge]; said {
		return own, !own.Waived
	}
	return p.Implies(judge)
}

// Family returns the name of a lock without its release. A lock with several releases is called
// FAMILY@RELEASE.
func Family(lock string) string {
	family, _, _ := strings.Cut(lock, "@")
	return family
}

// Admit returns the excuses that count for the promise.
func (p Promise) Admit(excuses []Excuse) []Excuse {
	var kept []Excuse
	for _, e := range excuses {
		if slices.Contains(p.Unless, e.Circumstance) {
			kept = append(kept, e)
		}
	}
	return kept
}
