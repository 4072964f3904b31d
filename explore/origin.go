package explore

import (
	"slices"
	"strings"

	"lockstep/known"
	"lockstep/linearizability"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Origin is the known origin of a failure. A bug has the ID of its known defect. A limit has
// the circumstances that excuse it. A bug of no known defect has neither.
type Origin struct {
	Defect string `json:"defect,omitempty"`
	Excuse string `json:"excuse,omitempty"`
}

func (o Origin) known() bool { return o != Origin{} }

// newNamer returns a namer of the findings of a run that knows all defects.
func newNamer(h *sim.Host, v play.Verdict) *known.Namer {
	return known.NewNamer(h, v, known.All)
}

// originOf returns the origin of a finding, and the cause of its known defect.
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

// DefectOf returns the ID of the known defect of a finding, or "" if it has none.
func DefectOf(h *sim.Host, v play.Verdict, f linearizability.Finding) string {
	return newNamer(h, v).Name(f).ID
}
