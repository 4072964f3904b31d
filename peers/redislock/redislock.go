// Package redislock judges the lock of github.com/bsm/redislock, unmodified.
//
// Its promises, with the lines of redislock.go in version 0.9.4: a hold has a TTL, and an Obtain that
// does not get it returns ErrNotObtained (lines 54 to 55); Refresh gives the hold a new TTL, and
// returns ErrNotObtained if the hold is gone (lines 176 to 177); Release then returns ErrLockNotHeld
// (lines 189 to 190), so it ends no hold of another owner. Nothing renews a hold, tells its holder
// that it is gone, orders waiters, or gives a token.
package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

const (
	lease = 8 * time.Second
	pause = 100 * time.Millisecond // between two tries
)

// Subject is redislock's lock with its linear back-off of 100 ms.
var Subject = locktest.Subject{
	Name: "redislock", About: "redislock's lock with a back-off of 100 ms", Servers: redistest.Servers(1), Lease: lease, Waits: pause, State: redistest.Value(nil),
	Policy: "The lock has no session, an acquire that failed is not tried again and leaves its key until the lease ends, and an unlock that failed may be called again.",
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return client{redislock.New(redistest.NewClient(p, 0))}, nil
	},
}

type client struct{ *redislock.Client }

func (c client) Lock(name string) (locktest.Lock, error) { return &lock{c: c, name: name}, nil }

func (c client) Close() error { return nil }

type lock struct {
	c    client
	name string
	held *redislock.Lock
}

func (l *lock) obtain(ctx context.Context, retry redislock.RetryStrategy) error {
	held, err := l.c.Obtain(ctx, l.name, lease, &redislock.Options{RetryStrategy: retry})
	if errors.Is(err, redislock.ErrNotObtained) {
		return locktest.ErrBusy
	}
	if err == nil {
		l.held = held
	}
	return err
}

func (l *lock) TryLock(ctx context.Context) (bool, error) {
	err := l.obtain(ctx, redislock.NoRetry())
	return err == nil, err
}

func (l *lock) Lock(ctx context.Context) error {
	return l.obtain(ctx, redislock.LinearBackoff(pause))
}

// Extend implements locktest.Extender.
func (l *lock) Extend(ctx context.Context) error {
	if l.held == nil {
		return locktest.ErrNotHeld
	}
	err := l.held.Refresh(ctx, lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return locktest.ErrNotHeld
	}
	return err
}

func (l *lock) Unlock(ctx context.Context) error {
	err := l.held.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return locktest.ErrNotHeld
	}
	return err
}
