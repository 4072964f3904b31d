package redisson

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
)

// eachFair runs f in a bubble for the fair lock of every release.
func eachFair(t *testing.T, f func(b *bench, k kind)) {
	t.Helper()
	eachRelease(t, func(b *bench, rel *Release) { f(b, kind{rel, true}) })
}

// queue returns the waiters of "x", head first, each with its deadline in seconds after the bench's
// start.
func (b *bench) queue() (waiters []string) {
	b.t.Helper()
	synctest.Wait()
	owners, _ := b.m.List(QueueName("x"))
	scores := b.scores(DeadlinesName("x"))
	for _, o := range owners {
		score, ok := scores[o]
		if !ok {
			waiters = append(waiters, o+" without deadline")
			continue
		}
		delete(scores, o)
		waiters = append(waiters, fmt.Sprintf("%s at %g", o, (score-float64(b.start.UnixMilli()))/1000))
	}
	for o := range scores {
		waiters = append(waiters, o+" not queued")
	}
	return waiters
}

// KEYS and ARGV of the fair lock's scripts, in order. The order differs between the lock form
// (wait, now) and the tryLock form (now, wait).
func TestKeysAndArgumentsOfTheFairLock(t *testing.T) {
	for _, name := range []struct{ name, tag string }{{"x", "{x}"}, {"a{b}c", "a{b}c"}} {
		t.Run(name.name, func(t *testing.T) {
			eachFair(t, func(b *bench, k kind) {
				b.until(5 * time.Second)
				later := func(d time.Duration) string { return fmt.Sprint(b.start.UnixMilli() + 5000 + d.Milliseconds()) }
				now := later(0)
				hash := []string{name.name, "redisson_lock_queue:" + name.tag, "redisson_lock_timeout:" + name.tag}
				channel := "redisson_lock__channel:" + name.tag
				l := b.lock(b.client(k.Release, "c1"), k, name.name)
				last := func(script Script) command {
					b.t.Helper()
					runs := b.runs("c1", script.Name)
					if len(runs) == 0 {
						b.t.Fatalf("%s was not run", script.Name)
					}
					return runs[len(runs)-1]
				}
				check := func(script Script, keys, args []string) {
					b.t.Helper()
					same(b.t, script.Name+" keys", last(script).keys, keys)
					same(b.t, script.Name+" arguments", last(script).args, args)
				}
				// acquire has the arguments of the lock form after lease and owner, and leave the
				// arguments of leaving after the owner: with the wait of the release, and with a
				// wait of 4 s that the caller names.
				type waits struct{ acquire, leave []string }
				const oldest = "3.4.2 3.11.0" // F1 to F3
				own := byRelease[waits]{
					"3.4.2":               {[]string{later(5 * time.Second), now}, nil},
					"3.11.0":              {[]string{later(5 * time.Second), now}, []string{"5000"}},
					"3.12.4":              {[]string{"5000", now}, []string{"5000"}},
					"3.21.3 3.43.0 4.7.0": {[]string{"300000", now}, []string{"300000"}},
				}.forRelease(b.t, k.Release)
				named := own
				if !k.isOneOf(oldest + " 3.12.4") {
					named = waits{[]string{"4000", now}, []string{"4000"}}
				}
				tried := byRelease[[]string]{
					oldest:                {now},
					"3.12.4":              {now, "5000"},
					"3.21.3 3.43.0 4.7.0": {now, "300000"},
				}.forRelease(b.t, k.Release)
				// What the lock object's lease field gives the no-argument tryLock
				// and the unlock: up to 3.12.4 it is every attempt's own.
				field := byRelease[struct{ try, unlock string }]{
					oldest + " 3.12.4":    {"30000", "60000"},
					"3.21.3 3.43.0 4.7.0": {"20000", "20000"},
				}.forRelease(b.t, k.Release)
				latch := "redisson_unlock_latch:" + name.tag + ":" + fmt.Sprintf("%032d", 1)
				unlock := byRelease[struct{ keys, args []string }]{
					oldest + " 3.12.4 3.21.3": {},
					"3.43.0":                  {[]string{latch}, []string{"PUBLISH", "13500"}},
					"4.7.0":                   {[]string{latch}, []string{"PUBLISH", "18000"}},
				}.forRelease(b.t, k.Release)
				force := byRelease[[]string]{
					oldest + " 3.12.4 3.21.3": {"0", now},
					"3.43.0 4.7.0":            {"0", now, "PUBLISH"},
				}.forRelease(b.t, k.Release)
				with := func(list []string, more ...string) []string { return slices.Concat(list, more) }

				b.must(l.Lock(background, 7, lockimpl.LockOptions{Lease: 20 * time.Second}))
				check(k.FairAcquire, hash, with([]string{"20000", "c1:7"}, own.acquire...))
				b.tried(false)(l.TryLock(background, 8))
				check(k.FairTryAcquire, hash, with([]string{field.try, "c1:8"}, tried...))
				b.tried(false)(l.TryLockTimed(background, 8, lockimpl.TryOptions{Lease: time.Minute}))
				check(k.FairAcquire, hash, with([]string{"60000", "c1:8"}, own.acquire...))
				check(k.FairLeave, hash[1:], with([]string{"c1:8"}, own.leave...))
				b.released(lockimpl.Released)(l.Unlock(background, 7))
				check(k.FairUnlock, with(with(hash, channel), unlock.keys...), with([]string{"0", field.unlock, "c1:7", now}, unlock.args...))
				b.tried(false)(l.ForceUnlock(background))
				check(k.FairForceUnlock, with(hash, channel), force)
				b.must(l.Lock(background, 7, lockimpl.LockOptions{}))
				waiter := b.begin(func() (bool, error) {
					return l.TryLockTimed(background, 8, lockimpl.TryOptions{Wait: 4 * time.Second, Lease: time.Minute})
				})
				check(k.FairAcquire, hash, with([]string{"60000", "c1:8"}, named.acquire...))
				same(b.t, "channels", b.channels(), []string{channel + ":c1:8"})
				waiter.refusedAt(9 * time.Second)
				check(k.FairLeave, hash[1:], with([]string{"c1:8"}, named.leave...))
			})
		})
	}
}

// waitOf returns the wait, in ms, in the arguments of a run of the lock form. Up to 3.11.0 the
// deadline includes it.
func waitOf(t *testing.T, rel *Release, run command) string {
	t.Helper()
	if !rel.isOneOf("3.4.2 3.11.0") {
		return run.args[2]
	}
	deadline, err1 := strconv.Atoi(run.args[2])
	now, err2 := strconv.Atoi(run.args[3])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return strconv.Itoa(deadline - now)
}

// Up to 3.12.4 all wait for 5 s, whatever wait they name. Later releases, without a lease, give the
// script the number in the caller's unit as if it were in milliseconds (issue 4743). Leaving the
// queue uses the correct wait.
func TestUnitOfTheWait(t *testing.T) {
	for _, c := range []struct {
		what           string
		opt            lockimpl.TryOptions
		enqueue, leave string
	}{
		{"milliseconds", lockimpl.TryOptions{Wait: 3 * time.Second}, "3000", "3000"},
		{"seconds", lockimpl.TryOptions{Wait: 3 * time.Second, Unit: time.Second}, "3", "3000"},
		{"seconds with a lease", lockimpl.TryOptions{Wait: 3 * time.Second, Unit: time.Second, Lease: time.Minute}, "3000", "3000"},
		{"no wait", lockimpl.TryOptions{}, "300000", "300000"},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachFair(t, func(b *bench, k kind) {
				enqueue, leave := c.enqueue, c.leave
				if k.isOneOf("3.4.2 3.11.0 3.12.4") {
					enqueue, leave = "5000", "5000"
				}
				b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
				b.tried(false)(b.lock(b.client(k.Release, "c1"), k, "x").TryLockTimed(background, 1, c.opt))
				same(b.t, "time", b.now(), c.opt.Wait)
				same(b.t, "wait of the attempt", waitOf(b.t, k.Release, b.runs("c1", k.FairAcquire.Name)[0]), enqueue)
				if !k.isOneOf("3.4.2") { // its leave script takes no wait
					same(b.t, "wait of leaving", b.runs("c1", k.FairLeave.Name)[0].args[1], leave)
				}
			})
		})
	}
}

func TestFairWaitIsTheClientsToChoose(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		c := b.client(k.Release, "c1", func(cfg *Config) { cfg.FairWait = 7 * time.Second })
		b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
		same(b.t, "queue", b.queue(), []string{"c1:1 at 37"})
		b.must(c.Close())
	})
}

// Since 3.11.1 a waiter's deadline is the lock's time to live when the first waiter came, plus the
// waits of all waiters up to and including this one. Before, each waiter but the first has its
// deadline one wait after the first waiter's (issue 2099).
func TestDeadlinesAreChained(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		rule := byRelease[struct{ queued, first, second []string }]{
			"3.4.2 3.11.0": {
				[]string{"c1:1 at 25", "c2:1 at 30", "c3:1 at 30"},
				[]string{"c2:1 at 30", "c3:1 at 30"}, // an acquire moves no deadline
				[]string{"c3:1 at 30"},
			},
			"3.12.4": { // its wait is 5 s whatever the caller names
				[]string{"c1:1 at 25", "c2:1 at 30", "c3:1 at 35"},
				[]string{"c2:1 at 25", "c3:1 at 30"}, // an acquire subtracts its wait from all deadlines behind it
				[]string{"c3:1 at 25"},
			},
			"3.21.3 3.43.0 4.7.0": {
				[]string{"c1:1 at 120", "c2:1 at 170", "c3:1 at 370"},
				[]string{"c2:1 at 70", "c3:1 at 270"},
				[]string{"c3:1 at 220"},
			},
		}.forRelease(b.t, k.Release)
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 20 * time.Second}))
		var calls []*call
		for o, wait := range []time.Duration{100 * time.Second, 50 * time.Second, 200 * time.Second} {
			l := b.lock(b.client(k.Release, fmt.Sprint("c", o+1)), k, "x")
			calls = append(calls, b.begin(func() (bool, error) {
				return l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: wait, Lease: time.Second})
			}))
			b.until(b.now() + time.Second)
		}
		same(b.t, "queue", b.queue(), rule.queued)
		b.m.Publish(WaiterChannel("x", "c2:1"), "0") // it asks again
		same(b.t, "queue after a retry", b.queue(), rule.queued)

		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		calls[0].grantedAt(3 * time.Second)
		same(b.t, "queue after an acquire", b.queue(), rule.first)
		b.released(lockimpl.Released)(b.lock(b.client(k.Release, "c1"), k, "x").Unlock(background, 1))
		calls[1].grantedAt(3 * time.Second)
		same(b.t, "queue after an acquire", b.queue(), rule.second)
		b.released(lockimpl.Released)(b.lock(b.client(k.Release, "c2"), k, "x").Unlock(background, 1))
		calls[2].grantedAt(3 * time.Second)
		same(b.t, "queue after an acquire", b.queue(), nil)
		same(b.t, "keys", b.keys(), []string{"x"})
	})
}

// Up to 3.11.0 a waiter writes its deadline again each time it asks; later it keeps the first one.
func TestWhetherAskingAgainMovesADeadline(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		rule := byRelease[[2]string]{
			"3.4.2 3.11.0":        {"c1:1 at 25", "c1:1 at 69"},
			"3.12.4":              {"c1:1 at 25", "c1:1 at 25"},
			"3.21.3 3.43.0 4.7.0": {"c1:1 at 320", "c1:1 at 320"},
		}.forRelease(b.t, k.Release)
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 20 * time.Second}))
		c := b.client(k.Release, "c1")
		b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
		same(b.t, "queue", b.queue(), []string{rule[0]})
		b.until(4 * time.Second)
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		b.m.Publish(WaiterChannel("x", "c1:1"), "0")
		same(b.t, "queue after it asked again", b.queue(), []string{rule[1]})
		b.must(c.Close())
	})
}

// Since 3.11.1 a waiter that leaves moves the deadlines behind it up by one wait, and none in
// front. In 3.11.0 the head moves all deadlines when it leaves. Before, leaving moves none.
func TestWhomLeavingMovesUp(t *testing.T) {
	for _, c := range []struct {
		what   string
		tries  lockimpl.Owner // the owner that leaves; the others call lock()
		before byRelease[[]string]
		after  byRelease[[]string]
	}{
		{
			"the second leaves", 2,
			byRelease[[]string]{
				"3.4.2 3.11.0":        {"c1:1 at 3605", "c1:2 at 3610", "c1:3 at 3610", "c1:4 at 3610"},
				"3.12.4":              {"c1:1 at 3605", "c1:2 at 3610", "c1:3 at 3615", "c1:4 at 3620"},
				"3.21.3 3.43.0 4.7.0": {"c1:1 at 3900", "c1:2 at 3940", "c1:3 at 4240", "c1:4 at 4540"},
			},
			byRelease[[]string]{
				"3.4.2 3.11.0":        {"c1:1 at 3605", "c1:3 at 3610", "c1:4 at 3610"},
				"3.12.4":              {"c1:1 at 3605", "c1:3 at 3610", "c1:4 at 3615"},
				"3.21.3 3.43.0 4.7.0": {"c1:1 at 3900", "c1:3 at 4200", "c1:4 at 4500"},
			},
		},
		{
			"the head leaves", 1,
			byRelease[[]string]{
				"3.4.2 3.11.0":        {"c1:1 at 3605", "c1:2 at 3610", "c1:3 at 3610", "c1:4 at 3610"},
				"3.12.4":              {"c1:1 at 3605", "c1:2 at 3610", "c1:3 at 3615", "c1:4 at 3620"},
				"3.21.3 3.43.0 4.7.0": {"c1:1 at 3640", "c1:2 at 3940", "c1:3 at 4240", "c1:4 at 4540"},
			},
			byRelease[[]string]{
				"3.4.2":               {"c1:2 at 3610", "c1:3 at 3610", "c1:4 at 3610"},
				"3.11.0":              {"c1:2 at 3605", "c1:3 at 3605", "c1:4 at 3605"},
				"3.12.4":              {"c1:2 at 3605", "c1:3 at 3610", "c1:4 at 3615"},
				"3.21.3 3.43.0 4.7.0": {"c1:2 at 3900", "c1:3 at 4200", "c1:4 at 4500"},
			},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachFair(t, func(b *bench, k kind) {
				b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Hour}))
				client := b.client(k.Release, "c1")
				l := b.lock(client, k, "x")
				var try *call
				for o := range lockimpl.Owner(4) {
					if o+1 != c.tries {
						b.beginLock(background, l, o+1, lockimpl.LockOptions{})
						continue
					}
					try = b.begin(func() (bool, error) {
						return l.TryLockTimed(background, o+1, lockimpl.TryOptions{Wait: 40 * time.Second})
					})
				}
				same(b.t, "queue", b.queue(), c.before.forRelease(b.t, k.Release))
				try.refusedAt(40 * time.Second)
				same(b.t, "queue", b.queue(), c.after.forRelease(b.t, k.Release))
				b.must(client.Close())
			})
		})
	}
}

// The next caller purges a dead waiter whose deadline has passed. The deadlines of the others stay.
func TestDeadWaitersArePurgedAtTheirDeadline(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		dead := b.client(k.Release, "c1", func(cfg *Config) { cfg.FairWait = 5 * time.Second })
		for o := range 2 {
			b.beginLock(background, b.lock(dead, k, "x"), lockimpl.Owner(o), lockimpl.LockOptions{})
		}
		b.must(dead.Close())
		// Once the lease is over, a waiter behind the dead ones is told to wait 0, and asks again
		// as soon as it is answered. An answer must take time, or simulated time never passes.
		b.answer(func(c command) fate {
			if c.client == "c2" && c.script != "" && c.at > 0 {
				return fate{late: 300 * time.Millisecond}
			}
			return fate{}
		})
		live := b.client(k.Release, "c2")
		lock := b.beginLock(background, b.lock(live, k, "x"), 1, lockimpl.LockOptions{})
		mine := byRelease[[2]string]{
			"3.4.2 3.11.0":        {"c2:1 at 20", "c2:1 at 25"}, // like the other waiter behind the first; it asks at 15 s
			"3.12.4":              {"c2:1 at 25", "c2:1 at 25"},
			"3.21.3 3.43.0 4.7.0": {"c2:1 at 320", "c2:1 at 320"},
		}.forRelease(b.t, k.Release)
		same(b.t, "queue", b.queue(), []string{"c1:0 at 15", "c1:1 at 20", mine[0]})
		// Nobody takes the free lock before the waiters in front, not even a caller that never
		// queues.
		passer := b.lock(b.client(k.Release, "c3"), k, "x")
		b.until(12 * time.Second)
		b.tried(false)(passer.TryLock(background, 1))
		b.until(15 * time.Second)
		b.tried(false)(passer.TryLock(background, 1))
		same(b.t, "queue", b.queue(), []string{"c1:1 at 20", mine[1]})
		b.until(20*time.Second - 1)
		b.tried(false)(passer.TryLock(background, 1))
		lock.wait()
		if lock.err != nil || lock.at < 20*time.Second || lock.at > 20700*time.Millisecond {
			b.t.Errorf("the live waiter's call ended at %v with %v; want it within two answers after 20s", lock.at, lock.err)
		}
		same(b.t, "queue", b.queue(), nil)
	})
}

// F8 tolerates a last waiter without a deadline; F7 does not (issue 5989). Before F7 the purge
// fails, too, when it finds such a waiter at the head (issue 4153).
func TestALastWaiterWithoutADeadline(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		if _, err := b.m.RPush(QueueName("x"), "dead:1"); err != nil {
			b.t.Fatal(err)
		}
		c := b.client(k.Release, "c1")
		call := b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
		if k.isOneOf("4.7.0") {
			same(b.t, "queue", b.queue(), []string{"dead:1 without deadline", "c1:1 at 310"})
			b.must(c.Close())
			return
		}
		call.wait()
		b.failedOnNil("lock", call.err)
		same(b.t, "queue", b.queue(), []string{"dead:1 without deadline"})
	})
}

// failedOnNil checks that a script failed since a deadline is missing.
func (b *bench) failedOnNil(what string, err error) {
	b.t.Helper()
	if err == nil || !strings.Contains(err.Error(), "nil") || errors.Is(err, lockimpl.ErrUnknownOutcome) {
		b.t.Errorf("%s: %v; want the script's error about nil", what, err)
	}
}

// In F6 and later, a head without a deadline stops the purge for ever. Before, every script that
// purges fails on it (issue 4153).
func TestAHeadWithoutADeadlineIsNeverPurged(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		if _, err := b.m.RPush(QueueName("x"), "dead:1"); err != nil {
			b.t.Fatal(err)
		}
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.until(1000 * time.Hour)
		if k.isOneOf("3.43.0 4.7.0") {
			b.tried(false)(l.TryLock(background, 1))
			b.released(lockimpl.Released)(l.Unlock(background, 1)) // of a free lock
			b.tried(false)(l.ForceUnlock(background))
		} else {
			b.failedOnNil("try lock", second(l.TryLock(background, 1)))
			b.failedOnNil("lock", l.Lock(background, 1, lockimpl.LockOptions{}))
			b.failedOnNil("unlock", second(l.Unlock(background, 1)))
			b.failedOnNil("force unlock", second(l.ForceUnlock(background)))
		}
		same(b.t, "queue", b.queue(), []string{"dead:1 without deadline"})
	})
}

// An attempt without a wait never queues, and re-entry always succeeds.
func TestTryLockNeverQueues(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.tried(false)(l.TryLock(background, 1))
		same(b.t, "keys", b.keys(), []string{"x"})
		c := b.client(k.Release, "c2")
		b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
		b.tried(true)(holder.TryLock(background, 1))
		same(b.t, "hash", b.held("x"), map[string]string{"c0:1": "2"})
		b.must(c.Close())
		b.must(b.lock(b.client(k.Release, "c3"), k, "y").Lock(background, 1, lockimpl.LockOptions{}))
		b.m.Del("x") // free, although somebody queues
		b.tried(false)(l.TryLock(background, 1))
		same(b.t, "hash", b.held("x"), map[string]string{})
	})
}

// A failed tryLock leaves no trace, so that a later tryLock(0) succeeds.
func TestAFailedTryLeavesNoTrace(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		b.tried(false)(b.lock(b.client(k.Release, "c1"), k, "x").TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Second}))
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		same(b.t, "keys", b.keys(), nil)
		b.tried(true)(b.lock(b.client(k.Release, "c2"), k, "x").TryLockTimed(background, 1, lockimpl.TryOptions{}))
	})
}

// Threads that start 10 ms apart acquire in that order.
func TestWaitersAcquireInTheOrderOfTheirArrival(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		var order []lockimpl.Owner
		var calls []*call
		clients := []*Client{b.client(k.Release, "c0"), b.client(k.Release, "c1"), b.client(k.Release, "c2")}
		for o := range lockimpl.Owner(12) {
			l := b.lock(clients[int(o)%len(clients)], k, "x")
			calls = append(calls, b.begin(func() (bool, error) {
				if err := l.Lock(background, o, lockimpl.LockOptions{}); err != nil {
					return false, err
				}
				order = append(order, o)
				time.Sleep(200 * time.Millisecond)
				_, err := l.Unlock(background, o)
				return true, err
			}))
			time.Sleep(10 * time.Millisecond)
		}
		for i, c := range calls {
			c.grantedAt(time.Duration(i+1) * 200 * time.Millisecond)
		}
		if !slices.IsSorted(order) {
			b.t.Errorf("acquired in the order %v", order)
		}
		same(b.t, "keys left", b.keys(), nil)
	})
}

// The time that an acquire answers to a waiter. A waiter that queues behind another is told the
// distance of a deadline: that of the first waiter up to 3.11.0, that of the last one later. A
// waiter that is already queued is told the same as the first time (up to 3.11.0), the distance of
// its own deadline less its wait (up to 3.31.0), or the lock's remaining time.
func TestWhatAWaiterIsTold(t *testing.T) {
	type told struct{ first, second, firstAgain, secondAgain, free, renewed time.Duration }
	const s = time.Second
	rules := byRelease[told]{
		"3.4.2 3.11.0": {10 * s, 15 * s, 6 * s, 11 * s, 5 * s, 48 * s},
		"3.12.4":       {10 * s, 15 * s, 6 * s, 11 * s, 5 * s, -2 * s}, // which means: wait without bound
		"3.21.3":       {10 * s, 310 * s, 6 * s, 306 * s, 300 * s, -2 * s},
		"3.43.0 4.7.0": {10 * s, 310 * s, 6 * s, 6 * s, 0, 48 * s},
	}
	eachFair(t, func(b *bench, k kind) {
		want := rules.forRelease(b.t, k.Release)
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x").(*lock)
		tell := func(o lockimpl.Owner) time.Duration {
			b.t.Helper()
			got, err := l.attempt(background, &acquisition{}, l.acquire, o, 0, 0)
			if got.granted || err != nil {
				b.t.Fatalf("attempt gave %v, %v", got, err)
			}
			return got.ttl
		}
		same(b.t, "the first who queues", tell(1), want.first)
		same(b.t, "the second", tell(2), want.second)
		b.until(4 * time.Second)
		same(b.t, "the first again", tell(1), want.firstAgain)
		same(b.t, "the second again", tell(2), want.secondAgain)
		b.until(10 * time.Second)
		same(b.t, "the second when the lock is free", tell(2), want.free)
		b.m.HSet("x", "c0:1", "1") // the holder took it again, out of turn
		b.m.SetTTL("x", 50*time.Second)
		b.until(12 * time.Second)
		same(b.t, "the first when the lock is held longer than it was", tell(1), want.renewed)
	})
}

// An unlock of a free lock "succeeds" for anyone, and wakes the head of the queue.
func TestUnlockOfAFreeFairLockWakesTheHead(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Hour}))
		lock := b.beginLock(background, b.lock(b.client(k.Release, "c1"), k, "x"), 1, lockimpl.LockOptions{})
		b.until(time.Second)
		b.m.Del("x")
		b.released(lockimpl.Released)(b.lock(b.client(k.Release, "c2"), k, "x").Unlock(background, 5))
		lock.grantedAt(time.Second)
	})
}

// A client whose clock is behind by more than the time to live and the wait queues with a deadline
// that has already passed. The next caller purges it.
func TestAClientFarBehindQueuesItselfStale(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		late := b.client(k.Release, "c1", func(cfg *Config) {
			cfg.Environment.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		})
		b.beginLock(background, b.lock(late, k, "x"), 1, lockimpl.LockOptions{})
		same(b.t, "queue", b.queue(), byRelease[[]string]{
			"3.4.2 3.11.0 3.12.4": {"c1:1 at -3535"}, "3.21.3 3.43.0 4.7.0": {"c1:1 at -3240"},
		}.forRelease(b.t, k.Release))
		b.tried(false)(b.lock(b.client(k.Release, "c2"), k, "x").TryLock(background, 1))
		same(b.t, "queue", b.queue(), nil)
		b.must(late.Close())
	})
}
