package explore

import (
	"cmp"
	"slices"
	"strings"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/sim"
)

// DefectOf names the known defect that a finding is; "" when it is none.
func DefectOf(h *sim.Host, v scenarios.Verdict, f linearizability.Finding) string {
	return newNamer(h, v).defect(f)
}

// Cause is what a failure is known to come of: a bug of a defect of the release, a
// limit of the circumstances that excuse it. Of a bug without a name it is neither.
type Cause struct {
	Defect string `json:"defect,omitempty"`
	Excuse string `json:"excuse,omitempty"`
}

func (c Cause) known() bool { return c != Cause{} }

// namer says what the findings of one run come of.
type namer struct {
	host  *sim.Host
	of    scenarios.Verdict
	trace *trace // nil until it is asked for
	// replays are the runs without what excuses, by what that is; named is what the
	// findings of a judge there come of, by both. Each is asked for once: a replay has
	// replays of its own.
	replays map[string]*namer
	named   map[[2]string]string
}

func newNamer(h *sim.Host, v scenarios.Verdict) *namer {
	return &namer{host: h, of: v, replays: map[string]*namer{}, named: map[[2]string]string{}}
}

func (n *namer) clue(f linearizability.Finding) clue {
	if n.trace == nil {
		n.trace = traceOf(n.of.Played.Record)
	}
	return newClue(n.of, n.trace, f)
}

func (n *namer) cause(f linearizability.Finding) Cause {
	if f.Class == linearizability.ClassBug {
		return Cause{Defect: n.defect(f)}
	}
	var words []string
	for _, e := range f.Excuses {
		words = append(words, string(e.Circumstance))
	}
	slices.Sort(words)
	return Cause{Excuse: strings.Join(slices.Compact(words), ", ")}
}

// defect names the known defect that a finding is. One that was convicted by a
// replay is what all findings of that judge in the replay are.
func (n *namer) defect(f linearizability.Finding) string {
	if f.Convicted {
		without := scenarios.ExcuseKey(f.Excuses)
		key := [2]string{without, f.Judge}
		name, ok := n.named[key]
		if !ok {
			if n.replays[without] == nil {
				n.replays[without] = newNamer(n.host, n.of.Without(n.host, f))
			}
			name = n.replays[without].defectOf(f.Judge)
			n.named[key] = name
		}
		return name
	}
	c := n.clue(f)
	switch {
	case f.Judge == model.JudgeWorkload && f.Form == model.FormWaitedToTheEnd:
		return n.defectOfWait(c)
	case f.Judge == model.JudgeWorkload:
		return cmp.Or(n.defectOfOverlap(f), c.name())
	}
	if f.Judge == model.JudgeLinearizable && c.unlockedNothing() {
		if rest := c.hidden(); len(rest) > 0 {
			return rest[0].name()
		}
	}
	return cmp.Or(c.name(), c.whileHeld().name())
}

// defectOf names the known defect that all bugs of a judge are: the last one's, ""
// when one of them has none.
func (n *namer) defectOf(judge string) (name string) {
	for _, f := range n.of.Findings {
		if f.Judge == judge && f.Class == linearizability.ClassBug {
			if name = n.defect(f); name == "" {
				return ""
			}
		}
	}
	return name
}

// name is that of the first known defect that fits.
func (c clue) name() string {
	for _, d := range knownDefects {
		if d.locks(c.of.Lock) && slices.Contains(d.judges, c.f.Judge) && d.is(c) {
			return d.name
		}
	}
	return ""
}

// defectOfWait names what a thread waits for, which is why it did not work: that
// of its waiting for nobody.
func (n *namer) defectOfWait(c clue) string {
	for _, g := range n.of.Findings {
		if g.Judge == model.JudgeLiveness && g.Class == linearizability.ClassBug && n.clue(g).who == c.who {
			return n.defect(g)
		}
	}
	return ""
}

// defectOfOverlap names what let two threads work at one time: that of the
// last grant of one of them while another believed to hold.
func (n *namer) defectOfOverlap(f linearizability.Finding) string {
	name := ""
	for _, g := range n.of.Findings {
		if g.Judge != model.JudgeMutualExclusion || g.Class != linearizability.ClassBug || g.AtNs > f.AtNs {
			continue
		}
		if granted := g.Ops[1]; slices.Contains(f.Threads, model.ThreadName(granted.Process, granted.Thread)) {
			name = n.defect(g)
		}
	}
	if name != "" {
		return name
	}
	// Where the two believed to hold it already for another reason, it is why the
	// hold of the one ended: to the judge of leases a bug, or what it could not expect
	// to be renewed.
	if !f.Loss.Expired() {
		return ""
	}
	return n.clue(linearizability.Finding{Judge: model.JudgeLease, Verdict: linearizability.Broken, Class: linearizability.ClassBug, AtNs: f.Loss.AtNs,
		Facts: model.Facts{Form: model.FormUnrenewed, Lock: f.Loss.Lock, Thread: f.Loss.Thread}}).name()
}
