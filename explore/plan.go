package explore

import (
	"cmp"
	"fmt"
	"slices"

	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Plan is what a campaign is. Its runs, groups and counts depend on nothing
// else: not on how many processes or machines shared it, nor on how often it
// was interrupted.
type Plan struct {
	World    int     `json:"world"` // sim.Version
	Lock     string  `json:"lock"`
	Faults   []Class `json:"faults"`
	Profile  Profile `json:"profile"`
	Strategy string  `json:"strategy"`
	Depth    int     `json:"depth,omitempty"`
	Seed     uint64  `json:"seed"`
	Runs     int     `json:"runs"` // of StrategyExhaustive: the most that are begun; 0: all
	// Steps ends the campaign with the run that brings the sum of all runs' steps
	// to it; 0: no such budget.
	Steps int64 `json:"steps,omitempty"`
	// Case is the scenario of StrategyExhaustive, "" for SmallCase.
	Case string `json:"case,omitempty"`
}

// The strategies. The exhaustive one plays all schedules of one small scenario
// in place of runs that are drawn: see Cover.
const (
	StrategyRandom     = "random"
	StrategyPCT        = "pct"
	StrategyExhaustive = "exhaustive"
)

// FamilyRuns is how many runs make a family: they are played in order, and
// each may be a variation of an earlier one. Families know nothing of one
// another, so that any process may play any of them, and plays it whole.
const FamilyRuns = 100

// repeatEvery is the number of runs of which one is played twice, to check that it repeats.
const repeatEvery = 200

// families is the number of families.
func (p Plan) families() int { return (p.Runs + FamilyRuns - 1) / FamilyRuns }

// family gives the first and the last-plus-one run of a family.
func (p Plan) family(f int) (from, to int) {
	return f * FamilyRuns, min((f+1)*FamilyRuns, p.Runs)
}

// seedOf is the seed of a run: it draws the workload, the faults and the
// schedule.
func (p Plan) seedOf(index int) uint64 {
	return sim.NewSeeded(p.Seed).Choose(fmt.Sprintf("explore/run/%d", index), 1<<48)
}

// firstEstimate is how many decisions the first run of a family is taken to
// have by PCT; the ones after it are taken to have as many as the longest before.
const firstEstimate = 200

// chooser draws the schedule of a run.
func (p Plan) chooser(seed uint64, estimate int) sim.Chooser {
	if p.Strategy == StrategyPCT {
		return NewPCT(seed, p.Depth, estimate)
	}
	return sim.NewSeeded(seed)
}

// Run is what one run came to.
type Run struct {
	Index int    `json:"run"`
	Seed  uint64 `json:"seed"`
	// From is the run that this one is a variation of; -1 for none.
	From  int       `json:"from"`
	Word  play.Word `json:"verdict,omitempty"`
	Why   string    `json:"why,omitempty"` // of an undecided run
	Steps int64     `json:"steps,omitempty"`
	SimNs int64     `json:"sim_ns,omitempty"`
	// States are those that no earlier run of the family went through.
	States   []uint64 `json:"states,omitempty"`
	Failures []Failed `json:"failures,omitempty"`
	// Text is the scenario, where it may be needed again: for variations of a run
	// with new states, and for failures that may stand for their group.
	Text string `json:"scenario,omitempty"`
	// Estimate, Actors and Decisions are those of PCT.
	Estimate  int `json:"estimate,omitempty"`
	Actors    int `json:"actors,omitempty"`
	Decisions int `json:"decisions,omitempty"`
	// Died: the process that played it ended with it. Why says how.
	Died bool `json:"died,omitempty"`
}

// Failed is one judge that a run broke, for one cause.
type Failed struct {
	Group
	Origin
	Why  string `json:"why"`
	Size int    `json:"size_events"`
}

// task is one run that is to be played.
type task struct {
	index int
	from  int
	base  string // the scenario of from
	// estimate is how many decisions PCT is to expect.
	estimate int
}

// next says what the next run of a family is, given those before it: one drawn
// anew, or a variation of one that went through new states. One that was too long to be
// judged is not varied: it would be again.
func (p Plan) next(index int, before []Run) task {
	t := task{index: index, from: -1}
	if p.Strategy == StrategyPCT {
		t.estimate = firstEstimate
		for _, r := range before {
			t.estimate = max(t.estimate, r.Decisions)
		}
	}
	var kept []Run
	for _, r := range before {
		if len(r.States) > 0 && r.Text != "" && r.Word != play.VerdictUndecided {
			kept = append(kept, r)
		}
	}
	c := sim.NewSeeded(p.seedOf(index))
	if len(kept) == 0 || c.Choose("explore/vary", 2) == 0 {
		return t
	}
	base := kept[c.Choose("explore/base", uint64(len(kept)))]
	t.from, t.base = base.Index, base.Text
	return t
}

// play plays a run of a family and judges it; States are all that it went through,
// and Text is the scenario.
func (p Plan) play(h *sim.Host, l *subject.Subject, t task, f *family) (Run, error) {
	r := Run{Index: t.index, Seed: p.seedOf(t.index), From: t.from, Estimate: t.estimate}
	if t.from < 0 {
		r.Text = Draw(sim.NewSeeded(r.Seed), l, p.Profile, p.Faults)
	} else {
		r.Text = Vary(sim.NewSeeded(r.Seed), t.base, l, p.Profile, p.Faults)
	}
	chooser := p.chooser(r.Seed, r.Estimate)
	v, err := p.judge(h, l, r, chooser)
	if err != nil {
		return r, err
	}
	if pct, ok := chooser.(*PCT); ok {
		r.Actors, r.Decisions = pct.Actors(), pct.Decisions()
	}
	r.Word, r.Why, r.Steps, r.SimNs = v.Word, v.Why, int64(v.Played.Steps), v.Played.SimNs
	r.States = States(v.Played.Trace)
	if t.index%repeatEvery == 0 && r.Word != play.VerdictNondeterministic {
		if again := play.Play(h, v.Scenario, l, p.chooser(r.Seed, r.Estimate)).Record.Digest(); again != v.Digest {
			r.Word = play.VerdictNondeterministic
			r.Why = fmt.Sprintf("played twice, it gave different records: %.12s and %.12s", v.Digest, again)
			if where := play.Explain(h, v.Scenario, l, func() sim.Chooser { return p.chooser(r.Seed, r.Estimate) }); where != "" {
				r.Why += "; " + where
			}
		}
	}
	fewer := map[string]play.Verdict{} // the run, played with faults left out
	for _, x := range sightings(h, v) {
		// Which faults it needs takes runs to find out. Where the cause is known, that
		// is asked of the smallest failure of all, when it has been made smaller.
		if !x.known() {
			x.Group, _ = needs(h, Failure{Verdict: v, Finding: x.finding, Seeded: p.Strategy == StrategyRandom}, fewer)
		}
		r.Failures = append(r.Failures, x.Failed)
	}
	return r, nil
}

// judge plays the scenario of a run and judges it.
func (p Plan) judge(h *sim.Host, l *subject.Subject, r Run, chooser sim.Chooser) (play.Verdict, error) {
	sc, err := scenarios.Parse(fmt.Sprintf("run-%d.yaml", r.Index), []byte(r.Text), anyLock)
	if err != nil {
		return play.Verdict{}, fmt.Errorf("run %d (seed %d) drew a scenario that does not load: %w\n%s", r.Index, r.Seed, err, r.Text)
	}
	played := play.Play(h, sc, l, chooser)
	played.Strategy = p.Strategy
	return play.Judge(h, sc, l, r.Seed, played), nil
}

// family is what is known of a family while it is played.
type family struct {
	runs   []Run
	states map[uint64]bool
	best   map[string]int // by group: the smallest failure so far
}

func newFamily() *family { return &family{states: map[uint64]bool{}, best: map[string]int{}} }

// add takes the next run into the family, and gives what is to be kept of it.
func (f *family) add(r Run) Run {
	keep := false
	r.States = slices.DeleteFunc(r.States, func(s uint64) bool { return f.states[s] })
	for _, s := range r.States {
		f.states[s] = true
		keep = true
	}
	for _, failed := range r.Failures {
		if f.smallest(failed) {
			f.best[failed.key()] = failed.Size
			keep = true
		}
	}
	if !keep {
		r.Text = ""
	}
	f.runs = append(f.runs, r)
	return r
}

// again takes a run into the family as it was kept.
func (f *family) again(r Run) {
	for _, s := range r.States {
		f.states[s] = true
	}
	for _, failed := range r.Failures {
		if f.smallest(failed) {
			f.best[failed.key()] = failed.Size
		}
	}
	f.runs = append(f.runs, r)
}

// smallest: no failure of its group was as small before.
func (f *family) smallest(failed Failed) bool {
	size, seen := f.best[failed.key()]
	return !seen || failed.Size < size
}

// key is the group of a failure. A known cause is a group of its own, with
// whatever faults it was met: of a defect one for each judge, of an excuse one for
// each judge and kind of operation.
func (f Failed) key() string {
	switch {
	case f.Defect != "":
		return f.Judge + "|" + f.Defect
	case f.Excuse != "":
		return f.Judge + "|" + f.Op + "|" + f.Excuse
	}
	return f.Key()
}

// sorted gives the runs in order, each once; the first of two of one index.
func sorted(runs []Run) []Run {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Index, b.Index) })
	return slices.CompactFunc(runs, func(a, b Run) bool { return a.Index == b.Index })
}
