package draw

import (
	"time"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// fit removes from drawn steps the parts that the lock does not offer. A try that does
// not wait becomes one that waits for a moment, an unlock by force an unlock, and an
// extension a sleep of no time.
func fit(steps []scenarios.Step, l *subject.Subject) {
	lacks := l.Lacks
	for i := range steps {
		s := &steps[i]
		if lacks.Leases {
			s.Lease = nil
		}
		if lacks.SingleTry && s.Kind == scenarios.StepTryLock && s.Wait == nil {
			moment := 10 * time.Millisecond
			s.Wait = &moment
		}
		if lacks.ForceUnlock && s.Kind == scenarios.StepForceUnlock {
			s.Kind = scenarios.StepUnlock
		}
		if s.Kind == scenarios.StepExtend && !l.Extends {
			*s = scenarios.Step{Kind: scenarios.StepSleep, Pos: s.Pos}
		}
		fit(s.Steps, l)
	}
}
