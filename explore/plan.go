package explore

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/explore/strategy"
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
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
	// Settled is the number of runs after which a full campaign ends: one whose runs met every
	// cell that its faults could meet in them, if the last Settled runs brought no new cell;
	// 0: it goes on.
	Settled int `json:"settled,omitempty"`
	// Case is the scenario of StrategyExhaustive; "": SmallCase.
	Case string `json:"case,omitempty"`
}

// The strategies. The exhaustive one draws no runs. It plays all schedules of one small
// scenario, see Cover.
const (
	DefaultStrategy    = strategy.NameTold
	StrategyPlain      = strategy.NamePlain
	StrategyTaPCT      = strategy.NameTaPCT
	StrategyTold       = strategy.NameTold
	StrategyExhaustive = "exhaustive"
)

// Playable reports whether the program has the strategy of the plan. The plan of a folder that
// an older program wrote may name another one.
func (p Plan) Playable() bool {
	_, ok := strategy.New(p.Strategy, p.Depth)
	return ok || p.Strategy == StrategyExhaustive
}

// strategy returns the strategy that draws the runs.
func (p Plan) strategy() strategy.Strategy {
	s, ok := strategy.New(p.Strategy, p.Depth)
	if !ok {
		panic(fmt.Sprintf("explore: the strategy %q draws no runs", p.Strategy))
	}
	return s
}

// FamilyRuns is the number of runs in a family. They are played in order, and each may aim at
// moments of the one before. Families do not depend on each other, so any process can
// play any family, and plays the whole of it.
const FamilyRuns = 100

// repeatEvery is the number of runs of which one is played twice, to check that it repeats.
const repeatEvery = 200

// Families returns the number of families, which are counted from 0.
func (p Plan) Families() int { return (p.Runs + FamilyRuns - 1) / FamilyRuns }

// Family returns the first run of a family, and the run after its last one.
func (p Plan) Family(f int) (from, to int) {
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

// firstEstimate is the number of decisions that a strategy with a bound expects of the first run of a family.
// Of a later run it expects as many as the longest run before had.
const firstEstimate = 200

// Bounded reports whether the strategy prints a bound, which depends on the depth of the plan.
func (p Plan) Bounded() bool {
	s, ok := strategy.New(p.Strategy, p.Depth)
	return ok && s.Bound(1, 1) > 0
}

// chooser returns the chooser that draws the schedule of a run.
func (p Plan) chooser(seed uint64, estimate int) sim.Chooser {
	return p.strategy().Chooser(seed, estimate)
}

// seeded reports whether the seed of a run draws its schedule.
func (p Plan) seeded() bool {
	s, ok := strategy.New(p.Strategy, p.Depth)
	return ok && s.Schedule() == strategy.ScheduleSeeded
}

// Run is the result of one run.
type Run struct {
	Index int    `json:"run"`
	Seed  uint64 `json:"seed"`
	// From is the run at whose moments this one aims; -1 for none.
	From  int       `json:"from"`
	Word  play.Word `json:"verdict,omitempty"`
	Why   string    `json:"why,omitempty"` // of an undecided run
	Steps int64     `json:"steps,omitempty"`
	SimNs int64     `json:"sim_ns,omitempty"`
	// States are the states that no earlier run of the family reached.
	States []uint64 `json:"states,omitempty"`
	// Cells are the codes of the situations and cells that no earlier run of the family
	// reached, see package coverage.
	Cells []int `json:"cells,omitempty"`
	// Open are the codes of the cells that a fault of the campaign could have filled in the
	// run, and that no earlier run of the family could have filled.
	Open []int `json:"open,omitempty"`
	// Gaps are the gaps between two requests that the run came through; nil for a campaign without faults.
	Gaps     []coverage.Short `json:"gaps,omitempty"`
	Failures []Failed         `json:"failures,omitempty"`
	// Text is the file of the scenario. It is kept if it may be needed again: for failures that may
	// stand for their group, and for readers of an odd run.
	Text string `json:"scenario,omitempty"`
	// Aimed is the number of faults that were aimed. It is kept with Text.
	Aimed int `json:"aimed,omitempty"`
	// Service is what the lock did for its callers before the first fault, and Unsimulated what the
	// servers met and do not simulate.
	Service     play.Service `json:"service,omitzero"`
	Unsimulated []string     `json:"unsimulated,omitempty"`
	// Estimate, Actors and Decisions belong to strategies with a bound.
	Estimate  int `json:"estimate,omitempty"`
	Actors    int `json:"actors,omitempty"`
	Decisions int `json:"decisions,omitempty"`
	// Died reports whether the process that played the run ended during it. Why says how.
	Died bool `json:"died,omitempty"`
	// Recording is the text of the run's recording if a failure of it is the smallest of its
	// group so far in the family. It is not in the file of the runs: a campaign keeps it in
	// FoundDir.
	Recording string `json:"-"`
	// Doubtful is the finding that leaves the run undecided. It is not in the file of the runs,
	// and nil if no finding does.
	Doubtful *judges.Finding `json:"-"`
	// Panics are the panics of the lock. They are not in the file of the runs either.
	Panics []sim.Panic `json:"-"`
	// drawn is the scenario of a run that is being played; nil: only Text is known.
	drawn *scenarios.Scenario
}

// unjudged reports whether the judges could not say what the run shows.
func (r Run) unjudged() bool {
	return r.Word == play.VerdictUndecided || r.Word == play.VerdictNondeterministic
}

// TooLong reports whether the run is undecided because it was ended after MostSteps steps.
func (r Run) TooLong() bool { return r.Word == play.VerdictUndecided && r.Steps >= MostSteps }

// Failed is one judge that a run broke, for one cause.
type Failed struct {
	failure.Group
	failure.Origin
	Why  string `json:"why"`
	Size int    `json:"size_events"`
	// Control says what the controls show about the smallest limit of its group; zero for any other failure.
	Control judges.Control `json:"control,omitzero"`
}

// Excused says what excuses a limit, and what the controls show about it.
func (f Failed) Excused() string { return sentence.Join(f.Excuse, sentence.Control(f.Control)) }

// Fingerprint names the group of the failure as it was found.
func (f Failed) Fingerprint() string { return f.Folder(f.Origin) }

// task is one run that is to be played.
type task struct {
	index int
	seed  uint64 // that draws the schedule
	from  int    // the run at whose moments it aims; -1: none
	// fresh are the codes of the situations that from was the first of its family to reach.
	fresh []int
	// estimate is the number of decisions that a strategy with a bound expects.
	estimate int
}

// next returns the next run of a family, given the runs before it and the number of its stories. The run is
// drawn anew, or aims at moments of a run before. With the seed of that run it is the same until a fault
// strikes; so none aims at a run that was too long to be judged, or that took its process with
// it.
func (p Plan) next(index int, before []Run, stories int) task {
	t := task{index: index, seed: p.seedOf(index), from: -1}
	if p.Bounded() {
		t.estimate = firstEstimate
		for _, r := range before {
			t.estimate = max(t.estimate, r.Decisions)
		}
	}
	base := -1 // in before
	switch p.strategy().Base(index%FamilyRuns, stories) {
	case strategy.Last:
		base = len(before) - 1
	case strategy.Story:
		base = int(sim.NewSeeded(t.seed).Choose("explore/story", uint64(stories)))
	}
	if base >= 0 && !before[base].Died && before[base].Word != play.VerdictUndecided {
		t.from = index - len(before) + base
		t.seed, t.fresh = p.seedOf(t.from), before[base].Cells
	}
	return t
}

// Draw draws the scenario that the strategy plain plays as a run, and returns it with the seed
// that it was drawn from.
func (p Plan) Draw(index int, l *subject.Subject) (seed uint64, sc *scenarios.Scenario) {
	seed = p.seedOf(index)
	sc = draw.New(sim.NewSeeded(seed), l, p.Profile, p.Faults).Scenario
	sc.SetFile(runFile(index))
	return seed, sc
}

// runFile returns the name of the file of the scenario of a run.
func runFile(index int) string { return fmt.Sprintf("run-%d.yaml", index) }

// anew draws the scenario of a run that aims at nothing: a story, if its family has one for it.
func (p Plan) anew(index int, c sim.Chooser, l *subject.Subject, f *family) draw.Scenario {
	if t, ok := p.telling(f.tellings, index); ok {
		return draw.Given(c, l, p.Profile, p.Faults, p.tell(c, l, t))
	}
	return draw.New(c, l, p.Profile, p.Faults)
}

// draw returns the run of a task with its scenario. A run that is to aim at cells is drawn anew
// if the family has met all cells that it could aim at.
func (p Plan) draw(h *sim.Host, l *subject.Subject, t task, f *family) Run {
	own := p.seedOf(t.index)
	c := sim.NewSeeded(own)
	if t.from >= 0 {
		base := p.anew(t.from, sim.NewSeeded(t.seed), l, f)
		if s, ok := f.aim(c, l, p, t, base, f.openingsOf(h, p, l, t, base)); ok {
			return Run{Index: t.index, Seed: t.seed, From: t.from, Estimate: t.estimate, Aimed: s.Aimed}.with(s.Scenario)
		}
		c = sim.NewSeeded(own)
	}
	return Run{Index: t.index, Seed: own, From: -1, Estimate: t.estimate}.with(p.anew(t.index, c, l, f).Scenario)
}

// with returns the run with its scenario, which gets its file.
func (r Run) with(sc *scenarios.Scenario) Run {
	sc.SetFile(runFile(r.Index))
	r.drawn, r.Text = sc, sc.Text
	return r
}

// MostSteps is the number of steps after which a drawn run is undecided.
const MostSteps = sim.MostSteps

// play plays a run of a family and judges it. In the result, States has all states that
// the run reached, Cells all cells, and the scenario is kept.
func (p Plan) play(h *sim.Host, l *subject.Subject, t task, f *family) (r Run, err error) {
	limited := *h
	limited.MostSteps = MostSteps
	h = &limited
	r = p.draw(h, l, t, f)
	chooser := p.chooser(r.Seed, r.Estimate)
	v := p.judge(h, l, r.drawn, r.Seed, chooser)
	if t, ok := chooser.(*strategy.TaPCT); ok {
		r.Actors, r.Decisions = t.Actors(), t.Decisions()
	}
	r.Word, r.Why, r.Steps, r.SimNs = v.Word, sentence.Verdict(v), int64(v.Played.Steps), v.Played.SimNs
	r.Service, r.Unsimulated = v.Service, v.Unsimulated
	r.States = strategy.States(v.Played.Trace)
	if f, ok := v.Doubtful(); ok {
		r.Doubtful, r.Panics = &f, v.Played.Panics
	}
	f.last, f.openings = t.index, coverage.Openings(v.Played.Trace)
	if _, story := p.telling(f.tellings, t.index); story {
		f.told[t.index] = f.openings
	}
	r.Cells = coverage.Cells(v.Played.Trace, f.openings)
	if r.Open = f.openCells(l, p); len(p.Faults) > 0 {
		for _, passage := range coverage.Passages(f.openings) {
			r.Gaps = append(r.Gaps, coverage.Short(passage))
		}
	}
	if t.index%repeatEvery == 0 && r.Word != play.VerdictNondeterministic && v.Played.Record.Unstarted() == "" {
		second := play.Play(h, v.Scenario, l, p.chooser(r.Seed, r.Estimate)).Result
		if again := second.Record.Digest(); again != v.Digest() && second.Record.Unstarted() == "" {
			r.Word = play.VerdictNondeterministic
			r.Why = fmt.Sprintf("played twice, it gave different records: %.12s and %.12s", v.Digest(), again)
			if where := play.Explain(h, v.Scenario, l, func() sim.Chooser { return p.chooser(r.Seed, r.Estimate) }, v.Played.Result, second); where != "" {
				r.Why += "; " + where
			}
		}
	}
	fewer := map[string]play.Verdict{} // the run, played with faults left out
	for _, x := range sightings(h, v) {
		// Finding out which faults a failure needs takes runs. If the cause is known, only
		// the smallest failure of all is asked, after it has been made smaller.
		if !x.Known() {
			x.Group, _ = needs(h, failure.Failure{Verdict: v, Finding: x.finding, Seeded: p.seeded()}, fewer)
		}
		if x.Class == judges.ClassLimit && f.smallest(x.Failed) {
			x.Control = v.Shown(h, x.finding)
		}
		r.Failures = append(r.Failures, x.Failed)
	}
	if slices.ContainsFunc(r.Failures, f.smallest) {
		r.Recording, err = p.recording(r, v)
	}
	return r, err
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

// scenario parses the text of a run that another process played, or an earlier start.
func (r Run) scenario() (*scenarios.Scenario, error) {
	sc, err := scenarios.Parse(runFile(r.Index), []byte(r.Text), scenarios.AnyLock)
	if err != nil {
		return nil, fmt.Errorf("run %d (seed %d) has a scenario that does not load: %w", r.Index, r.Seed, err)
	}
	return sc, nil
}

// judge plays a scenario and judges the run.
func (p Plan) judge(h *sim.Host, l *subject.Subject, sc *scenarios.Scenario, seed uint64, chooser sim.Chooser) play.Verdict {
	played := play.Play(h, sc, l, chooser)
	played.Strategy = p.strategy().Schedule()
	return play.Judge(h, sc, l, seed, played)
}

// Like returns the indexes of the runs that failed as f did.
func Like(runs []Run, f Failed) map[int]bool {
	alike := map[int]bool{}
	for _, r := range runs {
		if slices.ContainsFunc(r.Failures, func(other Failed) bool { return other.key() == f.key() }) {
			alike[r.Index] = true
		}
	}
	return alike
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
	case f.Left():
		return f.Judge + "|" + f.Parted
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
