package linearizability

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/anishathalye/porcupine"

	"lockstep/model"
)

// forever is the return of an operation that may still take effect later.
const forever = math.MaxInt64

// lastNs bounds every other instant; sums stop there.
const lastNs = math.MaxInt64 - 2

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

// window returns the first and the last instant at which the lease that op starts may end. If hi is
// forever, there is no last one. ok is false when op starts no lease that ends by itself.
func (h *history) window(op *Op) (lo, hi int64, ok bool) {
	if !op.startsLease() || op.NeverExpires {
		return 0, 0, false
	}
	if op.ExpireNs != nil {
		return *op.ExpireNs, *op.ExpireNs, true
	}
	if op.LeaseMs == nil && !op.Watchdog {
		return 0, 0, false
	}
	from, to := op.CallNs, op.ret()
	if op.Watchdog {
		died := h.crashes[op.Process]
		i, _ := slices.BinarySearch(died, op.CallNs)
		if i == len(died) {
			return 0, 0, false
		}
		// From the crash on nobody prolongs the lease, which may have been about to end at that
		// instant.
		from = died[i]
		if to != forever {
			to = max(to, from)
		}
		if op.LeaseMs == nil {
			return from, forever, true
		}
		return from, plus(to, h.longest(*op.LeaseMs)), true
	}
	return max(op.CallNs, plus(from, h.shortest(*op.LeaseMs))), plus(to, h.longest(*op.LeaseMs)), true
}

// longest and shortest return the bounds of the length of a lease on the clock of the history, in
// nanoseconds, rounded outwards.
func (h *history) longest(leaseMs int64) int64 {
	ns := leaseNs(leaseMs)
	return plus(plus(ns, drift(ns, h.opt.DriftPPM)), h.opt.LeaseGrainNs)
}

func (h *history) shortest(leaseMs int64) int64 {
	ns := leaseNs(leaseMs)
	return ns - min(ns, drift(ns, h.opt.DriftPPM))
}

func leaseNs(ms int64) int64 {
	return min(max(ms, 0), lastNs/1_000_000) * 1_000_000
}

// drift returns ns·ppm/1 000 000, rounded up.
func drift(ns, ppm int64) int64 {
	hi, lo := bits.Mul64(uint64(ns), uint64(ppm))
	lo, carry := bits.Add64(lo, 1e6-1, 0)
	hi += carry
	if hi >= 1e6 {
		return lastNs
	}
	q, _ := bits.Div64(hi, lo, 1e6)
	return int64(min(q, lastNs))
}

// plus adds a span to an instant. Forever stays, other sums stop at lastNs.
func plus(at, span int64) int64 {
	if at == forever {
		return forever
	}
	if at > lastNs-span {
		return lastNs
	}
	return at + span
}

// entry is one operation in the form for porcupine: a call of the history or a step that the judge
// adds.
type entry struct {
	in        model.Input
	call, ret int64
	op        *Op // the call, or the call to which the step belongs; nil for the end
	own       bool
	rank      int // in order of returns; -1 for an operation that may happen at any time

	before, after *entry // in order of calls, of those that descend has not placed
}

// entries returns the operations that must be placed, in the history as it was known at the instant
// until. It leaves out later calls. Calls that return then or later may or may not have taken
// effect.
func (h *history) entries(until int64) []*entry {
	all := make([]*entry, 0, 2*len(h.ops))
	var memory []entry
	add := func(e entry) {
		if len(memory) == 0 {
			memory = make([]entry, min(len(h.ops)+1, 64))
		}
		memory[0] = e
		all, memory = append(all, &memory[0]), memory[1:]
	}
	queues := func(op *Op) bool { return op.Outcome == model.AnswerBusy || op.ArrivedNs != nil }
	queue := h.spec.Fair() && (slices.ContainsFunc(h.ops, queues) || slices.ContainsFunc(h.waiting, queues) || len(h.free.Waiting) > 0)
	replaced := h.replacements(until)
	end := int64(math.MinInt64)

	for i, op := range h.ops {
		if op.CallNs > until {
			break
		}
		end = max(end, op.CallNs)
		id := i + 1
		failed := op.Outcome == model.AnswerFailed
		if failed && !(queue && op.Op == OpAcquire) {
			continue
		}
		ret := op.ret()
		if ret >= until {
			ret = forever
		}
		in := model.Input{ID: id, Owner: op.owner(), Answer: op.Outcome, Optional: ret == forever}
		call := op.CallNs
		switch op.Op {
		case OpAcquire:
			in.Do = model.DoAcquire
			in.Lease = model.NoExpiry
			if op.Token != nil {
				in.Token, in.HasToken = *op.Token, true
			}
		case OpRelease:
			in.Do = model.DoRelease
			if op.LeaseMs != nil {
				in.Lease = model.NoExpiry
			}
		case OpRenew:
			in.Do, in.Lease = model.DoRenew, model.NoExpiry
		case OpForceRelease:
			in.Do = model.DoForceRelease
		case OpIsLocked:
			in.Do = model.DoIsLocked
		case OpHoldCount:
			in.Do = model.DoHoldCount
			if op.Count != nil {
				in.Count = *op.Count
			}
		case OpLost:
			in.Do = model.DoLost
		default:
			panic("linearizability: there is no operation " + op.Op)
		}

		if queue && op.Op == OpAcquire {
			arrive := op.arrive(id)
			in.Queued = true
			in.ArrivedNs, in.HasArrival, in.Ordered = arrive.ArrivedNs, arrive.HasArrival, arrive.Ordered
			call = op.arrival()
			if call <= until && !slices.ContainsFunc(h.free.Waiting, func(w model.Waiter) bool { return w.ID == id }) {
				add(entry{in: arrive, call: call, ret: call, op: op})
			}
			end = max(end, min(call, until))
			if failed {
				in.Do, in.Of = model.DoLeave, id
			}
		}
		if call > until {
			continue
		}

		lo, hi, runs := h.window(op)
		if runs && lo <= until && !replaced(op, lo) {
			in.Lease = id
			expire := model.Input{Do: model.DoExpire, Of: id, Owner: in.Owner}
			if hi >= until {
				hi = forever
			}
			if hi == forever {
				expire.Optional = true
			} else {
				in.Tracked = !in.Optional && lo <= ret
				expire.Tracked = in.Tracked
				end = max(end, hi)
			}
			add(entry{in: expire, call: lo, ret: hi, op: op})
		}
		add(entry{in: in, call: call, ret: ret, op: op, own: true})
		if ret != forever {
			end = max(end, ret)
		}
	}
	for i, op := range h.waiting {
		if queue && op.arrival() <= until {
			add(entry{in: op.arrive(len(h.ops) + i + 1), call: op.arrival(), ret: op.arrival(), op: op})
		}
	}
	if slices.ContainsFunc(all, func(e *entry) bool { return e.in.Optional }) {
		add(entry{in: model.Input{Do: model.DoEnd}, call: end + 1, ret: end + 1})
	}

	byReturn := slices.Clone(all)
	slices.SortStableFunc(byReturn, func(a, b *entry) int { return cmp.Compare(a.ret, b.ret) })
	for i, e := range byReturn {
		e.rank = i
		if e.ret == forever {
			e.rank = -1
		}
	}
	return all
}

// replacements returns a function that reports whether the lease of op has certainly been replaced
// or given back before lo: if some operation lies completely between the return of op and lo, and
// another lease or none is current after it. The end of such a lease changes nothing, wherever it
// is placed. So leaving it out is exact, and halves most histories.
func (h *history) replacements(until int64) func(op *Op, lo int64) bool {
	type span struct{ call, ret int64 }
	var spans []span
	for _, op := range h.ops {
		if op.replaces() && op.ret() < until {
			spans = append(spans, span{op.CallNs, op.ret()})
		}
	}
	// spans are in order of call; soonest[i] is the first return from i on.
	soonest := make([]int64, len(spans)+1)
	soonest[len(spans)] = forever
	for i := len(spans) - 1; i >= 0; i-- {
		soonest[i] = min(spans[i].ret, soonest[i+1])
	}
	return func(op *Op, lo int64) bool {
		ret := op.ret()
		if ret >= until {
			return false
		}
		i, _ := slices.BinarySearchFunc(spans, ret, func(s span, ret int64) int {
			if s.call <= ret {
				return -1
			}
			return 1
		})
		return soonest[i] < lo
	}
}

// node is a state on a path of the search, with the entries placed so far: all entries whose rank
// is below low, and those in ahead. low and ahead are not compared as parts of the state, since
// porcupine compares the set of placed entries itself.
type node struct {
	state model.State
	low   int
	ahead []int32 // in order; short, since the number of concurrent operations bounds it
}

// search is one run of porcupine.
type search struct {
	history  *history
	entries  []*entry
	byReturn []*entry
	steps    int // tried
	made     int // allowed steps, each a configuration to remember
	madeMax  int
	best     *node // the first node that came farthest
	verdict  Verdict
	stopped  bool
}

// newSearch prepares a search of the history as it was known at the instant until.
func (h *history) newSearch(until int64) *search {
	entries := h.entries(until)
	s := &search{history: h, entries: entries, byReturn: make([]*entry, len(entries)+1)} // nil at the end
	for _, e := range entries {
		if e.rank >= 0 {
			s.byReturn[e.rank] = e
		}
	}
	s.madeMax = max(1000, memoryBytesMax/(len(entries)/8+250))
	s.begin()
	return s
}

// begin makes the search begin again.
func (s *search) begin() {
	s.steps, s.made, s.stopped = 0, 0, false
	s.best = &node{state: s.history.free}
}

// model returns the specification in the form for porcupine, with the search's limits.
func (s *search) model() porcupine.Model {
	initial := s.best
	return porcupine.Model{
		Init:  func() any { return initial },
		Step:  s.step,
		Equal: func(a, b any) bool { return a.(*node).state.Equal(b.(*node).state) },
		Hash:  func(a any) uint64 { return a.(*node).state.Hash() },
	}
}

// search looks for an order of the history as it was known at the instant until.
func (h *history) search(until int64) *search {
	s := h.newSearch(until)
	if !s.descend() {
		s.complete()
	}
	return s
}

// complete looks for an order with porcupine, which reads intervals as closed, so either of two
// operations at one instant may come first.
func (s *search) complete() {
	s.begin()
	ops := make([]porcupine.Operation, len(s.entries))
	for i, e := range s.entries {
		ops[i] = porcupine.Operation{Input: e, Call: e.call, Return: e.ret}
	}
	switch {
	case porcupine.CheckOperations(s.model(), ops):
		s.verdict = OK
	case s.stopped:
		// After the limit every step was refused, so the search found no order. This says nothing
		// about the history.
		s.verdict = Undecided
	default:
		s.verdict = Broken
	}
}

// descend places one entry after another, and never goes back: the entry that returns first, or else the first in
// order of calls that the state allows. It reports whether this placed all entries. That suffices for nearly every
// history of a lock that is right, and costs less without the memory that porcupine needs to go back.
func (s *search) descend() bool {
	order := slices.Clone(s.entries)
	slices.SortStableFunc(order, func(a, b *entry) int { return cmp.Compare(a.call, b.call) })
	left := &entry{} // before the first entry that is not placed
	for last := left; len(order) > 0; order = order[1:] {
		last.after, order[0].before = order[0], last
		last = order[0]
	}
	for n := s.best; left.after != nil; {
		first := s.byReturn[n.low] // nil: no entry returns that is not placed
		returned := int64(forever)
		var next *node
		placed := first
		if first != nil {
			next, returned = s.try(n, first), first.ret
		}
		// An entry that is called after the first return comes after the one that returned.
		for e := left.after; next == nil && e != nil && e.call <= returned; e = e.after {
			if e != first {
				next, placed = s.try(n, e), e
			}
		}
		if next == nil {
			return false
		}
		n = next
		placed.before.after = placed.after
		if placed.after != nil {
			placed.after.before = placed.before
		}
	}
	s.verdict = OK
	return true
}

// step is try in the form for porcupine.
func (s *search) step(state, input, _ any) (bool, any) {
	if next := s.try(state.(*node), input.(*entry)); next != nil {
		return true, next
	}
	return false, state
}

// try returns the node after placing an entry; nil if the state does not allow it, or the limits do not.
func (s *search) try(n *node, e *entry) *node {
	if s.stopped {
		return nil
	}
	if s.steps >= s.history.opt.StepLimit || s.made >= s.madeMax {
		s.stopped = true
		return nil
	}
	s.steps++
	st, ok := s.history.spec.Step(n.state, e.in)
	if !ok {
		return nil
	}
	s.made++
	next := n.placed(st, e.rank)
	if next.low > s.best.low {
		s.best = next
	}
	return next
}

// placed returns the node after placing the entry with a rank.
func (n *node) placed(st model.State, rank int) *node {
	next := &node{state: st, low: n.low, ahead: n.ahead}
	switch {
	case rank < 0:
	case rank > n.low:
		i, _ := slices.BinarySearch(n.ahead, int32(rank))
		next.ahead = make([]int32, 0, len(n.ahead)+1)
		next.ahead = append(next.ahead, n.ahead[:i]...)
		next.ahead = append(next.ahead, int32(rank))
		next.ahead = append(next.ahead, n.ahead[i:]...)
	default:
		next.low++
		for len(next.ahead) > 0 && int(next.ahead[0]) == next.low {
			next.low++
			next.ahead = next.ahead[1:]
		}
	}
	return next
}

// result fills in the outcome of the search.
func (s *search) result(r *LockResult) {
	r.Verdict, r.Steps = s.verdict, s.steps
	if s.verdict == OK {
		r.Prefix = r.Ops
		return
	}
	for _, e := range s.byReturn[:s.best.low] {
		if e.own && e.op.Outcome != model.AnswerFailed {
			r.Prefix++
		}
	}
	if s.verdict == Undecided {
		r.Reason = Reason{Limit: &Limit{Memory: s.steps < s.history.opt.StepLimit, Steps: s.steps}}
		return
	}
	e := s.byReturn[s.best.low]
	r.First = e.op
	r.Reason = Reason{Refused: &Refused{Op: *e.op, State: s.best.state, In: e.in, EndNs: e.ret, By: s.history.spec.Refusal(s.best.state, e.in)}}
}
