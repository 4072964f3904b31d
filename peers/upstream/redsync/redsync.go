// Package redsync opens redsync for the stories of package upstream.
package redsync

import (
	"context"
	"errors"
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
		Serve: ServeRedis,
		Open: func(addrs []string) (func(name string) Lock, error) {
			var pools []rs.Pool
			for _, addr := range addrs {
				pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})))
			}
			r := redsync.New(pools...)
			return func(name string) Lock { return mutex{r.NewMutex(name, options...)} }, nil
		},
		Lease:    8 * time.Second,
		Protocol: Resp, Refuse: Refuse,
	}
}

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

// busy translates the answer of servers that another has the lock.
func busy(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return ErrBusy
	}
	return err
}

// libraryOf returns the lock of a name.
func libraryOf(lock string) Library {
	if lock == "redsync-5-set-on-extend" {
		return redsyncWith(redsync.WithSetNXOnExtend())
	}
	return redsyncWith()
}

var _ = libraryOf
