package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

// Lock is a lock of one name; locks of one name and client share their holds. It implements
// lockimpl.Lock. The end of its context ends every call. The call still waits for the answer to a
// command that it has sent, for one second at most.
type Lock struct {
	c       *Client
	name    string
	scripts *scripts
}

// Name implements lockimpl.Lock.
func (l *Lock) Name() string { return l.name }

func (l *Lock) fair() bool { return l.scripts == fairScripts }

func (l *Lock) doing(verb string, o lockimpl.Owner) string {
	return fmt.Sprintf("%s %q (owner %d)", verb, l.name, o)
}

// request makes the next request of an owner; third is the key between the owner's and the queue's.
func (l *Lock) request(s script, o owner, third string, args ...any) *request {
	r := &request{c: l.c, script: s, owner: o, number: l.c.requests.Add(1), valid: valid, args: args}
	r.keys = []string{l.name, MemoryName(l.name, o.name), third}
	if l.fair() {
		r.keys = append(r.keys, QueueName(l.name), DeadlinesName(l.name))
	}
	return r
}

// Lock implements lockimpl.Lock. It is always interruptible. When ctx ends it returns the error of
// ctx, with ErrUnknownOutcome if the owner may still hold the lock until the lease or the watchdog
// timeout has passed. It returns the server's error if the server refuses the request.
func (l *Lock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	if err := lockimpl.CheckLease(opt.Lease); err != nil {
		return err
	}
	_, err := l.acquire(ctx, l.doing("lock", o), l.c.owner(o), opt.Lease, -1)
	return err
}

// TryLock implements lockimpl.Lock.
func (l *Lock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	held, err := l.acquire(ctx, l.doing("lock", o), l.c.owner(o), 0, 0)
	return held != nil, err
}

// TryLockTimed implements lockimpl.Lock.
func (l *Lock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if err := lockimpl.CheckTry(opt); err != nil {
		return false, err
	}
	held, err := l.acquire(ctx, l.doing("lock", o), l.c.owner(o), opt.Lease, opt.Wait)
	return held != nil, err
}

// acquisition is an acquire under way.
type acquisition struct {
	*request
	l     *Lock
	call  int64         // the number of the call; its attempts have greater ones
	lease time.Duration // the lease that the caller asked for
	kept  time.Duration // the time for which a grant holds: the lease, or the watchdog timeout
	place time.Duration // the time for which it takes a place in the queue
	asked bool          // an attempt may have left a place or a hold
	busy  time.Time     // when an attempt was first told that another holds the lock, or waits for it
}

// acquire tries for wait, or without bound if wait is negative. It returns no hold and no error if
// others held the lock all the time.
func (l *Lock) acquire(ctx context.Context, doing string, o owner, lease, wait time.Duration) (held *hold, err error) {
	begun := time.Now()
	until := begun.Add(wait)
	a := &acquisition{l: l, lease: lease, kept: cmp.Or(lease, l.c.watchdog)}
	if wait != 0 {
		a.place = l.c.heartbeat
	}
	a.request = l.request(l.scripts.acquire, o, TokenName(l.name), a.kept.Milliseconds(), a.place.Milliseconds())
	a.call = a.number
	a.args = append(a.args, a.call)
	defer func() { a.ended(ctx, begun, held, err) }()
	var w *waiter
	for failed := 0; ; {
		if err := l.c.reasonToStop(ctx); err != nil {
			return a.giveUp(ctx, doing, err, nil)
		}
		asked := time.Now()
		got, err := a.attempt(ctx)
		a.asked = a.asked || a.mayHaveRun || err == nil
		var pause time.Duration
		switch {
		case err == nil && got.word == answerGranted:
			return a.granted(doing, got, asked)
		case err == nil && got.word == answerLate:
			continue
		case err == nil && got.word == answerOver:
			return nil, fmt.Errorf("%s: %w", doing, errLostUnheard)
		case err == nil:
			pause, failed = l.pause(got), 0
			if a.busy.IsZero() {
				a.busy = time.Now()
			}
		case a.hopeless():
			return a.giveUp(ctx, doing, err, nil)
		default:
			pause = l.c.backoff(o, failed, l.c.poll())
			failed++
		}
		if wait >= 0 {
			left := time.Until(until)
			if left <= 0 {
				return a.giveUp(ctx, doing, nil, err)
			}
			pause = min(pause, left)
		}
		if w == nil {
			var leave func()
			w, leave = l.c.channels.join(ctx, ChannelName(l.name), o)
			defer leave()
		}
		if gone := l.c.wait(ctx, w, pause); gone != nil {
			return a.giveUp(ctx, doing, gone, err)
		}
		if wait >= 0 && time.Until(until) <= 0 {
			return a.giveUp(ctx, doing, nil, err)
		}
	}
}

// ended reports the end of the call to the observer.
func (a *acquisition) ended(ctx context.Context, begun time.Time, held *hold, err error) {
	e := lockimpl.AcquireEnded{Lock: a.l.name, Outcome: lockimpl.OutcomeOf(ctx, held != nil, err), Took: time.Since(begun)}
	if a.place > 0 && !a.busy.IsZero() {
		e.Waited = time.Since(a.busy)
	}
	a.l.c.observer.AcquireEnded(ctx, e)
}

// attempt asks for the lock once. Each attempt has a number of its own: after the answer to one, no
// earlier attempt takes the lock.
func (a *acquisition) attempt(ctx context.Context) (answer, error) {
	a.number = a.l.c.requests.Add(1)
	got, err := a.try(ctx)
	if err == nil && got.word == answerBusy {
		a.mayHaveRun = false
	}
	return got, err
}

// errLostUnheard: the answer came too late to be of use. A further try would be a second acquire,
// which the caller did not ask for.
var errLostUnheard = fmt.Errorf("%w: it was granted, and the hold was over before the answer came: %w", lockimpl.ErrUnknownOutcome, lockimpl.ErrHoldLost)

// granted notes the hold, unless it may be over.
func (a *acquisition) granted(doing string, got answer, asked time.Time) (*hold, error) {
	if !time.Now().Before(asked.Add(got.ttl)) {
		return nil, fmt.Errorf("%s: %w", doing, errLostUnheard)
	}
	return a.l.c.holds.granted(holdKey{a.l.name, a.owner.name}, a.owner, a.lease, got, asked), nil
}

// pause returns the time for which a waiter sleeps after a busy answer, unless it is woken.
func (l *Lock) pause(got answer) time.Duration {
	pause := l.c.poll()
	if got.ttl >= 0 {
		pause = min(pause, got.ttl+time.Millisecond) // Redis keeps a key through its last millisecond
	}
	return pause
}

// giveUp ends an acquire without a grant, for the reason why, or, if why is nil, since its time is
// up. failed is the error of the last attempt. giveUp makes sure that no request under way is
// granted later. The acquire has succeeded, though, if it was already granted and the answer was
// lost, or if its time is up, the fair lock is free and it is the caller's turn.
func (a *acquisition) giveUp(ctx context.Context, doing string, why, failed error) (*hold, error) {
	if !a.mayHaveRun && !a.queued() || a.l.c.closing.Err() != nil {
		return nil, a.unfinished(doing, why, failed)
	}
	got, asked, err := a.leave(ctx, why == nil && a.l.fair())
	left := got.word == answerLeft || got.word == answerBusy
	switch {
	case err == nil && got.word == answerGranted:
		return a.granted(doing, got, asked)
	case err == nil && got.word == answerOver:
		return nil, fmt.Errorf("%s: %w", doing, errLostUnheard)
	case err == nil && left && why == nil && (!a.busy.IsZero() || got.word == answerBusy):
		return nil, nil
	case err == nil && left:
		return nil, fmt.Errorf("%s: %w", doing, cmp.Or(why, failed))
	}
	// A place that stays behind is free after a heartbeat.
	return nil, a.unfinished(doing, why, failed)
}

// leave asks the server, twice if necessary, to give the acquire up. It returns the answer, and the
// instant at which it was asked for. If takes is set, the server first takes the fair lock for the
// caller if it is free and the caller's turn; it does not do so once nobody waits for the answer.
func (a *acquisition) leave(ctx context.Context, takes bool) (got answer, asked time.Time, err error) {
	r := a.l.request(a.l.scripts.leave, a.owner, ChannelName(a.l.name), a.call)
	if a.l.fair() {
		r.keys = append(r.keys, TokenName(a.l.name))
		r.args = append(r.args, int64(0))
		r.whole = true // its place keeps others waiting
	}
	if takes {
		r.args[1], r.valid = a.kept.Milliseconds(), a.l.c.answer
	}
	asked = time.Now()
	got, err = r.try(ctx)
	if err == nil && got.word != answerLate {
		return got, asked, nil
	}
	if takes {
		a.mayHaveRun = a.mayHaveRun || r.mayHaveRun
		r.args[1], r.valid = int64(0), valid
	}
	asked = time.Now()
	got, err = r.try(ctx)
	return got, asked, err
}

// queued reports whether the acquire may have a place in the queue.
func (a *acquisition) queued() bool { return a.place > 0 && a.l.fair() && a.asked }

// unfinished returns the error of an acquire whose outcome the server has not answered yet.
func (a *acquisition) unfinished(doing string, why, failed error) error {
	err := bothErrors(why, failed)
	if err == nil && a.queued() && a.l.c.closing.Err() != nil {
		err = lockimpl.ErrClosed // the client was closed while the acquire left
	}
	if err == nil && !a.mayHaveRun {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, a.unknownIf(err))
}

// Unlock implements lockimpl.Lock. It asks until the server answers or ctx ends. The outcome is
// unknown only if ctx ends, or if the server has lost its memory of the owner. In any case the hold
// is no longer renewed.
func (l *Lock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	doing := l.doing("unlock", o)
	if err := l.c.reasonToStop(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	owner := l.c.owner(o)
	return l.unlock(ctx, doing, l.request(l.scripts.unlock, owner, ChannelName(l.name), l.c.holds.releasing(holdKey{l.name, owner.name})), context.Canceled, nil)
}

// unlock settles a request that gives up a level, and takes that level from the client's own hold. The
// hold ends with cause when no level is left. before is the hold of an earlier unlock with the same
// request; nil if there was none.
func (l *Lock) unlock(ctx context.Context, doing string, r *request, cause error, before *hold) (lockimpl.Release, error) {
	key := holdKey{l.name, r.owner.name}
	got, err := r.settle(ctx)
	switch {
	case err != nil:
		l.c.holds.released(key, false, cause)
		return 0, fmt.Errorf("%s: %w", doing, err)
	case got.word == answerReleased:
		l.c.holds.released(key, true, cause)
		return lockimpl.Released, nil
	case got.word == answerStillHeld:
		l.c.holds.released(key, false, cause)
		return lockimpl.StillHeld, nil
	}
	// The server has lost its memory of the owner, and so perhaps the hold or the release. It would
	// not notice that go-redis sent a release again.
	believed := l.c.holds.released(key, true, lockimpl.ErrHoldLost) || before != nil && l.c.holds.believes(before)
	if got.word == answerNotHeld || !r.mayHaveRun && !believed {
		return 0, fmt.Errorf("%s: %w", doing, lockimpl.ErrNotHeld)
	}
	return 0, fmt.Errorf("%s: %w: the server no longer knows (%s)", doing, lockimpl.ErrUnknownOutcome, got.word)
}

// ForceUnlock implements lockimpl.Lock. It is meant for people: a holder in another process learns
// of it with its next renewal or unlock, and a holder of this client with the answer.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	doing := fmt.Sprintf("force unlock %q", l.name)
	if err := l.c.reasonToStop(ctx); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	// Each forced unlock has an owner of its own, so that none makes another outdated.
	o := owner{name: l.c.id + ":force-" + strconv.FormatInt(l.c.requests.Add(1), 10)}
	r := l.request(l.scripts.forceUnlock, o, ChannelName(l.name))
	r.keys = append(r.keys, TokenName(l.name))
	got, err := r.settle(ctx)
	if err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	l.c.holds.forced(l.name, got.token)
	switch {
	case got.word == answerReleased:
		return true, nil
	case r.mayHaveRun: // the lock is free now; a server that lost its memory does not know who freed it
		return false, fmt.Errorf("%s: %w", doing, lockimpl.ErrUnknownOutcome)
	}
	return false, nil
}

// IsLocked implements lockimpl.Lock.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	n, err := l.c.rdb.Exists(ctx, l.name).Result()
	return n > 0, l.looked(err)
}

// IsHeldBy implements lockimpl.Lock.
func (l *Lock) IsHeldBy(ctx context.Context, o lockimpl.Owner) (bool, error) {
	n, err := l.HoldCount(ctx, o)
	return n > 0, err
}

// HoldCount implements lockimpl.Lock.
func (l *Lock) HoldCount(ctx context.Context, o lockimpl.Owner) (int, error) {
	fields, err := l.c.rdb.HMGet(ctx, l.name, "owner", "count").Result()
	if err != nil || fields[0] != l.c.owner(o).name {
		return 0, l.looked(err)
	}
	n, err := strconv.Atoi(fmt.Sprint(fields[1]))
	return n, l.looked(err)
}

// RemainTimeToLive implements lockimpl.Lock.
func (l *Lock) RemainTimeToLive(ctx context.Context) (time.Duration, error) {
	ms, err := l.c.rdb.Do(ctx, "PTTL", l.name).Int64()
	return time.Duration(ms) * time.Millisecond, l.looked(err)
}

func (l *Lock) looked(err error) error {
	if err == nil {
		return nil
	}
	if l.c.closing.Err() != nil || errors.Is(err, redis.ErrClosed) {
		err = lockimpl.ErrClosed
	}
	return fmt.Errorf("look at %q: %w", l.name, err)
}
