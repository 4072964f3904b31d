package builtin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// handles is a client whose locks are taken and given up by handles. A thread has one handle on
// each lock, of its last grant.
type handles struct {
	lockimpl.Client
	open func(name string) (byHandles, error)

	mu   sync.Mutex
	held map[holdOf]*handle
}

func newHandles(c lockimpl.Client, open func(name string) (byHandles, error)) *handles {
	return &handles{Client: c, open: open, held: map[holdOf]*handle{}}
}

// byHandles is a lock that is taken by handles.
type byHandles struct {
	lockimpl.Lock
	acquire, try func(ctx context.Context, thread lockimpl.Owner, lease time.Duration) (hold, error)
}

// hold is a handle of package reference or of package handle.
type hold interface {
	Context(parent context.Context) context.Context
	Release(ctx context.Context) error
}

// holdOf names the handle of a thread.
type holdOf struct {
	lock   string
	thread lockimpl.Owner
}

// A handle is the hold of a thread, which uses it alone.
type handle struct {
	hold
	unsettled bool // a Release left its outcome unknown
}

// GetLock implements lockimpl.Client.
func (c *handles) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.open(name)
	if err != nil {
		return nil, err
	}
	return handleLock{l, c}, nil
}

// A handleLock is one lock of a client that works by handles. Its other methods are those of the
// lock, which do not know the owner of a handle.
type handleLock struct {
	byHandles
	c *handles
}

// granted keeps the handle of a thread's grant.
func (l handleLock) granted(o lockimpl.Owner, h hold) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.held[holdOf{l.Name(), o}] = &handle{hold: h}
}

// handle returns the handle of a thread, or nil.
func (l handleLock) handle(o lockimpl.Owner) *handle {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.c.held[holdOf{l.Name(), o}]
}

// Lock implements lockimpl.Lock.
func (l handleLock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	h, err := l.acquire(ctx, o, opt.Lease)
	if err != nil {
		return err
	}
	l.granted(o, h)
	return nil
}

// TryLock implements lockimpl.Lock.
func (l handleLock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return l.tryOnce(ctx, o, 0)
}

// TryLockTimed implements lockimpl.Lock. It turns the wait into a context that ends, as callers of
// Acquire do.
func (l handleLock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if opt.Wait == 0 {
		return l.tryOnce(ctx, o, opt.Lease)
	}
	ctx, cancel := context.WithTimeout(ctx, opt.Wait)
	defer cancel()
	err := l.Lock(ctx, o, lockimpl.LockOptions{Lease: opt.Lease})
	return err == nil, err
}

func (l handleLock) tryOnce(ctx context.Context, o lockimpl.Owner, lease time.Duration) (bool, error) {
	h, err := l.try(ctx, o, lease)
	if errors.Is(err, lockimpl.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.granted(o, h)
	return true, nil
}

// Unlock implements lockimpl.Lock. It releases once more if the outcome of a release is unknown, as a
// careful caller does: the answer to either is the outcome of the call. After an earlier call whose
// outcome stayed unknown, nobody can know which of the calls gave the hold up.
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
	fenced, ok := l.handleOf(o).(interface{ Token() int64 })
	if !ok {
		return 0, lockimpl.ErrNotHeld
	}
	return fenced.Token(), nil
}

// handleOf returns the hold of a thread, or nil.
func (l handleLock) handleOf(o lockimpl.Owner) hold {
	if h := l.handle(o); h != nil {
		return h.hold
	}
	return nil
}
