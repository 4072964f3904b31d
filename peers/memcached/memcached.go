// Package memcached judges two locks that people write on Memcached, with the client
// github.com/bradfitz/gomemcache, unmodified.
//
// Both take the lock with add, which fails if the key is there, and wait by asking again
// after 100 ms. They differ in how they give it up.
//
// The promises of the locks rest on four sentences of memcached 1.6.18, doc/protocol.txt:
//
//   - add stores the item only if the server has none for the key (lines 216 to 217): one owner.
//   - No client can read an item after its expiry (lines 243 to 249): a hold ends with its lease.
//   - The clock moves at whole seconds, so that an expiry is right to about a second (lines 152 to
//     154). Add ignores this, and CAS does not.
//   - An item may be removed before its expiry to make room (lines 243 to 245): a hold that was
//     evicted is a limit, and not a bug.
//
// cas stores the item only if nobody has changed it since it was read (lines 230 to 231): an unlock
// of CAS ends no hold of another. delete has no such condition (lines 333 to 348), so the locks
// that use it promise more than they keep. None of the locks promises an order among waiters or a
// token, and only CAS tells the holder that a hold is lost.
package memcached

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"lockstep/locktest"
	"lockstep/peers/memcached/server"
)

const (
	lease = 8 * time.Second
	pause = 100 * time.Millisecond
	// tick is the time by which a hold may end before its expiry: memcached's clock goes by
	// whole seconds.
	tick = time.Second
)

// Add is the lock whose unlock deletes the key, whoever has the lock, and whose holder relies on the
// whole expiry.
var Add = subject("memcached-add", "ours, on Memcached: add with an expiry, delete", lease, false, func(l *lock) error {
	//lockvet:ignore delete-unchecked This is the mistake of the lock memcached-add.
	return l.c.Delete(l.name)
})

// AddForever is Add with the expiry 0, which means that the item never expires.
var AddForever = subject("memcached-add-forever", "ours, on Memcached: add without an expiry, delete", 0, false, func(l *lock) error {
	//lockvet:ignore delete-unchecked This is the mistake of the lock memcached-add-forever.
	return l.c.Delete(l.name)
})

// CAS is the lock whose holder first checks that the value is its own, and then replaces it, if it
// is still the same, by an item that has already expired. The holder is told to stop a second
// before the expiry.
var CAS = subject("memcached-cas", "ours, on Memcached: add with an expiry, gets and cas", lease, true, func(l *lock) error {
	item, err := l.c.Get(l.name) // sends gets
	switch {
	case err != nil:
		return err
	case string(item.Value) != l.value:
		return memcache.ErrCacheMiss
	}
	item.Expiration = -1
	return l.c.CompareAndSwap(item)
})

// subject returns the lock with this lease that release gives up.
func subject(name, about string, lease time.Duration, tells bool, release func(*lock) error) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Servers: server.Servers(1), Lease: lease, Waits: pause, State: server.Value,
		Policy: "The lock has no session, an acquire that failed is not tried again and leaves the item that it may have stored, and an unlock that failed may be called again.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			c := memcache.New(p.Addr(0))
			c.DialContext = p.DialContext
			return client{c, lease, tells, release, make(chan struct{})}, nil
		},
	}
}

type client struct {
	*memcache.Client
	lease   time.Duration
	tells   bool // tells the holder a second before the expiry
	release func(*lock) error
	closed  chan struct{} // closed by Close
}

// errClosed is the error of an acquire after Close. The client of the library would connect again.
var errClosed = errors.New("memcached: the client is closed")

// Close ends the connections. No acquire is granted after it.
func (c client) Close() error {
	close(c.closed)
	return c.Client.Close()
}

// isClosed reports whether the client is closed.
func (c client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c client) Lock(name string) (locktest.Lock, error) {
	l := &lock{c: c, name: name}
	if c.tells {
		return &told{lock: l}, nil
	}
	return l, nil
}

type lock struct {
	c           client
	name, value string
	held        bool // as far as the handle knows
}

func (l *lock) TryLock(context.Context) (bool, error) {
	if l.c.isClosed() {
		return false, errClosed
	}
	value := rand.Text()
	err := l.c.Add(&memcache.Item{Key: l.name, Value: []byte(value), Expiration: int32(l.c.lease / time.Second)})
	if errors.Is(err, memcache.ErrNotStored) {
		return false, nil
	}
	if err == nil && l.c.isClosed() {
		return false, errClosed // the item stays until its expiry
	}
	if err == nil {
		l.value, l.held = value, true
	}
	return err == nil, err
}

func (l *lock) Lock(ctx context.Context) error { return wait(ctx, l.TryLock) }

// wait tries again and again.
func wait(ctx context.Context, try func(context.Context) (bool, error)) error {
	for {
		if held, err := try(ctx); held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(pause):
		}
	}
}

func (l *lock) Unlock(context.Context) error {
	if !l.held {
		return locktest.ErrNotHeld
	}
	err := l.c.release(l)
	switch err {
	case memcache.ErrCacheMiss, memcache.ErrCASConflict, memcache.ErrNotStored:
		err = locktest.ErrNotHeld
	}
	l.held = err != nil && err != locktest.ErrNotHeld // after any other error the caller may try to give the hold up again
	return err
}

// told is a lock that tells its holder when to stop.
type told struct {
	*lock
	lost  chan struct{}
	timer *time.Timer
}

func (l *told) TryLock(ctx context.Context) (bool, error) {
	sent := time.Now()
	held, err := l.lock.TryLock(ctx)
	if held {
		lost := make(chan struct{})
		l.lost, l.timer = lost, time.AfterFunc(lease-tick-time.Since(sent), func() { close(lost) })
	}
	return held, err
}

func (l *told) Lock(ctx context.Context) error { return wait(ctx, l.TryLock) }

func (l *told) Unlock(ctx context.Context) error {
	if l.timer != nil {
		l.timer.Stop()
	}
	return l.lock.Unlock(ctx)
}

// Lost implements locktest.Watched.
func (l *told) Lost() <-chan struct{} { return l.lost }
