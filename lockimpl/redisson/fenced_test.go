package redisson

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"lockstep/lockimpl"
)

// fenced makes a fenced lock object.
func (b *bench) fenced(c *Client, name string) FencedLock {
	b.t.Helper()
	l, err := c.GetFencedLock(name)
	b.must(err)
	return l
}

// onFenced runs f in a bubble for every release with a fenced lock.
func onFenced(t *testing.T, f func(b *bench, rel *Release)) {
	t.Helper()
	for _, rel := range Releases {
		if rel.Fenced != nil {
			t.Run(rel.Version, func(t *testing.T) { bubble(t, func(b *bench) { f(b, rel) }) })
		}
	}
}

// Some releases are older than the fenced lock and the non-reentrant locks, and do not make them.
func TestLocksThatAReleaseDoesNotHave(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		c := b.client(rel, "c1")
		for what, get := range map[string]func() error{
			"fenced":             func() error { return second(c.GetFencedLock("x")) },
			"non-reentrant":      func() error { return second(c.GetNonReentrantLock("x")) },
			"non-reentrant fair": func() error { return second(c.GetNonReentrantFairLock("x")) },
		} {
			if err := get(); rel.isOneOf("4.7.0") || what == "fenced" && rel.isOneOf("3.21.3 3.43.0") {
				b.must(err)
			} else if !errors.Is(err, lockimpl.ErrInvalid) {
				b.t.Errorf("%s lock: %v; want ErrInvalid", what, err)
			}
		}
	})
}

// Every acquire draws a token, even a re-entry, and even if the call does not return it. The
// counter has no expiry and outlives the holds.
func TestEveryAcquireDrawsAToken(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		c1, c2 := b.client(rel, "c1"), b.client(rel, "c2")
		l, o := b.fenced(c1, "x"), b.fenced(c2, "x")
		newest := func(want int64) {
			b.t.Helper()
			got, err := o.Token(background) // whichever client asks
			b.must(err)
			same(b.t, "newest token", got, want)
		}
		newest(0)
		token, err := l.LockAndGetToken(background, 1, lockimpl.LockOptions{})
		b.must(err)
		same(b.t, "token of a lock", token, 1)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{})) // draws a token and does not return it
		newest(2)
		token, ok, err := l.TryLockAndGetToken(background, 1)
		b.must(err)
		same(b.t, "token of a re-entry", token, 3)
		same(b.t, "granted", ok, true)
		b.tried(true)(l.TryLock(background, 1))
		b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{}))
		newest(5)
		token, ok, err = l.TryLockTimedAndGetToken(background, 1, lockimpl.TryOptions{Lease: time.Minute})
		b.must(err)
		same(b.t, "token of a timed try", token, 6)
		same(b.t, "granted", ok, true)

		// Another client, which is refused, draws no token and gets none.
		token, ok, err = o.TryLockTimedAndGetToken(background, 1, lockimpl.TryOptions{Wait: time.Second})
		b.must(err)
		same(b.t, "refused in time", [2]any{token, ok}, [2]any{int64(0), false})
		same(b.t, "time", b.now(), time.Second)
		newest(6)

		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "6"})
		b.tried(true)(l.ForceUnlock(background))
		same(b.t, "keys left", b.keys(), []string{"redisson_lock_token:{x}"})
		same(b.t, "its time to live", b.m.TTL(TokenName("x")), 0)
		token, err = o.LockAndGetToken(background, 1, lockimpl.LockOptions{})
		b.must(err)
		same(b.t, "token of the next hold", token, 7)
	})
}

// The two forms have the same KEYS and ARGV. Only their answers differ.
func TestKeysAndArgumentsOfTheFencedLock(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		for name, token := range map[string]string{"x": "redisson_lock_token:{x}", "a{b}c": "redisson_lock_token:a{b}c"} {
			l := b.fenced(b.client(rel, "c1"), name)
			b.must(l.Lock(background, 7, lockimpl.LockOptions{Lease: 20 * time.Second}))
			_, _, err := l.TryLockTimedAndGetToken(background, 7, lockimpl.TryOptions{Lease: 40 * time.Second})
			b.must(err)
			for script, lease := range map[string]string{"acquire_fenced": "20000", "acquire_token": "40000"} {
				runs := b.runs("c1", script)
				if len(runs) == 0 {
					b.t.Fatalf("%s was not run", script)
				}
				same(b.t, script+" keys", runs[len(runs)-1].keys, []string{name, token})
				same(b.t, script+" arguments", runs[len(runs)-1].args, []string{lease, "c1:7"})
			}
			b.forget()
		}
	})
}

// The library's lockAndGetToken(lease, unit) forgets its lease: the hold is renewed by the
// watchdog. The try keeps its lease.
func TestLockAndGetTokenForgetsItsLease(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		l := b.fenced(b.client(rel, "c1"), "x")
		_, err := l.LockAndGetToken(background, 1, lockimpl.LockOptions{Lease: 5 * time.Second})
		b.must(err)
		same(b.t, "time to live", b.m.TTL("x"), 30*time.Second)
		b.until(5 * time.Minute)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		_, _, err = l.TryLockTimedAndGetToken(background, 1, lockimpl.TryOptions{Lease: 5 * time.Second})
		b.must(err)
		same(b.t, "time to live of a try", b.m.TTL("x"), 5*time.Second)
		b.until(5*time.Minute + 5*time.Second)
		same(b.t, "hash after it", b.held("x"), map[string]string{})
	})
}

// A release wakes a waiter, as on the plain lock, and the waiter gets its token.
func TestAFencedWaiterIsWokenAndToldItsToken(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		holder, l := b.fenced(b.client(rel, "c1"), "x"), b.fenced(b.client(rel, "c2"), "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		var token int64
		lock := b.begin(func() (ok bool, err error) {
			token, err = l.LockAndGetToken(background, 1, lockimpl.LockOptions{})
			return err == nil, err
		})
		try := b.begin(func() (ok bool, err error) {
			_, ok, err = l.TryLockTimedAndGetToken(background, 2, lockimpl.TryOptions{Wait: 10 * time.Second})
			return ok, err
		})
		same(b.t, "channels", b.channels(), []string{"redisson_lock__channel:{x}"})
		b.until(5 * time.Second)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		lock.grantedAt(5 * time.Second)
		same(b.t, "token", token, 2)
		try.refusedAt(10 * time.Second)
	})
}

// A try without a wait waits without bound, as the library does.
func TestATryForATokenWithoutAWaitWaitsWithoutBound(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		holder, l := b.fenced(b.client(rel, "c1"), "x"), b.fenced(b.client(rel, "c2"), "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		var token int64
		try := b.begin(func() (ok bool, err error) {
			token, ok, err = l.TryLockAndGetToken(background, 1)
			return ok, err
		})
		b.until(2 * time.Minute)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		try.grantedAt(2 * time.Minute)
		same(b.t, "token", token, 2)
	})
}

// An interrupt ends at once a call that returns a token. If the attempt under way is granted, the
// grant is given back.
func TestAnInterruptedCallForATokenGivesBackItsGrant(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		l := b.fenced(b.client(rel, "c1"), "x")
		_, err := l.LockAndGetToken(background, 1, lockimpl.LockOptions{}) // the server knows the script from now on
		b.must(err)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		b.answer(func(c command) fate {
			if c.script == "acquire_token" {
				return fate{late: time.Second}
			}
			return fate{}
		})
		ctx, interrupt := context.WithCancel(background)
		call := b.begin(func() (bool, error) {
			_, err := l.LockAndGetToken(ctx, 1, lockimpl.LockOptions{})
			return err == nil, err
		})
		b.until(500 * time.Millisecond)
		interrupt()
		call.failedAt(500*time.Millisecond, lockimpl.ErrUnknownOutcome)
		same(b.t, "hash before the answer", b.held("x"), map[string]string{"c1:1": "1"})
		b.until(5 * time.Minute)
		same(b.t, "hash after it", b.held("x"), map[string]string{})
		same(b.t, "renewals", b.renewals(rel, "c1"), nil)
	})
}

// The library takes the answer for a key without a time to live for a grant.
func TestAKeyWithoutTimeToLiveIsTakenForAToken(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		b.m.HSet("x", "c1:1", "1")
		token, ok, err := b.fenced(b.client(rel, "c2"), "x").TryLockTimedAndGetToken(background, 1, lockimpl.TryOptions{Wait: time.Second, Lease: time.Second})
		b.must(err)
		same(b.t, "granted", ok, true)
		same(b.t, "token", token, -1)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}

func TestArgumentsOfTheFencedLockAreChecked(t *testing.T) {
	onFenced(t, func(b *bench, rel *Release) {
		c := b.client(rel, "c1")
		if err := second(c.GetFencedLock("")); !errors.Is(err, lockimpl.ErrInvalid) {
			b.t.Errorf("no name: %v; want ErrInvalid", err)
		}
		l := b.fenced(c, "x")
		if _, err := l.LockAndGetToken(background, 1, lockimpl.LockOptions{Lease: -1}); !errors.Is(err, lockimpl.ErrInvalid) {
			b.t.Errorf("lock with a negative lease: %v; want ErrInvalid", err)
		}
		if _, _, err := l.TryLockTimedAndGetToken(background, 1, lockimpl.TryOptions{Wait: -1}); !errors.Is(err, lockimpl.ErrInvalid) {
			b.t.Errorf("try with a negative wait: %v; want ErrInvalid", err)
		}
		same(b.t, "commands", len(b.commands("c1")), 0)
	})
}

// eachNonReentrant runs f in a bubble for both locks that refuse their holder.
func eachNonReentrant(t *testing.T, f func(b *bench, get func(*Client) lockimpl.Lock, acquire, tryAcquire Script)) {
	t.Helper()
	for _, fair := range []bool{false, true} {
		t.Run("fair "+strconv.FormatBool(fair), func(t *testing.T) {
			on(t, "4.7.0", func(b *bench, rel *Release) {
				n := rel.NonReentrant
				if fair {
					f(b, func(c *Client) lockimpl.Lock { return b.nonReentrant(c.GetNonReentrantFairLock("x")) }, n.FairAcquire, n.FairTryAcquire)
				} else {
					f(b, func(c *Client) lockimpl.Lock { return b.nonReentrant(c.GetNonReentrantLock("x")) }, n.Acquire, n.Acquire)
				}
			})
		})
	}
}

func (b *bench) nonReentrant(l lockimpl.Lock, err error) lockimpl.Lock {
	b.t.Helper()
	b.must(err)
	return l
}

// Each call of the holder is refused with an error. Nothing changes, not even the time to live, and
// one unlock frees the lock.
func TestANonReentrantLockRefusesItsHolder(t *testing.T) {
	eachNonReentrant(t, func(b *bench, get func(*Client) lockimpl.Lock, _, _ Script) {
		c := b.client(Releases[len(Releases)-1], "c1")
		l := get(c)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		b.until(5 * time.Second)
		before := b.keyspace()
		for what, err := range map[string]error{
			"lock":                l.Lock(background, 1, lockimpl.LockOptions{}),
			"try lock":            second(l.TryLock(background, 1)),
			"timed try":           second(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Second, Lease: time.Hour})),
			"lock of an object":   get(c).Lock(background, 1, lockimpl.LockOptions{}),
			"lock with a lease":   l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Hour}),
			"try without waiting": second(l.TryLockTimed(background, 1, lockimpl.TryOptions{})),
		} {
			if !errors.Is(err, lockimpl.ErrReentry) || errors.Is(err, lockimpl.ErrUnknownOutcome) {
				b.t.Errorf("%s by the holder: %v; want ErrReentry", what, err)
			}
		}
		same(b.t, "time", b.now(), 5*time.Second)
		same(b.t, "database", b.keyspace(), before)
		n, err := l.HoldCount(background, 1)
		b.must(err)
		same(b.t, "hold count", n, 1)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		b.tried(true)(l.TryLock(background, 1))
	})
}

// Others wait as ever, and a refused re-entry starts no renewal.
func TestANonReentrantLockIsALockToOthers(t *testing.T) {
	eachNonReentrant(t, func(b *bench, get func(*Client) lockimpl.Lock, acquire, tryAcquire Script) {
		rel := Releases[len(Releases)-1]
		l, o := get(b.client(rel, "c1")), get(b.client(rel, "c2"))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 20 * time.Second}))
		if err := l.Lock(background, 1, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrReentry) {
			b.t.Fatal(err)
		}
		b.tried(false)(o.TryLock(background, 1))
		b.beginLock(background, o, 1, lockimpl.LockOptions{}).grantedAt(20 * time.Second)
		same(b.t, "renewals of the first", b.renewals(rel, "c1"), nil)
		b.until(2 * time.Minute)
		same(b.t, "hash", b.held("x"), map[string]string{"c2:1": "1"}) // renewed
		if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Errorf("late unlock: %v; want ErrNotHeld", err)
		}
		b.released(lockimpl.Released)(o.Unlock(background, 1))
		same(b.t, "attempt that waits", len(b.runs("c2", acquire.Name)) > 0, true)
		same(b.t, "attempt that does not", len(b.runs("c2", tryAcquire.Name)) > 0, true)
	})
}
