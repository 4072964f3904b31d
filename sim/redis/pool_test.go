package redis

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
)

// A timer of one bubble in go-redis's pool would kill the next bubble that takes it out, so each case is
// played twice.
func TestAWaitForAConnectionLeavesNoTimer(t *testing.T) {
	givesUp := func(th *sim.Thread, c *redis.Client) {
		_ = operate(th, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return c.Incr(ctx, "n").Err()
		})
	}
	for _, c := range []struct {
		name    string
		wait    body          // of the second thread
		timeout time.Duration // of the pool
		fails   bool          // the second call does
	}{
		{"that was granted", incr, time.Minute, false},
		{"that took too long", incr, 100 * time.Millisecond, true},
		{"that the caller gave up", givesUp, time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sim.NewHost(t)
			for range 2 {
				var came []model.Outcome
				for _, e := range crowd(c.wait, c.timeout).run(h).Record.Events {
					if e.Kind == model.KindReturn {
						came = append(came, e.Outcome)
					}
				}
				if len(came) != 2 || slices.Contains(came, model.Failed) != c.fails {
					t.Fatalf("the calls returned %v", came)
				}
			}
		})
	}
}
