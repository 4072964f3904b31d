package judges

import (
	"cmp"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// Belief is a time in which a thread believes that it holds a lock. It begins with the return of a
// grant. It ends with the call of the last release, with the instant at which the thread is told
// that the hold is gone, or one lease after the granted attempt was sent. If the lock promises to tell
// its holders, the end of a lease alone ends no belief.
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

func (r *run) believe(lock string) []belief {
	// The latest level of a thread says when its hold ends. From its call on, a release makes the
	// level before it the latest.
	type term struct{ to, lease int64 }
	type open struct {
		b      *belief
		levels []term
	}
	var out []*belief
	now := map[string]*open{}
	lapsed := map[string]*open{} // by thread, the belief whose latest lease has ended
	type point struct {
		at     int64
		isCall bool
		o      *trace.Call  // nil: told is set
		told   *model.Event // the event that tells the thread
	}
	var points []point
	for _, o := range r.CallsOn(lock) {
		points = append(points, point{at: o.AtNs, isCall: true, o: o})
		if o.Return != nil {
			points = append(points, point{at: o.Return.AtNs, o: o})
		}
	}
	for _, e := range r.Told(lock) {
		points = append(points, point{at: e.AtNs, told: e})
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	stop := func(who string, at int64, by *trace.Call) {
		if h := now[who]; h != nil {
			h.b.to = min(h.b.to, at)
			h.b.end = by
			delete(now, who)
		}
	}
	for _, p := range points {
		if p.told != nil {
			who := p.told.ThreadName()
			delete(lapsed, who)
			if h := now[who]; h != nil && p.at < h.b.to {
				h.b.told = p.told
				stop(who, p.at, nil)
			}
			continue
		}
		o := p.o
		h := now[o.Caller]
		if h != nil && h.b.to <= p.at {
			delete(now, o.Caller) // the lease has ended
			lapsed[o.Caller] = h
			h = nil
		}
		kept := o.Action == model.ActUnlock && o.Outcome == model.Failed // its levels stay
		if was := lapsed[o.Caller]; !p.isCall && h == nil && (o.Outcome == model.StillHeld || kept) && was != nil && len(was.levels) > 1 {
			// The answer says that an earlier level is still held: only the lease of the latest
			// level has ended.
			h = &open{b: &belief{who: o.Caller, lock: lock, from: p.at, grant: o, first: was.b.first}, levels: was.levels}
			out = append(out, h.b)
			now[o.Caller] = h
		}
		was := lapsed[o.Caller]
		if !p.isCall {
			delete(lapsed, o.Caller)
		}
		switch {
		case p.isCall && o.Action == model.ActUnlock && h != nil && len(h.levels) == 1,
			p.isCall && o.Action == model.ActForceUnlock:
			stop(o.Caller, p.at, o)
		case p.isCall && o.Action == model.ActUnlock && h != nil:
			h.b.to = min(h.b.to, max(h.levels[len(h.levels)-2].to, p.at))
		case p.isCall:
		case o.Action.Acquires() && o.Outcome == model.Granted:
			lease := r.leaseOf(o)
			to := r.believedUntil(o.Caller, r.attemptSent(o), lease)
			if h == nil {
				h = &open{b: &belief{who: o.Caller, lock: lock, from: p.at, grant: o, first: o}}
				out = append(out, h.b)
				now[o.Caller] = h
			}
			if r.Record.Params.PerGrant && r.Record.Params.Uncounted {
				h.levels = nil // one unlock ends the hold, however often it was granted
			}
			h.levels = append(h.levels, term{to, lease})
			h.b.to, h.b.lease = to, lease
		case o.Action == model.ActUnlock && (o.Outcome == model.NotHeld || o.Outcome == model.Unknown):
			stop(o.Caller, p.at, o)
		case o.Action == model.ActExtend && o.Outcome == model.Extended:
			if h == nil { // it still holds the lock
				h = &open{b: &belief{who: o.Caller, lock: lock, from: p.at, grant: o, first: o}, levels: []term{{}}}
				if was != nil {
					h.b.first, h.levels = was.b.first, was.levels
				}
				out = append(out, h.b)
				now[o.Caller] = h
			}
			lease := int64(0)
			if r.leased() {
				lease = int64(r.Record.Params.Watchdog)
			}
			to := r.believedUntil(o.Caller, r.extensionSent(o), lease)
			for i := range h.levels {
				h.levels[i] = term{to, lease}
			}
			h.b.to, h.b.lease = to, lease
		case o.Action == model.ActExtend && h != nil:
			h.b.doubted = true
			stop(o.Caller, p.at, nil)
		case o.Action == model.ActUnlock && h != nil && (o.Outcome == model.Released || o.Outcome == model.StillHeld):
			if h.levels = h.levels[:len(h.levels)-1]; len(h.levels) == 0 {
				stop(o.Caller, p.at, o)
				break
			}
			top := h.levels[len(h.levels)-1]
			h.b.to, h.b.lease = max(top.to, p.at), top.lease
		case kept && h != nil:
			h.b.to = max(h.levels[len(h.levels)-1].to, p.at)
		}
	}
	var done []belief
	for _, b := range out {
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

// believedUntil returns when a belief ends that nothing else ends before: when the process of the thread is
// gone, or one lease after the request for it was sent, unless the lock tells the thread. Lease 0 means none.
func (r *run) believedUntil(thread string, sentNs, lease int64) int64 {
	if lease == 0 || r.Record.Params.Watched {
		return r.goneAt(thread)
	}
	return min(r.goneAt(thread), sentNs+lease)
}

// extensionSent returns when the first renewal that ran during an extension left its process. It may be in no call,
// since it prolongs what the holds of a process have in common. Of several servers, any may be the one whose lease ends first.
func (r *run) extensionSent(o *trace.Call) int64 {
	for _, m := range r.CommandsFrom(o.Process) {
		if m.AtNs >= o.AtNs && m.AtNs <= o.ReturnedNs() && m.Executed != nil && m.Script == model.RoleRenew && (m.Call == o || m.SpeaksFor(o.Caller)) {
			return m.AtNs
		}
	}
	return o.AtNs
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
		set := c.After.ExpiresMs*millisecond - r.leaseOf(o)
		for _, m := range o.Sent {
			if m.Executed != nil && m.Executed.AtNs-millisecond < set && set <= m.Executed.AtNs && m.Executed.AtNs < c.AtNs-millisecond {
				return m.AtNs
			}
		}
		return max(o.AtNs, c.By.AtNs)
	}
	if m := r.entered(o); m != nil {
		return m.AtNs
	}
	return o.AtNs
}
