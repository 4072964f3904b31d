package linearizability

// The monitor looks for two owners who surely hold one lock at one instant. It
// sorts, where the search may have to try every order; and it is just the
// histories with two such holds on which the search explodes.
//
// # Sound: two sure holds convict
//
// An anchor is an operation after which its owner o holds: a granted acquire, or
// a renewal answered renewed. Let anchor i have been called at a and returned at
// b, and take any order of the history that the specification allows; i stands in
// it at some p in [a, b]. Let e be the least of
//
//   - the call of every operation that may end o's hold and returned at a or
//     later: a release by o, a force_release by anybody, a lost key, each of them
//     answered released or of unknown outcome;
//   - the earliest end of every lease that o may have started with an operation
//     that returned at a or later, i itself and those of unknown outcome included.
//
// Then o holds from p on, throughout the instants before e. For suppose that the
// hold ends before, and look at the first step after p that ends it. If it is one
// of the first kind, it stands at or after a, so it returned at a or later and was
// called at e or later. If it is the end of a lease, that lease was the one
// running, which is i's own or was started later than p, so that it was started by
// an operation of o that returned at a or later, and it ends at e or later.
//
// Now let j be an anchor of another owner with a', b', p', e', let b ≤ b' and
// b' < e. As p' ≤ b' < e, p' is not after p, or j would have succeeded while o
// holds. So j stands before i, and if p < e', i succeeded while the owner of j
// holds. The hold of j is sure only if b' ≤ e', and p ≤ b ≤ b' ≤ e'. The end p =
// b = b' = e' remains, where j's hold is an instant at the very start of i's; the
// sweep takes j first there, and it is no conflict. In every other case no order
// exists: the monitor convicts. It needs no more than that owners exclude each
// other, so it convicts for the fair and the fenced specification alike.
//
// One ender that returned at a is excepted: the release of o that came just
// before a granted acquire i of o and returned at the very instant of its call, as
// it does when no time passes between two calls. Calls at one instant are
// concurrent, so that the release might be placed after the acquire. But if o
// surely holds, from an anchor that returned before a on, until that release or i
// whichever comes first, then i placed first would be a re-entry, and the release
// would have answered still_held, not released.
//
// # Exact: plain holds and busy answers
//
// Let the history have only granted acquires without leases, releases answered
// released or still_held and, on a lock that is not fair, acquires answered busy,
// each of these at another instant than its thread's calls before and after, and
// let the answers of every thread fit: released at its first level, still_held
// above. Let b(k) be the return of the acquire that began the k-th hold of a
// thread, and c(k) the call of the release that ended it. If two of these definite
// holds of different owners overlap, no order exists: at an instant t strictly
// within [b(k), c(k)] the thread has at least one acquire more behind it than
// releases, for what it did before has returned by t, and the release that gives
// back the first level is called later. And if one of them is a point within the
// other, its acquire or something before it would have to succeed while the other
// holds. If they do not overlap, take each acquire that begins a hold at its return
// and each release that ends one at its call: the holds come one after the other,
// and what a thread does within its hold stands there, which is an order. So
// nothing is left to search but a place for the busy answers.
//
// The definite holds come one after the other, so their order is fixed. The k-th
// can last from s(k), the call of its acquire or the end of the definite hold
// before it, whichever is later, to e(k), the return of its release or the begin of
// the definite hold after it, whichever is earlier. A busy answer to o needs an
// instant of its call, from c to r, in which another holds; so if some call meets
// no [s(k), e(k)] of another owner there is no order. If each does there is one.
// Look at what stands between the k-th hold and the next one, of u and v, with the
// release R and the acquire A. If R returned before A was called, place R at its
// return and A at its call: both holds then are as long as they can be. If not,
// place both at one instant g of both, A after R: at each instant u or v holds. Of
// the calls that meet [s(k), e(k)] or the next range and neither definite hold,
// those of others than u and v stand before R or after A. One of u is called when R
// had returned, at g or later, and stands after A. One of v returned before A was
// called, at g or earlier, and stands before R. Whether that is so the monitor
// looks up; where it is not the history is broken, and the search says why.
//
// # What it hands over
//
// Anything else may be broken without two sure holds at one instant, so that the
// monitor is silent. In each of these a/1 is granted the lock in 0..1 at first:
//
//   - A busy answer without a reason: it is released in 2..3, and b/1 is answered busy
//     in 4..5, though there is nobody to wait for.
//   - A read, or not_held: in 2..3 somebody sees a free lock, or a/1 is told that it
//     does not hold it.
//   - A lease: it lasts 10, b/1 is granted the lock in 11..12, and the release of a/1
//     is answered released in 13..14. The hold is clipped where its lease may end at
//     the earliest, and nobody holds for sure when b/1 enters.
//   - Something forced, or lost: it is forced in 2..3, and the release of a/1 is
//     answered released in 4..5.
//   - An unknown outcome: its release in 2.. is of unknown outcome, b/1 is granted the
//     lock in 4..5, and the next release of a/1 is answered released.
//   - Tokens: it has token 2 and is released, and b/1 is granted token 1.
//   - Arrivals: b/1 arrives at 2, c/1 at 3, a/1 releases in 4..5, and c/1 is granted the
//     lock before b/1.

import (
	"cmp"
	"slices"
	"sort"

	"lockstep/model"
)

// conflict is a pair of sure holds at one instant.
type conflict struct {
	earlier, later *Op   // in order of their returns
	until          int64 // the hold of earlier is sure until then
}

func (c *conflict) overlap() *Overlap {
	return &Overlap{Later: *c.later, Holder: c.earlier.owner(), FromNs: c.earlier.ret(), UntilNs: c.until}
}

// sureHold is a time in which an owner certainly holds the lock.
type sureHold struct {
	op       *Op // the anchor
	owner    string
	from, to int64
	last     int64 // plain holds: the return of the release that ended it
}

// monitor looks for two sure holds at one instant. If it finds none and exact is true, the history
// is linearizable; if it finds some and exact is true, everything before is right.
func (h *history) monitor() (c *conflict, exact bool) {
	if c, exact = h.plainMonitor(); c != nil || exact {
		return c, exact
	}
	return h.sureMonitor(), false
}

// plainMonitor is monitor for a history of plain holds and busy answers. It finds nothing in others.
func (h *history) plainMonitor() (c *conflict, exact bool) {
	holds, busy, ok := h.plainHolds()
	if !ok {
		return nil, false
	}
	if c = overlap(holds); c != nil {
		return c, len(busy) == 0 // a busy answer before may be the first wrong one
	}
	return nil, allRefused(holds, busy)
}

// sureMonitor is monitor for any history. It is never exact.
func (h *history) sureMonitor() *conflict { return overlap(h.sureHolds()) }

// overlap returns the conflict whose later hold starts first, nil if there is
// none.
func overlap(holds []sureHold) *conflict {
	slices.SortStableFunc(holds, func(a, b sureHold) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	// The hold that lasts longest so far, and the one of another owner.
	var first, second *sureHold
	for i := range holds {
		next := &holds[i]
		rival := first
		if rival != nil && rival.owner == next.owner {
			rival = second
		}
		if rival != nil && next.from < rival.to {
			return &conflict{earlier: rival.op, later: next.op, until: rival.to}
		}
		switch {
		case first == nil || first.owner == next.owner:
			if first == nil || next.to > first.to {
				first = next
			}
		case next.to > first.to:
			first, second = next, first
		case second == nil || next.to > second.to:
			second = next
		}
	}
	return nil
}

// allRefused reports whether, for each acquire that was answered busy, another owner may have held
// the lock during the call. The holds are sorted and do not overlap.
func allRefused(holds []sureHold, busy []*Op) bool {
	ends := func(i int) int64 {
		if i+1 < len(holds) {
			return min(holds[i].last, holds[i+1].from)
		}
		return holds[i].last
	}
	begins := func(i int) int64 {
		if i > 0 {
			return max(holds[i].op.CallNs, holds[i-1].to)
		}
		return holds[i].op.CallNs
	}
	for _, op := range busy {
		refused := false
		first := sort.Search(len(holds), func(i int) bool { return ends(i) >= op.CallNs })
		for i := first; i < len(holds) && begins(i) <= op.ret() && !refused; i++ {
			refused = holds[i].owner != op.owner()
		}
		if !refused {
			return false
		}
	}
	return true
}

// plainHolds returns the definite holds and the busy answers of a history. ok is false if the
// history has anything else.
func (h *history) plainHolds() (holds []sureHold, busy []*Op, ok bool) {
	type thread struct {
		levels int
		hold   int // index of its last hold
		last   *Op
	}
	threads := map[string]*thread{}
	for _, op := range h.ops {
		if op.Outcome == model.AnswerFailed {
			continue
		}
		if op.open() {
			return nil, nil, false
		}
		t := threads[op.owner()]
		if t == nil {
			t = &thread{}
			threads[op.owner()] = t
		}
		refused := op.Outcome == model.AnswerBusy
		if t.last != nil && (op.CallNs < t.last.ret() || op.CallNs == t.last.ret() && (refused || t.last.Outcome == model.AnswerBusy)) {
			return nil, nil, false
		}
		t.last = op
		switch {
		case op.LeaseMs != nil || op.Watchdog || op.ExpireNs != nil || h.spec.Fair() && op.ArrivedNs != nil || h.spec.Fenced() && op.Token != nil:
			return nil, nil, false
		case op.Op == OpAcquire && op.Outcome == model.AnswerGranted:
			if t.levels++; t.levels == 1 {
				t.hold = len(holds)
				holds = append(holds, sureHold{op, op.owner(), op.ret(), forever, forever})
			}
		case op.Op == OpRelease && op.Outcome == model.AnswerStillHeld && t.levels > 1:
			t.levels--
		case op.Op == OpRelease && op.Outcome == model.AnswerReleased && t.levels == 1:
			t.levels = 0
			holds[t.hold].to, holds[t.hold].last = op.CallNs, op.ret()
		case refused && !h.spec.Fair():
			busy = append(busy, op)
		default:
			return nil, nil, false
		}
	}
	return holds, busy, true
}

// sureHolds returns for every anchor the time in which its owner certainly holds the lock.
func (h *history) sureHolds() []sureHold {
	type thread struct {
		anchors []*Op
		enders  bounds // releases
		leases  bounds
	}
	threads := map[string]*thread{}
	var order []string
	var anybody bounds // what ends everybody's hold
	for _, op := range h.ops {
		if op.Outcome == model.AnswerFailed {
			continue
		}
		if op.Op == OpLost || op.Op == OpForceRelease && op.Outcome != model.AnswerNotHeld {
			anybody = append(anybody, bound{ret: op.ret(), at: op.CallNs})
			continue
		}
		t := threads[op.owner()]
		if t == nil {
			t = &thread{}
			threads[op.owner()] = t
			order = append(order, op.owner())
		}
		switch {
		case op.open():
		case op.Op == OpAcquire && op.Outcome == model.AnswerGranted,
			op.Op == OpRenew && op.Outcome == model.AnswerRenewed:
			t.anchors = append(t.anchors, op)
		}
		if op.Op == OpRelease && (op.Outcome == model.AnswerReleased || op.Outcome == model.AnswerUnknown) {
			t.enders = append(t.enders, bound{ret: op.ret(), at: op.CallNs})
		}
		if lo, _, ok := h.window(op); ok {
			t.leases = append(t.leases, bound{ret: op.ret(), at: lo})
		}
	}

	var holds []sureHold
	anybody.sort()
	for _, owner := range order {
		t := threads[owner]
		t.enders.sort()
		t.leases.sort()
		var last *Op  // the anchor before this one
		lastFrom := 0 // the index of the first of its enders that counts
		for _, op := range t.anchors {
			others := func(op *Op) int64 {
				return min(anybody.least(anybody.since(op.CallNs)), t.leases.least(t.leases.since(op.CallNs)))
			}
			from := t.enders.since(op.CallNs)
			// The exception of the proof: the release just before.
			if from < len(t.enders) && op.Op == OpAcquire && last != nil {
				r := t.enders[from]
				alone := from+1 == len(t.enders) || t.enders[from+1].ret > op.CallNs
				if r.ret == op.CallNs && alone && lastFrom == from && last.ret() < op.CallNs &&
					min(others(last), t.enders.least(from+1)) > op.CallNs {
					from++
				}
			}
			to := min(others(op), t.enders.least(from))
			if to >= op.ret() {
				holds = append(holds, sureHold{op: op, owner: owner, from: op.ret(), to: to})
			}
			last, lastFrom = op, from
		}
	}
	return holds
}

// A bound is the instant before which an operation cannot have ended a hold. It applies to each
// owner that acquired before the operation returned.
type bound struct {
	ret, at int64
	least   int64 // of at, from here on
}

type bounds []bound

// sort puts the bounds in order of return and computes the least instants.
func (b bounds) sort() {
	slices.SortStableFunc(b, func(x, y bound) int { return cmp.Compare(x.ret, y.ret) })
	least := int64(forever)
	for i := len(b) - 1; i >= 0; i-- {
		least = min(least, b[i].at)
		b[i].least = least
	}
}

// since returns the index of the first bound whose operation returned at an instant or later.
func (b bounds) since(ns int64) int {
	i, _ := slices.BinarySearchFunc(b, ns, func(x bound, ns int64) int { return cmp.Compare(x.ret, ns) })
	return i
}

// least returns the least instant of the bounds from i on.
func (b bounds) least(i int) int64 {
	if i >= len(b) {
		return forever
	}
	return b[i].least
}
