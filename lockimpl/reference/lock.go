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

// Lock is a lock of one name; locks of one name and client share their holds.
// It implements lockimpl.Lock. A context that ends ends every call; what the
// call has sent by then is still waited for, one second at most.
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

// request makes the next request of an owner; third is the key that stands
// between the owner's and the queue's.
func (l *Lock) request(s script, o owner, third string, args ...any) *request {
	r := &request{c: l.c, script: s, owner: o, number: l.c.requests.Add(1), valid: valid, args: args}
	r.keys = []string{l.name, MemoryName(l.name, o.name), third}
	if l.fair() {
		r.keys = append(r.keys, QueueName(l.name), DeadlinesName(l.name))
	}
	return r
}

// Lock implements lockimpl.Lock. It is always interruptible. Errors: of ctx
// when it ended, with ErrUnknownOutcome where the owner may hold the lock all
// the same, until the lease or the watchdog timeout has passed; of the server
// when it refuses what the lock asks.
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
	call  int64         // its number; its attempts have greater ones
	lease time.Duration // that was asked for
	kept  time.Duration // for which a grant holds: the lease, or the watchdog timeout
	place time.Duration // for which a place in the queue is taken
	asked bool          // one attempt may have left a place or a hold
	busy  time.Time     // when an attempt was first told that another holds the lock, or waits for it
}

// acquire tries for wait, without bound when it is negative. It gives no hold and no
// error when others held the lock all the time.
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
		if err := l.c.over(ctx); err != nil {
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

// ended tells of the end of the call.
func (a *acquisition) ended(ctx context.Context, begun time.Time, held *hold, err error) {
	e := lockimpl.AcquireEnded{Lock: a.l.name, Outcome: lockimpl.OutcomeOf(ctx, held != nil, err), Took: time.Since(begun)}
	if a.place > 0 && !a.busy.IsZero() {
		e.Waited = time.Since(a.busy)
	}
	a.l.c.observer.AcquireEnded(ctx, e)
}

// attempt asks for the lock once. Each attempt has a number of its own: after the answer
// to one, nothing that was sent before takes the lock.
func (a *acquisition) attempt(ctx context.Context) (answer, error) {
	a.number = a.l.c.requests.Add(1)
	got, err := a.try(ctx)
	if err == nil && got.word == answerBusy {
		a.mayHaveRun = false
	}
	return got, err
}

// errLostUnheard: no answer came in time to be of use. To try again would be
// another acquire than the caller asked for.
var errLostUnheard = fmt.Errorf("%w: it was granted, and the hold was over before the answer came: %w", lockimpl.ErrUnknownOutcome, lockimpl.ErrHoldLost)

// granted notes the hold, unless it may be over.
func (a *acquisition) granted(doing string, got answer, asked time.Time) (*hold, error) {
	if !time.Now().Before(asked.Add(got.ttl)) {
		return nil, fmt.Errorf("%s: %w", doing, errLostUnheard)
	}
	return a.l.c.holds.granted(holdKey{a.l.name, a.owner.name}, a.owner, a.lease, got, asked), nil
}

// pause is how long a waiter sleeps after a busy answer, unless it is woken.
func (l *Lock) pause(got answer) time.Duration {
	pause := l.c.poll()
	if got.ttl >= 0 {
		pause = min(pause, got.ttl+time.Millisecond) // Redis keeps a key through its last one
	}
	return pause
}

// giveUp ends an acquire without a grant: because of why, or, when that is nil,
// because its time was up, with the last attempt failed. It sees to it that it
// is not granted later, by a request that overtakes it. If it was granted
// already, unheard, it has succeeded; so it has where its time is up and the fair
// lock is free just then, and its turn.
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
	// A place that is left behind is free after a heartbeat.
	return nil, a.unfinished(doing, why, failed)
}

// leave asks the server, twice if need be, to give the acquire up, and gives its answer
// and when that was asked for. Where takes, it asks first to take the fair lock
// instead, if it is free and this one's turn; that is refused when nobody waits for the
// answer any more.
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

// queued: it may have a place in the queue.
func (a *acquisition) queued() bool { return a.place > 0 && a.l.fair() && a.asked }

// unfinished is the error of an acquire whose outcome the server has not told yet.
func (a *acquisition) unfinished(doing string, why, failed error) error {
	err := bothErrors(why, failed)
	if err == nil && a.queued() && a.l.c.closing.Err() != nil {
		err = lockimpl.ErrClosed // while it left
	}
	if err == nil && !a.mayHaveRun {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, a.unknownIf(err))
}

// Unlock implements lockimpl.Lock. It asks until it is answered or ctx ends;
// only then, or when the server has lost its memory of the owner, is the
// outcome unknown. The hold is no longer renewed in any case.
func (l *Lock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	doing := l.doing("unlock", o)
	if err := l.c.over(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	owner := l.c.owner(o)
	return l.unlock(ctx, doing, l.request(l.scripts.unlock, owner, ChannelName(l.name), l.c.holds.releasing(holdKey{l.name, owner.name})), context.Canceled, nil)
}

// unlock settles a request that gives up a level, and takes that level from the client's own hold. The
// hold ends with cause when no level is left. before is the hold of an earlier unlock by the same
// request; nil: there was none.
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
	// With its memory of the owner the server may have lost the hold, or the
	// release: one that go-redis sent again would not be noticed.
	believed := l.c.holds.released(key, true, lockimpl.ErrHoldLost) || before != nil && l.c.holds.believes(before)
	if got.word == answerNotHeld || !r.mayHaveRun && !believed {
		return 0, fmt.Errorf("%s: %w", doing, lockimpl.ErrNotHeld)
	}
	return 0, fmt.Errorf("%s: %w: the server no longer knows (%s)", doing, lockimpl.ErrUnknownOutcome, got.word)
}

// ForceUnlock implements lockimpl.Lock. It is meant for people: a holder in
// another process learns of it with its next renewal or unlock, one of this client's
// with the answer.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	doing := fmt.Sprintf("force unlock %q", l.name)
	if err := l.c.over(ctx); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	// An owner of its own for each, so that two of them do not overtake one another.
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
	case r.mayHaveRun: // it is free now; a server that lost its memory cannot tell who freed it
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
