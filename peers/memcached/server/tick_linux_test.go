package server

import (
	"testing"
	"time"
)

// A run begins at the first tick that is far enough away.
func TestTheNextTickIsFound(t *testing.T) {
	const hour = time.Hour // so that no stall of the test matters
	for _, c := range []struct{ in, want time.Duration }{
		{hour - 500*time.Millisecond, hour},
		{hour + 100*time.Millisecond, hour + time.Second},
	} {
		now := time.Now()
		r := &realServer{ticked: now, ticks: 1}
		at, err := r.Tick(c.in)
		took := time.Since(now)
		if err != nil {
			t.Fatal(err)
		}
		if got := at.Sub(now); got%time.Second != 0 || got < c.in || got >= c.in+took+time.Second {
			t.Errorf("in %v: %v after a tick, want %v", c.in, got, c.want)
		}
	}
}
