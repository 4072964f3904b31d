package linearizability

import (
	"fmt"
	"strings"

	"lockstep/model"
)

// String returns the operation, its instants and its outcome, as the sentences of a finding begin: a/1
// release (2.104s..2.106s) answered released.
func (o Op) String() string { return o.text(model.Seconds) }

// text is String with the instants as at writes them.
func (o Op) text(at func(int64) string) string {
	var b strings.Builder
	switch {
	case o.Op == OpLost:
		b.WriteString(OpLost)
	case o.Op == OpCrash:
		fmt.Fprintf(&b, "%s %s", o.Process, OpCrash)
	default:
		fmt.Fprintf(&b, "%s %s", o.owner(), o.Op)
	}
	switch {
	case o.Op == OpCrash:
		fmt.Fprintf(&b, " (%s)", at(o.CallNs))
	case o.ReturnNs == nil:
		fmt.Fprintf(&b, " (%s..)", at(o.CallNs))
	default:
		fmt.Fprintf(&b, " (%s..%s)", at(o.CallNs), at(*o.ReturnNs))
	}
	switch {
	case o.environment():
	case o.Outcome == model.AnswerUnknown:
		b.WriteString(" of unknown outcome")
	case o.Op == OpHoldCount && o.Count != nil:
		fmt.Fprintf(&b, " answered %d", *o.Count)
	default:
		fmt.Fprintf(&b, " answered %s", o.Outcome)
	}
	if o.Outcome == model.AnswerGranted && o.Token != nil {
		fmt.Fprintf(&b, " with token %d", *o.Token)
	}
	return b.String()
}

// why names the operation that no order can place, and the state of the lock that refused
// it. The state is that of the longest order that was found.
func (s *search) why(e *entry) string {
	at := s.history.opt.at()
	refusal := s.history.spec.Refusal(s.best.state, e.in)
	if refusal == "" {
		// The state would allow it, but every order in which it was placed here
		// was seen before and came no farther.
		refusal = "no order of the operations before it allows that; in the one that came farthest the lock was " + s.best.state.String()
	}
	if e.in.Do == model.DoExpire {
		return fmt.Sprintf("the lease of %s had to end by %s, but %s", e.op.text(at), at(e.ret), refusal)
	}
	return fmt.Sprintf("%s, but %s", e.op.text(at), refusal)
}

func (s *search) whyUndecided() string {
	limit := "the step limit"
	if s.steps < s.history.opt.StepLimit {
		limit = "the memory limit"
	}
	return fmt.Sprintf("the search met %s after %d steps, neither with an order of all operations nor out of orders", limit, s.steps)
}

// why says which two holds the monitor found at one instant.
func (c *conflict) why(at func(int64) string) string {
	until := "for good"
	if c.until != forever {
		until = "to " + at(c.until) + " at the earliest"
	}
	return fmt.Sprintf("%s, but %s held the lock from %s at the latest %s",
		c.later.text(at), c.earlier.owner(), at(c.earlier.ret()), until)
}
