package explore

import (
	"slices"
	"strings"
	"testing"

	"lockstep/scenarios/scenariotest"

	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/linearizability/judges"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A run that breaks one judge for several causes has one failure per cause. Shrinking does
// not turn one of them into another.
func TestEachCauseIsAFailureOfItsOwn(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		lock, judge string
		class       judges.Class
		steps       string
		want        []string // causes
	}{
		{"redisson@4.7.0", "mutual-exclusion", judges.ClassLimit, `
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1: [{lock: {name: x, lease: 9s}}, {sleep: 8s}]
  b/1: [{at: 1s}, {force_unlock: x}, {lock: {name: x, lease: 9s}}]
  c/1: [{lock: {name: y, lease: 2s}}, {sleep: 8s}]
  d/1: [{lock: y}]
faults:
  - {at: 1s, pause: c, for: 5s}
`, []string{"hold removed by another hand", "holder paused past its lease"}},
		{"redisson@3.21.3", "lease", judges.ClassBug, `
processes: {a: {}, b: {}}
steps:
  a/1:
    - lock: {name: x, lease: 10s}
    - repeat: {times: 2, steps: [{lock: {name: x, lease: 10s}}]}
    - repeat: {times: 3, steps: [{unlock: x}]}
  b/1: [{lock: y}, {lock: {name: y, lease: 60s}}, {unlock: y}, {sleep: 70s}]
`, []string{"R-5623", "R-watchdog-leased-level"}},
	} {
		sc, err := scenarios.Parse("drawn.yaml", []byte("lockstep: 1\nname: drawn\nabout: drawn\nlocks: ["+c.lock+"]\nnetwork: {latency: 100us}"+c.steps), subject.Find)
		if err != nil {
			t.Fatal(err)
		}
		v := play.Run(h, sc, scenariotest.Lock(t, c.lock), 1)
		for _, x := range sightings(h, v) {
			if x.Judge != c.judge || x.Class != c.class {
				continue
			}
			cause := x.Defect + x.Excuse
			i := slices.IndexFunc(c.want, func(w string) bool { return strings.HasPrefix(cause, w) })
			if i < 0 {
				t.Errorf("%s: %s", cause, x.Why)
				continue
			}
			c.want = slices.Delete(c.want, i, i+1)
			small, _ := shrink.Shrink(h, failure.Failure{Verdict: v, Finding: x.finding, Seeded: true}, 500, nil)
			if is, _ := failure.OriginOf(failure.NewNamer(h, small.Verdict), small.Finding); x.Origin != is || len(small.Verdict.Scenario.Threads) >= len(sc.Threads) {
				t.Errorf("%s became %v:\n%s", cause, is, small.Verdict.Scenario.Text)
			}
		}
		if len(c.want) > 0 {
			t.Errorf("nobody says %q", c.want)
		}
	}
}
