package lockimpl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/bare"
	"lockstep/lockimpl/redisson"
)

// connect makes a go-redis client as the ports need it. Against a real Redis
// it is redis.NewClient(redisson.Options(&redis.Options{Addr: "localhost:6379"})).
func connect() (rdb *redis.Client, stop func()) {
	m := miniredis.NewMiniRedis()
	rdb = redis.NewClient(redisson.Options(&redis.Options{
		Protocol: 2,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	}))
	return rdb, func() {
		_ = rdb.Close()
		m.Close()
	}
}

// Two levels of one owner's hold, and an unlock too many.
func Example() {
	rdb, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{ID: "checkout-1"})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}

	const owner lockimpl.Owner = 1
	ctx := context.Background()
	for range 2 {
		if err := lock.Lock(ctx, owner, lockimpl.LockOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		release, err := lock.Unlock(ctx, owner)
		switch {
		case errors.Is(err, lockimpl.ErrNotHeld):
			fmt.Println("not mine:", err)
		case errors.Is(err, lockimpl.ErrUnknownOutcome):
			log.Fatal("it may be free, or not before its lease ends: ", err)
		case err != nil:
			log.Fatal(err)
		case release == lockimpl.StillHeld:
			fmt.Println("still held")
		default:
			fmt.Println("released")
		}
	}
	// Output:
	// still held
	// released
	// not mine: unlock "stock" as checkout-1:1: lock not held by this owner
}

// A try of a lock that another process holds.
func ExampleLock_TryLockTimed() {
	rdb, stop := connect()
	defer stop()
	release, err := redisson.Find("3.43.0")
	if err != nil {
		log.Fatal(err)
	}
	first := redisson.NewClient(rdb, redisson.Config{Release: release, ID: "a"})
	defer first.Close()
	second := redisson.NewClient(rdb, redisson.Config{Release: release, ID: "b"})
	defer second.Close()

	ctx := context.Background()
	held, err := first.GetFairLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	if err := held.Lock(ctx, 1, lockimpl.LockOptions{Lease: time.Minute}); err != nil {
		log.Fatal(err)
	}
	wanted, err := second.GetFairLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ok, err := wanted.TryLockTimed(ctx, 1, lockimpl.TryOptions{Lease: time.Minute})
	fmt.Println(ok, err)
	// Output: false <nil>
}

// A bare lock: compare and delete, in one script.
func Example_bareLock() {
	rdb, stop := connect()
	defer stop()
	client := bare.NewClient(bare.SetNXCad, rdb, "a")
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{Lease: 5 * time.Second}); err != nil {
		log.Fatal(err)
	}
	_, err = lock.Unlock(ctx, 2)
	fmt.Println(errors.Is(err, lockimpl.ErrNotHeld))
	_, err = lock.Unlock(ctx, 1)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
