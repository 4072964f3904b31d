package linearizability

import (
	"math"

	"lockstep/model"
)

// Belief is a time in which a thread believes to hold a lock: from the return
// of a grant to the call of the last release, or one lease after the granted
// attempt was sent.
type Belief struct {
	Thread string // process/thread
	Lock   string
	FromNs int64
	ToNs   int64 // at most the instant at which all left
	// LeaseNs is the lease of the level that is in force at the end, 0: none.
	LeaseNs int64
	// Overstayed: a pause made it last longer than its lease.
	Overstayed bool
}

// Beliefs are those of a record, by lock in order of their names, then in
// order of their grants.
func Beliefs(rec *model.Record) []Belief {
	r := newRun(rec)
	last := int64(0)
	if n := len(rec.Events); n > 0 {
		last = rec.Events[n-1].AtNs
	}
	var out []Belief
	for _, lock := range r.locks {
		for _, b := range r.beliefs(lock) {
			to := b.to
			if to == math.MaxInt64 {
				to = last
			}
			out = append(out, Belief{Thread: b.who, Lock: lock, FromNs: b.from, ToNs: to, LeaseNs: b.lease, Overstayed: b.paused != nil})
		}
	}
	return out
}
