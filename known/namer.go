package known

import (
	"slices"

	"lockstep/known/defect"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Named holds the ID of a finding's known defect, and its cause in the record. The zero
// value names no defect.
type Named struct {
	ID    string
	Cause *Cause
}

// Namer names the findings of one run.
type Namer struct {
	host    *sim.Host
	defects []Defect
	verdict play.Verdict
	// replays caches the rerun for each set of removed excuses. A replay has replays of its own.
	replays map[string]*Namer
	// names caches the names that all has found, by the index of the finding. Without it, naming the findings of
	// replays of replays takes exponential time.
	names map[int]Named
}

// NewNamer returns a namer of the findings of a run. The first of the defects that fits
// a finding names it.
func NewNamer(h *sim.Host, v play.Verdict, defects []Defect) *Namer {
	return &Namer{host: h, defects: defects, verdict: v, replays: map[string]*Namer{}, names: map[int]Named{}}
}

// Name returns the known defect of a finding of the run. If a replay without its excuses
// convicts the finding, its defect is that of the findings like it in the replay.
func (n *Namer) Name(f judges.Finding) Named {
	if f.Convicted {
		return n.convicted(f)
	}
	c := n.caseOf(f)
	switch {
	case f.Judge == model.JudgeWorkload && f.Form == model.FormWaitedToTheEnd:
		return n.wait(c)
	case f.Judge == model.JudgeWorkload:
		if named := n.overlap(f); named.ID != "" {
			return named
		}
		return n.explain(c)
	}
	if f.Judge == model.JudgeLinearizable {
		if rest := c.Hidden(); len(rest) > 0 {
			return n.explain(rest[0])
		}
	}
	if named := n.explain(c); named.ID != "" {
		return named
	}
	if earlier := c.WhileHeld(); earlier != nil {
		return n.explain(earlier)
	}
	return Named{}
}

func (n *Namer) caseOf(f judges.Finding) *defect.Case {
	return defect.NewCase(n.verdict, n.verdict.Played.Trace, f)
}

// explain returns the first known defect that fits the case.
func (n *Namer) explain(c *defect.Case) Named {
	for i := range n.defects {
		if cause := n.defects[i].Explains(c); cause != nil {
			return Named{n.defects[i].ID, cause}
		}
	}
	return Named{}
}

func (n *Namer) convicted(f judges.Finding) Named {
	named := n.replay(f).all(f)
	if named.Cause != nil {
		cause := *named.Cause
		cause.InReplay = true
		named.Cause = &cause
	}
	return named
}

// replay returns a namer of the findings of the replay that convicts a finding.
func (n *Namer) replay(f judges.Finding) *Namer {
	excuses := play.ExcuseKey(f.Excuses)
	if n.replays[excuses] == nil {
		n.replays[excuses] = NewNamer(n.host, n.verdict.Without(n.host, f), n.defects)
	}
	return n.replays[excuses]
}

// Parting returns the event that made server and clients disagree before a finding, and the fault,
// if one caused it. It looks at the run itself, or at the replay that convicts the finding. It
// reports false for a finding about no lock.
func (n *Namer) Parting(f judges.Finding) (p judges.Parting, fault model.FaultSpec, ok bool) {
	if f.Convicted {
		again := n.replay(f)
		i := slices.IndexFunc(again.verdict.Findings, func(g judges.Finding) bool {
			return g.Class == judges.ClassBug && g.Alike(f)
		})
		if i < 0 {
			return p, fault, false
		}
		return again.Parting(again.verdict.Findings[i])
	}
	if n.verdict.Played.Trace == nil {
		return p, fault, false
	}
	p, ok = judges.PartingOf(n.verdict.Played.Trace, f)
	return p, n.verdict.Played.Record.Params.Fault(p.Fault), ok
}

// all names all bugs like a finding. It returns the name of the last one, or no name if any
// of them has none.
func (n *Namer) all(f judges.Finding) (named Named) {
	for i, g := range n.verdict.Findings {
		if g.Class != judges.ClassBug || !g.Alike(f) {
			continue
		}
		cached, ok := n.names[i]
		if !ok {
			cached = n.Name(g)
			n.names[i] = cached
		}
		if named = cached; named.ID == "" {
			return Named{}
		}
	}
	return named
}

// wait names the defect that kept a thread from its work while it waited for the lock.
// It is that of the judge of liveness for the same thread.
func (n *Namer) wait(c *defect.Case) Named {
	for _, g := range n.verdict.Findings {
		if g.Judge == model.JudgeLiveness && g.Class == judges.ClassBug && g.Thread == c.Who {
			return n.Name(g)
		}
	}
	return Named{}
}

// overlap names the defect that let two threads work at the same time. It is the defect of the
// grant to one of them while another believed to hold the lock. If that grant has no known defect,
// it is the defect that ended the hold of one of them.
func (n *Namer) overlap(f judges.Finding) Named {
	var named Named
	for _, g := range n.verdict.Findings {
		if g.Judge != model.JudgeMutualExclusion || g.Class != judges.ClassBug || g.AtNs > f.AtNs {
			continue
		}
		if granted := g.Ops[1]; slices.Contains(f.Threads, model.ThreadName(granted.Process, granted.Thread)) {
			named = n.Name(g)
		}
	}
	if named.ID != "" || !f.Loss.Expired() {
		return named
	}
	return n.explain(n.caseOf(judges.Finding{
		Judge: model.JudgeLease, Verdict: judges.Broken, Class: judges.ClassBug, AtNs: f.Loss.AtNs,
		Facts: model.Facts{Form: model.FormUnrenewed, Lock: f.Loss.Lock, Thread: f.Loss.Thread},
	}))
}
