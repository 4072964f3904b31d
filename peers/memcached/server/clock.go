package server

import "time"

const second = int64(time.Second)

// clock is the clock by which items end. It stands still between two ticks, which come once a
// second, and shows whole seconds of the machine's monotonic clock. Setting the wall clock does not
// change it.
type clock struct {
	bootNs int64 // when the server started
	tickNs int64 // the first tick after the server started or stood still
	shows  int64 // the time that it shows until tickNs
	// started is the Unix time at which shows was 0. Absolute times are counted from it.
	started int64
}

// atStart is the time that the clock shows when the server starts.
const atStart = 62

// newClock returns the clock of a server that starts now; wall is the Unix time.
func newClock(nowNs, wall int64) clock {
	return clock{bootNs: nowNs, tickNs: nowNs, shows: atStart, started: wall - atStart}
}

// shownAt returns the time that the clock shows at an instant that is not before the last stall.
func (c *clock) shownAt(nowNs int64) int64 {
	if nowNs < c.tickNs {
		return c.shows
	}
	return c.shown((nowNs - c.tickNs) / second)
}

// shown returns the time that the clock shows from a tick on, counted from tickNs.
func (c *clock) shown(tick int64) int64 {
	return atStart + (c.tickNs+tick*second-c.bootNs)/second
}

// reaches returns the instant at which the clock first shows the time rel or a later one.
func (c *clock) reaches(rel int64) int64 {
	return c.tickNs + max(0, rel-c.shown(0))*second
}

// stall lets the server stand still. A tick that is due within the stall comes at its end, and each
// next one a second later.
func (c *clock) stall(nowNs, untilNs int64) {
	shows, next := c.shownAt(nowNs), c.tickNs
	if nowNs >= next {
		next += (nowNs-next)/second*second + second
	}
	if next < untilNs {
		c.shows, c.tickNs = shows, untilNs
	}
}

// aMonth is the greatest expiry that counts from now on, in seconds. A greater number is a Unix
// time.
const aMonth = 30 * 24 * 60 * 60

// rel returns the time of the clock at which an item with the expiry exptime ends; 0: never.
func (c *clock) rel(nowNs int64, exptime int32) int64 {
	e := int64(exptime)
	if e < 0 {
		e = aMonth + 1 // long ago
	}
	switch {
	case e == 0:
		return 0
	case e <= aMonth:
		return c.shownAt(nowNs) + e
	case e <= c.started:
		return 1
	}
	return e - c.started
}
