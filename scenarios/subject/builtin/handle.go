package builtin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lockstep/lockimpl"
	"lockstep/lockimpl/reference"
)

// handles is a client whose locks are taken and given up by handles. A thread has one handle on
// each lock, of its last grant.
type handles struct {
	*reference.Client
	fair bool

	mu   sync.Mutex
	held map[holdOf]*handle
}

// holdOf names the handle of a thread.
type holdOf struct {
	lock   string
	thread lockimpl.Owner
}

// A handle is the hold of a thread, which uses it alone.
type handle struct {
	*reference.Hold
	unsettled bool // a Release left its outcome unknown
}

// GetLock implements lockimpl.Client.
func (c *handles) GetLock(name string) (lockimpl.Lock, error) {
	open := c.NewLock
	if c.fair {
		open = c.NewFairLock
	}
	l, err := open(name)
	if err != nil {
		return nil, err
	}
	return handleLock{l, l, c}, nil
}

// A handleLock is one lock of a client that works by handles. Its other methods are those of the
// lock, to which a handle is no owner that has a number.
type handleLock struct {
	held
	l *reference.Lock
	c *handles
}

// granted keeps the handle of a thread's grant.
func (l handleLock) granted(o lockimpl.Owner, h *reference.Hold) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.held[holdOf{l.Name(), o}] = &handle{Hold: h}
}

// handle returns the handle of a thread, or nil.
func (l handleLock) handle(o lockimpl.Owner) *handle {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.c.held[holdOf{l.Name(), o}]
}

// Lock implements lockimpl.Lock.
func (l handleLock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	h, err := l.l.Acquire(ctx, reference.WithLease(opt.Lease))
	if err != nil {
		return err
	}
	l.granted(o, h)
	return nil
}

// TryLock implements lockimpl.Lock.
func (l handleLock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return l.try(ctx, o, lockimpl.TryOptions{})
}

// TryLockTimed implements lockimpl.Lock. A wait is a context that ends, as callers of Acquire bound it.
func (l handleLock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if opt.Wait == 0 {
		return l.try(ctx, o, opt)
	}
	ctx, cancel := context.WithTimeout(ctx, opt.Wait)
	defer cancel()
	err := l.Lock(ctx, o, lockimpl.LockOptions{Lease: opt.Lease})
	return err == nil, err
}

func (l handleLock) try(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	h, err := l.l.TryAcquire(ctx, reference.WithLease(opt.Lease))
	if errors.Is(err, reference.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.granted(o, h)
	return true, nil
}

// Unlock implements lockimpl.Lock. It releases once more if the outcome of a release is unknown, as
// a careful caller does: the answer to either is the outcome of the call. After an earlier call whose
// outcome stayed unknown nobody can tell which of the calls gave the hold up.
func (l handleLock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	h := l.handle(o)
	if h == nil {
		return 0, fmt.Errorf("%w: the thread has no handle", lockimpl.ErrNotHeld)
	}
	err := h.Release(ctx)
	if errors.Is(err, lockimpl.ErrUnknownOutcome) && ctx.Err() == nil {
		err = h.Release(ctx)
	}
	switch {
	case errors.Is(err, lockimpl.ErrUnknownOutcome):
		h.unsettled = true
	case err == nil && h.unsettled:
		h.unsettled = false
		return 0, fmt.Errorf("%w: given up by this call or by one before", lockimpl.ErrUnknownOutcome)
	}
	return lockimpl.Released, err
}

// Lost implements lockimpl.Watched. Only the loss of the hold counts.
func (l handleLock) Lost(o lockimpl.Owner) <-chan struct{} {
	return lossOf(l.handle(o).Context(context.Background()))
}

// Token is the fencing token of a thread's hold, for Subject.Token.
func (l handleLock) Token(o lockimpl.Owner) (int64, error) {
	h := l.handle(o)
	if h == nil {
		return 0, lockimpl.ErrNotHeld
	}
	return h.Token(), nil
}
