// Package rueidislock judges the locker of github.com/redis/rueidis/rueidislock,
// unmodified.
//
// Besides settings of the client, one setting of the locker is not the default: NoLoopTracking is on.
// Without it a holder is notified of its own renewals. So it renews its lease again and again without a
// pause, once half of the lease is over.
//
// Its promises, with their places in version 1.0.79: one owner has the majority of the keys, for
// KeyValidity, which is extended every ExtendInterval (lock.go, lines 25 to 27; README.md, section "How
// it works"); the context of a hold is cancelled at once when the majority is lost, and a waiter tries
// again at once when the lock is given up (README.md, section "Features backed by the Redis Client Side
// Caching"). It promises no order among waiters, and no token.
//
// Some seeds can give two different runs. Two selects of the locker can have two cases ready, and no
// seed decides the choice: one in WithContext, between the end of the caller's context and an
// invalidation; and one of a holder, between a renewal that is due and an invalidation of its key.
package rueidislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
	"lockstep/peers/rueidistest"
)

// validity is the default KeyValidity of the locker, after which its keys end. It extends them every
// ExtendInterval, which is half of that by default (rueidis 1.0.79, rueidislock/lock.go, lines 25 to
// 27, 61 and 64). So a single lost extension may lose the hold.
const validity = 5 * time.Second

// renewEvery is the longest time between two extensions of a key. The next one is due an interval
// after the answer to the last one. If an answer takes longer than TryNextAfter, which is 20 ms by
// default (line 67), nobody can take the lock at all.
const renewEvery = validity/2 + 20*time.Millisecond

// Subject returns the lock that needs majority of 2*majority-1 keys. The default of the locker is
// 2.
func Subject(majority int) locktest.Subject {
	return subject(fmt.Sprintf("rueidislock-%d", majority), fmt.Sprintf("rueidislock's locker, keys that must agree: %d", majority), majority, 0)
}

// Patient is the lock with one key whose tries have a second each (TryNextAfter) and not 20 ms, so
// that a slow network does not end them.
var Patient = subject("rueidislock-patient", "rueidislock's locker, one key, and a second for each try (TryNextAfter)", 1, time.Second)

// subject returns the lock whose tries have the time tryNextAfter; 0: the default.
func subject(name, about string, majority int, tryNextAfter time.Duration) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Servers: redistest.Servers(1),
		Parts: 2*majority - 1, Lease: validity, Renewed: true, RenewEvery: renewEvery, State: redistest.Majority(2*majority-1, func(i int, lock string) string { return fmt.Sprintf("rueidislock:%d:%s", i, lock) }),
		Policy: "A process has one locker, the library tries an acquire again when it hears of a change and deletes the keys of a hold that ends, and an unlock, which says nothing of its outcome, is called once.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				KeyMajority: int32(majority), TryNextAfter: tryNextAfter, NoLoopTracking: true, ClientOption: rueidistest.Options(p, 0), ClientBuilder: seeded(p),
			})
			return client{l}, err
		},
	}
}

// seeded returns a function that makes the clients of a locker, which draws its values from math/rand/v2. The value is
// the first argument after the key of its scripts, and becomes one that is the same in each run.
func seeded(p *locktest.Process) func(rueidis.ClientOption) (rueidis.Client, error) {
	return func(o rueidis.ClientOption) (rueidis.Client, error) {
		c, err := rueidistest.Builder(p)(o)
		if c == nil {
			return nil, err
		}
		return values{c, p}, nil // a client that is not connected connects later
	}
}

type values struct {
	rueidis.Client
	p *locktest.Process
}

// Do implements rueidis.Client.
func (c values) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if words := cmd.Commands(); len(words) > 4 { // EVALSHA or EVAL, the script, 1, the key, the value
		words[4] = c.p.Value(words[4])
	}
	return c.Client.Do(ctx, cmd)
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

// take acquires the lock by one of the locker's functions.
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
