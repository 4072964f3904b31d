package linearizability

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"

	"github.com/anishathalye/porcupine"

	"lockstep/internal/foreign"
	"lockstep/model"
)

// pictureSteps limits the search for a picture, which looks for the longest order with each
// operation, and not only for the operation that fails.
const pictureSteps = 200_000

// pictureOps is the length of the longest history whose picture is legible.
const pictureOps = 300

// Picture writes porcupine's own picture of the history of one lock, an HTML page: It shows which
// operations the search could place in which order, with the notes beside them. The clients of the
// picture are the threads and then, in the same order, the ends of their leases. The operations are
// in order of call. The picture has a step limit of its own, in place of that of opt. The error
// says why there is no picture. Picture panics when opt.Spec is no specification.
func Picture(lock string, ops []Op, opt Options, notes []Note, w io.Writer) error {
	c := NewChecker(opt)
	h := &history{lock: lock, spec: c.spec, opt: c.opt, crashes: c.crashes, free: c.spec.Init()}
	for i := range ops {
		if op := &ops[i]; op.Op == OpCrash {
			h.crashes[op.Process] = append(h.crashes[op.Process], op.CallNs)
		} else {
			h.ops = append(h.ops, op)
		}
	}
	return h.picture(notes, w)
}

// PictureOf is Picture for a broken history from elsewhere. It shows the operations on the
// lock from the instant at which it was last surely free to the return of res.First, with
// the notes beside them.
func PictureOf(res LockResult, notes []Note, w io.Writer) error {
	if res.broken == nil {
		return fmt.Errorf("the history of %s is %s, and only of a broken one there is a picture", res.Lock, res.Verdict)
	}
	h := *res.broken
	until := res.First.ret()
	h.ops = slices.DeleteFunc(slices.Clone(h.ops), func(op *Op) bool { return op.CallNs > until })
	var beside []Note
	for _, n := range notes {
		if h.ops[0].CallNs <= n.AtNs && n.AtNs <= until {
			beside = append(beside, n)
		}
	}
	return h.picture(beside, w)
}

func (h *history) picture(notes []Note, w io.Writer) error {
	switch {
	case len(h.ops) == 0:
		return fmt.Errorf("nothing was done with %s", h.lock)
	case len(h.ops) > pictureOps:
		return fmt.Errorf("its history has %d operations, more than the %d of which a picture can be read", len(h.ops), pictureOps)
	}
	h.opt.StepLimit = pictureSteps
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
	// The page reads the text of a state as markup.
	m.DescribeState = func(st any) string { return html.EscapeString(st.(*node).state.String()) }
	_, info := porcupine.CheckOperationsVerbose(m, calls, 0)
	if s.stopped {
		return fmt.Errorf("the search for every order of %s met its limit of %d steps", h.lock, pictureSteps)
	}
	// Porcupine plays the orders that it found once more.
	s.steps, s.made = 0, 0
	for _, orders := range info.PartialLinearizations() {
		// Porcupine takes the orders from a map. It draws them by length, and orders of the same
		// length in the random order of the map.
		slices.SortFunc(orders, func(a, b []int) int { return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b)) })
	}
	info.AddAnnotations(annotations(notes))
	var page bytes.Buffer
	if err := porcupine.Visualize(m, info, &page); err != nil {
		return err
	}
	return foreign.HTML(w, page.Bytes())
}

// annotations returns notes in the form for porcupine, in the order in which they begin.
func annotations(notes []Note) []porcupine.Annotation {
	var out []porcupine.Annotation
	for _, n := range notes {
		out = append(out, porcupine.Annotation{Tag: n.Of, Start: n.AtNs, End: n.ToNs, Description: n.Text, Details: n.Text})
	}
	slices.SortStableFunc(out, func(a, b porcupine.Annotation) int { return cmp.Compare(a.Start, b.Start) })
	return out
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
