package explore

import (
	"slices"
	"strings"

	"lockstep/known"
	"lockstep/linearizability"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Origin is the origin of a failure. A bug comes of the known defect with that ID. A limit
// comes of the circumstances that excuse it. A bug without a name comes of what parted
// server and clients, if it is about a lock.
type Origin struct {
	Defect string `json:"defect,omitempty"`
	Excuse string `json:"excuse,omitempty"`
	Parted string `json:"parted,omitempty"`
}

// agreed is Origin.Parted of a failure before which server and clients agreed.
const agreed = "agreed"

func (o Origin) known() bool { return o != Origin{} }

// covers reports whether a smaller failure of origin other stands for one of this origin.
// Server and clients need not part in the smaller one.
func (o Origin) covers(other Origin) bool {
	return other == o || o.Parted != "" && other.Parted == agreed
}

// partedBefore returns what parted server and clients before a finding.
func partedBefore(n *known.Namer, f linearizability.Finding) string {
	p, fault, ok := n.Parting(f)
	switch {
	case !ok:
		return ""
	case p.Kind == linearizability.Agreed:
		return agreed
	case p.Kind == linearizability.PartedByFault:
		return kindOfFault(fault)
	}
	return string(p.Kind)
}

// newNamer returns a namer of the findings of a run that knows all defects.
func newNamer(h *sim.Host, v play.Verdict) *known.Namer {
	return known.NewNamer(h, v, known.All)
}

// originOf returns the origin of a finding, and the cause of its known defect.
func originOf(n *known.Namer, f linearizability.Finding) (Origin, *known.Cause) {
	if f.Class == linearizability.ClassBug {
		named := n.Name(f)
		if named.ID == "" {
			return Origin{Parted: partedBefore(n, f)}, nil
		}
		return Origin{Defect: named.ID}, named.Cause
	}
	var words []string
	for _, e := range f.Excuses {
		words = append(words, string(e.Circumstance))
	}
	slices.Sort(words)
	return Origin{Excuse: strings.Join(slices.Compact(words), ", ")}, nil
}

// CauseOf says for people what parted server and clients before a finding; "" for a
// finding of a known defect, a limit, and a finding about no lock.
func CauseOf(h *sim.Host, v play.Verdict, f linearizability.Finding) string {
	return causeOf(newNamer(h, v), f)
}

func causeOf(n *known.Namer, f linearizability.Finding) string {
	if f.Class != linearizability.ClassBug || n.Name(f).ID != "" {
		return ""
	}
	p, _, ok := n.Parting(f)
	if !ok {
		return ""
	}
	return p.String()
}

// DefectOf returns the ID of the known defect of a finding; "" if it has none.
func DefectOf(h *sim.Host, v play.Verdict, f linearizability.Finding) string {
	return newNamer(h, v).Name(f).ID
}
