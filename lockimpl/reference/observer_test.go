package reference

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

// diary is an observer that records its calls. It calls the client, which would block if the client
// held a mutex.
type diary struct {
	l     *Lock
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	_, _ = d.l.Token(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) AcquireEnded(_ context.Context, e lockimpl.AcquireEnded) {
	d.write("%s %s took %v waited %v", e.Lock, e.Outcome, e.Took, e.Waited)
}

func (d *diary) RenewalEnded(e lockimpl.RenewalEnded) { d.write("%s %s", e.Lock, e.Outcome) }

func (d *diary) HoldEnded(e lockimpl.HoldEnded) { d.write("%s %s after %v", e.Lock, e.Outcome, e.Held) }

func TestWhatAnObserverIsToldOf(t *testing.T) {
	for what, c := range map[string]struct {
		does func(b *bench, l, other *Lock)
		told string
	}{
		"a hold that is given up": {func(b *bench, l, _ *Lock) {
			h := b.acquire(l)
			time.Sleep(12 * time.Second)
			b.must(h.Release(background))
			_ = h.Release(background)
		}, "l granted took 0s waited 0s, l renewed, l released after 12s"},
		"an owner that enters twice": {func(b *bench, l, _ *Lock) {
			b.hold(l, 1, 0)
			time.Sleep(time.Second)
			b.hold(l, 1, 0)
			b.unlock(l, 1, lockimpl.StillHeld)
			b.unlock(l, 1, lockimpl.Released)
		}, "l granted took 0s waited 0s, l granted took 0s waited 0s, l released after 1s"},
		"a wait": {func(b *bench, l, other *Lock) {
			b.hold(other, 1, 2*time.Second)
			b.acquire(l)
		}, "l granted took 2s waited 2s"},
		"a wait that ends first": {func(b *bench, l, other *Lock) {
			b.hold(other, 1, 0)
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			_, _ = l.Acquire(ctx)
		}, "l canceled took 1s waited 1s"},
		"tries": {func(b *bench, l, other *Lock) {
			b.hold(other, 1, 0)
			_, _ = l.TryAcquire(background)
			b.equal("granted", b.try(l, 1, time.Second), false)
		}, "l busy took 0s waited 0s, l busy took 1s waited 1s"},
		"errors": {func(b *bench, l, other *Lock) {
			_, _ = l.Acquire(background, WithLease(1)) // invalid
			b.m.SetError("NOPERM")
			_, _ = l.TryAcquire(background)
			b.must(l.c.Close())
			_, _ = l.Acquire(background)
		}, "l failed took 0s waited 0s, l failed took 0s waited 0s"},
		"an acquire of unknown outcome": {func(b *bench, l, other *Lock) {
			b.lose["acquire"], b.lose["leave"] = 1, 2
			_, _ = l.TryAcquire(background)
		}, "l unknown took 0s waited 0s"},
		"a hold that is cut off, and comes back": {func(b *bench, l, _ *Lock) {
			h := b.acquire(l)
			time.Sleep(9 * time.Second)
			b.m.SetError("LOADING")
			time.Sleep(2 * time.Second)
			b.m.SetError("")
			time.Sleep(time.Second)
			b.must(h.Release(background))
		}, "l granted took 0s waited 0s, l failed, l failed, l failed, l failed, l failed, l renewed, l released after 12s"},
		"a hold that is removed": {func(b *bench, l, _ *Lock) {
			h := b.acquire(l)
			b.m.Del("l")
			time.Sleep(11 * time.Second)
			_ = h.Release(background)
		}, "l granted took 0s waited 0s, l gone, l lost after 10s"},
		"a lease that runs out": {func(b *bench, l, _ *Lock) {
			h := b.acquire(l, WithLease(time.Second))
			time.Sleep(2 * time.Second)
			_ = h.Release(background)
		}, "l granted took 0s waited 0s, l lost after 1s"},
		"a client that closes": {func(b *bench, l, _ *Lock) {
			b.acquire(l)
			time.Sleep(time.Second)
			b.must(l.c.Close())
		}, "l granted took 0s waited 0s, l closed after 1s"},
	} {
		t.Run(what, func(t *testing.T) {
			both(t, func(b *bench, fair bool) {
				l, other := b.lock("a", fair), b.lock("c", fair)
				d := &diary{l: l}
				l.c.observer = d
				l.c.env.Jitter = func(lockimpl.Owner, time.Duration) time.Duration { return 0 }
				c.does(b, l, other)
				synctest.Wait()
				d.mu.Lock()
				defer d.mu.Unlock()
				b.equal("told", strings.Join(d.lines, ", "), c.told)
			})
		})
	}
}
