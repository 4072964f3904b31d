package sim

import (
	"sync/atomic"
	"time"
)

// bell wakes the scheduler from its sleep. The scheduler sleeps on one timer. Whoever rings the bell sets the
// timer to the present instant. Like all timers of a bubble, it then ends the sleep when all other goroutines
// are blocked.
type bell struct {
	timer  *time.Timer
	rung   atomic.Bool // since the scheduler last stopped it
	sleeps atomic.Bool // the scheduler sleeps, or is about to
}

// ring wakes the scheduler. Any goroutine.
func (b *bell) ring() {
	if !b.rung.Swap(true) && b.sleeps.Load() {
		b.timer.Reset(0)
	}
}

// sleep lets simulated time pass until the bell rings, at most d.
func (b *bell) sleep(d time.Duration) {
	if b.timer == nil {
		b.timer = time.NewTimer(d)
	} else {
		b.timer.Reset(d)
	}
	b.sleeps.Store(true)
	if !b.rung.Load() { // who rang before sleeps was set has left the timer alone
		<-b.timer.C
	}
	b.sleeps.Store(false)
}

// rings reports whether the bell rang since it was last stopped.
func (b *bell) rings() bool { return b.rung.Load() }

// stop reports whether the bell rang since it was last stopped, and stops it.
func (b *bell) stop() bool { return b.rung.Swap(false) }
