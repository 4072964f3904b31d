package linearizability

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"

	"lockstep/model"
)

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
