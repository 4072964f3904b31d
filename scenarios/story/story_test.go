package story

import (
	"testing"
	"time"

	"lockstep/scenarios"
)

// Each story is a scenario for any lock to which it applies, and no two have the same name.
func TestEachStoryIsAScenario(t *testing.T) {
	locks := []Lock{
		{Name: "bare", Servers: 1, Key: "orders"},
		{Name: "all", Lease: 30 * time.Second, Renewed: true, RenewEvery: 10 * time.Second, Servers: 3, Key: "orders:*", Reentrant: true, Leases: true, Watched: true, Extends: true, Tries: true, Forces: true},
		{Name: "renewed", Lease: 9 * time.Second, Renewed: true, RenewEvery: 3 * time.Second, Servers: 1, Key: "orders", Watched: true},
		{Name: "by hand", Lease: 3 * time.Second, Servers: 1, Key: "orders", Extends: true, Tries: true, Fenced: true, Durable: true},
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

// The names in soonest are names of stories, and All begins with these.
func TestTheOrderOfTheStories(t *testing.T) {
	if len(All) != len(Basic)+len(more)+len(requests) {
		t.Errorf("%d stories of %d", len(All), len(Basic)+len(more)+len(requests))
	}
	for i, name := range soonest {
		if i >= len(All) || All[i].Name != name {
			t.Errorf("story %d is not %s", i, name)
		}
	}
}
