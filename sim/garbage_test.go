package sim

import (
	"context"
	"runtime/debug"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
)

// crowd is two threads that share one connection; the second waits for it as
// the case says.
func crowd(wait body, timeout time.Duration) *stage {
	s := newStage()
	s.Processes = []ProcessConfig{{Name: "a", Threads: 2}}
	s.LatencyMin, s.LatencyMax = time.Second, time.Second
	s.client = func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, timeout }
	return s.does("a/1", incr).does("a/2", wait)
}

func incr(th *Thread, c *redis.Client) {
	_ = operate(th, func(ctx context.Context) error { return c.Incr(ctx, "n").Err() })
}

// A timer of one bubble in go-redis's pool kills the next bubble that takes it
// out, so each case is played twice: the second finds what the first left.
func TestAWaitForAConnectionIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name    string
		wait    body
		timeout time.Duration
		waited  bool
	}{
		{"that was granted", incr, time.Minute, true},
		{"that took too long", incr, 100 * time.Millisecond, true},
		{"that the caller gave up", func(th *Thread, c *redis.Client) {
			_ = operate(th, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				return c.Incr(ctx, "n").Err()
			})
		}, time.Minute, true},
		{"that there was not", func(th *Thread, c *redis.Client) {
			th.At(10 * time.Second)
			incr(th, c)
		}, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := NewHost(t)
			garbage.bubbleBegins() // so that what earlier tests left is gone
			garbage.bubbleEnds(true)
			for range 2 {
				res := crowd(c.wait, c.timeout).run(h)
				if returned := pick(res, func(e model.Event) bool { return e.Kind == model.KindReturn }); len(returned) != 2 {
					t.Fatalf("%d calls returned", len(returned))
				}
				if garbage.timers != c.waited {
					t.Errorf("noticed: %v, want %v", garbage.timers, c.waited)
				}
			}
		})
	}
}

func TestNothingIsCollectedWithinARun(t *testing.T) {
	h := NewHost(t)
	var before, within debug.GCStats
	s := newStage().does("a/1", func(th *Thread, c *redis.Client) {
		debug.ReadGCStats(&before)
		for range 200 {
			_ = make([]byte, 1<<20) // far beyond what would begin one
			th.Sleep(time.Millisecond)
		}
		debug.ReadGCStats(&within)
	})
	s.run(h)
	if before.NumGC != within.NumGC {
		t.Errorf("%d collections within a run", within.NumGC-before.NumGC)
	}
	// What it left is collected before the next one.
	newStage().run(h)
	var after debug.GCStats
	if debug.ReadGCStats(&after); after.NumGC < within.NumGC+2 {
		t.Errorf("%d collections after a run that left 200 MiB", after.NumGC-within.NumGC)
	}
}

func TestTheCollectorIsOnAgainAfterARun(t *testing.T) {
	defer func(d time.Duration) { garbage.breath = d }(garbage.breath)
	garbage.breath = time.Hour // so that the test does in time what its timer would do
	for range 2 {
		newStage().run(NewHost(t))
		if !garbage.on.Stop() {
			t.Fatal("nothing will turn the collector on")
		}
	}
	garbage.turnOn()
	was := debug.SetGCPercent(100)
	debug.SetGCPercent(was)
	if was < percentMin {
		t.Errorf("the collector was left at %d percent", was)
	}
}

// What one run leaves to the next must not be seen there: neither its record's
// memory nor anything else that is used again.
func TestARunAfterOthersIsTheSame(t *testing.T) {
	h := NewHost(t)
	digest := func() string {
		return newStage().does("a/1", incr).does("b/1", incr).run(h).Record.Digest()
	}
	first := newStage().does("a/1", incr).does("b/1", incr).run(h).Record
	want := first.Digest()
	for range 3 {
		crowd(incr, time.Minute).run(h)
		if got := digest(); got != want {
			t.Errorf("%.12s after another run, %.12s before", got, want)
		}
	}
	if got := first.Digest(); got != want {
		t.Errorf("the record of the first run has become %.12s", got)
	}
}
