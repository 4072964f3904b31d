package judges

import (
	"cmp"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// span is a stretch of time.
type span struct{ from, to int64 }

// keeping is a time in which a hold keeps others waiting.
type keeping struct {
	span
	owner    string // "": an unknown thread
	believed bool   // the owner was told of it
}

// own reports whether the hold is the caller's own, and so no reason for its call to wait: the caller was told of it and may
// enter again, or the servers gave it the lock during the call.
func (k keeping) own(r *run, o *trace.Call) bool {
	if o == nil || k.owner != o.Caller || k.from >= o.ReturnedNs() {
		return false
	}
	return k.from >= o.AtNs || k.believed && r.enters()
}

// enters reports whether a thread that holds the lock and asks for it again is granted at once.
func (r *run) enters() bool { return !r.Record.Params.Uncounted || r.Record.Params.Idempotent }

// kept returns the times in which threads believed to hold the lock, were being served, or had it without being told.
func (r livenessJudge) kept(lock string) []keeping {
	out := append(r.served(lock), r.unheard(lock)...)
	for _, b := range r.beliefs(lock) {
		out = append(out, keeping{span: span{b.from, r.keptUntil(b)}, owner: b.who, believed: true})
	}
	return out
}

// reasons returns the times in which a call has a reason to wait, or, for nil, a call of somebody who has no hold.
func (r livenessJudge) reasons(o *trace.Call, occupied []span, kept []keeping) []span {
	all := slices.Clone(occupied)
	for _, k := range kept {
		if !k.own(r.run, o) {
			all = append(all, k.span)
			continue
		}
		answers := 0
		for _, m := range o.Sent { // an answer may say that it has the lock, but a holder that enters again needs few
			if m.RepliedNs > k.from && m.AtNs < k.to && (!k.believed || answers < RoundTrips*max(r.Record.Params.Parts, 1)) {
				all = append(all, span{max(m.AtNs, k.from), min(m.RepliedNs, k.to)})
				answers++
			}
		}
	}
	return all
}

// occupied returns the times in which a waiter has a reason to wait besides those in which a hold is kept: a thread was
// giving the lock up, the lock was closed, or a fault lasted.
func (r livenessJudge) occupied(lock string) []span {
	var busy []span
	for _, o := range r.CallsOn(lock) {
		if o.Action == model.ActUnlock && r.StateAt(lock, o.AtNs).Owner == o.Caller {
			busy = append(busy, span{o.AtNs, min(o.ReturnedNs(), r.goneAt(o.Caller))})
		}
	}
	for _, t := range r.Faults {
		busy = append(busy, span{t.FromNs, t.ToNs})
	}
	busy = append(busy, r.closed(lock)...)
	for _, m := range r.CommandsOn(lock) {
		for _, h := range m.Hits {
			busy = append(busy, span{h.AtNs, h.AtNs})
		}
	}
	return busy
}

// keptUntil returns until when a believed hold keeps others waiting. A thread whose extension failed no longer
// relies on its hold. Without a lease the hold lasts until the thread gives it up.
func (r livenessJudge) keptUntil(b belief) int64 {
	if !b.doubted || !r.Record.Params.Endless {
		return b.to
	}
	to := min(r.goneAt(b.who), r.LeaveNs)
	for _, o := range r.CallsOn(b.lock) {
		if o.Caller == b.who && o.Action == model.ActUnlock && o.AtNs >= b.to {
			return min(to, o.AtNs)
		}
	}
	return to
}

// unheard returns the times in which the servers held the lock for a thread that was not told of it, or whose client was
// already closed when it called. It returns none unless threads know holds only by their grants. Each time lasts until the
// end of the lease that a request of the thread's call began, or of the last such request if others came late. A call
// that answers busy leaves no hold behind. A hold of an unknown thread lasts until the servers end it.
func (r *run) unheard(lock string) []keeping {
	if !r.Record.Params.PerGrant {
		return nil
	}
	told := map[*trace.Change]bool{}
	for _, o := range r.CallsOn(lock) {
		if o.Outcome == model.Granted && o.AtNs < r.ClosedNs(o.Process) {
			told[r.answered(o)] = true
		}
	}
	var out []keeping
	for _, h := range r.Holds(lock) {
		if model.ProcessOf(h.Owner) == "" { // a value with which no call was granted the lock
			out = append(out, keeping{span: span{h.FromNs(), h.ToNs()}})
			continue
		}
		if !told[h.Began] && !r.Record.Params.Endless && r.placedByFault(h.Began) != nil {
			out = append(out, keeping{span: span{h.FromNs(), h.ToNs()}})
			continue
		}
		o := r.grantedBy(h.Began)
		if told[h.Began] || o == nil || o.Caller != h.Owner || o.Outcome == model.Busy {
			continue
		}
		for _, c := range append([]*trace.Change{h.Began}, h.Moved...) {
			during := c.By != nil && c.By.SpeaksFor(o.Caller) && o.AtNs <= c.By.AtNs && c.By.AtNs <= o.ReturnedNs()
			if c.After.ExpiresMs >= 0 && (during || c.Call() != o && r.grantedBy(c) == o) {
				out = append(out, keeping{span: span{c.AtNs, min(h.ToNs(), (c.After.ExpiresMs+1)*millisecond)}, owner: h.Owner})
			}
		}
	}
	return out
}

// closed returns the times in which nobody can take the lock although nobody holds it. Each ends,
// at the latest, when the server last said that it would.
func (r livenessJudge) closed(lock string) []span {
	var out []span
	changes := r.Changes(lock)
	for i, c := range changes {
		if c.After.ClosedMs == 0 {
			continue
		}
		to := (c.After.ClosedMs + 1) * millisecond
		if i+1 < len(changes) {
			to = min(to, changes[i+1].AtNs)
		}
		if c.AtNs < to {
			out = append(out, span{c.AtNs, to})
		}
	}
	return out
}

// spans are sorted by their beginning.
type spans struct {
	all []span
	to  []int64 // the latest end of the spans up to each
}

func inOrder(all []span) spans {
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	s := spans{all, make([]int64, len(all))}
	for i, x := range all {
		s.to[i] = max(s.to[max(i-1, 0)], x.to)
	}
	return s
}

// since returns the spans that begin after an instant, and the instant to which the
// earlier ones reach.
func (s spans) since(at int64) (after []span, to int64) {
	i, _ := slices.BinarySearchFunc(s.all, at, func(x span, at int64) int {
		if x.from <= at {
			return -1
		}
		return 1
	})
	if i > 0 {
		to = s.to[i-1]
	}
	return s.all[i:], to
}

// served returns the times in which the server held the lock for a thread that had not asked to
// give it up, from the grant on. The thread may not know of the hold yet, or believe that its lease
// is over. A call that ended without a grant is served until it ends, since nobody gives up the
// hold that it left.
func (r livenessJudge) served(lock string) []keeping {
	var out []keeping
	ops, left := r.CallsOn(lock), r.releases(lock)
	for _, o := range ops {
		// While a client waits for replicas it is being served, too: WAIT ends after a second, and
		// a grant that the client then gives back has bounds of its own.
		for _, g := range r.grantsGivenBack(o) {
			k := keeping{span: span{g.grant.AtNs, g.undo.AtNs}}
			if g.grant.Call() != o { // another call handed it over
				k.owner = o.Caller
			}
			out = append(out, k)
		}
		grants := r.grants(o)
		if c := r.answered(o); len(grants) == 0 && c != nil && o.Outcome == model.Granted {
			grants = append(grants, c) // nobody knows who sent the request
		}
		if len(grants) == 0 {
			continue
		}
		from, to := grants[0].AtNs, min(r.goneAt(o.Caller), r.LeaveNs)
		if o.Outcome != model.Granted {
			to = min(to, o.ReturnedNs())
		}
		for _, u := range ops[called(ops, o.ReturnedNs()):] {
			if u.AtNs >= to {
				break // no later call ends it earlier
			}
			switch {
			case u.Caller != o.Caller || u.Action != model.ActUnlock:
			case left[u.Op].none():
				to = min(to, u.AtNs)
			case left[u.Op].unbounded > 0: // until the thread gives that level up
			default: // it may hold the lock for as long as it asked for
				for _, c := range r.effects(u) {
					to = min(to, c.AtNs+int64(r.mostLease(lock, u.Caller, c, math.MaxInt64)))
				}
			}
		}
		for _, c := range r.ChangesAfter(lock, from) {
			if c.AtNs >= to {
				break
			}
			if c.Before.Owner == o.Caller && c.After.Owner != o.Caller {
				to = c.AtNs
			}
		}
		k := keeping{span: span{from, to}, owner: o.Caller, believed: o.Outcome == model.Granted}
		if by := grants[0].By; by != nil && by.Wait != nil {
			k.owner = "" // it waits for replicas
		}
		if from < to {
			out = append(out, k)
		}
	}
	return out
}

// called returns the index of the first call at an instant or later.
func called(ops []*trace.Call, at int64) int {
	i, _ := slices.BinarySearchFunc(ops, at, func(o *trace.Call, at int64) int { return cmp.Compare(o.AtNs, at) })
	return i
}

// levels has the levels of a thread's hold, according to its calls.
type levels struct {
	leased    []bool // for each level, the latest last
	unbounded int    // the number of levels without a lease, which a watchdog renews
}

func (l levels) none() bool { return len(l.leased) == 0 }

func (l levels) with(leased bool) levels {
	l.leased = append(slices.Clip(l.leased), leased)
	if !leased {
		l.unbounded++
	}
	return l
}

func (l levels) withoutLatest() levels {
	if l.none() {
		return l
	}
	latest := len(l.leased) - 1
	if !l.leased[latest] {
		l.unbounded--
	}
	l.leased = l.leased[:latest]
	return l
}

// releases returns, by the number of each unlock, the levels that it leaves to its thread. A thread
// with levels left wants to keep the lock.
func (r livenessJudge) releases(lock string) map[int]levels {
	left := map[int]levels{}
	now := map[string]levels{}
	changes := r.Changes(lock)
	for _, e := range r.EventsOf(lock) {
		who := e.ThreadName()
		switch {
		case e.Kind == model.KindState:
			if c := changes[0]; c.Ended() {
				delete(now, c.Before.Owner)
			}
			changes = changes[1:]
		case e.Kind == model.KindReturn && e.Outcome == model.Granted:
			now[who] = now[who].with(r.Call(e.Op).LeaseNs > 0 || r.leased())
		case e.Kind == model.KindInvoke && e.Action == model.ActUnlock:
			now[who] = now[who].withoutLatest()
			left[e.Op] = now[who]
		}
	}
	return left
}
