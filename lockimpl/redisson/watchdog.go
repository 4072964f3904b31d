package redisson

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// watchdog renews the holds that have no lease. The generations differ in their memory of holds,
// and in the events that end renewals; see Watchdog.
type watchdog interface {
	// add is called when a hold without lease was acquired or entered again.
	add(l *lock, o lockimpl.Owner)
	// remove is called at the answers to an unlock that take a level.
	remove(l *lock, o lockimpl.Owner)
	// drop forgets all of this client's holds of a lock (forceUnlock).
	drop(l *lock)
	stop()
}

func newWatchdog(c *Client) watchdog {
	switch c.rel.Watchdog {
	case WatchdogTimer:
		return &timerWatchdog{client: c, timers: map[string]*time.Timer{}}
	case WatchdogEntry, WatchdogEntryDropped, WatchdogEntryQueue:
		return &entryWatchdog{client: c, form: c.rel.Watchdog, entries: map[string]*renewalEntry{}}
	case WatchdogTask:
		return &taskWatchdog{client: c, entries: map[string]*renewalEntry{}, timers: map[int]*time.Timer{}}
	}
	panic("redisson: release " + c.rel.Version + " names no watchdog")
}

// renewalLease is the lease that a renewal of this lock object asks for; a
// third of it is the period.
func (l *lock) renewalLease() time.Duration {
	if l.c.rel.LeaseField == FieldOfAttempt {
		return l.field()
	}
	return l.c.watchdogT
}

// afterPeriod calls f in one period of a lock object.
func (l *lock) afterPeriod(f func()) *time.Timer {
	return time.AfterFunc(l.c.wheel.until(l.renewalLease()/3), f)
}

// renew asks the server once to renew one owner's hold, with the executor's resends; held reports
// whether the script found the hold.
func (l *lock) renew(o lockimpl.Owner) (held bool, err error) {
	c, lease, asked := l.c, l.renewalLease(), time.Now()
	r := c.evalScript(context.Background(), 0, c.rel.Renew, []string{l.name}, []any{lease.Milliseconds(), c.owner(o)})
	n, _ := r.long()
	c.settleRenewal(l.name, o, n == 1, r.err, asked, lease)
	return n == 1, r.err
}

// settleRenewal reports the outcome of a renewal to log, observer and holder. The observer gets no
// report if the hold was given up while the renewal was under way.
func (c *Client) settleRenewal(lock string, o lockimpl.Owner, held bool, err error, asked time.Time, lease time.Duration) {
	log := c.log.With("lock", lock, "owner", c.owner(o))
	open := c.holds.find(lock, o) != nil
	var outcome lockimpl.RenewalOutcome
	switch {
	case err != nil:
		outcome = lockimpl.RenewalFailed
		log.Error("can't update lock expiration", "err", err)
	case held:
		outcome = lockimpl.RenewalRenewed
		c.holds.renewed(lock, o, asked, lease)
		log.Debug("renewed")
	default:
		outcome = lockimpl.RenewalGone
		c.holds.lost(lock, o)
		log.Info("renewal found the lock not held")
	}
	if open {
		c.observer.RenewalEnded(lockimpl.RenewalEnded{Lock: lock, Outcome: outcome})
	}
}

// timerWatchdog is W2: a timer for each lock name.
type timerWatchdog struct {
	client  *Client
	mu      sync.Mutex
	timers  map[string]*time.Timer
	stopped bool
}

func (w *timerWatchdog) add(l *lock, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.timers[l.name] != nil {
		return
	}
	w.timers[l.name] = l.afterPeriod(func() { w.tick(l, o) })
}

// tick renews for the thread that set the timer. Its answer forgets the lock's timer, even if
// another was set since. If the lock is still held, it sets a timer again for the same thread.
func (w *timerWatchdog) tick(l *lock, o lockimpl.Owner) {
	held, err := l.renew(o)
	w.mu.Lock()
	delete(w.timers, l.name)
	w.mu.Unlock()
	if held && err == nil {
		w.add(l, o)
	}
}

func (w *timerWatchdog) remove(l *lock, _ lockimpl.Owner) { w.drop(l) }

func (w *timerWatchdog) drop(l *lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.timers[l.name]; t != nil {
		t.Stop()
		delete(w.timers, l.name)
	}
}

func (w *timerWatchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, t := range w.timers {
		t.Stop()
	}
}

// renewalEntry has the holds of one lock: how often each thread entered, and the order of the
// threads.
type renewalEntry struct {
	counts map[lockimpl.Owner]int
	queue  []lockimpl.Owner
	timer  *time.Timer // of entryWatchdog
}

func newRenewalEntry() *renewalEntry {
	return &renewalEntry{counts: map[lockimpl.Owner]int{}}
}

// addOne adds one level of a thread. It adds the thread to the queue at the thread's first level,
// or, with everyEntry, at each level.
func (e *renewalEntry) addOne(o lockimpl.Owner, everyEntry bool) {
	if everyEntry || e.counts[o] == 0 {
		e.queue = append(e.queue, o)
	}
	e.counts[o]++
}

// removeOne takes one level of a thread. At the last level the first element of that thread leaves
// the queue. With everyEntry, others may remain, so that 3.43.0 renews a thread that holds nothing.
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

// entryWatchdog is W6 and W8: a timer for each lock name that renews for the
// first of its threads.
type entryWatchdog struct {
	client  *Client
	form    Watchdog
	mu      sync.Mutex
	entries map[string]*renewalEntry
	stopped bool
}

func (w *entryWatchdog) add(l *lock, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	e := w.entries[l.name]
	if e == nil {
		e = newRenewalEntry()
		w.entries[l.name] = e
		w.arm(l, e)
	}
	e.addOne(o, w.form == WatchdogEntryQueue)
}

// arm sets the next tick; the caller holds w.mu.
func (w *entryWatchdog) arm(l *lock, e *renewalEntry) {
	e.timer = l.afterPeriod(func() { w.tick(l) })
}

func (w *entryWatchdog) tick(l *lock) {
	w.mu.Lock()
	e := w.entries[l.name]
	if e == nil || len(e.queue) == 0 || w.stopped {
		w.mu.Unlock()
		return
	}
	o := e.queue[0]
	w.mu.Unlock()

	held, err := l.renew(o)

	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
	case err == nil && held:
		// Redisson arms the entry that is in the map now.
		if now := w.entries[l.name]; now != nil {
			w.arm(l, now)
		}
	case w.form == WatchdogEntry: // the entry stays, without a timer
	case err != nil:
		delete(w.entries, l.name)
	default:
		w.cancel(l.name)
		l.setField(w.client.watchdogT)
	}
}

func (w *entryWatchdog) remove(l *lock, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[l.name]
	if e == nil {
		return
	}
	e.removeOne(o)
	if len(e.queue) == 0 {
		w.cancel(l.name)
	}
}

func (w *entryWatchdog) drop(l *lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel(l.name)
}

// cancel forgets an entry; the caller holds w.mu.
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

// taskWatchdog is W9: one task for all locks of the client, with one tick for all of them, so that
// the first renewal of a hold may come at any time within its first period.
//
// The task runs from the first hold to the last. The end of the last hold leaves the current timer
// alone, and the timer goes on if it finds the task running again. So a client that unlocks its
// last lock and locks again within a period has an additional timer, which also renews all holds.
// Timers end when they find nothing held. (The library was seen to do so: interop, TestWatchdog.)
type taskWatchdog struct {
	client  *Client
	mu      sync.Mutex
	entries map[string]*renewalEntry
	order   []string            // lock names in the order in which their entries were made
	running bool                // there are entries
	timers  map[int]*time.Timer // by number
	armed   int                 // timers until now
	stopped bool
}

func (w *taskWatchdog) add(l *lock, o lockimpl.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	e := w.entries[l.name]
	if e == nil {
		e = newRenewalEntry()
		w.entries[l.name] = e
		w.order = append(w.order, l.name)
	}
	e.addOne(o, false)
	if !w.running {
		w.running = true
		w.schedule()
	}
}

// schedule sets a timer if the task runs. The caller holds w.mu.
func (w *taskWatchdog) schedule() {
	if !w.running || w.stopped {
		return
	}
	w.armed++
	n := w.armed
	w.timers[n] = time.AfterFunc(w.client.wheel.until(w.client.watchdogT/3), func() { w.tick(n) })
}

func (w *taskWatchdog) tick(n int) {
	w.mu.Lock()
	delete(w.timers, n)
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
	w.schedule()
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
	asked := time.Now()
	r := c.evalScript(context.Background(), 0, c.rel.Renew, keys, args)
	answers, _ := r.val.([]any)
	for i, name := range keys {
		var n int64
		if i < len(answers) {
			n, _ = answers[i].(int64)
		}
		c.settleRenewal(name, owners[i], n == 1, r.err, asked, c.watchdogT)
		if r.err == nil && n == 0 {
			w.removeOne(name, owners[i])
		}
	}
	return r.err == nil
}

func (w *taskWatchdog) remove(l *lock, o lockimpl.Owner) { w.removeOne(l.name, o) }

func (w *taskWatchdog) removeOne(lock string, o lockimpl.Owner) {
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

func (w *taskWatchdog) drop(l *lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(l.name)
}

// forget drops a lock's entry; the caller holds w.mu.
func (w *taskWatchdog) forget(lock string) {
	delete(w.entries, lock)
	if i := slices.Index(w.order, lock); i >= 0 {
		w.order = slices.Delete(w.order, i, i+1)
	}
	w.running = len(w.entries) > 0
}

func (w *taskWatchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, t := range w.timers {
		t.Stop()
	}
}
