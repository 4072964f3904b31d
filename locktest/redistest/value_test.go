package redistest_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// drawing is a setnx whose values come from a source that nobody can seed.
type drawing struct {
	setnx
	p *locktest.Process
}

func (l *drawing) Lock(ctx context.Context) error {
	for {
		l.value = l.p.Value(strconv.FormatUint(rand.Uint64(), 36))
		if ok, err := l.take(ctx, l.value); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			l.value = ""
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Process.Value makes such a lock repeat.
func TestALockWhoseValuesCannotBeSeeded(t *testing.T) {
	s := subjectOf("drawing", false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &drawing{setnx{rdb: rdb, name: name}, p}
		}}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 20, Faults: "none"})
}
