package reference

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// holds has the holds that were granted to this client's owners and not given up.
type holds struct {
	client *Client
	mu     sync.Mutex
	open   map[holdKey]*hold
	ended  []lockimpl.HoldEnded // since mu was locked; reported when it is unlocked
}

type holdKey struct {
	lock  string
	owner string // as the server knows it
}

// hold is one grant, with its re-entries. holds.mu guards the fields that change.
type hold struct {
	key   holdKey
	owner owner
	token int64
	since time.Time // when the answer with the grant came

	levels []level         // innermost last
	until  time.Time       // when it may be over, by the process's own clock
	alarm  *time.Timer     // goes off then
	ctx    context.Context // ends at until, or with the hold
	end    context.CancelCauseFunc
	stop   context.CancelFunc // of the renewals; nil: there are none
}

// level is the grant of a hold, or one re-entry.
type level struct {
	renewed bool
	// The end of its lease, unless it is renewed: by the process's own clock, and in ms of the
	// server's clock.
	until time.Time
	ends  int64
}

func renewed(l level) bool { return l.renewed }

// granted notes a level of a hold. The server keeps the hold at least for its time to live, counted
// from the instant asked.
func (h *holds) granted(key holdKey, o owner, lease time.Duration, got answer, asked time.Time) *hold {
	h.mu.Lock()
	defer h.unlockAndTell()
	held := h.open[key]
	if held != nil && held.token != got.token {
		h.forget(held, lockimpl.ErrHoldLost) // the old hold was lost without notice, and this is a new one
		held = nil
	}
	if held == nil {
		held = &hold{key: key, owner: o, token: got.token, since: time.Now()}
		held.ctx, held.end = context.WithCancelCause(context.Background())
		held.alarm = time.AfterFunc(got.ttl, func() { h.expired(held) })
		h.open[key] = held
	}
	held.levels = append(held.levels, level{lease == 0, asked.Add(lease), got.now + lease.Milliseconds()})
	if until := asked.Add(got.ttl); until.After(held.until) {
		held.lastsUntil(until)
	}
	h.renewals(held)
	return held
}

func (held *hold) lastsUntil(t time.Time) {
	held.until = t
	held.alarm.Reset(time.Until(t))
}

// ends returns the server's millisecond in which the last of the levels ends.
func (h *holds) ends(levels []level) (ms int64) {
	now, _ := h.client.clock.now()
	for _, l := range levels {
		if l.renewed {
			l.ends = now + h.client.watchdog.Milliseconds()
		}
		ms = max(ms, l.ends)
	}
	return ms
}

// renewals starts or stops the renewals, as the levels need. The caller holds holds.mu.
func (h *holds) renewals(held *hold) {
	wanted := slices.ContainsFunc(held.levels, renewed)
	switch {
	case wanted && held.stop == nil:
		var ctx context.Context
		ctx, held.stop = context.WithCancel(h.client.closing)
		go h.renew(ctx, held, time.Until(held.until)-h.client.watchdog*2/3)
	case !wanted && held.stop != nil:
		held.stop()
		held.stop = nil
	}
}

// renew keeps a hold alive until it is given up or the server says that it is lost: neither an
// error nor a lease that may have run out ends the renewals.
func (h *holds) renew(ctx context.Context, held *hold, pause time.Duration) {
	c := h.client
	for failed := 0; c.sleep(ctx, pause) == nil; {
		asked := time.Now()
		kept, err := c.run(ctx, plainScripts.renew.Run, []string{held.key.lock}, held.key.owner, held.token, c.watchdog.Milliseconds())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.observer.RenewalEnded(lockimpl.RenewalEnded{Lock: held.key.lock, Outcome: lockimpl.RenewalFailed})
			c.log.Warn("a renewal failed", "lock", held.key.lock, "owner", held.key.owner, "err", err)
			pause = c.backoff(held.owner, failed, retryMax)
			failed++
		case kept == int64(0):
			c.observer.RenewalEnded(lockimpl.RenewalEnded{Lock: held.key.lock, Outcome: lockimpl.RenewalGone})
			h.lost(held)
			return
		default:
			c.observer.RenewalEnded(lockimpl.RenewalEnded{Lock: held.key.lock, Outcome: lockimpl.RenewalRenewed})
			h.renewed(held, asked.Add(c.watchdog))
			pause, failed = time.Until(asked.Add(c.watchdog/3)), 0
		}
	}
}

func (h *holds) renewed(held *hold, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[held.key] == held && until.After(held.until) {
		held.lastsUntil(until)
	}
}

func (h *holds) lost(held *hold) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.open[held.key] == held {
		h.forget(held, lockimpl.ErrHoldLost)
	}
}

// expired tells the holder that its hold may be over; renewals go on.
func (h *holds) expired(held *hold) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.open[held.key] != held || time.Now().Before(held.until) {
		return // given up, or renewed while the alarm went off
	}
	h.endHold(held, lockimpl.ErrHoldLost)
}

func (h *holds) endHold(held *hold, cause error) {
	if held.ctx.Err() == nil {
		e := lockimpl.HoldEnded{Lock: held.key.lock, Outcome: lockimpl.EndOf(cause), Held: time.Since(held.since)}
		if e.Outcome == lockimpl.HoldLost {
			h.client.log.Error("a hold is lost", "lock", held.key.lock, "owner", held.key.owner)
		}
		h.ended = append(h.ended, e)
	}
	held.end(cause)
}

// unlockAndTell unlocks mu, and reports the holds that have ended meanwhile.
func (h *holds) unlockAndTell() {
	ended := h.ended
	h.ended = nil
	h.mu.Unlock()
	for _, e := range ended {
		h.client.observer.HoldEnded(e)
	}
}

// forget forgets a hold. The caller holds holds.mu.
func (h *holds) forget(held *hold, cause error) {
	delete(h.open, held.key)
	held.alarm.Stop()
	if held.stop != nil {
		held.stop()
	}
	h.endHold(held, cause)
}

// releasing returns the server's millisecond until which the remaining levels need the hold once
// the innermost one is given up, 0 if there are none. Renewals that no remaining level needs stop
// here, since none must be sent after the release.
func (h *holds) releasing(key holdKey) (ends int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.open[key]
	if held == nil {
		return 0
	}
	left := held.levels[:len(held.levels)-1]
	if held.stop != nil && !slices.ContainsFunc(left, renewed) {
		held.stop()
		held.stop = nil
	}
	return h.ends(left)
}

// released takes the innermost level, or all of them. believed reports whether the holder had
// reason to believe that it held the lock.
func (h *holds) released(key holdKey, all bool, cause error) (believed bool) {
	h.mu.Lock()
	defer h.unlockAndTell()
	held := h.open[key]
	if held == nil {
		return false
	}
	believed = time.Now().Before(held.until)
	held.levels = held.levels[:len(held.levels)-1]
	if all || len(held.levels) == 0 {
		h.forget(held, cause)
		return believed
	}
	h.renewals(held)
	if !slices.ContainsFunc(held.levels, renewed) {
		held.lastsUntil(slices.MaxFunc(held.levels, func(a, b level) int { return a.until.Compare(b.until) }).until)
	}
	return believed
}

// forced ends this client's holds of a lock with a token up to last. A hold that was granted since
// stays, however late the client learns of the forced unlock.
func (h *holds) forced(lock string, last int64) {
	h.all(lockimpl.ErrHoldLost, func(held *hold) bool { return held.key.lock == lock && held.token <= last })
}

func (h *holds) closeAll() { h.all(lockimpl.ErrClosed, func(*hold) bool { return true }) }

func (h *holds) all(cause error, of func(*hold) bool) {
	h.mu.Lock()
	defer h.unlockAndTell()
	var ends []*hold
	for _, held := range h.open {
		if of(held) {
			ends = append(ends, held)
		}
	}
	slices.SortFunc(ends, func(a, b *hold) int {
		return cmp.Or(strings.Compare(a.key.lock, b.key.lock), strings.Compare(a.key.owner, b.key.owner))
	})
	for _, held := range ends {
		h.forget(held, cause)
	}
}

// believes reports whether the holder has reason to believe that the server keeps the hold.
func (h *holds) believes(held *hold) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(held.until)
}

func (h *holds) find(key holdKey) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[key]
}

// HoldContext returns a context for the work that the lock guards. It ends with parent, when the owner
// has given up its last level (context.Canceled), when the client was closed (lockimpl.ErrClosed), and
// with the cause lockimpl.ErrHoldLost as soon as the hold may have ended on the server. The lease
// counts from the instant at which the command was sent, so the context ends before the hold does, as
// far as the two clocks run alike. The error is ErrNotHeld if the owner does not hold the lock.
// HoldContext sends nothing.
func (l *Lock) HoldContext(parent context.Context, o lockimpl.Owner) (context.Context, error) {
	held := l.c.holds.find(holdKey{l.name, l.c.owner(o).name})
	if held == nil {
		return nil, fmt.Errorf("%s: %w", l.doing("watch the hold of", o), lockimpl.ErrNotHeld)
	}
	return held.context(parent), nil
}

// context returns a context that ends with parent and with the hold.
func (held *hold) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	if held.ctx.Err() != nil {
		cancel(context.Cause(held.ctx))
		return ctx
	}
	stop := context.AfterFunc(held.ctx, func() { cancel(context.Cause(held.ctx)) })
	context.AfterFunc(ctx, func() { stop() }) // a hold may outlive many parents
	return ctx
}

// Token is the fencing token of the owner's hold: greater than the token of every earlier hold of
// this lock, whoever had it. A resource that refuses tokens smaller than the greatest it has seen
// is safe from a holder that outlives its lease. The error is ErrNotHeld if the owner does not hold
// the lock. Token sends nothing.
//
// The server counts tokens, and takes them from its clock if the count is lost. So they go on
// growing unless both the count and the clock are set back.
func (l *Lock) Token(o lockimpl.Owner) (int64, error) {
	held := l.c.holds.find(holdKey{l.name, l.c.owner(o).name})
	if held == nil {
		return 0, fmt.Errorf("%s: %w", l.doing("see the token of", o), lockimpl.ErrNotHeld)
	}
	return held.token, nil
}
