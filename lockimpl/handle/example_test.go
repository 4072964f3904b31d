package handle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/handle"
	"lockstep/lockimpl/redisson"
)

// A lock of the port of Redisson is taken by handles, which no two goroutines share by mistake.
func Example() {
	server := miniredis.NewMiniRedis()
	defer server.Close()
	rdb := redis.NewClient(redisson.Options(&redis.Options{
		Protocol: 2,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	}))
	defer func() { _ = rdb.Close() }()
	client := redisson.NewClient(rdb, redisson.Config{WatchHolds: true})
	defer func() { _ = client.Close() }()
	plain, err := client.GetLock("orders")
	if err != nil {
		log.Fatal(err)
	}
	lock, err := handle.New(plain)
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = lock.TryAcquire(ctx)
	fmt.Println(errors.Is(err, lockimpl.ErrBusy), err)

	work := hold.Context(ctx) // for the work that the lock guards
	fmt.Println(work.Err())
	fmt.Println(hold.Release(ctx))
	<-work.Done()
	fmt.Println(context.Cause(work))
	fmt.Println(hold.Release(ctx))
	// Output:
	// true acquire "orders": lock held by another owner
	// <nil>
	// <nil>
	// hold released
	// release "orders": lock not held by this owner: hold released
}
