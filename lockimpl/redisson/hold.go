package redisson

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// HoldContext returns a context for the work that a lock guards. It ends with parent, when the owner
// has given up its last level (context.Canceled), when the client was closed (lockimpl.ErrClosed), and
// with the cause lockimpl.ErrHoldLost when the hold may have ended on the server. A lease counts from
// the instant at which its command was sent, so the context ends before the key does, as far as the
// two clocks run alike.
//
// The lock must belong to a client with Config.WatchHolds or Config.Observer, else the error is
// ErrInvalid. If the owner does not hold the lock, the error is ErrNotHeld. HoldContext sends nothing,
// and does not change what the release does.
func HoldContext(parent context.Context, l lockimpl.Lock, o lockimpl.Owner) (context.Context, error) {
	switch l := l.(type) {
	case *lock:
		return l.HoldContext(parent, o)
	case fencedLock:
		return l.HoldContext(parent, o)
	}
	return nil, notWatched(l.Name())
}

// HoldContext implements lockimpl.Handled.
func (l *lock) HoldContext(parent context.Context, o lockimpl.Owner) (context.Context, error) {
	if l.c.holds == nil {
		return nil, notWatched(l.name)
	}
	held := l.c.holds.find(l.name, o)
	if held == nil {
		return nil, fmt.Errorf("%s: %w", l.doing("watch the hold of", o), lockimpl.ErrNotHeld)
	}
	ctx, cancel := context.WithCancelCause(parent)
	context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return ctx, nil
}

func notWatched(lock string) error {
	return fmt.Errorf("%w: lock %q is not of a redisson client that watches holds (Config.WatchHolds)", lockimpl.ErrInvalid, lock)
}

// NewOwner implements lockimpl.Handled.
func (l *lock) NewOwner() lockimpl.Owner { return lockimpl.Owner(-l.c.owners.Add(1)) }

// Abandon implements lockimpl.Handled. An attempt that is under way gives its grant back, as an interrupted
// call of FencedLock does. If the unlock fails, nothing renews the hold any more, and it ends with its lease.
// On a fair lock the owner leaves the queue.
func (l *lock) Abandon(ctx context.Context, o lockimpl.Owner) {
	ctx = context.WithoutCancel(ctx)
	l.c.asking.abandon(o)
	if l.fair() {
		l.eval(ctx, *l.leave, operands{owner: o}, nil)
	}
	go l.giveBack(ctx, o)
}

// giveBack unlocks for an owner that nobody uses any more.
func (l *lock) giveBack(ctx context.Context, o lockimpl.Owner) {
	if _, err := l.Unlock(ctx, o); err != nil && l.c.holds.find(l.name, o) != nil {
		l.c.watchdog.remove(l, o)
		l.c.holds.lost(l.name, o)
	}
}

// asking has the owners of NewOwner whose attempts are under way, and whether each was abandoned.
type asking struct {
	mu     sync.Mutex
	owners map[lockimpl.Owner]bool
}

// begin notes that an attempt is sent.
func (a *asking) begin(o lockimpl.Owner) {
	if o >= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owners == nil {
		a.owners = map[lockimpl.Owner]bool{}
	}
	a.owners[o] = false
}

// abandon notes that nobody waits for the attempt any more, if one is under way.
func (a *asking) abandon(o lockimpl.Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.owners[o]; ok {
		a.owners[o] = true
	}
}

// end notes that an attempt was answered, and reports whether its owner was abandoned.
func (a *asking) end(o lockimpl.Owner) (abandoned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	abandoned = a.owners[o]
	delete(a.owners, o)
	return abandoned
}

// holds has the holds that this client's owners may believe in. A nil *holds watches nothing.
type holds struct {
	observer lockimpl.Observer

	mu   sync.Mutex
	open map[holdKey]*hold
}

type holdKey struct {
	lock  string
	owner lockimpl.Owner
}

type hold struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	since time.Time   // when the answer with the grant came
	until time.Time   // when its lease is over
	timer *time.Timer // fires at until
}

func (h *holds) find(lock string, o lockimpl.Owner) context.Context {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.open[holdKey{lock, o}]; held != nil {
		return held.ctx
	}
	return nil
}

// granted begins a hold, or enters it again; its lease counts from the instant asked, when the
// attempt was sent.
func (h *holds) granted(lock string, o lockimpl.Owner, asked time.Time, lease time.Duration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := holdKey{lock, o}
	held := h.open[key]
	if held == nil {
		held = &hold{since: time.Now()}
		held.ctx, held.end = context.WithCancelCause(context.Background())
		held.timer = time.AfterFunc(lease, func() { h.expired(lock, o) })
		h.open[key] = held
	}
	held.runs(asked, lease)
}

// runs sets a new end. The caller holds holds.mu.
func (held *hold) runs(asked time.Time, lease time.Duration) {
	held.until = asked.Add(lease)
	held.timer.Reset(time.Until(held.until))
}

// expired ends a hold whose lease is over, unless it was renewed while the
// timer fired.
func (h *holds) expired(lock string, o lockimpl.Owner) {
	h.mu.Lock()
	held := h.open[holdKey{lock, o}]
	over := held != nil && !time.Now().Before(held.until)
	h.mu.Unlock()
	if over {
		h.lost(lock, o)
	}
}

// renewed starts a lease anew.
func (h *holds) renewed(lock string, o lockimpl.Owner, asked time.Time, lease time.Duration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.open[holdKey{lock, o}]; held != nil {
		held.runs(asked, lease)
	}
}

// unlocked takes a level after an unlock, as its answer says.
func (h *holds) unlocked(lock string, o lockimpl.Owner, answer UnlockAnswer, asked time.Time, lease time.Duration) {
	switch answer {
	case AnswerReleased:
		h.endOne(lock, o, context.Canceled)
	case AnswerStillHeld:
		h.renewed(lock, o, asked, lease)
	case AnswerNotHeld:
		h.lost(lock, o)
	case AnswerError: // it may still be held; its lease decides
	}
}

func (h *holds) lost(lock string, o lockimpl.Owner) { h.endOne(lock, o, lockimpl.ErrHoldLost) }

func (h *holds) endOne(lock string, o lockimpl.Owner, cause error) {
	h.end(cause, func(k holdKey) bool { return k == holdKey{lock, o} })
}

// forced ends all of this client's holds of a lock.
func (h *holds) forced(lock string) {
	h.end(lockimpl.ErrHoldLost, func(k holdKey) bool { return k.lock == lock })
}

// closed ends every hold: nothing renews it any more.
func (h *holds) closed() { h.end(lockimpl.ErrClosed, func(holdKey) bool { return true }) }

// end ends the holds of the matching keys, and tells the observer in the order of the keys.
func (h *holds) end(cause error, matches func(holdKey) bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	var ended []lockimpl.HoldEnded
	for _, key := range slices.SortedFunc(maps.Keys(h.open), compareKeys) {
		if !matches(key) {
			continue
		}
		held := h.open[key]
		delete(h.open, key)
		held.timer.Stop()
		held.end(cause)
		ended = append(ended, lockimpl.HoldEnded{Lock: key.lock, Outcome: lockimpl.EndOf(cause), Held: time.Since(held.since)})
	}
	h.mu.Unlock()
	for _, e := range ended {
		h.observer.HoldEnded(e)
	}
}

func compareKeys(a, b holdKey) int {
	return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.owner, b.owner))
}
