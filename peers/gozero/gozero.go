// Package gozero judges the RedisLock of github.com/zeromicro/go-zero, unmodified.
//
// The library keeps one client for each address as long as the program runs, and its options have no dialer. So
// each process has an address of its own, and a hook dials the server of the world. The library dials eight
// connections as it makes a client, which the hook meets, too.
//
// The programs of this module do not have these locks: a client is never closed, and the library links a compressor of
// gRPC, which changes the headers, and so the records, of the locks on etcd in the same program.
//
// Its promises, with the lines of core/stores/redis/redislock.go in version 1.10.3: a lock lasts for its seconds
// and 500 ms (lines 16 and 56), Acquire of the RedisLock that has the lock succeeds and begins its time anew
// (lockscript.lua), and Release returns whether it deleted the key of its own value (lines 84 to 95;
// delscript.lua). Nothing renews a hold, tells its holder that it is gone, orders waiters, or gives a token.
package gozero

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	red "github.com/redis/go-redis/v9"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
	"github.com/zeromicro/go-zero/core/stringx"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

const (
	seconds = 8
	lease   = seconds*time.Second + 500*time.Millisecond
	pause   = 100 * time.Millisecond // between two tries
)

// Subject is a RedisLock for each thread, which asks every 100 ms.
var Subject = subject("go-zero", "go-zero's RedisLock, one for each thread, asked every 100 ms", false)

// Shared is a RedisLock that all threads of a process share.
var Shared = subject("go-zero-shared", "go-zero's RedisLock, shared by the threads of a process, asked every 100 ms", true)

func subject(name, about string, shared bool) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Servers: redistest.Servers(1), Lease: lease, Waits: pause, Idempotent: true, State: redistest.Value(nil),
		Policy: "The lock has no session, the client sends a request without an answer again, an acquire that failed leaves its key until the lease ends, and an unlock that failed may be called again.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			stringx.Seed(p.Rand().Int64()) // the values come from a source that the library seeds with the time of its start
			c := client{Redis: redis.New(fmt.Sprintf("%s-%d", p.Name(), clients.Add(1)), redis.WithHook(dialer{p}))}
			if shared {
				c.shared = map[string]*redis.RedisLock{}
			}
			return c, nil
		},
	}
}

var clients atomic.Int64

func init() { logx.Disable() }

// dialer is a hook that dials the server of the world.
type dialer struct{ *locktest.Process }

func (d dialer) DialHook(red.DialHook) red.DialHook {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, d.Addr(0))
	}
}

func (dialer) ProcessHook(next red.ProcessHook) red.ProcessHook { return next }

func (dialer) ProcessPipelineHook(next red.ProcessPipelineHook) red.ProcessPipelineHook { return next }

type client struct {
	*redis.Redis
	shared map[string]*redis.RedisLock
}

func (c client) Lock(name string) (locktest.Lock, error) {
	l := c.shared[name]
	if l == nil {
		l = redis.NewRedisLock(c.Redis, name)
		l.SetExpire(seconds)
	}
	if c.shared != nil {
		c.shared[name] = l
	}
	return lock{l}, nil
}

// Close implements locktest.Client. The library has no function that closes a client.
func (client) Close() error { return nil }

type lock struct{ *redis.RedisLock }

func (l lock) TryLock(ctx context.Context) (bool, error) { return l.AcquireCtx(ctx) }

func (l lock) Lock(ctx context.Context) error {
	for {
		if ok, err := l.AcquireCtx(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (l lock) Unlock(ctx context.Context) error {
	if ok, err := l.ReleaseCtx(ctx); ok || err != nil {
		return err
	}
	return locktest.ErrNotHeld
}
