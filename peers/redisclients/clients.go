package redisclients

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	redis8 "github.com/go-redis/redis/v8"
	"github.com/mediocregopher/radix/v4"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// GoRedis8 is the lock on a Client of github.com/go-redis/redis/v8, which sends a request without an answer up to three
// times more.
var GoRedis8 = subject("go-redis-v8", "SET NX PX and a script that compares and deletes, on go-redis v8 with its retries", 1, func(p *locktest.Process) (commands, error) {
	c := redis8.NewClient(&redis8.Options{Addr: p.Addr(0), Dialer: p.DialContext})
	script := redis8.NewScript(compareAndDelete)
	return commands{
		set: func(ctx context.Context, key, value string) (bool, error) {
			return c.SetNX(ctx, key, value, lease).Result()
		},
		unset: func(ctx context.Context, key, value string) (int64, error) {
			return script.Run(ctx, c, []string{key}, value).Int64()
		},
		close: c.Close,
	}, nil
})

// Ring is the lock on a Ring of github.com/redis/go-redis/v9 with three servers, of which each key has one.
var Ring = onShards(subject("go-redis-ring", "SET NX PX and a script that compares and deletes, on a Ring of go-redis with three servers", 3, func(p *locktest.Process) (commands, error) {
	shards := map[string]string{}
	for i := range 3 {
		shards[fmt.Sprintf("shard%d", i)] = p.Addr(i)
	}
	c := redis.NewRing(&redis.RingOptions{Addrs: shards, Dialer: p.DialContext})
	script := redis.NewScript(compareAndDelete)
	return commands{
		set: func(ctx context.Context, key, value string) (bool, error) {
			return c.SetNX(ctx, key, value, lease).Result()
		},
		unset: func(ctx context.Context, key, value string) (int64, error) {
			return script.Run(ctx, c, []string{key}, value).Int64()
		},
		close: c.Close,
	}, nil
}))

// onShards reads the older hold if two servers have the key.
func onShards(s locktest.Subject) locktest.Subject {
	s.State = func(s locktest.Snapshot, lock string) (oldest *locktest.State) {
		for i := range s.Servers() {
			keys := redistest.Keys(s, i)
			value, ok := keys.String(lock)
			if ends := time.Duration(keys.ExpiresMs(lock)) * time.Millisecond; ok && (oldest == nil || ends < oldest.Expires) {
				oldest = &locktest.State{Owner: value, Expires: ends}
			}
		}
		return oldest
	}
	return s
}

// Radix is the lock on a Pool of github.com/mediocregopher/radix/v4.
var Radix = subject("radix", "SET NX PX and a script that compares and deletes, on a pool of radix v4", 1, func(p *locktest.Process) (commands, error) {
	c, err := radix.PoolConfig{Dialer: radix.Dialer{NetDialer: p}}.New(context.Background(), "tcp", p.Addr(0))
	if err != nil {
		return commands{}, err
	}
	script := radix.NewEvalScript(compareAndDelete)
	return commands{
		set: func(ctx context.Context, key, value string) (bool, error) {
			answer := radix.Maybe{}
			err := c.Do(ctx, radix.Cmd(&answer, "SET", key, value, "NX", "PX", leaseMs))
			return err == nil && !answer.Null, err
		},
		unset: func(ctx context.Context, key, value string) (deleted int64, err error) {
			err = c.Do(ctx, script.Cmd(&deleted, []string{key}, value))
			return deleted, err
		},
		close: c.Close,
	}, nil
})

// Rueidis is the lock on a client of rueidis whose requests the adapter does not announce (Process.Asks), so that the
// world must find out by itself whose they are.
var Rueidis = subject("rueidis", "SET NX PX and a script that compares and deletes, on rueidis", 1, func(p *locktest.Process) (commands, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{p.Addr(0)}, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return p.DialContext(ctx, "tcp", addr)
		},
	})
	if c == nil {
		return commands{}, err
	}
	script := rueidis.NewLuaScript(compareAndDelete)
	return commands{
		set: func(ctx context.Context, key, value string) (bool, error) {
			err := c.Do(ctx, c.B().Set().Key(key).Value(value).Nx().PxMilliseconds(lease.Milliseconds()).Build()).Error()
			if rueidis.IsRedisNil(err) {
				return false, nil
			}
			return err == nil, err
		},
		unset: func(ctx context.Context, key, value string) (int64, error) {
			return script.Exec(ctx, c, []string{key}, []string{value}).AsInt64()
		},
		close: func() error { c.Close(); return nil },
	}, nil
})
