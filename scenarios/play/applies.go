package play

import (
	"fmt"
	"slices"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Applies returns an error that names the first step of a scenario that the lock does
// not offer, or the first fault of a server that the lock does not have; nil if there is
// none.
func Applies(sc *scenarios.Scenario, l *subject.Subject) error {
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
	var nodes []sim.Node
	for _, f := range sc.Faults {
		for _, number := range f.Servers {
			if n := l.Servers.Count(); number > n {
				return fmt.Errorf("%s:%d: the fault does not apply: it strikes server %d, and %s has %d", f.Pos.File, f.Pos.Line, number, l.Name, n)
			}
		}
		if !f.StepsServerClock() {
			continue
		}
		if nodes == nil {
			nodes = l.Servers.New(nil, subject.ServerOptions{}).Nodes
		}
		for i, n := range nodes {
			if _, ok := n.Server.(sim.Clocked); !ok && (len(f.Servers) == 0 || slices.Contains(f.Servers, i+1)) {
				return fmt.Errorf("%s:%d: the fault does not apply: server %d of %s has no wall clock", f.Pos.File, f.Pos.Line, i+1, l.Name)
			}
		}
	}
	return nil
}
