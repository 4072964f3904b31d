package linearizability

import (
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/trace"
)

// grants are the changes in which the operation's own commands took or entered
// the lock, but those that it gave back itself because no replica had them:
// more than one is a grant too many.
func (r *run) grants(o *trace.Call) []*trace.Change {
	kept, _ := r.keptAndGivenBack(o)
	return kept
}

// givenBack is a grant that the operation gave up itself, because no replica had
// it in time.
type givenBack struct{ grant, undo *trace.Change }

// givenBack are those of an operation.
func (r *run) givenBack(o *trace.Call) []givenBack {
	_, back := r.keptAndGivenBack(o)
	return back
}

func (r *run) keptAndGivenBack(o *trace.Call) (kept []*trace.Change, back []givenBack) {
	for _, c := range o.Changes {
		switch levels := c.Gain(o.Caller); {
		case levels > 0:
			kept = append(kept, c)
		case levels < 0 && c.By.Script == "unlock" && len(kept) > 0:
			last := len(kept) - 1
			back = append(back, givenBack{kept[last], c})
			kept = kept[:last]
		}
	}
	return kept, back
}

// undone are the commands with which an acquire gave back what no replica had.
func undone(o *trace.Call) []*trace.Command {
	var out []*trace.Command
	for _, m := range o.Sent {
		if o.Action.Acquires() && m.Script == "unlock" {
			out = append(out, m)
		}
	}
	return out
}

// grantsKept are the grants of the hold with which the operation came back:
// one that was sent again may have had another before, which ended without the
// caller's knowing, and may be given another when it is over.
func (r *run) grantsKept(o *trace.Call) []*trace.Change {
	all := r.grants(o)
	if o.Outcome != model.Granted {
		return all
	}
	var kept []*trace.Change
	for _, g := range all {
		if g.AtNs > o.ReturnedNs() {
			break
		}
		if g.Started() {
			kept = nil
		}
		kept = append(kept, g)
	}
	return kept
}

// entered is the execution that granted the lock, for locks too whose state
// does not change when it is entered again.
func (r *run) entered(o *trace.Call) *trace.Command {
	if g := r.grantsKept(o); len(g) > 0 {
		return g[0].By
	}
	if o.Outcome != model.Granted {
		return nil
	}
	var last *trace.Command
	for _, m := range o.Sent {
		if m.Executed != nil && m.Script == "acquire" {
			last = m
		}
	}
	return last
}

// refused is when the server gave the error with which the operation ended; ok is
// false where it did not.
func refused(o *trace.Call) (at int64, ok bool) {
	for _, m := range slices.Backward(o.Sent) {
		if m.Executed != nil && m.Script == "acquire" {
			return m.Executed.AtNs, o.Outcome == model.Failed && strings.HasPrefix(m.Executed.Reply, "(error)")
		}
	}
	return 0, false
}
