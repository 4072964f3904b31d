package explore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"lockstep/explore/draw"
	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func toldPlan(lock string, p draw.Profile, classes []draw.Class) Plan {
	return Plan{World: sim.Version, Lock: lock, Faults: classes, Profile: p, Strategy: StrategyTold, Seed: 1, Runs: 2 * FamilyRuns}
}

// Each family begins with the stories that follow those of the family before it, and the first ones have more.
// A story that is told again has other numbers. A run that follows, and repeats no other, is one that plain draws,
// too. All stories can be played on the lock, and keep to the plan.
func TestAFamilyBeginsWithStories(t *testing.T) {
	classes := [][]draw.Class{nil, draw.Classes, {draw.ClassNetwork}, {draw.ClassCrash, draw.ClassInterrupt}}
	locks := []string{"setnx-del", "string-reentrant", "redisson@4.7.0", "redisson-fair@3.4.2", "redisson@4.7.0+replicas", "reference-fair", "redisson-handle@4.7.0"}
	for _, name := range locks[:longtest.Size(t, 3, len(locks))] {
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, profile := range draw.Profiles {
			for _, allowed := range classes {
				told := toldPlan(name, profile, allowed)
				tellings := told.tellings(l)
				var names [2][]string
				differ, first := false, map[string]string{} // the stories of the first family
				for number := range names {
					f := newFamily(tellings)
					from, _ := told.Family(number)
					for n := range FamilyRuns {
						sc := told.anew(from+n, sim.NewSeeded(told.seedOf(from+n)), l, f).Scenario
						text := sc.Write()
						read, err := scenarios.Parse("told.yaml", []byte(text), scenarios.AnyLock)
						if sc.SetFile("told.yaml"); err != nil || !reflect.DeepEqual(read, sc) {
							t.Fatalf("%s, run %d: told as\n%+v\nand read as\n%+v, %v\n%s", name, from+n, sc, read, err, text)
						}
						if sc.Name == "drawn" {
							if _, plain := told.Draw(from+n, l); plain.Text != text {
								t.Fatalf("%s, run %d is not what plain draws:\n%s\n%s", name, from+n, text, plain.Text)
							}
							break
						}
						names[number] = append(names[number], sc.Name)
						if number == 0 {
							first[sc.Name] = text
						} else if before, again := first[sc.Name]; again && before != text {
							differ = true
						}
						if err := play.Applies(sc, l); err != nil {
							t.Errorf("%s tells %s: %v", name, sc.Name, err)
						}
						if why := beyond(sc, profile, allowed); why != "" {
							t.Errorf("%s, %s, %v: %s has %s", name, profile, allowed, sc.Name, why)
						}
					}
				}
				f := newFamily(tellings)
				text := told.anew(0, sim.NewSeeded(told.seedOf(0)), l, f).Write()
				if again := told.anew(0, sim.NewSeeded(told.seedOf(0)), l, f).Write(); again != text {
					t.Errorf("%s: run 0 drawn twice:\n%s\n%s", name, text, again)
				}
				all := len(f.tellings)
				most := toldAgain
				if all > toldRuns {
					most = toldRuns
				}
				if len(names[0]) != min(all, toldRuns) || len(names[1]) != min(all, most) || len(names[0]) < 3 {
					t.Errorf("%s, %s, %v: of %d stories the families begin with %d and %d", name, profile, allowed, all, len(names[0]), len(names[1]))
				}
				if next, _ := told.telling(f.tellings, FamilyRuns); all > toldRuns && next[0].sc().Name != f.tellings[toldRuns][0].sc().Name {
					t.Errorf("%s, %s, %v: the second family does not go on", name, profile, allowed)
				}
				if all <= toldRuns && !differ && profile != draw.Simple {
					t.Errorf("%s, %s, %v: the second family tells the stories with the same numbers", name, profile, allowed)
				}
			}
		}
	}
}

// The stories of a plan are told in turn, many until all have been told, and few after that.
func TestStoriesAreToldInTurn(t *testing.T) {
	for _, c := range []struct{ all, seeds int }{{0, 1}, {7, 1}, {60, 1}, {61, 1}, {130, 1}, {130, 3}} {
		all := make([]telling, c.all)
		for i := range all {
			all[i] = telling{{watchdog: time.Duration(i)}}
		}
		p := Plan{Seeds: c.seeds}
		next := 0
		for number := range 6 {
			n := 0
			for ; n < FamilyRuns; n++ {
				told, ok := p.telling(all, number*max(c.seeds, 1)*FamilyRuns+n)
				if !ok {
					break
				}
				if int(told[0].watchdog) != next%c.all {
					t.Errorf("%+v, family %d: story %d is told, and not %d", c, number, told[0].watchdog, next%c.all)
				}
				next++
			}
			want := min(toldAgain, c.all)
			if next-n < c.all {
				want = min(toldRuns, c.all)
			}
			if n != want {
				t.Errorf("%+v: family %d tells %d stories, want %d", c, number, n, want)
			}
		}
	}
}

// beyond returns what a scenario has that a plan of those faults and that profile excludes; "": nothing.
func beyond(sc *scenarios.Scenario, profile draw.Profile, classes []draw.Class) string {
	has := func(c draw.Class) bool { return slices.Contains(classes, c) }
	for _, f := range sc.Faults {
		switch {
		case f.Kind == model.FaultRule && !has(draw.ClassNetwork) && !(has(draw.ClassWatchdog) && f.When.Script == model.RoleRenew):
			return "a rule"
		case f.Kind == model.FaultCrash && !has(draw.ClassCrash), f.Kind == model.FaultPause && !has(draw.ClassPause),
			f.Kind == model.FaultPartition && !has(draw.ClassPartition), f.Kind == model.FaultServer && !has(draw.ClassServer):
			return "the fault " + string(f.Kind)
		}
	}
	for _, s := range sc.All() {
		switch {
		case s.Kind == scenarios.StepInterrupt && !has(draw.ClassInterrupt):
			return "an interrupt"
		case s.Kind == scenarios.StepForceUnlock && profile != draw.Full:
			return "an unlock by force"
		}
	}
	if profile == draw.Simple && slices.ContainsFunc(sc.Processes, func(p scenarios.Process) bool { return p.Threads > 2 }) {
		return "three threads in a process"
	}
	return ""
}

// The stories show a bug that needs no fault, whatever faults the plan has.
func TestStoriesShowABug(t *testing.T) {
	h := sim.NewHost(t)
	bug := Bug{Lock: "redisson@3.21.3"}
	bug.Defect = "R-5623"
	p := toldPlan(bug.Lock, draw.Full, draw.Classes)
	for _, classes := range [][]draw.Class{draw.Classes, {draw.ClassCrash}} {
		p.Faults, p.Runs = classes, 30
		at := 0
		if err := Seek(h, p, []Bug{bug}, func(_, runs int) { at = runs }, func() bool { return false }); err != nil || at == 0 {
			t.Errorf("under %v a family that begins with stories does not meet %s: error %v", classes, bug.Defect, err)
		}
	}
}
