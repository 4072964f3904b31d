// Package coverage gives names to the situations that a campaign has tried. A situation is the state
// of a lock, an operation of a thread and a moment of the operation; or the gap between two requests of an
// operation, and the actions of others in it. A cell is a situation that a kind of fault met. The package finds the situations and the cells of a run in its record, and says where
// in a run a fault would fill a cell.
package coverage

import (
	"fmt"
	"maps"
	"slices"

	"lockstep/model"
	index "lockstep/model/trace"
)

// Moment is a moment of an operation, or of the hold that an operation gained.
type Moment string

// The moments, in the order of an operation and its hold.
const (
	BeforeRequest Moment = "before the request"         // the thread is about to call
	ToServer      Moment = "between request and effect" // a request of the call is on its way
	FromServer    Moment = "between effect and reply"   // a reply to the call is on its way
	Waiting       Moment = "while waiting"              // the call is open, and nothing of it is on its way
	WakeUp        Moment = "at the wake-up"             // the lock is free, and the call has not asked for it again
	InSection     Moment = "in the critical section"    // the thread holds the lock
	AtRenewal     Moment = "at the renewal"             // a renewal of the hold is on its way
	AfterLease    Moment = "after the lease"            // the thread believes to hold, and the server knows better
)

// Moments are all moments but those between two requests, see Gaps.
var Moments = []Moment{BeforeRequest, ToServer, FromServer, Waiting, WakeUp, InSection, AtRenewal, AfterLease}

// State is the state of a lock and of its waiters as a thread finds them: an owner, with words
// about the waiters.
type State string

// The owners.
const (
	Free     State = "free"
	Own      State = "held by the thread"
	OwnAgain State = "entered again"
	Others   State = "held by another"
)

// Waiters are the words of a state about those who wait for the lock.
type Waiters string

// The waiters. The last two need a queue on the server. A situation has the last one that fits. A
// waiter is dead if its process is gone, or if its call has ended.
const (
	NobodyWaits  Waiters = ""                          // no other thread waits
	AnotherWaits Waiters = " and waited for"           // another thread waits
	WaiterAhead  Waiters = " with a waiter ahead"      // another thread waits before the thread in the queue
	DeadAhead    Waiters = " with a dead waiter ahead" // the thread is in the queue behind a dead waiter, or outside of a queue with one
)

// States are all states but those of gaps, see Between.
var States = states()

func states() (all []State) {
	for _, w := range []Waiters{NobodyWaits, AnotherWaits, WaiterAhead, DeadAhead} {
		for _, owner := range []State{Free, Own, OwnAgain, Others} {
			all = append(all, owner.With(w))
		}
	}
	return all
}

// With returns the state of a lock with an owner and waiters.
func (owner State) With(w Waiters) State { return owner + State(w) }

// Operations are the operations of situations. A hold has the operation that gained it.
var Operations = []model.Action{model.ActLock, model.ActTryLock, model.ActTryLockTimed, model.ActUnlock, model.ActForceUnlock, model.ActExtend}

// Kind is a kind of fault.
type Kind string

// The kinds of faults. None stands for no fault: a cell without a fault is a situation.
const (
	None         Kind = ""
	Drop         Kind = "drop"
	Delay        Kind = "delay"
	Hold         Kind = "hold"
	HalfOpen     Kind = "half_open"
	Reset        Kind = "reset"
	Error        Kind = "error"
	Crash        Kind = "crash"
	Pause        Kind = "pause"
	Partition    Kind = "partition"
	WallClock    Kind = "wall_clock"
	ServerClock  Kind = "server_clock"
	Restart      Kind = "restart"
	Failover     Kind = "failover"
	FlushScripts Kind = "flush_scripts"
	Stall        Kind = "stall"
	Isolate      Kind = "isolate"
	Delete       Kind = "delete"
	Expire       Kind = "expire"
	Interrupt    Kind = "interrupt"
)

// Kinds are all kinds of faults.
var Kinds = []Kind{
	Drop, Delay, Hold, HalfOpen, Reset, Error, Crash, Pause, Partition, WallClock, ServerClock, Restart, Failover, FlushScripts, Stall, Isolate, Delete, Expire, Interrupt,
}

// OnMessages reports whether faults of the kind strike a message, and so can meet only the
// moments at which one is on its way.
func (k Kind) OnMessages() bool {
	return slices.Index(Kinds, k) <= slices.Index(Kinds, Error) && k != None
}

// KindOf returns the kind of a fault; None for one that the package does not know.
func KindOf(f model.FaultSpec) Kind {
	kind := Kind(f.Kind)
	switch f.Kind {
	case model.FaultRule:
		kind = Kind(f.Do)
	case model.FaultServer:
		if kind = Kind(f.Server); f.Server == model.ServerWallClock {
			kind = ServerClock
		}
	case model.FaultKey:
		kind = Kind(f.KeyDo)
	}
	if !slices.Contains(Kinds, kind) {
		return None
	}
	return kind
}

// Cannot returns the reason for which faults of the kind cannot meet a moment; "": they can.
func Cannot(k Kind, m Moment) string {
	switch {
	case k.OnMessages() && !slices.Contains([]Moment{ToServer, FromServer, WakeUp, AtRenewal}, m) && !m.IsGap():
		return "no message is on its way"
	case k == Error && m != ToServer && m != AtRenewal && !m.IsGap():
		return "an error stands in place of the command, before its effect"
	case (k == HalfOpen || k == Hold) && m == WakeUp:
		return "published messages are dropped, delayed or reset"
	case k == Crash && m == BeforeRequest:
		return "the thread does not come to its call"
	case k == Interrupt && (m == BeforeRequest || m == InSection || m == AtRenewal || m == AfterLease):
		return "an interrupt meets threads that are in a call"
	}
	return ""
}

// Cell is a situation, and the kind of fault that met it.
type Cell struct {
	State  State
	Op     model.Action
	Moment Moment
	Fault  Kind
}

// Situation returns the cell without its fault.
func (c Cell) Situation() Cell {
	c.Fault = None
	return c
}

// String returns the cell in words.
func (c Cell) String() string {
	s := fmt.Sprintf("%s, %s, %s", c.Op, c.Moment, c.State)
	if c.Fault != None {
		s = string(c.Fault) + " met " + s
	}
	return s
}

// situations are all situations, in the order of operations, states and moments. Those of gaps are last.
var situations = allSituations()

func allSituations() (all []Cell) {
	add := func(ops []model.Action, states []State, moments []Moment) {
		for _, op := range ops {
			for _, state := range states {
				for _, m := range moments {
					all = append(all, Cell{State: state, Op: op, Moment: m})
				}
			}
		}
	}
	add(Operations, States, Moments)
	add(gapOperations, Between, Gaps)
	return all
}

// gapOperations are the operations that have gaps.
var gapOperations = append(slices.Clone(Operations), Renewal)

// places are the places of the situations in their list.
var places = func() map[Cell]int {
	m := map[Cell]int{}
	for i, c := range situations {
		m[c] = i
	}
	return m
}()

// Code returns the number that stands for the cell in files. CellOf is its reverse. It returns -1 for a
// cell that does not exist.
func (c Cell) Code() int {
	n, ok := places[c.Situation()]
	if !ok {
		return -1
	}
	return Struck(n*(len(Kinds)+1), c.Fault)
}

// Struck returns the code of the cell of a situation, given by its code, that a fault of the kind meets.
func Struck(situation int, k Kind) int { return situation + slices.Index(Kinds, k) + 1 }

// CellOf returns the cell with a code. It reports false if no cell has the code.
func CellOf(code int) (c Cell, ok bool) {
	if code < 0 || code >= len(situations)*(len(Kinds)+1) {
		return c, false
	}
	c = situations[code/(len(Kinds)+1)]
	if kind := code % (len(Kinds) + 1); kind > 0 {
		c.Fault = Kinds[kind-1]
	}
	return c, true
}

// Cells returns the codes of the situations of a run and of the cells that its faults met, each
// once. The openings must be the openings of that run.
func Cells(t *index.Run, openings []Opening) []int {
	seen := map[int]bool{}
	meet := func(c Cell, k Kind) {
		if c.Fault = k; k != None && Cannot(k, c.Moment) == "" {
			seen[c.Code()] = true
		}
	}
	next := map[int][]Cell{} // by the number of a request: the situations of the gap before it
	for _, o := range openings {
		seen[o.Code()] = true
		if o.request > 0 {
			next[o.request] = append(next[o.request], o.Cell)
		}
	}
	// at calls meet for the openings of which an instant is the end, or that it lies within: a
	// fault may end the situation that it meets.
	at := func(k Kind, atNs int64, concerns func(Opening) bool) {
		for _, o := range openings {
			if o.FromNs >= atNs {
				break
			}
			if atNs <= o.ToNs && concerns(o) {
				meet(o.Cell, k)
			}
		}
	}
	for _, f := range t.Faults {
		if k := KindOf(f.Spec); !k.OnMessages() {
			at(k, f.FromNs, func(o Opening) bool { return len(f.Spec.Processes) == 0 || f.Spec.Names(o.Process) })
		}
	}
	for _, e := range t.Interrupts {
		at(Interrupt, e.AtNs, func(o Opening) bool { return o.Thread == e.Text })
	}
	w := newWalk(t)
	for i := range t.Record.Events {
		e := &t.Record.Events[i]
		if e.Kind != model.KindHit {
			continue
		}
		k := Kind(e.Do)
		if e.Dir == "request" {
			for _, c := range next[e.Msg] {
				meet(c, k)
			}
		}
		switch m := t.Command(e.Msg); {
		case m == nil:
			// A message is published at the instant at which the lock becomes free.
			at(k, e.AtNs+1, func(o Opening) bool { return o.Moment == WakeUp && o.Process == e.Process })
		case m.Call != nil:
			moment := ToServer
			if e.Dir == "reply" {
				moment = FromServer
			}
			meet(Cell{State: w.state(m.Call, e.AtNs), Op: m.Call.Action, Moment: moment}, k)
		default:
			for _, thread := range m.Threads {
				if hold := holdAt(t, thread, e.AtNs); hold != nil {
					meet(Cell{State: w.state(hold, e.AtNs), Op: hold.Action, Moment: AtRenewal}, k)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// holdAt returns the last call before an instant that granted a hold to the thread; nil:
// there is none.
func holdAt(t *index.Run, thread string, atNs int64) (hold *index.Call) {
	for _, call := range t.Calls {
		if call.Caller == thread && call.Outcome == model.Granted && call.ReturnedNs() <= atNs {
			hold = call
		}
	}
	return hold
}
