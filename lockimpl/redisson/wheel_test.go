package redisson

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
)

func millis(n ...int) []time.Duration {
	var at []time.Duration
	for _, ms := range n {
		at = append(at, time.Duration(ms)*time.Millisecond)
	}
	return at
}

func inWholeMillis(at []time.Duration) []time.Duration {
	var whole []time.Duration
	for _, d := range at {
		whole = append(whole, d.Truncate(time.Millisecond))
	}
	return whole
}

// A timer fires at the first tick after its time, and not at a tick exactly at its time.
func TestATimerFiresAtTheNextTickOfTheWheel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWheel(100*time.Millisecond, lockimpl.Environment{
			Jitter: func(_ lockimpl.Owner, limit time.Duration) time.Duration { return limit * 3 / 10 },
		}) // ticks come 70, 170, 270 ms from now
		for _, c := range []struct{ length, fires int }{{0, 70}, {69, 70}, {70, 170}, {71, 170}, {170, 270}, {3000, 3070}} {
			got := w.until(time.Duration(c.length) * time.Millisecond)
			same(t, "a timer", got.Truncate(time.Millisecond), time.Duration(c.fires)*time.Millisecond)
		}
		var exact *wheel
		same(t, "a timer without a wheel", exact.until(70*time.Millisecond), 70*time.Millisecond)
	})
}

// Timers of one tick fire in the order in which they were set, each at an instant of its own.
func TestTimersOfOneTickFireInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWheel(100*time.Millisecond, lockimpl.Environment{}.WithDefaults())
		first, second := w.until(40*time.Millisecond), w.until(30*time.Millisecond)
		if first/time.Millisecond == second/time.Millisecond && second <= first {
			t.Errorf("the timer that was set second fires after %v, the first one after %v", second, first)
		}
	})
}

// The tick was measured on the library: interop, TestTimersOfTheLibrary.
func TestTheTickFollowsFromTheShorterTimeout(t *testing.T) {
	for _, c := range []struct{ retry, response, tick int }{
		{1500, 3000, 100}, {1000, 3000, 100}, {1500, 550, 25}, {1500, 100, 50}, {1682, 3000, 41}, {1999, 3000, 49}, {1001, 3000, 1},
	} {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		if got := tickOf(ms(c.retry), ms(c.response)); got != ms(c.tick) {
			t.Errorf("retry delay %d ms, response timeout %d ms: tick %v, want %d ms", c.retry, c.response, got, c.tick)
		}
	}
}

// On the wheel a period of 500 ms becomes 600 ms, each time. Without the wheel it is exact.
func TestTheDelaysOfTheWheelAddUp(t *testing.T) {
	for _, c := range []struct {
		wheel bool
		at    []time.Duration
	}{{true, millis(550, 1150, 1750)}, {false, millis(500, 1000, 1500)}} {
		each(t, func(b *bench, k kind) {
			client := b.client(k.Release, "c1", func(cfg *Config) {
				cfg.WatchdogTimeout, cfg.TimerWheel = 1500*time.Millisecond, c.wheel
			})
			b.must(b.lock(client, k, "x").Lock(background, 1, lockimpl.LockOptions{}))
			b.until(1800 * time.Millisecond)
			same(b.t, "renewals", inWholeMillis(b.renewals(k.Release, "c1")), c.at)
		})
	}
}

// The response timeout ends at a tick, and a wait for a message does not.
func TestAWaitForAMessageIsNotOnTheWheel(t *testing.T) {
	each(t, func(b *bench, k kind) {
		client := b.client(k.Release, "c1", func(cfg *Config) { cfg.TimerWheel, cfg.RetryAttempts = true, -1 })
		b.must(b.lock(b.client(k.Release, "c2"), k, "x").Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		l := b.lock(client, k, "x")
		b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 1230 * time.Millisecond})
		}).refusedAt(1230 * time.Millisecond)

		b.answer(loses(k.acquire().Name))
		late := b.begin(func() (bool, error) { return false, l.Lock(background, 1, lockimpl.LockOptions{}) })
		late.wait()
		// It began at 1230 ms. Ticks come 50 ms after whole tenths of a second, or, where the
		// retry delay is drawn, each 25 ms from 12.5 ms on.
		want := 4250 * time.Millisecond
		if k.RetryDelay.Min != 0 {
			want = 4237 * time.Millisecond
		}
		if got := late.at.Truncate(time.Millisecond); !errors.Is(late.err, errResponseTimeout) || got != want {
			t.Errorf("the call ended at %v with %v; want no response at %v", got, late.err, want)
		}
	})
}
