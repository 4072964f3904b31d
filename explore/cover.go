package explore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockstep/linearizability"
	"lockstep/scenarios"
	"lockstep/sim"
)

// Cover plays the schedules of a search, until ctx ends, and adds them up as
// those of a campaign: the plan says of what. Each kind of failure is there once,
// made small in budget runs. progress, unless nil, is told after each schedule.
func Cover(ctx context.Context, h *sim.Host, p Plan, s *Search, budget int, progress func(Progress)) (Tally, []Shrunk, error) {
	// A campaign keeps scenarios, and plays what is to be made small again. Here
	// it is the decisions that differ.
	f := newFamily()
	least := map[string]Failure{}
	var steps int64
	cov := s.Run(h, func(n int, v scenarios.Verdict) bool {
		v.Played.Strategy = StrategyExhaustive
		r := Run{Index: n - 1, Seed: v.Seed, From: -1, Word: v.Word, Why: v.Why, Steps: int64(v.Played.Steps), SimNs: v.Played.SimNs, States: States(v.Played.Record)}
		for _, found := range broken(v) {
			g := Group{Judge: found.Judge, Class: found.Class, Op: kindOf(v, found), Faults: kindsMet(v, found)}
			failed := failedOf(h, v, found, g)
			if f.smallest(failed) {
				least[failed.key()] = Failure{Verdict: v, Finding: found}
			}
			r.Failures = append(r.Failures, failed)
		}
		f.add(r)
		steps += r.Steps
		if progress != nil {
			progress(Progress{Runs: n, Steps: steps, States: len(f.states), Groups: len(f.best)})
		}
		return ctx.Err() == nil
	})
	p.Runs = s.MaxRuns
	o := Sum(p, f.runs)
	o.Coverage = &cov
	o.Missing, o.Medians = 0, nil // nobody knows how many there are, and their order is not chance
	small := make([]Shrunk, len(o.Groups))
	for i, g := range o.Groups {
		var err error
		if small[i], err = shrunk(h, p, g.Least.Index, least[g.key()], budget); err != nil {
			return o, nil, err
		}
	}
	return o, small, nil
}

// broken gives the findings of a run that are broken, one of a judge and class.
func broken(v scenarios.Verdict) (out []linearizability.Finding) {
	seen := map[string]bool{}
	for _, f := range v.Findings {
		if f.Verdict == linearizability.Undecided || seen[f.Judge+string(f.Class)] {
			continue
		}
		seen[f.Judge+string(f.Class)] = true
		out = append(out, f)
	}
	return out
}

// failedOf is a finding as a run keeps it.
func failedOf(h *sim.Host, v scenarios.Verdict, f linearizability.Finding, g Group) Failed {
	failed := Failed{Group: g, Why: f.Why, Size: Size(v)}
	failed.Defect, failed.Excuse = causeOf(h, v, f)
	return failed
}

// causeOf is the known defect that a bug comes of, or what excuses a limit.
func causeOf(h *sim.Host, v scenarios.Verdict, f linearizability.Finding) (defect, excuse string) {
	if f.Class == linearizability.ClassBug {
		return DefectOf(h, v, f), ""
	}
	var words []string
	for _, e := range f.Excuses {
		words = append(words, string(e.Circumstance))
	}
	slices.Sort(words)
	return "", strings.Join(slices.Compact(words), ", ")
}

// shrunk makes a failure of a run of the plan small.
func shrunk(h *sim.Host, p Plan, run int, f Failure, budget int) (Shrunk, error) {
	small, runs := Shrink(h, f, budget)
	group, more := Needs(h, small)
	s := Shrunk{Run: run, Group: group, Size: Size(small.Verdict), Runs: runs + more, Why: small.Finding.Why, Seed: small.Verdict.Seed}
	if small.Seeded {
		s.Scenario = small.Verdict.Scenario.Text
	}
	s.Defect, s.Excuse = causeOf(h, small.Verdict, small.Finding)
	var b bytes.Buffer
	comment := []string{
		fmt.Sprintf("Lockstep recording: lock %s, made of run %d of %s: %s", p.Lock, run, p, small.Verdict.Word),
		small.Finding.Judge + ": " + small.Finding.Why,
		"replay: go run ./cmd/simrun replay THIS_FILE",
	}
	if err := small.Verdict.Recording().Write(&b, comment); err != nil {
		return s, err
	}
	s.Recording = b.String()
	return s, nil
}
