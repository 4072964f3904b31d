package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/cli/frame"
	"lockstep/cli/livetest"
	"lockstep/explore"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// The progress of a campaign is reported even while no run ends: each second on a terminal, and
// every five seconds elsewhere.
func TestProgressIsToldWhileNothingEnds(t *testing.T) {
	for _, c := range []struct {
		tty  bool
		want int // lines in a minute
	}{{true, 60}, {false, 12}} {
		synctest.Test(t, func(t *testing.T) {
			var stderr strings.Builder
			told := tellProgress((&frame.App{Program: testProgram(), Err: &stderr, TTY: c.tty}), 0)
			ctx, end := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
			defer end()
			told.pace.Each(ctx, told.line)
			if got := strings.Count(stderr.String(), "playing: "); got != c.want {
				t.Errorf("on a terminal: %v: %d lines in a minute, want %d\n%s", c.tty, got, c.want, &stderr)
			}
		})
	}
}

// slowLive is a real server on which a run takes a minute.
type slowLive struct{ livetest.Player }

func (*slowLive) Run(_ context.Context, _ *scenarios.Scenario, _ *subject.Subject, _ uint64, o play.LiveOptions) (play.LiveRun, error) {
	time.Sleep(20 * time.Second)
	o.Tell("waiting")
	time.Sleep(40 * time.Second)
	return play.LiveRun{}, nil
}

func TestALiveRunTellsThatItGoesOn(t *testing.T) {
	means.Live = &slowLive{}
	t.Cleanup(func() { means.Live = nil })
	synctest.Test(t, func(t *testing.T) {
		var stderr strings.Builder
		p := &Pair{Scenario: &scenarios.Scenario{Name: "misdelete"}, Lock: &subject.Subject{Name: "setnx-del"}}
		if _, err := liveRun((&frame.App{Program: testProgram(), Err: &stderr}), t.Context(), p, 2, 3, play.LiveOptions{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"misdelete on setnx-del, run 2 of 3, for 15s", "misdelete on setnx-del, run 2 of 3, for 30s: waiting", "misdelete on setnx-del, run 2 of 3, for 45s: waiting"}
		if got := strings.Split(strings.TrimSpace(stderr.String()), "\n"); !slices.Equal(got[:min(len(got), 3)], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTheLineOfProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tellProgress((&frame.App{Program: testProgram()}), 2*time.Minute)
		is := func(want string) {
			t.Helper()
			if got := told.line(time.Now()); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		}
		time.Sleep(10 * time.Second)
		told.played(explore.Progress{Runs: 700, Played: 200, Of: 1000, States: 40, Groups: 3, Died: 1})
		is("playing: 700 of 1000 runs, 20 a second, about 15s more, 1m50s at most; 40 states, 3 kinds of failure, 1 died")
		told.played(explore.Progress{Runs: 500, Of: 1000, CellsMet: 20, CellsOf: 50}) // the runs of an earlier call
		told.played(explore.Progress{Runs: 700, Played: 200, Of: 1000, States: 40, CellsMet: 30, CellsOf: 50, Groups: 1})
		is("playing: 700 of 1000 runs, 20 a second, about 15s more, 1m50s at most; 30 of 50 cells met, 10 of them new, 1 kind of failure")
		told.played(explore.Progress{Runs: 800, Played: 300, Of: 1000, States: 50, CellsMet: 32, CellsOf: 51, Groups: 1})
		is("playing: 800 of 1000 runs, 30 a second, about 7s more, 1m50s at most; 32 of 51 cells met, 2 of them new, 1 kind of failure")
		told.played(explore.Progress{Runs: 700, Played: 200, Of: 1000, States: 40, Groups: 3, Died: 1})
		told.limit = 0
		told.made(explore.ShrinkProgress{Done: 1, Begun: 2, Of: 13})
		is("making failure 2 of 13 small, 1 done; 700 of 1000 runs, 40 states, 3 kinds of failure, 1 died")
		time.Sleep(12 * time.Second)
		told.made(explore.ShrinkProgress{Done: 3, Begun: 4, Of: 13})
		is("making failure 4 of 13 small, 3 done, about 1m0s more; 700 of 1000 runs, 40 states, 3 kinds of failure, 1 died")
		told.limit = 32 * time.Second // of which 10 s are left
		is("making failure 4 of 13 small, 3 done, 10s at most; 700 of 1000 runs, 40 states, 3 kinds of failure, 1 died")
		time.Sleep(10 * time.Second)
		is("making failure 4 of 13 small, 3 done, --time is over; 700 of 1000 runs, 40 states, 3 kinds of failure, 1 died")
	})
}

// A campaign with a limit of time plays until the rest is needed to make the failures small, and at
// least for half of the time.
func TestPlayingLeavesTimeToMakeFailuresSmall(t *testing.T) {
	for _, c := range []struct {
		name string
		p    explore.Progress // each run took 10 ms
		want time.Duration
	}{
		{"nothing was found", explore.Progress{}, time.Minute},
		{"two groups", explore.Progress{Groups: 2}, 58 * time.Second},
		{"twenty groups", explore.Progress{Groups: 20}, 40 * time.Second},
		{"very many groups", explore.Progress{Groups: 200}, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			endInTime(t.Context(), time.Minute, func() explore.Progress {
				p := c.p
				p.Played = int(time.Since(begun) / (10 * time.Millisecond))
				return p
			}, func() {})
			if got := time.Since(begun); got != c.want {
				t.Errorf("%s: it played for %v of a minute, want %v", c.name, got, c.want)
			}
		})
	}
}
