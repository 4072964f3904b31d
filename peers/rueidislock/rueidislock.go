// Package rueidislock judges the locker of github.com/redis/rueidis/rueidislock,
// unmodified.
//
// Four settings are not the defaults. NoLoopTracking is on: without it a holder renews its
// lease without a pause once half of it is over, since it hears of its own renewals.
// ForceSingleClient leaves out the question whether the server is a cluster. DialCtxFn
// reaches the world. RetryDelay has the mean of the default and no jitter.
package rueidislock

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// Subject returns the lock that must have so many of 2*majority-1 keys. 2 is the default.
func Subject(majority int32) locktest.Subject {
	return locktest.Subject{
		Name: fmt.Sprintf("rueidislock-%d", majority), About: fmt.Sprintf("rueidislock's locker, keys that must agree: %d", majority), Servers: redistest.Servers(1), Parts: int(2*majority - 1), Lease: 5 * time.Second, Renewed: true, State: state(int(majority)),
		Open: func(p *locktest.Process) (locktest.Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{KeyMajority: majority, NoLoopTracking: true,
				ClientBuilder: func(o rueidis.ClientOption) (rueidis.Client, error) {
					c, err := rueidis.NewClient(o)
					if c == nil {
						return nil, err
					}
					return &wire{Client: c, p: p, values: map[string]string{}}, nil // a client that is not connected connects later
				},
				ClientOption: rueidis.ClientOption{InitAddress: []string{p.Addr(0)}, ForceSingleClient: true,
					DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
						return p.DialContext(ctx, "tcp", addr)
					},
					RetryDelay: func(attempts int, cmd rueidis.Completed, _ error) time.Duration {
						time.Sleep(min(time.Second, 3<<min(20, attempts)*time.Microsecond/2))
						p.Asks(cmd.Commands()...) // those that waited equally long go on in turn
						return 0
					},
				}})
			return client{l}, err
		},
	}
}

// wire says who asks for a script, and replaces the values of holders: they come from
// math/rand/v2 and do not repeat.
type wire struct {
	rueidis.Client
	p      *locktest.Process
	mu     sync.Mutex
	values map[string]string
}

func (w *wire) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if words := cmd.Commands(); len(words) > 4 { // EVALSHA or EVAL, the script, 1, the key, the value
		w.mu.Lock()
		if w.values[words[4]] == "" {
			w.values[words[4]] = rand.Text()
		}
		words[4] = w.values[words[4]]
		w.mu.Unlock()
		w.p.Asks(words...)
	}
	return w.Client.Do(ctx, cmd)
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

// take asks for a hold, which must not end with the call.
func (l *lock) take(ctx context.Context, with func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	held, unlock, err := with(own, l.name)
	if err == nil {
		l.held, l.unlock = held, func() { unlock(); end() }
	}
	if !stop() && err == nil {
		return ctx.Err()
	}
	return err
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
	return errUntold
}

// errUntold makes the outcome of an unlock unknown: the function that gives a hold up
// returns nothing.
var errUntold = errors.New("the locker does not tell whether the keys are deleted")

// Lost implements locktest.Watched.
func (l *lock) Lost() <-chan struct{} { return l.held.Done() }

// state finds the value that a majority of the keys of a lock has.
func state(majority int) func(locktest.Snapshot, string) *locktest.State {
	return func(s locktest.Snapshot, name string) *locktest.State {
		ends := map[string][]int64{}
		for i := range 2*majority - 1 {
			key := fmt.Sprintf("rueidislock:%d:%s", i, name)
			if value, ok := redistest.Keys(s, 0).String(key); ok {
				ends[value] = append(ends[value], redistest.Keys(s, 0).ExpiresMs(key))
			}
		}
		for value, at := range ends {
			if slices.Sort(at); len(at) >= majority {
				return &locktest.State{Owner: value, Expires: time.Duration(at[len(at)-majority]) * time.Millisecond}
			}
		}
		return nil
	}
}
