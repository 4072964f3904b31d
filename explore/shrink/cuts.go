package shrink

import (
	"slices"

	"lockstep/model"
	"lockstep/scenarios"
)

// cuts returns functions that each remove one part of a scenario. Several of them are called from the
// last to the first.
type cuts func(sc *scenarios.Scenario) []func()

// try considers a changed copy of the best scenario.
func (s *shrinker) try(change func(sc *scenarios.Scenario)) bool {
	return s.consider(s.changed(s.best.sc, change), s.best.seed, s.best.decisions)
}

// thin removes as many parts of one kind as it can: all of them, halves, quarters, and
// so on down to single parts, from the end, until no part that is left can go.
func (s *shrinker) thin(cuts cuts) {
	n := len(cuts(s.best.sc))
	for size := n; size > 0 && s.left > 0; {
		went := false
		for end := n; end > 0; end -= size {
			from := max(0, end-size)
			if s.try(func(sc *scenarios.Scenario) {
				for _, remove := range slices.Backward(cuts(sc)[from:end]) {
					remove()
				}
			}) {
				// Removing a step removes the steps within it.
				n = len(cuts(s.best.sc))
				end = min(end, n+size)
				went = true
			}
		}
		if size == 1 && !went {
			return
		}
		size = max(1, min(size/2, n))
	}
}

// each tries changes one by one.
func (s *shrinker) each(changes cuts) {
	for i := 0; i < len(changes(s.best.sc)) && s.left > 0; i++ {
		if s.try(func(sc *scenarios.Scenario) { changes(sc)[i]() }) {
			i = -1
		}
	}
}

// processCuts returns functions that each remove a process.
func processCuts(sc *scenarios.Scenario) (out []func()) {
	for _, p := range sc.Processes {
		out = append(out, func() { sc.DropProcess(p.Name) })
	}
	return out
}

// threadCuts returns functions that each remove a thread.
func threadCuts(sc *scenarios.Scenario) (out []func()) {
	for _, p := range sc.Processes {
		for i := range p.Threads {
			out = append(out, func() { sc.DropThread(p.Name, i+1) })
		}
	}
	return out
}

// stepCuts returns functions that each remove a step with the steps within it.
func stepCuts(sc *scenarios.Scenario) []func() {
	return stepCutsOf(sc, func(scenarios.StepKind) bool { return true })
}

// claimCuts returns functions that each remove a step that only checks a state or a count.
func claimCuts(sc *scenarios.Scenario) []func() {
	return stepCutsOf(sc, func(k scenarios.StepKind) bool { return k == scenarios.StepRead || k == scenarios.StepPublished })
}

// stepCutsOf is stepCuts for the steps of some kinds.
func stepCutsOf(sc *scenarios.Scenario, is func(scenarios.StepKind) bool) (out []func()) {
	for _, p := range sc.Places() {
		if is(p.Step().Kind) {
			out = append(out, func() { p.Replace() })
		}
	}
	return out
}

// unwrappings returns functions that each replace a step by the steps within it. A second function for
// a with_lock also keeps the attempt to lock.
func unwrappings(sc *scenarios.Scenario) (out []func()) {
	for _, p := range sc.Places() {
		s := p.Step()
		if s.Kind != scenarios.StepWithLock && s.Kind != scenarios.StepRepeat {
			continue
		}
		out = append(out, func() { p.Replace(s.Steps...) })
		if s.Kind == scenarios.StepWithLock {
			out = append(out, func() {
				take := scenarios.Step{Kind: scenarios.StepLock, Name: s.Name, Lease: s.Lease, Wait: s.Wait}
				if s.Wait != nil {
					take.Kind = scenarios.StepTryLock
				}
				p.Replace(append([]scenarios.Step{take}, s.Steps...)...)
			})
		}
	}
	return out
}

// faultCuts returns functions that each remove a fault.
func faultCuts(sc *scenarios.Scenario) (out []func()) {
	for i := range sc.Faults {
		out = append(out, func() { sc.Faults = slices.Delete(sc.Faults, i, i+1) })
	}
	return out
}

// needCuts returns functions that each remove a fault, an interrupt or a skewed clock.
func needCuts(sc *scenarios.Scenario) []func() {
	out := append(faultCuts(sc), stepCutsOf(sc, func(k scenarios.StepKind) bool { return k == scenarios.StepInterrupt })...)
	for i := range sc.Processes {
		if p := &sc.Processes[i]; p.WallOffset != 0 || p.WallDriftPPM != 0 {
			out = append(out, func() { p.WallOffset, p.WallDriftPPM = 0, 0 })
		}
	}
	return out
}

// narrowings returns functions that each let a rule meet one message instead of several.
func narrowings(sc *scenarios.Scenario) (out []func()) {
	for i := range sc.Faults {
		w := &sc.Faults[i].When
		if sc.Faults[i].Kind != model.FaultRule || w.Nth > 0 {
			continue
		}
		nth := []int{1, 2, 3}
		if w.Every > 0 {
			nth = []int{w.Every}
		}
		if w.After > 0 {
			nth = []int{w.After + 1}
		}
		for _, n := range nth {
			out = append(out, func() { w.Every, w.After, w.Nth = 0, 0, n })
		}
	}
	return out
}
