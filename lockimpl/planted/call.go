package planted

import (
	"context"
	"sync"

	"lockstep/lockimpl"
)

// numbered counts the commands of each call, for Command.Attempt.
type numbered struct{ inner }

// inner is the wrapped lock. Its name differs from Lock, which is a method.
type inner interface{ lockimpl.Lock }

// lost returns the channel of a lock that reports the end of a hold, or nil if the lock does not.
func lost(l lockimpl.Lock, o lockimpl.Owner) <-chan struct{} {
	if l, ok := l.(lockimpl.Watched); ok {
		return l.Lost(o)
	}
	return nil
}

type attemptsKey struct{}

type attempts struct {
	mu   sync.Mutex
	sent map[string]int // by script
}

func (a *attempts) next(script string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[script]++
	return a.sent[script]
}

func begin(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, &attempts{sent: map[string]int{}})
}

// Lock implements lockimpl.Lock.
func (l numbered) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	return l.inner.Lock(begin(ctx), o, opt)
}

// TryLock implements lockimpl.Lock.
func (l numbered) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return l.inner.TryLock(begin(ctx), o)
}

// TryLockTimed implements lockimpl.Lock.
func (l numbered) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	return l.inner.TryLockTimed(begin(ctx), o, opt)
}

// Unlock implements lockimpl.Lock.
func (l numbered) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	return l.inner.Unlock(begin(ctx), o)
}

// Lost implements lockimpl.Watched.
func (l numbered) Lost(o lockimpl.Owner) <-chan struct{} { return lost(l.inner, o) }

// altered is a lock with some calls replaced. For a nil field the call stays the lock's own.
type altered struct {
	inner
	lock   func(context.Context, lockimpl.Owner, lockimpl.LockOptions) error
	try    func(context.Context, lockimpl.Owner) (bool, error)
	timed  func(context.Context, lockimpl.Owner, lockimpl.TryOptions) (bool, error)
	unlock func(context.Context, lockimpl.Owner) (lockimpl.Release, error)
}

// Lock implements lockimpl.Lock.
func (l altered) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	if l.lock != nil {
		return l.lock(ctx, o, opt)
	}
	return l.inner.Lock(ctx, o, opt)
}

// TryLock implements lockimpl.Lock.
func (l altered) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	if l.try != nil {
		return l.try(ctx, o)
	}
	return l.inner.TryLock(ctx, o)
}

// TryLockTimed implements lockimpl.Lock.
func (l altered) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if l.timed != nil {
		return l.timed(ctx, o, opt)
	}
	return l.inner.TryLockTimed(ctx, o, opt)
}

// Unlock implements lockimpl.Lock.
func (l altered) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	if l.unlock != nil {
		return l.unlock(ctx, o)
	}
	return l.inner.Unlock(ctx, o)
}

// Lost implements lockimpl.Watched.
func (l altered) Lost(o lockimpl.Owner) <-chan struct{} { return lost(l.inner, o) }
