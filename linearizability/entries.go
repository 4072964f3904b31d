package linearizability

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"lockstep/model"
)

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
	queues := func(op *Op) bool { return op.Outcome == model.AnswerBusy || op.ArrivedNs != nil }
	l := entryList{
		history: h, until: until, endNs: math.MinInt64,
		queue:    h.spec.Fair() && (slices.ContainsFunc(h.ops, queues) || slices.ContainsFunc(h.waiting, queues) || len(h.free.Waiting) > 0),
		replaced: h.replacements(until),
		all:      make([]*entry, 0, 2*len(h.ops)),
	}
	for i, op := range h.ops {
		if op.CallNs > until {
			break
		}
		l.addOp(i+1, op)
	}
	for i, op := range h.waiting {
		if l.queue && op.arrival() <= until {
			l.add(entry{in: op.arrive(len(h.ops) + i + 1), call: op.arrival(), ret: op.arrival(), op: op})
		}
	}
	if slices.ContainsFunc(l.all, func(e *entry) bool { return e.in.Optional }) {
		l.add(entry{in: model.Input{Do: model.DoEnd}, call: l.endNs + 1, ret: l.endNs + 1})
	}

	byReturn := slices.Clone(l.all)
	slices.SortStableFunc(byReturn, func(a, b *entry) int { return cmp.Compare(a.ret, b.ret) })
	for i, e := range byReturn {
		e.rank = i
		if e.ret == forever {
			e.rank = -1
		}
	}
	return l.all
}

// entryList collects the entries of a history as it was known at the instant until.
type entryList struct {
	*history
	until    int64
	queue    bool // acquires wait in a queue
	replaced func(op *Op, lo int64) bool
	endNs    int64 // no call, return or end of a lease so far is later
	all      []*entry
	memory   []entry
}

func (l *entryList) add(e entry) {
	if len(l.memory) == 0 {
		l.memory = make([]entry, min(len(l.ops)+1, 64))
	}
	l.memory[0] = e
	l.all, l.memory = append(l.all, &l.memory[0]), l.memory[1:]
}

// addOp adds the entries of the operation with an id: its arrival in the queue, the end of its lease,
// and itself.
func (l *entryList) addOp(id int, op *Op) {
	l.endNs = max(l.endNs, op.CallNs)
	failed, queued := op.Outcome == model.AnswerFailed, l.queue && op.Op == OpAcquire
	if failed && !queued {
		return
	}
	ret := op.ret()
	if ret >= l.until {
		ret = forever
	}
	in, call := op.input(id), op.CallNs
	in.Optional = ret == forever
	if queued {
		arrive := op.arrive(id)
		in.Queued = true
		in.ArrivedNs, in.HasArrival, in.Ordered = arrive.ArrivedNs, arrive.HasArrival, arrive.Ordered
		call = op.arrival()
		if call <= l.until && !slices.ContainsFunc(l.free.Waiting, func(w model.Waiter) bool { return w.ID == id }) {
			l.add(entry{in: arrive, call: call, ret: call, op: op})
		}
		l.endNs = max(l.endNs, min(call, l.until))
		if failed {
			in.Do, in.Of = model.DoLeave, id
		}
	}
	if call > l.until {
		return
	}

	if lo, hi, runs := l.window(op); runs && lo <= l.until && !l.replaced(op, lo) {
		in.Lease = id
		expire := model.Input{Do: model.DoExpire, Of: id, Owner: in.Owner}
		if hi >= l.until {
			hi = forever
		}
		if hi == forever {
			expire.Optional = true
		} else {
			in.Tracked = !in.Optional && lo <= ret
			expire.Tracked = in.Tracked
			l.endNs = max(l.endNs, hi)
		}
		l.add(entry{in: expire, call: lo, ret: hi, op: op})
	}
	l.add(entry{in: in, call: call, ret: ret, op: op, own: true})
	if ret != forever {
		l.endNs = max(l.endNs, ret)
	}
}

// steps are the steps of the operations.
var steps = map[string]model.Do{
	OpAcquire: model.DoAcquire, OpRelease: model.DoRelease, OpRenew: model.DoRenew, OpForceRelease: model.DoForceRelease,
	OpIsLocked: model.DoIsLocked, OpHoldCount: model.DoHoldCount, OpLost: model.DoLost,
}

// input returns the step of the operation with an id. Its lease does not end.
func (o *Op) input(id int) model.Input {
	do, ok := steps[o.Op]
	if !ok {
		panic("linearizability: there is no operation " + o.Op)
	}
	in := model.Input{Do: do, ID: id, Owner: o.owner(), Answer: o.Outcome}
	if o.Op == OpAcquire || o.Op == OpRenew || o.Op == OpRelease && o.LeaseMs != nil {
		in.Lease = model.NoExpiry
	}
	if o.Op == OpAcquire && o.Token != nil {
		in.Token, in.HasToken = *o.Token, true
	}
	if o.Op == OpHoldCount && o.Count != nil {
		in.Count = *o.Count
	}
	return in
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

// lastNs bounds every instant but forever; sums stop there.
const lastNs = math.MaxInt64 - 2

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
