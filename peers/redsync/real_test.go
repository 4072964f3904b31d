package redsync

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rs "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
)

// hook is a hook of a client. It may answer a command in place of the server.
type hook func(ctx context.Context, send func() error) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h(ctx, func() error { return next(ctx, cmd) })
	}
}

// The same on real servers: after two interrupted tries nobody holds the lock, and nobody gets it
// before their leases end. Two tries that fail for another reason leave no keys behind.
func TestAnInterruptedTryLeavesItsKeys(t *testing.T) {
	var addrs []string
	for range 5 {
		addrs = append(addrs, redisserver.Start(t, "redis-server").Addr)
	}
	// mutex returns the mutex of a new client, with a hook for each server.
	mutex := func(hookOf func(server int) hook) *redsync.Mutex {
		var pools []rs.Pool
		for i, addr := range addrs {
			c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
			t.Cleanup(func() { _ = c.Close() })
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			c.AddHook(hookOf(i))
			pools = append(pools, goredis.NewPool(c))
		}
		return redsync.New(pools...).NewMutex("stock", redsync.WithExpiry(time.Hour), redsync.WithTries(1))
	}
	through := hook(func(_ context.Context, send func() error) error { return send() })
	free := func() error {
		m := mutex(func(int) hook { return through })
		if err := m.LockContext(t.Context()); err != nil {
			return err
		}
		_, err := m.UnlockContext(t.Context())
		return err
	}
	for _, two := range [][]int{{0, 1}, {2, 3}} {
		m := mutex(func(server int) hook {
			if slices.Contains(two, server) {
				return through
			}
			return func(context.Context, func() error) error { return errors.New("the server is away") }
		})
		if err := m.LockContext(t.Context()); err == nil {
			t.Fatal("two of five servers are a majority")
		}
	}
	if err := free(); err != nil {
		t.Errorf("after two tries that failed: %v", err)
	}

	for _, two := range [][]int{{0, 1}, {2, 3}} {
		ctx, interrupt := context.WithCancel(t.Context())
		var answers atomic.Int32
		m := mutex(func(server int) hook {
			if slices.Contains(two, server) {
				return func(_ context.Context, send func() error) error {
					err := send()
					if answers.Add(1) == 2 {
						interrupt()
					}
					return err
				}
			}
			return func(ctx context.Context, _ func() error) error { // the server is slow
				<-ctx.Done()
				return ctx.Err()
			}
		})
		if err := m.LockContext(ctx); err == nil {
			t.Fatal("an interrupted try took the lock")
		}
	}
	if err := free(); err == nil {
		t.Error("the lock is free after two tries that were interrupted")
	}
	for i, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = c.Close() }()
		if left, err := c.PTTL(t.Context(), "stock").Result(); err != nil || (left > time.Minute) != (i < 4) {
			t.Errorf("server %d: %v of its key are left, %v", i, left, err)
		}
	}
}

// The same on real servers: two mutexes that never locked both extend, since both have an empty
// value, and the option sets a missing key.
func TestTwoExtendWithoutAHold(t *testing.T) {
	extended := func(options ...redsync.Option) (all []bool) {
		var addrs []string
		for range 5 {
			addrs = append(addrs, redisserver.Start(t, "redis-server").Addr)
		}
		for range 2 {
			var pools []rs.Pool
			for _, addr := range addrs {
				c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
				t.Cleanup(func() { _ = c.Close() })
				pools = append(pools, goredis.NewPool(c))
			}
			m := redsync.New(pools...).NewMutex("stock", append(options, redsync.WithExpiry(time.Hour))...)
			ok, _ := m.ExtendContext(t.Context())
			all = append(all, ok)
		}
		return all
	}
	if got := extended(redsync.WithSetNXOnExtend()); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("with the option the extensions of two clients that never locked succeeded: %v", got)
	}
	if got := extended(); slices.Contains(got, true) {
		t.Errorf("without the option the extensions of two clients that never locked succeeded: %v", got)
	}
}
