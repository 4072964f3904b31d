// Package rueidislock judges the locker of github.com/redis/rueidis/rueidislock,
// unmodified.
//
// One setting of the locker is not the default, beside those of the client. NoLoopTracking is
// on: without it a holder renews its lease without a pause once half of it is over, since it
// hears of its own renewals.
//
// Some seeds give two runs. Two selects of the locker can have two cases ready, and nothing seeds
// the choice: one in WithContext, between the end of the caller's context and an invalidation;
// and one of a holder, between a renewal that is due and an invalidation of its key.
package rueidislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis/rueidislock"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
	"lockstep/peers/rueidistest"
)

// Subject returns the lock that must have so many of 2*majority-1 keys. 2 is the default.
func Subject(majority int) locktest.Subject {
	return locktest.Subject{
		Name: fmt.Sprintf("rueidislock-%d", majority), About: fmt.Sprintf("rueidislock's locker, keys that must agree: %d", majority), Servers: redistest.Servers(1),
		Parts: 2*majority - 1, Lease: 5 * time.Second, Renewed: true, RenewEvery: 5 * time.Second, State: redistest.Majority(2*majority-1, func(i int, lock string) string { return fmt.Sprintf("rueidislock:%d:%s", i, lock) }),
		Open: func(p *locktest.Process) (locktest.Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{KeyMajority: int32(majority), NoLoopTracking: true, ClientOption: rueidistest.Options(p, 0), ClientBuilder: rueidistest.Builder(p)})
			return client{l}, err
		},
	}
}

type client struct{ rueidislock.Locker }

func (c client) Lock(name string) (locktest.Lock, error) { return &lock{l: c.Locker, name: name}, nil }

func (c client) Close() error {
	c.Locker.Close()
	return nil
}

type lock struct {
	l      rueidislock.Locker
	name   string
	held   context.Context
	unlock context.CancelFunc
}

// take asks for a hold by one of the locker's functions.
func (l *lock) take(ctx context.Context, with func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	own, settle := locktest.Outlive(ctx)
	held, unlock, err := with(own, l.name)
	if err == nil {
		l.held, l.unlock = held, unlock
	}
	return settle(err)
}

func (l *lock) Lock(ctx context.Context) error { return l.take(ctx, l.l.WithContext) }

func (l *lock) TryLock(ctx context.Context) (bool, error) {
	err := l.take(ctx, l.l.TryWithContext)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return false, nil
	}
	return err == nil, err
}

func (l *lock) Unlock(context.Context) error {
	if l.unlock == nil {
		return locktest.ErrNotHeld
	}
	l.unlock()
	l.unlock = nil
	return errors.New("the locker does not tell whether the keys are deleted")
}

// Lost implements locktest.Watched.
func (l *lock) Lost() <-chan struct{} { return l.held.Done() }
