// Package redisclients judges one lock on clients of Redis that other packages do not use: radix v4, go-redis v8 with
// its retries, a Ring of go-redis v9, and rueidis without the help of package rueidistest. Each client is unmodified
// and has its default settings, but for its dialer.
//
// The lock is ours, in words that many code bases have: SET with NX and PX and a value of its own for each
// acquire, asked again every 100 ms, and a script that deletes the key if it has that value. Nothing renews a hold,
// tells its holder that it is gone, orders waiters, or gives a token.
package redisclients

import (
	"context"
	"crypto/rand"
	"time"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

const (
	lease   = 8 * time.Second
	leaseMs = "8000"
	pause   = 100 * time.Millisecond // between two tries
)

const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

// commands are the two requests of the lock, as a client sends them.
type commands struct {
	set   func(ctx context.Context, key, value string) (done bool, err error)     // SET key value NX PX leaseMs
	unset func(ctx context.Context, key, value string) (deleted int64, err error) // compareAndDelete
	close func() error
}

func subject(name, about string, servers int, open func(*locktest.Process) (commands, error)) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Servers: redistest.Servers(servers), Lease: lease, Waits: pause, State: redistest.Value(nil),
		Policy: "The lock has no session, the client decides which request is sent again, an acquire that failed leaves its key until the lease ends, and an unlock that failed may be called again.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			c, err := open(p)
			return client{c}, err
		},
	}
}

type client struct{ commands }

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{c: c.commands, name: name}, nil
}

func (c client) Close() error { return c.close() }

type lock struct {
	c           commands
	name, value string
}

func (l *lock) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	ok, err := l.c.set(ctx, l.name, value)
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (l *lock) Unlock(ctx context.Context) error {
	if n, err := l.c.unset(ctx, l.name, l.value); n > 0 || err != nil {
		return err
	}
	return locktest.ErrNotHeld
}
