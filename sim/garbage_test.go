package sim

import (
	"runtime/debug"
	"testing"
	"time"
)

func TestTimersThatMayBeLeftAreNoticed(t *testing.T) {
	for _, c := range []struct {
		name string
		body func(*Thread)
		want bool
	}{
		{"nobody dialled", func(*Thread) {}, false},
		{"nobody says", func(th *Thread) { _ = mustDial(th, 1).Close() }, true},
		{"its client says so", func(th *Thread) {
			th.p.TimersLeft(func() bool { return false })
			th.p.TimersLeft(func() bool { return true })
			_ = mustDial(th, 1).Close()
		}, true},
		{"its clients say no", func(th *Thread) {
			th.p.TimersLeft(func() bool { return false })
			_ = mustDial(th, 1).Close()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			garbage.bubbleBegins() // so that what earlier tests left is gone
			garbage.bubbleEnds(true)
			play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": c.body})
			equal(t, "noticed", garbage.timers, c.want)
		})
	}
}

func TestNothingIsCollectedWithinARun(t *testing.T) {
	var before, within debug.GCStats
	play(t, Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
		debug.ReadGCStats(&before)
		for range 200 {
			_ = make([]byte, 1<<20) // far beyond what would begin one
			th.Sleep(time.Millisecond)
		}
		debug.ReadGCStats(&within)
	}})
	if before.NumGC != within.NumGC {
		t.Errorf("%d collections within a run", within.NumGC-before.NumGC)
	}
	// What it left is collected before the next one.
	play(t, Config{}, nil, nil)
	var after debug.GCStats
	if debug.ReadGCStats(&after); after.NumGC < within.NumGC+2 {
		t.Errorf("%d collections after a run that left 200 MiB", after.NumGC-within.NumGC)
	}
}

func TestTheCollectorIsOnAgainAfterARun(t *testing.T) {
	defer func(d time.Duration) { garbage.breath = d }(garbage.breath)
	garbage.breath = time.Hour // so that the test does in time what its timer would do
	for range 2 {
		play(t, Config{}, nil, nil)
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
