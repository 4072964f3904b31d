package lockimpl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/bare"
	"lockstep/lockimpl/redisclient"
	"lockstep/lockimpl/redisson"
)

// open makes a client, as each process has one for as long as it lives, and its
// object of the lock "stock".
func open(rdb *redis.Client, id string) lockimpl.Lock {
	lock, err := redisson.NewClient(rdb, redisson.Config{ID: id}).GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	return lock
}

// Code that takes any Client runs on Redisson's locks and on the bare ones.
func ExampleClient() {
	rdb, stop := connect()
	defer stop()
	guarded := func(client lockimpl.Client, work func()) error {
		defer client.Close()
		lock, err := client.GetLock("stock")
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := lock.Lock(ctx, 1, lockimpl.LockOptions{Lease: time.Minute}); err != nil {
			return err
		}
		work()
		_, err = lock.Unlock(ctx, 1)
		return err
	}
	fmt.Println(guarded(redisson.NewClient(rdb, redisson.Config{}), func() { fmt.Println("guarded by Redisson's lock") }))
	fmt.Println(guarded(bare.NewClient(bare.SetNXCad, rdb, "a"), func() { fmt.Println("guarded by SET NX PX") }))
	// Output:
	// guarded by Redisson's lock
	// <nil>
	// guarded by SET NX PX
	// <nil>
}

// Without a lease the watchdog renews the hold until it is given up.
func ExampleLock_Lock() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb, "checkout-1")

	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("held")
	if _, err := lock.Unlock(ctx, 1); err != nil {
		log.Fatal(err)
	}
	// Output: held
}

// A lease ends the hold by itself, whether or not the work is done. An unlock that comes too late
// changes nothing.
func ExampleLock_Lock_lease() {
	rdb, server, stop := connectTo()
	defer stop()
	lock := open(rdb, "checkout-1")

	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{Lease: 5 * time.Second}); err != nil {
		log.Fatal(err)
	}
	server.FastForward(6 * time.Second) // the work took longer than that
	_, err := lock.Unlock(ctx, 1)
	fmt.Println(errors.Is(err, lockimpl.ErrNotHeld), err)
	// Output: true unlock "stock" as checkout-1:1: lock not held by this owner
}

// An interruptible wait ends with its context.
func ExampleLock_Lock_interruptible() {
	rdb, stop := connect()
	defer stop()
	first, second := open(rdb, "checkout-1"), open(rdb, "checkout-2")
	if err := first.Lock(context.Background(), 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := second.Lock(ctx, 1, lockimpl.LockOptions{Interruptible: true})
	switch {
	case err == nil:
		fmt.Println("held")
	case errors.Is(err, lockimpl.ErrUnknownOutcome):
		// An attempt was under way. It may have acquired, and its hold is
		// renewed until somebody gives it back.
		_, _ = second.Unlock(context.Background(), 1)
		fallthrough
	default:
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
	}
	// Output: true
}

// The answer to a command was lost: nobody can say whether the lock is held.
// Giving it back is right either way.
func ExampleLock_Lock_unknownOutcome() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb, "checkout-1")
	rdb.AddHook(&lostAnswer{})

	ctx := context.Background()
	err := lock.Lock(ctx, 1, lockimpl.LockOptions{})
	fmt.Println(err)
	if errors.Is(err, lockimpl.ErrUnknownOutcome) {
		switch _, err := lock.Unlock(ctx, 1); {
		case errors.Is(err, lockimpl.ErrNotHeld):
			fmt.Println("it was not held")
		case err != nil:
			log.Fatal("it may be held until its lease ends: ", err)
		default:
			fmt.Println("it was held, and is given back")
		}
	}
	// Output:
	// lock "stock" as checkout-1:1: outcome unknown: no response in time: unexpected EOF
	// it was held, and is given back
}

// lostAnswer loses the answer to the first script that ran.
type lostAnswer struct{ done bool }

func (h *lostAnswer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *lostAnswer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *lostAnswer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" && err == redis.Nil && !h.done { // nil: acquired
			h.done = true
			err = io.ErrUnexpectedEOF
			cmd.SetErr(err)
		}
		return err
	}
}

func ExampleLock_Name() {
	rdb, stop := connect()
	defer stop()
	fmt.Println(open(rdb, "checkout-1").Name())
	// Output: stock
}

// TryLock makes a single attempt. It never waits and, on a fair lock, never queues.
func ExampleLock_TryLock() {
	rdb, stop := connect()
	defer stop()
	first, second := open(rdb, "checkout-1"), open(rdb, "checkout-2")

	ctx := context.Background()
	for _, lock := range []lockimpl.Lock{first, second} {
		ok, err := lock.TryLock(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ok)
	}
	// Output:
	// true
	// false
}

// A try that waits its time in vain.
func ExampleLock_TryLockTimed_wait() {
	rdb, stop := connect()
	defer stop()
	first, second := open(rdb, "checkout-1"), open(rdb, "checkout-2")

	ctx := context.Background()
	if err := first.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	ok, err := second.TryLockTimed(ctx, 1, lockimpl.TryOptions{Wait: 20 * time.Millisecond, Lease: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		fmt.Println("busy, try later")
	}
	// Output: busy, try later
}

// An unlock gives up one level; an owner that has none is refused.
func ExampleLock_Unlock() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb, "checkout-1")

	ctx := context.Background()
	for range 2 {
		if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	unlock := func(o lockimpl.Owner) {
		release, err := lock.Unlock(ctx, o)
		switch {
		case errors.Is(err, lockimpl.ErrNotHeld):
			fmt.Println("owner", o, "does not hold it")
		case errors.Is(err, lockimpl.ErrUnknownOutcome):
			log.Fatal("it may be free, or not before its lease ends: ", err)
		case err != nil:
			log.Fatal(err)
		case release == lockimpl.StillHeld:
			fmt.Println("owner", o, "holds it still")
		default:
			fmt.Println("owner", o, "gave it up")
		}
	}
	unlock(1)
	unlock(2)
	unlock(1)
	unlock(1)
	// Output:
	// owner 1 holds it still
	// owner 2 does not hold it
	// owner 1 gave it up
	// owner 1 does not hold it
}

// An operator frees a lock that some process left behind.
func ExampleLock_ForceUnlock() {
	rdb, stop := connect()
	defer stop()
	dead, operator := open(rdb, "checkout-1"), open(rdb, "operator")

	ctx := context.Background()
	if err := dead.Lock(ctx, 1, lockimpl.LockOptions{Lease: time.Hour}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		freed, err := operator.ForceUnlock(ctx)
		fmt.Println(freed, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// The answer of IsLocked may be out of date when the caller reads it. Display it; do not decide by
// it.
func ExampleLock_IsLocked() {
	rdb, stop := connect()
	defer stop()
	first, second := open(rdb, "checkout-1"), open(rdb, "checkout-2")

	ctx := context.Background()
	if err := first.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	locked, err := second.IsLocked(ctx)
	fmt.Println(locked, err)
	// Output: true <nil>
}

// A hold belongs to an owner of a client.
func ExampleLock_IsHeldBy() {
	rdb, stop := connect()
	defer stop()
	first, second := open(rdb, "checkout-1"), open(rdb, "checkout-2")

	ctx := context.Background()
	if err := first.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.IsHeldBy(ctx, 1))
	fmt.Println(first.IsHeldBy(ctx, 2))
	fmt.Println(second.IsHeldBy(ctx, 1))
	// Output:
	// true <nil>
	// false <nil>
	// false <nil>
}

func ExampleLock_HoldCount() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb, "checkout-1")

	ctx := context.Background()
	for range 3 {
		if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(lock.HoldCount(ctx, 1))
	fmt.Println(lock.HoldCount(ctx, 2))
	// Output:
	// 3 <nil>
	// 0 <nil>
}

// -2ms is Redis's word for a key that does not exist.
func ExampleLock_RemainTimeToLive() {
	rdb, server, stop := connectTo()
	defer stop()
	lock := open(rdb, "checkout-1")

	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{Lease: 5 * time.Second}); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		fmt.Println(lock.RemainTimeToLive(ctx))
		server.FastForward(3 * time.Second)
	}
	// Output:
	// 5s <nil>
	// 2s <nil>
	// -2ms <nil>
}

// The checks that a lock of your own on Redis makes before it sends anything.
func ExampleCheckName() {
	fmt.Println(lockimpl.CheckName("{shop-7}:stock"))
	fmt.Println(lockimpl.CheckName("{shop-7"))
	// Output:
	// <nil>
	// invalid argument: lock name "{shop-7" opens a brace and does not close it
}

func ExampleCheckLease() {
	fmt.Println(lockimpl.CheckLease(0)) // none: the watchdog renews
	fmt.Println(lockimpl.CheckLease(time.Microsecond))
	// Output:
	// <nil>
	// invalid argument: lease 1µs is below one millisecond
}

func ExampleCheckTry() {
	fmt.Println(lockimpl.CheckTry(lockimpl.TryOptions{Wait: -time.Second}))
	// Output: invalid argument: wait -1s is negative
}

// Only an error whose command may have run needs cleaning up.
func ExampleMayHaveRun() {
	fmt.Println(redisclient.MayHaveRun(redis.ErrPoolTimeout)) // never sent
	fmt.Println(redisclient.MayHaveRun(os.ErrDeadlineExceeded))
	// Output:
	// false
	// true
}

// A test chooses a client's wall clock, ids and jitter.
func ExampleEnvironment_WithDefaults() {
	env := lockimpl.Environment{
		Now: func() time.Time { return time.UnixMilli(1_000_000) },
	}.WithDefaults()
	fmt.Println(env.Now().UnixMilli(), len(env.NewID(1)), env.Jitter(1, 0))
	// Output: 1000000 32 0s
}

// connectTo is connect, and gives the server, whose time an example lets pass.
func connectTo() (rdb *redis.Client, server *miniredis.Miniredis, stop func()) {
	m := miniredis.NewMiniRedis()
	rdb = redis.NewClient(redisson.Options(&redis.Options{
		Protocol: 2,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	}))
	return rdb, m, func() {
		_ = rdb.Close()
		m.Close()
	}
}
