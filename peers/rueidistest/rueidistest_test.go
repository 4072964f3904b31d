package rueidistest_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
	"lockstep/peers/rueidistest"
)

var compareAndDelete = rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

const lease = 8 * time.Second

// A lock of a few lines, whose commands have any number of words, and in any place the value.
func TestALockOfPlainCommands(t *testing.T) {
	locktest.Run(t, locktest.Subject{
		Name: "rueidis-set", Servers: redistest.Servers(1), Lease: lease, State: redistest.Value(nil), Waits: 200 * time.Millisecond,
		Open: func(p *locktest.Process) (locktest.Client, error) {
			o := rueidistest.Options(p, 0)
			o.DisableRetry = true // a SET that is sent again finds its own value
			c, err := rueidistest.Builder(p)(o)
			if c == nil {
				return nil, err
			}
			return client{c}, nil
		},
	}, locktest.Options{Runs: 60})
}

type client struct{ rueidis.Client }

func (c client) Lock(name string) (locktest.Lock, error) { return &lock{c: c.Client, name: name}, nil }

func (c client) Close() error {
	c.Client.Close()
	return nil
}

type lock struct {
	c           rueidis.Client
	name, value string
}

func (l *lock) Lock(ctx context.Context) error {
	for {
		if held, err := l.c.DoMulti(ctx, l.c.B().Exists().Key(l.name).Build())[0].AsInt64(); err != nil {
			return err
		} else if held == 0 {
			value := rand.Text()
			err := l.c.Do(ctx, l.c.B().Set().Key(l.name).Value(value).Nx().PxMilliseconds(lease.Milliseconds()).Build()).Error()
			if !rueidis.IsRedisNil(err) {
				l.value = value
				return err
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *lock) Unlock(ctx context.Context) error {
	freed, err := compareAndDelete.Exec(ctx, l.c, []string{l.name}, []string{l.value}).AsInt64()
	if err == nil && freed == 0 {
		return locktest.ErrNotHeld
	}
	return err
}
