package play

import (
	"fmt"
	"slices"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// Applies returns an error that names the first step of a scenario that the lock does
// not offer, or the first fault of a server that the lock does not have, or says that the
// lock runs in no simulated world; nil if there is none of these.
func Applies(sc *scenarios.Scenario, l *subject.Subject) error {
	if l.Port != nil {
		return fmt.Errorf("%s: %s runs on real servers only; %s stands for it in a simulated world", sc.File, l.Name, l.Port.Name)
	}
	if err := StepsApply(sc, l); err != nil {
		return err
	}
	for _, f := range sc.Faults {
		if lacks := l.LacksFault(f.FaultSpec, f.Servers); lacks != "" {
			return fmt.Errorf("%s:%d: the fault does not apply: %s", f.Pos.File, f.Pos.Line, lacks)
		}
	}
	return nil
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
		return fmt.Errorf("%s:%d: the step %s does not apply: %s %s", s.Pos.File, s.Pos.Line, s.Kind, l.Name, lacks)
	}
	return nil
}
