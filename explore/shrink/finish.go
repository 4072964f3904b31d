package shrink

import (
	"fmt"
	"strings"

	"lockstep/explore/failure"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
)

// finish gives the best candidate its expectation and a file of its own, and plays the file.
func (s *shrinker) finish() failure.Failure {
	s.phase = phaseFile
	s.left += lastRuns
	last := &candidate{sc: s.best.sc.Clone(), seed: s.best.seed, decisions: s.best.decisions}
	s.introduce(last.sc)
	last.sc.SetFile(last.sc.Name + ".yaml")
	if last.decisions != nil {
		s.did[phaseFile] = "no seed shows it: these very decisions do"
	} else {
		s.did[phaseFile] = s.chooseSeeds(last)
		last.sc.SetFile(last.sc.File)
	}
	if !s.play(last) {
		return s.best.failure() // the file does not show the failure, and the run does
	}
	return last.failure()
}

// introduce gives a scenario the name, the story and the expectation of the best candidate.
func (s *shrinker) introduce(sc *scenarios.Scenario) {
	best, f, from := s.best, s.best.finding, s.from.Verdict
	if strings.HasSuffix(sc.Name, scenarios.Shrunk) {
		sc.Source = from.Scenario.Source
	} else {
		sc.Source = fmt.Sprintf("shrunk from %s (seed %d)", sc.Name, from.Seed)
		sc.Name += scenarios.Shrunk
	}
	why := sentence.Finding(f)
	if f.Judge == model.JudgeWant {
		// The line number is left out, since it is another one in the file.
		why = f.Check.Claim()
	}
	sc.About = fmt.Sprintf("%s of %s: %s.", f.Judge, from.Lock.Name, why)
	class := scenarios.Class(f.Class)
	if best.verdict.Word == play.VerdictBug {
		class = scenarios.Bug // the verdict of the run, which may come from another finding
	}
	sc.Expect = map[string]scenarios.Expectation{from.Lock.Name: {Class: class, Judges: []string{f.Judge}}}
}

// chooseSeeds gives the scenario of a candidate the seeds from 1 on, if all of the first ones show the
// failure, and its own seed otherwise. It returns what it did.
func (s *shrinker) chooseSeeds(c *candidate) string {
	shown := uint64(0)
	for shown < seedsShown && s.play(&candidate{sc: c.sc, seed: shown + 1}) {
		shown++
	}
	if shown < seedsShown {
		c.sc.SeedFirst, c.sc.SeedLast = c.seed, c.seed
		return fmt.Sprintf("seed %d shows it", c.seed)
	}
	c.seed = 1
	c.sc.SeedFirst, c.sc.SeedLast = 1, shown
	return fmt.Sprintf("every seed of 1..%d shows it", shown)
}

// describe writes down what each phase did.
func (s *shrinker) describe(first []int64) {
	for phase, i := range map[string]int{
		phaseProcesses: inProcesses, phaseThreads: inThreads, phaseSteps: inSteps, phaseFaults: inFaults, phaseFields: inFields,
	} {
		s.did[phase] = fmt.Sprintf("%d, now %d", first[i], s.best.measure[i])
	}
	s.did[phaseAgain] = fmt.Sprintf("broken again: %s", s.from.Finding.Judge)
	s.did[phaseTimes] = fmt.Sprintf("%d changed", s.times)
	s.did[phaseSeeds] = "needs decisions of its own"
	if s.best.decisions == nil {
		s.did[phaseSeeds] = "a scenario can say it"
	}
	s.did[phaseDecisions] = fmt.Sprintf("%d that are not 0", s.best.measure[inDrawn])
	if l := s.best.sc.Latency; s.best.decisions == nil && l.Min == l.Max {
		s.did[phaseDecisions] = "an exact latency of " + l.String()
	} else if s.best.decisions == nil {
		s.did[phaseDecisions] = "latencies of " + l.String()
	}
}
