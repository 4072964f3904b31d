package linearizability

import (
	"cmp"
	"math"
	"slices"

	"lockstep/model"
)

// forever is the return of an operation that may still take effect later.
const forever = math.MaxInt64

// Limits of one search.
const (
	// StepLimitDefault is the default of Options.StepLimit.
	StepLimitDefault = 5_000_000
	// memoryBytesMax limits the memory for the configurations that a search remembers. Each has a
	// bit for every operation, so a search of a long history can remember fewer.
	memoryBytesMax = 256 << 20
)

// Options say how to judge. The zero value is the reentrant specification on
// perfect clocks.
type Options struct {
	// Spec is one of [model.Specs]; empty is the first. A caller that takes the name from a user checks it
	// with [model.SpecNamed].
	Spec string
	// DriftPPM bounds the drift between the clocks of leases, in parts per million.
	DriftPPM int64
	// LeaseGrainNs is the time by which a lease may last longer than its milliseconds, since a
	// server may keep a key through the millisecond of its expiry. It is known for the record of a
	// simulated run; for other histories it is 0.
	LeaseGrainNs int64
	// StepLimit is how many steps one search may try, 0 for StepLimitDefault. A search covers a
	// stretch of some thousand operations on one lock, if the history can be cut. The limit counts
	// steps and not time, so that a verdict repeats.
	StepLimit int

	stretchMin int // operations; 0: stretchMin
}

// Verdict is the result of a check.
type Verdict string

// The verdicts. Undecided means that a limit stopped the search: there may or may not be an order.
const (
	OK        Verdict = "ok"
	Broken    Verdict = "broken"
	Undecided Verdict = "undecided"
)

// Result is the verdict on a history, lock by lock in order of their names.
type Result struct {
	Locks []LockResult
}

// Verdict returns broken if a lock is broken, else undecided if one is, else ok.
func (r Result) Verdict() Verdict {
	v := OK
	for _, l := range r.Locks {
		if l.Verdict == Broken {
			return Broken
		}
		if l.Verdict == Undecided {
			v = Undecided
		}
	}
	return v
}

// LockResult is the verdict on one lock.
type LockResult struct {
	Lock    string
	Verdict Verdict
	Ops     int // operations judged: all on the lock, except failed ones
	Steps   int // steps that the search tried; 0 if the monitor decided

	// Prefix is the number of operations in the longest linearizable prefix, in the order of their
	// returns. If the search met its limit, it is the length that was found. If the monitor then convicts,
	// it is the number of operations that returned before First.
	Prefix int
	// First is the first operation, in order of returns, that no order can place. It is nil unless
	// the history is broken.
	First *Op
	Reason

	broken *history // the stretch that is broken
}

// Reason says what is wrong with a history. One field is set, or none if the history is ok.
type Reason struct {
	Limit   *Limit   `json:",omitempty"` // of an undecided history
	Overlap *Overlap `json:",omitempty"`
	Refused *Refused `json:",omitempty"`
}

// Limit is the limit that a search met.
type Limit struct {
	Memory bool // it is the limit of memory, not that of steps
	Steps  int  // tried in this search
}

// Overlap says that Later was granted the lock while another owner certainly held it.
type Overlap struct {
	Later  Op
	Holder string // process/thread
	// The hold of Holder is certain from FromNs to UntilNs, or without an end if UntilNs is
	// [NoEnd].
	FromNs, UntilNs int64
}

// NoEnd is the end of a hold that nothing ends.
const NoEnd = forever

// Refused says that no order can place an operation.
type Refused struct {
	Op Op
	// State is the state that does not allow the step, at the end of the longest order that
	// was found.
	State model.State
	// In is the operation itself, or, with DoExpire, the end of the lease that it started.
	In model.Input
	// EndNs is the instant by which the lease had to end, for DoExpire.
	EndNs int64
	// By is the rule. If it is Allowed, the state allows the step, but the search had already tried
	// every order with it, and none came farther.
	By model.Refusal
}

// Check judges whether every lock of a history is linearizable with leases.
// The order of ops does not matter, except between operations of one thread that
// are called at the same instant.
//
// It panics when opt.Spec is no specification.
func Check(ops []Op, opt Options) Result {
	c := NewChecker(opt)
	order := make([]*Op, len(ops))
	for i := range ops {
		order[i] = &ops[i]
	}
	slices.SortStableFunc(order, func(a, b *Op) int { return cmp.Compare(a.CallNs, b.CallNs) })
	for _, op := range order {
		c.Add(op)
	}
	return c.Result()
}

// history is a stretch of a history, of one lock.
type history struct {
	lock    string
	ops     []*Op // in order of call
	spec    model.Spec
	opt     Options
	crashes map[string][]int64 // by process, in order
	free    model.State        // of the lock at the beginning, with the waiting owners
	waiting []*Op              // fair: acquires that stand in the queue at the end
}

// check judges the stretch, and returns the state in which it left the lock, if that is known.
// Without a search it asks only the monitor, whose silence proves nothing.
func (h *history) check(searches bool) (LockResult, model.State) {
	r := LockResult{Lock: h.lock, Verdict: OK}
	for _, op := range h.ops {
		if op.Outcome != model.AnswerFailed {
			r.Ops++
		}
	}
	var s *search
	conflict, exact := h.plainMonitor()
	if conflict == nil && !exact {
		if searches {
			if s = h.newSearch(forever); s.descend() {
				s.result(&r)
				return r, s.best.state
			}
		}
		conflict = h.sureMonitor()
	}
	switch {
	case conflict != nil:
		h.convicted(&r, conflict, exact)
		return r, h.free
	case s == nil:
		r.Prefix = r.Ops
		return r, h.free
	}
	s.complete()
	s.result(&r)
	return r, s.best.state
}

// known judges the part of the stretch that was known at the instant until.
func (h *history) known(until int64) LockResult {
	r := LockResult{Lock: h.lock, Verdict: OK}
	for _, op := range h.ops {
		if op.Outcome != model.AnswerFailed && op.CallNs <= until {
			r.Ops++
		}
	}
	if c, exact := h.monitor(); c != nil && c.later.ret() <= until {
		h.convicted(&r, c, exact)
		return r
	}
	h.search(until).result(&r)
	return r
}

// convicted fills in the result for a lock on which the monitor found two holds at once. The
// monitor knows which grant came too early. Unless it is exact, it does not know whether everything
// before was right. So the history is searched up to that grant, where it is usually valid and the
// search short.
func (h *history) convicted(r *LockResult, c *conflict, exact bool) {
	if !exact {
		s := h.search(c.later.ret())
		if s.verdict == Broken {
			s.result(r)
			return
		}
		r.Steps = s.steps
	}
	r.Verdict = Broken
	r.First = c.later
	for _, op := range h.ops {
		if op.Outcome != model.AnswerFailed && op.ret() < c.later.ret() {
			r.Prefix++
		}
	}
	r.Reason = Reason{Overlap: c.overlap()}
}
