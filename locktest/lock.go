package locktest

import (
	"context"
	"errors"
)

// Lock is one thread's handle on one lock. One goroutine uses it at a time.
//
// An error that wraps [ErrBusy] or [ErrNotHeld] says what surely happened. After any
// other error the outcome is unknown: the request may have run, may run later, or may
// never run. An adapter that says nothing is therefore judged safely.
type Lock interface {
	// Lock waits until the lock is held, or ctx ends.
	Lock(ctx context.Context) error
	// Unlock gives the hold up, or one level of it if the lock is Reentrant. It returns nil if it did,
	// whether a level is left or not.
	Unlock(ctx context.Context) error
}

// TryLocker is a Lock with an attempt that does not wait.
type TryLocker interface {
	Lock
	// TryLock reports whether it took the lock. A false answer without an error says
	// the same as ErrBusy.
	TryLock(ctx context.Context) (bool, error)
}

// Watched is a Lock that learns when its hold is gone, such as by a renewal that failed.
type Watched interface {
	Lock
	// Lost returns a channel that is closed when the handle learns that its present hold is gone. It is
	// asked once after each grant. From then on its owner does not believe in the hold. It must not be
	// nil.
	Lost() <-chan struct{}
}

// Extender is a Lock whose lease its holder renews by hand.
type Extender interface {
	Lock
	// Extend gives the hold another lease, as long as the first one, from now on. ErrNotHeld
	// says that the hold is surely gone. After any other error the holder does not rely on
	// the hold any more.
	Extend(ctx context.Context) error
}

// Fenced is a Lock whose holds have a fencing token, which is greater than all before. A
// resource can tell by it that a holder is late.
type Fenced interface {
	Lock
	// Token returns the fencing token of the present hold. It is asked after each grant. It
	// reports false if the hold has none. Tokens count from 1.
	Token() (uint64, bool)
}

var (
	// ErrBusy says that the lock was held at some time during the call, or that a fair lock had
	// another waiter before this one, and that nothing is left behind. A call that ended for
	// another reason returns another error, even if it sent no request: a lock is not busy because
	// the context ended before the call could ask a server.
	ErrBusy = errors.New("locktest: the lock is busy")
	// ErrNotHeld says that the handle holds nothing, and that nothing was done.
	ErrNotHeld = errors.New("locktest: the lock is not held")
)

// Client makes the locks of one process.
type Client interface {
	// Lock is called once for each thread and name.
	Lock(name string) (Lock, error)
	// Close is called when the process ends in order. It need not release locks.
	Close() error
}

// Outlive returns a context for a library whose hold lives as long as the context with which
// it was taken. It ends with ctx while the call is under way. The call returns settle of its
// error, and a hold outlives ctx from then on. If ctx has ended by then, settle says so, and
// the hold ends.
func Outlive(ctx context.Context) (own context.Context, settle func(error) error) {
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	return own, func(err error) error {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			end()
		}
		return err
	}
}
