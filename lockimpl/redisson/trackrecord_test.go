package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/lockimpl"
)

// The track record: faults that users of the library reported, each played with one schedule on
// every release. Exactly the releases that have the fault show it.

// shownBy plays a story on every release, and checks which releases show its fault.
func shownBy(t *testing.T, versions string, fair bool, shown func(b *bench, k kind) bool) {
	t.Helper()
	eachRelease(t, func(b *bench, rel *Release) {
		got, want := shown(b, kind{rel, fair}), rel.isOneOf(versions)
		if got != want {
			b.t.Errorf("the fault shows: %v; want %v (the releases in which it does: %s)", got, want, versions)
		}
	})
}

const (
	allReleases   = "3.4.2 3.11.0 3.12.4 3.21.3 3.43.0 4.7.0"
	allButNewest  = "3.4.2 3.11.0 3.12.4 3.21.3 3.43.0"
	allButOldest  = "3.11.0 3.12.4 3.21.3 3.43.0 4.7.0"
	sendsAllAgain = "3.11.0 3.12.4 3.21.3"
)

// losesFirst loses the reply to the next run of a script. The script must be on the server already,
// or a release with a script cache would lose the reply NOSCRIPT.
func (b *bench) losesFirst(script Script) {
	done := false
	b.answer(func(c command) fate {
		if done || c.script != script.Name {
			return fate{}
		}
		done = true
		return fate{lost: true}
	})
}

// prime lets a client run acquire and unlock once, so that the server knows
// the scripts.
func (b *bench) prime(c *Client, k kind) {
	b.t.Helper()
	l := b.lock(c, k, "primed")
	b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
	b.released(lockimpl.Released)(l.Unlock(background, 1))
}

func TestIssue2018UnlockOfAFreeLockIsAccepted(t *testing.T) {
	story := func(b *bench, k kind) bool {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
		b.until(2 * time.Second)
		_, err := l.Unlock(background, 1)
		if err != nil && !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Error(err)
		}
		return err == nil
	}
	t.Run("plain", func(t *testing.T) { shownBy(t, "3.4.2", false, story) })
	t.Run("fair, by design", func(t *testing.T) { shownBy(t, allReleases, true, story) })
}

func TestIssue4871ALostReplyToUnlockTakesTwoLevels(t *testing.T) {
	shownBy(t, sendsAllAgain, false, func(b *bench, k kind) bool {
		c := b.client(k.Release, "c1")
		b.prime(c, k)
		l := b.lock(c, k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.losesFirst(k.Unlock)
		_, _ = l.Unlock(background, 1)
		return len(b.held("x")) == 0
	})
}

// The same with one level: the second run finds no hold, and the call says that its caller was not
// the owner.
func TestIssue4871ALostReplyToUnlockAccusesTheOwner(t *testing.T) {
	shownBy(t, sendsAllAgain, false, func(b *bench, k kind) bool {
		c := b.client(k.Release, "c1")
		b.prime(c, k)
		l := b.lock(c, k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.losesFirst(k.Unlock)
		_, err := l.Unlock(background, 1)
		accused := errors.Is(err, lockimpl.ErrNotHeld)
		if !accused && !errors.Is(err, lockimpl.ErrUnknownOutcome) {
			b.t.Errorf("unlock gave %v; want an unknown outcome", err)
		}
		return accused
	})
}

// Thanks to the latch, a request that is sent again gets the same answer and takes no level. The
// two releases with a latch do not send it again themselves.
func TestTheLatchAnswersARequestThatWasSentAgain(t *testing.T) {
	each(t, func(b *bench, k kind) {
		if !k.isOneOf("3.43.0 4.7.0") {
			return // no latch
		}
		c := b.client(k.Release, "c1")
		b.prime(c, k)
		l := b.lock(c, k, "x").(*lock)
		for range 3 {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		}
		for range 2 {
			r := l.run(background, l.unlock, operands{owner: 1, lease: time.Minute, request: "r"})
			if n, ok := r.long(); n != 0 || !ok {
				b.t.Errorf("unlock gave %+v; want 0", r)
			}
			same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "2"})
		}
	})
}

func TestIssue6025ALostReplyToAcquireCountsTwice(t *testing.T) {
	shownBy(t, sendsAllAgain, false, func(b *bench, k kind) bool {
		c := b.client(k.Release, "c1")
		b.prime(c, k)
		b.losesFirst(k.Acquire)
		err := b.lock(c, k, "x").Lock(background, 1, lockimpl.LockOptions{})
		count := b.held("x")["c1:1"]
		if twice := count == "2"; twice != (err == nil) || !twice && count != "1" {
			b.t.Errorf("lock gave %v with a count of %s", err, count)
		}
		return count == "2"
	})
}

func TestIssue1602AFailedUnlockIsRenewedForever(t *testing.T) {
	shownBy(t, "3.4.2", false, func(b *bench, k kind) bool {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(func(c command) fate { return fate{never: c.script == k.Unlock.Name} })
		if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
			b.t.Errorf("unlock gave %v", err)
		}
		b.answer(nil)
		b.until(10 * time.Minute)
		return len(b.held("x")) > 0
	})
}

func TestIssue5698OneFailedRenewalEndsIt(t *testing.T) {
	shownBy(t, allButNewest, false, func(b *bench, k kind) bool {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(15 * time.Second)
		b.answer(refuses(k.Renew))
		b.until(25 * time.Second)
		b.answer(nil)
		b.until(2 * time.Minute)
		return len(b.held("x")) == 0
	})
}

func TestIssue3712AKeyThatWasRemovedIsNeverRenewedAgain(t *testing.T) {
	shownBy(t, "3.11.0 3.12.4", false, func(b *bench, k kind) bool {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5 * time.Second)
		b.m.Del("x")
		b.until(15 * time.Second)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5 * time.Minute)
		return len(b.held("x")) == 0
	})
}

func TestIssue1593AnInterruptedLockReturnsUnlocked(t *testing.T) {
	for _, fair := range []bool{false, true} {
		shownBy(t, "3.4.2", fair, func(b *bench, k kind) bool {
			b.must(b.lock(b.client(k.Release, "c1"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
			ctx, cancel := context.WithCancel(background)
			c2 := b.client(k.Release, "c2")
			lock := b.beginLock(ctx, b.lock(c2, k, "x"), 1, lockimpl.LockOptions{})
			b.until(time.Second)
			cancel()
			b.until(2 * time.Second)
			if !lock.ended() {
				b.must(c2.Close())
				return false
			}
			return lock.err == nil && b.held("x")["c2:1"] == ""
		})
	}
}

func TestIssues2714And4368AnInterruptedTryLockIsRenewedForever(t *testing.T) {
	shownBy(t, allButOldest, false, func(b *bench, k kind) bool {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.answer(func(c command) fate {
			if c.script == k.Acquire.Name {
				return fate{late: time.Second}
			}
			return fate{}
		})
		ctx, cancel := context.WithCancel(background)
		try := b.begin(func() (bool, error) { return l.TryLock(ctx, 1) })
		cancel()
		try.wait()
		b.until(10 * time.Minute)
		return try.err != nil && !try.ok && b.held("x")["c1:1"] == "1"
	})
}

func TestIssue5623APartialUnlockStretchesTheLease(t *testing.T) {
	shownBy(t, "3.21.3", false, func(b *bench, k kind) bool {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		for range 3 {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		}
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		same(b.t, "time to live after the first unlock", b.m.TTL("x"), 10*time.Second)
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		ttl := b.m.TTL("x")
		if ttl != 10*time.Second && ttl != 30*time.Second {
			b.t.Errorf("time to live after the second unlock: %v", ttl)
		}
		return ttl == 30*time.Second
	})
}

// Three threads try again and again under a held lock, each for 500 ms; no
// deadline may be further away than the lock's time to live and three waits.
func TestIssue1104DeadlinesDrift(t *testing.T) {
	shownBy(t, "3.4.2", true, func(b *bench, k kind) bool {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		var calls []*call
		for i := range 3 {
			l := b.lock(b.client(k.Release, fmt.Sprint("c", i+1)), k, "x")
			calls = append(calls, b.begin(func() (bool, error) {
				for b.now() < 30*time.Second {
					if ok, err := l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 500 * time.Millisecond, Lease: 30 * time.Second}); ok || err != nil {
						return ok, err
					}
				}
				return false, nil
			}))
			b.until(b.now() + 100*time.Millisecond)
		}
		b.until(30 * time.Second)
		drifted := false
		for _, score := range b.scores(DeadlinesName("x")) {
			ahead := time.Duration(score-float64(time.Now().UnixMilli())) * time.Millisecond
			drifted = drifted || ahead > 30*time.Second+3*5*time.Second
		}
		for _, c := range calls {
			c.wait()
			b.must(c.err)
		}
		same(b.t, "queue after all have left", b.queue(), nil)
		return drifted
	})
}

func TestIssue2099TheThirdWaiterSharesADeadline(t *testing.T) {
	shownBy(t, "3.4.2 3.11.0", true, func(b *bench, k kind) bool {
		b.must(b.lock(b.client(k.Release, "a"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 20 * time.Second}))
		var calls []*call
		for _, id := range []string{"b", "c", "d"} {
			l := b.lock(b.client(k.Release, id), k, "x")
			calls = append(calls, b.begin(func() (bool, error) {
				return l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 5 * time.Second, Lease: time.Second})
			}))
		}
		queue := b.queue()
		for _, c := range calls {
			c.refusedAt(5 * time.Second)
		}
		shared := slices.Equal(queue, []string{"b:1 at 25", "c:1 at 30", "d:1 at 30"})
		if !shared {
			same(b.t, "queue", queue, []string{"b:1 at 25", "c:1 at 30", "d:1 at 35"})
		}
		return shared
	})
}

// A's lease ends at 1 s, B's at 2 s, and nobody unlocks; C must enter then.
func TestIssue4705TheHeadSleepsPastTheExpiry(t *testing.T) {
	shownBy(t, "3.4.2 3.11.0 3.12.4 3.21.3", true, func(b *bench, k kind) bool {
		b.must(b.lock(b.client(k.Release, "a"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
		try := func(id string, wait time.Duration) *call {
			l := b.lock(b.client(k.Release, id), k, "x")
			b.until(b.now() + 10*time.Millisecond)
			return b.begin(func() (bool, error) {
				return l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: wait, Lease: time.Second})
			})
		}
		second, third := try("b", 10*time.Second), try("c", 4*time.Second)
		second.grantedAt(time.Second)
		third.wait()
		b.must(third.err)
		return !third.ok || third.at != 2*time.Second
	})
}

// A has left, and an operator deletes the deadlines while B waits. When C comes, a script fails (up
// to 3.44), or B queues a second time (later), and one of its two places is never purged.
func TestIssues4153And5989AWaiterWithoutADeadline(t *testing.T) {
	shownBy(t, allReleases, true, func(b *bench, k kind) bool {
		b.must(b.lock(b.client(k.Release, "a"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		c1, c2 := b.client(k.Release, "b"), b.client(k.Release, "c")
		first := b.beginLock(background, b.lock(c1, k, "x"), 1, lockimpl.LockOptions{})
		b.until(5 * time.Second)
		b.m.Del(DeadlinesName("x"))
		late := b.beginLock(background, b.lock(c2, k, "x"), 1, lockimpl.LockOptions{})
		b.until(5500 * time.Millisecond)
		if late.ended() {
			b.failedOnNil("lock", late.err)
			b.must(c1.Close())
			return true
		}
		b.until(31 * time.Second)
		queue := b.queue()
		b.must(c1.Close())
		b.must(c2.Close())
		first.wait()
		return slices.Contains(queue, "b:1 without deadline") || len(queue) == 3 && strings.HasPrefix(queue[2], "b:1 ")
	})
}

// B's 10 SECONDS are queued as 10 ms: by the time that A unlocks, C is in front. Up to 3.12.4 the
// wait does not come from the caller, so no unit is lost.
func TestIssue4743TheUnitOfTheWaitIsLost(t *testing.T) {
	shownBy(t, "3.21.3 3.43.0 4.7.0", true, func(b *bench, k kind) bool {
		short := func(cfg *Config) { cfg.WatchdogTimeout = 9 * time.Second }
		a := b.lock(b.client(k.Release, "a", short), k, "x")
		b.must(a.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(time.Second)
		second := b.lock(b.client(k.Release, "b", short), k, "x")
		try := b.begin(func() (bool, error) {
			return second.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 10 * time.Second, Unit: time.Second})
		})
		b.until(2 * time.Second)
		c := b.client(k.Release, "c", short)
		third := b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
		b.answer(func(command) fate { return fate{late: time.Millisecond} }) // a waiter that is told 0 asks at once
		b.until(10 * time.Second)
		_, _ = a.Unlock(background, 1)
		b.until(10500 * time.Millisecond)
		overtaken := third.ended() && third.err == nil
		if !overtaken && !(try.ended() && try.ok) {
			b.t.Error("nobody took the lock")
		}
		b.must(c.Close())
		try.wait()
		return overtaken
	})
}

func TestIssue5019AReplyTimeoutLeavesAGhostInTheQueue(t *testing.T) {
	shownBy(t, allButNewest, true, func(b *bench, k kind) bool {
		b.must(b.lock(b.client(k.Release, "a"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		l := b.lock(b.client(k.Release, "b"), k, "x")
		attempts := 0
		b.answer(func(c command) fate {
			if c.client != "b" || c.script != k.FairAcquire.Name {
				return fate{}
			}
			attempts++
			return fate{lost: attempts > 1} // every resend too
		})
		try := b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 10 * time.Second, Lease: time.Second})
		})
		try.wait()
		ghost := len(b.queue()) > 0
		if ghost == (try.err == nil) {
			b.t.Errorf("try gave %v, %v; the queue is %v", try.ok, try.err, b.queue())
		}
		return ghost
	})
}

// Five waiters die, in the order of the queue. A waiter behind them waits for the sum of their
// waits. Up to 3.11.0 all but the first share one deadline.
func TestIssue4595DeadWaitersAddUp(t *testing.T) {
	shownBy(t, "3.12.4 3.21.3 3.43.0 4.7.0", true, func(b *bench, k kind) bool {
		wait := byRelease[time.Duration]{
			"3.4.2 3.11.0 3.12.4": 5 * time.Second, "3.21.3 3.43.0 4.7.0": 300 * time.Second,
		}.forRelease(b.t, k.Release)
		b.must(b.lock(b.client(k.Release, "a"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		for i := range 5 {
			c := b.client(k.Release, fmt.Sprint("dead", i))
			b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
			b.must(c.Close())
		}
		// A waiter that is told 0 asks at once, so an answer must take time.
		b.answer(func(c command) fate {
			if c.client == "alive" && c.script != "" && c.at > 0 {
				return fate{late: 2 * time.Second}
			}
			return fate{}
		})
		lock := b.beginLock(background, b.lock(b.client(k.Release, "alive"), k, "x"), 1, lockimpl.LockOptions{})
		lock.wait()
		b.must(lock.err)
		atOnce := lock.at >= 20*time.Second && lock.at <= 25*time.Second
		if added := lock.at >= 10*time.Second+5*wait && lock.at <= 15*time.Second+5*wait; added == atOnce {
			b.t.Errorf("granted at %v", lock.at)
		}
		return !atOnce
	})
}
