package play

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// A Misfit says why a scenario does not apply to a lock. Lacks is the reason without the place in
// the file, so that scenarios with the same reason can be told together.
type Misfit struct {
	Lacks string
	error
}

// Applies returns an error if a scenario is impossible on a lock. The error names the first step that
// the lock does not offer, or the first fault of a server that the lock does not have, or says that
// the lock runs in no simulated world.
func Applies(sc *scenarios.Scenario, l *subject.Subject) error {
	if l.Port != nil {
		lacks := l.Name + " runs on real servers only"
		return &Misfit{lacks, fmt.Errorf("%s: %s; %s stands for it in a simulated world", sc.File, lacks, l.Port.Name)}
	}
	if err := StepsApply(sc, l); err != nil {
		return err
	}
	lacksFault := l.FaultCheck()
	for _, f := range sc.Faults {
		if lacks := lacksFault(f.FaultSpec, f.Servers); lacks != "" {
			return &Misfit{lacks, fmt.Errorf("%s:%d: the fault does not apply: %s", f.Pos.File, f.Pos.Line, lacks)}
		}
	}
	return nil
}

// Plays returns an error that says why Run does not play a scenario on a lock; nil if it does.
func Plays(sc *scenarios.Scenario, l *subject.Subject) error {
	if err := Applies(sc, l); err != nil {
		return err
	}
	return Claims(sc, l)
}

// StepsApply is Applies for the steps of a scenario, whatever its faults are.
func StepsApply(sc *scenarios.Scenario, l *subject.Subject) error {
	for _, s := range sc.All() {
		lacks := ""
		switch {
		case s.Lease != nil && l.Lacks.Leases:
			lacks = "takes no lease from its caller"
		case s.Kind == scenarios.StepTryLock && s.Wait == nil && l.Lacks.SingleTry:
			lacks = "has no try that does not wait"
		case s.Kind == scenarios.StepForceUnlock && l.Lacks.ForceUnlock:
			lacks = "cannot be unlocked by force"
		case s.Kind == scenarios.StepExtend && !l.Extends:
			lacks = "has no extension of a hold by its caller"
		case (s.Kind == scenarios.StepRead || s.Kind == scenarios.StepPublished) && l.Lacks.State:
			lacks = "does not say what the server holds for it"
		case s.Kind == scenarios.StepUse && l.Token == nil && slices.ContainsFunc(sc.Resources, func(r scenarios.Resource) bool { return r.Name == s.Name && r.Fence != "" }):
			lacks = "tells no fencing token, for which " + s.Name + " asks"
		default:
			continue
		}
		lacks = l.Name + " " + lacks
		return &Misfit{lacks, fmt.Errorf("%s:%d: the step %s does not apply: %s", s.Pos.File, s.Pos.Line, s.Kind, lacks)}
	}
	return nil
}

// About returns the judges that a scenario is about: those that each of its expected bugs and
// limits names. It returns all judges if the scenario expects no bug and no limit.
func About(sc *scenarios.Scenario) []string {
	return slices.DeleteFunc(slices.Clone(model.Judges), func(judge string) bool {
		for _, e := range sc.Expect {
			if (e.Class == scenarios.Bug || e.Class == scenarios.Limit) && !slices.Contains(e.Judges, judge) {
				return true
			}
		}
		return false
	})
}

// Claims returns an error if a scenario asks about a property that the lock does not claim: a state
// that each run must reach, an outcome that a step must have, or a promise. The run then shows nothing
// about the lock. Claims returns nil if the scenario expects the lock to break a promise that it
// makes, since the run shows that, whatever the lock does not claim.
func Claims(sc *scenarios.Scenario, l *subject.Subject) error {
	if breaksItsOwn(sc, l) {
		return nil
	}
	levels, extended := !l.Uncounted && !l.NonReentrant, false
	noLevels := l.Name + " counts no levels of a hold"
	for t := range sc.Threads {
		if s := reentry(sc.Threads[t].Steps); s != nil && !levels {
			return &Misfit{noLevels, fmt.Errorf("%s:%d: the step %s enters again, and %s", s.Pos.File, s.Pos.Line, s.Kind, noLevels)}
		}
	}
	for _, s := range sc.All() {
		if onlyWants(s, model.StillHeld) && !levels {
			return &Misfit{noLevels, fmt.Errorf("%s:%d: the step %s gives up one level of several, and %s", s.Pos.File, s.Pos.Line, s.Kind, noLevels)}
		}
		extended = extended || s.Kind == scenarios.StepExtend
	}
	for _, state := range sc.Reach {
		lacks := ""
		switch {
		case state == "renewed" && (l.NoWatchdog || l.Endless) && !extended:
			lacks = "nothing renews a hold"
		case state == "reentered" && !levels:
			lacks = "there are no levels of a hold"
		case state == "waiter_evicted" && !l.Deadlines:
			lacks = "waiters have no deadline"
		default:
			continue
		}
		lacks = "on " + l.Name + " " + lacks
		return &Misfit{lacks, fmt.Errorf("%s: each run must reach %s, and %s", sc.File, state, lacks)}
	}
	about, params := About(sc), Params(sc, l)
	why := ""
	for _, judge := range about {
		promise, promised := params.Promise(judge)
		if promised {
			return nil
		}
		if promise.Waived && why == "" {
			why = ": " + promise.Source
		}
	}
	if len(about) == 0 {
		return nil
	}
	lacks := fmt.Sprintf("%s does not promise %s", l.Name, strings.Join(about, ", "))
	return &Misfit{lacks, fmt.Errorf("%s: the scenario is about %s, which %s does not promise%s", sc.File, strings.Join(about, ", "), l.Name, why)}
}

// breaksItsOwn reports whether a scenario expects that a lock breaks a promise that it makes. The
// outcomes that steps want are not promises of the lock.
func breaksItsOwn(sc *scenarios.Scenario, l *subject.Subject) bool {
	e, params := sc.Expect[l.Expected()], Params(sc, l)
	return (e.Class == scenarios.Bug || e.Class == scenarios.Limit) && slices.ContainsFunc(e.Judges, func(judge string) bool {
		_, promised := params.Promise(judge)
		return promised && judge != model.JudgeWant
	})
}

// reentry returns the first step that takes the lock that the step before it took, if both must
// be granted; nil if there is none.
func reentry(steps []scenarios.Step) *scenarios.Step {
	for i := range steps {
		s := &steps[i]
		if i > 0 && steps[i-1].Name == s.Name && onlyWants(&steps[i-1], model.Granted) && onlyWants(s, model.Granted) {
			return s
		}
		if within := reentry(s.Steps); within != nil {
			return within
		}
	}
	return nil
}

// onlyWants reports whether a step accepts this outcome and no other.
func onlyWants(s *scenarios.Step, outcome model.Outcome) bool {
	return len(s.Want) == 1 && s.Want[0] == string(outcome)
}
