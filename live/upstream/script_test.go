package upstream

import (
	"errors"
	"testing"

	"lockstep/model"
	"lockstep/scenarios"
)

// A test in one process can follow a rule about one message. It follows no rule that waits for what happens
// elsewhere, and none that lets the first messages pass.
func TestWhichRulesATestFollows(t *testing.T) {
	for _, library := range []*Library{nil, {}} {
		s := scripted{r: &Report{Defect: Defect{Library: library}}}
		for _, c := range []struct {
			name    string
			rule    model.FaultSpec
			follows bool
		}{
			{"one message", model.FaultSpec{When: model.When{Nth: 1}}, true},
			{"all but the first", model.FaultSpec{When: model.When{After: 1}}, false},
			{"until a grant", model.FaultSpec{When: model.When{Nth: 1}, Awaits: &model.Condition{Granted: "a"}}, false},
		} {
			c.rule.Kind, c.rule.Do = model.FaultRule, "drop"
			faults, err := s.faults(scenarios.Fault{FaultSpec: c.rule})
			if (err == nil) != c.follows || (len(faults) == 1) != c.follows || err != nil && !errors.Is(err, ErrInexpressible) {
				t.Errorf("%s: %v, %v; want that the test follows it: %t", c.name, faults, err, c.follows)
			}
		}
	}
}
