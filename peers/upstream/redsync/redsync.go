// Package redsync opens redsync for the stories of package upstream.
package redsync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rs "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	. "lockstep/live/upstream/gostory"
)

// redsyncWith is redsync's mutex with options.
func redsyncWith(options ...redsync.Option) Library {
	return Library{
		Serve: func(t *testing.T, n int) []Server { return ServeRedis(t, n) },
		Open: func(addrs []string) (Client, error) {
			var pools []rs.Pool
			for _, addr := range addrs {
				pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})))
			}
			return redsyncClient{redsync.New(pools...), options}, nil
		},
		Lease: 8 * time.Second, Split: Resp,
	}
}

type redsyncClient struct {
	*redsync.Redsync
	options []redsync.Option
}

func (c redsyncClient) Lock(name string) Lock { return mutex{c.NewMutex(name, c.options...)} }

type mutex struct{ *redsync.Mutex }

func (m mutex) Lock(ctx context.Context) error { return busy(m.LockContext(ctx)) }

func (m mutex) TryLock(ctx context.Context) error { return busy(m.TryLockContext(ctx)) }

func (m mutex) Unlock(ctx context.Context) error {
	_, err := m.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return ErrNotHeld
	}
	return err
}

func (m mutex) Extend(ctx context.Context) error {
	ok, err := m.ExtendContext(ctx)
	if !ok && err == nil {
		return ErrNotHeld
	}
	return err
}

func (mutex) Lost() <-chan struct{} { return nil }

// busy translates the answer of servers that another has the lock.
func busy(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return ErrBusy
	}
	return err
}

var _ = redsyncWith
