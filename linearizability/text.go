package linearizability

import (
	"fmt"
	"strings"

	"lockstep/model"
)

// String writes the operation with its times and its answer: a/1 release (2.104s..2.106s) answered
// released.
func (o Op) String() string { return o.Text(model.Seconds) }

// Text is String, but at writes the instants.
func (o Op) Text(at func(int64) string) string {
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
