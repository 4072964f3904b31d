package explore

import (
	"strings"
	"testing"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/internal/longtest"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// mendedBudget is the number of runs in which a failure of a planted bug is made small.
const mendedBudget = 60

// The recording of a planted bug, made small, shows the bug again, and no longer without it: what was made small
// is the same failure.
func TestTheRecordingOfAPlantedBugHoldsWithoutTheBug(t *testing.T) {
	h := sim.NewHost(t)
	all := subject.PlantedBugs()
	every := len(all) / longtest.Size(t, len(all)/8, len(all))
	for i := 0; i < len(all); i += every {
		b := all[i]
		t.Run(b.Name, func(t *testing.T) {
			lock := scenariotest.Lock(t, subject.PlantedPrefix+b.Name)
			classes, err := draw.ParseClasses(strings.FieldsFunc(b.Faults, func(r rune) bool { return r == ',' }))
			if err != nil {
				t.Fatal(err)
			}
			p := HereOn(h, Plan{World: sim.Version, Lock: lock.Name, Faults: classes, Profile: draw.Profile(b.Profile), Strategy: StrategyPlain, Seed: b.Seed, Runs: 1}, lock, nil)
			var task ShrinkTask
			err = p.Family(0, nil, func(r Run) error {
				for _, f := range r.Failures {
					if f.Judge == b.Judge && f.Class == judges.ClassBug && task.Budget == 0 {
						task = ShrinkTask{Run: r, Failed: f, Budget: mendedBudget}
					}
				}
				return nil
			})
			if err != nil || task.Budget == 0 {
				t.Fatalf("the first run does not break %s: %v", b.Judge, err)
			}
			small, err := p.Shrink(task)
			if err != nil {
				t.Fatal(err)
			}
			for _, played := range []*subject.Subject{lock, lock.Unplanted()} {
				rec, sc, _, err := play.ReadRecordingOf("small", []byte(small.Recording), func(string) (*subject.Subject, error) { return played, nil })
				if err != nil {
					t.Fatal(err)
				}
				v, _ := play.Replay(h, rec, sc, played)
				broken := false
				for _, f := range v.Findings {
					origin, _ := failure.OriginOf(failure.NewNamer(h, v), f)
					broken = broken || f.Judge == b.Judge && f.Class == judges.ClassBug && origin.Defect == task.Failed.Defect
				}
				if broken != (played == lock) {
					t.Errorf("%s in %s: %t\n%s", b.Judge, played.Name, broken, sc.Text)
				}
			}
		})
	}
}
