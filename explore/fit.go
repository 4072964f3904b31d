package explore

import (
	"time"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// fit removes from drawn steps the parts that the lock does not offer. A try that does
// not wait becomes one that waits for a moment, and an unlock by force an unlock.
func fit(steps []scenarios.Step, lacks subject.Lacks) {
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
		fit(s.Steps, lacks)
	}
}
