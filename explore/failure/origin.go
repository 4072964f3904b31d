package failure

import (
	"slices"
	"strings"

	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Origin says where a failure comes from. At most one field is set. None is set for a bug
// that has no name and is about no lock.
type Origin struct {
	Defect string `json:"defect,omitempty"` // the ID of the known defect
	Excuse string `json:"excuse,omitempty"` // the circumstances that excuse a limit
	Parted string `json:"parted,omitempty"` // the parting of server and clients, for a bug without a name; or what is left, see Left
}

// Known reports whether the origin says anything.
func (o Origin) Known() bool { return o != Origin{} }

// What a run leaves behind, in the place of a parting. One thing is left after many schedules, whatever the call and the
// faults were.
const (
	leftKey       = "left-key"
	leftChannel   = "left-channel"
	leftGoroutine = "left-goroutine"
	leftElse      = "left-over"
)

// Left reports whether the failure is that something is left when everybody has gone.
func (o Origin) Left() bool {
	return slices.Contains([]string{leftKey, leftChannel, leftGoroutine, leftElse}, o.Parted)
}

// Causes returns the words for the cause in the name of a folder, of a bug that is no known defect: the kinds of partings and of
// faults, and what is left. A fault of messages has further words, which name the messages.
func Causes() []string {
	out := []string{leftKey, leftChannel, leftGoroutine, leftElse, noFault, "interrupt", "wall-clocks-apart"}
	for _, k := range judges.PartingKinds {
		out = append(out, string(k))
	}
	faults := []model.FaultSpec{
		{Kind: model.FaultCrash}, {Kind: model.FaultPause}, {Kind: model.FaultPartition}, {Kind: model.FaultWallClock},
		{Kind: model.FaultKey, KeyDo: "delete"}, {Kind: model.FaultKey, KeyDo: "expire"}, {Kind: model.FaultServer, Server: model.ServerRestart, KeepData: true},
	}
	for _, s := range []model.ServerFault{model.ServerRestart, model.ServerFailover, model.ServerFlushScripts, model.ServerStall, model.ServerWallClock, model.ServerIsolate, model.ServerMoveSlot} {
		faults = append(faults, model.FaultSpec{Kind: model.FaultServer, Server: s})
	}
	for _, f := range faults {
		out = append(out, fileName(kindOfFault(f)))
	}
	return out
}

// partedBefore returns the kind of the parting before a finding. If a fault parted server
// and clients, it returns the kind of the fault. Of a finding about what is left, it says what that is.
func partedBefore(n *known.Namer, f judges.Finding) string {
	if d, ok := f.Detail.(judges.Leftover); ok {
		switch {
		case d.Key != "":
			return leftKey
		case d.Channel != "":
			return leftChannel
		case d.Goroutine != nil:
			return leftGoroutine
		}
		return leftElse
	}
	p, fault, ok := n.Parting(f)
	switch {
	case !ok:
		return ""
	case p.Kind == judges.PartedByFault:
		return kindOfFault(fault)
	}
	return string(p.Kind)
}

// NewNamer returns a namer of the findings of a run that knows all defects.
func NewNamer(h *sim.Host, v play.Verdict) *known.Namer {
	return known.NewNamer(h, v, known.All)
}

// OriginOf returns the origin of a finding, and the cause of its known defect.
func OriginOf(n *known.Namer, f judges.Finding) (Origin, *known.Cause) {
	if f.Class == judges.ClassBug {
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

// PartingOf describes for people how server and clients parted before a finding. It returns
// "" for a finding of a known defect, for a limit, for a finding about no lock, and if nothing
// parted them.
func PartingOf(n *known.Namer, f judges.Finding) string {
	if f.Class != judges.ClassBug || n.Name(f).ID != "" {
		return ""
	}
	p, _, ok := n.Parting(f)
	if !ok || p.Kind == judges.Agreed {
		return ""
	}
	return sentence.Parting(p)
}
