package evidence

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/longtest"
	"lockstep/linearizability/judges"
	"lockstep/model/trace"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// claims counts the findings of runs by the type of their details, and fails a test for each finding that
// its record contradicts.
type claims map[string]int

func (c claims) check(t *testing.T, where string, v play.Verdict) {
	t.Helper()
	for _, f := range v.Findings {
		if f.Judge == judges.JudgeHarness {
			continue
		}
		c[f.Judge]++
		for _, untrue := range judges.Untrue(v.Played.Trace, f) {
			t.Errorf("%s: %s\n\tsays what is not so: %+v", where, sentence.Finding(f), untrue)
		}
	}
}

// enough fails a test whose runs show too little.
func (c claims) enough(t *testing.T, least ...string) {
	t.Helper()
	t.Log(c)
	for _, judge := range least {
		if c[judge] == 0 {
			t.Errorf("no run broke %s: %v", judge, c)
		}
	}
}

// judged is the verdict on a run, without the replays that convict.
func judged(sc *scenarios.Scenario, l *subject.Subject, seed uint64, p play.Played) play.Verdict {
	p.Trace = trace.New(p.Record)
	return play.Verdict{Scenario: sc, Lock: l, Seed: seed, Played: p, Findings: judges.Judge(p.Trace, play.Rules(sc)).Findings}
}

// everyLock returns the registered locks, with those by handles and the planted bugs.
func everyLock(t *testing.T) (locks []*subject.Subject) {
	t.Helper()
	names := []string{"reference-watched"}
	for _, l := range subject.All() {
		locks = append(locks, l)
		if l.Handles != "" {
			names = append(names, l.Handles)
		}
	}
	for _, b := range subject.PlantedBugs() {
		names = append(names, subject.PlantedPrefix+b.Name)
	}
	for _, name := range names {
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	return locks
}

// No finding of a drawn run says of the servers, or of an answer, what is not so, whatever the lock.
func TestNoFindingOfADrawnRunContradictsItsRecord(t *testing.T) {
	h, c := sim.NewHost(t), claims{}
	runs := longtest.Size(t, 1, 40)
	for _, l := range everyLock(t) {
		for _, profile := range draw.Profiles {
			plan := explore.Plan{World: sim.Version, Lock: l.Name, Faults: draw.Classes, Profile: profile, Strategy: explore.StrategyPlain, Seed: 7}
			for i := range runs {
				seed, sc := plan.Draw(i, l)
				c.check(t, l.Name, judged(sc, l, seed, play.Play(h, sc, l, sim.NewSeeded(seed))))
			}
		}
	}
	c.enough(t, "mutual-exclusion", "misdelete", "linearizable", "hold-count", "fifo", "lease", "fencing", "tidy")
}

// No finding of a built-in scenario contradicts its record. A short test plays each on two of its locks.
func TestNoFindingOfAScenarioContradictsItsRecord(t *testing.T) {
	h, c := sim.NewHost(t), claims{}
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	locks := longtest.Size(t, 2, 100)
	for i, sc := range all {
		steps := 0
		for range sc.All() {
			steps++
		}
		if steps > 100 && !longtest.Asked() {
			continue
		}
		for j := range min(locks, len(sc.Locks)) {
			l, err := subject.Find(sc.Locks[(i+j)%len(sc.Locks)])
			if err != nil || play.Plays(sc, l) != nil {
				continue
			}
			c.check(t, sc.Name+" on "+l.Name, judged(sc, l, sc.SeedFirst, play.Play(h, sc, l, sim.NewSeeded(sc.SeedFirst))))
		}
	}
	c.enough(t, "mutual-exclusion", "linearizable", "lease")
}

// No finding of a recording of the shelf contradicts its record.
func TestNoFindingOfARecordingContradictsItsRecord(t *testing.T) {
	h, c := sim.NewHost(t), claims{}
	shelf := explore.Shelf{Dir: "../../results/recordings", Host: h}
	names, err := shelf.Names()
	if err != nil || len(names) < 80 {
		t.Fatalf("%d recordings, %v", len(names), err)
	}
	slices.Sort(names)
	for _, name := range names {
		file := filepath.Join(shelf.Dir, name+".lockstep")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rec, sc, l, err := play.ReadRecording(file, text)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := play.Replay(h, rec, sc, l)
		c.check(t, name, v)
	}
	c.enough(t, "mutual-exclusion", "misdelete", "linearizable", "lease", "tidy")
}
