package linearizability

// A history is judged in stretches. The search remembers for each configuration the
// operations that it has placed. With stretches neither this memory nor that of the checker
// grows with the length of a history. Between two stretches is a cut: an instant at which
// the lock is free in every order, and after which no earlier operation can come.
//
// # Where it may be cut
//
// Let R be a release answered released that returned at t. There is a cut at t if two
// conditions hold. First, each of the other operations that were called by t
//
//   - returned before R was called, or
//   - is a waiting acquire: granted, after t, with no lease that may end by t; or
//   - failed, which has no effect.
//
// Second, no lease that a returned operation started may end from the call of R on.
// Either the lease ended before. Or another operation is called after the operation that
// started the lease has returned, and returns before the earliest end of the lease; after
// it another lease runs or none. R is such an operation for the leases that end after t.
//
// Then R is the last of the operations before the cut in every order, and it leaves the
// lock free. It remains to show that a waiting acquire W, by w, does not stand before R.
// Suppose it does. R needs a hold of its own owner o. An acquire A of o began that hold
// and stands before R. A is no waiting acquire, since a waiting acquire of o itself would
// be called by t while R was open. (If W is called at t, R comes first or is refused.) W
// cannot stand between A and R. If W stands before A, then w holds the lock, and must have
// lost its hold by A. W returns after t, so neither a later release by w nor its lease
// ends that hold. So W is waiting only if
//
//   - no force_release and no lost key returned at or after the call of W, and
//   - no operation of w was open when W was called. One that returned at just that
//     instant might stand after W, and end its hold if it was answered released:
//     unless w surely held the lock before it, so that W would have entered again,
//     and the answer would have been still_held.
//
// A fair lock also has a queue. A waiter that arrived by t stands in it before the cut,
// where nobody may overtake it, and at the beginning of the next stretch. Waiters are in
// the order of their arrivals. The orders may differ in whether a waiter was refused
// meanwhile. That matters only to operations that answer busy. An operation that failed
// stood in the queue until it returned, so it must have returned before R was called.
//
// A fenced lock remembers its greatest token. This is the token of the order that the
// search found. It is the same in every order if since the last cut no lease ended, no key
// was lost and no unlock was forced: then it is certain which grants began a hold.
//
// Each stretch is searched by itself, and a waiting acquire belongs to the stretch after
// the cut. A history has an order if and only if each stretch has one: orders of the
// stretches, one after the other, are an order of the history; and an order of the history
// has the operations of one stretch after those of the other.
//
// An operation of unknown outcome may take effect at any time after its call, so there is
// no cut after it.

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"

	"lockstep/model"
)

// stretchMin is the least number of operations in a stretch: shorter ones cost more than they save.
const stretchMin = 1000

// Checker judges a history while it is read. For each lock it remembers the operations since the
// lock was last certainly free (see the comment of this file), and the open operations.
type Checker struct {
	spec    model.Spec
	opt     Options
	crashes map[string][]int64      // by process, in order
	locks   map[string]*lockHistory // each is judged apart: porcupine gives one verdict for all parts
}

// NewChecker begins a history. It panics when opt.Spec is no specification.
func NewChecker(opt Options) *Checker {
	name := cmp.Or(opt.Spec, model.Specs[0])
	spec, ok := model.SpecNamed(name)
	if !ok {
		panic("linearizability: there is no specification " + name + "; check the name with model.SpecNamed")
	}
	if opt.StepLimit <= 0 {
		opt.StepLimit = StepLimitDefault
	}
	opt.DriftPPM = max(opt.DriftPPM, 0)
	if opt.stretchMin <= 0 {
		opt.stretchMin = stretchMin
	}
	return &Checker{spec: spec, opt: opt, crashes: map[string][]int64{}, locks: map[string]*lockHistory{}}
}

// Add takes the next operation, in order of call. The checker keeps it.
func (c *Checker) Add(op *Op) {
	if op.Op == OpCrash { // belongs to no lock, and only bounds leases
		c.crashes[op.Process] = append(c.crashes[op.Process], op.CallNs)
		return
	}
	l := c.locks[op.Lock]
	if l == nil {
		l = &lockHistory{checker: c, result: LockResult{Lock: op.Lock, Verdict: OK}, free: c.spec.Init(), quiet: math.MinInt64, forced: math.MinInt64, owners: map[string]ownerSeen{}}
		c.locks[op.Lock] = l
	}
	l.add(op)
}

// Result judges the remaining operations, and returns the verdict on the whole history.
// The checker cannot be used any more.
func (c *Checker) Result() Result {
	var r Result
	for _, name := range slices.Sorted(maps.Keys(c.locks)) {
		l := c.locks[name]
		l.judge()
		r.Locks = append(r.Locks, l.result)
	}
	return r
}

// lockHistory is the state of the checker for one lock.
type lockHistory struct {
	checker *Checker
	result  LockResult  // so far
	free    model.State // of the lock, at the last cut

	early  []*Op // fewer than a stretch needs, in order of call; of them nothing else is known
	ops    []*Op // since the last cut, in order of call; none while there are early ones
	open   byReturn
	quiet  int64 // the last return of an operation that is over
	forced int64 // the last return of an operation that ends everybody's hold
	whole  bool  // it can no longer be cut
	ended  bool  // since the last cut a lease ended, or an operation ended everybody's hold
	leases []*Op // finished operations that may have started a lease which nothing has replaced
	owners map[string]ownerSeen
}

// byReturn is a heap of open operations, the first to return on top.
type byReturn []*Op

func (h byReturn) Len() int           { return len(h) }
func (h byReturn) Less(i, j int) bool { return h[i].ret() < h[j].ret() }
func (h byReturn) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byReturn) Push(op any)       { *h = append(*h, op.(*Op)) }
func (h *byReturn) Pop() any {
	last := len(*h) - 1
	op := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return op
}

// ownerSeen holds the facts about an owner that follow from its finished operations.
type ownerSeen struct {
	ret   int64 // the last return
	since int64 // the call of the operation since which it certainly holds the lock; MaxInt64: none
	lease *Op   // the operation that started the current lease, if there is one
	ends  bool  // an operation that returned last was answered released, and the owner may not have held the lock before
}

var unseen = ownerSeen{ret: math.MinInt64, since: math.MaxInt64}

func (l *lockHistory) history(ops []*Op) *history {
	return &history{lock: l.result.Lock, ops: ops, spec: l.checker.spec, opt: l.checker.opt, crashes: l.checker.crashes, free: l.free}
}

func (l *lockHistory) add(op *Op) {
	if l.ops == nil {
		if l.early = append(l.early, op); len(l.early) < l.checker.opt.stretchMin {
			return
		}
		for _, op := range l.early {
			l.follow(op)
		}
		l.early = nil
		return
	}
	l.follow(op)
}

// follow keeps track of where the history may be cut.
func (l *lockHistory) follow(op *Op) {
	if l.result.Verdict == Broken {
		l.count(op)
		return
	}
	for len(l.open) > 0 && l.open[0].ret() < op.CallNs {
		l.addReturned(heap.Pop(&l.open).(*Op))
	}
	if l.result.Verdict == Broken { // because of the stretch that was just cut off
		l.count(op)
		return
	}
	l.ops = append(l.ops, op)
	heap.Push(&l.open, op)
}

// count counts an operation that is not judged any more.
func (l *lockHistory) count(op *Op) {
	if op.Outcome != model.AnswerFailed {
		l.result.Ops++
	}
}

// addReturned notes an operation that has returned before the next is called.
func (l *lockHistory) addReturned(op *Op) {
	spec, ret := l.checker.spec, op.ret()
	if !l.whole && len(l.ops) >= l.checker.opt.stretchMin && op.Op == OpRelease && op.Outcome == model.AnswerReleased && l.quiet < op.CallNs &&
		l.leasesOverBy(op.CallNs, ret) && !l.openBeside(op) && !(spec.Fenced() && l.ended) {
		l.cut(ret)
		return
	}
	if op.Outcome == model.AnswerFailed && !spec.Fair() {
		return
	}
	l.quiet = max(l.quiet, ret)
	if op.Op == OpLost || op.Op == OpForceRelease && op.Outcome != model.AnswerNotHeld {
		l.forced, l.ended = max(l.forced, ret), true
	}
	if op.replaces() {
		l.leases = slices.DeleteFunc(l.leases, func(before *Op) bool { return before.ret() < op.CallNs && ret < l.lasts(before) })
	}
	if op.startsLease() {
		l.leases = append(l.leases, op)
	}
	if op.Op != OpLost {
		l.owners[op.owner()] = l.seenWith(op)
	}
}

// lasts returns the instant before which the lease that an operation started cannot end, as far as
// crashes are known. It returns MaxInt64 if the operation started no lease, or a lease that does
// not end.
func (l *lockHistory) lasts(op *Op) int64 {
	if lo, _, runs := l.history(nil).window(op); runs {
		return lo
	}
	return math.MaxInt64
}

// seenWith returns the facts about an operation's owner, with this operation, which has finished.
func (l *lockHistory) seenWith(op *Op) ownerSeen {
	s, ok := l.owners[op.owner()]
	if !ok {
		s = unseen
	}
	ret := op.ret()
	sure := op.CallNs > s.ret || op.CallNs == s.ret && !s.ends // it came after the earlier operations
	held := sure && s.since != math.MaxInt64 && ret < l.lasts(s.lease) && l.forced < s.since
	ends := op.Op == OpRelease && op.Outcome == model.AnswerReleased && !held
	if ret <= s.ret {
		ends = ends || s.ends
	}
	next := ownerSeen{ret: max(s.ret, ret), since: math.MaxInt64, ends: ends}
	switch {
	case !sure:
	case op.Op == OpAcquire && op.Outcome == model.AnswerGranted, op.Op == OpRenew && op.Outcome == model.AnswerRenewed:
		next.since, next.lease = op.CallNs, op
	case op.Op == OpRelease && op.Outcome == model.AnswerStillHeld:
		next.since, next.lease = s.since, s.lease
		if op.LeaseMs != nil {
			next.lease = op
		}
	case op.Op == OpIsLocked, op.Op == OpHoldCount:
		next.since, next.lease = s.since, s.lease
	}
	return next
}

// leasesOverBy reports whether every lease either ended before call, or is replaced by the
// operation that was called then and returned at ret. It forgets leases that ended.
func (l *lockHistory) leasesOverBy(call, ret int64) bool {
	over := true
	l.leases = slices.DeleteFunc(l.leases, func(op *Op) bool {
		lo, hi, runs := l.history(nil).window(op)
		if runs && hi < call {
			l.ended = true
			return true
		}
		over = over && !(runs && (op.ret() >= call || lo <= ret))
		return false
	})
	return over
}

// openBeside reports whether any operation except waiting acquires was open during a release, which
// returned last.
func (l *lockHistory) openBeside(release *Op) bool {
	at := release.ret()
	return slices.ContainsFunc(l.open, func(op *Op) bool {
		if op.Outcome == model.AnswerFailed {
			return l.checker.spec.Fair()
		}
		return op.owner() == release.owner() && op.CallNs < at || !l.waits(op, at)
	})
}

// waits reports whether an open operation is an acquire that comes after every operation that had
// returned by an instant.
func (l *lockHistory) waits(op *Op, at int64) bool {
	if op.Op != OpAcquire || op.Outcome != model.AnswerGranted || op.ret() <= at || l.forced >= op.CallNs {
		return false
	}
	if l.lasts(op) <= at {
		return false
	}
	seen, ok := l.owners[op.owner()]
	return !ok || seen.ret < op.CallNs || seen.ret == op.CallNs && !seen.ends
}

// cut judges the operations that were called by that instant, except the open ones.
func (l *lockHistory) cut(at int64) {
	waiting := map[*Op]bool{}
	for _, op := range l.open {
		waiting[op] = op.Outcome != model.AnswerFailed
	}
	var done, left []*Op
	for _, op := range l.ops {
		if waiting[op] {
			left = append(left, op)
		} else {
			done = append(done, op)
		}
	}
	h := l.history(done)
	if l.checker.spec.Fair() {
		h.waiting = slices.DeleteFunc(slices.Clone(left), func(op *Op) bool { return op.arrival() > at })
	}
	verdict, free := h.check(l.result.Verdict == OK)
	if verdict.Verdict == Broken {
		// If there is no order at all, a waiting acquire may come before the release. So the
		// explanation uses all known operations.
		switch known := l.history(l.ops).known(at); known.Verdict {
		case OK: // the history breaks later
			l.whole = true
			return
		case Broken:
			known.Ops = verdict.Ops
			h, verdict = l.history(l.ops), known
		}
	}
	l.sum(h, verdict)
	l.ops, l.free = left, free
	l.free.Waiting = nil
	for i, op := range left {
		if in := op.arrive(i + 1); slices.Contains(h.waiting, op) {
			l.free.Waiting = append(l.free.Waiting, model.Waiter{ID: in.Of, Owner: in.Owner, ArrivedNs: in.ArrivedNs, Ordered: in.Ordered})
		}
	}
	l.open = append(byReturn(nil), left...)
	heap.Init(&l.open)
	l.quiet, l.ended, l.leases = at, false, nil
	// For a waiting acquire, only the operations count that had returned at its call.
	kept := map[string]ownerSeen{}
	for _, op := range left {
		if seen, ok := l.owners[op.owner()]; ok && seen.ret == op.CallNs {
			kept[op.owner()] = seen
		}
	}
	l.owners = kept
}

// judge adds the verdict on the operations since the last cut to the result.
func (l *lockHistory) judge() {
	if l.ops == nil {
		l.ops = l.early
	}
	switch {
	case l.result.Verdict == Broken:
		for _, op := range l.ops {
			l.count(op)
		}
	case len(l.ops) > 0:
		h := l.history(l.ops)
		verdict, _ := h.check(l.result.Verdict == OK)
		l.sum(h, verdict)
	}
}

// sum adds the verdict on a stretch to the result.
func (l *lockHistory) sum(h *history, next LockResult) {
	r := &l.result
	before := r.Ops
	r.Ops += next.Ops
	r.Steps += next.Steps
	switch {
	case next.Verdict == OK && r.Verdict == OK:
		r.Prefix = r.Ops
	case next.Verdict == Broken || r.Verdict == OK:
		next.Ops, next.Steps, next.Prefix = r.Ops, r.Steps, before+next.Prefix
		if next.Verdict == Broken {
			next.broken = h
		}
		*r = next
	}
}
