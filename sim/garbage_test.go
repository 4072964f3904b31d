package sim

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

func TestNothingIsCollectedWithinARun(t *testing.T) {
	var before, within debug.GCStats
	play(t, Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
		debug.ReadGCStats(&before)
		for range 200 {
			_ = make([]byte, 1<<20) // far more than would begin a collection
			th.Sleep(time.Millisecond)
		}
		debug.ReadGCStats(&within)
	}})
	if before.NumGC != within.NumGC {
		t.Errorf("%d collections within a run", within.NumGC-before.NumGC)
	}
	// The garbage of a run is collected before the next run.
	play(t, Config{}, nil, nil)
	var after debug.GCStats
	if debug.ReadGCStats(&after); after.NumGC == within.NumGC {
		t.Error("no collection after a run that left 200 MiB")
	}
}

// A timer that one run left in a pool would kill the next run. On one processor no collection is needed to
// empty the pools.
func TestThePoolsAreEmptyWhenARunBegins(t *testing.T) {
	var pool sync.Pool
	fill := func() {
		for range 64 { // the race detector lets a pool drop some
			pool.Put(new(int))
		}
	}
	for range 2 {
		fill()
		var before, within debug.GCStats
		debug.ReadGCStats(&before)
		play(t, Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
			debug.ReadGCStats(&within)
			if pool.Get() != nil {
				t.Error("the run found what an earlier one had put into a pool")
			}
			fill()
			th.Sleep(time.Second)
			if pool.Get() == nil {
				t.Error("a pool was emptied within the run")
			}
		}})
		if t.Failed() || within.NumGC == before.NumGC {
			return
		}
	}
	t.Error("there was a collection before each run")
}

// With several processors somebody may use a pool, so only collections empty it.
func TestThePoolsAreEmptiedOnSeveralProcessors(t *testing.T) {
	var pool sync.Pool
	for _, procs := range []int{1, 2} {
		was := runtime.GOMAXPROCS(procs)
		for range 64 {
			pool.Put(new(int))
		}
		var before, after debug.GCStats
		debug.ReadGCStats(&before)
		emptyPools()
		debug.ReadGCStats(&after)
		if pool.Get() != nil || procs > 1 && after.NumGC < before.NumGC+2 {
			t.Errorf("%d processors: the pool is not empty after %d collections", procs, after.NumGC-before.NumGC)
		}
		runtime.GOMAXPROCS(was)
	}
}

// A program with a limit of memory collects during a long run, between two steps, and the record
// stays the same.
func TestALimitOfMemoryHoldsWithinARun(t *testing.T) {
	most := debug.SetMemoryLimit(-1)
	defer func() {
		LimitMemory(most)
		garbage.mu.Lock() // of the run before, the collector may be turned on just now
		garbage.most = 0
		garbage.mu.Unlock()
	}()
	const steps = 4 * relieveEvery
	digests := map[int64]string{}
	for _, limit := range []int64{math.MaxInt64, 64 << 20} {
		LimitMemory(limit)
		var before, within debug.GCStats
		var largest uint64
		res := play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
			debug.ReadGCStats(&before)
			c := mustDial(th, 1)
			for i := range steps {
				_ = make([]byte, 80<<10) // too large for the stack
				th.Sleep(time.Millisecond)
				if largest = max(largest, heap()); i%100 == 0 {
					c.talk("hello\n")
				}
			}
			debug.ReadGCStats(&within)
		}})
		digests[limit] = res.Record.Digest()
		collected := within.NumGC - before.NumGC
		if limited := limit < math.MaxInt64; limited != (collected >= 3) || !limited && collected > 0 || limited && largest > 160<<20 {
			t.Errorf("limit %d: %d collections in %d steps, at most %d bytes", limit, collected, res.Steps, largest)
		}
	}
	if digests[math.MaxInt64] != digests[64<<20] {
		t.Error("the records differ")
	}
}

// A host with a limit of steps ends a run that takes more.
func TestAHostBoundsTheSteps(t *testing.T) {
	for most, want := range map[int]bool{0: false, 50: true, 100_000: false} {
		h := NewHost(t)
		h.MostSteps = most
		res := playOn(h, Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
			for range 200 {
				th.Sleep(time.Millisecond)
			}
		}})
		if ended := most > 0 && res.Steps >= most; ended != want || !want && res.Steps < 200 {
			t.Errorf("at most %d: %d steps", most, res.Steps)
		}
	}
}

// A run that its host stops ends at once.
func TestAHostStopsARun(t *testing.T) {
	const steps = 5 * relieveEvery
	for _, stop := range []int{1, 2 * relieveEvery, 2 * steps} { // the step at which the host stops it
		h := NewHost(t)
		slept := 0
		h.Stop = func() bool { return slept >= stop }
		res := playOn(h, Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
			for range steps {
				th.Sleep(time.Millisecond)
				slept++
			}
		}})
		if whole := stop > steps; whole != (res.Steps >= steps) || !whole && (res.Steps < stop || res.Steps > stop+2*relieveEvery) {
			t.Errorf("stopped from sleep %d on: %d steps of %d or more", stop, res.Steps, steps)
		}
	}
}

func TestTheCollectorIsOnAgainAfterARun(t *testing.T) {
	defer func(d time.Duration) { garbage.breath = d }(garbage.breath)
	garbage.breath = time.Hour // so that the test itself does in time what the timer would do
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
