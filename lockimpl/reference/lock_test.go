package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/internal/oneprocessor"
	"lockstep/lockimpl"
)

func init() { oneprocessor.Set() }

var background = context.Background()

const ms = time.Millisecond

// bench is a miniredis behind in-memory pipes, in a bubble.
type bench struct {
	t     *testing.T
	m     *miniredis.Miniredis
	start time.Time
	close []func()

	mu    sync.Mutex
	lose  map[string]int // how many replies to commands with these words get lost
	sent  []string       // the scripts' names, in order
	names map[string]string

	attempts [][]any  // the acquires that were run, in order
	unknown  []string // the names of scripts that the server did not know

	lost    func() // called when a reply is lost; nil: nothing
	again   func() // called before a leave runs again, as go-redis does after a lost reply; nil: it does not
	retries int    // of the go-redis client; 0: none
	lostAs  string // the operation in the error of a lost reply; default read
}

func bubble(t *testing.T, f func(*bench)) {
	t.Helper()
	// go-redis keeps timers in a package-level pool; a timer of one bubble
	// kills the next one. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, m: miniredis.NewMiniRedis(), start: time.Now(), lose: map[string]int{}, names: map[string]string{}}
		for text, name := range Scripts() {
			b.names[text], b.names[redis.NewScript(text).Hash()] = name, name
		}
		b.m.ClockTTL(true)
		defer func() {
			for _, c := range b.close {
				c()
			}
			b.m.Close()
			synctest.Wait()
		}()
		f(b)
	})
}

// client makes a client with a go-redis client of its own.
func (b *bench) client(id string) *Client {
	b.t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: "192.0.2.1:6379", Protocol: 2, MaxRetries: cmp.Or(b.retries, -1), DisableIdentity: true, ReadTimeout: 3 * time.Second,
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return b.m.Dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	rdb.AddHook(b)
	c, err := NewClient(rdb, Config{ID: id})
	b.must(err)
	b.close = append(b.close, func() { _ = c.Close(); _ = rdb.Close() })
	return c
}

func (b *bench) lock(id string, fair bool) *Lock {
	b.t.Helper()
	c := b.client(id)
	l, err := c.NewLock("l")
	if fair {
		l, err = c.NewFairLock("l")
	}
	b.must(err)
	return l
}

func (b *bench) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook runs a command and loses its reply if the test asks for that.
func (b *bench) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if len(cmd.Args()) < 2 {
			return err
		}
		text, _ := cmd.Args()[1].(string) // or its SHA
		name := b.names[text]
		b.mu.Lock()
		defer b.mu.Unlock()
		if name == "" {
			return err
		}
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			b.unknown = append(b.unknown, name)
			return err
		}
		if name == "leave" && b.again != nil {
			b.again()
			err = next(ctx, cmd)
		}
		b.sent = append(b.sent, name)
		if name == "acquire" {
			b.attempts = append(b.attempts, cmd.Args())
		}
		if b.lose[name] > 0 {
			b.lose[name]--
			if b.lost != nil {
				b.lost()
			}
			err = &net.OpError{Op: cmp.Or(b.lostAs, "read"), Err: errors.New("lost")}
			cmd.SetErr(err)
		}
		return err
	}
}

func (b *bench) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) equal(what string, got, want any) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("at %v: %s: got %v, want %v", time.Since(b.start), what, got, want)
	}
}

func (b *bench) count(l *Lock, o lockimpl.Owner) int {
	b.t.Helper()
	n, err := l.HoldCount(background, o)
	b.must(err)
	return n
}

func (b *bench) try(l *Lock, o lockimpl.Owner, wait time.Duration) bool {
	b.t.Helper()
	ok, err := l.TryLockTimed(background, o, lockimpl.TryOptions{Wait: wait})
	b.must(err)
	return ok
}

func (b *bench) hold(l *Lock, o lockimpl.Owner, lease time.Duration) {
	b.t.Helper()
	b.must(l.Lock(background, o, lockimpl.LockOptions{Lease: lease}))
}

func (b *bench) unlock(l *Lock, o lockimpl.Owner, want lockimpl.Release) {
	b.t.Helper()
	got, err := l.Unlock(background, o)
	b.must(err)
	b.equal("release", got, want)
}

func (b *bench) ttl(l *Lock) time.Duration {
	b.t.Helper()
	d, err := l.RemainTimeToLive(background)
	b.must(err)
	return d
}

// both runs a test on each of the two locks.
func both(t *testing.T, f func(b *bench, fair bool)) {
	for name, fair := range map[string]bool{"plain": false, "fair": true} {
		t.Run(name, func(t *testing.T) { bubble(t, func(b *bench) { f(b, fair) }) })
	}
}

func TestOneOwnerThatCounts(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		a, c := b.lock("a", fair), b.lock("c", fair)
		b.hold(a, 1, 0)
		b.hold(a, 1, 0)
		b.equal("levels", b.count(a, 1), 2)
		b.equal("another owner of the client", b.try(a, 2, 0), false)
		b.equal("another client", b.try(c, 1, 0), false)
		if _, err := c.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			t.Errorf("unlock of another's hold: %v", err)
		}
		b.unlock(a, 1, lockimpl.StillHeld)
		b.equal("with a level left", b.try(c, 1, 0), false)
		b.unlock(a, 1, lockimpl.Released)
		b.equal("when it is free", b.try(c, 1, 0), true)
	})
}

func TestARequestHappensOnce(t *testing.T) {
	for _, script := range []string{"acquire", "unlock"} {
		t.Run(script, func(t *testing.T) {
			both(t, func(b *bench, fair bool) {
				l := b.lock("a", fair)
				b.lose["acquire"] = 3 * strings.Count(script, "acquire")
				b.hold(l, 1, 0)
				b.hold(l, 1, 0)
				b.equal("levels", b.count(l, 1), 2)
				b.lose["unlock"] = 3 * strings.Count(script, "unlock")
				b.unlock(l, 1, lockimpl.StillHeld)
				b.equal("levels", b.count(l, 1), 1)
				b.unlock(l, 1, lockimpl.Released)
			})
		})
	}
}

func TestATryWhoseAnswerIsLostLearnsIt(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		b.lose["acquire"] = 1
		b.equal("granted", b.try(l, 1, 0), true)
		b.lose["acquire"] = 1
		b.equal("refused", b.try(b.lock("c", fair), 1, 0), false)
		b.unlock(l, 1, lockimpl.Released)
	})
}

// An attempt that arrives after the end of its call takes nothing.
func TestALateRequestIsRefused(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		late := l.request(l.scripts.acquire, l.c.owner(1), TokenName("l"), 30_000, 3_000)
		b.hold(l, 1, 0)
		b.unlock(l, 1, lockimpl.Released)
		got, err := late.try(background)
		b.must(err)
		b.equal("a request that was overtaken", got.word, answerOver)

		old := l.request(l.scripts.unlock, l.c.owner(2), ChannelName("l"), 0)
		_, err = old.try(background)
		b.must(err)
		l.c.clock.said(time.Now().Add(-time.Minute).UnixMilli())
		got, err = old.try(background)
		b.must(err)
		b.equal("a request of a minute ago", got.word, answerLate)
	})
}

func TestAHoldWithoutLeaseIsRenewedThroughErrors(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		b.hold(l, 1, 0)
		ctx, err := l.HoldContext(background, 1)
		b.must(err)
		time.Sleep(9 * time.Second)
		b.m.SetError("LOADING")
		time.Sleep(15 * time.Second) // the renewals of 10 s and 20 s fail
		b.m.SetError("")
		time.Sleep(time.Minute)
		b.equal("levels", b.count(l, 1), 1)
		b.must(ctx.Err())
		b.unlock(l, 1, lockimpl.Released)
		synctest.Wait()
		b.equal("cause", context.Cause(ctx), context.Canceled)
		before := len(b.sent)
		time.Sleep(time.Minute)
		if after := b.sent[before:]; slices.Contains(after, "renew") {
			t.Errorf("renewed after the release: %v", after)
		}
	})
}

func TestTheHolderIsToldOfItsLoss(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		watch := func(lease time.Duration) context.Context {
			b.hold(l, 1, lease)
			ctx, err := l.HoldContext(background, 1)
			b.must(err)
			return ctx
		}
		ended := func(ctx context.Context, within time.Duration) {
			t.Helper()
			from := time.Now()
			<-ctx.Done()
			b.equal("cause", context.Cause(ctx), error(lockimpl.ErrHoldLost))
			b.equal("in time", time.Since(from) <= within, true)
		}
		ended(watch(2*time.Second), 2*time.Second) // a lease
		ctx := watch(0)
		b.m.SetError("LOADING") // no command succeeds
		ended(ctx, 30*time.Second)
		b.m.SetError("")
		_, _ = l.Unlock(background, 1)
		ctx = watch(0)
		freed, err := b.lock("c", fair).ForceUnlock(background)
		b.must(err)
		b.equal("freed", freed, true)
		ended(ctx, 10*time.Second) // the next renewal ends it
		if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			t.Errorf("unlock of a lost hold: %v", err)
		}
		if _, err := l.HoldContext(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			t.Errorf("the context of a lost hold: %v", err)
		}
	})
}

// The last error of a client that retries belongs to a try that was never sent, and an earlier try
// ran. The lock asks for its outcome.
func TestOfAClientThatRetriesEveryFailureMayHaveRun(t *testing.T) {
	for _, c := range []struct {
		retries int
		sent    string
	}{{-1, "acquire"}, {3, "acquire leave"}} {
		bubble(t, func(b *bench) {
			b.retries, b.lostAs, b.lose["acquire"] = c.retries, "write", 1
			l := b.lock("a", false)
			got, err := l.TryLock(background, 1)
			b.equal("commands", strings.Join(b.sent, " "), c.sent)
			b.equal("granted", got, c.retries > 0)
			b.equal("failed", err != nil, c.retries < 0)
		})
	}
}

// go-redis sends a failed command again, and the first copy may arrive after the answer to the
// second. After the answer no copy takes the lock, whether or not the call has ended.
func TestALateCopyOfAnAnsweredAttemptTakesNothing(t *testing.T) {
	for what, wait := range map[string]time.Duration{"one attempt": 0, "some attempts": 3 * time.Second} {
		for _, lost := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, %d unheard", what, lost), func(t *testing.T) {
				both(t, func(b *bench, fair bool) {
					b.hold(b.lock("a", fair), 1, 0)
					l := b.lock("c", fair)
					b.lose["acquire"] = lost
					b.attempts = nil
					b.equal("granted", b.try(l, 1, wait), false)
					b.equal("more than one attempt", len(b.attempts) > 1, wait > 0)
					b.m.Del("l")
					for _, args := range b.attempts {
						reply, err := l.c.rdb.Do(background, args...).Slice()
						b.must(err)
						b.equal("granted to a copy", reply[0] == answerGranted, false)
					}
					b.equal("held", b.m.Exists("l"), false)
				})
			})
		}
	}
}

// A copy of an attempt that found the lock busy answers when to ask again: at once if the lock is
// free by now and nobody is in front. A client whose answers are lost still pauses between its
// attempts.
func TestACopyOfABusyAnswerTellsWhenToAskAgain(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		b.hold(b.lock("a", fair), 1, 0)
		l := b.lock("c", fair)
		b.attempts = nil
		b.equal("granted", b.try(l, 1, 0), false)
		pause := func() time.Duration {
			reply, err := l.c.rdb.Do(background, b.attempts[0]...).Slice()
			b.must(err)
			got, err := parse(reply)
			b.must(err)
			b.equal("a copy", got.word, answerBusy)
			return l.pause(got)
		}
		b.equal("a poll, while it is held", pause() > 100*ms, true)
		b.m.Del("l")
		b.equal("pause, when it is free", pause(), ms)
		if !fair {
			return
		}
		_, err := b.m.Lpush(QueueName("l"), "dead:1")
		b.must(err)
		_, err = b.m.ZAdd(DeadlinesName("l"), float64(time.Now().Add(200*ms).UnixMilli()), "dead:1")
		b.must(err)
		b.equal("a poll, while somebody is in front", pause() > 100*ms, true)
		time.Sleep(201 * ms)
		b.equal("pause, when that one's time is over", pause(), ms)
	})
}

// A client that learns late of a forced unlock keeps the holds that were granted since.
func TestAForcedUnlockEndsTheHoldsUpToIt(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		watch := func(o lockimpl.Owner) context.Context {
			b.hold(l, o, 0)
			ctx, err := l.HoldContext(background, o)
			b.must(err)
			return ctx
		}
		before := watch(1)
		b.lose["force_unlock"] = 1
		freed := make(chan bool)
		go func() {
			ok, err := l.ForceUnlock(background)
			b.must(err)
			freed <- ok
		}()
		synctest.Wait() // it has run, and asks again
		after := watch(2)
		b.equal("freed", <-freed, true)
		synctest.Wait() // the contexts end
		b.equal("asked again", strings.Count(strings.Join(b.sent, " "), "force_unlock"), 2)
		b.equal("a hold before it", context.Cause(before), error(lockimpl.ErrHoldLost))
		b.equal("a hold after it", context.Cause(after), nil)

		b.m.Del("l") // as an operator does; no client learns of it
		ok, err := l.ForceUnlock(background)
		b.must(err)
		b.equal("freed", ok, false)
		synctest.Wait()
		b.equal("a hold that was gone", context.Cause(after), error(lockimpl.ErrHoldLost))

		for _, last := range []string{"", "7"} {
			gone := watch(1)
			time.Sleep(time.Millisecond)
			b.m.FlushAll() // as a restart without data, and a failover to a replica that lags
			if last != "" {
				b.must(b.m.Set(TokenName("l"), last))
			}
			ok, err := l.ForceUnlock(background)
			b.must(err)
			b.equal("freed", ok, false)
			synctest.Wait()
			b.equal("a hold of a server whose last token is "+cmp.Or(last, "lost"), context.Cause(gone), error(lockimpl.ErrHoldLost))
		}
	})
}

func TestLeasesAreExact(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		b.hold(l, 1, 5*time.Second)
		b.equal("as asked", b.ttl(l), 5*time.Second)
		b.hold(l, 1, 2*time.Second)
		b.equal("a shorter one takes nothing", b.ttl(l), 5*time.Second)
		b.hold(l, 1, 20*time.Second)
		b.equal("a longer one counts", b.ttl(l), 20*time.Second)
		b.unlock(l, 1, lockimpl.StillHeld)
		b.equal("and goes with its level", b.ttl(l), 5*time.Second)
		time.Sleep(6 * time.Second)
		b.equal("levels", b.count(l, 1), 0)
	})
}

func TestTokensGrow(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		a, c := b.lock("a", fair), b.lock("c", fair)
		var last int64
		for i := range 6 {
			l := []*Lock{a, c}[i%2]
			b.hold(l, 1, 0)
			got, err := l.Token(1)
			b.must(err)
			b.equal("greater", got > last, true)
			last = got
			b.unlock(l, 1, lockimpl.Released)
			if i == 3 {
				time.Sleep(10 * time.Millisecond)
				b.m.FlushAll() // the count is lost; the clock continues
			}
		}
	})
}

func TestWaitersAreWoken(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		a, c := b.lock("a", fair), b.lock("c", fair)
		b.hold(a, 1, 0)
		unlocked := make(chan struct{})
		time.AfterFunc(2100*time.Millisecond, func() {
			b.unlock(a, 1, lockimpl.Released)
			close(unlocked)
		})
		b.hold(c, 1, 0)
		b.equal("at once", time.Since(b.start), 2100*time.Millisecond)
		<-unlocked
	})
}

func TestWaitersAskNowAndThen(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		a, c := b.lock("a", fair), b.lock("c", fair)
		b.hold(a, 1, 0)
		time.AfterFunc(2100*time.Millisecond, func() { b.m.Del("l") }) // and no waiter is woken
		b.hold(c, 1, 0)
		b.equal("within a poll", time.Since(b.start) <= 2100*time.Millisecond+pollEvery, true)
		time.Sleep(time.Second)
		before := len(b.sent)
		b.equal("busy", b.try(a, 1, 10*time.Second), false)
		if n := len(b.sent) - before; n > 30 {
			t.Errorf("%d commands in ten seconds", n)
		}
	})
}

func TestFairServesInOrder(t *testing.T) {
	bubble(t, func(b *bench) {
		first := b.lock("first", true)
		b.hold(first, 1, 0)
		var order []string
		var all sync.WaitGroup
		for i, id := range []string{"a", "b", "c", "d"} {
			l := b.lock(id, true)
			time.Sleep(10 * time.Millisecond)
			all.Add(1)
			go func() {
				defer all.Done()
				b.hold(l, lockimpl.Owner(i), 0)
				order = append(order, id)
				b.unlock(l, lockimpl.Owner(i), lockimpl.Released)
			}()
		}
		time.Sleep(5 * time.Second) // longer than a heartbeat
		b.unlock(first, 1, lockimpl.Released)
		b.equal("one that does not wait comes not before them", b.try(first, 1, 0), false)
		all.Wait()
		b.equal("order", strings.Join(order, " "), "a b c d")
		for _, key := range []string{QueueName("l"), DeadlinesName("l")} {
			b.equal(key, b.m.Exists(key), false)
		}
	})
}

func TestTheDeadLeaveTheQueueWithinAHeartbeat(t *testing.T) {
	bubble(t, func(b *bench) {
		holder, dead, next := b.lock("a", true), b.lock("dead", true), b.lock("c", true)
		b.hold(holder, 1, 0)
		go func() { _ = dead.Lock(background, 1, lockimpl.LockOptions{}) }()
		time.Sleep(time.Second)
		b.must(dead.c.Close())
		unlocked := make(chan struct{})
		time.AfterFunc(10*time.Millisecond, func() {
			b.unlock(holder, 1, lockimpl.Released)
			close(unlocked)
		})
		from := time.Now()
		b.hold(next, 1, 0)
		<-unlocked
		b.equal("within a heartbeat and a poll", time.Since(from) <= DefaultHeartbeat+pollEvery, true)
	})
}

func TestWhoLeavesLeavesNothing(t *testing.T) {
	bubble(t, func(b *bench) {
		a, c := b.lock("a", true), b.lock("c", true)
		b.hold(a, 1, 0)
		b.equal("timed out", b.try(c, 1, time.Second), false)
		b.equal("after its wait", time.Since(b.start), time.Second)
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if err := c.Lock(ctx, 2, lockimpl.LockOptions{}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lockimpl.ErrUnknownOutcome) {
			t.Errorf("a context that ended: %v", err)
		}
		b.equal("queue", b.m.Exists(QueueName("l")), false)
		b.equal("one trip for each", slices.Contains(b.unknown, "leave"), false)
		b.unlock(a, 1, lockimpl.Released)
		b.equal("free", b.try(c, 1, 0), true)
	})
}

// A waiter that is in front of a free lock when its time is up takes the lock, since others waited
// behind it.
func TestAtLastAFreeLockIsTaken(t *testing.T) {
	for _, c := range []struct {
		what    string
		lost    int  // replies to leave
		unheard bool // it takes the lock and does not learn that, although no reply is lost
		granted bool
		errs    []error                      // all the errors that the call's error wraps; none: the call succeeds
		end     func(l *Lock, cancel func()) // ends the wait before its time
		frees   time.Duration                // when the lock is free
		others  bool                         // whether others wait before it
		closes  bool                         // whether the client closes with the first lost reply
		again   func(b *bench, l *Lock)      // called before leave runs for the second time
	}{
		{what: "its time is up", frees: 900 * ms, granted: true},
		{what: "it learns so when asking again", frees: 900 * ms, lost: 1, granted: true},
		{what: "it does not learn it", frees: 900 * ms, lost: 2, errs: []error{lockimpl.ErrUnknownOutcome}},
		{what: "the client closes while it leaves, and may have taken it", frees: 900 * ms, lost: 1, closes: true, errs: []error{lockimpl.ErrClosed, lockimpl.ErrUnknownOutcome}},
		{what: "go-redis asks again", frees: 900 * ms, again: func(*bench, *Lock) {}, granted: true},
		{what: "go-redis asks again when it was taken away", frees: 900 * ms, again: func(b *bench, _ *Lock) { b.m.Del("l") }, errs: []error{lockimpl.ErrHoldLost}},
		{what: "go-redis asks again when it is too late, and the client closes", frees: 900 * ms, unheard: true,
			end: func(l *Lock, _ func()) { l.c.clock.said(time.Now().Add(-500 * ms).UnixMilli()) },
			again: func(b *bench, l *Lock) {
				time.Sleep(600 * ms)
				b.again = func() { _ = l.c.Close(); b.m.SetError("LOADING") }
			},
			errs: []error{lockimpl.ErrClosed, lockimpl.ErrUnknownOutcome}},
		{what: "it asks so late that nobody waits for the answer", frees: 900 * ms, end: func(l *Lock, _ func()) { l.c.clock.said(time.Now().Add(-2 * time.Second).UnixMilli()) }},
		{what: "it is not free", frees: time.Minute},
		{what: "others are in front", frees: 900 * ms, others: true},
		{what: "it is not wanted any more", frees: 900 * ms, end: func(_ *Lock, cancel func()) { cancel() }, errs: []error{context.Canceled}},
		{what: "the client closes", frees: 900 * ms, end: func(l *Lock, _ func()) { _ = l.c.Close() }, errs: []error{lockimpl.ErrClosed}},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(b *bench) {
				if c.unheard {
					b.retries = 1
				}
				holder, before, l := b.lock("a", true), b.lock("before", true), b.lock("c", true)
				b.lose["leave"] = c.lost
				if c.again != nil {
					b.again = func() { c.again(b, l) }
				}
				if c.closes {
					b.lost = func() { _ = l.c.Close(); b.m.SetError("LOADING") }
				}
				b.hold(holder, 1, 0)
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				if c.others {
					go func() { _ = before.Lock(ctx, 1, lockimpl.LockOptions{}) }()
					time.Sleep(ms)
				}
				time.AfterFunc(c.frees, func() {
					b.m.Del("l") // and no waiter is woken
					_ = before.c.Close()
				})
				if c.end != nil {
					time.AfterFunc(950*ms, func() { c.end(l, cancel) })
				}
				got, err := l.TryLockTimed(ctx, 1, lockimpl.TryOptions{Wait: 990 * ms})
				b.equal("granted", got, c.granted)
				b.equal("failed", err != nil, len(c.errs) > 0)
				for _, want := range c.errs {
					b.equal(want.Error(), errors.Is(err, want), true)
				}
				b.equal("held", b.m.Exists("l"), c.granted || c.lost > 0 || c.unheard || c.frees > time.Second)
			})
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	bubble(t, func(b *bench) {
		c := b.client("a")
		l, err := c.NewLock("l")
		b.must(err)
		_, nameless := c.NewLock("")
		_, negative := l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: -1})
		_, hasty := NewClient(c.rdb, Config{Heartbeat: time.Millisecond})
		for what, err := range map[string]error{
			"a lock without a name": nameless, "a negative wait": negative, "a heartbeat of a millisecond": hasty,
			"a lease of a microsecond": l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Microsecond}),
		} {
			if !errors.Is(err, lockimpl.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		b.must(c.Close())
		if err := l.Lock(background, 1, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrClosed) {
			t.Errorf("a closed client: %v", err)
		}
	})
}

func TestAServerThatRefusesIsBelieved(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		b.hold(l, 1, time.Second)
		b.m.SetError("NOPERM this user has no permissions")
		err := l.Lock(background, 2, lockimpl.LockOptions{})
		if err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("got %v", err)
		}
		b.equal("soon", time.Since(b.start) < 2*time.Second, true)
	})
}

// silence is a server that answers nothing until an instant. After it, the server answers that it
// knows no script.
type silence struct {
	until time.Time
	texts int // scripts that were sent as text
}

func (s *silence) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *silence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *silence) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && time.Now().Before(s.until) {
			time.Sleep(time.Until(s.until))
			cmd.SetErr(redis.ErrNoScript)
			return cmd.Err()
		}
		err := next(ctx, cmd)
		if cmd.Name() == "eval" && ctx.Err() == nil {
			s.texts++
		}
		return err
	}
}

// A server that comes back without its scripts gets at most one text from a waiter, although the
// waiter has given up several earlier attempts.
func TestWhatNobodyWaitsForIsNotSentAgain(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		s := &silence{until: b.start.Add(10 * time.Second)}
		l.c.rdb.AddHook(s)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		synctest.Wait()
		b.equal("texts", s.texts, 1)
	})
}
