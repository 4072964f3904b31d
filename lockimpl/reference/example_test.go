package reference_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"runtime"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/reference"
)

// connect makes a go-redis client on a server in memory. Against a real Redis
// it is redis.NewClient(&redis.Options{Addr: "localhost:6379"}).
func connect() (rdb *redis.Client, stop func()) {
	// This binary's tests run in bubbles of simulated time; two collections
	// empty go-redis's pool of timers, so that none of theirs is used here.
	runtime.GC()
	runtime.GC()
	server := miniredis.NewMiniRedis()
	rdb = redis.NewClient(&redis.Options{
		Protocol: 2,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	})
	return rdb, func() {
		_ = rdb.Close()
		server.Close()
	}
}

// Work under a lock, from beginning to end: it stops when the hold is lost, and
// gives the lock up whatever came of it. The token goes to the resource, which
// refuses whoever comes with a smaller one.
func Example() {
	rdb, stop := connect()
	defer stop()
	client, err := reference.NewClient(rdb, reference.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := client.NewLock("stock")
	if err != nil {
		log.Fatal(err)
	}

	var seen int64
	sell := func(ctx context.Context, o lockimpl.Owner) (err error) {
		if err := lock.Lock(ctx, o, lockimpl.LockOptions{}); err != nil {
			return err
		}
		defer func() {
			// Not with ctx: what is over must be given up all the same.
			_, unlockErr := lock.Unlock(context.WithoutCancel(ctx), o)
			err = errors.Join(err, unlockErr)
		}()
		ctx, err = lock.HoldContext(ctx, o)
		if err != nil {
			return err
		}
		token, err := lock.Token(o)
		if err != nil {
			return err
		}
		if token < seen {
			return errors.New("another has the lock since")
		}
		seen = token
		if err := rdb.Incr(ctx, "sold").Err(); err != nil {
			return errors.Join(err, context.Cause(ctx)) // ErrHoldLost, where that is why
		}
		return nil
	}
	fmt.Println(sell(context.Background(), 1), sell(context.Background(), 2))
	fmt.Println(rdb.Get(context.Background(), "sold").Val())
	// Output:
	// <nil> <nil>
	// 2
}
