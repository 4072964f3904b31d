package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// lock is one RLock object. What it keeps, the lease field, is why it matters
// how many objects there are of one name.
type lock struct {
	c       *Client
	name    string
	scripts lockScripts

	mu sync.Mutex
	// leaseField is internalLockLeaseTime: sent by attempts without a lease
	// and by every unlock, overwritten by a successful attempt with one.
	leaseField time.Duration
}

// lockScripts is where the plain and the fair lock differ.
type lockScripts interface {
	// acquire is one attempt; wait is what the queue hears of it (0: none).
	acquire(ctx context.Context, o lockimpl.Owner, wait, lease time.Duration, done func(reply)) <-chan reply
	// tryAcquire is the attempt that never queues.
	tryAcquire(ctx context.Context, o lockimpl.Owner, lease time.Duration, done func(reply)) <-chan reply
	// leave gives up a place in the queue.
	leave(ctx context.Context, o lockimpl.Owner, wait time.Duration) error
	unlock(ctx context.Context, o lockimpl.Owner, request string, latch, lease time.Duration, done func(reply)) <-chan reply
	forceUnlock(ctx context.Context) <-chan reply
	// channel is where this owner hears of a release.
	channel(o lockimpl.Owner) string
}

func (l *lock) Name() string { return l.name }

func (l *lock) doing(verb string, o lockimpl.Owner) string {
	return fmt.Sprintf("%s %q as %s", verb, l.name, l.c.owner(o))
}

func (l *lock) field() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaseField
}

func (l *lock) setField(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaseField = d
}

// granted is what the promise of an attempt does when it was answered yes,
// whether or not anybody still waits for it: an interrupted caller leaves a
// renewed hold behind (issues 2714, 4368).
func (l *lock) granted(o lockimpl.Owner, lease time.Duration, acquired func(reply) bool) func(reply) {
	return func(r reply) {
		if r.err != nil || !acquired(r) {
			return
		}
		if lease > 0 {
			l.setField(lease)
			return
		}
		l.c.watchdog.add(l.name, o)
	}
}

func isNil(r reply) bool { return r.val == nil }

// attempt is tryAcquire: granted, or the time in which to ask again.
func (l *lock) attempt(ctx context.Context, o lockimpl.Owner, wait, lease time.Duration) (granted bool, ttl time.Duration, err error) {
	sent := lease
	if sent == 0 {
		sent = l.field()
	}
	r, err := await(ctx, l.doing("lock", o), l.scripts.acquire(ctx, o, wait, sent, l.granted(o, lease, isNil)))
	if err != nil {
		return false, 0, err
	}
	ms, late := r.long()
	return !late, time.Duration(ms) * time.Millisecond, nil
}

func (l *lock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	if err := lockimpl.CheckLease(opt.Lease); err != nil {
		return err
	}
	ok, _, err := l.attempt(ctx, o, 0, opt.Lease)
	if ok || err != nil {
		return err
	}
	entry := l.c.channels.subscribe(ctx, l.scripts.channel(o))
	defer l.c.channels.unsubscribe(entry)
	if err := l.c.acknowledged(ctx, entry, SubscriptionTimeout); err != nil {
		return fmt.Errorf("%s: %w", l.doing("lock", o), err)
	}
	for {
		ok, ttl, err := l.attempt(ctx, o, 0, opt.Lease)
		if ok || err != nil {
			return err
		}
		err = l.c.acquire(ctx, entry, ttl)
		if err != nil && !opt.Interruptible && ctx.Err() != nil {
			// lock() swallows the interrupt and waits its time again.
			ctx = context.WithoutCancel(ctx)
			err = l.c.acquire(ctx, entry, ttl)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.doing("lock", o), err)
		}
	}
}

func (l *lock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	r, err := await(ctx, l.doing("try lock", o), l.scripts.tryAcquire(ctx, o, l.field(), l.granted(o, 0, isNil)))
	return err == nil && isNil(r), err
}

func (l *lock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if err := lockimpl.CheckTry(opt); err != nil {
		return false, err
	}
	queueWait := opt.Wait
	if opt.Lease == 0 && opt.Unit > 0 {
		// Without a lease the script hears the number in milliseconds (4743).
		queueWait = opt.Wait / opt.Unit * time.Millisecond
	}
	// Redisson measures the wait on the wall clock.
	left := opt.Wait
	before := l.c.nowMillis()
	spend := func() bool {
		now := l.c.nowMillis()
		left -= time.Duration(now-before) * time.Millisecond
		before = now
		return left > 0
	}
	giveUp := func() (bool, error) { return false, l.scripts.leave(ctx, o, opt.Wait) }

	ok, _, err := l.attempt(ctx, o, queueWait, opt.Lease)
	if ok || err != nil {
		return ok, err
	}
	if !spend() {
		return giveUp()
	}
	entry := l.c.channels.subscribe(ctx, l.scripts.channel(o))
	defer l.c.channels.unsubscribe(entry)
	if err := l.c.acknowledged(ctx, entry, left); err != nil {
		if ctx.Err() != nil || errors.Is(err, lockimpl.ErrClosed) {
			return false, fmt.Errorf("%s: %w", l.doing("try lock", o), err)
		}
		return giveUp()
	}
	if !spend() {
		return giveUp()
	}
	for {
		ok, ttl, err := l.attempt(ctx, o, queueWait, opt.Lease)
		if l.c.rel.FalseOnTimeout && errors.Is(err, errResponseTimeout) {
			return giveUp()
		}
		if ok || err != nil {
			return ok, err
		}
		if !spend() {
			return giveUp()
		}
		limit := left
		if ttl >= 0 {
			limit = min(ttl, left)
		}
		if err := l.c.acquire(ctx, entry, limit); err != nil {
			return false, fmt.Errorf("%s: %w", l.doing("try lock", o), err)
		}
		if !spend() {
			return giveUp()
		}
	}
}

func (l *lock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	request := l.c.env.NewID(o)
	settle := func(r reply) {
		l.c.watchdog.remove(l.name, o)
		if r.err != nil {
			return
		}
		// The latch is deleted behind the caller's back; nobody waits for it.
		l.c.commandAsync(ctx, "DEL", latchName(l.name, request))
		if n, ok := r.long(); !ok || n == 1 {
			l.setField(l.c.watchdogT)
		}
	}
	r, err := await(ctx, l.doing("unlock", o), l.scripts.unlock(ctx, o, request, l.c.latchLife(o), l.field(), settle))
	if err != nil {
		return 0, err
	}
	switch n, ok := r.long(); {
	case !ok:
		return 0, fmt.Errorf("%s: %w", l.doing("unlock", o), lockimpl.ErrNotHeld)
	case n == 0:
		return lockimpl.StillHeld, nil
	default:
		return lockimpl.Released, nil
	}
}

func (l *lock) ForceUnlock(ctx context.Context) (bool, error) {
	l.c.watchdog.drop(l.name)
	r, err := await(ctx, l.doing("force unlock", 0), l.scripts.forceUnlock(ctx))
	n, _ := r.long()
	return n == 1, err
}

func (l *lock) ask(ctx context.Context, args ...any) (int64, error) {
	r, err := await(ctx, fmt.Sprintf("look at %q", l.name), l.c.commandAsync(ctx, args...))
	n, _ := r.long()
	return n, err
}

func (l *lock) IsLocked(ctx context.Context) (bool, error) {
	n, err := l.ask(ctx, "EXISTS", l.name)
	return n == 1, err
}

func (l *lock) IsHeldBy(ctx context.Context, o lockimpl.Owner) (bool, error) {
	n, err := l.ask(ctx, "HEXISTS", l.name, l.c.owner(o))
	return n == 1, err
}

func (l *lock) HoldCount(ctx context.Context, o lockimpl.Owner) (int, error) {
	r, err := await(ctx, fmt.Sprintf("look at %q", l.name), l.c.commandAsync(ctx, "HGET", l.name, l.c.owner(o)))
	if err != nil || r.val == nil {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscan(fmt.Sprint(r.val), &n); err != nil {
		return 0, fmt.Errorf("hold count of %q: %w", l.name, err)
	}
	return n, nil
}

func (l *lock) RemainTimeToLive(ctx context.Context) (time.Duration, error) {
	ms, err := l.ask(ctx, "PTTL", l.name)
	return time.Duration(ms) * time.Millisecond, err
}

// unlockMessage is what a release publishes.
const unlockMessage = 0

// publishCommand is how a release publishes on a single server.
const publishCommand = "PUBLISH"

// plainScripts is RedissonLock.
type plainScripts struct{ l *lock }

func (p plainScripts) acquire(ctx context.Context, o lockimpl.Owner, _, lease time.Duration, done func(reply)) <-chan reply {
	c := p.l.c
	return c.evalAsync(ctx, o, c.rel.Acquire, []string{p.l.name}, []any{lease.Milliseconds(), c.owner(o)}, done)
}

func (p plainScripts) tryAcquire(ctx context.Context, o lockimpl.Owner, lease time.Duration, done func(reply)) <-chan reply {
	return p.acquire(ctx, o, 0, lease, done)
}

func (p plainScripts) leave(context.Context, lockimpl.Owner, time.Duration) error { return nil }

func (p plainScripts) unlock(ctx context.Context, o lockimpl.Owner, request string, latch, lease time.Duration, done func(reply)) <-chan reply {
	c, name := p.l.c, p.l.name
	return c.evalAsync(ctx, o, c.rel.Unlock,
		[]string{name, ChannelName(name), latchName(name, request)},
		[]any{unlockMessage, lease.Milliseconds(), c.owner(o), publishCommand, latch.Milliseconds()}, done)
}

func (p plainScripts) forceUnlock(ctx context.Context) <-chan reply {
	c, name := p.l.c, p.l.name
	return c.evalAsync(ctx, 0, c.rel.ForceUnlock, []string{name, ChannelName(name)}, []any{unlockMessage, publishCommand}, nil)
}

func (p plainScripts) channel(lockimpl.Owner) string { return ChannelName(p.l.name) }

// fairScripts is RedissonFairLock.
type fairScripts struct{ l *lock }

func (f fairScripts) keys() []string {
	return []string{f.l.name, QueueName(f.l.name), DeadlinesName(f.l.name)}
}

// wait is what a waiter is queued and taken out with: its own, or the client's
// default.
func (f fairScripts) wait(wait time.Duration) int64 {
	if wait > 0 {
		return wait.Milliseconds()
	}
	return f.l.c.fairWait.Milliseconds()
}

func (f fairScripts) acquire(ctx context.Context, o lockimpl.Owner, wait, lease time.Duration, done func(reply)) <-chan reply {
	c := f.l.c
	return c.evalAsync(ctx, o, c.rel.FairAcquire, f.keys(),
		[]any{lease.Milliseconds(), c.owner(o), f.wait(wait), c.nowMillis()}, done)
}

func (f fairScripts) tryAcquire(ctx context.Context, o lockimpl.Owner, lease time.Duration, done func(reply)) <-chan reply {
	c := f.l.c
	return c.evalAsync(ctx, o, c.rel.FairTryAcquire, f.keys(),
		[]any{lease.Milliseconds(), c.owner(o), c.nowMillis(), f.wait(0)}, done)
}

func (f fairScripts) leave(ctx context.Context, o lockimpl.Owner, wait time.Duration) error {
	c := f.l.c
	_, err := await(ctx, f.l.doing("leave the queue of", o), c.evalAsync(ctx, o, c.rel.FairLeave,
		f.keys()[1:], []any{c.owner(o), f.wait(wait)}, nil))
	return err
}

func (f fairScripts) unlock(ctx context.Context, o lockimpl.Owner, request string, latch, lease time.Duration, done func(reply)) <-chan reply {
	c, name := f.l.c, f.l.name
	return c.evalAsync(ctx, o, c.rel.FairUnlock,
		append(f.keys(), ChannelName(name), latchName(name, request)),
		[]any{unlockMessage, lease.Milliseconds(), c.owner(o), c.nowMillis(), publishCommand, latch.Milliseconds()}, done)
}

func (f fairScripts) forceUnlock(ctx context.Context) <-chan reply {
	c := f.l.c
	return c.evalAsync(ctx, 0, c.rel.FairForceUnlock, append(f.keys(), ChannelName(f.l.name)),
		[]any{unlockMessage, c.nowMillis(), publishCommand}, nil)
}

func (f fairScripts) channel(o lockimpl.Owner) string { return WaiterChannel(f.l.name, f.l.c.owner(o)) }
