package locktest

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"
)

// timeLimit is the real time that a Run has before its test binary meets -timeout, which would end it without
// a word about what was found. It decides only where the Run stops. No verdict depends on it.
type timeLimit struct {
	now    func() time.Time
	latest time.Time     // the instant at which the Run is to be over; zero: there is no limit
	free   time.Duration // after latest
	// timeout is the -timeout that the user knows.
	timeout time.Duration
}

// reserve is the time that stays free for the last run and for the texts of the failures.
const reserve = 3 * time.Second

// newTimeLimit returns the limit of a Run that begins now. A tenth of the time until the deadline stays
// free, but at least reserve, or a quarter if the time is short.
func newTimeLimit(now func() time.Time, deadline time.Time, timeout time.Duration) timeLimit {
	whole := deadline.Sub(now())
	free := max(whole/10, min(whole/4, reserve))
	return timeLimit{now, deadline.Add(-free), free, timeout}
}

// timeLimitOf returns the limit of a Run of a test that begins now.
func timeLimitOf(t *testing.T) timeLimit {
	deadline, ok := t.Deadline()
	if !ok {
		return timeLimit{now: time.Now}
	}
	limit := newTimeLimit(time.Now, deadline, 0)
	if f := flag.Lookup("test.timeout"); f != nil {
		limit.timeout, _ = f.Value.(flag.Getter).Get().(time.Duration)
	}
	return limit
}

// before reports whether more than left remains of the time.
func (l timeLimit) before(left time.Duration) bool {
	return l.latest.IsZero() || l.latest.Sub(l.now()) > left
}

// over reports whether nothing remains of the time.
func (l timeLimit) over() bool { return !l.before(0) }

// late reports whether a quarter of the time that stays free is over, too, so that nothing more is played.
func (l timeLimit) late() bool {
	return !l.latest.IsZero() && !l.now().Before(l.latest.Add(l.free/4))
}

// shrinking returns the time for making failures small. It is the smaller of most and a quarter of the time that
// remains.
func (l timeLimit) shrinking(most time.Duration) time.Duration {
	if l.latest.IsZero() {
		return most
	}
	return min(most, max(l.latest.Sub(l.now())/4, 0))
}

// standing returns the time after which a world that stands still is given up: most, but less if the test would
// meet its -timeout before.
func (l timeLimit) standing(most time.Duration) time.Duration {
	if l.latest.IsZero() {
		return most
	}
	return min(most, max(l.latest.Sub(l.now()), l.free/2, time.Second/4))
}

// why is the reason why something was not played.
func (l timeLimit) why() string {
	return fmt.Sprintf("the test would have met its -timeout of %v", l.timeout)
}

// errTimeOver ends an exploration before the test meets its -timeout.
var errTimeOver = errors.New("the time is over")

// skipIfLate skips a subtest for which no time remains. Run then fails.
func (r *runner) skipIfLate(t *testing.T) {
	t.Helper()
	if r.limit.over() {
		r.unplayed++
		say(t).Skip("not played: ", r.limit.why())
	}
}
