package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/internal/filetest"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// asked is a player that counts the failures that it makes small.
type asked struct {
	Player
	tasks *int
}

func (p asked) Shrink(t ShrinkTask) (Shrunk, error) {
	*p.tasks++
	return p.Player.Shrink(t)
}

// A failure for which there is no time stays as it was found, with a recording that replays.
// Once everything is small, the folder is the same as if there had been time, and nothing is
// made small twice.
func TestFailuresStayAsFoundUntilThereIsTime(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("setnx-del", 120, draw.ClassPause)
	tasks := 0
	conclude := func(dir string, stop context.Context, runs []Run) Tally {
		t.Helper()
		s := Shrinking{Plan: p, Budget: 30, Program: "simrun", Jobs: 1, Stop: stop, Dir: dir, From: []string{dir}, Player: func() (Player, error) {
			here, err := Here(h, p)
			return asked{here, &tasks}, err
		}}
		o, small, err := s.Conclude(runs)
		if err != nil {
			t.Fatal(err)
		}
		o, small = o.Fold(small)
		if err := WriteTally(dir, "simrun", o, small); err != nil {
			t.Fatal(err)
		}
		return o
	}
	whole, dir := t.TempDir(), t.TempDir()
	conclude(whole, t.Context(), played(t, h, Campaign{Plan: p, Dir: whole}))
	made := tasks

	over, end := context.WithCancel(t.Context())
	end()
	runs := played(t, h, Campaign{Plan: p, Dir: dir})
	o := conclude(dir, over, runs)
	if tasks != made || o.Unfinished != len(o.Groups) || len(o.Groups) == 0 || !strings.Contains(o.Total(), fmt.Sprintf("incomplete: %d of %d failures are not as small", o.Unfinished, len(o.Groups))) {
		t.Errorf("%d failures were made small without time; %s", tasks-made, o.Total())
	}
	recordings := 0
	for name, text := range filetest.Contents(t, dir) {
		if !strings.HasSuffix(name, ".lockstep") {
			continue
		}
		recordings++
		rec, sc, l, err := play.ReadRecording(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if v, diverged := play.Replay(h, rec, sc, l); diverged != "" || v.Word != rec.Verdict {
			t.Errorf("%s replays as %s; %s", name, v.Word, diverged)
		}
	}
	if recordings < len(o.Groups) {
		t.Errorf("%d recordings of %d groups", recordings, len(o.Groups))
	}

	if o = conclude(dir, t.Context(), runs); o.Unfinished != 0 || tasks != 2*made {
		t.Errorf("%d failures were made small, and %d are unfinished", tasks-made, o.Unfinished)
	}
	same := func(what string) {
		t.Helper()
		want, got := filetest.Contents(t, whole), filetest.Contents(t, dir)
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s, %s is\n%s\nwant\n%s", what, name, got[name], want[name])
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("%s, %s is there", what, name)
		}
	}
	same("with time")
	file := filepath.Join(dir, ShrunkFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text[:len(text)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	if conclude(dir, t.Context(), runs); tasks != 2*made+1 {
		t.Errorf("%d failures were made small again; want the one whose line was cut off", tasks-2*made)
	}
	same("after a line was cut off")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"judges":`, `"judges":9`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if conclude(dir, t.Context(), runs); tasks != 3*made+1 {
		t.Errorf("%d failures were made small again; want all, since another program had done it", tasks-2*made-1)
	}
	same("after another program")
}

// slow is a player that needs an hour for a failure, and has a smaller one at every instant.
type slow struct{ Player }

func (slow) Shrink(t ShrinkTask) (Shrunk, error) {
	time.Sleep(time.Until(t.Until))
	return Shrunk{Run: t.Run.Index, Runs: 1, Unfinished: true}, nil
}

func (slow) Close() {}

// Failures share the time that is left.
func TestFailuresShareTheTime(t *testing.T) {
	for _, jobs := range []int{1, 2, 9} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var told []ShrinkProgress
			s := Shrinking{Jobs: jobs, Stop: t.Context(), Until: begun.Add(time.Minute), Player: func() (Player, error) { return slow{}, nil }, Progress: func(p ShrinkProgress) {
				told = append(told, p)
			}}
			tasks := make([]ShrinkTask, 5)
			small, problems := s.all(tasks, nil)
			for i, s := range small {
				if s.Runs != 1 || problems[i] != nil {
					t.Errorf("%d jobs, failure %d: %+v, %v", jobs, i, s, problems[i])
				}
			}
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("%d jobs took %v", jobs, took)
			}
			if n := len(told); n != 10 || told[n-1] != (ShrinkProgress{5, 5, 5}) {
				t.Errorf("%d jobs told %v", jobs, told)
			}
			if small, problems = s.all(tasks, nil); problems[4] != nil || small[4].Runs != 0 || !small[4].Unfinished || time.Since(begun) != time.Minute {
				t.Errorf("without time: %+v, %v", small[4], problems[4])
			}
		})
	}
}

// mortal is a player that ends at a failure as long as left is above 0, and then makes failures small.
type mortal struct {
	Player
	left *int
}

func (m mortal) Shrink(t ShrinkTask) (Shrunk, error) {
	if *m.left > 0 {
		*m.left--
		return Shrunk{}, errors.New("the process that played it ended (signal: killed)")
	}
	return Shrunk{Run: t.Run.Index, Runs: 3}, nil
}

func (mortal) Close() {}

// Another player makes a failure small if a player ends. If that one ends, too, the failure stays as it was
// found, and the others are made small.
func TestAPlayerThatEndsLosesNoFailure(t *testing.T) {
	for _, c := range []struct{ deaths, unfinished int }{{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 2}} {
		left, told := c.deaths, 0
		s := Shrinking{Jobs: 1, Stop: t.Context(), Player: func() (Player, error) { return mortal{left: &left}, nil }, Died: func(_ ShrinkTask, err error) {
			if told++; !strings.Contains(err.Error(), "signal: killed") {
				t.Error(err)
			}
		}}
		small, problems := s.all(make([]ShrinkTask, 3), nil)
		unfinished := 0
		for i, s := range small {
			if problems[i] != nil || s.Unfinished != (s.Runs == 0) {
				t.Errorf("%d deaths: %+v, %v", c.deaths, s, problems[i])
			}
			if s.Unfinished {
				unfinished++
			}
		}
		if unfinished != c.unfinished || told != c.unfinished || left != 0 {
			t.Errorf("%d deaths: %d failures are as they were found, and %d were reported; want %d", c.deaths, unfinished, told, c.unfinished)
		}
	}
}

// uneven is a player. It makes the failure of a run small in the number of seconds at the index of the run.
type uneven struct {
	Player
	seconds []int
}

func (u uneven) Shrink(t ShrinkTask) (Shrunk, error) {
	need := time.Duration(u.seconds[t.Run.Index]) * time.Second
	time.Sleep(min(need, time.Until(t.Until)))
	return Shrunk{Run: t.Run.Index, Unfinished: need > 0 && !time.Now().Before(t.Until)}, nil
}

func (uneven) Close() {}

// The time that quick failures leave is for those that need more than their share.
func TestQuickFailuresLeaveTheirTime(t *testing.T) {
	for _, c := range []struct {
		seconds    []int
		unfinished []int
		took       time.Duration
	}{
		{[]int{19, 1, 1, 1, 1}, nil, 29 * time.Second},                     // it had 6 s, and 20 s are left
		{[]int{99, 1, 1, 1, 1}, []int{0}, 30 * time.Second},                // 20 s do not suffice
		{[]int{99, 9, 9, 1, 1}, []int{0, 1, 2}, 20 * time.Second},          // 10 s are left, less than twice what one had
		{[]int{99, 9, 9, 1, 1, 1}, []int{0, 1, 2}, 30 * time.Second},       // each had 5 s, and 12 s are left for one
		{[]int{99, 5, 5, 0, 0, 0, 0, 0, 0, 0}, []int{0}, 26 * time.Second}, // each had 3 s, and 21 s are left for three
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := Shrinking{Jobs: 1, Stop: t.Context(), Until: begun.Add(30 * time.Second), Player: func() (Player, error) { return uneven{seconds: c.seconds}, nil }}
			var last ShrinkProgress
			s.Progress = func(p ShrinkProgress) { last = p }
			tasks := make([]ShrinkTask, len(c.seconds))
			for i := range tasks {
				tasks[i].Run.Index = i
			}
			small, problems := s.all(tasks, nil)
			var unfinished []int
			for i := range small {
				if problems[i] != nil {
					t.Error(problems[i])
				}
				if small[i].Unfinished {
					unfinished = append(unfinished, i)
				}
			}
			if took := time.Since(begun); !slices.Equal(unfinished, c.unfinished) || took != c.took {
				t.Errorf("%v s: %v are unfinished after %v; want %v after %v", c.seconds, unfinished, took, c.unfinished, c.took)
			}
			if all := len(tasks); last != (ShrinkProgress{all, all, all}) {
				t.Errorf("%v s: %+v at the end", c.seconds, last)
			}
		})
	}
}

// hanging is a process that never answers, and takes a second to die when it is killed.
type hanging struct{ stop context.Context }

func (h hanging) Family(int, []Run, func(Run) error) error {
	<-h.stop.Done()
	time.Sleep(time.Second)
	return h.stop.Err()
}

func (h hanging) Shrink(ShrinkTask) (Shrunk, error) { return Shrunk{}, h.Family(0, nil, nil) }

func (hanging) Close() {}

// An interrupt ends a campaign within five seconds, even if its processes hang, while it plays and
// while it makes many failures small. These failures stay as they were found.
func TestAnInterruptEndsWhatHangs(t *testing.T) {
	const most = 5 * time.Second
	interrupted := func(t *testing.T, work func(stop context.Context, player func() (Player, error))) {
		t.Helper()
		stop, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, interrupt)
		begun := time.Now()
		work(stop, func() (Player, error) { return hanging{stop}, nil })
		if took := time.Since(begun) - time.Minute; took < 0 || took > most {
			t.Errorf("it ended %v after the interrupt", took)
		}
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		interrupted(t, func(stop context.Context, player func() (Player, error)) {
			c := Campaign{Plan: plan("setnx-cad", 1000), Of: 1, Jobs: 2, Dir: dir, Stop: stop, Player: player}
			if runs, complete, err := c.Run(); len(runs) > 0 || complete || err != nil {
				t.Errorf("%d runs, complete %v, error %v", len(runs), complete, err)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		interrupted(t, func(stop context.Context, player func() (Player, error)) {
			s := Shrinking{Jobs: 2, Stop: stop, Player: player}
			small, problems := s.all(make([]ShrinkTask, 40), nil)
			for i := range small {
				if !small[i].Unfinished || small[i].Runs != 0 || problems[i] != nil {
					t.Errorf("failure %d: %+v, error %v", i, small[i], problems[i])
				}
			}
		})
	})
}

// A campaign keeps the recording of the smallest run of each group, in whatever order the processes
// play.
func TestTheSmallestRunIsKeptAsFound(t *testing.T) {
	run := func(index, size int) Run {
		return Run{Index: index, Recording: fmt.Sprint(index), Failures: []Failed{{Group: failure.Group{Judge: "misdelete", Class: judges.ClassBug, Op: "unlock", Faults: []string{}}, Size: size}}}
	}
	runs := []Run{run(200, 9), run(3, 9), run(205, 9), run(110, 4), run(120, 4)}
	f := foundRecordings{dir: t.TempDir(), best: map[string]foundRun{}}
	firsts := 0
	for _, r := range runs {
		first, write, remove := f.count(r)
		firsts += len(first)
		if err := f.keep(r.Recording, write, remove); err != nil {
			t.Fatal(err)
		}
	}
	g := Sum(plan("setnx-del", 300), runs).Groups[0]
	if got := filetest.Contents(t, f.dir); len(got) != 1 || got[foundFile(g.Failed, g.Least.Index)] != "110" || firsts != 1 {
		t.Errorf("%v is kept, and %d groups were new", got, firsts)
	}
}

// The file of the runs is in order at the end, and has no run after the one that used up the
// budget of steps. A gap before it is played first.
func TestTheRunsAreInOrderAtTheEnd(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("setnx-cad", 320)
	all := played(t, h, Campaign{Plan: p})
	for _, r := range all[:120] {
		p.Steps += r.Steps
	}
	whole := t.TempDir()
	played(t, h, Campaign{Plan: p, Dir: whole})
	dir := t.TempDir()
	c := Campaign{Plan: p, Of: 1}
	if err := c.file().write(dir); err != nil {
		t.Fatal(err)
	}
	// Another process played the third family, and a part of the first.
	out, err := os.Create(filepath.Join(dir, RunsFile))
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{out: out, c: &c, states: map[uint64]bool{}, ending: newEnding(p), found: &foundRecordings{dir: dir, best: map[string]foundRun{}}}
	for _, r := range slices.Concat(all[200:300], all[:40]) {
		if err := w.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if o := Sum(p, w.runs); o.Ended != "" || o.Missing != 180 {
		t.Errorf("with a gap: %q, %d missing", o.Ended, o.Missing)
	}
	sameRuns(t, "with a gap", played(t, h, Campaign{Plan: p, Dir: dir}), all[:120])
	if got, want := filetest.Contents(t, dir)[RunsFile], filetest.Contents(t, whole)[RunsFile]; got != want || strings.Count(got, "\n") != 120 {
		t.Errorf("%d runs in %d bytes, want %d", strings.Count(got, "\n"), len(got), len(want))
	}
}

// A run that is too long for the memory of a worker stays as it was found, and the campaign
// does not wait for more.
func TestALongRunStaysAsItWasFound(t *testing.T) {
	s := Shrinking{Stop: t.Context(), Player: func() (Player, error) { return nil, errors.New("a worker was asked") }}
	for steps, want := range map[int64]bool{shrink.LongestRun: false, shrink.LongestRun + 1: true} {
		small, err := s.shrinkOne(ShrinkTask{Run: Run{Index: 7, Steps: steps}})
		if found := err == nil && small.Run == 7 && !small.Unfinished && small.TooLong; found != want {
			t.Errorf("%d steps: %+v, %v", steps, small, err)
		}
		if said := strings.Contains(small.Shrinking(), "more than 40000 steps"); said != want {
			t.Errorf("%d steps: it says %q", steps, small.Shrinking())
		}
	}
}

// A folder that cannot be written to does not lose what was found.
func TestAFullFolderLosesNoFailure(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("setnx-del", 60, draw.ClassPause)
	runs := played(t, h, Campaign{Plan: p, Dir: t.TempDir()})
	s := Shrinking{Plan: p, Budget: 1, Jobs: 1, Stop: t.Context(), Dir: filepath.Join(t.TempDir(), "gone"), Player: func() (Player, error) { return Here(h, p) }}
	o, small, err := s.Conclude(runs)
	if err == nil || len(o.Groups) == 0 || len(small) != len(o.Groups) {
		t.Errorf("%d of %d failures, %v", len(small), len(o.Groups), err)
	}
}

// unrepeated is a player for which no failure repeats.
type unrepeated struct{ Player }

func (unrepeated) Shrink(t ShrinkTask) (Shrunk, error) {
	return Shrunk{}, &UnrepeatedError{Run: t.Run.Index}
}

// A file of runs need not have the scenario of a run that takes the place of another one. The folder is at fault then, and
// not the program.
func TestARunWithoutAScenarioTakesThePlaceOfAnother(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("setnx-del", 120, draw.ClassPause)
	dir := t.TempDir()
	runs := played(t, h, Campaign{Plan: p, Dir: dir})
	least := map[int]bool{}
	for _, g := range Sum(p, runs).Groups {
		least[g.Least.Index] = true
	}
	for i := range runs {
		if !least[runs[i].Index] {
			runs[i].Text = ""
		}
	}
	s := Shrinking{Plan: p, Budget: 30, Program: "simrun", Jobs: 1, Stop: t.Context(), From: []string{dir}, Player: func() (Player, error) {
		here, err := Here(h, p)
		return unrepeated{here}, err
	}}
	_, _, err := s.Conclude(runs)
	var other *OtherCampaignError
	if !errors.As(err, &other) || !strings.Contains(err.Error(), "has a scenario that does not load") {
		t.Errorf("the error is %v", err)
	}
}
