package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

// lock is one RLock object. Each object has a lease field of its own, so two objects of one name
// may act differently.
type lock struct {
	c    *Client
	name string
	family

	mu sync.Mutex
	// leaseField is internalLockLeaseTime; the type LeaseField says which calls write it.
	leaseField time.Duration
}

// family has the scripts that make a lock plain or fair, fenced or non-reentrant.
type family struct {
	acquire Script
	// tryAcquire is the attempt that never queues.
	tryAcquire Script
	unlock     Script
	// leave gives up a place in the queue; nil if the lock has no queue.
	leave       *Script
	forceUnlock Script
}

func (f family) fair() bool { return f.leave != nil }

// latched: an unlock leaves its answer behind under the id of its request.
func (f family) latched() bool { return f.unlock.takes("unlock latch of this request") }

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

// operands are the values that a script may take, besides the values that client and lock know.
type operands struct {
	owner   lockimpl.Owner
	lease   time.Duration
	wait    time.Duration // of a waiter; 0 or less: the release's default
	request string
}

// unlockMessage is the message that a release publishes.
const unlockMessage = 0

// eval sends a script in the background. done gets the reply before anybody else (as the promise's
// first listener), and the operands that were sent.
func (l *lock) eval(ctx context.Context, s Script, v operands, done func(reply, operands)) <-chan reply {
	return async(ctx, func(ctx context.Context) reply { return l.runSynced(ctx, s, v, done) })
}

// run sends a script with the keys and arguments that its head names, in its
// order.
func (l *lock) run(ctx context.Context, s Script, v operands) reply {
	keys := make([]string, len(s.keys))
	for i, name := range s.keys {
		keys[i] = l.key(name, v)
	}
	args := make([]any, len(s.args))
	for i, name := range s.args {
		args[i] = l.argument(name, v)
	}
	return l.c.evalScript(ctx, v.owner, s, keys, args)
}

func (l *lock) key(name string, v operands) string {
	switch name {
	case "lock hash":
		return l.name
	case "queue":
		return QueueName(l.name)
	case "deadlines":
		return DeadlinesName(l.name)
	case "channel", "channel of the queue":
		return ChannelName(l.name)
	case "unlock latch of this request":
		return LatchName(l.name, v.request)
	case "token counter":
		return TokenName(l.name)
	}
	panic("redisson: a script asks for an unknown key: " + name)
}

func (l *lock) argument(name string, v operands) any {
	switch name {
	case "message":
		return unlockMessage
	case "lease in ms":
		return v.lease.Milliseconds()
	case "owner":
		return l.c.owner(v.owner)
	case "wait in ms":
		return l.queueWait(v.wait)
	case "now in ms":
		return l.c.nowMillis()
	case "now and wait in ms":
		return l.c.nowMillis() + l.queueWait(v.wait)
	case "publish command":
		return l.c.publishCommand()
	case "life of the latch in ms":
		return l.c.latchLife(v.owner).Milliseconds()
	}
	panic("redisson: a script asks for an unknown argument: " + name)
}

// queueWait returns the wait, in ms, with which a waiter enters and leaves the queue: the waiter's
// own if the release sends it, else the client's default.
func (l *lock) queueWait(own time.Duration) int64 {
	if own > 0 && l.c.rel.FairOwnWait {
		return own.Milliseconds()
	}
	return l.c.fairWait.Milliseconds()
}

// noLease reports whether the release reads a lease as no lease, so that the watchdog renews the
// hold.
func (l *lock) noLease(lease time.Duration) bool {
	return lease == 0 || lease == -time.Millisecond || lease < 0 && !l.c.rel.OnlyMinusOne
}

// leaseToSend returns the lease that an attempt sends. Some releases also write it to the lock
// object, whatever the outcome of the attempt.
func (l *lock) leaseToSend(lease time.Duration) time.Duration {
	if l.c.rel.LeaseField == FieldOfAttempt {
		if l.noLease(lease) {
			lease = l.c.watchdogT
		}
		l.setField(lease)
		return lease
	}
	if l.noLease(lease) {
		return l.field()
	}
	return lease
}

// answer is the result of an attempt.
type answer struct {
	granted bool
	ttl     time.Duration // when not granted: the time after which to ask again
	token   int64         // of a fenced lock's hold, if its script returns it
}

func answerTo(r reply) answer {
	if pair, ok := r.val.([]any); ok && len(pair) == 2 { // {ttl, token}
		ttl, _ := pair[0].(int64)
		token, _ := pair[1].(int64)
		// The library checks only the time: it takes the answer {-1, -1} of a key without time to
		// live for a grant.
		return answer{granted: ttl == -1, ttl: time.Duration(ttl) * time.Millisecond, token: token}
	}
	ms, busy := r.long()
	return answer{granted: !busy, ttl: time.Duration(ms) * time.Millisecond}
}

// attempt is tryAcquire. After a grant, the first listener of its promise sets the lease field and
// starts the watchdog. It does so even if nobody waits any more, so an interrupted caller leaves a
// renewed hold behind (issues 2714, 4368).
func (l *lock) attempt(ctx context.Context, doing *acquisition, s Script, o lockimpl.Owner, wait, lease time.Duration) (answer, error) {
	sent, asked := l.leaseToSend(lease), time.Now()
	l.c.asking.begin(o)
	r, err := l.c.await(ctx, doing.text, l.eval(ctx, s, operands{owner: o, lease: sent, wait: wait}, func(r reply, _ operands) {
		abandoned := l.c.asking.end(o)
		if r.err != nil || !answerTo(r).granted {
			return
		}
		if abandoned {
			defer func() { go l.giveBack(context.WithoutCancel(ctx), o) }()
		}
		l.c.holds.granted(l.name, o, asked, sent)
		switch {
		case l.noLease(lease):
			l.c.watchdog.add(l, o)
			l.c.log.Debug("renewing from now on", "lock", l.name, "owner", l.c.owner(o))
		case l.c.rel.LeaseField != FieldOfAttempt:
			l.setField(lease)
		}
	}))
	if redis.HasErrorPrefix(err, "NON_REENTRANT_REACQUIRE") {
		err = fmt.Errorf("%s: %w", doing, lockimpl.ErrReentry)
	}
	if err != nil {
		return answer{}, err
	}
	got := answerTo(r)
	if !got.granted {
		now := time.Now()
		doing.busy.CompareAndSwap(nil, &now)
	}
	return got, nil
}

// acquisition is one call that asks for a lock.
type acquisition struct {
	text  string // for errors
	begun time.Time
	busy  atomic.Pointer[time.Time] // of the first answer that another owner holds the lock
	once  bool                      // it makes a single attempt
}

func (l *lock) acquisition(verb string, o lockimpl.Owner) *acquisition {
	return &acquisition{text: l.doing(verb, o), begun: time.Now()}
}

func (a *acquisition) String() string { return a.text }

// ended reports the end of a call to the observer.
func (l *lock) ended(ctx context.Context, a *acquisition, got answer, err error) {
	e := lockimpl.AcquireEnded{Lock: l.name, Outcome: lockimpl.OutcomeOf(ctx, got.granted, err), Took: time.Since(a.begun)}
	if busy := a.busy.Load(); busy != nil && !a.once {
		e.Waited = time.Since(*busy)
	}
	l.c.observer.AcquireEnded(ctx, e)
}

func (l *lock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	_, err := l.lock(ctx, l.acquire, o, opt)
	return err
}

func (l *lock) lock(ctx context.Context, s Script, o lockimpl.Owner, opt lockimpl.LockOptions) (got answer, err error) {
	if err := lockimpl.CheckLease(opt.Lease); err != nil && !l.c.unchecked {
		return answer{}, err
	}
	doing := l.acquisition("lock", o)
	defer func(ctx context.Context) { l.ended(ctx, doing, got, err) }(ctx)
	got, err = l.attempt(ctx, doing, s, o, 0, opt.Lease)
	if got.granted || err != nil {
		return got, err
	}
	entry, first := l.c.channels.subscribe(ctx, l.channel(o))
	defer l.c.channels.unsubscribe(entry)
	acknowledging := ctx
	if l.c.rel.PatientReply {
		acknowledging = context.WithoutCancel(ctx)
	}
	if err := l.c.subscribed(acknowledging, entry, first); err != nil {
		return answer{}, fmt.Errorf("%s: %w", doing, err)
	}
	for {
		got, err := l.attempt(ctx, doing, s, o, 0, opt.Lease)
		if got.granted || err != nil {
			return got, err
		}
		waiting := ctx
		if got.ttl < 0 && !opt.Interruptible && !l.c.rel.LockReturnsInterrupted {
			// A wait without bound does not notice an interrupt, which stays pending. The next
			// attempt fails with it, although its script runs.
			waiting = context.WithoutCancel(ctx)
		}
		err = l.c.acquire(waiting, entry, got.ttl)
		if err != nil && !opt.Interruptible && waiting.Err() != nil {
			if l.c.rel.LockReturnsInterrupted {
				return answer{}, nil
			}
			// lock() swallows the interrupt and waits its full time again.
			ctx = context.WithoutCancel(ctx)
			err = l.c.acquire(ctx, entry, got.ttl)
		}
		if err != nil {
			return answer{}, fmt.Errorf("%s: %w", doing, err)
		}
	}
}

// channel returns the channel on which this owner hears of a release.
func (l *lock) channel(o lockimpl.Owner) string {
	if l.fair() {
		return WaiterChannel(l.name, l.c.owner(o))
	}
	return ChannelName(l.name)
}

func (l *lock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	doing := l.acquisition("try lock", o)
	doing.once = true
	got, err := l.attempt(ctx, doing, l.tryAcquire, o, 0, 0)
	l.ended(ctx, doing, got, err)
	return got.granted, err
}

func (l *lock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	got, err := l.tryLockTimed(ctx, l.acquire, o, opt)
	return got.granted, err
}

func (l *lock) tryLockTimed(ctx context.Context, s Script, o lockimpl.Owner, opt lockimpl.TryOptions) (got answer, err error) {
	if err := lockimpl.CheckTry(opt); err != nil && !l.c.unchecked {
		return answer{}, err
	}
	doing := l.acquisition("try lock", o)
	doing.once = opt.Wait == 0
	defer func() { l.ended(ctx, doing, got, err) }()
	queueWait := opt.Wait
	if l.noLease(opt.Lease) && opt.Unit > 0 {
		// Without a lease the script takes the number as milliseconds (issue 4743).
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
	giveUp := func() (answer, error) {
		if !l.fair() {
			return answer{}, nil
		}
		_, err := l.c.await(ctx, l.doing("leave the queue of", o), l.eval(ctx, *l.leave, operands{owner: o, wait: opt.Wait}, nil))
		return answer{}, err
	}

	got, err = l.attempt(ctx, doing, s, o, queueWait, opt.Lease)
	if got.granted || err != nil {
		return got, err
	}
	if !spend() {
		return giveUp()
	}
	entry, first := l.c.channels.subscribe(ctx, l.channel(o))
	defer l.c.channels.unsubscribe(entry)
	if err := l.c.acknowledged(ctx, entry, left); err != nil {
		if first && l.c.rel.LateSubscription == SubscriptionFailsLate && errors.Is(err, errSubscribeTimeout) {
			l.c.channels.fail(entry, errResponseTimeout)
		}
		if ctx.Err() != nil || errors.Is(err, lockimpl.ErrClosed) {
			return answer{}, fmt.Errorf("%s: %w", doing, err)
		}
		return giveUp()
	}
	if !spend() {
		return giveUp()
	}
	for {
		got, err := l.attempt(ctx, doing, s, o, queueWait, opt.Lease)
		if l.c.rel.FalseOnTimeout && errors.Is(err, errResponseTimeout) {
			return giveUp()
		}
		if got.granted || err != nil {
			return got, err
		}
		if !spend() {
			return giveUp()
		}
		limit := left
		if got.ttl >= 0 {
			limit = min(got.ttl, left)
		}
		if err := l.c.acquire(ctx, entry, limit); err != nil {
			return answer{}, fmt.Errorf("%s: %w", doing, err)
		}
		if !spend() {
			return giveUp()
		}
	}
}

func (l *lock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	v, asked := operands{owner: o, lease: l.field()}, time.Now()
	if l.latched() {
		v.request = l.c.env.NewID(o)
	}
	r, err := l.c.await(ctx, l.doing("unlock", o), l.eval(ctx, l.unlock, v, func(r reply, v operands) {
		l.c.holds.unlocked(l.name, o, unlockAnswer(r), asked, v.lease)
		if slices.Contains(l.c.rel.StopsRenewal, unlockAnswer(r)) {
			l.c.watchdog.remove(l, o)
			l.c.log.Debug("a level less to renew", "lock", l.name, "owner", l.c.owner(o))
		}
		if r.err != nil {
			return
		}
		if l.latched() { // the latch is deleted in the background; nobody waits for that
			l.c.commandAsync(ctx, "DEL", LatchName(l.name, v.request))
		}
		switch l.c.rel.LeaseField {
		case FieldUntilUnlock:
			l.setField(l.c.watchdogT)
		case FieldUntilRelease:
			if unlockAnswer(r) != AnswerStillHeld {
				l.setField(l.c.watchdogT)
			}
		}
	}))
	if err != nil {
		return 0, err
	}
	switch unlockAnswer(r) {
	case AnswerNotHeld:
		return 0, fmt.Errorf("%s: %w", l.doing("unlock", o), lockimpl.ErrNotHeld)
	case AnswerStillHeld:
		return lockimpl.StillHeld, nil
	default:
		return lockimpl.Released, nil
	}
}

func unlockAnswer(r reply) UnlockAnswer {
	n, ok := r.long()
	switch {
	case r.err != nil:
		return AnswerError
	case !ok:
		return AnswerNotHeld
	case n == 0:
		return AnswerStillHeld
	default:
		return AnswerReleased
	}
}

func (l *lock) ForceUnlock(ctx context.Context) (bool, error) {
	l.c.watchdog.drop(l)
	l.c.holds.forced(l.name)
	if l.c.rel.LeaseField != FieldOfAttempt {
		l.setField(l.c.watchdogT) // whatever the answer will be
	}
	r, err := l.c.await(ctx, l.doing("force unlock", 0), l.eval(ctx, l.forceUnlock, operands{}, nil))
	n, _ := r.long()
	return n == 1, err
}

func (l *lock) ask(ctx context.Context, args ...any) (int64, error) {
	r, err := l.c.await(ctx, fmt.Sprintf("look at %q", l.name), l.c.commandAsync(ctx, args...))
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
	n, err := l.readNumber(ctx, "HGET", l.name, l.c.owner(o))
	return int(n), err
}

// readNumber reads a number that Redis keeps as text; 0 if there is none.
func (l *lock) readNumber(ctx context.Context, args ...any) (int64, error) {
	r, err := l.c.await(ctx, fmt.Sprintf("look at %q", l.name), l.c.commandAsync(ctx, args...))
	if err != nil || r.val == nil {
		return 0, err
	}
	n, err := strconv.ParseInt(fmt.Sprint(r.val), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("look at %q: %w", l.name, err)
	}
	return n, nil
}

func (l *lock) RemainTimeToLive(ctx context.Context) (time.Duration, error) {
	ms, err := l.ask(ctx, "PTTL", l.name)
	return time.Duration(ms) * time.Millisecond, err
}
