package redisson

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
)

// watchdogOfASecond is the watchdog timeout of the library's tests of renewals.
func watchdogOfASecond(cfg *Config) { cfg.WatchdogTimeout = time.Second }

var noLease lockimpl.LockOptions

// processors takes the place of the number of processors, from which the library's tests compute
// the sizes of their thread pools.
const processors = 4

// onBothKinds lists a test that the library has for the plain lock and for the fair lock.
func onBothKinds(c libraryTest) []libraryTest {
	plain, fair := c, c
	plain.class, fair.class = "RedissonLockTest", "RedissonFairLockTest"
	return []libraryTest{plain, fair}
}

func concat(lists ...[]libraryTest) (all []libraryTest) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// heavySizes are the numbers of threads of RedissonLockHeavyTest.
var heavySizes = []int{2, 5, 10, 20}

// heavy runs loops of lock and unlock, each on a lock with a name of its own, for each number of
// threads. A millisecond takes the place of the work in the library's test, which sets a bucket,
// and releases and acquires a semaphore.
func heavy(x *libraryCase, enter func(l lockimpl.Lock, o lockimpl.Owner, j int) (bool, error)) {
	loops := x.size(2, 20, *heavyNames)
	c := x.newClient("c1")
	for _, threads := range heavySizes {
		began := x.now()
		pool(threads, threads, func(o lockimpl.Owner, _ int) {
			for j := range loops {
				l := x.bench.lock(c, x.kind, fmt.Sprint("RLOCK_", j))
				ok, err := enter(l, o, j)
				x.succeeds("lock", err)
				if !ok {
					continue
				}
				time.Sleep(time.Millisecond)
				x.succeeds("unlock", x.unlocked(l, o))
			}
		})
		x.within(fmt.Sprintf("time of %d threads", threads), x.now()-began, 0, time.Duration(threads*loops)*time.Second)
	}
	synctest.Wait()
	x.expect("keys left", x.keys(), []string{})
}

// libraryTests are the tests that can be played on the port.
var libraryTests = concat(
	onBothKinds(libraryTest{
		name: "testGetHoldCount",
		does: "The hold count runs 0, 1, 0, 2, 1, 0 over lock and unlock, lock twice, unlock, unlock.",
		play: func(x *libraryCase) {
			l := x.object(x.newClient("c1"))
			var counts []int
			count := func() {
				n, err := l.HoldCount(background, 1)
				x.must(err)
				counts = append(counts, n)
			}
			count()
			x.acquired(l, 1, noLease)
			count()
			x.must(x.unlocked(l, 1))
			count()
			x.acquired(l, 1, noLease)
			x.acquired(l, 1, noLease)
			count()
			x.must(x.unlocked(l, 1))
			count()
			x.must(x.unlocked(l, 1))
			count()
			x.expect("hold counts", counts, []int{0, 1, 0, 2, 1, 0})
		},
	}),
	onBothKinds(libraryTest{
		name: "testIsHeldByCurrentThread",
		does: "Not held, held after lock, not held after unlock.",
		play: func(x *libraryCase) {
			l := x.object(x.newClient("c1"))
			x.heldBy(l, 1, false)
			x.acquired(l, 1, noLease)
			x.heldBy(l, 1, true)
			x.must(x.unlocked(l, 1))
			x.heldBy(l, 1, false)
		},
	}),
	onBothKinds(libraryTest{
		name: "testIsHeldByCurrentThreadOtherThread",
		does: "Another thread never holds it, while the first does and after.",
		play: func(x *libraryCase) {
			c := x.newClient("c1")
			l := x.object(c)
			x.acquired(l, 1, noLease)
			x.heldBy(x.object(c), 2, false)
			x.must(x.unlocked(l, 1))
			x.heldBy(x.object(c), 2, false)
		},
	}),
	onBothKinds(libraryTest{
		name: "testIsLocked",
		does: "Free, locked after lock, free after unlock.",
		play: func(x *libraryCase) {
			l := x.object(x.newClient("c1"))
			x.locked(l, false)
			x.acquired(l, 1, noLease)
			x.locked(l, true)
			x.must(x.unlocked(l, 1))
			x.locked(l, false)
		},
	}),
	onBothKinds(libraryTest{
		name: "testIsLockedOtherThread",
		does: "The same, as another thread sees it.",
		play: func(x *libraryCase) {
			c := x.newClient("c1")
			l := x.object(c)
			x.acquired(l, 1, noLease)
			x.locked(x.object(c), true)
			x.must(x.unlocked(l, 1))
			x.locked(x.object(c), false)
		},
	}),
	onBothKinds(libraryTest{
		name: "testUnlockFail",
		does: "A thread holds for 1 s; 400 ms after its start another thread's unlock is an error. Its own is none.",
		play: func(x *libraryCase) {
			c := x.newClient("c1")
			join := thread(func() {
				l := x.object(c)
				x.succeeds("lock", l.Lock(background, 2, noLease))
				time.Sleep(time.Second)
				x.succeeds("unlock by the holder", x.unlocked(l, 2))
			})
			time.Sleep(400 * time.Millisecond)
			x.fails("unlock by another", x.unlocked(x.object(c), 1), lockimpl.ErrNotHeld)
			join()
		},
	}),
	onBothKinds(libraryTest{
		name: "testLockUnlock",
		does: "Lock and unlock, twice.",
		play: func(x *libraryCase) {
			l := x.object(x.newClient("c1"))
			for range 2 {
				x.succeeds("lock", l.Lock(background, 1, noLease))
				x.succeeds("unlock", x.unlocked(l, 1))
			}
		},
	}),
	onBothKinds(libraryTest{
		name: "testReentrancy",
		does: "tryLock twice, unlock once: another thread's tryLock is refused.",
		play: func(x *libraryCase) {
			c := x.newClient("c1")
			l := x.object(c)
			x.tryNow(l, 1, true)
			x.tryNow(l, 1, true)
			x.must(x.unlocked(l, 1))
			x.tryNow(x.object(c), 2, false)
			x.must(x.unlocked(l, 1))
		},
	}),
	onBothKinds(libraryTest{
		name: "testForceUnlock",
		does: "After lock and forceUnlock it is free, also for a new lock object.",
		play: func(x *libraryCase) {
			c := x.newClient("c1")
			l := x.object(c)
			x.acquired(l, 1, noLease)
			if _, err := l.ForceUnlock(background); err != nil {
				x.t.Fatal(err)
			}
			x.locked(l, false)
			x.locked(x.object(c), false)
		},
	}),
	onBothKinds(libraryTest{
		name: "testConcurrency_SingleInstance",
		does: "15 tasks of one client lock, count, and unlock: 15.",
		play: func(x *libraryCase) {
			c := x.newClient("c1")
			counter := 0
			pool(2*processors, 15, func(o lockimpl.Owner, _ int) {
				l := x.object(c)
				x.succeeds("lock", l.Lock(background, o, noLease))
				counter++
				x.succeeds("unlock", x.unlocked(l, o))
			})
			x.expect("counter", counter, 15)
		},
	}),
	onBothKinds(libraryTest{
		name: "testConcurrencyLoop_MultiInstance",
		does: "16 clients, 8 at a time, make 100 critical sections of 10 ms each (10; 1): the total is exact, within 3 min.",
		play: func(x *libraryCase) {
			rounds := x.size(1, 10, 100)
			counter := 0
			clients := make([]*Client, 16)
			for i := range clients {
				clients[i] = x.newClient(fmt.Sprint("c", i))
			}
			pool(2*processors, len(clients), func(_ lockimpl.Owner, i int) {
				for range rounds {
					x.succeeds("lock", x.object(clients[i]).Lock(background, 1, noLease))
					before := counter
					time.Sleep(10 * time.Millisecond)
					counter = before + 1
					x.succeeds("unlock", x.unlocked(x.object(clients[i]), 1))
				}
			})
			x.expect("counter", counter, 16*rounds)
			x.within("time", x.now(), 0, 3*time.Minute)
		},
	}),
	onBothKinds(libraryTest{
		name: "testConcurrency_MultiInstance",
		does: "100 clients (40; 10) lock, count, and unlock: none is missing.",
		play: func(x *libraryCase) {
			clients := x.size(10, 40, 100)
			counter := 0
			var all sync.WaitGroup
			for i := range clients {
				l := x.object(x.newClient(fmt.Sprint("c", i)))
				all.Go(func() {
					x.succeeds("lock", l.Lock(background, 1, noLease))
					counter++
					x.succeeds("unlock", x.unlocked(l, 1))
				})
			}
			all.Wait()
			x.expect("counter", counter, clients)
		},
	}),

	[]libraryTest{
		{
			class: "RedissonLockTest", name: "testTryLockWait",
			does: "A client locked and was shut down: tryLock(3 s) returns after 2 990 to 3 350 ms.",
			play: func(x *libraryCase) { x.tryLockWait(3350 * time.Millisecond) },
		},
		{
			class: "RedissonLockTest", name: "testLockUninterruptibly",
			does: "Two threads lock with a lease of 10 min and sleep a minute inside. 1 s after the first, the second comes; 1 s later it is interrupted: within 2 s it neither enters nor leaves.",
			differs: []deviation{{
				"3.4.2", []string{"steps of the interrupted thread: 2, not 0"},
				"lock() comes back from the interrupt without the lock (issue 1593)",
			}},
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				interrupted, interrupt := context.WithCancel(background)
				steps, over := 0, make(chan struct{})
				body := func(ctx context.Context, o lockimpl.Owner) {
					l := x.object(c)
					if err := l.Lock(ctx, o, lockimpl.LockOptions{Lease: 10 * time.Minute}); err != nil {
						return
					}
					select {
					case <-over:
						return
					case <-ctx.Done(): // the interrupt ends its sleep, too
						steps++
					}
					_ = x.unlocked(l, o)
					steps++
				}
				first := thread(func() { body(background, 1) })
				time.Sleep(time.Second)
				second := thread(func() { body(interrupted, 2) })
				time.Sleep(time.Second)
				interrupt()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				x.expect("steps of the interrupted thread", steps, 0)
				close(over)
				first()
				x.must(c.Close())
				second()
			},
		},
		{
			class: "RedissonLockTest", name: "testExpire",
			does: "A lease of 2 s ends: another thread's lock() is granted within 2 020 ms, and the first's unlock is an error.",
			differs: []deviation{{
				"3.4.2", []string{"late unlock: no error, not lock not held by this owner"},
				"an unlock of a free lock is accepted (issue 2018)",
			}},
			play: func(x *libraryCase) {
				x.fails("late unlock", x.expire(), lockimpl.ErrNotHeld)
			},
		},
		{
			class: "RedissonLockTest", name: "testRemainTimeToLive",
			does: "After lock(1 h) the time to live is 1 h less at most 10 ms; −2 ms after unlock; after lock() the watchdog timeout less at most 10 ms.",
			play: func(x *libraryCase) {
				l := x.bench.lock(x.newClient("c1"), x.kind, "test-lock:1")
				left := func(what string, least, most time.Duration) {
					ttl, err := l.RemainTimeToLive(background)
					x.must(err)
					x.within(what, ttl, least, most)
				}
				x.acquired(l, 1, lockimpl.LockOptions{Lease: time.Hour})
				left("after lock(1 h)", time.Hour-10*time.Millisecond, time.Hour)
				x.must(x.unlocked(l, 1))
				left("after unlock", -2*time.Millisecond, -2*time.Millisecond)
				x.acquired(l, 1, noLease)
				left("after lock()", DefaultWatchdog-10*time.Millisecond, DefaultWatchdog)
			},
		},
		{
			class: "RedissonLockTest", name: "testAutoExpire",
			does: "A client locks and is shut down 15 s later: the lock is free within the watchdog timeout.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				x.acquired(x.object(c), 1, noLease)
				time.Sleep(15 * time.Second)
				x.must(c.Close())
				time.Sleep(DefaultWatchdog)
				x.locked(x.object(x.newClient("c2")), false)
			},
		},
		{
			class: "RedissonLockTest", name: "testSinglePubSub",
			does: "With one subscription at a time, two threads on each of two locks call tryLock(100 ms) and unlock, twice: nobody fails.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				for round := range 2 {
					pool(4, 4, func(o lockimpl.Owner, i int) {
						l := x.bench.lock(c, x.kind, fmt.Sprintf("Lock%d_%d", 1+i/2, round))
						ok, err := l.TryLockTimed(background, o, lockimpl.TryOptions{Wait: 100 * time.Millisecond})
						x.succeeds("tryLock", err)
						x.expect("tryLock", ok, true)
						x.succeeds("unlock", x.unlocked(l, o))
					})
				}
			},
		},
		{
			class: "RedissonLockTest", name: "testSubscriptionsPerConnection",
			does: "32 threads share 5 000 tasks (400; 60): lock one of 5 names, hold it for less than 20 ms, unlock. No error within 150 s, and no channel stays subscribed.",
			play: func(x *libraryCase) {
				tasks := x.size(60, 400, 5000)
				c := x.newClient("c1")
				drawn := rand.New(rand.NewPCG(1, 2))
				names, holds := make([]int, tasks), make([]time.Duration, tasks)
				for i := range tasks {
					names[i], holds[i] = drawn.IntN(5), time.Duration(drawn.IntN(20))*time.Millisecond
				}
				pool(32, tasks, func(o lockimpl.Owner, i int) {
					l := x.bench.lock(c, x.kind, fmt.Sprint("lock-", names[i]))
					x.succeeds("lock", l.Lock(background, o, noLease))
					time.Sleep(holds[i])
					x.succeeds("unlock", x.unlocked(l, o))
				})
				x.within("time", x.now(), 0, 150*time.Second)
				synctest.Wait()
				x.expect("channels", x.channels(), []string{})
			},
		},
		{
			class: "RedissonLockTest", name: "testRedisFailed",
			does: "The server is stopped (here before the client has a connection); 3 s later tryLock(5 s, lease 10 s) is an error of a command that was not written.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				x.refuse(errors.New("connection refused"))
				time.Sleep(3 * time.Second)
				ok, err := x.object(c).TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 5 * time.Second, Lease: 10 * time.Second})
				x.expect("granted", ok, false)
				x.expect("an error", err != nil, true)
				x.expect("may have run", errors.Is(err, lockimpl.ErrUnknownOutcome), false)
				x.refuse(nil)
			},
		},
		{
			class: "RedissonLockTest", name: "issue 6844",
			does: "The test of this repair of 4.4.0, which was not at hand: 16 threads call tryLock and unlock 10 000 times each (40; 10): whoever holds is registered for renewal. Not played on 3.4.2: there the answer to an earlier unlock may end the renewal of the next hold, as the threads happen to run.",
			on:   "3.11.0 3.12.4 3.21.3 3.43.0 4.7.0",
			play: func(x *libraryCase) {
				rounds := x.size(10, 40, 10_000)
				c := x.newClient("c1")
				var unregistered atomic.Int64
				pool(16, 16, func(o lockimpl.Owner, _ int) {
					l := x.object(c)
					for range rounds {
						if ok, err := l.TryLock(background, o); err != nil || !ok {
							x.succeeds("tryLock", err)
							time.Sleep(time.Microsecond)
							continue
						}
						if !c.registered("lock") {
							unregistered.Add(1)
						}
						x.succeeds("unlock", x.unlocked(l, o))
					}
				})
				x.expect("holders that are not registered", unregistered.Load(), int64(0))
			},
		},

		{
			class: "RedissonLockHeavyTest", name: "lockUnlockRLock",
			does: "2, 5, 10 and 20 threads lock and unlock one name after the other, 5 000 of them (20; 2), and then 50 000 with `-names 50000`: they end within a second for each.",
			play: func(x *libraryCase) {
				heavy(x, func(l lockimpl.Lock, o lockimpl.Owner, _ int) (bool, error) {
					return true, l.Lock(background, o, noLease)
				})
			},
		},
		{
			class: "RedissonLockHeavyTest", name: "tryLockUnlockRLock",
			does: "The same with tryLock, and a wait below 10 ms.",
			play: func(x *libraryCase) {
				heavy(x, func(l lockimpl.Lock, o lockimpl.Owner, j int) (bool, error) {
					return l.TryLockTimed(background, o, lockimpl.TryOptions{Wait: time.Duration((j*7+int(o))%10) * time.Millisecond})
				})
			},
		},

		{
			class: "RedissonLockExpirationRenewalTest", name: "testLockAfterTimeout",
			does: "Watchdog of 1 s. The server restarts without the lock; 2 s later unlock is an error; a new lock of the name is still held, and unlocked, after 2 s.",
			differs: []deviation{
				{
					"3.4.2", []string{"unlock after the restart: no error, not lock not held by this owner"},
					"an unlock of a free lock is accepted (issue 2018)",
				},
				{
					"3.11.0", []string{"unlock of the new lock: lock not held by this owner"},
					"a renewal that finds nothing leaves its entry, and the new lock is not renewed (issue 3712)",
				},
			},
			play: func(x *libraryCase) {
				c := x.newClient("c1", watchdogOfASecond)
				l := x.object(c)
				x.acquired(l, 1, noLease)
				x.restart("c1")
				time.Sleep(2 * time.Second)
				x.fails("unlock after the restart", x.unlocked(l, 1), lockimpl.ErrNotHeld)
				other := x.object(c)
				x.acquired(other, 1, noLease)
				time.Sleep(2 * time.Second)
				x.succeeds("unlock of the new lock", x.unlocked(other, 1))
			},
		},
		{
			class: "RedissonLockExpirationRenewalTest", name: "testLockReentrantRenew",
			does: "Watchdog of 1 s. Lock twice, unlock twice; another thread's lock is there 10 s later.",
			differs: []deviation{{
				"3.43.0", []string{"locked: false, not true"},
				"the queue of the entry still names the first thread (3.37.0 to 3.43.0)",
			}},
			play: func(x *libraryCase) {
				c := x.newClient("c1", watchdogOfASecond)
				l := x.object(c)
				x.acquired(l, 1, noLease)
				x.acquired(l, 1, noLease)
				x.must(x.unlocked(l, 1))
				x.must(x.unlocked(l, 1))
				x.acquired(x.object(c), 2, noLease)
				time.Sleep(10 * time.Second)
				x.locked(l, true)
			},
		},
		{
			class: "RedissonExpirationRenewalTest", name: "testExpirationRenewal",
			does: "Watchdog of 3 s. 5 s after lock() the server restarts without the lock; 10 s later unlock is an error; a new lock is still held, and unlocked, after 30 s.",
			differs: []deviation{
				{
					"3.4.2", []string{"unlock after the restart: no error, not lock not held by this owner"},
					"an unlock of a free lock is accepted (issue 2018)",
				},
				{
					"3.11.0", []string{"unlock of the new lock: lock not held by this owner"},
					"a renewal that finds nothing leaves its entry, and the new lock is not renewed (issue 3712)",
				},
			},
			play: func(x *libraryCase) {
				c := x.newClient("c1", func(cfg *Config) { cfg.WatchdogTimeout = 3 * time.Second })
				l := x.object(c)
				x.acquired(l, 1, noLease)
				time.Sleep(5 * time.Second)
				x.restart("c1")
				time.Sleep(10 * time.Second)
				x.fails("unlock after the restart", x.unlocked(l, 1), lockimpl.ErrNotHeld)
				other := x.object(c)
				x.acquired(other, 1, noLease)
				time.Sleep(30 * time.Second)
				x.succeeds("unlock of the new lock", x.unlocked(other, 1))
			},
		},

		{
			class: "RedissonFairLockTest", name: "testTryLockWait",
			does: "A client locked and was shut down: tryLock(3 s) returns after 2 990 to 3 100 ms.",
			play: func(x *libraryCase) { x.tryLockWait(3100 * time.Millisecond) },
		},
		{
			class: "RedissonFairLockTest", name: "testExpire",
			does: "A lease of 2 s ends: another thread's lock() is granted within 2 020 ms, and the first's unlock is no error.",
			play: func(x *libraryCase) { x.succeeds("late unlock", x.expire()) },
		},
		{
			class: "RedissonFairLockTest", name: "testAutoExpire",
			does: "A client locks and is shut down: the lock is free within the watchdog timeout and 1 s.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				x.acquired(x.object(c), 1, noLease)
				x.must(c.Close())
				time.Sleep(DefaultWatchdog + time.Second)
				x.locked(x.object(x.newClient("c2")), false)
			},
		},
		{
			class: "RedissonFairLockTest", name: "testLeaseTimeout",
			does: "8 threads, 100 ms apart, call tryLock(10 s, lease 1 s), and none unlocks: all acquire in the order of their start, 11 s after the last at most.",
			differs: []deviation{
				{
					"3.4.2 3.11.0", []string{"all have acquired: false, not true"},
					"a waiter sleeps until the deadline of the first, past the end of the lease (issues 2099, 4705)",
				},
				{
					"3.12.4 3.21.3", []string{"all have acquired: false, not true"},
					"a waiter sleeps until its own deadline, past the end of the lease (issue 4705)",
				},
			},
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				var order []int
				var mu sync.Mutex // of order
				var all sync.WaitGroup
				for i := range 8 {
					time.Sleep(100 * time.Millisecond)
					all.Go(func() {
						ok, err := x.object(c).TryLockTimed(background, lockimpl.Owner(i+1), lockimpl.TryOptions{Wait: 10 * time.Second, Lease: time.Second, Unit: time.Second})
						x.succeeds("tryLock", err)
						if ok {
							mu.Lock()
							defer mu.Unlock()
							order = append(order, i)
						}
					})
				}
				last := x.now()
				all.Wait()
				x.expect("all have acquired", len(order) == 8, true)
				x.expect("in the order of their start", slices.IsSorted(order), true)
				x.within("time after the last", x.now()-last, 0, 11*time.Second)
			},
		},
		{
			class: "RedissonFairLockTest", name: "testMultipleLocks",
			does: "500 threads (120; 60) lock with a lease of 5 s, hold for 200 ms, unlock: all have held within 3 min, and no unlock is an error.",
			differs: []deviation{{
				"3.12.4", []string{"all have held: false, not true"},
				"each acquire takes 5 s off the deadlines: after 50 of them the rest is purged, and is told a negative time, with which it waits without bound",
			}},
			play: func(x *libraryCase) {
				threads := x.size(60, 120, 500)
				c := x.newClient("c1")
				held := 0
				var all sync.WaitGroup
				for i := range threads {
					o := lockimpl.Owner(i + 1)
					all.Go(func() {
						l := x.object(c)
						if l.Lock(background, o, lockimpl.LockOptions{Lease: 5 * time.Second}) != nil {
							return
						}
						time.Sleep(200 * time.Millisecond)
						held++
						x.succeeds("unlock", x.unlocked(l, o))
					})
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				x.expect("all have held", held == threads, true)
				x.must(c.Close())
				all.Wait()
			},
		},
		{
			class: "RedissonFairLockTest", name: "testWaitTimeoutDrift",
			does: "Three threads share 50 tasks: tryLock(500 ms, lease 30 s), hold for 10 s, unlock. A last try of 30 s is interrupted, and forceUnlock frees the lock: no deadline is further ahead than the lease and the wait of a waiter that names none (300 s, up to 3.12.4 5 s).",
			differs: []deviation{{
				"3.4.2", []string{"deadline 1: 4m22s ahead, not at most 35s", "deadline 2: 4m27s ahead, not at most 35s"},
				"a waiter that asks again or leaves moves the deadlines (issue 1104)",
			}},
			play: func(x *libraryCase) {
				x.drift(50, 500*time.Millisecond, 10*time.Second, func(int) time.Duration { return x.FairWait })
			},
		},
		{
			class: "RedissonFairLockTest", name: "testLockAcquiredTimeoutDrift",
			does: "The same with 3 tasks: tryLock(3 s, lease 30 s), hold for 100 ms, unlock.",
			differs: []deviation{{
				"3.4.2 3.11.0", []string{"deadline 1: 39s ahead, not at most 35s"},
				"an acquire moves nobody up; the test came with the rewrite of 3.11.1 (issue 2099)",
			}},
			play: func(x *libraryCase) {
				x.drift(3, 3*time.Second, 100*time.Millisecond, func(int) time.Duration { return x.FairWait })
			},
		},
		{
			class: "RedissonFairLockTest", name: "testFirstThreadDeathTimeoutDrift",
			does: "The same with 10 tasks: the n-th deadline is at most the lease and n waits ahead.",
			differs: []deviation{{
				"3.4.2 3.11.0", []string{"deadline 1: 1m9s ahead, not at most 35s", "deadline 2: 1m14s ahead, not at most 40s"},
				"the same",
			}},
			play: func(x *libraryCase) {
				x.drift(10, 3*time.Second, 100*time.Millisecond, func(i int) time.Duration { return time.Duration(i+1) * x.FairWait })
			},
		},
		{
			class: "RedissonFairLockTest", name: "testTimeoutDrift",
			does: "As of 3.11.0: 100 tasks of tryLock(500 ms, lease 30 s) hold for 30 s, and no deadline is further ahead than 35 s (later the lease and 300 s).",
			differs: []deviation{{
				"3.4.2", []string{"deadline 1: 8m20s ahead, not at most 35s", "deadline 2: 8m25s ahead, not at most 35s"},
				"a waiter that asks again or leaves moves the deadlines; the test came with its repair in 3.5.5 (issue 1104)",
			}},
			play: func(x *libraryCase) {
				x.drift(100, 500*time.Millisecond, 30*time.Second, func(int) time.Duration { return x.FairWait })
			},
		},
		{
			class: "RedissonFairLockTest", name: "testAcquireFailedTimeoutDrift_Descrete",
			does: "A lease of 30 s, waits of 5 s. Four waiters are told 30, 35, 40, 45 s. The second leaves: the first is told 30 s, the third and fourth 30 s (before 3.32.0: 35 and 40 s). The holder unlocks, the first acquires: the others are told 30 s (before: 30 and 35 s).",
			differs: []deviation{{
				"3.4.2 3.11.0", []string{"waiter 3: 35s, not 40s", "waiter 4: 35s, not 45s", "fourth, after the second left: 35s, not 40s"},
				"all waiters but the first share a deadline (issue 2099)",
			}},
			play: func(x *libraryCase) {
				s := x.scriptsOf(x.newClient("c1"))
				const lease, wait = 30 * time.Second, 5 * time.Second
				// told has the times in the answers to the third and the fourth waiter, before and
				// after the unlock.
				var told [4]time.Duration
				if x.isOneOf("3.43.0 4.7.0") {
					told = [4]time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}
				} else {
					told = [4]time.Duration{35 * time.Second, 40 * time.Second, 30 * time.Second, 35 * time.Second}
				}
				s.granted("holder", 101, lease, wait)
				for i, want := range []time.Duration{30 * time.Second, 35 * time.Second, 40 * time.Second, 45 * time.Second} {
					x.around(fmt.Sprint("waiter ", i+1), s.told(lockimpl.Owner(102+i), lease, wait), want)
				}
				s.leaves(103, wait)
				x.around("first, after the second left", s.told(102, lease, wait), 30*time.Second)
				x.around("third, after the second left", s.told(104, lease, wait), told[0])
				x.around("fourth, after the second left", s.told(105, lease, wait), told[1])
				s.unlocks(101)
				s.granted("first", 102, lease, wait)
				x.around("third, after the first acquired", s.told(104, lease, wait), told[2])
				x.around("fourth, after the first acquired", s.told(105, lease, wait), told[3])
			},
		},
		{
			class: "RedissonFairLockTest", name: "testLockAcquiredBooleanTimeoutDrift_Descrete",
			does: "A lease of 500 ms, attempts that do not queue. The first and second are refused; the holder unlocks and the first acquires; the third, second, third are refused; 500 ms later the third acquires.",
			play: func(x *libraryCase) {
				s := x.scriptsOf(x.newClient("c1", func(cfg *Config) { cfg.FairWait = 100 * time.Millisecond }))
				const lease = 500 * time.Millisecond
				var got []bool
				try := func(owners ...lockimpl.Owner) {
					for _, o := range owners {
						got = append(got, s.tries(o, lease, 5*time.Second))
					}
				}
				try(101, 102, 103)
				s.unlocks(101)
				try(102, 104, 103, 104)
				time.Sleep(500 * time.Millisecond)
				try(104)
				x.expect("attempts", got, []bool{true, false, false, true, false, false, false, true})
			},
		},
		{
			class: "RedissonFairLockTest", name: "testLockAcquiredTimeoutDrift_Descrete",
			does: "A lease of 300 s, waits of 5 s. The first and second queue, the holder unlocks, the first acquires, the third queues: the second is told 5 s less than before, the third 5 s more than that. Asked again the third is told less than the second (before 3.32.0: 5 s more).",
			differs: []deviation{{
				"3.4.2 3.11.0", []string{"by which the third is told more: 10.001s, not 5s"},
				"the second that asks again is told the distance to its deadline as the new head's, the third that of a head which no acquire moved up (issue 2099)",
			}},
			play: func(x *libraryCase) {
				s := x.scriptsOf(x.newClient("c1"))
				const lease, wait = 300 * time.Second, 5 * time.Second
				s.granted("holder", 101, lease, wait)
				s.told(102, lease, wait)
				second := s.told(103, lease, wait)
				s.unlocks(101)
				s.granted("first", 102, lease, wait)
				third := s.told(104, lease, wait)
				time.Sleep(time.Millisecond)
				again := s.told(103, lease, wait)
				x.around("by which the second is told less", second-again, wait)
				x.around("by which the third is told more", third-again, wait)
				time.Sleep(time.Millisecond)
				third = s.told(104, lease, wait)
				if x.isOneOf("3.43.0 4.7.0") {
					x.expect("the third is told less than the second", third < again, true)
				} else {
					x.around("by which the third is told more again", third-again, wait)
				}
			},
		},
		{
			class: "RedissonFairLockTest", name: "testAbandonedTimeoutDrift_Descrete",
			does: "A lease of 500 ms, waits of 100 ms. The third waiter is told 200 ms more than the first, to 10 ms; all are abandoned, and after the third's time and a wait the third acquires.",
			differs: []deviation{{
				"3.4.2 3.11.0", []string{"by which the third is told more: 100ms, not 190ms to 210ms"},
				"all waiters but the first share a deadline (issue 2099)",
			}},
			play: func(x *libraryCase) {
				s := x.scriptsOf(x.newClient("c1", func(cfg *Config) { cfg.FairWait = 100 * time.Millisecond }))
				const lease, none = 500 * time.Millisecond, -time.Millisecond
				s.granted("holder", 101, lease, none)
				first := s.told(102, lease, none)
				s.told(103, lease, none)
				third := s.told(104, lease, none)
				x.within("by which the third is told more", third-first, 190*time.Millisecond, 210*time.Millisecond)
				time.Sleep(third + 100*time.Millisecond)
				s.granted("third", 104, lease, none)
			},
		},
		{
			class: "RedissonFairLockTest", name: "testTryLockNonDelayed",
			does: "tryLock(0) acquires and holds for 1 s; 200 ms after its start another's tryLock(200 ms) is refused and its unlock is an error; after both tryLock(0) acquires.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				try := func(o lockimpl.Owner, wait time.Duration, want bool) lockimpl.Lock {
					l := x.object(c)
					ok, err := l.TryLockTimed(background, o, lockimpl.TryOptions{Wait: wait})
					x.succeeds("tryLock", err)
					x.expect(fmt.Sprintf("tryLock(%v) by %d", wait, o), ok, want)
					return l
				}
				first := thread(func() {
					l := try(1, 0, true)
					time.Sleep(time.Second)
					x.succeeds("unlock", x.unlocked(l, 1))
				})
				second := thread(func() {
					time.Sleep(200 * time.Millisecond)
					l := try(2, 200*time.Millisecond, false)
					x.fails("unlock without a hold", x.unlocked(l, 2), lockimpl.ErrNotHeld)
				})
				first()
				second()
				x.succeeds("last unlock", x.unlocked(try(3, 0, true), 3))
			},
		},
		{
			class: "RedissonFairLockTest", name: "testConcurrency_MultiInstance_Ordering",
			does: "8 threads (twice the processors), 10 ms apart, lock, hold for 1 s, unlock: they enter in the order of their start, all within 45 s.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				var order []int
				var all sync.WaitGroup
				for i := range 2 * processors {
					time.Sleep(10 * time.Millisecond)
					o := lockimpl.Owner(i + 1)
					all.Go(func() {
						l := x.object(c)
						x.succeeds("lock", l.Lock(background, o, noLease))
						order = append(order, i)
						time.Sleep(time.Second)
						x.succeeds("unlock", x.unlocked(l, o))
					})
				}
				all.Wait()
				x.expect("order", order, []int{0, 1, 2, 3, 4, 5, 6, 7})
				x.within("time", x.now(), 0, 45*time.Second)
			},
		},
		{
			class: "RedissonFairLockTest", name: "testAcquireFailedNotCalledOnRedisTimeout",
			does: "Response timeout of 1 s, 10 attempts. Behind a holder with a lease of 10 s, and behind a waiter, tryLock(60 s) waits; the server does not answer for 20 s (here what is sent meanwhile never arrives): the try is no error and leaves the queue.",
			differs: []deviation{
				{
					"3.4.2 3.43.0", []string{"the try is queued: true, not false", "try: outcome unknown"},
					"a response timeout is an error, and leaves the queue to the deadline (issue 5019)",
				},
				{
					"3.21.3", []string{"the try has ended: false, not true", "the try is queued: true, not false"},
					"the attempt is sent again every 2.5 s until it is answered, and the try goes on",
				},
			},
			play: func(x *libraryCase) {
				c := x.newClient("c1", func(cfg *Config) { cfg.ResponseTimeout, cfg.RetryAttempts = time.Second, 10 })
				x.acquired(x.object(c), 1, lockimpl.LockOptions{Lease: 10 * time.Second})
				waiter := x.beginLock(background, x.object(c), 2, lockimpl.LockOptions{Lease: 10 * time.Second})
				time.Sleep(200 * time.Millisecond)
				try := x.begin(func() (bool, error) {
					return x.object(c).TryLockTimed(background, 3, lockimpl.TryOptions{Wait: time.Minute, Lease: time.Second, Unit: time.Second})
				})
				time.Sleep(100 * time.Millisecond)
				paused := x.now()
				x.answer(func(c command) fate {
					return fate{never: c.script != "" && x.now() < paused+20*time.Second}
				})
				time.Sleep(21 * time.Second)
				ended := try.ended()
				x.expect("the try has ended", ended, true)
				if ended {
					x.succeeds("try", try.err)
				}
				owners, _ := x.m.List(QueueName("lock"))
				x.expect("the try is queued", strings.Contains(fmt.Sprint(owners), "c1:3"), false)
				x.must(c.Close())
				waiter.wait()
				try.wait()
			},
		},

		{
			class: "RedissonFencedLockTest", name: "testTokenIncrease", on: "3.21.3 3.43.0 4.7.0",
			does: "The tokens of lockAndGetToken, again, lock(), lock(10 s) and tryLockAndGetToken, each after an unlock, are 1, 2, 3, 4, 5.",
			play: func(x *libraryCase) {
				l, err := x.newClient("c1").GetFencedLock("lock")
				x.must(err)
				var tokens []int64
				drawn := func(token int64, err error) {
					x.must(err)
					tokens = append(tokens, token)
				}
				for range 2 {
					drawn(l.LockAndGetToken(background, 1, noLease))
					x.must(x.unlocked(l, 1))
				}
				for _, lease := range []time.Duration{0, 10 * time.Second} {
					x.acquired(l, 1, lockimpl.LockOptions{Lease: lease})
					drawn(l.Token(background))
					x.must(x.unlocked(l, 1))
				}
				token, _, err := l.TryLockAndGetToken(background, 1)
				drawn(token, err)
				x.expect("tokens", tokens, []int64{1, 2, 3, 4, 5})
			},
		},

		{
			class: "RedissonNonReentrantLockTest", name: "testContendingThreadBlocksAndAcquiresOnRelease", on: "4.7.0",
			does: "Another thread's lock() waits for 300 ms and more, is granted within 5 s of the unlock, and its unlock frees the lock.",
			play: func(x *libraryCase) {
				l := x.nonReentrantObject(x.newClient("c1"))
				x.acquired(l, 1, noLease)
				other := x.beginLock(background, l, 2, noLease)
				time.Sleep(300 * time.Millisecond)
				x.expect("granted before the unlock", other.ended(), false)
				at := x.now()
				x.must(x.unlocked(l, 1))
				other.wait()
				x.succeeds("lock of the other", other.err)
				x.within("time after the unlock", other.at-at, 0, 5*time.Second)
				x.succeeds("unlock of the other", x.unlocked(l, 2))
				x.locked(l, false)
			},
		},
		{
			class: "RedissonNonReentrantLockTest", name: "testSameThreadReacquireThrows", on: "4.7.0",
			does: "The holder's lock(), tryLock() and tryLock(100 ms) are errors; one unlock frees the lock.",
			play: func(x *libraryCase) {
				l := x.nonReentrantObject(x.newClient("c1"))
				x.acquired(l, 1, noLease)
				x.refusesReentry(l, true)
				x.heldBy(l, 1, true)
				x.must(x.unlocked(l, 1))
				x.locked(l, false)
			},
		},
		{
			class: "RedissonNonReentrantLockTest", name: "testCrossInstanceSameThreadReentryThrows", on: "4.7.0",
			does: "The same through another lock object of the name.",
			play: func(x *libraryCase) {
				c := x.newClient("c1")
				a, b := x.nonReentrantObject(c), x.nonReentrantObject(c)
				x.acquired(a, 1, noLease)
				x.refusesReentry(b, false)
				x.heldBy(b, 1, true)
				x.must(x.unlocked(a, 1))
				x.locked(a, false)
				x.locked(b, false)
			},
		},
	},
)

// libraryTestsLeftOut are the tests that cannot be played on the port.
var libraryTestsLeftOut = []struct{ class, names, why string }{
	{"RedissonLockTest", "testInCluster", "It takes a cluster. `TestWireOfCluster` holds port and library against one, and the world has shards."},
	{"RedissonLockTest", "testDelete", "It is of early releases; the port has no delete(), which takes a lock as any other object."},
	{"RedissonFairLockTest", "testDelete", "The same."},
	{"RedissonFairLockTest", "testNameMapper", "The port has no name mapper. Names of keys are tested by `TestNamesOfKeysAndChannels`."},
	{"RedissonLockExpirationRenewalTest", "testWriteLockAfterTimeout testReadLockAfterTimeout", "The port has no read/write lock."},
	{"RedissonLockExpirationRenewalTest", "testWatchdogDoesNotOutliveInterruptedAcquire", "It is of a release after 4.7.0 (issue 7272): a storm of interrupts in real time against a race of threads. What interrupts do at each stage is told by `TestAnInterruptedAttemptThatAcquiredIsRenewedForever` and compared by the stories of interrupts."},
	{"RedissonLockExpirationRenewalTest", "testCancelledTryLockAsyncDoesNotLeaveWatchdog", "The same, and the port has no asynchronous calls."},
	{"RedissonLockExpirationRenewalTest", "testLockRenewalFailureListener testLockRenewalFailureListenerReportsThreadIdWhenThreadNameIsUnknown testLockRenewalFailureListenerIsNotCalledOnSuccessfulRenewal testRemovedLockRenewalFailureListenerIsNotNotified testLockRenewalFailureListenerIsRegisteredPerLockName testLockRenewalFailureListenerExceptionDoesNotStopScheduling testLockRenewalFailureListenerNameMapperExceptionDoesNotStopScheduling testLockRenewalFailureListenerIsCalledOnlyForFailedBatch testLockRenewalFailureListenerIsNotifiedOnlyForItsOwnLock testSlowLockRenewalFailureListenerDoesNotDelayScheduling", "The listener is of a release after 4.7.0."},
	{"LockEntryTest", "speculativeRegisterThenCancelLeavesNoThreads reentrantAcquireAndFullReleaseClearsEntry", "It tests a class of a release after 4.7.0."},
	{"RedissonLockReplicatedTimeoutTest", "testReplicatedTryLockDoesNotResendAcquireAfterResponseTimeout", "It is of a release after 4.7.0 (issue 7367). What is sent again beside replicas is told by `TestLostBesideReplicas`."},
	{"RedissonLockReactiveTest", "", "It tests reactive calls, listeners of expiry and multi-locks. The port has none of them."},
	{"RedissonLockRxTest", "", "The same."},
	{"RedissonSpinLockTest", "", "The port has no spin lock."},
	{"RedissonReadWriteLockTest", "", "The port has no read/write lock."},
	{"RedissonMultiLockTest", "", "The port has no multi-lock."},
	{"RedissonFasterMultiLockTest", "", "The same."},
	{"RedissonRedLockTest", "", "The port has no RedLock."},
}

func (x *libraryCase) heldBy(l lockimpl.Lock, o lockimpl.Owner, want bool) {
	x.t.Helper()
	got, err := l.IsHeldBy(background, o)
	x.must(err)
	x.expect(fmt.Sprintf("held by %d", o), got, want)
}

func (x *libraryCase) locked(l lockimpl.Lock, want bool) {
	x.t.Helper()
	got, err := l.IsLocked(background)
	x.must(err)
	x.expect("locked", got, want)
}

func (x *libraryCase) tryNow(l lockimpl.Lock, o lockimpl.Owner, want bool) {
	x.t.Helper()
	got, err := l.TryLock(background, o)
	x.must(err)
	x.expect(fmt.Sprintf("tryLock by %d", o), got, want)
}

// tryLockWait plays testTryLockWait.
func (x *libraryCase) tryLockWait(most time.Duration) {
	gone := x.newClient("c1")
	x.acquired(x.object(gone), 1, noLease)
	x.must(gone.Close())
	began := x.now()
	_, err := x.object(x.newClient("c2")).TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 3 * time.Second, Unit: time.Second})
	x.succeeds("tryLock", err)
	x.within("time", x.now()-began, 2990*time.Millisecond, most)
}

// expire plays testExpire and returns the error of the late unlock.
func (x *libraryCase) expire() error {
	c := x.newClient("c1")
	l := x.object(c)
	x.acquired(l, 1, lockimpl.LockOptions{Lease: 2 * time.Second})
	began := x.now()
	thread(func() {
		other := x.object(c)
		x.succeeds("lock", other.Lock(background, 2, noLease))
		x.within("time of the second lock", x.now()-began, 0, 2020*time.Millisecond)
		x.succeeds("unlock", x.unlocked(other, 2))
	})()
	return x.unlocked(l, 1)
}

// drift plays the tests in which three threads try again and again and the last of them is
// interrupted. The remaining deadlines must then not be too far ahead. within returns the wait that
// may be added to the lease for the deadline at an index.
func (x *libraryCase) drift(tasks int, wait, hold time.Duration, within func(i int) time.Duration) {
	const lease = 30 * time.Second
	c := x.newClient("c1")
	l := x.bench.lock(c, x.kind, "test-fair-lock")
	interrupted, shutdownNow := context.WithCancel(background)
	last := make(chan struct{})
	task := func(o lockimpl.Owner, wait, hold time.Duration) {
		ok, err := l.TryLockTimed(interrupted, o, lockimpl.TryOptions{Wait: wait, Lease: lease})
		if err != nil || !ok {
			return
		}
		select {
		case <-interrupted.Done(): // and the lock stays
		case <-time.After(hold):
			_ = x.unlocked(l, o)
		}
	}
	queue := make(chan func(lockimpl.Owner), tasks+1)
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			time.Sleep(time.Duration(n) * time.Microsecond) // so that thread n takes the n-th task
			for {
				select {
				case <-interrupted.Done():
					return
				case f := <-queue:
					f(lockimpl.Owner(n + 1))
					time.Sleep(time.Duration(n+1) * time.Millisecond) // so that no two begin at one instant
				}
			}
		})
	}
	for i := range tasks {
		queue <- func(o lockimpl.Owner) { task(o, wait, hold) }
		if i < 3 {
			time.Sleep(53 * time.Millisecond) // the library waits 50; 53 lets no thread start at the instant of an unlock
		}
	}
	queue <- func(o lockimpl.Owner) {
		close(last)
		task(o, lease, time.Second)
	}
	<-last
	time.Sleep(77 * time.Millisecond) // the library's test looks every 100 ms
	shutdownNow()
	all.Wait()
	synctest.Wait()
	_, err := l.ForceUnlock(background)
	x.succeeds("forceUnlock", err)
	x.locked(l, false)
	for i, ahead := range x.sortedDeadlines("test-fair-lock") {
		if ahead, most := ahead.Truncate(time.Second), lease+within(i); ahead > most {
			x.miss("deadline %d: %v ahead, not at most %v", i+1, ahead, most)
		}
	}
}

// discrete runs single scripts of a fair lock, as the library's tests of deadlines do.
type discrete struct {
	x *libraryCase
	l *lock
}

func (x *libraryCase) scriptsOf(c *Client) discrete {
	return discrete{x, x.object(c).(*lock)}
}

func (s discrete) run(script Script, v operands) reply {
	r := s.l.run(background, script, v)
	s.x.must(r.err)
	return r
}

// told runs the script that queues, and returns the time in its answer, 0 if it acquired.
func (s discrete) told(o lockimpl.Owner, lease, wait time.Duration) time.Duration {
	ms, _ := s.run(s.l.acquire, operands{owner: o, lease: lease, wait: wait}).long()
	return time.Duration(ms) * time.Millisecond
}

// granted expects the script that queues to acquire.
func (s discrete) granted(who string, o lockimpl.Owner, lease, wait time.Duration) {
	ms, refused := s.run(s.l.acquire, operands{owner: o, lease: lease, wait: wait}).long()
	if refused {
		s.x.miss("%s: told %v, not granted", who, time.Duration(ms)*time.Millisecond)
	}
}

func (s discrete) tries(o lockimpl.Owner, lease, wait time.Duration) bool {
	_, refused := s.run(s.l.tryAcquire, operands{owner: o, lease: lease, wait: wait}).long()
	return !refused
}

func (s discrete) leaves(o lockimpl.Owner, wait time.Duration) {
	s.run(*s.l.leave, operands{owner: o, wait: wait})
}

func (s discrete) unlocks(o lockimpl.Owner) {
	r := s.run(s.l.unlock, operands{owner: o, lease: s.l.field(), request: s.l.c.env.NewID(o)})
	s.x.expect("unlock", unlockAnswer(r), AnswerReleased)
}

func (x *libraryCase) nonReentrantObject(c *Client) lockimpl.Lock {
	l, err := c.GetNonReentrantLock("nrl")
	x.must(err)
	return l
}

// refusesReentry expects errors of each call by which owner 1 would enter again.
func (x *libraryCase) refusesReentry(l lockimpl.Lock, timed bool) {
	x.fails("lock", l.Lock(background, 1, noLease), lockimpl.ErrReentry)
	_, err := l.TryLock(background, 1)
	x.fails("tryLock", err, lockimpl.ErrReentry)
	if timed {
		_, err = l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 100 * time.Millisecond})
		x.fails("tryLock(100 ms)", err, lockimpl.ErrReentry)
	}
}
