package redistest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// watched is a setnx whose watchdog renews the lease until the unlock.
type watched struct {
	lock setnx // which has no TryLock here
	stop context.CancelFunc
}

const compareAndExpire = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`

func (l *watched) Lock(ctx context.Context) error {
	err := l.lock.Lock(ctx)
	if err == nil {
		var held context.Context
		held, l.stop = context.WithCancel(context.Background())
		go l.renew(held, l.lock.value)
	}
	return err
}

func (l *watched) renew(held context.Context, value string) {
	for {
		select {
		case <-held.Done():
			return
		case <-time.After(lease / 3):
			n, err := l.lock.rdb.Eval(held, compareAndExpire, []string{l.lock.name}, value, lease.Milliseconds()).Int()
			if err == nil && n == 0 || errors.Is(err, redis.ErrClosed) {
				return
			}
		}
	}
}

func (l *watched) Unlock(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	return l.lock.Unlock(ctx)
}

// A renewal is about the lock whose value it carries. Without that a history has the
// lease end while the watchdog keeps it, and a hold longer than two leases breaks it.
func TestARenewedLock(t *testing.T) {
	s := subjectOf("renewed", false)
	s.Renewed = true
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.ReadTimeout = lease / 10 // so that a renewal that got no answer is followed by another in time
		return anyClient{redis.NewClient(opt), func(rdb *redis.Client, name string) locktest.Lock {
			return &watched{lock: setnx{rdb: rdb, name: name}}
		}}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 50, Faults: "none"})
}
