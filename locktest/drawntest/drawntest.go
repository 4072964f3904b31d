// Package drawntest plays drawn runs and the stories of a lock for tests, and renews the holds of such locks.
package drawntest

import (
	"testing"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/waking"
	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// plays is how often a run is played. If chance decides evenly between two records, all plays are the
// same in one of 64 tests.
const plays = 7

// Repeats plays each of these runs of the command repeat several times, as it draws them for the lock
// from the seed 1. Every second play has goroutines beside it that change the order of those of the run. It
// fails the test if two records of a run differ.
func Repeats(t *testing.T, lock locktest.Subject, runs ...int) {
	t.Helper()
	h := sim.NewHost(t)
	l := find(t, h, lock)
	plan := explore.Plan{World: sim.Version, Lock: l.Name, Faults: draw.Classes, Profile: draw.Full, Strategy: explore.StrategyPlain, Seed: 1}
	for _, number := range runs {
		seed, sc := plan.Draw(number, l)
		record := func(i int) string {
			if i%2 == 1 {
				defer waking.Start()()
			}
			return play.Play(h, sc, l, sim.NewSeeded(seed)).Record.Digest()
		}
		first := record(0)
		for i := 1; i < plays; i++ {
			if record(i) != first {
				t.Errorf("two records of drawn run %d differ; simrun repeat --lock %s --runs %d says where", number, lock.Name, number+1)
				break
			}
		}
	}
}

// Broken plays each story of the lock once, and returns the promises that the lock breaks as "STORY JUDGE", a bug each.
func Broken(t *testing.T, lock locktest.Subject) (all []string) {
	t.Helper()
	h := sim.NewHost(t)
	l := find(t, h, lock)
	of := story.Of(l, 0)
	for _, st := range story.Basic {
		sc := st.Scenario(of)
		if st.Lacks(of) != "" || play.Applies(sc, l) != nil {
			continue
		}
		for _, f := range play.Run(h, sc, l, 1).Findings {
			if f.Class == judges.ClassBug {
				all = append(all, st.Name+" "+f.Judge)
			}
		}
	}
	return all
}

// find returns the lock as scenarios know it.
func find(t *testing.T, h *sim.Host, lock locktest.Subject) *subject.Subject {
	t.Helper()
	l, err := subject.Find(lock.Name)
	if err != nil { // no other test has registered it
		if err = locktest.Register(h, lock); err == nil {
			l, err = subject.Find(lock.Name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}
