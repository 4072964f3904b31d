package redisson

import (
	"errors"
	"fmt"
	"slices"
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

// queue gives the waiters of "x", head first, each with its deadline in
// seconds after the bench's start.
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

// 2.2 to 2.6: KEYS and ARGV, in their order, which differs between the lock
// form (wait, now) and the tryLock form (now, wait).
func TestKeysAndArgumentsOfTheFairLock(t *testing.T) {
	for _, name := range []struct{ name, tag string }{{"x", "{x}"}, {"a{b}c", "a{b}c"}} {
		t.Run(name.name, func(t *testing.T) {
			eachFair(t, func(b *bench, k kind) {
				b.until(5 * time.Second)
				now := fmt.Sprint(b.start.UnixMilli() + 5000)
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
				b.must(l.Lock(background, 7, lockimpl.LockOptions{Lease: 20 * time.Second}))
				check(k.FairAcquire, hash, []string{"20000", "c1:7", "300000", now})
				b.tried(false)(l.TryLock(background, 8))
				check(k.FairTryAcquire, hash, []string{"20000", "c1:8", now, "300000"}) // the object's lease field
				b.tried(false)(l.TryLockTimed(background, 8, lockimpl.TryOptions{Lease: time.Minute}))
				check(k.FairAcquire, hash, []string{"60000", "c1:8", "300000", now})
				check(k.FairLeave, hash[1:], []string{"c1:8", "300000"})
				b.released(lockimpl.Released)(l.Unlock(background, 7))
				latch := "redisson_unlock_latch:" + name.tag + ":" + fmt.Sprintf("%032d", 1)
				latchMs := map[string]string{"3.43.0": "13500", "4.7.0": "18000"}[k.Version]
				check(k.FairUnlock, append(slices.Clone(hash), channel, latch), []string{"0", "20000", "c1:7", now, "PUBLISH", latchMs})
				b.tried(false)(l.ForceUnlock(background))
				check(k.FairForceUnlock, append(slices.Clone(hash), channel), []string{"0", now, "PUBLISH"})
				b.must(l.Lock(background, 7, lockimpl.LockOptions{}))
				waiter := b.begin(func() (bool, error) {
					return l.TryLockTimed(background, 8, lockimpl.TryOptions{Wait: 4 * time.Second, Lease: time.Minute})
				})
				check(k.FairAcquire, hash, []string{"60000", "c1:8", "4000", now})
				same(b.t, "channels", b.channels(), []string{channel + ":c1:8"})
				waiter.refusedAt(9 * time.Second)
				check(k.FairLeave, hash[1:], []string{"c1:8", "4000"})
			})
		})
	}
}

// Issue 4743: without a lease the script hears the number of the caller's
// unit as milliseconds; leaving the queue takes the wait as it is.
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
				b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
				b.tried(false)(b.lock(b.client(k.Release, "c1"), k, "x").TryLockTimed(background, 1, c.opt))
				same(b.t, "time", b.now(), c.opt.Wait)
				same(b.t, "wait of the attempt", b.runs("c1", k.FairAcquire.Name)[0].args[2], c.enqueue)
				same(b.t, "wait of leaving", b.runs("c1", k.FairLeave.Name)[0].args[1], c.leave)
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

// 2.7: a deadline is the lock's time to live when the first waiter came, and
// the waits of all up to me. A queued waiter does not write its own again.
func TestDeadlinesAreChained(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
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
		want := []string{"c1:1 at 120", "c2:1 at 170", "c3:1 at 370"}
		same(b.t, "queue", b.queue(), want)
		b.m.Publish(WaiterChannel("x", "c2:1"), "0") // it asks again
		same(b.t, "queue after a retry", b.queue(), want)

		// Acquiring takes the acquirer's wait from everybody behind.
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		calls[0].grantedAt(3 * time.Second)
		same(b.t, "queue after an acquire", b.queue(), []string{"c2:1 at 70", "c3:1 at 270"})
		b.released(lockimpl.Released)(b.lock(b.client(k.Release, "c1"), k, "x").Unlock(background, 1))
		calls[1].grantedAt(3 * time.Second)
		same(b.t, "queue after an acquire", b.queue(), []string{"c3:1 at 220"})
		b.released(lockimpl.Released)(b.lock(b.client(k.Release, "c2"), k, "x").Unlock(background, 1))
		calls[2].grantedAt(3 * time.Second)
		same(b.t, "queue after an acquire", b.queue(), nil)
		same(b.t, "keys", b.keys(), []string{"x"})
	})
}

// 2.4: leaving moves those behind up by one wait, and nobody in front.
func TestLeavingMovesThoseBehindUp(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Hour}))
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		b.beginLock(background, l, 1, lockimpl.LockOptions{})
		try := b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 2, lockimpl.TryOptions{Wait: 40 * time.Second})
		})
		b.beginLock(background, l, 3, lockimpl.LockOptions{})
		b.beginLock(background, l, 4, lockimpl.LockOptions{})
		same(b.t, "queue", b.queue(), []string{"c1:1 at 3900", "c1:2 at 3940", "c1:3 at 4240", "c1:4 at 4540"})
		try.refusedAt(40 * time.Second)
		same(b.t, "queue", b.queue(), []string{"c1:1 at 3900", "c1:3 at 4200", "c1:4 at 4500"})
		b.must(c.Close())
	})
}

// 2.1 and 2.7: a dead waiter is purged when its deadline has passed, by
// whoever comes; the deadlines of the others stay.
func TestDeadWaitersArePurgedAtTheirDeadline(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		dead := b.client(k.Release, "c1", func(cfg *Config) { cfg.FairWait = 5 * time.Second })
		for o := range 2 {
			b.beginLock(background, b.lock(dead, k, "x"), lockimpl.Owner(o), lockimpl.LockOptions{})
		}
		b.must(dead.Close())
		// Told 0, a waiter behind the dead ones asks as fast as it is answered
		// once the lease is over; an answer must take time, or none ever passes.
		b.answer(func(c command) fate {
			if c.client == "c2" && c.script != "" && c.at > 0 {
				return fate{late: 300 * time.Millisecond}
			}
			return fate{}
		})
		live := b.client(k.Release, "c2")
		lock := b.beginLock(background, b.lock(live, k, "x"), 1, lockimpl.LockOptions{})
		same(b.t, "queue", b.queue(), []string{"c1:0 at 15", "c1:1 at 20", "c2:1 at 320"})
		// Nobody takes the free lock past those in front, not even one who never queues.
		passer := b.lock(b.client(k.Release, "c3"), k, "x")
		b.until(12 * time.Second)
		b.tried(false)(passer.TryLock(background, 1))
		b.until(15 * time.Second)
		b.tried(false)(passer.TryLock(background, 1))
		same(b.t, "queue", b.queue(), []string{"c1:1 at 20", "c2:1 at 320"})
		b.until(20*time.Second - 1)
		b.tried(false)(passer.TryLock(background, 1))
		lock.wait()
		if lock.err != nil || lock.at < 20*time.Second || lock.at > 20700*time.Millisecond {
			b.t.Errorf("the live waiter's call ended at %v with %v; want it within two answers after 20s", lock.at, lock.err)
		}
		same(b.t, "queue", b.queue(), nil)
	})
}

// F8 tolerates a last waiter without a deadline, F7 does not (issue 5989).
func TestALastWaiterWithoutADeadline(t *testing.T) {
	for _, rel := range Releases {
		on(t, rel.Version, func(b *bench, rel *Release) {
			k := kind{rel, true}
			b.must(b.lock(b.client(rel, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
			if _, err := b.m.RPush(QueueName("x"), "dead:1"); err != nil {
				b.t.Fatal(err)
			}
			c := b.client(rel, "c1")
			call := b.beginLock(background, b.lock(c, k, "x"), 1, lockimpl.LockOptions{})
			if rel.Version == "4.7.0" {
				same(b.t, "queue", b.queue(), []string{"dead:1 without deadline", "c1:1 at 310"})
				b.must(c.Close())
				return
			}
			call.wait()
			if call.err == nil || !strings.Contains(call.err.Error(), "nil") || errors.Is(call.err, lockimpl.ErrUnknownOutcome) {
				b.t.Errorf("lock: %v; want the script's error about nil", call.err)
			}
			same(b.t, "queue", b.queue(), []string{"dead:1 without deadline"})
		})
	}
}

// F6 and later: a head without a deadline stops the purge for good.
func TestAHeadWithoutADeadlineIsNeverPurged(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		if _, err := b.m.RPush(QueueName("x"), "dead:1"); err != nil {
			b.t.Fatal(err)
		}
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.until(1000 * time.Hour)
		b.tried(false)(l.TryLock(background, 1))
		same(b.t, "queue", b.queue(), []string{"dead:1 without deadline"})
	})
}

// The attempt without a wait never queues, and re-entry always wins.
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
		b.m.Del("x") // free, and yet somebody queues
		b.tried(false)(l.TryLock(background, 1))
		same(b.t, "hash", b.held("x"), map[string]string{})
	})
}

// Section 6: a tryLock that failed leaves no trace, so that a later tryLock(0)
// succeeds.
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

// Section 6: threads that start 10 ms apart acquire in that order.
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

// 2.3: a waiter that is queued already is told the lock's remaining time, not
// the distance of its deadline; one that queues behind another, the distance
// of the other's deadline.
func TestWhatAWaiterIsTold(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x").(*lock)
		told := func(o lockimpl.Owner) time.Duration {
			b.t.Helper()
			got, err := l.attempt(background, "", l.acquire, o, 0, 0)
			if got.granted || err != nil {
				b.t.Fatalf("attempt gave %v, %v", got, err)
			}
			return got.ttl
		}
		same(b.t, "the first who queues", told(1), 10*time.Second)
		same(b.t, "the second", told(2), 310*time.Second)
		b.until(4 * time.Second)
		same(b.t, "the first again", told(1), 6*time.Second)
		same(b.t, "the second again", told(2), 6*time.Second)
		b.until(10 * time.Second)
		same(b.t, "the second when the lock is free", told(2), 0)
	})
}

// 2.5: a free lock's unlock "succeeds" for anyone, and wakes the head.
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

// A client behind by more than the time to live and the wait queues itself
// already stale: the next one purges it (section 5).
func TestAClientFarBehindQueuesItselfStale(t *testing.T) {
	eachFair(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		late := b.client(k.Release, "c1", func(cfg *Config) {
			cfg.Environment.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		})
		b.beginLock(background, b.lock(late, k, "x"), 1, lockimpl.LockOptions{})
		same(b.t, "queue", b.queue(), []string{"c1:1 at -3240"})
		b.tried(false)(b.lock(b.client(k.Release, "c2"), k, "x").TryLock(background, 1))
		same(b.t, "queue", b.queue(), nil)
		b.must(late.Close())
	})
}
