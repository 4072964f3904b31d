package explore

import (
	"slices"
	"strings"

	"lockstep/known"
	"lockstep/linearizability"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Origin is what a failure is known to come of: a bug of a known defect, by its ID, a
// limit of the circumstances that excuse it. A bug without a name has neither.
type Origin struct {
	Defect string `json:"defect,omitempty"`
	Excuse string `json:"excuse,omitempty"`
}

func (o Origin) known() bool { return o != Origin{} }

// newNamer returns a namer of the findings of a run that knows all defects.
func newNamer(h *sim.Host, v play.Verdict) *known.Namer {
	return known.NewNamer(h, v, known.All)
}

// originOf says what a finding comes of, and the cause that shows a known defect.
func originOf(n *known.Namer, f linearizability.Finding) (Origin, *known.Cause) {
	if f.Class == linearizability.ClassBug {
		named := n.Name(f)
		return Origin{Defect: named.ID}, named.Cause
	}
	var words []string
	for _, e := range f.Excuses {
		words = append(words, string(e.Circumstance))
	}
	slices.Sort(words)
	return Origin{Excuse: strings.Join(slices.Compact(words), ", ")}, nil
}

// DefectOf returns the ID of the known defect that a finding is; "" when it is none.
func DefectOf(h *sim.Host, v play.Verdict, f linearizability.Finding) string {
	return newNamer(h, v).Name(f).ID
}
