// Package etcd judges the mutex of etcd, go.etcd.io/etcd/client/v3/concurrency, unmodified,
// on the real server.
//
// The lock is a key under the name of the lock, one for each session. The session whose key
// was created first has the lock, and the others wait until the keys before theirs are
// gone. A session is a lease that its client keeps alive.
//
// Mutex has a session for each acquire, and OneSession has one for each process.
package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

// lease is the TTL of a session. A session of 60 s, which is the default, makes runs long.
const lease = 8 * time.Second

// Mutex is concurrency.Mutex, with a session for each acquire. The session is closed after the
// unlock. After a failed acquire or unlock the session is left to its lease, so that a key which
// may still exist ends with it.
//
// Its promises, with their sources:
//
//   - One owner at a time, until an unlock or the end of the lease: "API reference: concurrency",
//     service Lock, of etcd's documentation v3.6. The lease is a promise of time, so that a holder
//     that is paused past it meets another: "etcd versus other key-value stores", section "Notes on
//     the usage of lock and lease". Such a pause excuses two owners (limit).
//   - Waiters are served in the order of their keys: the oldest key has the lock (client/v3 3.7.3,
//     concurrency/mutex.go, lines 80 to 85 and 117), and an unlock hands it to the next waiter
//     (service Lock). So the lock is Fair.
//   - A wait ends with its context, and a Lock that gives up cleans up its key (mutex.go, lines 73
//     and 74). A TryLock returns at once after the necessary cleanup (line 50).
//   - The holder learns of a loss: Session.Done is closed when the lease expires or is no longer refreshed
//     (concurrency/session.go, lines 95 and 96).
//   - Fencing: the revision is the token, as the section "Notes on the usage of lock and lease" has
//     it. It is the one of Header (mutex.go, line 158).
var Mutex = locktest.Subject{
	Name: "etcd-mutex", About: "etcd: concurrency.Mutex, with a session for each acquire",
	Policy:  "Each acquire has a session of its own, which is closed after an unlock, and which is left to its lease after an acquire or an unlock that failed.",
	Servers: etcdtest.Servers(), Lease: lease, Renewed: true, RenewEvery: etcdtest.RenewEvery(lease), Fair: true,
	// The first key belongs to the holder, the others to waiters. A key is known by its session.
	State: etcdtest.Oldest(func(lock string) string { return lock + "/" }),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		c, err := etcdtest.NewClient(p)
		if err != nil {
			return nil, err
		}
		return client{c}, nil
	},
}

type client struct{ *etcdtest.Client }

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{c: c.ForLock(name), name: name}, nil
}

type lock struct {
	c       *clientv3.Client
	name    string
	session *concurrency.Session // of the newest hold
	mutex   *concurrency.Mutex   // nil: not held, as far as the handle knows
	unclear bool                 // an unlock of this hold has an unknown outcome
}

// begin makes a session and a mutex of it.
func (l *lock) begin(ctx context.Context) (*concurrency.Session, *concurrency.Mutex, error) {
	// Without a lease, NewSession would ask for one itself, and go on after the end of ctx.
	granted, err := l.c.Grant(ctx, int64(lease/time.Second))
	if err != nil {
		return nil, nil, err
	}
	s, err := concurrency.NewSession(l.c, concurrency.WithLease(granted.ID))
	if err != nil {
		return nil, nil, err
	}
	return s, concurrency.NewMutex(s, l.name), nil
}

// released is the key of a mutex after it has given its key up.
const released = "\x00"

// acquire takes the lock as take does.
func (l *lock) acquire(ctx context.Context, take func(*concurrency.Mutex) error) error {
	s, m, err := l.begin(ctx)
	if err != nil {
		return err
	}
	if err = take(m); err == nil {
		l.session, l.mutex, l.unclear = s, m, false
		return nil
	}
	s.Orphan() // a key that may exist ends with the lease
	if m.Key() == released {
		return locktest.ErrBusy
	}
	return err
}

func (l *lock) Lock(ctx context.Context) error {
	return l.acquire(ctx, func(m *concurrency.Mutex) error { return m.Lock(ctx) })
}

// TryLock implements locktest.TryLocker.
func (l *lock) TryLock(ctx context.Context) (bool, error) {
	err := l.acquire(ctx, func(m *concurrency.Mutex) error { return m.TryLock(ctx) })
	if errors.Is(err, locktest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

func (l *lock) Unlock(ctx context.Context) error {
	if l.mutex == nil {
		return locktest.ErrNotHeld
	}
	if !l.unclear {
		select {
		case <-l.session.Done():
			return l.unlockLost(ctx)
		default:
		}
	}
	if err := l.mutex.Unlock(ctx); err != nil {
		l.unclear = true
		l.session.Orphan()
		return err
	}
	l.mutex = nil
	l.session.Orphan()
	_, _ = l.c.Revoke(ctx, l.session.Lease()) // the lease also ends by itself
	if l.unclear {
		return errGone
	}
	return nil
}

// unlockLost unlocks a hold whose session has ended for the client. The key may still exist, because
// the client also gives a session up when it hears no answer to its renewals.
func (l *lock) unlockLost(ctx context.Context) error {
	if err := l.c.Ctx().Err(); err != nil {
		return err // the client is closed, and the hold lasts until its lease is over
	}
	r, err := l.c.Txn(ctx).If(l.mutex.IsOwner()).Then(clientv3.OpDelete(l.mutex.Key())).Commit()
	if err != nil {
		l.unclear = true
		return err
	}
	l.mutex = nil
	if !r.Succeeded {
		return locktest.ErrNotHeld
	}
	return nil
}

// errGone is the error of an unlock after an unlock of unknown outcome, since Unlock does not
// report whether there was a key to delete.
var errGone = errors.New("the key is gone, by this unlock or by the one before")

// Lost implements locktest.Watched.
func (l *lock) Lost() <-chan struct{} { return l.session.Done() }

// Token implements locktest.Fenced: the revision of the store when the lock was acquired.
func (l *lock) Token() (uint64, bool) {
	return uint64(l.mutex.Header().Revision), true
}
