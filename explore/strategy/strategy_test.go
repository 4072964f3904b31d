package strategy

import (
	"testing"

	"lockstep/sim"
)

func TestStrategiesHaveNames(t *testing.T) {
	for _, name := range Names {
		s, ok := New(name, 2)
		if !ok {
			t.Fatalf("there is no strategy %s", name)
		}
		want := NameRandom
		if name == NamePCT {
			want = NamePCT
		}
		if got := s.Schedule(); got != want {
			t.Errorf("%s draws schedules as %s, want %s", name, got, want)
		}
	}
	if _, ok := New("exhaustive", 0); ok {
		t.Error("the exhaustive search draws runs")
	}
}

func TestHowRunsComeAbout(t *testing.T) {
	const tries = 400
	for name, want := range map[string]struct{ fresh, varied int }{ // of a hundred
		NamePlain: {100, 0}, NameRandom: {50, 50}, NamePCT: {50, 50}, NameAimed: {50, 0},
	} {
		s, _ := New(name, 2)
		var fresh, varied, aimed int
		bases := map[int]bool{}
		for seed := range uint64(tries) {
			index := int(seed)
			if next := s.Next(sim.NewSeeded(seed), index, 0); next.Base >= 0 || index == 0 && next.Aimed {
				t.Fatalf("%s changes a run when there is none", name)
			}
			switch next := s.Next(sim.NewSeeded(seed), index, 3); {
			case next.Aimed:
				aimed++
			case next.Base < 0:
				fresh++
			default:
				varied++
				bases[next.Base] = true
			}
		}
		near := func(n, percent int) bool { return n*100 >= (percent-8)*tries && n*100 <= (percent+8)*tries }
		if !near(fresh, want.fresh) || !near(varied, want.varied) || !near(aimed, 100-want.fresh-want.varied) {
			t.Errorf("%s: %d runs anew, %d varied, %d aimed", name, fresh, varied, aimed)
		}
		if want.varied > 0 && len(bases) != 3 || bases[3] {
			t.Errorf("%s changes the runs %v of 3", name, bases)
		}
	}
}
