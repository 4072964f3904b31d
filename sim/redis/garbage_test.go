package redis

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/sim"
)

// crowd is two threads that share one connection; the second waits for it as
// the case says.
func crowd(wait body, timeout time.Duration) *stage {
	s := newStage()
	s.Processes = []sim.ProcessConfig{{Name: "a", Threads: 2}}
	s.LatencyMin, s.LatencyMax = time.Second, time.Second
	s.client = func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, timeout }
	return s.does("a/1", incr).does("a/2", wait)
}

func incr(th *sim.Thread, c *redis.Client) {
	_ = operate(th, func(ctx context.Context) error { return c.Incr(ctx, "n").Err() })
}

// A run must not be affected by the memory that an earlier run left, such as that of its record.
func TestARunAfterOthersIsTheSame(t *testing.T) {
	h := sim.NewHost(t)
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
