package reference_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"runtime"
	"time"

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

// Work under a lock, from beginning to end: the work stops when the hold is lost, and gives the
// lock up whatever its outcome. The token goes to the resource, which refuses a holder with a
// smaller one.
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
			// ctx may have ended, and the hold must be given up all the same.
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
			return errors.Join(err, context.Cause(ctx)) // ErrHoldLost, if the hold was lost
		}
		return nil
	}
	fmt.Println(sell(context.Background(), 1), sell(context.Background(), 2))
	fmt.Println(rdb.Get(context.Background(), "sold").Val())
	// Output:
	// <nil> <nil>
	// 2
}

// open makes a client, as each process has one for as long as it lives, and its object of the lock
// "stock".
func open(rdb redis.UniversalClient) *reference.Lock {
	client, err := reference.NewClient(rdb, reference.Config{})
	if err != nil {
		log.Fatal(err)
	}
	lock, err := client.NewLock("stock")
	if err != nil {
		log.Fatal(err)
	}
	return lock
}

// Work under a lock by a handle. A bound on the wait is no bound on the work.
func ExampleLock_Acquire() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb)

	sell := func(ctx context.Context) (err error) {
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		hold, err := lock.Acquire(wait)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hold.Release(ctx)) }() // sent also if ctx has ended
		work := hold.Context(ctx)
		if err := rdb.Incr(work, "sold").Err(); err != nil {
			return errors.Join(err, context.Cause(work)) // ErrHoldLost, if the hold was lost
		}
		return nil
	}
	fmt.Println(sell(context.Background()), sell(context.Background()))
	fmt.Println(rdb.Get(context.Background(), "sold").Val())
	// Output:
	// <nil> <nil>
	// 2
}

// A handle is not reentrant: its holder is refused like anybody else.
func ExampleLock_TryAcquire() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb)

	ctx := context.Background()
	hold, err := lock.TryAcquire(ctx)
	fmt.Println(hold != nil, err)
	_, err = lock.TryAcquire(ctx)
	fmt.Println(errors.Is(err, lockimpl.ErrBusy), err)
	// Output:
	// true <nil>
	// true acquire "stock": lock held by another owner
}

// A lease ends the hold by itself, and nothing renews it.
func ExampleWithLease() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb)

	ctx := context.Background()
	if _, err := lock.Acquire(ctx, reference.WithLease(5*time.Second)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.RemainTimeToLive(ctx))
	// Output: 5s <nil>
}

// The context of the work ends when the hold is lost, and says so.
func ExampleHold_Context() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb)

	ctx := context.Background()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	work := hold.Context(ctx)
	fmt.Println(context.Cause(work))
	if _, err := lock.ForceUnlock(ctx); err != nil { // as an operator does
		log.Fatal(err)
	}
	<-work.Done()
	fmt.Println(errors.Is(context.Cause(work), lockimpl.ErrHoldLost))
	// Output:
	// <nil>
	// true
}

// A program tells the errors of a release apart.
func ExampleHold_Release() {
	rdb, stop := connect()
	defer stop()
	lock := open(rdb)

	ctx := context.Background()
	release := func(hold *reference.Hold) {
		switch err := hold.Release(ctx); {
		case err == nil:
			fmt.Println("given up, and held until then")
		case errors.Is(err, lockimpl.ErrReleased):
			fmt.Println("given up before")
		case errors.Is(err, lockimpl.ErrHoldLost):
			fmt.Println("lost before")
		default:
			fmt.Println("ask again, or let the lease end:", err)
		}
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	release(hold)
	release(hold)

	if hold, err = lock.Acquire(ctx); err != nil {
		log.Fatal(err)
	}
	if err := rdb.Del(ctx, "stock").Err(); err != nil { // as an operator does
		log.Fatal(err)
	}
	release(hold)
	// Output:
	// given up, and held until then
	// given up before
	// lost before
}

// guarded is the resource that a lock guards. It keeps the greatest token that it has seen, together
// with the value, and refuses a holder with a smaller one.
type guarded struct {
	value string
	token int64
}

var errLate = errors.New("another has had the lock since")

func (g *guarded) write(value string, token int64) error {
	if token < g.token {
		return errLate
	}
	g.value, g.token = value, token
	return nil
}

// A holder that was stopped for longer than its lease writes late, and is refused.
func ExampleHold_Token() {
	rdb, stop := connect()
	defer stop()
	var stock guarded

	ctx := context.Background()
	stopped, err := open(rdb).Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := rdb.Del(ctx, "stock").Err(); err != nil { // its lease ends
		log.Fatal(err)
	}
	next, err := open(rdb).Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stock.write("by the next", next.Token()))
	fmt.Println(stock.write("by the stopped one", stopped.Token()))
	fmt.Println(stock.value)
	// Output:
	// <nil>
	// another has had the lock since
	// by the next
}
