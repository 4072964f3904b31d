package redisson

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// watchdog renews the holds that have no lease. The generations differ in what
// they remember of a hold and in what ends a renewal; see Watchdog.
type watchdog interface {
	// add is called when a hold without lease was acquired or entered again.
	add(lock string, o lockimpl.Owner)
	// remove is called at every unlock, whatever its outcome.
	remove(lock string, o lockimpl.Owner)
	// drop forgets all of this client's holds of a lock (forceUnlock).
	drop(lock string)
	stop()
}

// renewalEntry is what is known of one lock's holds: how often each thread
// entered, and in which order threads came.
type renewalEntry struct {
	counts map[lockimpl.Owner]int
	queue  []lockimpl.Owner
	timer  *time.Timer // of entryWatchdog
}

func newRenewalEntry() *renewalEntry {
	return &renewalEntry{counts: map[lockimpl.Owner]int{}}
}

// removeOne takes one level of a thread. At its last level the first element
// of that thread leaves the queue: the only one, or, where every entry added
// one, one of several (which is how 3.43.0 comes to renew a thread that holds
// nothing).
func (e *renewalEntry) removeOne(o lockimpl.Owner) {
	n, ok := e.counts[o]
	if !ok {
		return
	}
	if n > 1 {
		e.counts[o] = n - 1
		return
	}
	delete(e.counts, o)
	if i := slices.Index(e.queue, o); i >= 0 {
		e.queue = slices.Delete(e.queue, i, i+1)
	}
}

// entryWatchdog is W8: a timer for each lock name.
type entryWatchdog struct {
	client  *Client
	mu      sync.Mutex
	entries map[string]*renewalEntry
	stopped bool
}

func (w *entryWatchdog) add(lock string, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	e := w.entries[lock]
	if e == nil {
		e = newRenewalEntry()
		w.entries[lock] = e
		w.arm(lock, e)
	}
	e.counts[o]++
	e.queue = append(e.queue, o)
}

// arm sets the next tick; w.mu is held.
func (w *entryWatchdog) arm(lock string, e *renewalEntry) {
	e.timer = time.AfterFunc(w.client.watchdogT/3, func() { w.tick(lock) })
}

func (w *entryWatchdog) tick(lock string) {
	c := w.client
	w.mu.Lock()
	e := w.entries[lock]
	if e == nil || len(e.queue) == 0 || w.stopped {
		w.mu.Unlock()
		return
	}
	o := e.queue[0]
	w.mu.Unlock()

	r := c.execute(context.Background(), 0, KindRenew, func(ctx context.Context) (any, error) {
		return c.evalOnce(ctx, c.rel.Renew, []string{lock}, []any{c.watchdogT.Milliseconds(), c.owner(o)})
	})

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	renewed, _ := r.long()
	switch {
	case r.err != nil:
		c.log.Error("can't update lock expiration", "lock", lock, "owner", c.owner(o), "err", r.err)
		delete(w.entries, lock)
	case renewed == 1:
		c.log.Debug("renewed", "lock", lock, "owner", c.owner(o))
		// Redisson arms the entry that is in the map now.
		if now := w.entries[lock]; now != nil {
			w.arm(lock, now)
		}
	default:
		c.log.Info("renewal found the lock not held", "lock", lock, "owner", c.owner(o))
		w.cancel(lock)
	}
}

func (w *entryWatchdog) remove(lock string, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[lock]
	if e == nil {
		return
	}
	e.removeOne(o)
	if len(e.queue) == 0 {
		w.cancel(lock)
	}
}

func (w *entryWatchdog) drop(lock string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel(lock)
}

// cancel forgets an entry; w.mu is held.
func (w *entryWatchdog) cancel(lock string) {
	if e := w.entries[lock]; e != nil {
		e.timer.Stop()
		delete(w.entries, lock)
	}
}

func (w *entryWatchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, e := range w.entries {
		e.timer.Stop()
	}
}

// taskWatchdog is W9: one task for all locks of the client, with one tick for
// all of them, so that a fresh hold may be renewed at any time within the
// first period.
type taskWatchdog struct {
	client  *Client
	mu      sync.Mutex
	entries map[string]*renewalEntry
	order   []string // lock names in the order in which their entries were made
	timer   *time.Timer
	stopped bool
}

func (w *taskWatchdog) add(lock string, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	e := w.entries[lock]
	if e == nil {
		e = newRenewalEntry()
		w.entries[lock] = e
		w.order = append(w.order, lock)
	}
	if e.counts[o] == 0 {
		e.queue = append(e.queue, o)
	}
	e.counts[o]++
	if w.timer == nil {
		w.timer = time.AfterFunc(w.client.watchdogT/3, w.tick)
	}
}

func (w *taskWatchdog) tick() {
	w.mu.Lock()
	names := slices.Clone(w.order)
	w.mu.Unlock()
	for len(names) > 0 {
		batch := names[:min(len(names), watchdogBatch)]
		names = names[len(batch):]
		if !w.renew(batch) {
			break // an error ends this tick, not the watchdog
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	if len(w.entries) > 0 && !w.stopped {
		w.timer = time.AfterFunc(w.client.watchdogT/3, w.tick)
	}
}

func (w *taskWatchdog) renew(batch []string) bool {
	c := w.client
	var keys []string
	var owners []lockimpl.Owner
	args := []any{c.watchdogT.Milliseconds()}
	w.mu.Lock()
	for _, name := range batch {
		if e := w.entries[name]; e != nil && len(e.queue) > 0 {
			keys = append(keys, name)
			owners = append(owners, e.queue[0])
			args = append(args, c.owner(e.queue[0]))
		}
	}
	stopped := w.stopped
	w.mu.Unlock()
	if stopped {
		return false
	}
	if len(keys) == 0 {
		return true
	}
	r := c.execute(context.Background(), 0, KindRenew, func(ctx context.Context) (any, error) {
		return c.evalOnce(ctx, c.rel.Renew, keys, args)
	})
	if r.err != nil {
		c.log.Error("can't update lock expirations", "locks", keys, "err", r.err)
		return false
	}
	answers, _ := r.val.([]any)
	for i, a := range answers {
		if n, _ := a.(int64); n == 0 && i < len(keys) {
			c.log.Info("renewal found the lock not held", "lock", keys[i], "owner", c.owner(owners[i]))
			w.remove(keys[i], owners[i])
		}
	}
	return true
}

func (w *taskWatchdog) remove(lock string, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[lock]
	if e == nil {
		return
	}
	e.removeOne(o)
	if len(e.queue) == 0 {
		w.forget(lock)
	}
}

func (w *taskWatchdog) drop(lock string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(lock)
}

func (w *taskWatchdog) forget(lock string) {
	delete(w.entries, lock)
	if i := slices.Index(w.order, lock); i >= 0 {
		w.order = slices.Delete(w.order, i, i+1)
	}
}

func (w *taskWatchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
