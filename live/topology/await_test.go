//go:build linux

package topology

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The error says what was missing at the last look. An interrupt is no fault of the servers.
func TestAwaitSaysWhatWasMissing(t *testing.T) {
	always := func(missing string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return missing, err }
	}
	const late = "the Redis servers did not become ready within 1m0s; the last check found this: "
	for _, c := range []struct {
		rule  string
		ready func(context.Context) (string, error)
		after time.Duration // the caller gives up; 0: never
		want  string
	}{
		{"nothing is missing", always("", nil), 0, ""},
		{"something is", always("replica 1 has no data yet", nil), 0, late + "replica 1 has no data yet"},
		{"a server does not answer", always("", errors.New("connection refused")), 0, late + "connection refused"},
		{"none does before the time is over", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, 0, late + "no server answered"},
		{"the caller gives up", always("replica 1 has no data yet", nil), time.Second, "context canceled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.after > 0 {
				time.AfterFunc(c.after, cancel)
			}
			got := ""
			if err := await(ctx, c.ready); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.rule, got, c.want)
			}
		})
	}
}
