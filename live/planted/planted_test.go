package planted_test

import (
	"slices"
	"strings"
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/live/planted"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// Each planted bug has one story. In the simulated world its judge finds a bug with each seed of the
// story, and finds none on the lock without the bug.
func TestEachPlantedBugHasAStoryThatShowsIt(t *testing.T) {
	h := sim.NewHost(t)
	stories, err := planted.Stories()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range subject.PlantedBugs() {
		l, err := subject.Find(subject.PlantedPrefix + b.Name)
		if err != nil {
			t.Fatal(err)
		}
		var of []*scenarios.Scenario
		for _, sc := range stories {
			if slices.Contains(sc.Locks, l.Name) {
				of = append(of, sc)
			}
		}
		if len(of) != 1 {
			t.Errorf("%s has %d stories, want 1", b.Name, len(of))
			continue
		}
		sc := of[0]
		if !slices.Equal(sc.Expect[l.Name].Judges, []string{b.Judge}) {
			t.Errorf("%s: the story names the judges %q, want %s", b.Name, sc.Expect[l.Name].Judges, b.Judge)
		}
		for seed := sc.SeedFirst; seed <= sc.SeedLast; seed++ {
			if v := play.Run(h, sc, l, seed); !finds(v, b.Judge) {
				t.Errorf("%s, seed %d: %s finds no bug in %s", b.Name, seed, b.Judge, sc.Name)
			}
			if v := play.Run(h, sc, l.Unplanted(), seed); finds(v, b.Judge) {
				t.Errorf("%s, seed %d: %s finds a bug in %s on %s", b.Name, seed, b.Judge, sc.Name, b.Base)
			}
		}
	}
}

func finds(v play.Verdict, judge string) bool {
	return slices.ContainsFunc(v.Findings, func(f judges.Finding) bool { return f.Judge == judge && f.Class == judges.ClassBug })
}

// A story is of planted bugs alone, and its name is that of its file.
func TestTheStoriesAreOfPlantedBugs(t *testing.T) {
	stories, err := planted.Stories()
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range stories {
		if sc.File != "live/planted/stories/"+sc.Name+".yaml" {
			t.Errorf("%s has the name %s", sc.File, sc.Name)
		}
		for _, name := range sc.Locks {
			if !strings.HasPrefix(name, subject.PlantedPrefix) {
				t.Errorf("%s is also of %s", sc.File, name)
			}
		}
	}
}
