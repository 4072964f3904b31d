package spread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/explore"
	"lockstep/explore/failure"
	"lockstep/explore/spread"
	"lockstep/explore/spread/queuetest"
	"lockstep/internal/filetest"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

func plan(runs int) explore.Plan {
	return explore.Plan{World: sim.Version, Lock: "setnx-del", Profile: "simple", Strategy: explore.StrategyPlain, Seed: 1, Runs: runs}
}

// drawn is a player that plays nothing: it makes runs up, each from the run before.
type drawn struct {
	plan explore.Plan
	// dies reports whether the process ends in a run. If dies is nil, it never ends.
	dies func(index int) bool
}

func (d drawn) Family(number int, before []explore.Run, each func(explore.Run) error) error {
	from, to := d.plan.Family(number)
	last := int64(number)
	if n := len(before); n > 0 {
		last = before[n-1].Steps
	}
	for i := from + len(before); i < to; i++ {
		if d.dies != nil && d.dies(i) {
			return errors.New("it was killed")
		}
		last = last*31%1009 + 1
		r := explore.Run{Index: i, Seed: uint64(i) * 7, From: -1, Word: "held", Steps: last, States: []uint64{uint64(last)}}
		if last%10 == 0 {
			r.Word = "bug"
			r.Failures = []explore.Failed{{Group: failure.Group{Judge: "misdelete", Class: "bug", Op: "unlock", Faults: []string{}}, Why: "made up", Size: int(last)}}
			r.Recording = fmt.Sprintf("recording of run %d\n", i)
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

func (drawn) Shrink(explore.ShrinkTask) (explore.Shrunk, error) {
	return explore.Shrunk{}, errors.New("nothing is made small here")
}

func (drawn) Close() {}

// one returns the files that a single process writes for a plan.
func one(t *testing.T, p explore.Plan) map[string]string {
	t.Helper()
	dir := t.TempDir()
	c := explore.Campaign{Plan: p, Of: 1, Jobs: 1, Dir: dir, Stop: t.Context(), Player: func() (explore.Player, error) { return drawn{plan: p}, nil }}
	if _, complete, err := c.Run(); err != nil || !complete {
		t.Fatal(complete, err)
	}
	return filetest.Contents(t, dir)
}

func open(t *testing.T, e spread.Engine) spread.Queue {
	t.Helper()
	q, err := e.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// work starts workers, which end with the test. player plays for each.
func work(t *testing.T, e spread.Engine, n int, player func(explore.Plan) explore.Player) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		w := &spread.Worker{
			Queue: open(t, e), Name: fmt.Sprint("worker ", i), Beat: 20 * time.Millisecond,
			Player: func(_ context.Context, p explore.Plan) (explore.Player, error) { return player(p), nil },
		}
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Errorf("%s: %v", w.Name, err)
			}
		})
	}
	t.Cleanup(func() { end(); all.Wait() })
}

// farm lets the workers of an engine play a plan into a folder.
func farm(t *testing.T, e spread.Engine, p explore.Plan, dir string, stop context.Context) (complete bool, err error) {
	t.Helper()
	c, err := spread.NewCoordinator(t.Context(), open(t, e), time.Second, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c.Hurry()
	campaign := explore.Campaign{Plan: p, Of: 1, Jobs: 8, Dir: dir, Stop: stop, Family: c.Family(stop, p)}
	_, complete, err = campaign.Run()
	return complete, err
}

func same(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if got := filetest.Contents(t, dir); !maps.Equal(got, want) {
		t.Errorf("the folder differs: %d files, want %d", len(got), len(want))
	}
}

func fine(p explore.Plan) explore.Player { return drawn{plan: p} }

// The queue may lose and repeat tasks, and the folder is still the same as the folder of one process.
func TestTheFolderIsThatOfOneProcess(t *testing.T) {
	p := plan(2350)
	want := one(t, p)
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(1, 2))
	sometimes := func(string) bool { mu.Lock(); defer mu.Unlock(); return chance.IntN(5) == 0 }
	for name, e := range map[string]*queuetest.Engine{
		"nothing is lost":            {},
		"each task comes twice":      {Twice: true},
		"tasks and results are lost": {Lose: sometimes},
		"a worker is taken for dead": {Wait: time.Microsecond},
		"calls fail now and then": {Fail: func(method string) error {
			if method != "Take" && method != "Hear" && sometimes(method) {
				return errors.New("it fails")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			work(t, e, 3, fine)
			dir := t.TempDir()
			if complete, err := farm(t, e, p, dir, t.Context()); err != nil || !complete {
				t.Fatal(complete, err)
			}
			same(t, dir, want)
		})
	}
}

// A coordinator may be killed at any moment. The next one continues from the folder and the queue.
func TestACoordinatorThatIsStoppedGoesOn(t *testing.T) {
	p := plan(1200)
	want := one(t, p)
	e := &queuetest.Engine{}
	work(t, e, 2, fine)
	dir := t.TempDir()
	for after := 1; ; after += 130 {
		stop, end := context.WithCancel(t.Context())
		c, err := spread.NewCoordinator(t.Context(), open(t, e), time.Second, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		campaign := explore.Campaign{Plan: p, Of: 1, Jobs: 4, Dir: dir, Stop: stop, Family: c.Family(stop, p), Progress: func(p explore.Progress) {
			if p.Played >= after {
				end()
			}
		}}
		_, complete, err := campaign.Run()
		end()
		if err != nil {
			t.Fatal(err)
		}
		if complete {
			break
		}
	}
	same(t, dir, want)
}

// If a process ends in a run, the run is played again, since the process may have been killed from
// outside. A run in which the process ends every time counts as died.
func TestARunThatEndsItsProcess(t *testing.T) {
	p := plan(300)
	want := one(t, p)
	var once sync.Map
	for _, c := range []struct {
		name string
		dies func(int) bool
		died string
	}{
		{"once", func(i int) bool { _, was := once.LoadOrStore(i, true); return i%90 == 0 && !was }, ""},
		{"each time", func(i int) bool { return i == 120 }, `{"run":120,`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &queuetest.Engine{}
			work(t, e, 2, func(p explore.Plan) explore.Player { return drawn{p, c.dies} })
			dir := t.TempDir()
			if complete, err := farm(t, e, p, dir, t.Context()); err != nil || !complete {
				t.Fatal(complete, err)
			}
			if c.died == "" {
				same(t, dir, want)
				return
			}
			for line := range strings.Lines(filetest.Contents(t, dir)[explore.RunsFile]) {
				if strings.HasPrefix(line, c.died) != strings.Contains(line, `"died":true`) {
					t.Errorf("%s", line)
				}
			}
		})
	}
}

func TestAWorkerRefusesOtherWork(t *testing.T) {
	now := explore.CurrentVersions()
	later := now
	later.Judges++
	strange := plan(100)
	strange.Lock = "somebody's"
	for _, c := range []struct {
		name string
		task spread.Task
		want string
	}{
		{"of another version", spread.Task{plan(100), later, 0}, fmt.Sprintf("another version of this program (judges %d, and the program has %d)", later.Judges, now.Judges)},
		{"on a lock that it does not know", spread.Task{strange, now, 0}, "somebody's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := open(t, &queuetest.Engine{})
			text, err := json.Marshal(c.task)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Offer(t.Context(), c.task.Name(), text); err != nil {
				t.Fatal(err)
			}
			w := &spread.Worker{Queue: q, Player: func(context.Context, explore.Plan) (explore.Player, error) { return nil, errors.New("it was played") }}
			var refused *spread.RefusedError
			if err := w.Run(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if _, err := q.Take(t.Context()); err != nil {
				t.Errorf("the task is gone: %v", err)
			}
		})
	}
}

// A result without all runs of its family does not count, and the family is played again.
func TestABrokenResultIsPlayedAgain(t *testing.T) {
	p := plan(250)
	want := one(t, p)
	task := spread.Task{p, explore.CurrentVersions(), 1}
	var runs []explore.Run
	if err := (drawn{plan: p}).Family(1, nil, func(r explore.Run) error { runs = append(runs, r); return nil }); err != nil {
		t.Fatal(err)
	}
	whole, err := spread.WriteResult(task, runs)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := spread.ReadResult(task, whole); err != nil || len(got) != 100 {
		t.Fatalf("%d runs, %v", len(got), err)
	}
	other := task
	other.Plan.Seed++
	otherRuns := slices.Clone(runs)
	otherRuns[0].Steps++
	ofOther, err := spread.WriteResult(other, otherRuns)
	if err != nil {
		t.Fatal(err)
	}
	short, err := spread.WriteResult(task, runs[:99])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"empty": {}, "cut off in a line": whole[:len(whole)-10], "a run less": short, "of another plan": ofOther, "no JSON": []byte("no"), "of runs that are none": []byte("{}\n{}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			e := &queuetest.Engine{}
			if err := open(t, e).Keep(t.Context(), task.Name(), text); err != nil {
				t.Fatal(err)
			}
			work(t, e, 1, fine)
			dir := t.TempDir()
			if complete, err := farm(t, e, p, dir, t.Context()); err != nil || !complete {
				t.Fatal(complete, err)
			}
			same(t, dir, want)
		})
	}
}

// A queue that fails for long ends the coordinator with an error, and the campaign goes on later.
func TestAQueueThatFails(t *testing.T) {
	p := plan(250)
	want := one(t, p)
	broken := errors.New("no space left")
	for _, method := range []string{"Offer", "Keep"} {
		t.Run(method, func(t *testing.T) {
			dir := t.TempDir()
			var mended atomic.Bool
			e := &queuetest.Engine{Fail: func(called string) error {
				if called == method && !mended.Load() {
					return broken
				}
				return nil
			}}
			work(t, e, 1, fine)
			var failed *spread.QueueError
			if complete, err := farm(t, e, p, dir, t.Context()); complete || !errors.As(err, &failed) || !strings.Contains(err.Error(), broken.Error()) {
				t.Fatalf("%v, %v; want a QueueError", complete, err)
			}
			mended.Store(true)
			if complete, err := farm(t, e, p, dir, t.Context()); err != nil || !complete {
				t.Fatal(complete, err)
			}
			same(t, dir, want)
		})
	}
}

// The clock that decides whether a worker is gone may jump. A worker that still works comes back
// with its next sign of life.
func TestAClockThatJumps(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1_000_000, 0)
	set := func(to time.Time) { mu.Lock(); defer mu.Unlock(); now = to }
	c, err := spread.NewCoordinator(t.Context(), open(t, &queuetest.Engine{}), time.Second, func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	if err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{time.Hour, -24 * time.Hour, 1000 * time.Hour} {
		c.Heard(spread.Told{Worker: "a"})
		if len(c.Workers()) != 1 {
			t.Fatalf("%d workers before the clock jumps", len(c.Workers()))
		}
		set(now.Add(jump))
		if n := len(c.Workers()); n != 0 {
			t.Errorf("after %v: %d workers, want none", jump, n)
		}
	}
	c.Heard(spread.Told{Worker: "a"})
	c.Heard(spread.Told{Worker: "a", Ended: true})
	if n := len(c.Workers()); n != 0 {
		t.Errorf("%d workers, and it has ended", n)
	}
}
