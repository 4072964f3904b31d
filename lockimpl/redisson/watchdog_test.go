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

// seconds converts numbers of seconds to durations.
func seconds(n ...float64) []time.Duration {
	var at []time.Duration
	for _, s := range n {
		at = append(at, time.Duration(s*float64(time.Second)))
	}
	return at
}

// renewals returns the instants of a client's renewals. A renewal that is written twice, around
// SCRIPT LOAD, counts once.
func (b *bench) renewals(rel *Release, client string) []time.Duration {
	return slices.Compact(times(b.runs(client, rel.Renew.Name)))
}

func TestHoldsWithoutLeaseAreRenewedAtAThird(t *testing.T) {
	for what, acquire := range map[string]func(lockimpl.Lock) error{
		"lock":    func(l lockimpl.Lock) error { return l.Lock(background, 1, lockimpl.LockOptions{}) },
		"tryLock": func(l lockimpl.Lock) error { return second(l.TryLock(background, 1)) },
		"tryLock with wait": func(l lockimpl.Lock) error {
			return second(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Second}))
		},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				l := b.lock(b.client(k.Release, "c1"), k, "x")
				b.must(acquire(l))
				for i := range 5 {
					b.until(time.Duration(i+1)*10*time.Second - 1)
					same(b.t, "time to live before a renewal", b.m.TTL("x"), 20*time.Second+1)
					b.until(time.Duration(i+1) * 10 * time.Second)
					same(b.t, "time to live after it", b.m.TTL("x"), 30*time.Second)
				}
				b.released(lockimpl.Released)(l.Unlock(background, 1))
				b.until(5 * time.Minute)
				same(b.t, "renewals", b.renewals(k.Release, "c1"), seconds(10, 20, 30, 40, 50))
			})
		})
	}
}

func TestThePeriodFollowsTheWatchdogTimeout(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1", func(cfg *Config) { cfg.WatchdogTimeout = 900 * time.Millisecond })
		b.must(b.lock(c, k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "time to live", b.m.TTL("x"), 900*time.Millisecond)
		b.until(time.Second)
		same(b.t, "renewals", b.renewals(k.Release, "c1"), seconds(0.3, 0.6, 0.9))
		same(b.t, "lease of a renewal", b.runs("c1", k.Renew.Name)[0].args[0], "900")
	})
}

func TestHoldsWithALeaseAreNotRenewed(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		b.until(time.Minute)
		same(b.t, "renewals", b.renewals(k.Release, "c1"), nil)
		same(b.t, "hash", b.held("x"), map[string]string{})
	})
}

// Since 3.15 an attempt without lease sends the object's field, but the
// renewals come at a third of the watchdog timeout (issue 4818). Before, it
// sends the watchdog timeout.
func TestAShortLeaseLeftInTheObjectEndsARenewedHold(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 5 * time.Second}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5*time.Second - 1)
		same(b.t, "hash before", b.held("x"), map[string]string{"c1:1": "2"})
		b.until(5 * time.Second)
		if k.isOneOf("3.4.2 3.11.0 3.12.4") {
			b.until(5 * time.Minute)
			same(b.t, "hash after", b.held("x"), map[string]string{"c1:1": "2"})
			return
		}
		same(b.t, "hash after", b.held("x"), map[string]string{})
	})
}

// Up to 3.14 renewals take lease and period from the lock object, where any attempt leaves its own;
// later from the configuration.
func TestWhoseLeaseARenewalTakes(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		rule := byRelease[struct {
			lease string
			at    []time.Duration
		}]{
			"3.4.2 3.11.0 3.12.4": {"12000", seconds(10, 14, 18, 22)},
			"3.21.3 3.43.0 4.7.0": {"30000", seconds(10, 20)},
		}.forRelease(b.t, rel)
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.tried(false)(l.TryLockTimed(background, 2, lockimpl.TryOptions{Lease: 12 * time.Second}))
		b.until(25 * time.Second)
		same(b.t, "renewals", b.renewals(rel, "c1"), rule.at)
		for _, r := range b.runs("c1", rel.Renew.Name) {
			same(b.t, "lease of a renewal", r.args[0], rule.lease)
		}
	})
}

// The keys and arguments of renewals, and their phase: up to W8 there is a timer for each name, W9
// has one for the client, so that its first renewal of a hold may come early.
func TestPhaseAndArgumentsOfRenewals(t *testing.T) {
	type run struct {
		at         time.Duration
		keys, args []string
	}
	eachRelease(t, func(b *bench, rel *Release) {
		want := byRelease[[]run]{
			"3.4.2 3.11.0 3.12.4 3.21.3 3.43.0": {
				{10 * time.Second, []string{"x"}, []string{"30000", "c1:1"}},
				{17 * time.Second, []string{"y"}, []string{"30000", "c1:2"}},
				{20 * time.Second, []string{"x"}, []string{"30000", "c1:1"}},
			},
			"4.7.0": {
				{10 * time.Second, []string{"x", "y"}, []string{"30000", "c1:1", "c1:2"}},
				{20 * time.Second, []string{"x", "y"}, []string{"30000", "c1:1", "c1:2"}},
			},
		}.forRelease(b.t, rel)
		c := b.client(rel, "c1")
		k := kind{rel, false}
		b.must(b.lock(c, k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		b.until(7 * time.Second)
		b.must(b.lock(c, k, "y").Lock(background, 2, lockimpl.LockOptions{}))
		b.until(21 * time.Second)
		var got []run
		for _, r := range b.runs("c1", rel.Renew.Name) {
			if len(got) == 0 || got[len(got)-1].at != r.at {
				got = append(got, run{r.at, r.keys, r.args})
			}
		}
		same(b.t, "renewals", got, want)
	})
}

// The unlock of the last lock leaves a timer of W9 behind. The timer goes on if it finds a hold,
// and then several timers renew all holds. Each ends when it finds none. Up to W8 an unlock ends
// its timer.
func TestTimersLeftByUnlocks(t *testing.T) {
	const others = "3.4.2 3.11.0 3.12.4 3.21.3 3.43.0"
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		for _, at := range []time.Duration{3 * time.Second, 6 * time.Second} {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			b.until(at)
			b.released(lockimpl.Released)(l.Unlock(background, 1))
		}
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(27 * time.Second)
		want := byRelease[[]time.Duration]{others: seconds(16, 26), "4.7.0": seconds(10, 13, 16, 20, 23, 26)}
		same(b.t, "renewals of a hold since 6 s", b.renewals(rel, "c1"), want.forRelease(b.t, rel))
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		b.until(40 * time.Second)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.forget()
		b.until(61 * time.Second)
		same(b.t, "renewals of a hold since 40 s", b.renewals(rel, "c1"), seconds(50, 60))
	})
}

// refuses answers every run of a script with an error, after the server executed it.
func refuses(script Script) func(command) fate {
	return func(c command) fate {
		if c.script == script.Name {
			return fate{reply: "-ERR out of order\r\n"}
		}
		return fate{}
	}
}

// Up to W8 an error ends the renewals of that name, although the lock is held (issue 5698); W6
// never renews that name again (issue 3194). W9 goes on at its next tick.
func TestAFailedRenewal(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		c := b.client(rel, "c1")
		x, y := b.lock(c, kind{rel, false}, "x"), b.lock(c, kind{rel, false}, "y")
		b.must(x.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5 * time.Second)
		b.must(y.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(refuses(rel.Renew))
		b.until(11 * time.Second)
		b.answer(nil)
		b.until(41 * time.Second) // the script itself was executed at 10 s
		same(b.t, "y, whose own renewals never failed", b.held("y"), map[string]string{"c1:1": "1"})
		if rel.isOneOf("4.7.0") {
			same(b.t, "x", b.held("x"), map[string]string{"c1:1": "1"})
			same(b.t, "renewals", b.renewals(rel, "c1"), seconds(10, 20, 30, 40))
			return
		}
		same(b.t, "x, held but renewed no more", b.held("x"), map[string]string{})
		same(b.t, "renewals", b.renewals(rel, "c1"), seconds(10, 15, 25, 35))
		again := byRelease[map[string]string]{
			"3.4.2 3.21.3 3.43.0": {"c1:1": "1"}, // nothing is left of the first hold
			"3.11.0 3.12.4":       {},            // its entry is left, and starts no timer
		}.forRelease(b.t, rel)
		b.must(x.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5 * time.Minute)
		same(b.t, "x, locked anew", b.held("x"), again)
	})
}

// One thread locks twice and unlocks twice, and then another thread of the same client locks. In
// 3.43.0 the first thread is still at the front of the queue: the next tick asks for it, gets 0 and
// cancels the entry of the second.
func TestAnotherThreadAfterAReentry(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		for range 2 {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		}
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		b.must(l.Lock(background, 2, lockimpl.LockOptions{}))
		b.until(30*time.Second - 1)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:2": "1"})
		if !k.isOneOf("3.43.0") {
			b.until(300 * time.Second)
			same(b.t, "hash", b.held("x"), map[string]string{"c1:2": "1"})
			b.released(lockimpl.Released)(l.Unlock(background, 2))
			return
		}
		b.until(30 * time.Second)
		same(b.t, "hash at the end of the first lease", b.held("x"), map[string]string{})
		runs := b.runs("c1", k.Renew.Name)
		same(b.t, "renewals", times(runs), seconds(10))
		same(b.t, "renewed owner", runs[0].args[1], "c1:1")
	})
}

// A thread whose hold was lost is in front of another thread of its client. Up to W8 the tick asks
// only for the first, gets 0, and renews nothing more. W9 removes the first, and asks for the
// second at the next tick.
func TestAThreadBehindOneThatLostItsHold(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.m.Del("x")
		b.until(2 * time.Second)
		b.must(l.Lock(background, 2, lockimpl.LockOptions{}))
		b.until(time.Minute)
		var owners []string
		for _, r := range b.runs("c1", rel.Renew.Name) {
			owners = append(owners, r.args[1])
		}
		owners = slices.Compact(owners)
		if rel.isOneOf("4.7.0") {
			same(b.t, "renewed owners", owners, []string{"c1:1", "c1:2"})
			same(b.t, "hash", b.held("x"), map[string]string{"c1:2": "1"})
			return
		}
		same(b.t, "renewed owners", owners, []string{"c1:1"})
		same(b.t, "renewals", b.renewals(rel, "c1"), seconds(10))
		same(b.t, "hash", b.held("x"), map[string]string{})
	})
}

// The watchdog renews the next hold of a thread that gave up a lost one, even if another thread of
// the client held meanwhile.
func TestAThreadThatComesBackIsRenewed(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		hold := func(o lockimpl.Owner) {
			b.t.Helper()
			b.m.Del("x")
			b.must(l.Lock(background, o, lockimpl.LockOptions{}))
		}
		giveUp := func(o lockimpl.Owner) {
			b.t.Helper()
			if _, err := l.Unlock(background, o); !errors.Is(err, lockimpl.ErrNotHeld) {
				b.t.Fatalf("unlock of a lost hold: %v; want ErrNotHeld", err)
			}
		}
		hold(1)
		hold(2)
		giveUp(1)
		hold(1)
		giveUp(2)
		b.until(5 * time.Minute)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}

// Every watchdog counts the levels, and the last unlock ends the renewals.
func TestRenewalsLastAsLongAsAnyLevel(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(15 * time.Second)
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		b.until(2 * time.Minute)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}

// Which answers to an unlock take a level from the watchdog. The watchdog timeout is 90 s, so that
// an unlock ends before a tick, even with its resends.
func TestWhichUnlocksEndTheRenewals(t *testing.T) {
	for _, c := range []struct {
		what    string
		first   func(b *bench, k kind, c1 lockimpl.Lock) // after the lock
		unlock  error
		renewed byRelease[[]time.Duration]
	}{
		{
			"answered 1", nil, nil,
			byRelease[[]time.Duration]{"3.4.2 3.11.0 3.12.4 3.21.3 3.43.0 4.7.0": nil},
		},
		{
			// The watchdog does not count a level with a lease, but the unlock of that level takes
			// one from it.
			"answered 0", func(b *bench, k kind, l lockimpl.Lock) {
				b.must(b.lock(l.(*lock).c, k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: 90 * time.Second}))
			}, nil,
			byRelease[[]time.Duration]{"3.4.2": seconds(30, 60, 90), "3.11.0 3.12.4 3.21.3 3.43.0 4.7.0": nil},
		},
		{
			"answered nil", func(b *bench, k kind, _ lockimpl.Lock) { // the tick finds no hold (issue 2515)
				b.m.Del("x")
				b.must(b.lock(b.client(k.Release, "c2"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Hour}))
			}, lockimpl.ErrNotHeld,
			byRelease[[]time.Duration]{"3.4.2 3.11.0": seconds(30), "3.12.4 3.21.3 3.43.0 4.7.0": nil},
		},
		{
			"that never arrived", func(b *bench, k kind, _ lockimpl.Lock) { // issue 1602
				b.answer(func(c command) fate { return fate{never: c.script == k.unlock().Name} })
			}, lockimpl.ErrUnknownOutcome,
			byRelease[[]time.Duration]{"3.4.2": seconds(30, 60, 90), "3.11.0 3.12.4 3.21.3 3.43.0 4.7.0": nil},
		},
		{
			"whose reply is lost", func(b *bench, k kind, _ lockimpl.Lock) {
				b.answer(loses(k.unlock().Name))
			}, lockimpl.ErrUnknownOutcome,
			byRelease[[]time.Duration]{"3.4.2": seconds(30), "3.11.0 3.12.4 3.21.3 3.43.0 4.7.0": nil},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				l := b.lock(b.client(k.Release, "c1", func(cfg *Config) { cfg.WatchdogTimeout = 90 * time.Second }), k, "x")
				b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
				if c.first != nil {
					c.first(b, k, l)
				}
				if _, err := l.Unlock(background, 1); !errors.Is(err, c.unlock) {
					b.t.Fatalf("unlock: %v; want %v", err, c.unlock)
				}
				b.answer(nil)
				b.until(100 * time.Second)
				same(b.t, "renewals", b.renewals(k.Release, "c1"), c.renewed.forRelease(b.t, k.Release))
			})
		})
	}
}

func TestForceUnlockDropsTheClientsOwnRenewals(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		for range 3 {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		}
		b.tried(true)(b.lock(c, k, "x").ForceUnlock(background))
		b.until(time.Minute)
		same(b.t, "renewals", b.renewals(k.Release, "c1"), nil)
		b.must(l.Lock(background, 2, lockimpl.LockOptions{}))
		b.until(5 * time.Minute)
		same(b.t, "hash of a later hold", b.held("x"), map[string]string{"c1:2": "1"})
	})
}

// After a restart of the server that lost the lock, an unlock is an error, and a new hold of the
// same name is renewed for more than twice the timeout. 3.4.2 accepts the unlock. In 3.11.0 the
// dead entry stays, and the new hold is not renewed.
func TestAfterARestartThatLostTheLock(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5 * time.Second)
		b.m.FlushAll()
		b.until(25 * time.Second) // meanwhile a tick found no hold
		if got, err := l.Unlock(background, 1); rel.isOneOf("3.4.2") {
			b.released(lockimpl.Released)(got, err)
		} else if !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Fatalf("unlock: %v; want ErrNotHeld", err)
		}
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(2 * time.Minute)
		same(b.t, "hash", b.held("x"), byRelease[map[string]string]{
			"3.4.2 3.12.4 3.21.3 3.43.0 4.7.0": {"c1:1": "1"},
			"3.11.0":                           {},
		}.forRelease(b.t, rel))
	})
}

// A reply of 0 ends the renewals of that name up to W8; W9 removes one count of
// that thread. In W6 the dead entry stays: a lock of the same name, with no
// unlock between, is never renewed (issue 3712).
func TestARenewalThatFindsTheLockNotHeld(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		for range 2 {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		}
		b.m.Del("x")
		b.until(time.Minute)
		same(b.t, "renewals", b.renewals(rel, "c1"), byRelease[[]time.Duration]{
			"3.4.2 3.11.0 3.12.4 3.21.3 3.43.0": seconds(10),
			"4.7.0":                             seconds(10, 20),
		}.forRelease(b.t, rel))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(5 * time.Minute)
		same(b.t, "hash, locked again", b.held("x"), byRelease[map[string]string]{
			"3.4.2 3.21.3 3.43.0 4.7.0": {"c1:1": "1"},
			"3.11.0 3.12.4":             {},
		}.forRelease(b.t, rel))
	})
}

// W9 may ask to renew an entry whose hold is gone. It then renews nobody else's hold.
func TestARenewalNeverExtendsAnothersHold(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.m.Del("x")
		other := b.lock(b.client(rel, "c2"), kind{rel, false}, "x")
		b.must(other.Lock(background, 1, lockimpl.LockOptions{Lease: 15 * time.Second}))
		b.until(10 * time.Second)
		same(b.t, "renewals", b.renewals(rel, "c1"), seconds(10))
		same(b.t, "time to live", b.m.TTL("x"), 5*time.Second)
	})
}

// lockWatchdogBatchSize is 100; an error in one batch ends that tick, and the next tick still
// comes.
func TestBatchesOfRenewals(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		c := b.client(rel, "c1")
		for i := range 101 {
			b.tried(true)(b.lock(c, kind{rel, false}, fmt.Sprintf("x%03d", i)).TryLock(background, lockimpl.Owner(i)))
		}
		b.until(11 * time.Second)
		b.answer(func(c command) fate {
			if c.script == rel.Renew.Name && len(c.keys) == 100 {
				return fate{reply: "-ERR out of order\r\n"}
			}
			return fate{}
		})
		b.until(21 * time.Second)
		b.answer(nil)
		b.until(31 * time.Second)
		type batch struct {
			at   time.Duration
			size int
		}
		var got []batch
		for _, r := range b.runs("c1", rel.Renew.Name) {
			if one := (batch{r.at, len(r.keys)}); len(got) == 0 || got[len(got)-1] != one {
				got = append(got, one)
			}
			if len(r.args) != len(r.keys)+1 {
				b.t.Errorf("%d keys with %d arguments", len(r.keys), len(r.args))
			}
			for i, key := range r.keys {
				if n := strings.TrimLeft(key[1:], "0"); r.args[i+1] != "c1:"+n && key != "x000" {
					b.t.Errorf("key %s goes with owner %s", key, r.args[i+1])
				}
			}
		}
		same(b.t, "batches", got, []batch{
			{10 * time.Second, 100}, {10 * time.Second, 1},
			{20 * time.Second, 100},
			{30 * time.Second, 100}, {30 * time.Second, 1},
		})
	})
}

// An interrupted owner does not end the renewals: the watchdog belongs to the client.
func TestRenewalsGoOnAfterTheCallersContextEnded(t *testing.T) {
	each(t, func(b *bench, k kind) {
		ctx, cancel := context.WithCancel(background)
		b.must(b.lock(b.client(k.Release, "c1"), k, "x").Lock(ctx, 1, lockimpl.LockOptions{}))
		cancel()
		b.until(2 * time.Minute)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}
