package redisson

import (
	"sync"
	"time"

	"lockstep/lockimpl"
)

// wheel is the clock of the library's timers (HashedWheelTimer of Netty): a timer fires at the
// first tick after its time, and all timers of a client share its ticks. A timer that is set again
// whenever it fires is late by up to a tick each time, so its delays add up. A nil wheel is exact.
type wheel struct {
	tick  time.Duration
	began time.Time

	mu    sync.Mutex
	armed int // timers until now
}

// newWheel makes a wheel that started less than a tick ago.
func newWheel(tick time.Duration, env lockimpl.Environment) *wheel {
	return &wheel{tick: tick, began: time.Now().Add(-env.Jitter(0, tick))}
}

// tickOf returns the tick of a client's wheel. It depends on the shorter of response timeout and
// retry delay: it is half of the remainder of that time over whole tenths of a second, or 100 ms if
// there is no remainder. With the default settings it is 100 ms. In releases that draw their retry
// delays, each client draws one for the tick, which is then 1 to 49 ms or, one time in a hundred,
// 100 ms.
func tickOf(retry, response time.Duration) time.Duration {
	const tenth = 100 * time.Millisecond
	least := min(retry, response).Truncate(time.Millisecond)
	switch over := least % tenth; {
	case over != 0:
		return max((over / 2).Truncate(time.Millisecond), time.Millisecond)
	case least == tenth:
		return tenth / 2
	}
	return tenth
}

// Timers of one tick fire in the order in which they were set, a nanosecond apart. apart is the
// number of such nanoseconds.
const apart = 100_000

// until returns the time until a timer of the given length fires.
func (w *wheel) until(d time.Duration) time.Duration {
	if w == nil {
		return d
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = (w.armed + 1) % apart
	now := time.Now()
	ticks := now.Add(d).Sub(w.began)/w.tick + 1
	return w.began.Add(ticks * w.tick).Add(time.Duration(w.armed)).Sub(now)
}
