// Package blpop judges a lock whose waiters block in BLPOP, in our own words, as python-redis-lock and many code bases
// have it: SET with NX and PX and a value of its own for each acquire. A waiter blocks on a list, for at most the
// lease. A script compares and deletes the key, and pushes one element on the list, which lives for a second.
//
// Nothing renews a hold, tells its holder that it is gone, orders waiters, or gives a token.
package blpop

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

const lease = 8 * time.Second

// Subject is the lock. A waiter that misses the element blocks for as long as a lease, counted from its own look.
var Subject = locktest.Subject{
	Name: "blpop", About: "SET NX PX whose waiters block in BLPOP on a list that an unlock pushes to", Servers: redistest.Servers(1), Lease: lease, Waits: lease, State: redistest.Value(nil),
	Policy: "The lock has no session, an acquire that failed leaves its key until the lease ends, and an unlock that failed may be called again.",
	Open: func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.ContextTimeoutEnabled = true // BLPOP ends with the context of its caller
		return newClient(p, opt), nil
	},
}

func newClient(p *locktest.Process, opt *redis.Options) locktest.Client {
	rdb := redis.NewClient(opt)
	p.OnClose(func() { _ = rdb.Close() })
	return client{rdb}
}

type client struct{ *redis.Client }

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{rdb: c.Client, name: name, signal: name + ":signal"}, nil
}

type lock struct {
	rdb                 *redis.Client
	name, signal, value string
}

func (l *lock) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	ok, err := l.rdb.SetNX(ctx, l.name, value, lease).Result()
	if ok {
		l.value = value
	}
	return ok, err
}

func (l *lock) Lock(ctx context.Context) error {
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		if err := l.rdb.BLPop(ctx, lease, l.signal).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
}

var release = redis.NewScript(`
	if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
	redis.call("del", KEYS[2])
	redis.call("lpush", KEYS[2], 1)
	redis.call("pexpire", KEYS[2], 1000)
	return redis.call("del", KEYS[1])`)

func (l *lock) Unlock(ctx context.Context) error {
	if n, err := release.Run(ctx, l.rdb, []string{l.name, l.signal}, l.value).Int(); n > 0 || err != nil {
		return err
	}
	return locktest.ErrNotHeld
}
