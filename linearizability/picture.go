package linearizability

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"

	"github.com/anishathalye/porcupine"

	"lockstep/model"
	"lockstep/model/trace"
)

// pictureSteps limits the search for a picture, which looks for the longest
// order of every operation and not only for one that fails.
const pictureSteps = 200_000

// pictureOps is the longest history of which a picture can be read.
const pictureOps = 300

// Picture writes porcupine's own picture of the settled history of a lock, an
// HTML page: which operations its search could place in which order, with the
// faults beside them. Its clients are the threads and then, in the same
// order, their leases that end. The error says why there is no picture.
func Picture(t *trace.Run, lock string, w io.Writer) error {
	r := &run{t}
	spec, _ := model.SpecNamed("reentrant")
	if t.Record.Params.Fair {
		spec, _ = model.SpecNamed("fair")
	}
	if r.resurrected(lock) {
		return fmt.Errorf("a failover brought a hold of %s back, and no history can say so", lock)
	}
	ops := r.history(lock, true)
	h := history{lock: lock, spec: spec, opt: Options{StepLimit: pictureSteps, LeaseGrainNs: millisecond}, free: spec.Init()}
	for i := range ops {
		if ops[i].Op != OpCrash {
			h.ops = append(h.ops, &ops[i])
		}
	}
	var notes []porcupine.Annotation
	for _, f := range r.Faults {
		notes = append(notes, porcupine.Annotation{Tag: cmp.Or(f.Process, "server"), Start: f.FromNs, End: max(f.ToNs, f.FromNs), Description: f.Text, Details: f.Text})
	}
	for _, o := range r.CallsOn(lock) {
		for _, m := range o.Sent {
			for _, e := range m.Hits {
				notes = append(notes, porcupine.Annotation{Tag: e.Process, Start: e.AtNs, Description: e.Text, Details: e.Text})
			}
		}
	}
	return h.picture(notes, w)
}

// PictureOf is Picture for a history from elsewhere that is broken: of what was
// done with the lock from when it was last surely free to the return of res.First,
// with the notes beside it.
func PictureOf(res LockResult, notes []Note, w io.Writer) error {
	if res.broken == nil {
		return fmt.Errorf("the history of %s is %s, and only of a broken one there is a picture", res.Lock, res.Verdict)
	}
	h := *res.broken
	h.opt.StepLimit = pictureSteps
	until := res.First.ret()
	h.ops = slices.DeleteFunc(slices.Clone(h.ops), func(op *Op) bool { return op.CallNs > until })
	var beside []porcupine.Annotation
	for _, n := range notes {
		if h.ops[0].CallNs <= n.AtNs && n.AtNs <= until {
			beside = append(beside, porcupine.Annotation{Tag: "nemesis", Start: n.AtNs, Description: n.Text, Details: n.Text})
		}
	}
	return h.picture(beside, w)
}

func (h *history) picture(notes []porcupine.Annotation, w io.Writer) error {
	switch {
	case len(h.ops) == 0:
		return fmt.Errorf("nothing was done with %s", h.lock)
	case len(h.ops) > pictureOps:
		return fmt.Errorf("its history has %d operations, more than the %d of which a picture can be read", len(h.ops), pictureOps)
	}
	s := h.newSearch(forever)
	client := map[string]int{}
	for _, e := range s.entries {
		if e.own && client[e.in.Owner] == 0 {
			client[e.in.Owner] = len(client) + 1
		}
	}
	calls := make([]porcupine.Operation, len(s.entries))
	for i, e := range s.entries {
		id := max(client[e.in.Owner]-1, 0)
		if !e.own {
			id += len(client)
		}
		calls[i] = porcupine.Operation{ClientId: id, Input: e, Call: e.call, Return: e.ret}
	}
	m := s.model()
	m.DescribeOperation = func(in, _ any) string { return in.(*entry).describe() }
	// The page takes a state for markup.
	m.DescribeState = func(st any) string { return html.EscapeString(st.(*node).state.String()) }
	_, info := porcupine.CheckOperationsVerbose(m, calls, 0)
	if s.stopped {
		return fmt.Errorf("the search for every order of %s met its limit of %d steps", h.lock, pictureSteps)
	}
	// It walks along what it found once more.
	s.steps, s.made = 0, 0
	slices.SortStableFunc(notes, func(a, b porcupine.Annotation) int { return cmp.Compare(a.Start, b.Start) })
	info.AddAnnotations(notes)
	return porcupine.Visualize(m, info, w)
}

// describe names an entry in a picture.
func (e *entry) describe() string {
	switch {
	case e.own:
		return e.op.String()
	case e.in.Do == model.DoExpire:
		return "the lease of " + e.op.String() + " ends"
	case e.in.Do == model.DoEnd:
		return "the end"
	}
	return fmt.Sprintf("%v of %s", e.in.Do, e.op.owner())
}
