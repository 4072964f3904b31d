// Package shrink makes failures small. Shrink plays smaller scenarios with fewer decisions, and
// returns the smallest failure that it finds that is still the same. WithoutFaults only removes the
// faults that a failure does not need.
package shrink

import (
	"math"
	"slices"

	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Phases are the parts of the work of shrinking one failure, in order.
type Phases []Phase

// Runs returns the number of runs that the phases took.
func (p Phases) Runs() (runs int) {
	for _, one := range p {
		runs += one.Runs
	}
	return runs
}

// Phase is one part of the work of shrinking.
type Phase struct {
	Name string
	Runs int
	Did  string // in a few words
}

// Shrink makes a failure smaller while the same judge is broken, as the same class, for the same
// cause, at the same kind of operation, and without a fault of another kind. A waiter that is forgotten
// goes on to wait for the same kind of holder, see debtor. A smaller failure of
// another group would be another bug. Budget bounds the number of runs; a long run counts once more
// for every longRun steps. Once expired reports true, Shrink plays nothing more, ends the run that is
// under way, and returns the smallest failure so far; if expired is nil, its time never ends. The result is a scenario file that shows the failure by
// its seeds (Seeded, with the text in Verdict.Scenario.Text). If no seed shows it, the result is
// the run with its decisions, which must be recorded. A failure that does not occur again is
// returned as it was.
//
// Of two failures, the first difference in this list says which is smaller: a scenario
// file shows it; fewer processes, threads, steps, faults; fewer rules that meet more than
// one message; a smaller range of latencies; fewer events (failure.Size); fewer fields;
// rounder, then smaller numbers; fewer, then smaller decisions; a smaller seed; less text.
//
// A want of a step, or the end value of a resource, rests on the calls and times that
// its author wrote. If one of them is broken, these calls and times stay.
func Shrink(h *sim.Host, f failure.Failure, budget int, expired func() bool) (failure.Failure, Phases) {
	s := newShrinker(h, f, budget-lastRuns)
	s.expired = expired
	s.limit()
	return s.shrink()
}

// WithoutFaults removes faults from a failure one by one, as long as it stays the same. An
// interrupt and a skewed wall clock count as faults. It returns the failure with the faults that
// remain, and the number of runs that it took. Several failures of one run may share played, which
// caches the runs with faults left out. It may be nil for a single failure.
func WithoutFaults(h *sim.Host, f failure.Failure, played map[string]play.Verdict) (failure.Failure, int) {
	s := newShrinker(h, f, math.MaxInt)
	s.played = played
	s.start()
	s.leaveOut()
	return s.best.failure(), s.runs[phaseAgain]
}

// longRun is a number of steps that most runs do not reach.
const longRun = 2000

// LongestRun is the number of steps of the longest run that Shrink can make small in a worker
// of a campaign, whose memory is limited. A step of a record takes some 1.5 KB, and two records
// are kept beside the one that is played.
const LongestRun = 40_000

// limit bounds the runs that are played. A smaller scenario may have a longer run than the
// failure, and even one that never ends. A run that is under way when the time is over is stopped.
func (s *shrinker) limit() {
	of := s.host
	h := *of
	h.MostSteps = mostSteps(s.from.Verdict.Played.Steps)
	h.Stop = func() bool { return of.Stopped() || s.outOfTime() }
	s.host = &h
}

// outOfTime reports whether the time for shrinking is over.
func (s *shrinker) outOfTime() bool { return s.expired != nil && s.expired() }

// mostSteps bounds the steps of the runs that are played to make a failure small, whose own run has so
// many. A run that is four times as long is not smaller for its reader, whatever its scenario.
func mostSteps(steps int) int {
	return min(max(longRun, 4*steps), max(LongestRun, 2*steps))
}

// tooLong reports whether a run was ended early, so that it cannot be played again as it was.
func (s *shrinker) tooLong(p play.Played) bool {
	return s.host.MostSteps > 0 && p.Steps >= s.host.MostSteps
}

// The phases.
const (
	phaseAgain     = "again"
	phaseSeeds     = "seeds"
	phaseProcesses = "processes"
	phaseThreads   = "threads"
	phaseSteps     = "steps"
	phaseFaults    = "faults"
	phaseFields    = "fields"
	phaseTimes     = "times"
	phaseDecisions = "decisions"
	phaseFile      = "file"
)

var phaseNames = []string{
	phaseAgain, phaseSeeds, phaseProcesses, phaseThreads, phaseSteps, phaseFaults, phaseFields, phaseTimes, phaseDecisions, phaseFile,
}

const (
	// playedMost bounds the steps of the runs that are cached for other shrinkers.
	playedMost = 40_000
	// seedsTried bounds the seeds that are tried in place of recorded decisions.
	seedsTried = 10
	// seedsShown bounds the seeds of a file that shows the failure.
	seedsShown = 5
	// lastRuns are kept for playing the file itself.
	lastRuns = seedsShown + 1
)

func (s *shrinker) shrink() (failure.Failure, Phases) {
	if !s.begin() {
		return s.from, s.report()
	}
	first := s.best.measure
	// Faults go first: otherwise a failure that needs no fault could turn into one that does.
	s.in(phaseFaults, s.leaveOut)
	for s.left > 0 {
		before := s.best.measure
		s.round()
		if slices.Equal(before, s.best.measure) {
			break
		}
	}
	small := failure.Failure{Verdict: s.best.verdict, Finding: s.best.finding, Seeded: s.best.decisions == nil}
	if !s.outOfTime() {
		small = s.finish()
	}
	s.describe(first)
	return small, s.report()
}

// shrinker makes one failure smaller.
type shrinker struct {
	host *sim.Host
	from failure.Failure
	op   string // the kind of operation
	// origin is the origin of the failure that is made small, and debtor what the debtor of that failure
	// returns.
	origin failure.Origin
	debtor failure.Debtor
	// kinds are the kinds of the faults in the file.
	kinds []string
	// claim reports whether a want of the author is broken.
	claim bool
	// any reports whether a candidate that fails is kept even if it is larger.
	any  bool
	left int
	// expired reports whether the time for shrinking is over; if nil, there is no limit.
	expired func() bool
	seeds   uint64 // how many seeds are tried
	best    *candidate
	tried   map[string]bool
	// played caches the first runs of seeds for other shrinkers; nil if there are none.
	played map[string]play.Verdict
	phase  string
	runs   map[string]int
	did    map[string]string
	times  int // the amounts that were changed
}

// candidate is a scenario that shows the failure.
type candidate struct {
	sc        *scenarios.Scenario // with its file
	seed      uint64
	decisions sim.Decisions // nil: the decisions of the seed
	verdict   play.Verdict
	finding   judges.Finding
	measure   []int64
}

// failure returns the failure that the candidate shows.
func (c *candidate) failure() failure.Failure {
	return failure.Failure{Verdict: c.verdict, Finding: c.finding, Seeded: c.decisions == nil}
}

func newShrinker(h *sim.Host, f failure.Failure, budget int) *shrinker {
	origin, _ := failure.OriginOf(failure.NewNamer(h, f.Verdict), f.Finding)
	return &shrinker{
		host: h, from: f, origin: origin, debtor: failure.DebtorOf(f.Verdict, f.Finding), op: failure.OpOf(f.Verdict, f.Finding), kinds: failure.FaultsStated(f.Verdict.Scenario), claim: f.Finding.Judge == model.JudgeWant,
		left: budget, seeds: seedsTried, tried: map[string]bool{}, phase: phaseAgain, runs: map[string]int{}, did: map[string]string{},
	}
}

// bare returns the failure's scenario without its expectations and its story.
func (s *shrinker) bare() *scenarios.Scenario {
	return s.changed(s.from.Verdict.Scenario, func(sc *scenarios.Scenario) {
		sc.About, sc.Source, sc.Expect, sc.Reach = "", "", nil, nil
		sc.SeedFirst, sc.SeedLast = 1, 1
		sc.Locks = []string{s.from.Verdict.Lock.Name}
	})
}

// changed returns a changed copy of a scenario, with its file.
func (s *shrinker) changed(sc *scenarios.Scenario, change func(*scenarios.Scenario)) *scenarios.Scenario {
	sc = sc.Clone()
	change(sc)
	sc.Tidy()
	sc.SetFile(s.from.Verdict.Scenario.File)
	return sc
}

// decided returns the decisions of the failure; nil if its seed makes them.
func (s *shrinker) decided() sim.Decisions {
	if s.from.Seeded {
		return nil
	}
	return s.from.Verdict.Played.Decisions
}

// begin plays the bare scenario of the failure. It reports whether the bare scenario fails, too.
func (s *shrinker) begin() bool {
	return s.consider(s.bare(), s.from.Verdict.Seed, s.decided())
}

// start makes the failure, as it was played, the best candidate.
func (s *shrinker) start() {
	s.best = &candidate{sc: s.bare(), seed: s.from.Verdict.Seed, decisions: s.decided(), verdict: s.from.Verdict, finding: s.from.Finding}
	s.tried[keyOf(s.best.seed, s.best.decisions, s.best.sc.Text)] = true
}

// leaveOut removes as many faults as it can.
func (s *shrinker) leaveOut() {
	s.any = true
	s.thin(needCuts)
	s.any = false
	s.kinds = failure.FaultsStated(s.best.verdict.Scenario)
}

// round tries once to make each part smaller.
func (s *shrinker) round() {
	s.in(phaseSeeds, s.sayable)
	s.in(phaseProcesses, func() {
		if !s.claim && !s.ends() {
			s.thin(processCuts)
		}
	})
	s.in(phaseThreads, func() {
		if !s.claim && !s.ends() {
			s.thin(threadCuts)
		}
	})
	s.in(phaseSteps, func() {
		// Wants go first: otherwise a failure that needs no want could turn into one that does.
		s.thin(claimCuts)
		s.thin((*scenarios.Scenario).Wants)
		s.claim = s.claim || s.ends()
		if !s.claim {
			s.thin(stepCuts)
			s.each(unwrappings)
		}
	})
	s.in(phaseFaults, func() {
		s.thin(faultCuts)
		s.each(narrowings)
	})
	s.in(phaseFields, func() {
		if !s.claim {
			s.thin((*scenarios.Scenario).Options)
		}
	})
	s.in(phaseTimes, func() {
		if !s.claim {
			s.amounts()
		}
	})
	s.in(phaseSeeds, s.sayable)
	s.in(phaseDecisions, func() {
		if s.best.decisions == nil {
			s.seed()
		} else {
			s.decisions()
		}
	})
}

func (s *shrinker) in(phase string, work func()) {
	s.phase = phase
	work()
}

// ends reports whether the failure is about the end value of a resource.
func (s *shrinker) ends() bool {
	return s.from.Finding.Judge == model.JudgeWorkload && slices.ContainsFunc(s.best.verdict.Scenario.Resources, func(r scenarios.Resource) bool { return r.End != nil })
}

func (s *shrinker) report() Phases {
	var out Phases
	for _, name := range phaseNames {
		if s.runs[name] > 0 {
			out = append(out, Phase{name, s.runs[name], s.did[name]})
		}
	}
	return out
}
