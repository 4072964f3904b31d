package reference

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"lockstep/lockimpl"
)

// Hold is a handle on one grant of a lock. Each has an owner of its own, which callers cannot name
// by a number, so two goroutines share a hold only if they share its handle. Its methods may be
// called by many goroutines.
//
// A handle is not reentrant: a goroutine that holds the lock by a handle and calls Acquire waits
// for itself. Code that enters a lock again passes its handle on, or calls Lock with the number of
// an owner.
type Hold struct {
	l       *Lock
	held    *hold
	turn    chan struct{} // holds one while a Release is under way
	unlock  *request      // of every Release; nil before the first
	settled error         // the result of each further Release; nil while the outcome is open
}

// AcquireOption is a choice of Acquire and TryAcquire.
type AcquireOption func(*acquireOptions)

type acquireOptions struct{ lease time.Duration }

// WithLease ends the hold by itself after d, at least one millisecond, and nothing renews it. Without it, or
// with 0, the hold is renewed until it is released.
func WithLease(d time.Duration) AcquireOption { return func(o *acquireOptions) { o.lease = d } }

// Acquire waits until it has the lock, or ctx ends. ctx bounds the wait alone: the hold outlives it.
// The error is nil exactly if there is a hold. It returns the errors of Lock. After ErrUnknownOutcome
// the server may hold the lock for nobody until the lease or the watchdog timeout has passed.
func (l *Lock) Acquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return l.handle(ctx, -1, opts)
}

// TryAcquire is Acquire that does not wait for others: it makes the single attempt that never queues. lockimpl.ErrBusy
// says that another owner holds the lock.
func (l *Lock) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return l.handle(ctx, 0, opts)
}

func (l *Lock) handle(ctx context.Context, wait time.Duration, opts []AcquireOption) (*Hold, error) {
	var opt acquireOptions
	for _, set := range opts {
		set(&opt)
	}
	doing := fmt.Sprintf("acquire %q", l.name)
	if err := lockimpl.CheckLease(opt.lease); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	held, err := l.acquire(ctx, doing, l.c.ownerOfHold(), opt.lease, wait)
	switch {
	case err != nil:
		return nil, err
	case held == nil:
		return nil, fmt.Errorf("%s: %w", doing, lockimpl.ErrBusy)
	}
	return &Hold{l: l, held: held, turn: make(chan struct{}, 1)}, nil
}

// ownerOfHold returns an owner that no other hold of any client has.
func (c *Client) ownerOfHold() owner {
	n := c.handles.Add(1)
	return owner{c.id + ":hold-" + strconv.FormatInt(n, 10), lockimpl.Owner(-n)}
}

// Context returns a context for the work that the lock guards. It ends with parent, and its cause is
// then the parent's. Otherwise its cause is lockimpl.ErrReleased when the hold was given up,
// lockimpl.ErrClosed when the client was closed, and lockimpl.ErrHoldLost as soon as the hold may have
// ended on the server, at the latest (see HoldContext).
//
// Context takes the parent, and not Acquire, so that a bound on the wait does not end the work.
func (h *Hold) Context(parent context.Context) context.Context { return h.held.context(parent) }

// Token is the fencing token of the hold: greater than the token of every earlier hold of this
// lock, whoever had it. It stays the same when the hold has ended (see Lock.Token).
func (h *Hold) Token() int64 { return h.held.token }

// Release gives the hold up. From its first call on the hold is not renewed any more, even if Release fails.
// Its context has ended when Release returns.
//
// Release asks the server at least once, even if ctx has already ended, and waits one second for the answer.
// It asks again until the server answers or ctx ends. nil says that the server kept the hold until then, and
// has given it up. Errors:
//
//   - ErrUnknownOutcome: no answer came to what was sent, or the server has the hold no longer and remembers nothing
//     of its owner, as of a hold that is older than Memory and whose loss the client has not heard of. A further Release asks for the outcome of the same request, so
//     that it is told that the hold was given up even if the first Release did it unheard. The server
//     remembers it for Memory. After that the outcome stays unknown, and the lock is not held by this hold in any case.
//   - an error without it: nothing was sent that may have run. A further Release may give the hold up.
//   - ErrHoldLost, with ErrNotHeld: the hold had ended before. Every further Release says so.
//   - lockimpl.ErrReleased, with ErrNotHeld: an earlier Release gave the hold up. Nothing was sent.
//   - ErrClosed: the client was closed; the hold ends with its lease.
func (h *Hold) Release(ctx context.Context) error {
	doing := fmt.Sprintf("release %q", h.l.name)
	if err := h.takeTurn(ctx); err != nil {
		return fmt.Errorf("%s: %w: another release is under way: %w", doing, lockimpl.ErrUnknownOutcome, err)
	}
	defer func() { <-h.turn }()
	c := h.l.c
	switch {
	case h.settled != nil:
		return fmt.Errorf("%s: %w", doing, h.settled)
	case c.closing.Err() != nil && h.unlock != nil: // an earlier Release may have run
		return fmt.Errorf("%s: %w", doing, h.unlock.unknownIf(lockimpl.ErrClosed))
	case c.closing.Err() != nil:
		return fmt.Errorf("%s: %w", doing, lockimpl.ErrClosed)
	}
	before := h.held
	if h.unlock == nil {
		h.unlock, before = h.l.request(h.l.scripts.unlock, h.held.owner, ChannelName(h.l.name), c.holds.releasing(h.held.key)), nil
	}
	h.unlock.startOver()
	_, err := h.l.unlock(ctx, doing, h.unlock, lockimpl.ErrReleased, before)
	switch {
	case err == nil:
		h.settled = errAlreadyReleased
	case errors.Is(err, lockimpl.ErrNotHeld):
		h.settled = errLost
		return fmt.Errorf("%s: %w", doing, errLost)
	}
	return err
}

// The errors of a settled hold.
var (
	errAlreadyReleased = fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, lockimpl.ErrReleased)
	errLost            = fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, lockimpl.ErrHoldLost)
)

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
