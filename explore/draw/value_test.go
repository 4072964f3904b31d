package draw_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// rapidChooser draws decisions from rapid, so that rapid makes a scenario small.
type rapidChooser struct{ t *rapid.T }

func (c rapidChooser) Choose(stream string, n uint64) uint64 {
	return rapid.Uint64Range(0, n-1).Draw(c.t, stream)
}

// A scenario that was drawn, or aimed, is written to a file from which the loader reads the same
// scenario. Aiming leaves the scenario that it begins with as it is.
func TestADrawnScenarioIsReadAsItWasDrawn(t *testing.T) {
	locks, aimed := subject.All(), 0
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom(locks).Draw(t, "lock")
		p := rapid.SampledFrom(draw.Profiles).Draw(t, "profile")
		classes := rapid.SliceOfDistinct(rapid.SampledFrom(draw.Classes), rapid.ID).Draw(t, "classes")
		c := rapidChooser{t}
		drawn := draw.New(c, l, p, classes)
		sameWhenRead(t, drawn)
		o := openingIn(t, drawn, l)
		kinds := draw.Kinds(l, classes, o.Moment)
		if len(kinds) == 0 {
			return
		}
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		before := drawn.Clone()
		if !draw.CanAim(o, k) {
			return
		}
		if more, ok := draw.Aim(c, drawn, l, p, classes, o, k); ok {
			sameWhenRead(t, more)
			aimed++
		}
		if !reflect.DeepEqual(drawn.Scenario, before) {
			t.Fatalf("aiming changed\n%+v\nto\n%+v", before, drawn.Scenario)
		}
	})
	if !t.Failed() && aimed == 0 {
		t.Error("no fault was aimed")
	}
}

// openingIn draws an opening of a run of the scenario.
func openingIn(t *rapid.T, drawn draw.Scenario, l *subject.Subject) coverage.Opening {
	script := rapid.SampledFrom(drawn.Threads).Draw(t, "thread")
	from := rapid.Int64Range(0, 60_000_000_000).Draw(t, "from")
	return coverage.Opening{
		Cell:    coverage.Cell{Op: model.ActLock, Moment: rapid.SampledFrom(coverage.Moments).Draw(t, "moment")},
		Process: script.Process, Thread: model.ThreadName(script.Process, script.Thread), Lock: "x",
		FromNs: from, ToNs: from + rapid.Int64Range(1_000, 5_000_000_000).Draw(t, "length"), LeftNs: rapid.Int64Range(0, 30_000_000_000).Draw(t, "left"),
		Role: rapid.SampledFrom(append([]model.Role{""}, model.Roles...)).Draw(t, "role"), Command: "GET", Nth: rapid.IntRange(0, 4).Draw(t, "nth"),
	}
}

func sameWhenRead(t *rapid.T, drawn draw.Scenario) {
	t.Helper()
	drawn.SetFile("drawn.yaml")
	read, err := scenarios.Parse("drawn.yaml", []byte(drawn.Text), scenarios.AnyLock)
	if err != nil || !reflect.DeepEqual(read, drawn.Scenario) {
		t.Fatalf("drawn:\n%+v\nread:\n%+v, %v\n%s", drawn.Scenario, read, err, drawn.Text)
	}
}

// The same for many seeds, since most of what rapid draws is small.
func TestScenariosOfSeedsAreReadAsTheyWereDrawn(t *testing.T) {
	for _, l := range subject.All() {
		for _, p := range draw.Profiles {
			for seed := range uint64(longtest.Size(t, 4, 200)) {
				drawn := draw.New(sim.NewSeeded(seed), l, p, draw.Classes)
				drawn.SetFile("drawn.yaml")
				read, err := scenarios.Parse("drawn.yaml", []byte(drawn.Text), scenarios.AnyLock)
				if err != nil || !reflect.DeepEqual(read, drawn.Scenario) {
					t.Fatalf("%s, %s, seed %d: drawn\n%+v\nread\n%+v, %v\n%s", l.Name, p, seed, drawn.Scenario, read, err, drawn.Text)
				}
			}
		}
	}
}
