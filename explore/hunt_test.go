package explore

import (
	"slices"
	"strings"
	"testing"

	"lockstep/explore/draw"
	"lockstep/linearizability/judges"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// The judge in the row of a planted bug finds the bug in the first run of the campaign with
// the row's seed.
func TestPlantedBugsAreFound(t *testing.T) {
	h := sim.NewHost(t)
	for _, b := range subject.PlantedBugs() {
		t.Run(b.Name, func(t *testing.T) {
			k := hunt(t, h, subject.PlantedPrefix+b.Name, b)
			if k.Runs != 1 {
				t.Errorf("the judge %s says nothing; those that do: %v", b.Judge, k.First)
			}
		})
	}
}

// The lock without the planted bug shows nothing in the same campaign.
func TestNothingIsFoundWhereNothingIsPlanted(t *testing.T) {
	h, bugs := sim.NewHost(t), subject.PlantedBugs()
	for _, name := range []string{"unlock-by-anyone", "reference-out-of-turn", "reference-told-of-no-loss", "reference-handle-asks-anew"} {
		b := bugs[slices.IndexFunc(bugs, func(b *subject.PlantedBug) bool { return b.Name == name })]
		if k := hunt(t, h, b.Base, b); k.Runs != 0 || k.FirstRuns != 0 {
			t.Errorf("%s: found in %s itself: %+v", name, b.Base, k)
		}
	}
}

func hunt(t *testing.T, h *sim.Host, lock string, b *subject.PlantedBug) Kill {
	t.Helper()
	classes, err := draw.ParseClasses(strings.FieldsFunc(b.Faults, func(r rune) bool { return r == ',' }))
	if err != nil {
		t.Fatal(err)
	}
	k, err := Hunt(h, Plan{World: sim.Version, Lock: lock, Faults: classes, Profile: draw.Profile(b.Profile), Strategy: StrategyPlain, Seed: b.Seed, Runs: 1}, b.Judge, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// This lock tells a holder that its hold has ended, although the hold stays. The judge of
// leases finds it.
func TestAHolderThatIsToldOfNoLoss(t *testing.T) {
	bugs := subject.PlantedBugs()
	b := bugs[slices.IndexFunc(bugs, func(b *subject.PlantedBug) bool { return b.Name == "reference-told-of-no-loss" })]
	k := hunt(t, sim.NewHost(t), subject.PlantedPrefix+b.Name, b)
	if k.Failed.Parted != string(judges.PartedTold) {
		t.Errorf("the finding is of a hold that is parted by %q: %s", k.Failed.Parted, k.Failed.Why)
	}
}

// A campaign that seeks bugs ends with the run that shows the last of them, and says of each when it
// was met.
func TestSeekEndsWithTheLastBug(t *testing.T) {
	h := sim.NewHost(t)
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	l, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	bugs := BugsOf(h, play.Run(h, sc, l, 1))
	if len(bugs) == 0 {
		t.Fatal("the scenario shows no bug")
	}
	p := Plan{World: sim.Version, Lock: l.Name, Faults: draw.Classes, Profile: draw.Full, Strategy: StrategyPlain, Seed: 1, Runs: 200}
	last, asked := 0, 0
	met := map[int]int{}
	if err := Seek(h, p, bugs, func(bug, runs int) { met[bug]++; last = runs }, func() bool { asked++; return false }); err != nil {
		t.Fatal(err)
	}
	if len(met) != len(bugs) || last == 0 || last == p.Runs || asked != last-1 {
		t.Errorf("%d bugs, met %v, the last in run %d; asked %d times whether the time is over", len(bugs), met, last, asked)
	}
	asked = 0
	if err := Seek(h, p, []Bug{{Lock: l.Name, Judge: "nobody"}}, func(bug, runs int) { t.Errorf("bug %d is met in run %d", bug, runs) }, func() bool { asked++; return asked == 3 }); err != nil || asked != 3 {
		t.Errorf("asked %d times, error %v", asked, err)
	}
}
