package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// connect makes a go-redis client on a server in memory. Against a real Redis
// it is redis.NewClient(redisson.Options(&redis.Options{Addr: "localhost:6379"})).
func connect() (rdb *redis.Client, server *miniredis.Miniredis, stop func()) {
	// This binary's tests run in bubbles of simulated time; two collections
	// empty go-redis's pool of timers, so that none of theirs is used here.
	runtime.GC()
	runtime.GC()
	server = miniredis.NewMiniRedis()
	rdb = redis.NewClient(redisson.Options(&redis.Options{
		Protocol: 2,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	}))
	return rdb, server, func() {
		_ = rdb.Close()
		server.Close()
	}
}

// Work under a lock, from beginning to end. The work stops when the hold is lost, and gives the
// lock up whatever its outcome.
func Example() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{WatchHolds: true})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}

	sell := func(ctx context.Context, o lockimpl.Owner) (err error) {
		if err := lock.Lock(ctx, o, lockimpl.LockOptions{Interruptible: true}); err != nil {
			return err
		}
		defer func() {
			// ctx may have ended, and the hold must be given up all the same.
			_, unlockErr := lock.Unlock(context.WithoutCancel(ctx), o)
			err = errors.Join(err, unlockErr)
		}()
		ctx, err = redisson.HoldContext(ctx, lock, o)
		if err != nil {
			return err
		}
		if err := rdb.Incr(ctx, "sold").Err(); err != nil {
			return errors.Join(err, context.Cause(ctx)) // ErrHoldLost, if the hold was lost
		}
		return nil
	}
	fmt.Println(sell(context.Background(), 1))
	fmt.Println(rdb.Get(context.Background(), "sold").Val())
	// Output:
	// <nil>
	// 1
}

func ExampleNewClient() {
	rdb, _, stop := connect()
	defer stop()
	// One client per process. Settings that are left out have the values of the newest release.
	client := redisson.NewClient(rdb, redisson.Config{WatchdogTimeout: 10 * time.Second})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.RemainTimeToLive(ctx))
	// Output: 10s <nil>
}

func ExampleOptions() {
	opt := redisson.Options(&redis.Options{Addr: "localhost:6379"})
	rdb := redis.NewClient(opt) // connects with its first command
	defer rdb.Close()
	// go-redis must send nothing twice: the lock decides whether a command may be sent again.
	fmt.Println(opt.MaxRetries, opt.ReadTimeout, opt.PoolSize)
	// Output: -1 3s 64
}

// Every release keeps its own ways: 3.43.0 gives the fair lock's waiter 300 s,
// 3.12.4 gave it five.
func ExampleFind() {
	rdb, _, stop := connect()
	defer stop()
	release, err := redisson.Find("3.12.4")
	if err != nil {
		log.Fatal(err)
	}
	client := redisson.NewClient(rdb, redisson.Config{Release: release})
	defer client.Close()
	fmt.Println(release.Version, release.FairWait)

	_, err = redisson.Find("3.12.5")
	fmt.Println(err)
	// Output:
	// 3.12.4 5s
	// unknown redisson release "3.12.5"; known: 3.4.2, 3.11.0, 3.12.4, 3.21.3, 3.43.0, 4.7.0
}

func ExampleClient_ID() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{ID: "checkout-1"})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 7, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	// The ID is the first half of the owner in Redis. No other client may have it.
	fmt.Println(client.ID(), rdb.HGetAll(ctx, "stock").Val())
	// Output: checkout-1 map[checkout-1:7:1]
}

// Close unlocks nothing: each hold ends with its lease, which nobody renews any more.
func ExampleClient_Close() {
	rdb, server, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	_, err = lock.Unlock(ctx, 1)
	fmt.Println(errors.Is(err, lockimpl.ErrClosed), server.TTL("stock"))
	server.FastForward(30 * time.Second)
	fmt.Println(server.Exists("stock"))
	// Output:
	// true 30s
	// false
}

func ExampleClient_GetLock() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ok, err := lock.TryLockTimed(context.Background(), 1, lockimpl.TryOptions{Wait: time.Second, Lease: time.Minute})
	fmt.Println(ok, err)

	_, err = client.GetLock("") // refused before anything is sent
	fmt.Println(errors.Is(err, lockimpl.ErrInvalid), err)
	// Output:
	// true <nil>
	// true invalid argument: a lock needs a name
}

// Waiters of a fair lock are served in the order in which they came.
func ExampleClient_GetFairLock() {
	rdb, server, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{ID: "checkout-1"})
	defer client.Close()
	lock, err := client.GetFairLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	served := make(chan lockimpl.Owner)
	for o := lockimpl.Owner(2); o <= 4; o++ {
		go func() {
			if err := lock.Lock(ctx, o, lockimpl.LockOptions{}); err != nil {
				log.Fatal(err)
			}
			served <- o
			_, _ = lock.Unlock(ctx, o)
		}()
		for !queued(server, o) { // until it stands in line
			runtime.Gosched()
		}
	}
	if _, err := lock.Unlock(ctx, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-served, <-served, <-served)
	// Output: 2 3 4
}

func queued(server *miniredis.Miniredis, o lockimpl.Owner) bool {
	queue, _ := server.List(redisson.QueueName("stock"))
	return len(queue) == int(o)-1
}

// Each hold has a number greater than all before, by which a resource can recognize a holder that
// was stopped for longer than its lease.
func ExampleClient_GetFencedLock() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetFencedLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 2 {
		token, err := lock.LockAndGetToken(ctx, 1, lockimpl.LockOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(token)
		if _, err := lock.Unlock(ctx, 1); err != nil {
			log.Fatal(err)
		}
	}

	old, err := redisson.Find("3.11.0")
	if err != nil {
		log.Fatal(err)
	}
	_, err = redisson.NewClient(rdb, redisson.Config{Release: old}).GetFencedLock("stock")
	fmt.Println(err)
	// Output:
	// 1
	// 2
	// invalid argument: the port of redisson 3.11.0 has no fenced lock
}

// The resource itself refuses a holder with an older number.
func ExampleFencedLock() {
	rdb, server, stop := connect()
	defer stop()
	var newest int64
	write := func(token int64) error {
		if token < newest {
			return fmt.Errorf("hold %d is over, %d has written", token, newest)
		}
		newest = token
		return nil
	}

	ctx := context.Background()
	lock := func(id string) redisson.FencedLock {
		l, err := redisson.NewClient(rdb, redisson.Config{ID: id}).GetFencedLock("stock")
		if err != nil {
			log.Fatal(err)
		}
		return l
	}
	acquire := func(l redisson.FencedLock) int64 {
		token, ok, err := l.TryLockTimedAndGetToken(ctx, 1, lockimpl.TryOptions{Lease: 5 * time.Second})
		if err != nil || !ok {
			log.Fatal("not acquired: ", err)
		}
		return token
	}
	first := acquire(lock("checkout-1"))
	server.FastForward(6 * time.Second) // it pauses past its lease
	second := acquire(lock("checkout-2"))
	fmt.Println(write(second))
	fmt.Println(write(first))
	// Output:
	// <nil>
	// hold 1 is over, 2 has written
}

// The library ignores this call's lease; the watchdog renews the hold.
func ExampleFencedLock_LockAndGetToken() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetFencedLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	token, err := lock.LockAndGetToken(ctx, 1, lockimpl.LockOptions{Lease: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token)
	fmt.Println(lock.RemainTimeToLive(ctx))
	// Output:
	// 1
	// 30s <nil>
}

func ExampleFencedLock_TryLockAndGetToken() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetFencedLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	token, ok, err := lock.TryLockAndGetToken(context.Background(), 1)
	fmt.Println(token, ok, err)

	// As in the library, a try without a wait waits without bound for another's lock.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, ok, err = lock.TryLockAndGetToken(ctx, 2)
	fmt.Println(ok, errors.Is(err, context.DeadlineExceeded))
	// Output:
	// 1 true <nil>
	// false true
}

func ExampleFencedLock_TryLockTimedAndGetToken() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetFencedLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	opt := lockimpl.TryOptions{Wait: time.Second, Lease: time.Minute}
	token, ok, err := lock.TryLockTimedAndGetToken(context.Background(), 1, opt)
	fmt.Println(token, ok, err)
	// Output: 1 true <nil>
}

// Token returns the newest token that any holder drew. A holder can compare its own token with it,
// but only the resource can do so at the instant of the write.
func ExampleFencedLock_Token() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetFencedLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(lock.Token(ctx))
	for range 2 { // a re-entry draws one too
		if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(lock.Token(ctx))
	// Output:
	// 0 <nil>
	// 2 <nil>
}

func ExampleClient_GetNonReentrantLock() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{ID: "checkout-1"})
	defer client.Close()
	lock, err := client.GetNonReentrantLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(lock.Lock(ctx, 1, lockimpl.LockOptions{}))
	err = lock.Lock(ctx, 1, lockimpl.LockOptions{}) // a reentrant lock would count two
	fmt.Println(errors.Is(err, lockimpl.ErrReentry), err)
	// Output:
	// <nil>
	// true lock "stock" as checkout-1:1: lock held by this owner already, and not reentrant
}

func ExampleClient_GetNonReentrantFairLock() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{})
	defer client.Close()
	lock, err := client.GetNonReentrantFairLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(lock.TryLock(ctx, 1))
	_, err = lock.TryLock(ctx, 1)
	fmt.Println(errors.Is(err, lockimpl.ErrReentry))
	// Output:
	// true <nil>
	// true
}

// The work stops when the lock may no longer protect it. Here somebody frees the lock by force.
func ExampleHoldContext() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{ID: "checkout-1", WatchHolds: true})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}

	held, err := redisson.HoldContext(ctx, lock, 1)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := lock.ForceUnlock(ctx); err != nil {
		log.Fatal(err)
	}
	<-held.Done() // where the work would look between two steps
	fmt.Println("stop working:", context.Cause(held))
	fmt.Println(errors.Is(context.Cause(held), lockimpl.ErrHoldLost))

	_, err = redisson.HoldContext(ctx, lock, 1)
	fmt.Println(err)
	// Output:
	// stop working: hold lost
	// true
	// watch the hold of "stock" as checkout-1:1: lock not held by this owner
}

// Giving up a level leaves the context open. Giving up the last level ends it, with a cause that
// says that nothing was lost.
func ExampleHoldContext_unlock() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{WatchHolds: true})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 2 {
		if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	held, err := redisson.HoldContext(ctx, lock, 1)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = lock.Unlock(ctx, 1)
	fmt.Println(held.Err())
	_, _ = lock.Unlock(ctx, 1)
	<-held.Done()
	fmt.Println(context.Cause(held))
	// Output:
	// <nil>
	// context canceled
}

// A log shows the actions of the watchdog. At the level of Info it shows only failures.
func ExampleConfig_log() {
	rdb, _, stop := connect()
	defer stop()
	client := redisson.NewClient(rdb, redisson.Config{
		ID: "checkout-1",
		Log: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{} // the time differs from run to run
				}
				return a
			},
		})),
	})
	defer client.Close()
	lock, err := client.GetLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lock.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
		log.Fatal(err)
	}
	if _, err := lock.Unlock(ctx, 1); err != nil {
		log.Fatal(err)
	}
	// Output:
	// level=DEBUG msg="renewing from now on" lock=stock owner=checkout-1:1
	// level=DEBUG msg="a level less to renew" lock=stock owner=checkout-1:1
}

// The client accepts what the Java library accepts, with the same effect: half a millisecond
// becomes 0, and the key is gone at once.
func ExampleConfig_uncheckedArguments() {
	rdb, server, stop := connect()
	defer stop()
	for _, unchecked := range []bool{false, true} {
		client := redisson.NewClient(rdb, redisson.Config{ID: "a", UncheckedArguments: unchecked})
		lock, err := client.GetLock("stock")
		if err != nil {
			log.Fatal(err)
		}
		err = lock.Lock(context.Background(), 1, lockimpl.LockOptions{Lease: time.Millisecond / 2})
		fmt.Println(err, server.Exists("stock"))
		_ = client.Close()
	}
	// Output:
	// invalid argument: lease 500µs is below one millisecond false
	// <nil> false
}

// The keys and channels of a lock named "stock", for a reader of Redis.
func ExampleQueueName() {
	fmt.Println("held by, and how often: ", "stock")
	fmt.Println("who waits, head first:  ", redisson.QueueName("stock"))
	fmt.Println("until when they wait:   ", redisson.DeadlinesName("stock"))
	fmt.Println("the newest token:       ", redisson.TokenName("stock"))
	fmt.Println("a release is told on:   ", redisson.ChannelName("stock"))
	fmt.Println("to a fair lock's waiter:", redisson.WaiterChannel("stock", "checkout-1:7"))
	// Output:
	// held by, and how often:  stock
	// who waits, head first:   redisson_lock_queue:{stock}
	// until when they wait:    redisson_lock_timeout:{stock}
	// the newest token:        redisson_lock_token:{stock}
	// a release is told on:    redisson_lock__channel:{stock}
	// to a fair lock's waiter: redisson_lock__channel:{stock}:checkout-1:7
}

// The scripts that a release runs, to warm a server's cache or to read its monitor.
func ExampleRelease_Scripts() {
	release, err := redisson.Find("3.43.0")
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range release.Scripts()[:4] {
		fmt.Println(s.Kind, s.Name)
	}
	// Output:
	// acquire acquire_merged
	// unlock unlock_latch
	// force_unlock force_unlock_command
	// renew renew_owner
}

// In a cluster the later releases publish to sharded channels; earlier ones,
// and any release elsewhere, don't.
func ExampleRelease_Sharded() {
	for _, release := range redisson.Releases {
		fmt.Println(release.Version, release.Sharded())
	}
	// Output:
	// 3.4.2 false
	// 3.11.0 false
	// 3.12.4 false
	// 3.21.3 false
	// 3.43.0 true
	// 4.7.0 true
}
