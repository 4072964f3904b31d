package linearizability

import (
	"cmp"
	"fmt"
	"slices"

	"lockstep/model"
)

// judgeHoldCount: while no call of an owner is open, the server's count differs
// from its grants less its releases since the key was last lost. A call of
// unknown outcome counts as the record settled it, once.
func judgeHoldCount(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		out = append(out, r.miscounts(lock)...)
	}
	return out
}

// miscounts follows calls and changes in the order in which they happened.
func (r *run) miscounts(lock string) []Finding {
	type tally struct {
		levels int
		open   bool
		wrong  bool
		truth  int64 // when a failover last set what the server counts
		last   *operation
	}
	tallies := map[string]*tally{}
	of := func(who string) *tally {
		if tallies[who] == nil {
			tallies[who] = &tally{}
		}
		return tallies[who]
	}
	var out []Finding
	var state model.LockState
	look := func(who string, at int64) {
		t := of(who)
		count := 0
		if state.Owner == who {
			count = state.Count
		}
		if t.open || t.wrong || t.last == nil || count == t.levels || r.diedAt(who) <= at || r.endNs <= at {
			return
		}
		t.wrong = true // once an owner; what follows is the same fault
		out = append(out, Finding{Judge: model.JudgeHoldCount, Verdict: Broken, AtNs: at, Ops: []OpRef{t.last.ref()}, Excuses: r.memoryLost(lock), Facts: model.Facts{Lock: lock, Thread: who},
			Why: fmt.Sprintf("at %s, after its %s, the server counts %d for %s on %s, and its calls add up to %d",
				model.At(at), t.last.Action, count, who, lock, t.levels)})
	}
	uncounted := map[int]bool{} // calls that returned with their effect still to come
	changes := r.states[lock]
	next := 0
	for i := range r.rec.Events {
		e := &r.rec.Events[i]
		if e.Lock != lock {
			continue
		}
		switch e.Kind {
		case model.KindState:
			c := changes[next]
			next++
			state = c.after
			if c.ended() && (r.forced(c) || c.by == nil || !slices.Contains(c.by.owners, c.before.Owner)) {
				of(c.before.Owner).levels = 0 // expired, removed, or taken by another
			}
			if c.fault > 0 && c.after.Held() {
				// A failover: what it left is the truth.
				t := of(c.after.Owner)
				t.levels, t.truth = c.after.Count, c.at
			}
			if c.by != nil && c.by.Op > 0 {
				o := r.ops[c.by.Op-1]
				if n := levelsOf(c, o.who); uncounted[o.Op] && n != 0 { // more than a place in the queue
					delete(uncounted, o.Op)
					of(o.who).levels = max(0, of(o.who).levels+n)
				}
			}
			for _, who := range []string{c.before.Owner, c.after.Owner} {
				if who != "" {
					look(who, e.AtNs)
				}
			}
		case model.KindInvoke:
			t := of(e.ThreadName())
			t.open, t.last = true, r.ops[e.Op-1]
		case model.KindReturn:
			o := r.ops[e.Op-1]
			t := of(o.who)
			t.open = false
			if o.outcome == model.Waiting {
				continue
			}
			n, counted := r.settledLevels(o)
			if t.truth > 0 && slices.ContainsFunc(r.effects(o), func(c change) bool { return c.at <= t.truth }) {
				n, counted = 0, true // in the truth already, or undone
			}
			if !counted {
				uncounted[o.Op] = true
			}
			t.levels = max(0, t.levels+n)
			look(o.who, e.AtNs)
		}
	}
	return out
}

// levelsOf is what a change adds to a thread's count: 1, -1 or 0.
func levelsOf(c change, who string) int {
	count := func(s model.LockState) int {
		if s.Owner == who {
			return s.Count
		}
		return 0
	}
	return cmp.Compare(count(c.after), count(c.before))
}

// settledLevels is what a call has added to its owner's levels when it
// returned: what it answered, or, where that is unknown, what the record says
// that it did until then, once.
func (r *run) settledLevels(o *operation) (n int, counted bool) {
	switch {
	case o.Action == model.ActForceUnlock:
		return 0, true
	case o.outcome == model.Granted:
		if r.lostSince(o) {
			return 0, true
		}
		return 1, true
	case o.outcome == model.Released || o.outcome == model.StillHeld:
		return -1, true
	case o.outcome == model.Unknown && len(o.undone()) > 0:
		if len(r.grants(o)) > 0 && !r.lostSince(o) {
			return 1, true
		}
		return 0, true
	case o.outcome == model.Unknown:
		for _, c := range r.states[o.Lock] {
			if c.by != nil && c.by.Op == o.Op && c.at <= o.returned() {
				if n := levelsOf(c, o.who); n != 0 {
					if n > 0 && r.lostSince(o) {
						n = 0
					}
					return n, true
				}
			}
		}
		return 0, false
	}
	return 0, true
}

// lostSince: the hold that the call was granted ended before the call returned.
func (r *run) lostSince(o *operation) bool {
	g := r.grantsKept(o)
	if len(g) == 0 {
		return false
	}
	for _, c := range r.after(o.Lock, g[0].at) {
		if c.at > o.returned() {
			break
		}
		if c.before.Owner == o.who && c.after.Owner != o.who &&
			(c.by == nil || r.forced(c) || !slices.Contains(c.by.owners, o.who)) {
			return true
		}
	}
	return false
}

// forced: a force_unlock did it, which is nobody's release, whoever called it.
func (r *run) forced(c change) bool {
	return c.by != nil && c.by.Op > 0 && r.ops[c.by.Op-1].Action == model.ActForceUnlock
}
