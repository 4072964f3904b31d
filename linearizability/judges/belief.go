package judges

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// Belief is a time in which a thread believes that it holds a lock. It begins with the return of a
// grant. It ends with the call of the last release, with the instant at which the thread is told
// that the hold is gone, or one lease after the granted attempt was sent, or up to a second before that if the
// lock writes its ends in whole seconds. If the lock promises to tell its holders, the end of a lease alone ends no
// belief.
type Belief struct {
	Thread string // process/thread
	Lock   string
	FromNs int64
	ToNs   int64 // at most the instant at which all left
	// LeaseNs is the lease of the level that is current at the end, 0: none.
	LeaseNs int64
	// Overstayed: a pause made it last longer than its lease.
	Overstayed bool
}

// Beliefs returns the beliefs of all threads, by lock in order of their names, then
// in order of their grants.
func Beliefs(t *trace.Run) []Belief {
	r := newRun(t)
	last := int64(0)
	if n := len(t.Record.Events); n > 0 {
		last = t.Record.Events[n-1].AtNs
	}
	var out []Belief
	for _, lock := range r.Locks {
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

// belief is a Belief with the events behind it.
type belief struct {
	who      string
	lock     string
	from, to int64
	lease    int64        // 0: none
	grant    *trace.Call  // an acquire, or the release whose answer told of a level
	first    *trace.Call  // the grant of its first level
	end      *trace.Call  // the release that ended it; nil: none did
	doubted  bool         // an extension that failed or had no answer ended it
	told     *model.Event // the event by which its owner learned that the hold is gone; nil: none
	paused   *trace.Fault // the pause that made it last longer than its lease
}

// beliefs returns the callers' beliefs in a lock, in the order in which they began. No judge changes
// them.
func (r *run) beliefs(lock string) []belief {
	list, ok := r.believed[lock]
	if !ok {
		list = r.believe(lock)
		r.believed[lock] = list
	}
	return list
}

// believing follows the calls on a lock, and what each thread believes to hold.
type believing struct {
	*run
	lock   string
	began  []*belief
	now    map[string]*believed
	lapsed map[string]*believed // by thread, the belief whose latest lease has ended
}

// believed is a belief of a thread, with the ends of the levels of its hold. The latest level says when the hold
// ends. From its call on, a release makes the level before it the latest.
type believed struct {
	*belief
	levels []term
}

// term is the end of a level, and its lease.
type term struct{ to, lease int64 }

// believe returns the beliefs in a lock, in the order in which they began.
func (r *run) believe(lock string) []belief {
	w := &believing{run: r, lock: lock, now: map[string]*believed{}, lapsed: map[string]*believed{}}
	type point struct {
		at     int64
		follow func()
	}
	var points []point
	for _, o := range r.CallsOn(lock) {
		points = append(points, point{o.AtNs, func() { w.call(o) }})
		if o.Return != nil {
			points = append(points, point{o.Return.AtNs, func() { w.answer(o) }})
		}
	}
	for _, e := range r.Told(lock) {
		points = append(points, point{e.AtNs, func() { w.tell(e) }})
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	for _, p := range points {
		p.follow()
	}
	var done []belief
	for _, b := range w.began {
		b.to = min(b.to, r.LeaveNs)
		for _, p := range r.pauses(b.who) {
			if p.FromNs < b.to && b.to < p.ToNs {
				b.to, b.paused = min(p.ToNs, r.LeaveNs), &p
			}
		}
		if b.from < b.to || b.told != nil { // a thread may learn of the loss at once
			done = append(done, *b)
		}
	}
	return done
}

// begin begins a belief with an answer.
func (w *believing) begin(o *trace.Call, levels []term) *believed {
	h := &believed{&belief{who: o.Caller, lock: w.lock, from: o.ReturnedNs(), grant: o, first: o}, levels}
	w.began = append(w.began, h.belief)
	w.now[o.Caller] = h
	return h
}

// stop ends the belief of a thread, if it has one.
func (w *believing) stop(who string, at int64, by *trace.Call) {
	if h := w.now[who]; h != nil {
		h.to, h.end = min(h.to, at), by
		delete(w.now, who)
	}
}

// tell ends the belief of a thread that learns of the end of its hold.
func (w *believing) tell(e *model.Event) {
	who := e.ThreadName()
	delete(w.lapsed, who)
	if h := w.now[who]; h != nil && e.AtNs < h.to {
		h.told = e
		w.stop(who, e.AtNs, nil)
	}
}

// at returns what a thread believes at an instant; nil: nothing.
func (w *believing) at(who string, ns int64) *believed {
	h := w.now[who]
	if h != nil && h.to <= ns {
		delete(w.now, who) // the lease has ended
		w.lapsed[who] = h
		return nil
	}
	return h
}

// call ends the belief in what a call gives up, from its beginning on.
func (w *believing) call(o *trace.Call) {
	switch h := w.at(o.Caller, o.AtNs); {
	case o.Action == model.ActForceUnlock, o.Action == model.ActUnlock && h != nil && len(h.levels) == 1:
		w.stop(o.Caller, o.AtNs, o)
	case o.Action == model.ActUnlock && h != nil:
		h.to = min(h.to, max(h.levels[len(h.levels)-2].to, o.AtNs))
	}
}

// answer begins, changes or ends the belief of a thread when one of its calls has returned.
func (w *believing) answer(o *trace.Call) {
	at := o.ReturnedNs()
	h, was := w.at(o.Caller, at), w.lapsed[o.Caller]
	delete(w.lapsed, o.Caller)
	kept := o.Action == model.ActUnlock && o.Outcome == model.Failed // its levels stay
	if h == nil && (o.Outcome == model.StillHeld || kept) && was != nil && len(was.levels) > 1 {
		// The answer says that an earlier level is still held: only the lease of the latest
		// level has ended.
		h = w.begin(o, was.levels)
		h.first = was.first
	}
	switch {
	case o.Action.Acquires() && o.Outcome == model.Granted:
		lease := w.leaseOf(o)
		to := w.believedUntil(o, w.attemptSent(o), lease, w.StateAt(o.Lock, o.ReturnedNs()))
		if h == nil {
			h = w.begin(o, nil)
		}
		if w.Record.Params.PerGrant && w.Record.Params.Uncounted {
			h.levels = nil // one unlock ends the hold, however often it was granted
		}
		h.levels = append(h.levels, term{to, lease})
		h.to, h.lease = to, lease
	case o.Action == model.ActUnlock && (o.Outcome == model.NotHeld || o.Outcome == model.Unknown):
		w.stop(o.Caller, at, o)
	case o.Action == model.ActExtend && o.Outcome == model.Extended:
		w.extended(o, h, was)
	case o.Action == model.ActExtend && h != nil:
		h.doubted = true
		w.stop(o.Caller, w.givenUpAt(o), nil)
	case o.Action == model.ActExtend && was != nil: // the lease ended before the answer came
		was.to = min(was.to, w.givenUpAt(o))
	case o.Action == model.ActUnlock && h != nil && (o.Outcome == model.Released || o.Outcome == model.StillHeld):
		if h.levels = h.levels[:len(h.levels)-1]; len(h.levels) == 0 {
			w.stop(o.Caller, at, o)
			break
		}
		top := h.levels[len(h.levels)-1]
		h.to, h.lease = max(top.to, at), top.lease
	case kept && h != nil:
		h.to = max(h.levels[len(h.levels)-1].to, at)
	}
}

// extended updates the belief after an extension that succeeded: the thread holds the lock, whatever it believed.
func (w *believing) extended(o *trace.Call, h, was *believed) {
	if h == nil {
		h = w.begin(o, []term{{}})
		if was != nil {
			h.first, h.levels = was.first, was.levels
		}
	}
	lease := int64(0)
	if w.leased() {
		lease = int64(w.Record.Params.Watchdog)
	}
	to := w.believedUntil(o, w.extensionSent(o), lease, w.StateAt(o.Lock, o.ReturnedNs()))
	for i := range h.levels {
		h.levels[i] = term{to, lease}
	}
	h.to, h.lease = to, lease
}

// givenUpAt returns when an extension that did not succeed ended the belief of its caller: when it returned, or, if a request of
// the extension itself ended the hold, when that ran. The caller learns of it by the answer for which it waits.
func (r *run) givenUpAt(o *trace.Call) int64 {
	for _, c := range r.ChangesWithin(o.Lock, o.AtNs, o.ReturnedNs()) {
		if c.Call() == o && c.Before.Owner == o.Caller && c.After.Owner != o.Caller {
			return c.AtNs
		}
	}
	return o.ReturnedNs()
}

// believedUntil returns when a belief after a call ends that nothing else ends before: when the process of the thread is
// gone, or one lease after the request for it was sent, unless the lock tells the thread. If the lock writes its
// ends in whole seconds, the hold may end up to a second before, as its state set says, and the holder knows that. A lock on a
// server with ticks must itself allow for them. Lease 0 means none.
func (r *run) believedUntil(o *trace.Call, sentNs, lease int64, set *model.LockState) int64 {
	gone := r.goneAt(o.Caller)
	if lease == 0 || r.Record.Params.Watched {
		return gone
	}
	until := sentNs + lease
	if set.Owner == o.Caller && set.ExpiresMs >= 0 && r.Record.Params.Tick == 0 {
		if early := until - set.ExpiresMs*millisecond; early > millisecond && early < int64(r.tick(o.Lock)) {
			until -= early
		}
	}
	return min(gone, until)
}

// tick returns the time between two instants at which holds of a lock may end; 0: at any. It is a second if all holds
// end at whole seconds, as those do whose ends a lock writes in seconds.
func (r *run) tick(lock string) time.Duration {
	if slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool { return c.After.Held() && c.After.ExpiresMs%1000 != 0 }) {
		return r.Record.Params.Tick
	}
	return max(r.Record.Params.Tick, time.Second)
}

// extensionSent returns when the first renewal that ran during an extension left its process, or one whose script the server did
// not know. It may be in no call, since it prolongs what the holds of a process have in common. Of several servers, any may be
// the one whose lease ends first. An earlier request of the extension may have set the end.
func (r *run) extensionSent(o *trace.Call) int64 {
	for _, m := range r.CommandsFrom(o.Process) {
		if m.AtNs >= o.AtNs && m.AtNs <= o.ReturnedNs() && (m.Executed != nil || m.UnknownScript()) && m.Script == model.RoleRenew && (m.Call == o || m.SpeaksFor(o.Caller)) {
			if m.Executed != nil {
				if began := r.counted(o, r.StateAt(o.Lock, m.Executed.AtNs), m.Executed.AtNs, int64(r.Record.Params.Watchdog)); began != nil {
					return began.AtNs
				}
			}
			return m.AtNs
		}
	}
	return o.AtNs
}

// counted returns the request of a call, or of its process in no call, from which a later one counted the lease that it gave
// the hold at an instant: the hold ends one lease after the earlier one ran. It returns nil if there is none.
func (r *run) counted(o *trace.Call, hold *model.LockState, atNs, lease int64) *trace.Command {
	set := hold.ExpiresMs*millisecond - lease
	for _, m := range r.CommandsFrom(o.Process) {
		if m.AtNs > atNs {
			break
		}
		if (m.Call == o || m.Call == nil && m.AtNs >= o.AtNs) && m.Executed != nil && m.Executed.AtNs-millisecond < set && set <= m.Executed.AtNs && set <= atNs-millisecond {
			return m
		}
	}
	return nil
}

// leaseOf returns the lease that an acquire asks for, 0: none.
func (r *run) leaseOf(o *trace.Call) int64 {
	if o.LeaseNs == 0 && r.leased() {
		return int64(r.Record.Params.Watchdog)
	}
	return o.LeaseNs
}

// attemptSent returns when the granted attempt of a call left its process. It is the request that began the hold,
// whoever wrote it: another thread may have handed the lock over. If the hold ends one lease after an earlier request of
// the call ran, that one set its end, and the holder counts from there.
func (r *run) attemptSent(o *trace.Call) int64 {
	if c := r.answered(o); c != nil && c.By != nil {
		if m := r.counted(o, c.After, c.AtNs, r.leaseOf(o)); m != nil {
			return m.AtNs
		}
		return max(o.AtNs, c.By.AtNs)
	}
	if m := r.entered(o); m != nil {
		return m.AtNs
	}
	return o.AtNs
}
