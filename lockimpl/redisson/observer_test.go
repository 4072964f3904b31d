package redisson

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
)

// diary is an observer that records its calls.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) AcquireEnded(_ context.Context, e lockimpl.AcquireEnded) {
	d.write("%s took %v waited %v", e.Outcome, e.Took, e.Waited)
}

func (d *diary) RenewalEnded(e lockimpl.RenewalEnded) { d.write("%s", e.Outcome) }

func (d *diary) HoldEnded(e lockimpl.HoldEnded) { d.write("%s after %v", e.Outcome, e.Held) }

func TestAnObserverIsToldOfCallsAndHolds(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	leased := lockimpl.LockOptions{Lease: 2 * time.Second}
	for rule, c := range map[string]struct {
		does func(b *bench, l, other lockimpl.Lock)
		told string
	}{
		"a hold that is renewed and given up": {func(b *bench, l, _ lockimpl.Lock) {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			b.until(15 * time.Second)
			b.released(lockimpl.Released)(l.Unlock(background, 1))
		}, "granted took 0s waited 0s, renewed, released after 15s"},
		"an owner that enters twice": {func(b *bench, l, _ lockimpl.Lock) {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
			b.released(lockimpl.Released)(l.Unlock(background, 1))
		}, "granted took 0s waited 0s, granted took 0s waited 0s, released after 0s"},
		"a wait": {func(b *bench, l, other lockimpl.Lock) {
			b.must(other.Lock(background, 1, leased))
			b.must(l.Lock(background, 1, leased))
		}, "granted took 2s waited 2s, lost after 2s"},
		"tries": {func(b *bench, l, other lockimpl.Lock) {
			b.must(other.Lock(background, 1, leased))
			b.tried(false)(l.TryLock(background, 1))
			b.tried(false)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Second}))
		}, "busy took 0s waited 0s, busy took 1s waited 1s"},
		"an interrupted acquire": {func(b *bench, l, _ lockimpl.Lock) {
			_ = l.Lock(ended, 1, leased)
			synctest.Wait()
		}, "unknown took 0s waited 0s, lost after 2s"},
		"a hold that is removed": {func(b *bench, l, _ lockimpl.Lock) {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			b.m.Del("x")
			b.until(11 * time.Second)
		}, "granted took 0s waited 0s, lost after 10s, gone"},
		"an argument that is refused": {func(b *bench, l, _ lockimpl.Lock) {
			_ = l.Lock(background, 1, lockimpl.LockOptions{Lease: 1})
		}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			bubble(t, func(b *bench) {
				d, k := &diary{}, kind{Release: Releases[len(Releases)-1]}
				watched := b.client(k.Release, "c0", func(cfg *Config) { cfg.Observer = d })
				c.does(b, b.lock(watched, k, "x"), b.lock(b.client(k.Release, "c1"), k, "x"))
				b.until(b.now() + 5*time.Second)
				d.mu.Lock()
				got := strings.Join(d.lines, ", ")
				d.mu.Unlock()
				if got != c.told {
					t.Errorf("got  %s\nwant %s", got, c.told)
				}
			})
		})
	}
}

// Calls that return a token are reported like all others.
func TestAnObserverIsToldOfTokens(t *testing.T) {
	bubble(t, func(b *bench) {
		d, rel := &diary{}, Releases[len(Releases)-1]
		l := b.fenced(b.client(rel, "c0", func(cfg *Config) { cfg.Observer = d }), "x")
		if _, err := l.LockAndGetToken(background, 1, lockimpl.LockOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := l.TryLockTimedAndGetToken(background, 2, lockimpl.TryOptions{Wait: time.Second}); ok || err != nil {
			t.Fatal(ok, err)
		}
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		if got, want := strings.Join(d.lines, ", "), "granted took 0s waited 0s, busy took 1s waited 1s, released after 1s"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// Each new owner differs from all before, and is below zero.
func TestNewOwners(t *testing.T) {
	bubble(t, func(b *bench) {
		rel := Releases[len(Releases)-1]
		c := b.client(rel, "c0", watching)
		one, fenced := b.lock(c, kind{Release: rel}, "x").(lockimpl.Handled), lockimpl.Lock(b.fenced(c, "y")).(lockimpl.Handled)
		if a, b := one.NewOwner(), fenced.NewOwner(); a >= 0 || b >= 0 || a == b {
			t.Errorf("owners %d and %d", a, b)
		}
	})
}

// If the owner was abandoned, a grant that comes after the end of its call is given back, and a
// waiter leaves the queue.
func TestAnAbandonedOwnerGivesItsGrantBack(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	for rule, c := range map[string]struct {
		abandon bool
		before  func(b *bench, c *Client, k kind)
		left    string
	}{
		"a late grant":                {abandon: true},
		"a late grant that is kept":   {left: "x"},
		"an unlock that has no reply": {abandon: true, before: func(b *bench, c *Client, k kind) { b.losesFirst(unlockOf(k)) }},
		"an unlock that fails": {abandon: true, before: func(b *bench, c *Client, k kind) {
			b.answer(func(c command) fate {
				if c.script == unlockOf(k).Name {
					return fate{never: true}
				}
				return fate{}
			})
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				client := b.client(k.Release, "c0", watching)
				b.prime(client, k)
				l := b.lock(client, k, "x").(lockimpl.Handled)
				if c.before != nil {
					c.before(b, client, k)
				}
				o := l.NewOwner()
				if err := l.Lock(ended, o, lockimpl.LockOptions{}); err == nil {
					if !k.PatientReply { // such a release waits for the reply
						t.Error("the interrupt went unnoticed")
					}
					return
				}
				if c.abandon {
					l.Abandon(background, o)
				}
				b.until(3 * time.Minute)
				if got := strings.Join(b.keys(), " "); got != c.left {
					t.Errorf("the server has %q, want %q", got, c.left)
				}
			})
		})
	}
}

func unlockOf(k kind) Script {
	if k.fair {
		return k.FairUnlock
	}
	return k.Unlock
}
