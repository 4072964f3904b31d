package redisson

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"lockstep/lockimpl"
)

// FencedLock is RFencedLock: each grant, a re-entry too, draws the next number of a counter that
// never expires. A resource that refuses numbers smaller than the greatest it has seen is safe from
// a holder that outlives its lease.
type FencedLock interface {
	lockimpl.Lock
	// LockAndGetToken is Lock, and returns the hold's token. Like the library as of 4.7.0, it
	// ignores the lease: the watchdog renews the hold. An interrupt ends each call that returns a
	// token, at every stage; a grant that comes later is given back.
	LockAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) (token int64, err error)
	// TryLockAndGetToken returns the hold's token. Like the library as of 4.7.0, it waits without
	// bound: ok is false only with an error.
	TryLockAndGetToken(ctx context.Context, o lockimpl.Owner) (token int64, ok bool, err error)
	// TryLockTimedAndGetToken is TryLockTimed, and returns the hold's token. ok is false if the
	// time is up.
	TryLockTimedAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (token int64, ok bool, err error)
	// Token is the newest token drawn, 0 when there is none.
	Token(ctx context.Context) (int64, error)
}

type fencedLock struct{ *lock }

func (l fencedLock) LockAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) (int64, error) {
	if err := lockimpl.CheckLease(opt.Lease); err != nil && !l.c.unchecked {
		return 0, err
	}
	got, err := l.tokenWithin(ctx, "lock", o, 0, endlessWait)
	return got.token, err
}

func (l fencedLock) TryLockAndGetToken(ctx context.Context, o lockimpl.Owner) (int64, bool, error) {
	return tokenOf(l.tokenWithin(ctx, "try lock", o, 0, endlessWait))
}

func (l fencedLock) TryLockTimedAndGetToken(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (int64, bool, error) {
	if err := lockimpl.CheckTry(opt); err != nil && !l.c.unchecked {
		return 0, false, err
	}
	wait := opt.Wait
	if wait < 0 {
		wait = endlessWait
	}
	return tokenOf(l.tokenWithin(ctx, "try lock", o, opt.Lease, wait))
}

func tokenOf(got answer, err error) (int64, bool, error) {
	if err != nil || !got.granted {
		return 0, false, err
	}
	return got.token, true, nil
}

// endlessWait is the wait of a call that names none.
const endlessWait time.Duration = math.MaxInt64

// tokenWithin is tryLockAndGetTokenAsync and the wait for its result. An interrupt ends the wait at
// every stage. The attempt then goes on in the background: it gives back a grant, or stays
// subscribed until it is woken.
func (l fencedLock) tokenWithin(ctx context.Context, verb string, o lockimpl.Owner, lease, wait time.Duration) (got answer, err error) {
	type result struct {
		got answer
		err error
	}
	var abandoned atomic.Bool
	done := make(chan result, 1)
	doing := l.acquisition(verb, o)
	defer func() { l.ended(ctx, doing, got, err) }()
	background := context.WithoutCancel(ctx)
	go func() {
		got, err := l.awaitToken(background, doing, o, lease, wait, &abandoned)
		done <- result{got, err}
	}()
	interrupted := func() (answer, error) {
		abandoned.Store(true)
		return answer{}, fmt.Errorf("%s: %w: %w", doing, lockimpl.ErrUnknownOutcome, context.Cause(ctx))
	}
	if ctx.Err() != nil {
		return interrupted()
	}
	select {
	case r := <-done:
		return r.got, r.err
	case <-ctx.Done():
		return interrupted()
	}
}

func (l fencedLock) awaitToken(ctx context.Context, doing *acquisition, o lockimpl.Owner, lease, wait time.Duration, abandoned *atomic.Bool) (answer, error) {
	left := wait
	before := l.c.nowMillis()
	spend := func() bool {
		now := l.c.nowMillis()
		if wait != endlessWait {
			left -= time.Duration(now-before) * time.Millisecond
		}
		before = now
		return left > 0
	}
	attempt := func() (answer, error) {
		got, err := l.attempt(ctx, doing, l.c.rel.Fenced.AcquireToken, o, 0, lease)
		if got.granted && abandoned.Load() {
			_, _ = l.Unlock(ctx, o) // nobody waits for it
		}
		return got, err
	}
	got, err := attempt()
	if got.granted || err != nil || !spend() {
		return got, err
	}
	entry, _ := l.c.channels.subscribe(ctx, l.channel(o))
	defer l.c.channels.unsubscribe(entry)
	if err := l.c.acknowledged(ctx, entry, left); err != nil {
		return answer{}, fmt.Errorf("%s: %w", doing, err)
	}
	for spend() && !abandoned.Load() {
		got, err := attempt()
		if got.granted || err != nil {
			return got, err
		}
		if !spend() {
			break
		}
		if !l.c.hear(entry, min(got.ttl, left)) {
			return answer{}, fmt.Errorf("%s: %w", doing, lockimpl.ErrClosed)
		}
	}
	return answer{}, nil
}

func (l fencedLock) Token(ctx context.Context) (int64, error) {
	return l.readNumber(ctx, "GET", TokenName(l.name))
}
