package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

func plan(lock string, runs int, faults ...draw.Class) Plan {
	return Plan{World: sim.Version, Lock: lock, Faults: faults, Profile: draw.Simple, Strategy: StrategyPlain, Seed: 1, Runs: runs}
}

// played plays a campaign in this process and returns its runs.
func played(t *testing.T, h *sim.Host, c Campaign) []Run {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	if c.Jobs == 0 {
		c.Jobs = 1
	}
	if c.Of == 0 {
		c.Of = 1
	}
	if c.Stop == nil {
		c.Stop = context.Background()
	}
	if c.Player == nil {
		c.Player = func() (Player, error) { return Here(h, c.Plan) }
	}
	if _, _, err := c.Run(); err != nil {
		t.Fatal(err)
	}
	_, runs, err := Merge([]string{c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	return sorted(runs)
}

func sameRuns(t *testing.T, what string, got, want []Run) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d runs, want %d", what, len(got), len(want))
	}
	for i := range got {
		a, _ := json.Marshal(got[i])
		b, _ := json.Marshal(want[i])
		if string(a) != string(b) {
			t.Fatalf("%s: run %d is\n%s\nand was\n%s", what, i, a, b)
		}
	}
}

// stopping ends a campaign after a number of runs.
type stopping struct {
	Player
	left   *int
	cancel func()
}

func (p stopping) Family(number int, before []Run, each func(Run) error) error {
	return p.Player.Family(number, before, func(r Run) error {
		if *p.left--; *p.left == 0 {
			p.cancel()
		}
		return each(r)
	})
}

// counting counts the runs that it plays.
type counting struct {
	Player
	runs *int
}

func (p counting) Family(number int, before []Run, each func(Run) error) error {
	return p.Player.Family(number, before, func(r Run) error {
		*p.runs++
		return each(r)
	})
}

// A campaign has the same result if it is played at once, in shards, or in two parts after
// it was killed in the middle of a line.
func TestACampaignIsTheSameHoweverItIsPlayed(t *testing.T) {
	h := sim.NewHost(t)
	const size = 150
	p := plan("setnx-del", size, draw.ClassPause)
	want := played(t, h, Campaign{Plan: p})
	if o := Sum(p, want); len(o.Groups) == 0 || o.Missing != 0 || o.Runs != size {
		t.Fatalf("%d groups, %d of %d runs missing: nothing to compare", len(o.Groups), o.Missing, o.Runs)
	}

	t.Run("a group of a known cause says which faults it needs when it is small, which is asked of none of its runs", func(t *testing.T) {
		player, err := Here(h, p)
		if err != nil {
			t.Fatal(err)
		}
		parted := 0
		for _, r := range slices.Concat(want, played(t, h, Campaign{Plan: plan("none", 20)})) {
			for _, f := range r.Failures {
				if (f.Faults == nil) != f.Known() {
					t.Errorf("run %d, %s with the cause %q: asked, %t", r.Index, f.Judge, f.Origin, f.Faults != nil)
				}
				if f.Defect == "" && f.Class == judges.ClassBug {
					parted++
				}
			}
		}
		if parted == 0 {
			t.Error("every bug has a name: no group goes by what parted server and clients")
		}
		for _, g := range Sum(p, want).Groups {
			s, err := player.Shrink(ShrinkTask{Run: g.Least, Failed: g.Failed, Budget: 20, Program: "go run ./cmd/locks"})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(s.Recording, "# replay: go run ./cmd/locks replay THIS_FILE\n") {
				t.Errorf("the recording does not name the program:\n%.400s", s.Recording)
			}
			if !g.Known() || s.Group.Faults == nil {
				t.Errorf("%s with the cause %q, made small: %v", g.Judge, g.Origin, s.Group)
			}
		}
	})

	t.Run("in shards", func(t *testing.T) {
		var dirs []string
		for shard := range 2 {
			dir := t.TempDir()
			played(t, h, Campaign{Plan: p, Dir: dir, Shard: shard, Of: 2})
			dirs = append(dirs, dir)
		}
		_, runs, err := Merge(dirs)
		if err != nil {
			t.Fatal(err)
		}
		sameRuns(t, "merged", sorted(runs), want)
		if !reflect.DeepEqual(Sum(p, runs), Sum(p, want)) {
			t.Error("the sums differ")
		}
		_, runs, err = Merge(dirs[1:])
		if err != nil {
			t.Fatal(err)
		}
		if o := Sum(p, runs); o.Missing != 100 || !strings.Contains(o.Total(), "incomplete: 50 of 150 runs were played") {
			t.Errorf("a shard alone lacks %d runs: %s", o.Missing, o.Total())
		}
		if _, _, err := Merge([]string{dirs[0], dirs[0]}); err == nil || !strings.Contains(err.Error(), "two folders of one shard") {
			t.Errorf("one folder named twice: %v", err)
		}
	})

	t.Run("killed and begun again", func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		left := 37
		c := Campaign{Plan: p, Dir: dir, Jobs: 1, Of: 1, Stop: ctx, Player: func() (Player, error) {
			here, err := Here(h, p)
			return stopping{here, &left, cancel}, err
		}}
		if _, complete, err := c.Run(); complete || err != nil {
			t.Fatalf("complete %v, error %v", complete, err)
		}
		file := filepath.Join(dir, RunsFile)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n != 37 {
			t.Fatalf("%d runs are kept of 37", n)
		}
		if err := os.WriteFile(file, text[:len(text)-20], 0o644); err != nil {
			t.Fatal(err)
		}
		sameRuns(t, "begun again", played(t, h, Campaign{Plan: p, Dir: dir}), want)

		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		sameRuns(t, "killed before the first run", played(t, h, Campaign{Plan: p, Dir: dir}), want)
	})

	t.Run("with more runs than before", func(t *testing.T) {
		dir, fewer := t.TempDir(), p
		fewer.Runs = 137
		sameRuns(t, "fewer", played(t, h, Campaign{Plan: fewer, Dir: dir}), want[:137])
		begun := 0
		runs := played(t, h, Campaign{Plan: p, Dir: dir, Player: func() (Player, error) {
			here, err := Here(h, p)
			return counting{here, &begun}, err
		}})
		sameRuns(t, "more", runs, want)
		if begun != size-137 {
			t.Errorf("%d runs were played", begun)
		}
	})
}

// The families of a campaign of several seeds take them in turn, and a run is drawn as one of
// its number in a campaign of its seed alone.
func TestACampaignOfSeveralSeeds(t *testing.T) {
	p := plan("setnx-cad", 7*FamilyRuns)
	p.Seed, p.Seeds = 5, 3
	for family, seed := range []uint64{5, 6, 7, 5, 6, 7, 5} {
		one := plan("setnx-cad", 7*FamilyRuns)
		one.Seed = seed
		for _, index := range []int{family * FamilyRuns, (family+1)*FamilyRuns - 1} {
			if p.seedOf(index) != one.seedOf(index) {
				t.Errorf("run %d has another seed than with --seed %d", index, seed)
			}
		}
	}
	if s := p.String(); !strings.HasSuffix(s, " --runs 700 --seed 5..7 --strategy plain --keep-going") {
		t.Error(s)
	}
	fewer := p
	fewer.Seeds = 2
	if d := p.difference(fewer); d != "seed 5..6 there, 5..7 here" {
		t.Errorf("difference: %q", d)
	}
	if s := Sum(p, nil).Total(); !strings.HasPrefix(s, "0 runs of setnx-cad from 3 seeds, ") {
		t.Error(s)
	}
}

// A run that does not fail again counts as nondeterministic. The group is then shown by the smallest failure
// among its other runs.
func TestAGroupGoesByARunThatFailsAgain(t *testing.T) {
	failing := func(index, size int) Run {
		return Run{Index: index, Word: play.VerdictBug, Failures: []Failed{{Group: failure.Group{Judge: "misdelete", Class: judges.ClassBug, Op: "unlock"}, Size: size}}}
	}
	p := plan("setnx-del", 4)
	runs := []Run{failing(0, 9), failing(1, 4), {Index: 2, Word: play.VerdictHeld}, failing(3, 7)}
	asked := 0
	o, small, err := conclude(p, runs, 20, func(tasks []ShrinkTask) (made []Shrunk, problems []error) {
		for _, t := range tasks {
			asked++
			made = append(made, Shrunk{Run: t.Run.Index, Size: t.Failed.Size})
			var problem error
			if t.Run.Index == 1 {
				problem = &UnrepeatedError{t.Run.Index, t.Run.Seed, t.Failed.Judge}
			}
			problems = append(problems, problem)
		}
		return made, problems
	})
	if err != nil || asked != 2 || len(small) != 1 || small[0].Run != 3 {
		t.Errorf("asked %d times, %+v, %v", asked, small, err)
	}
	if len(o.Groups) != 1 || o.Groups[0].Count != 2 || len(o.Odd) != 1 || o.Odd[0].Index != 1 || o.Words["nondeterministic"] != 1 {
		t.Errorf("%+v", o)
	}
	if runs[1].Word != play.VerdictBug {
		t.Error("the runs of the caller were changed")
	}
}

// A campaign of a strategy with a bound goes on to the same bytes. The expectations of a run depend on
// the earlier runs of its family, which another process may have played.
func TestACampaignWithABoundGoesOn(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("setnx-cad", 30, draw.ClassPause)
	p.Strategy, p.Depth = StrategyTaPCT, 3
	var texts [2]string
	for i, first := range []int{30, 13} {
		dir, fewer := t.TempDir(), p
		fewer.Runs = first
		played(t, h, Campaign{Plan: fewer, Dir: dir})
		runs := played(t, h, Campaign{Plan: p, Dir: dir})
		text, err := os.ReadFile(filepath.Join(dir, RunsFile))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
		if told := Sum(p, runs).Total(); !strings.Contains(told, ": a bug that needs 3 orderings of messages is met with probability ") {
			t.Errorf("it tells no bound: %s", told)
		}
	}
	if texts[0] != texts[1] {
		t.Error("begun again after 13 runs, the runs differ from those that were played at once")
	}
}

// A campaign keeps the scenario of a run that the judges could not decide, and not that of a
// run which showed nothing.
func TestTheScenarioOfAnOddRunIsKept(t *testing.T) {
	for word, want := range map[play.Word]string{play.VerdictUndecided: "it", play.VerdictNondeterministic: "it", play.VerdictHeld: ""} {
		if got := newFamily(nil).add(Run{Word: word, Text: "it"}).Text; got != want {
			t.Errorf("%s: %q is kept, want %q", word, got, want)
		}
	}
}

// A file of runs that an older program wrote has the knobs of drawings. They are left out.
func TestAFileOfRunsWithKnobsIsRead(t *testing.T) {
	dir := t.TempDir()
	const it = `lockstep: 1\nname: it\nabout: it\nsource: it\nlocks: [setnx-del]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: x}]}\n`
	old := `{"run":3,"seed":7,"from":-1,"scenario":"` + it + `","knobs":{"calls":[{"word":"lock","n":1}],"chance":null,"faults":null,"times":null},"aimed":1}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, RunsFile), []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	runs, whole, err := readRuns(dir)
	if err != nil || len(runs) != 1 || whole != int64(len(old)) || runs[0].Index != 3 || !strings.Contains(runs[0].Text, "\nname: it\n") || runs[0].Aimed != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	damaged := strings.Replace(old, "lockstep: 1", "lockstep; 1", 1)
	var other *OtherCampaignError
	renamed := strings.Replace(old, `"scenario"`, `"scenarin"`, 1)
	if err := os.WriteFile(filepath.Join(dir, RunsFile), []byte(renamed), 0o644); err != nil {
		t.Fatal(err)
	}
	if runs, _, err := readRuns(dir); !errors.As(err, &other) || !strings.Contains(other.Difference, RunsFile+":1 is no run: json: unknown field \"scenarin\"") {
		t.Errorf("the name of a field is damaged: %+v, %v", runs, err)
	}
	if err := os.WriteFile(filepath.Join(dir, RunsFile), []byte(damaged), 0o644); err != nil {
		t.Fatal(err)
	}
	if runs, _, err := readRuns(dir); !errors.As(err, &other) || !strings.Contains(other.Difference, RunsFile+":1: run 3 (seed 7) has a scenario that does not load") {
		t.Errorf("the scenario of a run is damaged: %+v, %v", runs, err)
	}
}

// No run aims at moments of a run that was too long to be judged, or in which the process ended.
func TestWhichRunsAreAimedAt(t *testing.T) {
	p := plan("setnx-del", FamilyRuns, draw.ClassPause)
	p.Strategy = StrategyTold
	for _, c := range []struct {
		last Run
		want int
	}{
		{Run{Word: play.VerdictHeld}, 0},
		{Run{Word: play.VerdictUndecided}, -1},
		{Run{Died: true}, -1},
	} {
		if got := p.next(1, []Run{c.last}, 0).from; got != c.want {
			t.Errorf("after %+v the next run aims at run %d, want %d", c.last, got, c.want)
		}
	}
	if got := p.next(3, []Run{{}, {Index: 1}, {Index: 2}}, 0).from; got != -1 {
		t.Errorf("run 3 aims at run %d", got)
	}
}

// dying is a player that dies during one run.
type dying struct {
	Player
	at   int
	died *bool
}

func (p dying) Family(number int, before []Run, each func(Run) error) error {
	return p.Player.Family(number, before, func(r Run) error {
		if r.Index == p.at {
			*p.died = true
			return errors.New("the process that played it ended (signal: killed)")
		}
		return each(r)
	})
}

// A process that dies costs only the run that it plays, and nothing if the run does not take a second
// process with it.
func TestARunThatTakesItsProcessWithIt(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("setnx-cad", 30)
	died, players := false, 0
	runs := played(t, h, Campaign{Plan: p, Player: func() (Player, error) {
		players++
		here, err := Here(h, p)
		return dying{here, 7, &died}, err
	}})
	o := Sum(p, runs)
	if !died || players != 3 || o.Missing != 0 || len(o.Died) != 1 || o.Died[0].Seed != p.seedOf(7) || o.Words["held"] != 29 {
		t.Errorf("died %v, %d players, %d missing, died %v, %v", died, players, o.Missing, o.Died, o.Words)
	}
	if !strings.Contains(o.Total(), "the process ended in 1 run (first seed ") {
		t.Error(o.Total())
	}
	players = 0
	o = Sum(p, played(t, h, Campaign{Plan: p, Player: func() (Player, error) {
		here, err := Here(h, p)
		if players++; players == 1 {
			return dying{here, 7, &died}, err
		}
		return here, err
	}}))
	if players != 2 || o.Missing != 0 || len(o.Died) != 0 || o.Words["held"] != 30 {
		t.Errorf("once: %d players, %d missing, died %v, %v", players, o.Missing, o.Died, o.Words)
	}
}

func TestAFolderOfAnotherCampaignIsLeftAlone(t *testing.T) {
	h := sim.NewHost(t)
	dir := t.TempDir()
	p := plan("setnx-cad", 5)
	played(t, h, Campaign{Plan: p, Dir: dir})
	before, _ := os.ReadFile(filepath.Join(dir, RunsFile))
	refused := func(q Plan, what string) {
		t.Helper()
		c := Campaign{Plan: q, Dir: dir, Jobs: 1, Of: 1, Stop: t.Context(), Player: func() (Player, error) { return Here(h, q) }}
		_, _, err := c.Run()
		var other *OtherCampaignError
		if !errors.As(err, &other) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*Plan){
		"seed 1 there, 2 here":   func(p *Plan) { p.Seed = 2 },
		"runs 5 there, 4 here":   func(p *Plan) { p.Runs = 4 },
		"lock setnx-cad there":   func(p *Plan) { p.Lock = "none" },
		"faults [] there":        func(p *Plan) { p.Faults = []draw.Class{draw.ClassCrash} },
		"profile simple there":   func(p *Plan) { p.Profile = draw.Full },
		"strategy plain there":   func(p *Plan) { p.Strategy = StrategyTaPCT },
		"steps 0 there, 10 here": func(p *Plan) { p.Steps = 10 },
	} {
		q := p
		change(&q)
		refused(q, what)
	}
	old := Campaign{Plan: p, Of: 1}.file()
	old.Judges--
	if err := old.write(dir); err != nil {
		t.Fatal(err)
	}
	refused(p, fmt.Sprintf("judges %d, and the program has %d", old.Judges, old.Judges+1))
	if _, _, err := Merge([]string{dir}); err == nil || !strings.Contains(err.Error(), "judges") {
		t.Errorf("runs that were judged by an older program are merged: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, PlanFile)); err != nil {
		t.Fatal(err)
	}
	refused(p, "5 runs in runs.jsonl, and no campaign.json that says of what")
	after, _ := os.ReadFile(filepath.Join(dir, RunsFile))
	if string(before) != string(after) {
		t.Error("the folder was changed")
	}
}

// A budget of steps ends the campaign with the run that reaches it. Runs that were played
// after it do not count.
func TestABudgetOfSteps(t *testing.T) {
	h := sim.NewHost(t)
	all := played(t, h, Campaign{Plan: plan("setnx-cad", 3)})
	p := plan("setnx-cad", 220)
	p.Steps = all[0].Steps + all[1].Steps + all[2].Steps - 1
	runs := played(t, h, Campaign{Plan: p})
	if o := Sum(p, runs); o.Runs != 3 || o.Full || o.Missing != 0 || !strings.Contains(o.Total(), "the budget of steps ended it") {
		t.Errorf("%d runs, %s", o.Runs, o.Total())
	}
	if len(runs) == 220 {
		t.Error("all was played all the same")
	}
}

// The curve of new states never falls and ends at the last run.
func TestTheCurveOfStates(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("redisson@4.7.0", 120, draw.ClassNetwork, draw.ClassCrash)
	runs := played(t, h, Campaign{Plan: p})
	o := Sum(p, runs)
	for i := 1; i < len(o.Curve); i++ {
		if o.Curve[i].Runs <= o.Curve[i-1].Runs || o.Curve[i].States < o.Curve[i-1].States {
			t.Fatalf("%v", o.Curve)
		}
	}
	if last := o.Curve[len(o.Curve)-1]; last.Runs != 120 || last.States < 50 {
		t.Errorf("the curve ends at %v", last)
	}
}
