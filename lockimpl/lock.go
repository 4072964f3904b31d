// Package lockimpl has the interface of distributed locks on Redis, and their errors. The
// locks are in folders below it: the ports of Redisson in redisson, simple locks of one key
// in bare, and the lock of this project in reference.
//
// The locks run on any Redis and know nothing of a simulation. Besides its connection, a lock takes
// three things from its process: the wall clock, unique ids and retry jitter. They come through
// Environment, so that a test can skew, step and repeat them. The zero Environment uses those of
// the machine.
package lockimpl

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"
)

// Owner tells the users of one client apart. Redisson uses the Java thread
// id; Go has none, so the caller chooses a number. Two goroutines that use one Owner
// share its holds.
type Owner int64

// Errors that a lock's methods wrap; match them with errors.Is.
var (
	// ErrNotHeld: the caller does not hold the lock (Redisson's
	// IllegalMonitorStateException). Nothing was changed.
	ErrNotHeld = errors.New("lock not held by this owner")
	// ErrReentry: the caller holds the lock already, and it is not reentrant
	// (Redisson's IllegalMonitorStateException). Nothing was changed.
	ErrReentry = errors.New("lock held by this owner already, and not reentrant")
	// ErrUnknownOutcome: a command was sent and its answer never came (a
	// timeout, a lost connection, an interrupt). It may have run or not, or may
	// still run. Redisson has no such outcome: it throws, or answers false.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrHoldLost: a hold ended before its owner gave it up: its lease ran out, no renewal got
	// through in time, or another owner has the lock. It is the cause with which the context of
	// such a hold ends; Redisson does not tell its holder (issue 4698).
	ErrHoldLost = errors.New("hold lost")
	// ErrBusy: another owner holds the lock, or waits for it before this one. Nothing is
	// left behind.
	ErrBusy = errors.New("lock held by another owner")
	// ErrReleased: the hold was given up by a handle's Release. It is the cause with which the
	// context of such a hold ends.
	ErrReleased = errors.New("hold released")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client closed")
	// ErrInvalid: an argument was refused before anything was sent.
	ErrInvalid = errors.New("invalid argument")
)

// Release is the effect of an unlock that succeeded.
type Release int

const (
	// Released: the unlock took the last level, and the lock is free.
	Released Release = iota + 1
	// StillHeld: the unlock took a level of re-entry, and the owner still holds the lock.
	StillHeld
)

// LockOptions are the choices of Lock. The zero value asks for a hold without a lease, which the
// watchdog renews if the lock has one.
type LockOptions struct {
	// Lease ends the hold by itself; 0 for none. At least one millisecond.
	Lease time.Duration
	// Interruptible says that a cancelled context ends the waiting (Redisson's lockInterruptibly).
	// Otherwise a wait ignores the cancelled context, as Redisson's lock() does, and only a command
	// under way is given up.
	Interruptible bool
}

// TryOptions are the choices of TryLockTimed.
type TryOptions struct {
	// Wait is how long to try; 0 is one attempt.
	Wait time.Duration
	// Lease ends the hold by itself; 0 for none.
	Lease time.Duration
	// Unit is the unit in which a Java caller would have named Wait; 0 is the millisecond. Some
	// releases read the number as milliseconds, whatever its unit (redisson issue 4743).
	Unit time.Duration
}

// Lock is one lock object of one client. All methods may be called from many
// goroutines. Errors of the connection come back wrapped, with
// ErrUnknownOutcome where the command may have run.
type Lock interface {
	// Name is the lock's name, which is also its key.
	Name() string
	// Lock waits until the owner holds the lock.
	Lock(ctx context.Context, o Owner, opt LockOptions) error
	// TryLock makes the single attempt that never queues.
	TryLock(ctx context.Context, o Owner) (bool, error)
	// TryLockTimed tries for opt.Wait.
	TryLockTimed(ctx context.Context, o Owner, opt TryOptions) (bool, error)
	// Unlock gives up one level of the owner's hold; it returns ErrNotHeld if there is none.
	Unlock(ctx context.Context, o Owner) (Release, error)
	// ForceUnlock frees the lock whoever holds it; it reports false if it was free.
	ForceUnlock(ctx context.Context) (bool, error)
	// IsLocked reports whether anybody holds the lock.
	IsLocked(ctx context.Context) (bool, error)
	// IsHeldBy reports whether the owner, of this client, holds the lock.
	IsHeldBy(ctx context.Context, o Owner) (bool, error)
	// HoldCount is the number of levels that the owner, of this client, holds.
	HoldCount(ctx context.Context, o Owner) (int, error)
	// RemainTimeToLive returns Redis's PTTL unchanged: -2ms when free, -1ms when the key has no
	// expiry, else the time to live in whole milliseconds.
	RemainTimeToLive(ctx context.Context) (time.Duration, error)
}

// Watched is a Lock that reports the end of a hold to its owner.
type Watched interface {
	// Lost returns a channel that is closed when the owner's present hold is gone. Callers ask for
	// it after each grant. A nil channel reports nothing.
	Lost(o Owner) <-chan struct{}
}

// Extender is a Lock whose owners may renew a lease.
type Extender interface {
	// Extend gives the owner's hold another lease from now on.
	Extend(ctx context.Context, o Owner) error
}

// Handled is a Lock that package handle can take by handles.
type Handled interface {
	Lock
	// NewOwner returns an owner that the client has not returned before. It is below zero, so
	// callers should choose owners that are not.
	NewOwner() Owner
	// HoldContext returns a context that ends with parent, and with the hold of an owner. Its cause
	// is ErrHoldLost, at the latest when the hold may have ended on the server, ErrClosed, or
	// another error if the owner gave the hold up. It sends nothing. The error is ErrNotHeld if the
	// owner has no hold, and ErrInvalid if the client does not watch holds.
	HoldContext(parent context.Context, o Owner) (context.Context, error)
	// Abandon gives up, in the background, the hold of an owner of NewOwner whose call ended
	// without a grant. It also gives up a grant that arrives later. Nobody else could.
	Abandon(ctx context.Context, o Owner)
}

// Fenced is a Lock that has a fencing token for each hold.
type Fenced interface {
	// Token returns the token of the owner's present hold. Callers ask for it after each grant,
	// within the call. It reports false if the hold has no token.
	Token(o Owner) (uint64, bool)
}

// Client makes the lock objects of one process.
type Client interface {
	// GetLock makes a new lock object; objects of one name share their holds, but not the fields
	// that a release of Redisson keeps in the object.
	GetLock(name string) (Lock, error)
	// Close ends subscriptions and renewals without unlocking anything.
	// Calls under way and later ones fail with ErrClosed.
	Close() error
}

// Environment has the parts of its process that a client uses. Nil fields mean the machine's own.
// Owner 0 is the client itself (its watchdog).
type Environment struct {
	// Now reads the wall clock; locks read it in whole milliseconds.
	Now func() time.Time
	// NewID returns 16 random bytes as 32 hexadecimal digits.
	NewID func(o Owner) string
	// Jitter returns a duration in [0, max).
	Jitter func(o Owner, max time.Duration) time.Duration
}

// WithDefaults fills the nil fields.
func (e Environment) WithDefaults() Environment {
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.NewID == nil {
		e.NewID = func(Owner) string {
			var b [16]byte
			_, _ = rand.Read(b[:]) // never fails (crypto/rand)
			return hex.EncodeToString(b[:])
		}
	}
	if e.Jitter == nil {
		e.Jitter = func(_ Owner, max time.Duration) time.Duration {
			if max <= 0 {
				return 0
			}
			return mathrand.N(max)
		}
	}
	return e
}

// CheckName refuses a name that would not work as a key in a cluster: an empty
// one, and one with a brace that is not closed, whose keys would fall into
// different slots.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: a lock needs a name", ErrInvalid)
	}
	if i := strings.IndexByte(name, '{'); i >= 0 && !strings.Contains(name[i:], "}") {
		return fmt.Errorf("%w: lock name %q opens a brace and does not close it", ErrInvalid, name)
	}
	return nil
}

// CheckLease refuses a lease that Redis cannot keep; 0 means none.
func CheckLease(lease time.Duration) error {
	if lease != 0 && lease < time.Millisecond {
		return fmt.Errorf("%w: lease %v is below one millisecond", ErrInvalid, lease)
	}
	return nil
}

// CheckTry refuses a negative wait and a lease that Redis cannot keep.
func CheckTry(opt TryOptions) error {
	if opt.Wait < 0 {
		return fmt.Errorf("%w: wait %v is negative", ErrInvalid, opt.Wait)
	}
	return CheckLease(opt.Lease)
}
