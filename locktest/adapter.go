package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// adapter lets the engine drive the Client of a subject. The engine's clients have several
// threads that use one lock. adapter gives each thread a handle of its own.
type adapter struct {
	opened chan struct{} // closed when Open is over
	client Client
	err    error // of Open
	// silent is told of a hold whose Lost returned nil.
	silent func()
	// panicked says that Open panicked; "": it did not.
	panicked string

	mu      sync.Mutex // held for moments only
	handles map[handleKey]Lock
	closed  bool
}

type handleKey struct {
	name  string
	owner lockimpl.Owner
}

// GetLock implements lockimpl.Client.
func (a *adapter) GetLock(name string) (lockimpl.Lock, error) { return &lock{a, name}, nil }

// Close implements lockimpl.Client.
func (a *adapter) Close() error {
	a.mu.Lock()
	again := a.closed
	a.closed = true
	a.mu.Unlock()
	if again || a.client == nil {
		return nil
	}
	return a.client.Close()
}

// errNotOpen says that the client of the subject is not open: Open failed, or has not returned.
var errNotOpen = errors.New("the client is not open")

// handle returns the handle of a thread on a lock. It waits for the client, and the error
// wraps errNotOpen if there is none. It panics if Open did.
func (a *adapter) handle(ctx context.Context, name string, o lockimpl.Owner) (Lock, error) {
	select {
	case <-a.opened:
	default:
		select {
		case <-a.opened:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errNotOpen, ctx.Err())
		}
	}
	if a.panicked != "" {
		panic(a.panicked)
	}
	if a.err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOpen, a.err)
	}
	if h := a.known(name, o); h != nil {
		return h, nil
	}
	h, err := a.client.Lock(name)
	if err != nil {
		return nil, fmt.Errorf("the client gives no lock %q: %w", name, err)
	}
	if h == nil {
		return nil, fmt.Errorf("the client gives neither a lock %q nor an error", name)
	}
	a.mu.Lock()
	a.handles[handleKey{name, o}] = h
	a.mu.Unlock()
	return h, nil
}

// known returns the handle that a thread has on a lock; nil if it has none yet.
func (a *adapter) known(name string, o lockimpl.Owner) Lock {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handles[handleKey{name, o}]
}

// lock is one name on an adapter.
type lock struct {
	a    *adapter
	name string
}

// Name implements lockimpl.Lock.
func (l *lock) Name() string { return l.name }

// TryLock implements lockimpl.Lock.
func (l *lock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	h, err := l.a.handle(ctx, l.name, o)
	if err != nil {
		return false, unopened(err)
	}
	try, ok := h.(TryLocker)
	if !ok {
		return false, fmt.Errorf("%w: the lock has no TryLock", lockimpl.ErrInvalid)
	}
	granted, err := try.TryLock(ctx)
	if errors.Is(err, ErrBusy) {
		return false, nil
	}
	return granted && err == nil, outcome(err)
}

// TryLockTimed implements lockimpl.Lock by a Lock whose context ends with the wait.
func (l *lock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, opt.Wait)
	defer cancel()
	h, err := l.a.handle(ctx, l.name, o)
	if err != nil {
		return false, unopened(err)
	}
	err = h.Lock(ctx)
	if errors.Is(err, ErrBusy) {
		return false, nil
	}
	return err == nil, outcome(err)
}

// Lock implements lockimpl.Lock.
func (l *lock) Lock(ctx context.Context, o lockimpl.Owner, _ lockimpl.LockOptions) error {
	h, err := l.a.handle(ctx, l.name, o)
	if err != nil {
		return unopened(err)
	}
	return outcome(h.Lock(ctx))
}

// Unlock implements lockimpl.Lock.
func (l *lock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	h, err := l.a.handle(ctx, l.name, o)
	if errors.Is(err, errNotOpen) {
		return lockimpl.Released, fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, err)
	}
	if err != nil {
		return lockimpl.Released, err
	}
	return lockimpl.Released, outcome(h.Unlock(ctx))
}

// Extend implements lockimpl.Extender.
func (l *lock) Extend(ctx context.Context, o lockimpl.Owner) error {
	h, err := l.a.handle(ctx, l.name, o)
	if errors.Is(err, errNotOpen) {
		return fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, err)
	}
	if err != nil {
		return err
	}
	extender, ok := h.(Extender)
	if !ok {
		return fmt.Errorf("%w: the lock has no Extend", lockimpl.ErrInvalid)
	}
	err = extender.Extend(ctx)
	if errors.Is(err, ErrBusy) {
		return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
	}
	return outcome(err)
}

// Lost implements lockimpl.Watched.
func (l *lock) Lost(o lockimpl.Owner) <-chan struct{} {
	h, ok := l.a.known(l.name, o).(Watched)
	if !ok {
		return nil
	}
	lost := h.Lost()
	if lost == nil {
		l.a.silent()
	}
	return lost
}

// Token implements lockimpl.Fenced.
func (l *lock) Token(o lockimpl.Owner) (uint64, bool) {
	if h, ok := l.a.known(l.name, o).(Fenced); ok {
		return h.Token()
	}
	return 0, false
}

// ForceUnlock implements lockimpl.Lock.
func (l *lock) ForceUnlock(context.Context) (bool, error) {
	return false, fmt.Errorf("%w: the lock cannot be unlocked by force", lockimpl.ErrInvalid)
}

// unopened translates an error of handle for an acquire.
func unopened(err error) error {
	if errors.Is(err, errNotOpen) {
		return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
	}
	return err
}

// outcome translates an error of a Lock. An error that says nothing else leaves the
// outcome unknown.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBusy): // a Lock that gave up: surely nothing is left behind
		return err
	case errors.Is(err, ErrNotHeld):
		return fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, err)
	}
	return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
}

var errNotAsked = fmt.Errorf("%w: a locktest.Lock does not say", lockimpl.ErrInvalid)

// IsLocked implements lockimpl.Lock.
func (l *lock) IsLocked(context.Context) (bool, error) { return false, errNotAsked }

// IsHeldBy implements lockimpl.Lock.
func (l *lock) IsHeldBy(context.Context, lockimpl.Owner) (bool, error) { return false, errNotAsked }

// HoldCount implements lockimpl.Lock.
func (l *lock) HoldCount(context.Context, lockimpl.Owner) (int, error) { return 0, errNotAsked }

// RemainTimeToLive implements lockimpl.Lock.
func (l *lock) RemainTimeToLive(context.Context) (time.Duration, error) { return 0, errNotAsked }
