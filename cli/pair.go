package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"lockstep/cli/frame"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A Pair is a scenario on a lock, with the verdicts of its seeds. It keeps one verdict of each kind,
// so that its size does not depend on the number of seeds.
type Pair struct {
	Scenario *scenarios.Scenario
	Lock     *subject.Subject
	From, To uint64
	kinds    []kind // in the order of their first seeds
	runs     uint64 // that were played: none if the scenario does not apply to the lock
	last     uint64 // the last seed that was played
	met      bool   // some seed was as expected
}

// A kind has the common parts of several verdicts of a pair.
type kind struct {
	word  play.Word
	shown string // the verdict if only the judges counted that the scenario is about; see wordOf
	// asExpected reports whether each run by itself is as expected, without regard to `in: some`.
	asExpected bool
	first      play.Verdict
	runs       uint64
}

// add counts a verdict. It reports whether the verdict is the first of its kind.
func (p *Pair) add(v play.Verdict) (first bool) {
	if v.Word != play.VerdictNotApplicable {
		p.runs++
	}
	p.last = v.Seed
	p.met = p.met || v.AsExpected
	shown := WordOf(v, play.About(p.Scenario))
	for i := range p.kinds {
		if k := &p.kinds[i]; k.word == v.Word && k.shown == shown && k.asExpected == v.AsExpected {
			k.runs++
			return false
		}
	}
	p.kinds = append(p.kinds, kind{word: v.Word, shown: shown, asExpected: v.AsExpected, first: v, runs: 1})
	return true
}

// some reports whether the scenario expects its outcome of one seed only (`in: some`).
func (p *Pair) some() bool { return p.Scenario.Expect[p.Lock.Expected()].Some }

// expected reports whether verdicts such as v are as expected. With `in: some` one seed that
// is as expected stands for all, except for nondeterministic ones.
func (p *Pair) expected(v play.Verdict) bool {
	return v.AsExpected || p.some() && p.met && v.Word != play.VerdictNondeterministic
}

// settled returns a verdict in the light of the other seeds.
func (p *Pair) settled(v play.Verdict) play.Verdict {
	v.AsExpected = p.expected(v)
	return v
}

// PlayPair runs the seeds of a pair until ctx ends, the first one twice. It calls each with each
// verdict, unless each is nil, and forgets the verdict if it is not the first of its kind. With
// `in: some` the verdicts wait until a seed is as expected. If ctx ends before, the pair has no
// verdict.
func PlayPair(a *frame.App, ctx context.Context, p *Pair, progress *progress, each func(play.Verdict) error) error {
	if each == nil {
		each = func(play.Verdict) error { return nil }
	}
	defer progress.clear()
	sim.LimitMemory(frame.WorkerMemory)
	var waiting []play.Verdict
	release := func() error {
		for _, v := range waiting {
			if err := each(p.settled(v)); err != nil {
				return err
			}
		}
		waiting = nil
		return nil
	}
	stopped := false // the run under way was stopped, and has no verdict
	a.Host.Stop = func() bool {
		stopped = stopped || ctx.Err() != nil
		return stopped
	}
	defer func() { a.Host.Stop = nil }()
	run := play.RunTwice
	for seed := p.From; ctx.Err() == nil; seed++ {
		progress.show(p, seed)
		v := run(a.Host, p.Scenario, p.Lock, seed)
		if stopped {
			break
		}
		run = play.Run
		first := p.add(v)
		if v.Word != play.VerdictNotApplicable {
			progress.done++
		}
		switch {
		case p.some() && !p.met:
			if !first {
				v.Played.Record, v.Played.Trace, v.Played.Decisions = nil, nil, nil
			}
			waiting = append(waiting, v)
		default:
			if err := release(); err != nil {
				return err
			}
			if err := each(p.settled(v)); err != nil {
				return err
			}
		}
		if seed == p.To || v.Word == play.VerdictNotApplicable { // p.to may be the largest uint64; if one seed does not apply, none does
			return release()
		}
	}
	if len(waiting) > 0 {
		p.kinds, p.runs = nil, 0
	}
	return nil
}

// forget drops the records, which are large.
func (p *Pair) forget() {
	for i := range p.kinds {
		p.kinds[i].first.Played = play.Played{}
	}
}

// bestFirst are all verdicts, from the best to the worst.
var bestFirst = []play.Word{
	play.VerdictNotApplicable, play.VerdictHeld, play.VerdictLimit, play.VerdictBug, play.VerdictUndecided, play.VerdictNondeterministic,
}

// worst returns the verdict that stands for the pair. An unexpected verdict is worse than an
// expected one, and a bug is worse than a limit.
func (p *Pair) worst() play.Verdict {
	rank := func(v play.Verdict) int {
		r := slices.Index(bestFirst, v.Word)
		if !p.expected(v) {
			r += 10
		}
		return r
	}
	worst := p.kinds[0].first
	for _, k := range p.kinds[1:] {
		if rank(k.first) > rank(worst) {
			worst = k.first
		}
	}
	return p.settled(worst)
}

func (p *Pair) asExpected() bool { return p.unexpectedRuns() == 0 }

// unexpectedRuns returns how many runs were not as expected.
func (p *Pair) unexpectedRuns() (runs uint64) {
	for _, k := range p.kinds {
		if !p.expected(k.first) {
			runs += k.runs
		}
	}
	return runs
}

func (p *Pair) seeds() string {
	if p.From == p.last {
		return strconv.FormatUint(p.From, 10)
	}
	return fmt.Sprintf("%d..%d", p.From, p.last)
}

// runsOf returns how many runs the pairs had.
func runsOf(pairs []*Pair) (runs uint64) {
	for _, p := range pairs {
		runs += p.runs
	}
	return runs
}

func exitCode(pairs []*Pair) int {
	code := frame.ExitOK
	for _, p := range pairs {
		for _, k := range p.kinds {
			switch {
			case p.expected(k.first):
			case k.word == play.VerdictUndecided || k.word == play.VerdictNondeterministic:
				if code == frame.ExitOK {
					code = frame.ExitUndecided
				}
			default:
				code = frame.ExitUnexpected
			}
		}
	}
	return code
}
