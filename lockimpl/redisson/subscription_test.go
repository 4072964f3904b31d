package redisson

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
)

// ops counts a client's commands of a name.
func (b *bench) ops(client, op string) (n int) {
	for _, c := range b.commands(client) {
		if c.op == op {
			n++
		}
	}
	return n
}

// All threads of a client share the plain lock's channel and its entry; each waiter of a fair lock
// has its own. The last waiter to leave unsubscribes.
func TestSharedAndOwnSubscriptions(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		c := b.client(k.Release, "c1")
		ctx, cancel := context.WithCancel(background)
		var calls []*call
		for o := range 3 {
			calls = append(calls, b.beginLock(ctx, b.lock(c, k, "x"), lockimpl.Owner(o), lockimpl.LockOptions{Interruptible: true}))
		}
		channels, subscribes := []string{"redisson_lock__channel:{x}"}, 1
		if k.fair {
			channels = []string{"redisson_lock__channel:{x}:c1:0", "redisson_lock__channel:{x}:c1:1", "redisson_lock__channel:{x}:c1:2"}
			subscribes = 3
		}
		same(b.t, "channels", b.channels(), channels)
		same(b.t, "SUBSCRIBE commands", b.ops("c1", "SUBSCRIBE"), subscribes)
		for _, n := range b.m.PubSubNumSub(channels...) {
			same(b.t, "subscribers of a channel", n, 1)
		}
		cancel()
		for _, c := range calls {
			c.failedAt(0, context.Canceled)
		}
		same(b.t, "channels left", b.channels(), nil)
		same(b.t, "entries left", len(c.channels.entries), 0)
	})
}

// A call that gets the lock at its first attempt subscribes to nothing.
func TestAnUncontendedLockDoesNotSubscribe(t *testing.T) {
	each(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c1"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "SUBSCRIBE commands", b.ops("c1", "SUBSCRIBE"), 0)
	})
}

// Each release wakes at most one waiter of each client on the plain lock, and
// the head of the queue only on the fair one.
func TestWhomAReleaseWakes(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		var calls []*call
		c1, c2 := b.client(k.Release, "c1"), b.client(k.Release, "c2")
		for o := range 3 {
			calls = append(calls, b.beginLock(background, b.lock(c1, k, "x"), lockimpl.Owner(o), lockimpl.LockOptions{Lease: time.Second}))
			calls = append(calls, b.beginLock(background, b.lock(c2, k, "x"), lockimpl.Owner(o), lockimpl.LockOptions{Lease: time.Second}))
		}
		b.until(time.Second)
		b.forget()
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		n1, n2 := len(b.runs("c1", k.acquire().Name)), len(b.runs("c2", k.acquire().Name))
		if k.fair {
			same(b.t, "attempts of the two clients", [2]int{n1, n2}, [2]int{1, 0})
		} else {
			same(b.t, "attempts of the two clients", [2]int{n1, n2}, [2]int{1, 1})
		}
		for _, c := range calls { // leases end without a message; every caller gets the lock in the end
			c.wait()
			b.must(c.err)
		}
	})
}

// Permits accumulate: each message causes one attempt, even a message that came while nobody
// waited.
func TestPermitsAccumulate(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		k := kind{rel, false}
		b.must(b.lock(b.client(rel, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		c := b.client(rel, "c1")
		ctx, cancel := context.WithCancel(background)
		call := b.beginLock(ctx, b.lock(c, k, "x"), 1, lockimpl.LockOptions{Interruptible: true})
		b.forget()
		// While the woken attempt is under way, two more messages come.
		b.answer(func(c command) fate {
			if c.client == "c1" && c.script == rel.Acquire.Name {
				return fate{late: time.Second}
			}
			return fate{}
		})
		for range 3 {
			b.m.Publish(ChannelName("x"), "0")
		}
		b.until(5 * time.Second)
		same(b.t, "attempts", times(b.runs("c1", rel.Acquire.Name)), seconds(0, 1, 2))
		cancel()
		call.failedAt(5*time.Second, context.Canceled)
	})
}

// lock() fails after 7.5 s, in 3.21.3 after 3 s, and does not leave the fair lock's queue. tryLock
// fails when its wait is over, and leaves.
func TestASubscriptionThatIsNotAcknowledged(t *testing.T) {
	each(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		b.answer(func(c command) fate { return fate{lost: c.op == "SUBSCRIBE"} })
		want := byRelease[struct {
			at  time.Duration
			err error
		}]{
			"3.4.2 3.11.0 3.12.4": {7500 * time.Millisecond, errSubscribeTimeout},
			"3.21.3":              {3 * time.Second, errResponseTimeout},
			"3.43.0 4.7.0":        {7500 * time.Millisecond, errResponseTimeout},
		}.forRelease(b.t, k.Release)
		b.beginLock(background, l, 1, lockimpl.LockOptions{}).failedAt(want.at, want.err)
		same(b.t, "entries left", len(c.channels.entries), 0)
		if k.fair {
			queue, _ := b.m.List(QueueName("x"))
			same(b.t, "queue", queue, []string{"c1:1"})
		}
		b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 2, lockimpl.TryOptions{Wait: 2500 * time.Millisecond})
		}).refusedAt(want.at + 2500*time.Millisecond)
		if k.fair {
			queue, _ := b.m.List(QueueName("x"))
			same(b.t, "queue", queue, []string{"c1:1"})
		}
		same(b.t, "entries left", len(c.channels.entries), 0)
	})
}

// An interrupt during the subscription ends lock() with an error, since this is not yet the wait
// for the lock. In 3.4.2 it is a wait for a reply, which notices no interrupt.
func TestAnInterruptWhileSubscribing(t *testing.T) {
	each(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c0"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(func(c command) fate { return fate{lost: c.op == "SUBSCRIBE"} })
		ctx, cancel := context.WithCancel(background)
		lock := b.beginLock(ctx, b.lock(b.client(k.Release, "c1"), k, "x"), 1, lockimpl.LockOptions{})
		b.until(time.Second)
		cancel()
		if k.isOneOf("3.4.2") {
			lock.failedAt(7500*time.Millisecond, errSubscribeTimeout)
			return
		}
		lock.failedAt(time.Second, context.Canceled)
	})
}

// A failed subscription fails for all that joined it. Its entry is removed, and the next caller
// subscribes again (issue 4662).
func TestAFailedSubscriptionFailsAllWhoJoined(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		k := kind{rel, false}
		holder := b.lock(b.client(rel, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		c := b.client(rel, "c1")
		l := b.lock(c, k, "x")
		b.answer(func(c command) fate {
			if c.op == "SUBSCRIBE" {
				return fate{late: time.Second, reply: "-NOPERM not this channel\r\n"}
			}
			return fate{}
		})
		first := b.beginLock(background, l, 1, lockimpl.LockOptions{})
		joined := b.beginLock(background, l, 2, lockimpl.LockOptions{})
		try := b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 3, lockimpl.TryOptions{Wait: time.Hour})
		})
		for _, c := range []*call{first, joined} {
			c.wait()
			if c.at != time.Second || c.err == nil || !strings.Contains(c.err.Error(), "NOPERM") {
				b.t.Errorf("lock ended at %v with %v; want the failure to subscribe at 1s", c.at, c.err)
			}
		}
		try.refusedAt(time.Second)
		same(b.t, "entries left", len(c.channels.entries), 0)
		b.answer(nil)
		again := b.beginLock(background, l, 1, lockimpl.LockOptions{})
		now := b.now()
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		again.grantedAt(now)
	})
}

// After a lost connection the client connects and subscribes again. Messages published in between
// are lost; later ones are heard.
func TestASubscriptionSurvivesItsConnection(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		lock := b.beginLock(background, b.lock(b.client(k.Release, "c1"), k, "x"), 1, lockimpl.LockOptions{})
		b.until(time.Second)
		b.refuse(errors.New("network is down"))
		b.cut("c1")
		b.until(2 * time.Second)
		same(b.t, "channels while the network is down", b.channels(), nil)
		b.refuse(nil)
		b.until(10*time.Second - 1)
		same(b.t, "channels after it", len(b.channels()), 1)
		b.until(12 * time.Second)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		lock.grantedAt(12 * time.Second)
	})
}

// The server acknowledges the subscription after 4 s, and the lock is given up after 6 s.
func TestASubscriptionThatIsAcknowledgedLate(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(func(c command) fate {
			if c.op == "SUBSCRIBE" {
				return fate{late: 4 * time.Second}
			}
			return fate{}
		})
		call := b.beginLock(background, b.lock(b.client(k.Release, "c1"), k, "x"), 1, lockimpl.LockOptions{})
		b.until(6 * time.Second)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		switch {
		case k.isOneOf("3.4.2 3.12.4"):
			call.grantedAt(6 * time.Second)
		case k.isOneOf("3.11.0"): // left the channel, and waits on
			call.failedAt(7500*time.Millisecond, errSubscribeTimeout)
		case k.isOneOf("3.21.3"):
			call.failedAt(3*time.Second, errResponseTimeout)
		default: // the waiters fail when it has left the channel
			call.failedAt(4*time.Second, errResponseTimeout)
		}
		same(b.t, "channels left", len(b.channels()), 0)
	})
}

// The try that began a subscription is interrupted. The other threads that wait for it are woken.
func TestAnInterruptOfTheTryThatBeganASubscription(t *testing.T) {
	each(t, func(b *bench, k kind) {
		if k.fair {
			return // each waiter has a channel of its own
		}
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(func(c command) fate {
			if c.op == "SUBSCRIBE" {
				return fate{late: 2 * time.Second}
			}
			return fate{}
		})
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		ctx, cancel := context.WithCancel(background)
		first := b.begin(func() (bool, error) {
			return l.TryLockTimed(ctx, 1, lockimpl.TryOptions{Wait: time.Minute})
		})
		second := b.beginLock(background, l, 2, lockimpl.LockOptions{})
		b.until(time.Second)
		cancel()
		first.failedAt(time.Second, context.Canceled)
		b.until(4 * time.Second)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		second.grantedAt(4 * time.Second)
	})
}

// A message calls the listener before it gives a permit to the thread that waits. So the call with a token
// asks before the thread does.
func TestAListenerGoesBeforeTheThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &subscription{ready: make(chan struct{})}
		c := NewClient(nil, Config{})
		begun := time.Now()
		var heard, woken time.Duration
		go func() {
			_ = c.acquire(background, e, -1)
			woken = time.Since(begun)
		}()
		go func() {
			c.hear(e, time.Minute)
			heard = time.Since(begun)
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		e.release()
		time.Sleep(time.Second)
		synctest.Wait() // the race detector does not see a sleep as synchronization
		same(t, "the listener", heard, time.Second)
		same(t, "the thread", woken, time.Second+wakeTime)
	})
}

// A permit that comes at the instant at which a waiter gives up is not lost.
func TestAPermitIsNeverLost(t *testing.T) {
	e := &subscription{ready: make(chan struct{})}
	c := NewClient(nil, Config{})
	e.release()
	e.release()
	same(t, "stored permits", e.permits, 2)
	ctx, cancel := context.WithCancel(background)
	cancel()
	// An interrupt wins over a stored permit, as in java.util.concurrent.Semaphore.
	if err := c.acquire(ctx, e, -1); !errors.Is(err, context.Canceled) {
		t.Fatalf("acquire after an interrupt gave %v; want the interrupt", err)
	}
	same(t, "stored permits after the interrupt", e.permits, 2)
	for range 2 {
		if err := c.acquire(background, e, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.acquire(ctx, e, -1); !errors.Is(err, context.Canceled) {
		t.Fatalf("acquire without permits gave %v; want the interrupt", err)
	}
	same(t, "waiters left", len(e.waiting), 0)
	if err := c.acquire(background, e, 0); err != nil {
		t.Fatalf("a wait of no length gave %v", err)
	}
	same(t, "waiters left", len(e.waiting), 0)
}
