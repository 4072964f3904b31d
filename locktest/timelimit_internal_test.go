package locktest

import (
	"testing"
	"time"
)

// A part of the time stays free after the limit, and making failures small ends before it.
func TestATimeLimitLeavesTime(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ timeout, latest, shrinking time.Duration }{
		{10 * time.Minute, 9 * time.Minute, 10 * time.Second},
		{40 * time.Second, 36 * time.Second, 9 * time.Second},
		{20 * time.Second, 17 * time.Second, 4250 * time.Millisecond},
		{8 * time.Second, 6 * time.Second, 1500 * time.Millisecond},
	} {
		now := begun
		limit := newTimeLimit(func() time.Time { return now }, begun.Add(c.timeout), c.timeout)
		if latest, shrinking := limit.latest.Sub(begun), limit.shrinking(10*time.Second); latest != c.latest || shrinking != c.shrinking {
			t.Errorf("%v: the run may last for %v, of which making failures small takes %v; want %v and %v", c.timeout, latest, shrinking, c.latest, c.shrinking)
		}
		if standing := limit.standing(time.Hour); standing != c.latest || limit.standing(time.Second) != time.Second {
			t.Errorf("%v: a world may stand still for %v, want %v", c.timeout, standing, c.latest)
		}
		now = begun.Add(c.latest - time.Second)
		if limit.over() || limit.before(time.Second) || !limit.before(time.Second-1) {
			t.Errorf("%v: a second before the end there is no second", c.timeout)
		}
		now = begun.Add(c.latest)
		if !limit.over() || limit.shrinking(time.Second) != 0 {
			t.Errorf("%v: the time does not end", c.timeout)
		}
		if standing := limit.standing(time.Hour); standing != (c.timeout-c.latest)/2 {
			t.Errorf("%v: at the end a world may stand still for %v, want half of what stays free", c.timeout, standing)
		}
	}
	if none := (timeLimit{now: time.Now}); none.over() || none.standing(time.Hour) != time.Hour || none.shrinking(time.Minute) != time.Minute {
		t.Error("a test without a -timeout has a limit")
	}
}

// The limit is that of the test binary.
func TestTheTimeLimitIsThatOfGoTest(t *testing.T) {
	deadline, ok := t.Deadline()
	limit := timeLimitOf(t)
	if ok != !limit.latest.IsZero() || ok && (!limit.latest.Before(deadline) || limit.timeout <= 0) {
		t.Errorf("the deadline is %v, %t, and the limit %v with a -timeout of %v", deadline, ok, limit.latest, limit.timeout)
	}
}
