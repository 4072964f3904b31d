package sim

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// garbage controls the garbage collector around the bubbles of this process. A collection during a
// run would reorder goroutines that are runnable at one instant, so none may begin or be under way
// during a run.
var garbage = collector{breath: 50 * time.Millisecond}

type collector struct {
	mu      sync.Mutex
	bubbles int
	off     bool
	percent int         // the GOGC to restore, while the collector is off
	limit   int64       // the memory limit to restore, while the collector is off
	on      *time.Timer // turns the collector on again
	live    uint64      // bytes after the last collection by this package
	// breath is the real time after a run within which another may begin without a collection
	// before it. It has no effect inside a run.
	breath time.Duration
	most   uint64 // see LimitMemory; 0: no limit
	next   uint64 // the size in bytes from which relieve collects
}

// LimitMemory makes this process, which must be one of Main, try to use at most this number of
// bytes. Long runs then collect between two steps, when no goroutine can run, so none is reordered.
// A program without a limit never collects during a run.
func LimitMemory(bytes int64) {
	garbage.mu.Lock()
	defer garbage.mu.Unlock()
	garbage.most, garbage.next = uint64(bytes), 0
	if !garbage.off {
		debug.SetMemoryLimit(bytes)
	}
}

// relieve collects during a run if the heap has grown much since the last collection. The caller is
// the scheduler of the run, and all other goroutines are durably blocked.
func (c *collector) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most == 0 {
		return
	}
	if c.next = max(c.next, c.most/8*3); heap() < c.next {
		return
	}
	runtime.GC()
	c.next = heap() * 3 / 2
}

const (
	// memoryMax is the size from which the collector runs during a run in any case.
	memoryMax = 2 << 30
	// garbageMax is the number of bytes that short runs may leave before a collection.
	garbageMax = 32 << 20
	// percentMin is the least growth of the heap between runs, in a program that belongs to
	// its worlds. With less growth, the garbage of one run would be collected, and its
	// memory given up, just before the next run needs it.
	percentMin = 400
)

// bubbleBegins turns the collector off, collects before if that is needed, and empties the pools.
func (c *collector) bubbleBegins() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bubbles++
	emptyPools()
	needed := false
	if !c.off {
		c.percent = debug.SetGCPercent(-1)
		c.limit = debug.SetMemoryLimit(memoryMax)
		c.off = true
		needed = true // a collection may be under way
	}
	if !needed && heap() < c.live+garbageMax {
		return
	}
	collect()
	c.live, c.next = heap(), 0
}

// collect collects. New goroutines get stacks of the average size that the last collection found.
// Without some larger stacks in use during the collection, each of the many goroutines of a run would
// begin with 2 KiB and move to a larger stack three times.
func collect() {
	var met, gone sync.WaitGroup
	collected := make(chan struct{})
	for range 32 {
		met.Add(1)
		gone.Go(func() {
			useStack(func() {
				met.Done()
				<-collected
			})
		})
	}
	met.Wait()
	runtime.GC()
	close(collected)
	gone.Wait()
}

// useStack calls f with 6 KiB of the stack in use.
//
//go:noinline
func useStack(f func()) {
	var used [6 << 10]byte
	f()
	runtime.KeepAlive(&used)
}

// bubbleEnds turns the collector on again, unless another run comes at once.
func (c *collector) bubbleEnds() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bubbles--
	if c.on == nil {
		c.on = time.AfterFunc(c.breath, c.turnOn)
	} else {
		c.on.Reset(c.breath)
	}
}

func (c *collector) turnOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bubbles == 0 && c.off {
		if c.most > 0 {
			debug.SetMemoryLimit(int64(c.most))
		}
		if settled.Load() {
			debug.SetGCPercent(max(c.percent, percentMin))
		} else {
			debug.SetMemoryLimit(c.limit)
			debug.SetGCPercent(c.percent)
		}
		c.off = false
	}
}

// heap returns the size of all objects, garbage included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
