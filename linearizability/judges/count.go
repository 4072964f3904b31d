package judges

import (
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// countJudge finds owners, without an open call, for which the server counts another number of
// levels than their grants less their releases since the key was last lost. A call of unknown
// outcome counts once, with the effect that the record shows.
type countJudge struct{ *run }

func (r countJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		out = append(out, r.miscounts(lock)...)
	}
	return out
}

// miscounts follows calls and changes in the order in which they happened.
func (r countJudge) miscounts(lock string) []Finding {
	w := &counting{countJudge: r, lock: lock, tallies: map[string]*tally{}, uncounted: map[int]bool{}, state: new(model.LockState)}
	changes := r.Changes(lock)
	for _, e := range r.EventsOf(lock) {
		switch e.Kind {
		case model.KindState:
			w.change(changes[0])
			changes = changes[1:]
		case model.KindInvoke:
			t := w.of(e.ThreadName())
			t.open, t.last = true, r.Call(e.Op)
		case model.KindReturn:
			w.answer(r.Call(e.Op))
		case model.KindTold:
			w.of(e.ThreadName()).doubt()
		}
	}
	return w.found
}

// counting counts the levels that each thread has of a lock, by its calls.
type counting struct {
	countJudge
	lock      string
	found     []Finding
	tallies   map[string]*tally // by thread
	uncounted map[int]bool      // calls that returned before their effect
	state     *model.LockState
}

// tally counts the levels of one thread.
type tally struct {
	levels int
	// own counts the levels as if no failover had happened. A lock that writes the number of its levels, and does
	// not count up or down on the server, undoes with its next call what a failover did.
	own int
	// unheard is how many of the levels its owner need not know of, after calls of unknown outcome, or because it takes them for
	// gone. Where threads know holds only by their grants, its unlocks may count these levels or not.
	unheard int
	open    bool
	wrong   bool
	truth   int64 // when a failover or a late request last set the server's count
	last    *trace.Call
}

func (w *counting) of(who string) *tally {
	if w.tallies[who] == nil {
		w.tallies[who] = &tally{}
	}
	return w.tallies[who]
}

// doubt notes that the thread takes its levels for gone. Its client may give back what is left of them.
func (t *tally) doubt() { t.unheard = t.levels }

// counts reports whether the tally allows a number of levels. Where threads know holds by their grants, it may be the
// number that a failover undid.
func (t *tally) counts(levels int, perGrant bool) bool {
	return t.levels-t.unheard <= levels && levels <= t.levels || perGrant && t.truth > 0 && t.own-t.unheard <= levels && levels <= t.own
}

// look compares the levels of a thread with those that the server counts.
func (w *counting) look(who string, at int64) {
	t, count := w.of(who), trace.Levels(w.state, who)
	if t.open || t.wrong || t.last == nil || t.counts(count, w.Record.Params.PerGrant) || w.diedAt(who) <= at || w.LeaveNs <= at {
		return
	}
	t.wrong = true // later differences have the same cause
	w.found = append(w.found, Finding{Judge: model.JudgeHoldCount, Verdict: Broken, AtNs: at, Ops: []OpRef{refOf(t.last)}, Excuses: w.memoryLost(t.last), Facts: model.Facts{Lock: w.lock, Thread: who},
		Detail: Miscount{After: t.last.Action, Counted: count, Levels: t.levels}})
}

// change updates the levels when the state of the lock has changed.
func (w *counting) change(c *trace.Change) {
	w.state = c.After
	if c.Ended() && (forced(c) || !c.MadeFor(c.Before.Owner)) {
		t := w.of(c.Before.Owner) // it expired, or somebody removed it or took it away
		t.levels, t.own, t.unheard = 0, 0, 0
	}
	o := c.Call()
	late := w.Record.Params.PerGrant && o != nil && o.Return != nil && o.ReturnedNs() < c.AtNs
	if late && c.Started() {
		t := w.of(c.After.Owner) // nobody tells the owner of a hold that a late request takes
		t.levels, t.own, t.unheard, t.truth = c.After.Count, c.After.Count, c.After.Count, c.AtNs
	}
	if c.Fault > 0 && c.After.Held() {
		// The count that a failover left is right.
		t := w.of(c.After.Owner)
		t.levels, t.truth = c.After.Count, c.AtNs
	}
	if o != nil {
		if n := c.Gain(o.Caller); (w.uncounted[o.Op] || late && !c.Started()) && n != 0 { // more than a place in the queue
			delete(w.uncounted, o.Op)
			t := w.of(o.Caller)
			t.own = max(0, t.own+n)
			if t.levels = max(0, t.levels+n); w.Record.Params.PerGrant {
				t.unheard = min(t.unheard+max(n, 0), t.levels)
			}
		}
	}
	for _, who := range []string{c.Before.Owner, c.After.Owner} {
		if who != "" {
			w.look(who, c.AtNs)
		}
	}
}

// answer counts the levels that a call gained or gave up, when it has returned.
func (w *counting) answer(o *trace.Call) {
	t := w.of(o.Caller)
	t.open = false
	if o.Outcome == model.Waiting {
		return
	}
	n, counted := w.settledLevels(o)
	t.own = max(0, t.own+n)
	unsure := n > 0 || n == 0 && o.Action == model.ActUnlock
	if t.truth > 0 && slices.ContainsFunc(slices.Concat(w.effects(o), w.gains(o)), func(c *trace.Change) bool { return c.AtNs <= t.truth }) {
		n, counted = 0, true // already in the count that was set then, or undone
	}
	if !counted {
		w.uncounted[o.Op] = true
	}
	t.levels = max(0, t.levels+n)
	if w.Record.Params.PerGrant && o.Outcome == model.Unknown && unsure {
		t.unheard++
	}
	t.unheard = min(t.unheard, t.levels)
	if o.Action == model.ActExtend && o.Outcome != model.Extended || w.Record.Params.PerGrant && o.Outcome == model.NotHeld {
		t.doubt()
	}
	w.look(o.Caller, o.ReturnedNs())
}

// settledLevels returns the number of levels that a call has added to its owner when it returns. It
// reads the number from the answer of the call. If the outcome is unknown, it reads from the record
// what the call did until then. It reports false if the effect may still come.
func (r countJudge) settledLevels(o *trace.Call) (n int, counted bool) {
	switch {
	case o.Action == model.ActForceUnlock:
		return 0, true
	case o.Outcome == model.Granted:
		if r.lostSince(o) {
			return 0, true
		}
		return 1, true
	case o.Outcome == model.Released || o.Outcome == model.StillHeld:
		return -1, true
	case o.Outcome == model.Unknown && len(undone(o)) > 0:
		if len(r.grants(o)) > 0 && !r.lostSince(o) {
			return 1, true
		}
		return 0, true
	case o.Outcome == model.Unknown:
		for _, c := range r.gains(o) {
			n, counted = min(n+c.Gain(o.Caller), 1), true // an acquire may end what an earlier call left, and then take the lock
		}
		if n > 0 && r.lostSince(o) {
			n = 0
		}
		return n, counted
	}
	return 0, true
}

// gains returns the changes of the caller's levels, up to the return of a call, to which a request of the call may have led.
func (r countJudge) gains(o *trace.Call) []*trace.Change {
	return slices.DeleteFunc(slices.Clone(r.ChangesWithin(o.Lock, o.AtNs, o.ReturnedNs())), func(c *trace.Change) bool {
		return c.Gain(o.Caller) == 0 || !r.mayBeOf(c, o)
	})
}

// mayBeOf reports whether a request of a call led to a change, or one that was sent during the call, in no call, for
// its thread or for an unknown one.
func (r countJudge) mayBeOf(c *trace.Change, o *trace.Call) bool {
	m := c.By
	return c.Call() == o || m != nil && m.Call == nil && m.Process == o.Process && (len(m.Threads) == 0 || slices.Contains(m.Threads, o.Caller)) &&
		o.AtNs <= m.AtNs && m.AtNs <= o.ReturnedNs()
}

// lostSince reports whether the hold that the call was granted ended before the call returned. Where threads know holds by
// their grants, a later request of the call may take the lock again.
func (r countJudge) lostSince(o *trace.Call) bool {
	g := r.grantsKept(o)
	if len(g) == 0 { // perhaps of a request of an unknown thread
		g = slices.DeleteFunc(r.gains(o), func(c *trace.Change) bool { return c.After.Owner != o.Caller })
	}
	if len(g) == 0 {
		return false
	}
	lost := false
	for _, c := range r.ChangesAfter(o.Lock, g[0].AtNs) {
		switch {
		case c.AtNs > o.ReturnedNs():
			return lost
		case c.Before.Owner == o.Caller && c.After.Owner != o.Caller && (forced(c) || !c.MadeFor(o.Caller)):
			lost = true
		case r.Record.Params.PerGrant && c.Call() == o && c.Started():
			lost = false
		}
	}
	return lost
}
