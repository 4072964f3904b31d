// Package handle takes the locks of a client by handles. Each handle has an owner of its own, so
// two goroutines share a hold only if one gives its handle to the other:
//
//	lock, err := handle.New(redissonLock)
//	hold, err := lock.Acquire(ctx)
//	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
//	work := hold.Context(ctx)
//
// The package sends nothing that the lock does not send, and a handle has the faults of its lock.
// Package reference has handles of its own, which know more: its server remembers requests.
package handle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockstep/lockimpl"
)

// Lock takes a lock by handles. Its methods may be called by many goroutines.
type Lock struct{ l lockimpl.Handled }

// New returns the lock by handles. The error is lockimpl.ErrInvalid if the lock does not implement
// lockimpl.Handled, or if its client does not watch holds (redisson.Config.WatchHolds).
func New(l lockimpl.Lock) (*Lock, error) {
	handled, ok := l.(lockimpl.Handled)
	if !ok {
		return nil, fmt.Errorf("%w: lock %q cannot be taken by handles: a %T does not implement lockimpl.Handled", lockimpl.ErrInvalid, l.Name(), l)
	}
	// A new owner holds nothing, so ErrNotHeld is the right answer. Any other error says why holds
	// cannot be watched.
	if _, err := handled.HoldContext(context.Background(), handled.NewOwner()); !errors.Is(err, lockimpl.ErrNotHeld) {
		return nil, fmt.Errorf("lock %q cannot be taken by handles: %w", l.Name(), err)
	}
	return &Lock{handled}, nil
}

// Name is the lock's name.
func (l *Lock) Name() string { return l.l.Name() }

// Option is a choice of Acquire and TryAcquire.
type Option func(*options)

type options struct{ lease time.Duration }

// WithLease ends the hold by itself after d, at least one millisecond, and nothing renews it. Without
// it, or with 0, the hold is renewed until it is released.
func WithLease(d time.Duration) Option { return func(o *options) { o.lease = d } }

// Acquire waits until it has the lock, or ctx ends. ctx bounds the wait alone: the hold outlives it.
// The error is nil exactly if there is a hold. It returns the errors of the lock.
//
// After lockimpl.ErrUnknownOutcome the lock may be held for nobody. It is given up in the background as soon
// as its client hears of the grant. If the client never hears of it, nothing renews the hold, and it
// ends with its lease.
func (l *Lock) Acquire(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.take(ctx, opts, func(o lockimpl.Owner, lease time.Duration) (bool, error) {
		err := l.l.Lock(ctx, o, lockimpl.LockOptions{Lease: lease, Interruptible: true})
		return err == nil, err
	})
}

// TryAcquire is Acquire with a single attempt that does not wait for others. lockimpl.ErrBusy says
// that another owner holds the lock, or waits for it before this one.
func (l *Lock) TryAcquire(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.take(ctx, opts, func(o lockimpl.Owner, lease time.Duration) (bool, error) {
		if lease != 0 {
			return l.l.TryLockTimed(ctx, o, lockimpl.TryOptions{Lease: lease})
		}
		return l.l.TryLock(ctx, o)
	})
}

// take takes the lock by a new owner.
func (l *Lock) take(ctx context.Context, opts []Option, ask func(lockimpl.Owner, time.Duration) (bool, error)) (*Hold, error) {
	var opt options
	for _, set := range opts {
		set(&opt)
	}
	o := l.l.NewOwner()
	granted, err := ask(o, opt.lease)
	switch {
	case err != nil:
		l.l.Abandon(ctx, o)
		return nil, err
	case !granted:
		return nil, fmt.Errorf("acquire %q: %w", l.Name(), lockimpl.ErrBusy)
	}
	h := &Hold{l: l.l, owner: o, turn: make(chan struct{}, 1)}
	h.ctx, h.end = context.WithCancelCause(context.Background())
	held, err := l.l.HoldContext(context.Background(), o)
	if err != nil { // the hold was lost since the grant
		h.end(lockimpl.ErrHoldLost)
		return h, nil
	}
	context.AfterFunc(held, func() { h.end(causeOf(held)) })
	return h, nil
}

// causeOf returns the cause of a handle's context once the context of its hold has ended.
func causeOf(held context.Context) error {
	for _, cause := range []error{lockimpl.ErrHoldLost, lockimpl.ErrClosed} {
		if errors.Is(context.Cause(held), cause) {
			return cause
		}
	}
	return lockimpl.ErrReleased
}

// last bounds a request that is sent after the context of its call has ended.
const last = time.Second

// Hold is a handle on one grant of a lock. Its methods may be called by many goroutines.
//
// A handle is not reentrant: a goroutine that holds the lock by a handle and calls Acquire waits
// for itself.
type Hold struct {
	l     lockimpl.Handled
	owner lockimpl.Owner
	ctx   context.Context // ends with the hold
	end   context.CancelCauseFunc

	turn    chan struct{} // holds one while a Release is under way
	asked   bool          // a Release may have run without an answer
	settled error         // the result of each further Release; nil while the outcome is open
}

// Context returns a context for the work that the lock guards. It ends with parent, and its cause is
// then the parent's. Otherwise its cause is lockimpl.ErrReleased after a Release, lockimpl.ErrClosed when
// the client was closed, and lockimpl.ErrHoldLost as soon as the hold may have ended on the server.
func (h *Hold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return ctx
}

// Release gives the hold up. Its context has ended when Release returns, also if Release failed. Release asks
// the server at least once. If ctx has already ended, it waits one second for the answer. nil says that the
// server kept the hold until then, and has given it up. Errors:
//
//   - lockimpl.ErrReleased, with ErrNotHeld: an earlier Release gave the hold up. Nothing was sent.
//   - lockimpl.ErrHoldLost, with ErrNotHeld: the hold had ended before. Every further Release says so.
//   - lockimpl.ErrUnknownOutcome: no answer came. A further Release asks again. If it finds the hold gone, its
//     error has ErrNotHeld, too: nobody can tell which Release gave the hold up, or whether it had ended before.
//   - lockimpl.ErrClosed: the client was closed; the hold ends with its lease.
//   - another error: nothing was sent that may have run. A further Release may give the hold up.
func (h *Hold) Release(ctx context.Context) error {
	doing := fmt.Sprintf("release %q", h.l.Name())
	if err := h.takeTurn(ctx); err != nil {
		return fmt.Errorf("%s: %w: another release is under way: %w", doing, lockimpl.ErrUnknownOutcome, err)
	}
	defer func() { <-h.turn }()
	if h.settled != nil {
		return fmt.Errorf("%s: %w", doing, h.settled)
	}
	h.end(lockimpl.ErrReleased)
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), last)
		defer cancel()
	}
	for {
		release, err := h.l.Unlock(ctx, h.owner)
		switch {
		case errors.Is(err, lockimpl.ErrNotHeld) && h.asked:
			h.settled = fmt.Errorf("%w, and %w: an earlier release may have given it up", lockimpl.ErrNotHeld, lockimpl.ErrUnknownOutcome)
			return fmt.Errorf("%s: %w", doing, h.settled)
		case errors.Is(err, lockimpl.ErrNotHeld):
			h.settled = fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, lockimpl.ErrHoldLost)
			return fmt.Errorf("%s: %w", doing, h.settled)
		case err != nil:
			h.asked = h.asked || errors.Is(err, lockimpl.ErrUnknownOutcome)
			return err
		case release == lockimpl.Released:
			h.settled = fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, lockimpl.ErrReleased)
			return nil
		}
		// The owner entered once, but the server counts a second level. The acquire ran twice, since
		// its first answer was lost.
	}
}

// takeTurn waits for the end of another Release.
func (h *Hold) takeTurn(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
