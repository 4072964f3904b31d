package story

import (
	"testing"
	"time"

	"lockstep/scenarios"
)

// Each story is a scenario for any lock to which it applies, and no two have the same name.
func TestEachStoryIsAScenario(t *testing.T) {
	locks := []Lock{
		{Name: "bare", Servers: 1},
		{Name: "all", Lease: 30 * time.Second, Renewed: true, RenewEvery: 10 * time.Second, Servers: 3, Reentrant: true, Leases: true, Watched: true, Extends: true, Tries: true, Forces: true},
		{Name: "by hand", Lease: 3 * time.Second, Servers: 1, Extends: true},
	}
	seen := map[string]bool{}
	for _, s := range All {
		if seen[s.Name] {
			t.Errorf("two stories are called %s", s.Name)
		}
		seen[s.Name] = true
		told := 0
		for _, l := range locks {
			if s.Lacks(l) != "" {
				continue
			}
			told++
			sc := s.Scenario(l)
			again, err := scenarios.Parse("again.yaml", []byte(sc.Write()), scenarios.AnyLock)
			if err != nil || again.Write() != sc.Write() || sc.Name != s.Name || sc.About != s.About {
				t.Errorf("%s for %s: %v\n%s", s.Name, l.Name, err, sc.Write())
			}
		}
		if told == 0 {
			t.Errorf("%s is told of no lock", s.Name)
		}
	}
}
