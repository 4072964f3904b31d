package explore

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/explore/strategy"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Plan determines a campaign. Runs, groups and counts depend on nothing else: not on the
// number of processes or machines that play it, and not on interruptions.
type Plan struct {
	World    int          `json:"world"` // sim.Version
	Lock     string       `json:"lock"`
	Faults   []draw.Class `json:"faults"`
	Profile  draw.Profile `json:"profile"`
	Strategy string       `json:"strategy"`
	Depth    int          `json:"depth,omitempty"`
	Seed     uint64       `json:"seed"`
	// Seeds is the number of seeds, which follow each other from Seed on; 0: one. The
	// families take them in turn.
	Seeds int `json:"seeds,omitempty"`
	Runs  int `json:"runs"` // for StrategyExhaustive the number of runs that may begin; 0: all
	// Steps is a budget: the campaign ends with the run with which the steps of all runs
	// reach it; 0: there is none.
	Steps int64 `json:"steps,omitempty"`
	// Case is the scenario of StrategyExhaustive; "": SmallCase.
	Case string `json:"case,omitempty"`
}

// The strategies. The exhaustive one draws no runs. It plays all schedules of one small
// scenario, see Cover.
const (
	StrategyRandom     = "random"
	StrategyPCT        = "pct"
	StrategyExhaustive = "exhaustive"
)

// FamilyRuns is the number of runs in a family. They are played in order, and each may be
// a variation of an earlier one. Families do not depend on each other, so any process can
// play any family, and plays the whole of it.
const FamilyRuns = 100

// repeatEvery is the number of runs of which one is played twice, to check that it repeats.
const repeatEvery = 200

// families is the number of families.
func (p Plan) families() int { return (p.Runs + FamilyRuns - 1) / FamilyRuns }

// family returns the first run of a family, and the run after its last one.
func (p Plan) family(f int) (from, to int) {
	return f * FamilyRuns, min((f+1)*FamilyRuns, p.Runs)
}

// seedOf returns the seed from which the workload, the faults and the schedule of a run
// are drawn.
func (p Plan) seedOf(index int) uint64 {
	seed := p.Seed + uint64(index/FamilyRuns%max(p.Seeds, 1))
	return sim.NewSeeded(seed).Choose(fmt.Sprintf("explore/run/%d", index), 1<<48)
}

// seeds returns the seeds as the option --seed takes them.
func (p Plan) seeds() string {
	if p.Seeds > 1 {
		return fmt.Sprintf("%d..%d", p.Seed, p.Seed+uint64(p.Seeds-1))
	}
	return fmt.Sprint(p.Seed)
}

// firstEstimate is the number of decisions that PCT expects of the first run of a family.
// Of a later run it expects as many as the longest run before had.
const firstEstimate = 200

// chooser returns the chooser that draws the schedule of a run.
func (p Plan) chooser(seed uint64, estimate int) sim.Chooser {
	if p.Strategy == StrategyPCT {
		return strategy.NewPCT(seed, p.Depth, estimate)
	}
	return sim.NewSeeded(seed)
}

// Run is the result of one run.
type Run struct {
	Index int    `json:"run"`
	Seed  uint64 `json:"seed"`
	// From is the run that this one is a variation of; -1 for none.
	From  int       `json:"from"`
	Word  play.Word `json:"verdict,omitempty"`
	Why   string    `json:"why,omitempty"` // of an undecided run
	Steps int64     `json:"steps,omitempty"`
	SimNs int64     `json:"sim_ns,omitempty"`
	// States are the states that no earlier run of the family reached.
	States   []uint64 `json:"states,omitempty"`
	Failures []Failed `json:"failures,omitempty"`
	// Scenario is kept if it may be needed again: for variations of a run with new states,
	// for failures that may stand for their group, and for whoever looks into an odd run.
	draw.Scenario
	// Estimate, Actors and Decisions belong to PCT.
	Estimate  int `json:"estimate,omitempty"`
	Actors    int `json:"actors,omitempty"`
	Decisions int `json:"decisions,omitempty"`
	// Died reports whether the process that played the run ended during it. Why says how.
	Died bool `json:"died,omitempty"`
	// Recording is the text of the run's recording if a failure of it is the smallest of its
	// group so far in the family. It is not in the file of the runs: a campaign keeps it in
	// FoundDir.
	Recording string `json:"-"`
}

// odd reports whether the judges could not say what the run shows.
func (r Run) odd() bool {
	return r.Word == play.VerdictUndecided || r.Word == play.VerdictNondeterministic
}

// Failed is one judge that a run broke, for one cause.
type Failed struct {
	failure.Group
	failure.Origin
	Why  string `json:"why"`
	Size int    `json:"size_events"`
}

// task is one run that is to be played.
type task struct {
	index int
	from  int
	base  draw.Scenario // of from
	// estimate is the number of decisions that PCT expects.
	estimate int
}

// next returns the next run of a family, given the runs before it. The run is drawn anew,
// or varies a run that reached new states. A run that was too long to be judged is not
// varied, since its variations would be too long as well.
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
	t.from, t.base = base.Index, base.Scenario
	return t
}

// Draw draws the scenario of a run, whatever the runs before it found, and returns the text
// with the seed that it was drawn from.
func (p Plan) Draw(index int, l *subject.Subject) (seed uint64, text string) {
	seed = p.seedOf(index)
	return seed, draw.New(sim.NewSeeded(seed), l, p.Profile, p.Faults).Text
}

// play plays a run of a family and judges it. In the result, States has all states that
// the run reached, and Scenario is kept.
func (p Plan) play(h *sim.Host, l *subject.Subject, t task, f *family) (Run, error) {
	r := Run{Index: t.index, Seed: p.seedOf(t.index), From: t.from, Estimate: t.estimate}
	if t.from < 0 {
		r.Scenario = draw.New(sim.NewSeeded(r.Seed), l, p.Profile, p.Faults)
	} else {
		r.Scenario = draw.Vary(sim.NewSeeded(r.Seed), t.base, l, p.Profile, p.Faults)
	}
	chooser := p.chooser(r.Seed, r.Estimate)
	sc, err := r.scenario()
	if err != nil {
		return r, err
	}
	v := p.judge(h, l, sc, r.Seed, chooser)
	if pct, ok := chooser.(*strategy.PCT); ok {
		r.Actors, r.Decisions = pct.Actors(), pct.Decisions()
	}
	r.Word, r.Why, r.Steps, r.SimNs = v.Word, v.Why, int64(v.Played.Steps), v.Played.SimNs
	r.States = strategy.States(v.Played.Trace)
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
		// Finding out which faults a failure needs takes runs. If the cause is known, only
		// the smallest failure of all is asked, after it has been made smaller.
		if !x.Known() {
			x.Group, _ = needs(h, failure.Failure{Verdict: v, Finding: x.finding, Seeded: p.Strategy == StrategyRandom}, fewer)
		}
		r.Failures = append(r.Failures, x.Failed)
	}
	if slices.ContainsFunc(r.Failures, f.smallest) {
		if r.Recording, err = p.recording(r, v); err != nil {
			return r, err
		}
	}
	return r, nil
}

// recording returns the text of the recording of a run as it was found. Comments on top say
// what the run shows.
func (p Plan) recording(r Run, v play.Verdict) (string, error) {
	comment := []string{fmt.Sprintf("Lockstep recording: lock %s, run %d of %s: %s", p.Lock, r.Index, p, r.Word)}
	for _, f := range r.Failures {
		comment = append(comment, f.Judge+": "+f.Why)
	}
	var b bytes.Buffer
	err := v.Recording().Write(&b, comment)
	return b.String(), err
}

// scenario parses the text of the run.
func (r Run) scenario() (*scenarios.Scenario, error) {
	sc, err := scenarios.Parse(fmt.Sprintf("run-%d.yaml", r.Index), []byte(r.Text), scenarios.AnyLock)
	if err != nil {
		return nil, fmt.Errorf("run %d (seed %d) drew a scenario that does not load: %w\n%s", r.Index, r.Seed, err, r.Text)
	}
	return sc, nil
}

// judge plays a scenario and judges the run.
func (p Plan) judge(h *sim.Host, l *subject.Subject, sc *scenarios.Scenario, seed uint64, chooser sim.Chooser) play.Verdict {
	played := play.Play(h, sc, l, chooser)
	played.Strategy = p.Strategy
	return play.Judge(h, sc, l, seed, played)
}

// family is the state of a family that is being played.
type family struct {
	runs   []Run
	states map[uint64]bool
	best   map[string]int // by group: the smallest failure so far
}

func newFamily() *family { return &family{states: map[uint64]bool{}, best: map[string]int{}} }

// add adds the next run to the family, and returns the part of it that is kept.
func (f *family) add(r Run) Run {
	keep := r.odd()
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
		r.Scenario = draw.Scenario{}
	}
	f.runs = append(f.runs, r)
	f.runs[len(f.runs)-1].Recording = ""
	return r
}

// again adds a run of which only the kept part is known.
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

// smallest reports whether no earlier failure of the group was as small.
func (f *family) smallest(failed Failed) bool {
	size, seen := f.best[failed.key()]
	return !seen || failed.Size < size
}

// key returns the group of a failure. Failures of a known cause belong together, whatever
// the faults: a defect has one group per judge. An excuse, and what parted server and
// clients, has one per judge and kind of operation.
func (f Failed) key() string {
	switch {
	case f.Defect != "":
		return f.Judge + "|" + f.Defect
	case f.Excuse != "":
		return f.Judge + "|" + f.Op + "|" + f.Excuse
	case f.Parted != "":
		return f.Judge + "|" + f.Op + "|" + f.Parted + "|"
	}
	return f.Key()
}

// sorted returns the runs by index, and of several with one index the first.
func sorted(runs []Run) []Run {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Index, b.Index) })
	return slices.CompactFunc(runs, func(a, b Run) bool { return a.Index == b.Index })
}
