package redisson

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/bare"
)

func watching(cfg *Config) { cfg.WatchHolds = true }

type parentKey struct{}

// wrapper is a lock of a type that the package does not know.
type wrapper struct{ anyLock }

type anyLock = lockimpl.Lock

// ending is the context of a hold, and when it ended.
type ending struct {
	b    *bench
	ctx  context.Context
	done chan struct{}
	at   time.Duration
}

// watch watches the hold of an owner from now on.
func (b *bench) watch(l lockimpl.Lock, o lockimpl.Owner) *ending {
	b.t.Helper()
	ctx, err := HoldContext(background, l, o)
	b.must(err)
	e := &ending{b: b, ctx: ctx, done: make(chan struct{})}
	go func() {
		<-ctx.Done()
		e.at = b.now()
		close(e.done)
	}()
	return e
}

func (e *ending) open() {
	e.b.t.Helper()
	synctest.Wait()
	if e.ctx.Err() != nil {
		e.b.t.Fatalf("at %v the hold is over since %v: %v", e.b.now(), e.at, context.Cause(e.ctx))
	}
}

// endsAt lets time pass up to the end of the hold, and checks its instant and cause.
func (e *ending) endsAt(at time.Duration, cause error) {
	e.b.t.Helper()
	if e.b.now() < at {
		e.b.until(at - 1)
		e.open()
		e.b.until(at)
	}
	synctest.Wait()
	if e.ctx.Err() == nil {
		e.b.t.Fatalf("at %v the hold goes on; want its end at %v", e.b.now(), at)
	}
	if <-e.done; e.at != at || context.Cause(e.ctx) != cause {
		e.b.t.Fatalf("the hold ended at %v: %v; want %v: %v", e.at, context.Cause(e.ctx), at, cause)
	}
	if e.ctx.Err() != context.Canceled {
		e.b.t.Fatalf("the context's error is %v; want context.Canceled, the cause tells more", e.ctx.Err())
	}
}

// endsWithTheKey checks that the hold is lost at the instant at which the key would now run out.
func (e *ending) endsWithTheKey(at time.Duration) {
	e.b.t.Helper()
	synctest.Wait()
	same(e.b.t, "end of the key", e.b.now()+e.b.m.TTL("x"), at)
	e.endsAt(at, lockimpl.ErrHoldLost)
	same(e.b.t, "hash at the end of the hold", e.b.held("x"), map[string]string{})
}

// loadScripts lets a release that caches scripts load the scripts of a lock, so that each later
// call sends a single command.
func (b *bench) loadScripts(c *Client, k kind) {
	b.t.Helper()
	l := b.lock(c, k, "another")
	b.must(l.Lock(background, 9, lockimpl.LockOptions{}))
	b.released(lockimpl.Released)(l.Unlock(background, 9))
}

// A lease counts from the instant at which it was asked for, not from the
// answer.
func TestAHoldEndsWithItsLease(t *testing.T) {
	ways := map[string]func(lockimpl.Lock) error{
		"lock": func(l lockimpl.Lock) error {
			return l.Lock(background, 1, lockimpl.LockOptions{Lease: 5 * time.Second})
		},
		"timed try": func(l lockimpl.Lock) error {
			ok, err := l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Second, Lease: 5 * time.Second})
			if !ok && err == nil {
				err = errors.New("not granted")
			}
			return err
		},
	}
	for way, acquire := range ways {
		t.Run(way, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				c := b.client(k.Release, "c1", watching)
				b.loadScripts(c, k)
				b.until(2 * time.Second)
				b.answer(func(command) fate { return fate{late: 300 * time.Millisecond} })
				l := b.lock(c, k, "x")
				b.must(acquire(l))
				same(b.t, "answered at", b.now(), 2300*time.Millisecond)
				e := b.watch(l, 1)
				e.endsWithTheKey(7 * time.Second)
				_, err := HoldContext(background, l, 1)
				if !errors.Is(err, lockimpl.ErrNotHeld) {
					b.t.Fatalf("after the end: %v; want ErrNotHeld", err)
				}
			})
		})
	}
}

// A waiter's lease counts from the attempt that was granted.
func TestAHoldThatWasWaitedFor(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		l := b.lock(b.client(k.Release, "c2", watching), k, "x")
		waiter := b.beginLock(background, l, 1, lockimpl.LockOptions{Lease: 5 * time.Second})
		b.until(12 * time.Second)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		waiter.grantedAt(12 * time.Second)
		b.watch(l, 1).endsWithTheKey(17 * time.Second)
	})
}

func TestAHoldOutlivesItsRenewals(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1", watching), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.until(time.Hour)
		e.open()
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		e.endsAt(time.Hour, context.Canceled)
	})
}

func TestARenewalCountsFromWhenItWasAskedFor(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1", watching), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.until(15 * time.Second) // the renewal's script is loaded
		b.answer(func(c command) fate {
			switch {
			case c.script != rel.Renew.Name:
				return fate{}
			case c.at == 20*time.Second:
				return fate{late: 2 * time.Second}
			default:
				return fate{reply: "-ERR out of order\r\n"}
			}
		})
		e.endsAt(50*time.Second, lockimpl.ErrHoldLost)
	})
}

// An operator's DEL, a failover, a restart without data: the next renewal notices.
func TestAHoldEndsWhenARenewalFindsItGone(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1", watching), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.until(15 * time.Second)
		b.m.Del("x")
		e.endsAt(20*time.Second, lockimpl.ErrHoldLost)
	})
}

// A hold without renewals notices another client's forceUnlock only when the lease ends.
func TestAnothersForceUnlock(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1", watching), k, "x")
		other := b.lock(b.client(k.Release, "c2", watching), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.until(15 * time.Second)
		b.tried(true)(other.ForceUnlock(background))
		e.endsAt(20*time.Second, lockimpl.ErrHoldLost)

		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 5 * time.Second}))
		e = b.watch(l, 1)
		b.tried(true)(other.ForceUnlock(background))
		e.endsAt(25*time.Second, lockimpl.ErrHoldLost)
	})
}

// A single failed renewal loses nothing. If none gets through, the hold ends with the last lease
// that was granted.
func TestAHoldEndsWhenNoRenewalGetsThrough(t *testing.T) {
	failures := map[string]fate{
		"error":      {reply: "-ERR out of order\r\n"},
		"lost reply": {lost: true},
		"connection": {cut: true},
	}
	for how, f := range failures {
		t.Run(how, func(t *testing.T) {
			eachRelease(t, func(b *bench, rel *Release) {
				l := b.lock(b.client(rel, "c1", watching), kind{rel, false}, "x")
				b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
				e := b.watch(l, 1)
				b.until(25 * time.Second) // renewed at 10 s and 20 s
				b.answer(func(c command) fate {
					if c.script == rel.Renew.Name {
						return f
					}
					return fate{}
				})
				e.endsAt(50*time.Second, lockimpl.ErrHoldLost)
			})
		})
	}
	// 4.7.0 asks again at the next tick. A renewal that gets through in time is enough.
	on(t, "4.7.0", func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1", watching), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.answer(func(c command) fate {
			if c.script == rel.Renew.Name && c.at != 20*time.Second {
				return fate{reply: "-ERR out of order\r\n"}
			}
			return fate{}
		})
		e.endsAt(50*time.Second, lockimpl.ErrHoldLost)
	})
}

// Each command that resets the key's time to live moves the end of the hold
// along with it, whatever lease the release sends.
func TestAHoldFollowsTheTimeToLiveOfItsKey(t *testing.T) {
	const s = time.Second
	lock := func(lease time.Duration) func(*bench, lockimpl.Lock) {
		return func(b *bench, l lockimpl.Lock) {
			b.t.Helper()
			b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: lease}))
		}
	}
	unlock := func(b *bench, l lockimpl.Lock) {
		b.t.Helper()
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
	}
	cases := []struct {
		name  string
		steps []func(*bench, lockimpl.Lock) // one every two seconds
		end   func(*Release) time.Duration
	}{
		{"entered again", []func(*bench, lockimpl.Lock){lock(5 * s), lock(5 * s)}, func(*Release) time.Duration { return 7 * s }},
		{"entered again with a shorter lease", []func(*bench, lockimpl.Lock){lock(20 * s), lock(3 * s)}, func(*Release) time.Duration { return 5 * s }},
		{"a level given up", []func(*bench, lockimpl.Lock){lock(5 * s), lock(5 * s), unlock}, func(*Release) time.Duration { return 9 * s }},
		{"two of three given up", []func(*bench, lockimpl.Lock){lock(5 * s), lock(5 * s), lock(5 * s), unlock, unlock}, func(rel *Release) time.Duration {
			if rel.LeaseField == FieldUntilUnlock { // the first unlock reset the field
				return 8*s + DefaultWatchdog
			}
			return 13 * s
		}},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				l := b.lock(b.client(k.Release, "c1", watching), k, "x")
				var e *ending
				for i, step := range tt.steps {
					b.until(time.Duration(i) * 2 * s)
					if e != nil {
						e.open()
					}
					step(b, l)
					if e == nil {
						e = b.watch(l, 1)
					}
				}
				e.endsWithTheKey(tt.end(k.Release))
			})
		})
	}
}

// A hold without lease and with one: the renewals go on, and so does the hold.
func TestARenewedHoldEnteredAgainWithALease(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1", watching), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.until(5 * time.Second)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 6 * time.Second}))
		b.until(time.Minute) // renewed at 10 s, before the lease was over
		e.open()
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		e.open()
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		e.endsAt(time.Minute, context.Canceled)
	})
	// A lease shorter than a period ends before the first renewal.
	on(t, "4.7.0", func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1", watching), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 6 * time.Second}))
		e.endsWithTheKey(6 * time.Second)
	})
}

func TestAnUnlockEndsAHold(t *testing.T) {
	t.Run("the last one, with context.Canceled", func(t *testing.T) {
		each(t, func(b *bench, k kind) {
			l := b.lock(b.client(k.Release, "c1", watching), k, "x")
			for range 2 {
				b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			}
			e := b.watch(l, 1)
			b.until(3 * time.Second)
			b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
			e.open()
			b.until(5 * time.Second)
			b.released(lockimpl.Released)(l.Unlock(background, 1))
			e.endsAt(5*time.Second, context.Canceled)
			// A later hold of the same owner is another hold.
			b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 5 * time.Second}))
			b.watch(l, 1).endsWithTheKey(10 * time.Second)
		})
	})
	t.Run("one that finds it another's, with ErrHoldLost", func(t *testing.T) {
		each(t, func(b *bench, k kind) {
			l := b.lock(b.client(k.Release, "c1", watching), k, "x")
			other := b.lock(b.client(k.Release, "c2"), k, "x")
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			e := b.watch(l, 1)
			b.until(3 * time.Second)
			b.m.Del("x")
			b.must(other.Lock(background, 1, lockimpl.LockOptions{}))
			if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
				b.t.Fatalf("unlock: %v; want ErrNotHeld", err)
			}
			e.endsAt(3*time.Second, lockimpl.ErrHoldLost)
		})
	})
	t.Run("another owner's does not", func(t *testing.T) {
		eachRelease(t, func(b *bench, rel *Release) {
			c := b.client(rel, "c1", watching)
			x, y := b.lock(c, kind{rel, false}, "x"), b.lock(c, kind{rel, false}, "y")
			b.must(x.Lock(background, 1, lockimpl.LockOptions{}))
			b.must(y.Lock(background, 2, lockimpl.LockOptions{}))
			first, second := b.watch(x, 1), b.watch(y, 2)
			if _, err := x.Unlock(background, 2); !errors.Is(err, lockimpl.ErrNotHeld) {
				b.t.Fatalf("unlock: %v; want ErrNotHeld", err)
			}
			b.released(lockimpl.Released)(y.Unlock(background, 2))
			first.open()
			second.endsAt(0, context.Canceled)
		})
	})
}

// The unlock ran and its answer is lost. The client cannot know its outcome, so the hold ends with
// the lease. Only 3.4.2 goes on renewing, and learns the outcome from a renewal.
func TestAnUnlockOfUnknownOutcomeLeavesTheHoldToItsLease(t *testing.T) {
	for version, end := range map[string]time.Duration{
		"3.4.2": 20 * time.Second, "3.43.0": 40 * time.Second, "4.7.0": 40 * time.Second,
	} {
		on(t, version, func(b *bench, rel *Release) {
			c := b.client(rel, "c1", watching)
			b.loadScripts(c, kind{rel, false})
			l := b.lock(c, kind{rel, false}, "x")
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			e := b.watch(l, 1)
			b.until(12 * time.Second)
			b.answer(loses(rel.Unlock.Name))
			if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
				b.t.Fatalf("unlock: %v; want ErrUnknownOutcome", err)
			}
			b.answer(nil)
			same(b.t, "hash", b.held("x"), map[string]string{})
			e.endsAt(end, lockimpl.ErrHoldLost)
		})
	}
}

// A grant whose caller has gone is a hold, and the client watches it.
func TestAHoldOfAnInterruptedAttempt(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		c := b.client(rel, "c1", watching)
		b.loadScripts(c, kind{rel, false})
		b.answer(func(command) fate { return fate{late: time.Second} })
		l := b.lock(c, kind{rel, false}, "x")
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		defer cancel()
		if err := l.Lock(ctx, 1, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
			b.t.Fatalf("lock: %v; want ErrUnknownOutcome", err)
		}
		b.until(2 * time.Second)
		e := b.watch(l, 1)
		b.until(time.Hour)
		e.open()
	})
}

func TestForceUnlockEndsTheClientsHolds(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1", watching)
		x, y := b.lock(c, k, "x"), b.lock(c, k, "y")
		b.must(x.Lock(background, 1, lockimpl.LockOptions{}))
		b.must(y.Lock(background, 1, lockimpl.LockOptions{}))
		e, other := b.watch(x, 1), b.watch(y, 1)
		b.until(3 * time.Second)
		b.tried(true)(b.lock(c, k, "x").ForceUnlock(background)) // through another object
		e.endsAt(3*time.Second, lockimpl.ErrHoldLost)
		other.open()
	})
}

func TestCloseEndsHolds(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1", watching)
		l := b.lock(c, k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		b.until(3 * time.Second)
		b.must(c.Close())
		e.endsAt(3*time.Second, lockimpl.ErrClosed)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}

func TestTheParentOfAHoldsContext(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1", watching), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		e := b.watch(l, 1)
		why := errors.New("shutting down")
		parent, cancel := context.WithCancelCause(context.WithValue(background, parentKey{}, "v"))
		ctx, err := HoldContext(parent, l, 1)
		b.must(err)
		same(b.t, "value of the parent", ctx.Value(parentKey{}), any("v"))
		cancel(why)
		synctest.Wait()
		if context.Cause(ctx) != why {
			b.t.Fatalf("cause: %v; want the parent's", context.Cause(ctx))
		}
		if _, err := HoldContext(parent, l, 1); err != nil {
			b.t.Fatalf("under a parent that is over: %v; want a context that is over", err)
		}
		e.open()
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}

func TestHoldContextOfNoHold(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1", watching)
		l := b.lock(c, k, "x")
		refused := func(what string, o lockimpl.Owner) {
			b.t.Helper()
			b.forget()
			ctx, err := HoldContext(background, l, o)
			if ctx != nil || !errors.Is(err, lockimpl.ErrNotHeld) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf(`hold of "x" as c1:%d`, o)) {
				b.t.Errorf("%s: %v, %v; want ErrNotHeld with lock and owner", what, ctx, err)
			}
			same(b.t, "commands", len(b.commands("c1")), 0)
		}
		refused("never locked", 1)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		refused("another owner", 2)
		other := b.lock(b.client(k.Release, "c2", watching), k, "x")
		b.tried(false)(other.TryLock(background, 1))
		if _, err := HoldContext(background, other, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Errorf("another client: %v; want ErrNotHeld", err)
		}
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		refused("unlocked", 1)
	})
}

func TestHoldContextOfALockThatIsNotWatched(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		c := b.client(rel, "c1")
		plain := b.lock(c, kind{rel, false}, "x")
		fenced, err := c.GetFencedLock("x")
		b.must(err)
		bare, err := bare.NewClient(bare.SetNXCad, c.rdb, "c1").GetLock("x")
		b.must(err)
		b.must(plain.Lock(background, 1, lockimpl.LockOptions{}))
		wrapped := wrapper{anyLock: b.lock(b.client(rel, "c2", watching), kind{rel, false}, "x")}
		for what, l := range map[string]lockimpl.Lock{
			"without WatchHolds": plain, "fenced without WatchHolds": fenced, "a bare lock": bare, "another type": wrapped,
		} {
			ctx, err := HoldContext(background, l, 1)
			if ctx != nil || !errors.Is(err, lockimpl.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "Config.WatchHolds") {
				b.t.Errorf("%s: %v, %v; want ErrInvalid that names Config.WatchHolds", what, ctx, err)
			}
		}
	})
}

func TestHoldsOfTheOtherLocks(t *testing.T) {
	lease := lockimpl.TryOptions{Lease: 5 * time.Second}
	ways := map[string]func(l FencedLock) (int64, bool, error){
		"lock": func(l FencedLock) (int64, bool, error) {
			token, err := l.LockAndGetToken(background, 1, lockimpl.LockOptions{})
			return token, err == nil, err
		},
		"try lock": func(l FencedLock) (int64, bool, error) { return l.TryLockAndGetToken(background, 1) },
		"timed try": func(l FencedLock) (int64, bool, error) {
			return l.TryLockTimedAndGetToken(background, 1, lease)
		},
		"without token": func(l FencedLock) (int64, bool, error) {
			err := l.Lock(background, 1, lockimpl.LockOptions{})
			return 1, err == nil, err
		},
	}
	for way, acquire := range ways {
		t.Run("fenced, "+way, func(t *testing.T) {
			on(t, "4.7.0", func(b *bench, rel *Release) {
				l, err := b.client(rel, "c1", watching).GetFencedLock("x")
				b.must(err)
				token, ok, err := acquire(l)
				b.must(err)
				same(b.t, "granted", ok, true)
				same(b.t, "token", token, 1)
				e := b.watch(l, 1)
				if way == "timed try" {
					e.endsWithTheKey(5 * time.Second)
					return
				}
				b.until(time.Minute)
				b.m.Del("x")
				e.endsAt(70*time.Second, lockimpl.ErrHoldLost)
			})
		})
	}
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprint("non-reentrant, fair ", fair), func(t *testing.T) {
			on(t, "4.7.0", func(b *bench, rel *Release) {
				get := b.client(rel, "c1", watching).GetNonReentrantLock
				if fair {
					get = b.client(rel, "c1", watching).GetNonReentrantFairLock
				}
				l, err := get("x")
				b.must(err)
				b.tried(true)(l.TryLockTimed(background, 1, lease))
				e := b.watch(l, 1)
				b.until(2 * time.Second)
				// A refused re-entry is no grant.
				if _, err := l.TryLockTimed(background, 1, lease); !errors.Is(err, lockimpl.ErrReentry) {
					b.t.Fatalf("second try: %v; want ErrReentry", err)
				}
				e.endsWithTheKey(5 * time.Second)
			})
		})
	}
}

// Watching holds sends no further command, and changes no instant.
func TestWatchingHoldsSendsNothing(t *testing.T) {
	play := func(b *bench, k kind, change ...func(*Config)) (sent []command, left []string) {
		c := b.client(k.Release, "c1", change...)
		l, other := b.lock(c, k, "x"), b.lock(b.client(k.Release, "c2", change...), k, "x")
		look := func() {
			_, err := HoldContext(background, l, 1)
			same(b.t, "watched", err == nil, len(change) > 0)
		}
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		look()
		waiter := b.beginLock(background, other, 1, lockimpl.LockOptions{Lease: 7 * time.Second})
		b.until(25 * time.Second)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 20 * time.Second}))
		look()
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		look()
		b.until(28 * time.Second)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		waiter.wait()
		b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Minute, Lease: 2 * time.Second}))
		b.until(b.now() + 5*time.Second)
		_, _ = l.Unlock(background, 1) // too late; its answer depends on the release
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.m.Del("x")
		b.until(b.now() + time.Minute)
		b.must(l.Lock(background, 2, lockimpl.LockOptions{}))
		b.tried(true)(l.ForceUnlock(background))
		b.must(l.Lock(background, 3, lockimpl.LockOptions{}))
		b.must(c.Close())
		b.until(b.now() + 10*time.Second)
		sent = append(b.commands("c1"), b.commands("c2")...)
		// The DEL of a latch, which a call sends in the background, may come before or after the
		// caller's next command.
		slices.SortStableFunc(sent, func(x, y command) int {
			return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.at, y.at), strings.Compare(fmt.Sprint(x), fmt.Sprint(y)))
		})
		return sent, b.keyspace()
	}
	for _, rel := range Releases {
		for _, fair := range []bool{false, true} {
			k := kind{rel, fair}
			t.Run(k.String(), func(t *testing.T) {
				var sent [2][]command
				var left [2][]string
				bubble(t, func(b *bench) { sent[0], left[0] = play(b, k) })
				bubble(t, func(b *bench) { sent[1], left[1] = play(b, k, watching) })
				if len(sent[0]) < 10 {
					t.Fatalf("only %d commands were compared", len(sent[0]))
				}
				same(t, "commands", sent[1], sent[0])
				same(t, "what is left", left[1], left[0])
			})
		}
	}
}

// logText is where a log is written to.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns the lines so far, once everything under way is done, and empties the log.
func (l *logText) take() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(l.buf.String()), "\n")
	l.buf.Reset()
	if lines[0] == "" {
		return nil
	}
	return lines
}

// logTo makes a client write its log as text, with the bench's time.
func (b *bench) logTo(text *logText, level slog.Level) func(*Config) {
	return func(cfg *Config) {
		cfg.Log = slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.String(slog.TimeKey, b.now().String())
				}
				return a
			},
		}))
	}
}

func TestTheLogOfTheWatchdog(t *testing.T) {
	each(t, func(b *bench, k kind) {
		var text logText
		l := b.lock(b.client(k.Release, "c1", b.logTo(&text, slog.LevelDebug)), k, "x")

		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.until(11 * time.Second)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		same(b.t, "locked, renewed, unlocked", text.take(), []string{
			`time=0s level=DEBUG msg="renewing from now on" lock=x owner=c1:1`,
			`time=10s level=DEBUG msg=renewed lock=x owner=c1:1`,
			`time=11s level=DEBUG msg="a level less to renew" lock=x owner=c1:1`,
		})
		b.until(time.Minute)
		same(b.t, "nothing is held", text.take(), nil)
	})
	each(t, func(b *bench, k kind) {
		var text logText
		l := b.lock(b.client(k.Release, "c1", b.logTo(&text, slog.LevelDebug)), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 5 * time.Second}))
		b.until(time.Minute)
		same(b.t, "a lease is not the watchdog's", text.take(), nil)
	})
	each(t, func(b *bench, k kind) {
		var text logText
		l := b.lock(b.client(k.Release, "c1", b.logTo(&text, slog.LevelInfo)), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.m.Del("x")
		b.until(15 * time.Second)
		same(b.t, "gone", text.take(), []string{
			`time=10s level=INFO msg="renewal found the lock not held" lock=x owner=c1:1`,
		})
	})
	each(t, func(b *bench, k kind) {
		var text logText
		l := b.lock(b.client(k.Release, "c1", b.logTo(&text, slog.LevelInfo)), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(func(c command) fate {
			if c.script == k.Renew.Name {
				return fate{reply: "-ERR out of order\r\n"}
			}
			return fate{}
		})
		b.until(15 * time.Second)
		same(b.t, "failed", text.take(), []string{
			`time=10s level=ERROR msg="can't update lock expiration" lock=x owner=c1:1 err="ERR out of order"`,
		})
	})
}

// A batch logs each of its locks.
func TestTheLogOfABatch(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		var text logText
		c := b.client(rel, "c1", b.logTo(&text, slog.LevelDebug))
		for i, name := range []string{"x", "y", "z"} {
			b.must(b.lock(c, kind{rel, false}, name).Lock(background, lockimpl.Owner(i+1), lockimpl.LockOptions{}))
		}
		b.m.Del("y")
		text.take()
		b.until(15 * time.Second)
		same(b.t, "records", text.take(), []string{
			`time=10s level=DEBUG msg=renewed lock=x owner=c1:1`,
			`time=10s level=INFO msg="renewal found the lock not held" lock=y owner=c1:2`,
			`time=10s level=DEBUG msg=renewed lock=z owner=c1:3`,
		})
	})
}
