package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"lockstep/lockimpl"
)

func (b *bench) acquire(l *Lock, opts ...AcquireOption) *Hold {
	b.t.Helper()
	h, err := l.Acquire(background, opts...)
	b.must(err)
	return h
}

// wraps checks that err wraps the wanted errors, and none of the others.
func (b *bench) wraps(what string, err error, want ...error) {
	b.t.Helper()
	b.equal(what+": failed", err != nil, len(want) > 0)
	for _, e := range []error{
		lockimpl.ErrBusy, lockimpl.ErrReleased, lockimpl.ErrNotHeld, lockimpl.ErrHoldLost, lockimpl.ErrUnknownOutcome, lockimpl.ErrClosed, lockimpl.ErrInvalid, context.Canceled, context.DeadlineExceeded,
	} {
		b.equal(fmt.Sprintf("%s: %v is %q", what, err, e), errors.Is(err, e), slices.Contains(want, e))
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

func TestEachHoldHasAnOwnerOfItsOwn(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		h := b.acquire(l)
		_, err := l.TryAcquire(background)
		b.wraps("the same goroutine tries again", err, lockimpl.ErrBusy)
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err = l.Acquire(ctx)
		b.wraps("it waits for itself", err, context.DeadlineExceeded)
		_, err = l.Unlock(background, 1)
		b.wraps("a number names no hold", err, lockimpl.ErrNotHeld)
		b.must(h.Release(background))
		next, err := l.TryAcquire(background)
		b.must(err)
		b.equal("a new owner", next.held.key.owner != h.held.key.owner, true)
		b.equal("a greater token", next.Token() > h.Token(), true)
		b.wraps("release by the old handle", h.Release(background), lockimpl.ErrNotHeld, lockimpl.ErrReleased)
		b.equal("held", b.m.Exists("l"), true)
	})
}

func TestTheContextOfAHoldSaysWhyItEnded(t *testing.T) {
	errParent := errors.New("the parent's")
	for what, c := range map[string]struct {
		lease time.Duration
		end   func(b *bench, h *Hold, parent context.CancelCauseFunc)
		want  error
	}{
		"released": {end: func(b *bench, h *Hold, _ context.CancelCauseFunc) { b.must(h.Release(background)) }, want: lockimpl.ErrReleased},
		"removed":  {end: func(b *bench, _ *Hold, _ context.CancelCauseFunc) { b.m.Del("l"); time.Sleep(11 * time.Second) }, want: lockimpl.ErrHoldLost},
		"cut off": {end: func(b *bench, _ *Hold, _ context.CancelCauseFunc) {
			b.m.SetError("LOADING")
			time.Sleep(30 * time.Second)
		}, want: lockimpl.ErrHoldLost},
		"lease over":       {lease: time.Second, end: func(*bench, *Hold, context.CancelCauseFunc) { time.Sleep(time.Second) }, want: lockimpl.ErrHoldLost},
		"client closed":    {end: func(b *bench, h *Hold, _ context.CancelCauseFunc) { b.must(h.l.c.Close()) }, want: lockimpl.ErrClosed},
		"the parent ended": {end: func(_ *bench, _ *Hold, end context.CancelCauseFunc) { end(errParent) }, want: errParent},
		"not ended":        {end: func(*bench, *Hold, context.CancelCauseFunc) { time.Sleep(time.Minute) }},
	} {
		t.Run(what, func(t *testing.T) {
			both(t, func(b *bench, fair bool) {
				wait, cancel := context.WithCancel(background)
				h, err := b.lock("a", fair).Acquire(wait, WithLease(c.lease))
				b.must(err)
				cancel() // ctx bounded the wait
				parent, end := context.WithCancelCause(background)
				defer end(nil)
				ctx := h.Context(parent)
				c.end(b, h, end)
				synctest.Wait()
				b.equal("cause", context.Cause(ctx), c.want)
			})
		})
	}
}

func TestAReleaseSaysWhatCameOfTheHold(t *testing.T) {
	// gone makes a first Release whose answer is lost and whose caller does not wait.
	gone := func(b *bench, h *Hold) {
		b.lose["unlock"] = 1
		b.wraps("the first", h.Release(ended()), lockimpl.ErrUnknownOutcome, context.Canceled)
	}
	notHeld, released := lockimpl.ErrNotHeld, []error{lockimpl.ErrNotHeld, lockimpl.ErrReleased}
	lost := []error{notHeld, lockimpl.ErrHoldLost}
	for what, c := range map[string]struct {
		before func(b *bench, h *Hold)
		first  []error // errors of the first Release; none: nil
		second []error // errors of the next Release
		sent   int     // unlocks that were sent after before
		held   bool    // whether anybody holds the lock afterwards
	}{
		"it is given up":                 {second: released, sent: 1},
		"replies are lost":               {before: func(b *bench, _ *Hold) { b.lose["unlock"] = 3 }, second: released, sent: 4},
		"an earlier one ran unheard":     {before: gone, second: released, sent: 1},
		"and another has the lock since": {before: func(b *bench, h *Hold) { gone(b, h); b.hold(b.lock("c", h.l.fair()), 1, 0) }, second: released, sent: 1, held: true},
		"and the server has forgotten":   {before: func(b *bench, h *Hold) { gone(b, h); time.Sleep(Memory + time.Second) }, first: []error{lockimpl.ErrUnknownOutcome}, second: []error{lockimpl.ErrUnknownOutcome}, sent: 2},
		"and the client is closed":       {before: func(b *bench, h *Hold) { gone(b, h); b.must(h.l.c.Close()) }, first: []error{lockimpl.ErrUnknownOutcome, lockimpl.ErrClosed}, second: []error{lockimpl.ErrUnknownOutcome, lockimpl.ErrClosed}},
		"the client is closed":           {before: func(b *bench, h *Hold) { b.must(h.l.c.Close()) }, first: []error{lockimpl.ErrClosed}, second: []error{lockimpl.ErrClosed}, held: true},
		"an operator removed it":         {before: func(b *bench, _ *Hold) { b.m.Del("l") }, first: lost, second: lost, sent: 1},
		"another took it by force, and has it": {before: func(b *bench, h *Hold) {
			o := b.lock("c", h.l.fair())
			_, err := o.ForceUnlock(background)
			b.must(err)
			b.hold(o, 1, 0)
		}, first: lost, second: lost, sent: 1, held: true},
		"the server refused an earlier one": {before: func(b *bench, h *Hold) {
			b.m.SetError("NOPERM")
			b.equal("the first failed", h.Release(ended()) != nil, true)
			b.m.SetError("")
			b.sent = nil
		}, second: released, sent: 1},
		"the server refused an earlier one until that gave up": {before: func(b *bench, h *Hold) {
			b.m.SetError("NOPERM")
			b.equal("the first failed", h.Release(background) != nil, true)
			b.m.SetError("")
			b.sent, b.lose["unlock"] = nil, 1
		}, second: released, sent: 2},
	} {
		t.Run(what, func(t *testing.T) {
			both(t, func(b *bench, fair bool) {
				h := b.acquire(b.lock("a", fair))
				if c.before != nil {
					c.before(b, h)
				}
				before := len(b.sent)
				b.wraps("a release", h.Release(background), c.first...)
				b.wraps("the next", h.Release(background), c.second...)
				b.equal("unlocks", strings.Count(strings.Join(b.sent[min(before, len(b.sent)):], " "), "unlock"), c.sent)
				b.equal("held", b.m.Exists("l"), c.held)
			})
		})
	}
}

// A cancelled call still gives up its hold.
func TestAReleaseIsSentAlthoughItsContextHasEnded(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		h := b.acquire(b.lock("a", fair))
		b.must(h.Release(ended()))
		b.equal("held", b.m.Exists("l"), false)
	})
}

// The server may keep a hold after a failed Release, but nothing renews it.
func TestARefusedReleaseEndsTheRenewals(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		h := b.acquire(b.lock("a", fair))
		b.m.SetError("NOPERM")
		err := h.Release(background)
		b.equal("refused", err != nil && strings.Contains(err.Error(), "NOPERM"), true)
		synctest.Wait()
		b.equal("cause", context.Cause(h.Context(background)), lockimpl.ErrReleased)
		b.m.SetError("")
		time.Sleep(31 * time.Second)
		b.equal("held", b.m.Exists("l"), false)
	})
}

func TestReleasesTakeTurns(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		h := b.acquire(b.lock("a", fair))
		b.lose["unlock"] = 1
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- h.Release(background) }()
		}
		synctest.Wait()
		b.wraps("one that does not wait for its turn", h.Release(ended()), lockimpl.ErrUnknownOutcome, context.Canceled)
		given := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				given++
			} else {
				b.wraps("a later one", err, lockimpl.ErrNotHeld, lockimpl.ErrReleased)
			}
		}
		b.equal("gave it up", given, 1)
		b.equal("unlocks", strings.Count(strings.Join(b.sent, " "), "unlock"), 2)
	})
}

func TestTheLeaseOfAHandleIsExact(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		l := b.lock("a", fair)
		_, err := l.Acquire(background, WithLease(time.Microsecond))
		b.wraps("a lease of a microsecond", err, lockimpl.ErrInvalid)
		b.acquire(l, WithLease(5*time.Second))
		b.equal("as asked", b.ttl(l), 5*time.Second)
		time.Sleep(5*time.Second + ms)
		b.equal("held", b.m.Exists("l"), false)
	})
}

// A long hold does not keep a reference to parents that have ended.
func TestAHoldOutlivesItsParents(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		h := b.acquire(b.lock("a", fair))
		for range 3 {
			parent, end := context.WithCancel(background)
			ctx := h.Context(parent)
			end()
			synctest.Wait()
			b.equal("cause", context.Cause(ctx), context.Canceled)
		}
		b.must(context.Cause(h.Context(background)))
	})
}

// docs/production.md lists the keys and how long they stay.
func TestWhatHandlesLeaveInRedis(t *testing.T) {
	both(t, func(b *bench, fair bool) {
		keys := func(when, want string) {
			b.t.Helper()
			b.equal(when, strings.Join(b.m.Keys(), " "), want)
		}
		memory := func(client string) string { return "reference_memory:{l}:" + client + ":hold-1" }
		l, other := b.lock("a", fair), b.lock("c", fair)
		h := b.acquire(l)
		keys("while it is held", "l "+memory("a")+" reference_token:{l}")
		b.equal("the hold", b.m.TTL("l"), DefaultWatchdogTimeout)
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		go func() { _, _ = other.Acquire(ctx) }()
		synctest.Wait()
		queue := ""
		if fair {
			queue = "reference_deadlines:{l} "
			b.equal("the queue", b.m.TTL(QueueName("l")), DefaultHeartbeat)
		}
		want := "l " + queue + memory("a") + " " + memory("c") + " "
		if fair {
			want += "reference_queue:{l} "
		}
		keys("while another waits", want+"reference_token:{l}")
		time.Sleep(2 * time.Second)
		b.must(h.Release(background))
		keys("when all have left", memory("a")+" "+memory("c")+" reference_token:{l}")
		time.Sleep(Memory - 2*time.Second)
		keys("less than a minute after the last call", memory("a")+" "+memory("c"))
		time.Sleep(2 * time.Second)
		keys("a minute later", "")
	})
}

// step is one step of a drawn life of a lock with four handles.
type step struct {
	Do     string
	Handle int
	Sleep  time.Duration
}

// life draws such steps.
var life = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		Do:     rapid.SampledFrom([]string{"try", "try", "release", "release", "release unheard", "remove", "force", "sleep"}).Draw(t, "do"),
		Handle: rapid.IntRange(0, 3).Draw(t, "handle"),
		Sleep:  rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 11 * time.Second, 65 * time.Second}).Draw(t, "sleep"),
	}
}), 1, 30)

// known has the facts that the test knows about a handle.
type known struct {
	h       *Hold
	held    bool      // the server keeps it
	lost    bool      // the hold ended before a Release
	at      time.Time // when a Release gave it up, with or without an answer
	settled error     // the error of each further Release; nil: no Release settled it
	asked   time.Time // when the server last ran a request of the handle, which it remembers for Memory
}

// In every drawn life the handles answer truly.
func TestWhatHandlesSayIsTrue(t *testing.T) {
	for name, fair := range map[string]bool{"plain": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				steps, wrong := life.Draw(rt, "steps"), ""
				bubble(t, func(b *bench) { wrong = live(b, b.lock("a", fair), steps) }) // a case must not end in the bubble
				if wrong != "" {
					rt.Fatal(wrong)
				}
			})
		})
	}
}

// live plays steps, and returns the first fault that it finds.
func live(b *bench, l *Lock, steps []step) string {
	var last int64
	var handles [4]known
	holder := func() *known {
		for i := range handles {
			if handles[i].held {
				return &handles[i]
			}
		}
		return nil
	}
	lose := func() { // loses the hold; no client knows yet
		if k := holder(); k != nil {
			k.held, k.lost = false, true
		}
	}
	for i, s := range steps {
		k := &handles[s.Handle]
		wrong := func(what string, got, want any) string {
			return fmt.Sprintf("step %d of %+v: %s: got %v, want %v", i, steps, what, got, want)
		}
		switch s.Do {
		case "try":
			h, err := l.TryAcquire(background)
			if busy := holder() != nil; errors.Is(err, lockimpl.ErrBusy) != busy || (err == nil) == busy {
				return wrong("a try of a lock that is held: "+fmt.Sprint(busy), err, "")
			} else if busy {
				continue
			}
			if h.Token() <= last {
				return wrong("token", h.Token(), fmt.Sprintf("more than %d", last))
			}
			last = h.Token()
			*k = known{h: h, held: true, asked: time.Now()}
		case "release", "release unheard":
			if k.h == nil {
				continue
			}
			ctx := background
			if s.Do == "release unheard" {
				b.lose["unlock"], ctx = 1, ended()
			}
			err := k.h.Release(ctx)
			b.lose["unlock"] = 0
			ran := k.settled == nil
			switch {
			case !ran:
				if !errors.Is(err, k.settled) {
					return wrong("a release of what is settled", err, k.settled)
				}
			case s.Do == "release unheard" || !k.held && !k.lost && time.Since(k.at) > Memory:
				if !errors.Is(err, lockimpl.ErrUnknownOutcome) {
					return wrong("a release of which nobody can tell", err, lockimpl.ErrUnknownOutcome)
				}
			case k.lost && time.Since(k.asked) >= Memory && errors.Is(err, lockimpl.ErrUnknownOutcome):
				// The server remembers nothing of the hold, and the client had not heard of the loss.
			case k.lost:
				if k.settled = lockimpl.ErrHoldLost; !errors.Is(err, k.settled) {
					return wrong("a release of what is lost", err, k.settled)
				}
			default:
				if k.settled = lockimpl.ErrReleased; err != nil {
					return wrong("a release", err, nil)
				}
			}
			if k.held || time.Since(k.asked) < Memory { // a forgotten outcome stays unknown
				k.asked = time.Now()
			}
			if k.held {
				k.held, k.at = false, time.Now()
			}
		case "remove":
			b.m.Del("l")
			lose()
		case "force":
			freed, err := l.ForceUnlock(background)
			if err != nil || freed != (holder() != nil) {
				return wrong("a forced unlock", fmt.Sprint(freed, err), holder() != nil)
			}
			lose()
		case "sleep":
			time.Sleep(s.Sleep)
		}
		synctest.Wait()
		if b.m.Exists("l") != (holder() != nil) {
			return wrong("held", b.m.Exists("l"), holder() != nil)
		}
		for n := range handles {
			if k := &handles[n]; k.held && k.h.Context(background).Err() != nil {
				return wrong(fmt.Sprintf("handle %d holds the lock, and its context", n), context.Cause(k.h.Context(background)), nil)
			}
		}
	}
	time.Sleep(11 * time.Second) // the next renewal notices each loss
	for n, k := range handles {
		if k.h == nil || k.held {
			continue
		}
		if err := context.Cause(k.h.Context(background)); !errors.Is(err, lockimpl.ErrReleased) && !errors.Is(err, lockimpl.ErrHoldLost) {
			return fmt.Sprintf("after %+v: handle %d does not hold the lock, and its context: %v", steps, n, err)
		}
	}
	return ""
}

// In real time only the lock keeps goroutines apart; the race detector checks it.
func TestHandlesOnRealGoroutines(t *testing.T) {
	for name, fair := range map[string]bool{"plain": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.NewMiniRedis()
			defer m.Close()
			var locks []*Lock
			for range 2 {
				rdb := redis.NewClient(&redis.Options{
					Protocol: 2, Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
				})
				defer func() { _ = rdb.Close() }()
				c, err := NewClient(rdb, Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				l, err := c.lock("l", plainScripts)
				if fair {
					l, err = c.lock("l", fairScripts)
				}
				if err != nil {
					t.Fatal(err)
				}
				locks = append(locks, l)
			}
			const goroutines, turns = 8, 10
			taken, last := 0, int64(0) // guarded by the lock
			var all sync.WaitGroup
			for i := range goroutines {
				all.Go(func() {
					for range turns {
						h, err := locks[i%len(locks)].Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						ctx := h.Context(t.Context())
						if h.Token() <= last || ctx.Err() != nil {
							t.Errorf("token %d after %d, cause %v", h.Token(), last, context.Cause(ctx))
						}
						taken, last = taken+1, h.Token()
						var twice sync.WaitGroup
						var errs [2]error
						for k := range errs {
							twice.Go(func() { errs[k] = h.Release(t.Context()) })
						}
						twice.Wait()
						if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), lockimpl.ErrReleased) {
							t.Errorf("two releases: %v", errs)
						}
					}
				})
			}
			all.Wait()
			if taken != goroutines*turns {
				t.Errorf("taken %d times, want %d", taken, goroutines*turns)
			}
		})
	}
}
