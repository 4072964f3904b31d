package redisson

import (
	"context"

	"lockstep/lockimpl"
)

// FencedLock is RFencedLock: each grant, a re-entry too, draws the next number
// of a counter that never expires. A resource that refuses numbers smaller than
// the greatest it has seen is safe from a holder who outlives its lease.
type FencedLock interface {
	lockimpl.Lock
	// LockAndGetToken is Lock, and gives the hold's token. The library ignores
	// the lease of this call (as of 4.7.0), and so does this: the hold is
	// renewed by the watchdog.
	LockAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) (token int64, err error)
	// TryLockAndGetToken is TryLock, and gives the hold's token; ok is false
	// when the lock is held by another.
	TryLockAndGetToken(ctx context.Context, o lockimpl.Owner) (token int64, ok bool, err error)
	// TryLockTimedAndGetToken is TryLockTimed, and gives the hold's token; ok is
	// false when the time was up.
	TryLockTimedAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (token int64, ok bool, err error)
	// Token is the newest token drawn, 0 when there is none.
	Token(ctx context.Context) (int64, error)
}

type fencedLock struct{ *lock }

func (l fencedLock) tokenScript() Script { return l.c.rel.Fenced.AcquireToken }

func (l fencedLock) LockAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) (int64, error) {
	if err := lockimpl.CheckLease(opt.Lease); err != nil && !l.c.unchecked {
		return 0, err
	}
	opt.Lease = 0
	got, err := l.lock.lock(ctx, l.tokenScript(), o, opt)
	return got.token, err
}

func (l fencedLock) TryLockAndGetToken(ctx context.Context, o lockimpl.Owner) (int64, bool, error) {
	got, err := l.attempt(ctx, l.doing("try lock", o), l.tokenScript(), o, 0, 0)
	return tokenOf(got, err)
}

func (l fencedLock) TryLockTimedAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (int64, bool, error) {
	got, err := l.tryLockTimed(ctx, l.tokenScript(), o, opt)
	return tokenOf(got, err)
}

func tokenOf(got answer, err error) (int64, bool, error) {
	if err != nil || !got.granted {
		return 0, false, err
	}
	return got.token, true, nil
}

func (l fencedLock) Token(ctx context.Context) (int64, error) {
	return l.readNumber(ctx, "GET", TokenName(l.name))
}
