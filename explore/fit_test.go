package explore

import (
	"slices"
	"strings"
	"testing"

	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// several says that there are five servers. Scenarios are drawn for them and not played.
type several struct{ subject.Servers }

func (several) Count() int { return 5 }

// A scenario that is drawn for a lock applies to it, even if the lock lacks parts of a
// scenario. Faults strike some of several servers.
func TestDrawnScenariosApply(t *testing.T) {
	base := mustFind(t, "setnx-cad")
	little := *base
	little.Name, little.Servers = "little", several{base.Servers}
	little.Lacks = subject.Lacks{Leases: true, SingleTry: true, ForceUnlock: true, State: true}
	leases, struck := 0, map[int]int{} // by the number of servers
	for seed := range uint64(300) {
		for _, profile := range []Profile{Simple, Full} {
			text := Draw(sim.NewSeeded(seed), &little, profile, Classes)
			if seed%2 == 1 {
				text = Vary(sim.NewSeeded(seed), text, &little, profile, Classes)
			}
			sc, err := scenarios.Parse("drawn.yaml", []byte(text), anyLock)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if err := play.Applies(sc, &little); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, f := range sc.Faults {
				struck[len(f.Servers)]++
				if !slices.IsSorted(f.Servers) {
					t.Errorf("the servers %v", f.Servers)
				}
			}
			leases += strings.Count(Draw(sim.NewSeeded(seed), base, profile, Classes), "lease: ")
		}
	}
	if leases == 0 {
		t.Error("no lock is drawn a lease: the test shows nothing")
	}
	for _, n := range []int{0, 1, 2, 3} {
		if struck[n] == 0 {
			t.Errorf("no fault strikes %d servers (0: all): %v", n, struck)
		}
	}
}

// A lock with extensions is drawn some, and a scenario that has them loses them when it is
// varied for a lock without.
func TestExtensionsAreDrawnForLocksThatHaveThem(t *testing.T) {
	base := mustFind(t, "setnx-cad")
	extends := *base
	extends.Extends = true
	drawn := map[Profile]int{}
	for seed := range uint64(100) {
		for _, profile := range []Profile{Simple, Full} {
			text := Draw(sim.NewSeeded(seed), &extends, profile, Classes)
			if !strings.Contains(text, "- extend: ") {
				continue
			}
			drawn[profile]++
			varied := Vary(sim.NewSeeded(seed), text, base, profile, Classes)
			if sc, err := scenarios.Parse("varied.yaml", []byte(varied), anyLock); err != nil || play.Applies(sc, base) != nil {
				t.Fatalf("%v\n%s", err, varied)
			}
			if strings.Contains(Draw(sim.NewSeeded(seed), base, profile, Classes), "extend") {
				t.Fatal("an extension is drawn for a lock without")
			}
		}
	}
	if drawn[Simple] == 0 || drawn[Full] == 0 {
		t.Errorf("extensions are drawn in %v of 100 scenarios", drawn)
	}
}
