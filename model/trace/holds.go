package trace

import (
	"slices"
	"sort"

	"lockstep/model"
)

// Hold is the time for which the servers held a lock for one owner, without a break. The table of holds
// is built from the changes of the state alone. Who sent a request is no part of it. Holds of several
// owners may overlap, since a lock may have several holders.
type Hold struct {
	Lock  string
	Owner string // process/thread, or a value whose thread is unknown
	Value string // that marks the owner on the server; "": nobody knows
	// Began began the hold, and Ended ended it; Ended is nil if the hold outlasts the record.
	Began, Ended *Change
	// Moved are the changes between them that moved its level or the end of its lease, in order.
	Moved []*Change
}

// FromNs returns when the hold began.
func (h *Hold) FromNs() int64 { return h.Began.AtNs }

// ToNs returns when the hold ended, or Never.
func (h *Hold) ToNs() int64 {
	if h.Ended == nil {
		return Never
	}
	return h.Ended.AtNs
}

// Within reports whether the hold was there at an instant of [fromNs, toNs].
func (h *Hold) Within(fromNs, toNs int64) bool { return h.FromNs() <= toNs && fromNs <= h.ToNs() }

// Holds returns the holds of a lock, in the order in which they began.
func (r *Run) Holds(lock string) []*Hold { return r.table(lock).all }

// holds are the holds of a lock, in the order in which they began.
type holds struct {
	all  []*Hold
	toNs []int64 // the latest end of the holds up to each
}

// table returns the table of holds of a lock.
func (r *Run) table(lock string) *holds {
	l := r.known(lock)
	if l.holds == nil {
		t := &holds{all: holdsOf(l.changes)}
		to := int64(0)
		for _, h := range t.all {
			to = max(to, h.ToNs())
			t.toNs = append(t.toNs, to)
		}
		l.holds = t
	}
	return l.holds
}

// within returns the holds that may have been there at an instant of [fromNs, toNs], in order: all of them, and
// perhaps some that had ended before.
func (t *holds) within(fromNs, toNs int64) []*Hold {
	first := sort.Search(len(t.all), func(i int) bool { return t.toNs[i] >= fromNs })
	last := sort.Search(len(t.all), func(i int) bool { return t.all[i].FromNs() > toNs })
	if first >= last {
		return nil
	}
	return t.all[first:last]
}

func holdsOf(changes []*Change) []*Hold {
	var holds []*Hold
	now := map[string]*Hold{}
	for _, c := range changes {
		if c.Ended() {
			if h := now[c.Before.Owner]; h != nil {
				h.Ended = c
				delete(now, c.Before.Owner)
			}
		}
		switch h := now[c.After.Owner]; {
		case c.Started():
			h := &Hold{Lock: c.Lock, Owner: c.After.Owner, Value: c.After.Value, Began: c}
			holds, now[h.Owner] = append(holds, h), h
		case h != nil && (c.Before.Count != c.After.Count || c.Before.ExpiresMs != c.After.ExpiresMs):
			h.Moved = append(h.Moved, c)
		}
	}
	return holds
}

// HoldsOf returns the holds of an owner that were there at an instant of [fromNs, toNs], in order.
func (r *Run) HoldsOf(lock, owner string, fromNs, toNs int64) []*Hold {
	var out []*Hold
	for _, h := range r.table(lock).within(fromNs, toNs) {
		if h.Owner == owner && h.Within(fromNs, toNs) {
			out = append(out, h)
		}
	}
	return out
}

// FreeWithin reports whether an owner had no hold of a lock at some instant of [fromNs, toNs].
func (r *Run) FreeWithin(lock, owner string, fromNs, toNs int64) bool {
	at := fromNs
	for _, h := range r.HoldsOf(lock, owner, fromNs, toNs) {
		if h.FromNs() > at || h.ToNs() <= toNs {
			return true
		}
		at = h.ToNs()
	}
	return at < toNs || len(r.HoldsOf(lock, owner, fromNs, toNs)) == 0
}

// HeldWithin reports whether anybody held the lock, or it was closed, at some instant of [fromNs, toNs]. It leaves out the
// holds of one owner.
func (r *Run) HeldWithin(lock string, fromNs, toNs int64, except string) bool {
	return r.HeldWithinBut(lock, fromNs, toNs, func(h *Hold) bool { return h.Owner == except })
}

// HeldWithinBut is like HeldWithin, and leaves out the holds for which a function returns true.
func (r *Run) HeldWithinBut(lock string, fromNs, toNs int64, except func(*Hold) bool) bool {
	if slices.ContainsFunc(r.table(lock).within(fromNs, toNs), func(h *Hold) bool { return h.Within(fromNs, toNs) && !except(h) }) {
		return true
	}
	closed := func(s *model.LockState) bool { return s.ClosedMs > 0 }
	return closed(r.StateAt(lock, fromNs)) || slices.ContainsFunc(r.ChangesWithin(lock, fromNs, toNs), func(c *Change) bool { return closed(c.Before) || closed(c.After) })
}
