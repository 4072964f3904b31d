package play

import (
	"strings"
	"testing"

	"lockstep/lockimpl"
	"lockstep/scenarios"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A run that differed once and never again is explained, too: one of the two records that differ is at
// hand.
func TestADifferenceThatDoesNotComeAgainIsExplained(t *testing.T) {
	sc, err := scenarios.Find("pause-past-lease")
	if err != nil {
		t.Fatal(err)
	}
	once, ever := scenariotest.Lock(t, "setnx-del"), scenariotest.Lock(t, "setnx-cad")
	h, opened, odd := sim.NewHost(t), 0, 0
	l := *ever
	l.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		opened++
		if (opened-1)/len(sc.Processes)+1 == odd {
			return once.Open(p, o)
		}
		return ever.Open(p, o)
	}
	Run(h, sc, &l, 1)
	for name, play := range map[string]int{"the first play differs": 1, "the second differs": opened/len(sc.Processes) + 1, "none differs": 0} {
		t.Run(name, func(t *testing.T) {
			opened, odd = 0, play
			v := RunTwice(h.For(t), sc, &l, 1)
			if differs := v.Word == VerdictNondeterministic; differs != (play > 0) {
				t.Fatalf("the verdict is %s", v.Word)
			}
			for _, want := range []string{"; the records differ from event ", "\nwritten by "} {
				if strings.Contains(v.Why, want) != (play > 0) {
					t.Errorf("the verdict says %q, want %q: %t", v.Why, want, play > 0)
				}
			}
		})
	}
}
