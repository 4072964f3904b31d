// Package redsync judges the mutex of github.com/go-redsync/redsync/v4, unmodified, with its
// default settings and with one option.
//
// One setting differs from the default by the source of its chance alone: the pause between two
// tries. By default its length comes from math/rand. The threads of a process share that stream, so
// two that wake at one instant, because their client is closed, draw from it in any order. Here each
// thread draws from its own stream of crypto/rand, from the same lengths.
//
// Its promises, with their places in version 4.18.1: after Lock nobody else can get the lock until
// Unlock (README.md, line 55), for as long as the expiry lasts, as the article "Distributed Locks with
// Redis" says, to which the README points. The expiry is 8 s (redsync.go, line 32), less the time of
// the acquire and a hundredth for drift (line 38; mutex.go, line 115), and Until returns its end
// (mutex.go, line 49). Unlock and Extend return a status that says whether a majority of the servers
// had the hold (mutex.go, lines 136 and 152). Nothing renews a hold by itself, tells its holder that
// it is gone, orders waiters, or gives a token.
package redsync

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-redsync/redsync/v4"
	rs "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// Subject returns redsync's mutex on a number of independent servers.
func Subject(servers int) locktest.Subject {
	return subject(fmt.Sprintf("redsync-%d", servers), fmt.Sprintf("redsync's mutex, servers: %d", servers), servers)
}

// SetOnExtend is redsync's mutex on five servers with the option that sets the key again on a
// server that has lost it when a hold is extended.
var SetOnExtend = subject("redsync-5-set-on-extend", "redsync's mutex, servers: 5, which sets keys that are gone when it extends (WithSetNXOnExtend)", 5, redsync.WithSetNXOnExtend())

// The shortest pause between two tries, and the one that is longer than all of them, in milliseconds
// (redsync 4.18.1, redsync.go, lines 12, 13 and 35).
const (
	minPauseMs = 50
	maxPauseMs = 250
)

// pause returns the pause before another try. All lengths in whole milliseconds are as likely.
func pause(int) time.Duration {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return time.Duration(minPauseMs+binary.LittleEndian.Uint64(b[:])%(maxPauseMs-minPauseMs)) * time.Millisecond
}

func subject(name, about string, servers int, options ...redsync.Option) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Servers: redistest.Servers(servers), Lease: 8 * time.Second, Waits: maxPauseMs * time.Millisecond, State: redistest.Value(nil),
		Policy: "The lock has no session, the library deletes the keys of an acquire that failed, the adapter tries nothing again, and an unlock that failed may be called again.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			pools := make([]rs.Pool, servers)
			for i := range pools {
				pools[i] = goredis.NewPool(redistest.NewClient(p, i))
			}
			return client{redsync.New(pools...), append(options, redsync.WithRetryDelayFunc(pause))}, nil
		},
	}
}

type client struct {
	*redsync.Redsync
	options []redsync.Option
}

func (c client) Lock(name string) (locktest.Lock, error) {
	return mutex{c.NewMutex(name, c.options...)}, nil
}

func (c client) Close() error { return nil }

type mutex struct{ *redsync.Mutex }

func (m mutex) TryLock(ctx context.Context) (bool, error) {
	err := m.TryLockContext(ctx)
	return err == nil, inOrder(busy(err))
}

func (m mutex) Lock(ctx context.Context) error { return inOrder(busy(m.LockContext(ctx))) }

// Extend implements locktest.Extender.
func (m mutex) Extend(ctx context.Context) error {
	ok, err := m.ExtendContext(ctx)
	var taken *redsync.ErrTaken
	var failed *redsync.RedisError
	switch {
	case ok:
		return nil
	case err == nil, errors.As(err, &taken) && !errors.As(err, &failed):
		return locktest.ErrNotHeld // a majority of the servers has said so
	}
	return inOrder(err)
}

func (m mutex) Unlock(ctx context.Context) error {
	_, err := m.UnlockContext(ctx)
	var failed *redsync.RedisError
	if errors.Is(err, redsync.ErrLockAlreadyExpired) && !errors.As(err, &failed) {
		return locktest.ErrNotHeld // every server has answered
	}
	return inOrder(err)
}

// busy translates the error that another owner has the lock on some servers.
func busy(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return locktest.ErrBusy
	}
	return err
}

// inOrder returns an error that joins the errors of several servers in the order of their texts.
// redsync asks each server in a goroutine. If several goroutines end at one instant, it joins their
// errors in any order.
func inOrder(err error) error {
	var list []error
	var collect func(error)
	collect = func(err error) {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			list = append(list, err)
			return
		}
		for _, e := range joined.Unwrap() {
			collect(e)
		}
	}
	if collect(err); len(list) < 2 {
		return err
	}
	slices.SortStableFunc(list, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(list...)
}
