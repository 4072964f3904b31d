package explore

import (
	"bytes"
	"context"
	"fmt"

	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/explore/strategy"
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Cover plays the schedules of a search until ctx ends, and adds them up as the runs of a
// campaign with that plan. Each kind of failure is made small within budget runs, but only
// until expired reports true, and its recording names the command that starts this program.
// Cover calls progress after each schedule, and making before each
// failure, unless they are nil.
func Cover(ctx context.Context, h *sim.Host, p Plan, s *strategy.Search, budget int, program string, expired func() bool, progress func(Progress), making func(ShrinkProgress)) (Tally, []Shrunk, error) {
	// A campaign keeps scenarios, and plays a run again to make it small. Here the
	// decisions differ, and not the scenarios.
	f := newFamily(nil)
	least := map[string]failure.Failure{}
	var steps int64
	cov := s.Run(h, func(n int, v play.Verdict) bool {
		v.Played.Strategy = StrategyExhaustive
		r := Run{Index: n - 1, Seed: v.Seed, From: -1, Word: v.Word, Why: sentence.Verdict(v), Steps: int64(v.Played.Steps), SimNs: v.Played.SimNs, States: strategy.States(v.Played.Trace)}
		for _, x := range sightings(h, v) {
			x.Faults = failure.FaultsMet(v, x.finding)
			if f.smallest(x.Failed) {
				least[x.key()] = failure.Failure{Verdict: v, Finding: x.finding}
			}
			r.Failures = append(r.Failures, x.Failed)
		}
		f.add(r)
		steps += r.Steps
		if progress != nil {
			progress(Progress{Runs: n, Played: n, Steps: steps, States: len(f.states), Groups: len(f.best)})
		}
		return ctx.Err() == nil
	})
	p.Runs = s.MaxRuns
	o := Sum(p, f.runs)
	o.Coverage = &cov
	o.Missing, o.Medians = 0, nil // nobody knows how many there are, and their order is not chance
	small := make([]Shrunk, len(o.Groups))
	for i, g := range o.Groups {
		if making != nil {
			making(ShrinkProgress{Done: i, Begun: i + 1, Of: len(o.Groups)})
		}
		var err error
		if small[i], err = shrunk(h, p, ShrinkTask{Run: g.Least, Failed: g.Failed, Budget: budget, Program: program}, least[g.key()], expired); err != nil {
			return o, nil, err
		}
	}
	return o, small, nil
}

// sighting is a finding of a run, and the part of it that is kept.
type sighting struct {
	Failed
	finding judges.Finding
}

// sightings returns the broken findings of a run, one per judge, class, kind of operation
// and cause.
func sightings(h *sim.Host, v play.Verdict) (out []sighting) {
	n, seen := failure.NewNamer(h, v), map[string]bool{}
	for _, f := range v.Findings {
		if f.Verdict == judges.Undecided {
			continue
		}
		origin, _ := failure.OriginOf(n, f)
		x := sighting{Failed{Group: failure.Group{Judge: f.Judge, Class: f.Class, Op: failure.OpOf(v, f)}, Origin: origin, Why: sentence.Finding(f), Size: failure.Size(v)}, f}
		if !seen[x.key()] {
			seen[x.key()] = true
			out = append(out, x)
		}
	}
	return out
}

// needs returns the group of a failure with the faults that the failure needs, and the number
// of runs that it took to find out. Several failures of one run may share played, see
// shrink.WithoutFaults.
func needs(h *sim.Host, f failure.Failure, played map[string]play.Verdict) (failure.Group, int) {
	bare, runs := shrink.WithoutFaults(h, f, played)
	return bare.Group(), runs
}

// shrunk makes f, the failure of a task, small.
func shrunk(h *sim.Host, p Plan, t ShrinkTask, f failure.Failure, expired func() bool) (Shrunk, error) {
	cut := false
	small, phases := shrink.Shrink(h, f, t.Budget, func() bool {
		cut = cut || expired != nil && expired()
		return cut
	})
	s := Shrunk{
		Run: t.Run.Index, Group: small.Group(), Size: failure.Size(small.Verdict), Runs: phases.Runs(), Why: sentence.Finding(small.Finding),
		Seed: small.Verdict.Seed, Seeded: small.Seeded, Unfinished: cut,
	}
	if cut {
		s.Group.Faults = t.Failed.Faults // finding out which faults it needs takes more runs
	} else {
		var more int
		s.Group, more = needs(h, small, nil)
		s.Runs += more
	}
	n := failure.NewNamer(h, small.Verdict)
	s.Origin, s.Cause = failure.OriginOf(n, small.Finding)
	s.Control = small.Verdict.Shown(h, small.Finding)
	s.Parting = failure.PartingOf(n, small.Finding)
	var b bytes.Buffer
	comment := []string{
		fmt.Sprintf("Lockstep recording: lock %s, made of run %d of %s: %s", p.Lock, t.Run.Index, p, small.Verdict.Word),
		small.Finding.Judge + ": " + sentence.Finding(small.Finding),
		"replay: " + t.Program + " replay THIS_FILE",
	}
	if err := small.Verdict.Recording().Write(&b, comment); err != nil {
		return s, err
	}
	s.Recording = b.String()
	return s, nil
}
