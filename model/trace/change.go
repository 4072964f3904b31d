package trace

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"lockstep/model"
)

// Change is a change of the state that the server holds of one lock. A command made it, or an expiry,
// or a fault, or nobody knows.
type Change struct {
	AtNs          int64
	Lock          string
	Before, After *model.LockState // never nil
	By            *Command         // nil if no command made it
	Expired       bool             // a key ran out
	Fault         int              // the number of the fault that made it; 0: none

	// toItself reports whether a hold ended and the next one is of the same thread, which had
	// waited behind itself.
	toItself bool
	index    int // in the record
}

// Started reports whether the change began a hold.
func (c *Change) Started() bool {
	return c.After.Held() && (c.Before.Owner != c.After.Owner || c.toItself)
}

// Precedes reports whether the change came before another one of the same record.
func (c *Change) Precedes(other *Change) bool { return c.index < other.index }

// Overdue reports whether the change ended a hold whose end had come, whoever made it.
func (c *Change) Overdue() bool {
	return c.Ended() && 0 <= c.Before.ExpiresMs && time.Duration(c.Before.ExpiresMs)*time.Millisecond < time.Duration(c.AtNs)
}

// Ended reports whether the change ended a hold.
func (c *Change) Ended() bool {
	return c.Before.Held() && (c.Before.Owner != c.After.Owner || c.toItself)
}

// handsToItself reports whether a change of a lock without re-entry ended the hold of a thread
// that waited behind itself. A thread waits behind itself if its unlock was lost and it asks
// again. When the server ends the hold, or the unlock arrives late, the thread leaves the queue and
// has another lease. If State shows no queue, an unlock that leaves another value shows it.
func (c *Change) handsToItself() bool {
	who := c.Before.Owner
	unlocked := c.By != nil && c.By.Script == model.RoleUnlock
	return (c.Expired || c.By == nil || unlocked) &&
		who != "" && who == c.After.Owner && c.Before.Count == c.After.Count && c.Before.ExpiresMs != c.After.ExpiresMs &&
		(slices.Contains(c.Before.Queue, who) && !slices.Contains(c.After.Queue, who) || unlocked && c.Before.Value != c.After.Value)
}

// MadeFor reports whether a command made the change that speaks for the thread.
func (c *Change) MadeFor(thread string) bool {
	if c.By == nil {
		return false
	}
	if c.renews() && slices.ContainsFunc(c.By.carried, func(h holding) bool { return h.lock == c.Lock && h.owner == thread }) {
		return true // it names the hold that it renews, whoever sent it
	}
	return c.By.SpeaksFor(thread)
}

// Call returns the call whose command made the change; nil if there is none.
func (c *Change) Call() *Call {
	if c.By == nil {
		return nil
	}
	return c.By.Call
}

// Gain compares the thread's levels after the change with those before: 1 for
// more, -1 for fewer, 0 for as many.
func (c *Change) Gain(thread string) int {
	return cmp.Compare(Levels(c.After, thread), Levels(c.Before, thread))
}

// Levels returns how often a thread holds a lock.
func Levels(s *model.LockState, thread string) int {
	if s.Owner != thread {
		return 0
	}
	return s.Count
}

// Changes returns the changes of a lock, in order.
func (r *Run) Changes(lock string) []*Change { return r.known(lock).changes }

// ChangesAfter returns the changes of a lock that came later than an instant.
func (r *Run) ChangesAfter(lock string, atNs int64) []*Change {
	changes := r.Changes(lock)
	return changes[countUpTo(changes, atNs):]
}

// ChangesUpTo returns the changes of a lock up to an instant, those at the instant
// included.
func (r *Run) ChangesUpTo(lock string, atNs int64) []*Change {
	changes := r.Changes(lock)
	return changes[:countUpTo(changes, atNs)]
}

// ChangesWithin returns the changes of a lock at the instants of [fromNs, toNs].
func (r *Run) ChangesWithin(lock string, fromNs, toNs int64) []*Change {
	upTo := r.ChangesUpTo(lock, toNs)
	return upTo[countUpTo(upTo, fromNs-1):]
}

// StartsUpTo returns the changes up to an instant that began a hold.
func (r *Run) StartsUpTo(lock string, atNs int64) []*Change {
	starts := r.known(lock).starts
	return starts[:countUpTo(starts, atNs)]
}

// EndOf returns the change that ended the hold which a change began; nil if none did.
func (r *Run) EndOf(start *Change) *Change {
	ends := r.known(start.Lock).ends
	if n := countBefore(ends, start.index+1); n < len(ends) {
		return ends[n]
	}
	return nil
}

// StateAt returns what the server held of a lock after all that happened up to an
// instant; the free lock if nothing did.
func (r *Run) StateAt(lock string, atNs int64) *model.LockState {
	if changes := r.ChangesUpTo(lock, atNs); len(changes) > 0 {
		return changes[len(changes)-1].After
	}
	return free
}

// countUpTo counts the changes that came by an instant.
func countUpTo(changes []*Change, atNs int64) int {
	return sort.Search(len(changes), func(i int) bool { return changes[i].AtNs > atNs })
}

// countBefore counts the changes that stand before an index of the record.
func countBefore(changes []*Change, index int) int {
	return sort.Search(len(changes), func(i int) bool { return changes[i].index >= index })
}

// Departures returns, by thread, the changes that took the thread out of the
// queue of a lock, in order.
func (r *Run) Departures(lock string) map[string][]*Change {
	l := r.known(lock)
	if l.departures != nil {
		return l.departures
	}
	l.departures = map[string][]*Change{}
	for _, c := range l.changes {
		before, after := withoutCommonEnds(c.Before.Queue, c.After.Queue)
		for i, thread := range before {
			if !slices.Contains(before[:i], thread) && !slices.Contains(after, thread) && !slices.Contains(c.After.Queue, thread) {
				l.departures[thread] = append(l.departures[thread], c)
			}
		}
	}
	return l.departures
}

// withoutCommonEnds removes the common beginning and the common end of two queues.
func withoutCommonEnds(a, b []string) (restOfA, restOfB []string) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}
