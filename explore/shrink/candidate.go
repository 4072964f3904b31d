package shrink

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"lockstep/explore/failure"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// consider plays a scenario that may be smaller than the best one. It keeps the scenario
// if it is smaller and still fails.
func (s *shrinker) consider(sc *scenarios.Scenario, seed uint64, decisions sim.Decisions) bool {
	key := keyOf(seed, decisions, sc.Text)
	if s.left <= 0 || s.tried[key] {
		return false
	}
	s.tried[key] = true
	if !sc.Complete() || play.Applies(sc, s.from.Verdict.Lock) != nil {
		return false
	}
	if slices.ContainsFunc(failure.FaultsStated(sc), func(k string) bool { return !slices.Contains(s.kinds, k) }) {
		return false
	}
	c := &candidate{sc: sc, seed: seed, decisions: decisions}
	static := shape(sc, decisions != nil)
	if s.best != nil && !s.any && slices.Compare(static, s.best.measure[:len(static)]) > 0 {
		return false
	}
	var known bool
	if c.verdict, known = s.played[key]; !known {
		s.run(c)
		if s.played != nil && decisions == nil && s.hasRoom(c.verdict) {
			s.played[key] = c.verdict
		}
	}
	if !s.shows(c) {
		return false
	}
	c.measure = append(static, int64(failure.SizeTo(c.verdict, c.finding)))
	c.measure = append(c.measure, details(c)...)
	if s.best != nil && !s.any && slices.Compare(c.measure, s.best.measure) >= 0 {
		return false
	}
	s.best = c
	return true
}

// hasRoom reports whether the run fits into the cache of played runs.
func (s *shrinker) hasRoom(v play.Verdict) bool {
	steps := v.Played.Steps
	for _, other := range s.played {
		steps += other.Played.Steps
	}
	return steps <= playedMost
}

// keyOf returns a key that no other candidate has.
func keyOf(seed uint64, d sim.Decisions, text string) string {
	return fmt.Sprint(seed, decisionsKey(d), text)
}

func decisionsKey(d sim.Decisions) uint64 {
	if d == nil {
		return 0
	}
	h := fnv.New64a()
	for _, stream := range slices.Sorted(maps.Keys(d)) {
		_, _ = fmt.Fprint(h, stream, d[stream])
	}
	return h.Sum64()
}

// play runs a candidate and looks for the failure in it.
func (s *shrinker) play(c *candidate) bool {
	s.run(c)
	return s.shows(c)
}

// run plays a candidate. It judges the run if it may show the failure.
func (s *shrinker) run(c *candidate) {
	s.left--
	s.runs[s.phase]++
	sc, lock := c.sc, s.from.Verdict.Lock
	var chooser sim.Chooser = sim.NewSeeded(c.seed)
	switch {
	case c.decisions != nil && s.phase == phaseDecisions:
		chooser = sim.NewReplayer(c.decisions)
	case c.decisions != nil:
		chooser = sim.NewLenientReplayer(c.decisions)
	}
	var orders *sim.Orders
	strategy := ""
	if c.decisions != nil { // in the mode in which they were drawn; a seed draws latencies
		orders, strategy = s.from.Verdict.Played.Orders, s.from.Verdict.Played.Strategy
	}
	p := play.PlayIn(s.host, sc, lock, chooser, orders)
	p.Strategy = strategy
	c.verdict = play.Verdict{Scenario: sc, Lock: lock, Seed: c.seed, Played: p}
	// Other shrinkers ask a run that they share for other failures.
	if !s.tooLong(p) && !s.host.Stopped() && (s.played != nil || play.Breaks(sc, p, s.from.Finding.Judge)) {
		c.verdict = play.Judge(s.host, sc, lock, c.seed, p)
	}
	s.left -= p.Steps / longRun
	if s.host.Stopped() { // this run, or a replay that convicts a finding of it, may have ended early
		c.verdict = play.Verdict{Scenario: sc, Lock: lock, Seed: c.seed, Played: p}
		s.left = 0
	}
	if c.decisions != nil {
		c.decisions = p.Decisions
	}
}

// shows looks for the failure in a candidate that was played. The verdict of a run that was not judged
// has no findings.
func (s *shrinker) shows(c *candidate) bool {
	// A run that shows a bug and a limit stands for the bug: a smaller run may show the
	// limit alone.
	if word := c.verdict.Word; s.best != nil && word != s.best.verdict.Word && word != play.Word(s.from.Finding.Class) {
		return false
	}
	var ok bool
	c.finding, ok = s.sameFinding(c.verdict)
	return ok
}

// sameFinding looks in a run for a finding of the same judge and class, at the same kind of
// operation, for the same cause.
func (s *shrinker) sameFinding(v play.Verdict) (judges.Finding, bool) {
	f := s.from.Finding
	var n *known.Namer
	for _, g := range v.Findings {
		if g.Verdict != judges.Broken || g.Judge != f.Judge || g.Class != f.Class || failure.OpOf(v, g) != s.op ||
			g.Judge == model.JudgeWant && !sameClaim(f, g) {
			continue
		}
		if n == nil {
			n = failure.NewNamer(s.host, v)
		}
		if origin, _ := failure.OriginOf(n, g); origin == s.origin && failure.DebtorOf(v, g) == s.debtor {
			return g, true
		}
	}
	return judges.Finding{}, false
}

// sameClaim reports whether two findings of the judge want are about the same want of the same
// step, whatever the step returned.
func sameClaim(f, g judges.Finding) bool {
	a, b := *f.Check, *g.Check
	a.Got, b.Got = "", ""
	return a == b
}
