package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

// OneSession is concurrency.Mutex with one session for all threads and locks of a process, as the
// documentation of the package has it: "Session represents a lease kept alive for the lifetime of a client"
// (client/v3 3.7.3, concurrency/session.go). A process whose session has ended begins another one with its next
// acquire.
//
// Its promises are those of Mutex, except for two that sharing takes away:
//
//   - The session is the owner, and not the thread: "Calls to Lock with the same lease will be treated as a
//     single acquisition; locking twice with the same lease is a no-op" ("API reference: concurrency", message
//     LockRequest, of etcd's documentation v3.6). So the lock is Idempotent. Two threads of a process have the
//     lock at one time, and an unlock of either ends the hold of both. The document does not warn of that, and
//     no option of NewMutex prevents it, so the threads are judged like any others.
//   - Threads of a process share a place in the queue, so that the lock is not Fair.
var OneSession = locktest.Subject{
	Name: "etcd-mutex-one-session", About: "etcd: concurrency.Mutex, with one session for each process",
	Policy:  "A process has one session as long as the lease lasts, nothing is tried again, and after an acquire or an unlock that failed the session goes on, and a key that stayed is the process's with its next acquire.",
	Servers: etcdtest.Servers(), Lease: lease, Renewed: true, RenewEvery: etcdtest.RenewEvery(lease), Idempotent: true,
	// A session writes the same key again for its next hold.
	State: etcdtest.OldestCreated(func(lock string) string { return lock + "/" }),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		c, err := etcdtest.NewClient(p)
		if err != nil {
			return nil, err
		}
		return &sharing{Client: c, turn: make(chan struct{}, 1)}, nil
	},
}

// sharing is the client of a process whose threads share a session.
type sharing struct {
	*etcdtest.Client
	turn    chan struct{}        // has an element while a thread looks at the session or begins one
	session *concurrency.Session // nil: none has begun
}

func (c *sharing) Lock(name string) (locktest.Lock, error) {
	return &sharedLock{c: c, name: name}, nil
}

// open returns the session of the process. It begins one if there is none, or if the last one has ended.
func (c *sharing) open(ctx context.Context) (*concurrency.Session, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if c.session != nil {
		select {
		case <-c.session.Done():
		default:
			return c.session, nil
		}
	}
	granted, err := c.Grant(ctx, int64(lease/time.Second))
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(c.Client.Client, concurrency.WithLease(granted.ID))
	if err != nil {
		return nil, err
	}
	c.session = s
	return s, nil
}

// sharedLock is the lock of a thread.
type sharedLock struct {
	c       *sharing
	name    string
	session *concurrency.Session // of the newest hold
	mutex   *concurrency.Mutex   // nil: not held, as far as the handle knows
	unclear bool                 // an unlock of this hold has an unknown outcome
}

// acquire takes the lock as take does.
func (l *sharedLock) acquire(ctx context.Context, take func(*concurrency.Mutex) error) error {
	s, err := l.c.open(ctx)
	if err != nil {
		return err
	}
	m := concurrency.NewMutex(s, l.name)
	switch err := take(m); {
	case errors.Is(err, concurrency.ErrLocked):
		return locktest.ErrBusy
	case err != nil:
		return err
	}
	l.session, l.mutex, l.unclear = s, m, false
	return nil
}

func (l *sharedLock) Lock(ctx context.Context) error {
	return l.acquire(ctx, func(m *concurrency.Mutex) error { return m.Lock(ctx) })
}

// TryLock implements locktest.TryLocker.
func (l *sharedLock) TryLock(ctx context.Context) (bool, error) {
	err := l.acquire(ctx, func(m *concurrency.Mutex) error { return m.TryLock(ctx) })
	if errors.Is(err, locktest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

func (l *sharedLock) Unlock(ctx context.Context) error {
	if l.mutex == nil {
		return locktest.ErrNotHeld
	}
	if err := l.mutex.Unlock(ctx); err != nil {
		l.unclear = true
		return err
	}
	l.mutex = nil
	if l.unclear {
		return errGone
	}
	return nil
}

// Lost implements locktest.Watched.
func (l *sharedLock) Lost() <-chan struct{} { return l.session.Done() }

// Token implements locktest.Fenced: the revision of the store when the lock was acquired.
func (l *sharedLock) Token() (uint64, bool) { return uint64(l.mutex.Header().Revision), true }
