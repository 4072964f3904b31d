package redisson

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// HoldContext gives a context for the work that a lock guards. It ends with
// parent, when the owner has given up its last level (context.Canceled), when
// the client was closed (lockimpl.ErrClosed), and with the cause lockimpl.ErrHoldLost
// when the hold may have ended on the server: a lease counts from the instant
// at which its command was sent, so that the context ends before the key does,
// as far as the two clocks run alike.
//
// It takes a lock of a client with Config.WatchHolds, else it gives ErrInvalid;
// an owner that does not hold it gives ErrNotHeld. Nothing is sent for it, and
// what the release does is not changed by it.
func HoldContext(parent context.Context, l lockimpl.Lock, o lockimpl.Owner) (context.Context, error) {
	var ours *lock
	switch l := l.(type) {
	case *lock:
		ours = l
	case fencedLock:
		ours = l.lock
	}
	if ours == nil || ours.c.holds == nil {
		return nil, fmt.Errorf("%w: lock %q is not of a redisson client that watches holds (Config.WatchHolds)", lockimpl.ErrInvalid, l.Name())
	}
	held := ours.c.holds.find(ours.name, o)
	if held == nil {
		return nil, fmt.Errorf("%s: %w", ours.doing("watch the hold of", o), lockimpl.ErrNotHeld)
	}
	ctx, cancel := context.WithCancelCause(parent)
	context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return ctx, nil
}

// holds are what this client's owners may believe to hold. A nil *holds
// watches nothing.
type holds struct {
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
	until time.Time   // when its lease is over
	timer *time.Timer // that tells so
}

func (h *holds) find(lock string, o lockimpl.Owner) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.open[holdKey{lock, o}]; held != nil {
		return held.ctx
	}
	return nil
}

// granted begins a hold, or enters it again; its lease runs from the instant at
// which it was asked for.
func (h *holds) granted(lock string, o lockimpl.Owner, asked time.Time, lease time.Duration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := holdKey{lock, o}
	held := h.open[key]
	if held == nil {
		held = &hold{}
		held.ctx, held.end = context.WithCancelCause(context.Background())
		held.timer = time.AfterFunc(lease, func() { h.expired(lock, o) })
		h.open[key] = held
	}
	held.runs(asked, lease)
}

// runs sets a new end; holds.mu is held.
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

// unlocked takes the level that an unlock was answered with.
func (h *holds) unlocked(lock string, o lockimpl.Owner, answer UnlockAnswer, asked time.Time, lease time.Duration) {
	switch answer {
	case AnswerReleased:
		h.over(lock, o, context.Canceled)
	case AnswerStillHeld:
		h.renewed(lock, o, asked, lease)
	case AnswerNotHeld:
		h.lost(lock, o)
	case AnswerError: // it may be held still; its lease will tell
	}
}

func (h *holds) lost(lock string, o lockimpl.Owner) { h.over(lock, o, lockimpl.ErrHoldLost) }

func (h *holds) over(lock string, o lockimpl.Owner, cause error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := holdKey{lock, o}
	if held := h.open[key]; held != nil {
		delete(h.open, key)
		held.timer.Stop()
		held.end(cause)
	}
}

// forced ends all of this client's holds of a lock.
func (h *holds) forced(lock string) {
	h.all(lockimpl.ErrHoldLost, func(k holdKey) bool { return k.lock == lock })
}

// closed ends every hold: nothing renews it any more.
func (h *holds) closed() { h.all(lockimpl.ErrClosed, func(holdKey) bool { return true }) }

func (h *holds) all(cause error, of func(holdKey) bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, held := range h.open {
		if of(key) {
			delete(h.open, key)
			held.timer.Stop()
			held.end(cause)
		}
	}
}
