package judges

import (
	"maps"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// tidyJudge finds leftovers of a lock. During the run these are entries of the queue whose owner
// lives and no longer waits (ghosts), a queue whose deadlines have other members, and clients that take
// the lock for callers who have left. When all have left and every lease is over, these are keys, entries,
// channels and goroutines.
type tidyJudge struct{ *run }

func (r tidyJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		out = append(out, r.ghosts(lock)...)
		out = append(out, r.abandoned(lock)...)
		out = append(out, r.unasked(lock)...)
	}
	// A hold without a lease stays, and so do its keys.
	held := r.Record.Params.Endless && slices.ContainsFunc(r.Locks, func(lock string) bool { return r.StateAt(lock, trace.Never).Held() })
	for _, e := range r.Record.Events {
		if e.Kind != model.KindLeft || slices.Contains(r.Record.Params.Kept, e.Key) || e.Key != "" && held || e.Goroutine != nil && e.Goroutine.Unopened {
			continue
		}
		out = append(out, Finding{Judge: model.JudgeTidy, Verdict: Broken, AtNs: e.AtNs, Facts: model.Facts{Form: model.FormLeftover}, Excuses: r.clockSteps(0, e.AtNs),
			Detail: Leftover{Key: e.Key, Channel: e.Channel, Text: e.Text, Goroutine: e.Goroutine}})
	}
	return out
}

// ghosts checks the queue after each return, and after each command of a thread that stands in it.
func (r tidyJudge) ghosts(lock string) []Finding { return r.standing(lock, false) }

// lingering returns the ghosts of each call, and the threads that are still in the queue only
// because their commands are under way.
func (r tidyJudge) lingering(lock string) []Finding { return r.standing(lock, true) }

// standing finds threads that stand in the queue although none of their calls waits, once per
// thread. With leaving it finds them once per call, even while their commands are under way.
func (r tidyJudge) standing(lock string, leaving bool) []Finding {
	changes := r.Changes(lock)
	if !slices.ContainsFunc(changes, func(c *trace.Change) bool { return len(c.After.Queue) > 0 || len(c.After.Deadlines) > 0 }) {
		return nil // the lock has no queue, or it was always empty
	}
	q := &queueing{tidyJudge: r, lock: lock, leaving: leaving, now: new(model.LockState), told: map[string]int{}, open: map[string]*trace.Call{},
		last: map[string]*trace.Call{}, moving: map[string]int{}, stood: map[string][]*trace.Change{}}
	executed := int64(-1) // the instant of a command whose change comes next
	for i := range r.Record.Events {
		e := &r.Record.Events[i]
		m := r.Command(e.Msg)
		if executed >= 0 && e.Kind != model.KindState {
			q.look(executed)
			executed = -1
		}
		switch {
		case e.Kind == model.KindState && e.Lock == lock:
			q.change(changes[0])
			changes = changes[1:]
		case e.Kind == model.KindInvoke && e.Lock == lock && e.Action.Acquires():
			q.open[e.ThreadName()] = r.Call(e.Op)
		case e.Kind == model.KindReturn && e.Lock == lock && e.Action.Acquires():
			delete(q.open, e.ThreadName())
			q.last[e.ThreadName()] = r.Call(e.Op)
			q.look(e.AtNs)
		case m == nil || m.Op == 0 || !slices.Contains(m.Locks, lock):
		case e.Kind == model.KindSend:
			q.moving[r.Call(m.Op).Caller]++
		case e.Kind == model.KindExec, e.Kind == model.KindLost && e.Dir == "request":
			who := r.Call(m.Op).Caller
			q.moving[who]--
			executed = e.AtNs
			if o := q.open[who]; e.Kind == model.KindExec && o != nil && o.Op == m.Op && m.Script == model.RoleAcquire && !r.Record.Params.PerGrant {
				delete(q.stood, who) // it stands there because of this call, whatever put it there
			}
		}
	}
	return q.found
}

// queueing follows who stands in the queue of a lock, and who waits.
type queueing struct {
	tidyJudge
	lock    string
	leaving bool
	found   []Finding
	told    map[string]int         // by thread, the call that was reported
	open    map[string]*trace.Call // by thread, the acquiring call that it is in
	last    map[string]*trace.Call // by thread, its last acquiring call
	moving  map[string]int         // by thread, how many of its commands have not arrived
	now     *model.LockState       // the state on the server
	differ  bool                   // the queue and the deadlines have different members
	parted  *trace.Change          // when they became different
	torn    bool                   // that was reported
	// stood has, by thread, the changes that gave it its places in the queue, unless it asked again since for the
	// same place.
	stood map[string][]*trace.Change
}

// change updates the places in the queue when the state of the lock has changed.
func (q *queueing) change(c *trace.Change) {
	q.now = c.After
	for _, who := range entered(c.Before.Queue, q.now.Queue) {
		q.stood[who] = append(q.stood[who], c)
	}
	for _, who := range entered(q.now.Queue, c.Before.Queue) {
		if all := q.stood[who]; len(all) > 0 {
			own := slices.IndexFunc(all, func(e *trace.Change) bool { return e.Call() != nil && e.Call() == c.Call() })
			q.stood[who] = slices.Delete(all, max(own, 0), max(own, 0)+1)
		}
	}
	differed := q.differ
	if q.differ = q.Record.Params.Deadlines && isTorn(q.now); q.differ && !differed {
		q.parted = c
	}
	q.look(c.AtNs)
}

// look finds what is wrong with the queue at an instant.
func (q *queueing) look(at int64) {
	if at >= q.LeaveNs {
		return
	}
	settled := true
	for _, who := range q.now.Queue {
		if q.moving[who] > 0 {
			settled = false
			if !q.leaving {
				continue
			}
		}
		call, o := 1, q.last[who]
		if o != nil && q.leaving {
			call = o.Op
		}
		switch {
		case q.open[who] != nil || q.told[who] == call || q.goneAt(who) <= at:
		case q.Record.Params.PerGrant && o == nil:
			// It is a value, and nobody knows which thread waits with it.
		case q.Record.Params.Waits > 0 && len(q.stood[who]) == places(q.now, who) && !slices.ContainsFunc(q.stood[who], func(c *trace.Change) bool { return !givenUp(c) }):
			// The liveness judge knows how long the places may hold up others.
		default:
			q.told[who] = call
			q.found = append(q.found, q.ghost(who, o, at))
		}
	}
	if q.differ && !q.torn && settled {
		q.torn = true
		queue, deadlines := membersOf(q.now)
		q.found = append(q.found, Finding{Judge: model.JudgeTidy, Verdict: Broken, AtNs: at, Excuses: q.byHand(q.parted), Facts: model.Facts{Form: model.FormTornQueue, Lock: q.lock},
			Detail: TornQueue{Queue: queue, Deadlines: deadlines}})
	}
}

// ghost returns the finding about a thread that stands in the queue after its last acquire; nil: it made none.
func (q *queueing) ghost(who string, o *trace.Call, at int64) Finding {
	f := Finding{Judge: model.JudgeTidy, Verdict: Broken, AtNs: at, Facts: model.Facts{Form: model.FormGhost, Lock: q.lock, Thread: who}, Detail: Ghost{}}
	for _, c := range q.stood[who] {
		f.Excuses = append(f.Excuses, q.byHand(c)...)
	}
	if o != nil {
		f.Ops = []OpRef{refOf(o)}
		f.Detail = Ghost{Call: o.Action, Outcome: o.Answer(), ReturnNs: o.ReturnedNs()}
		f.Excuses = append(f.Excuses, q.couldNotLeave(o)...)
		for _, c := range q.stood[who] {
			if c.Call() != nil && c.Call() != o {
				f.Excuses = append(f.Excuses, q.couldNotLeave(c.Call())...) // an earlier call put it there
			}
		}
	}
	return f
}

// givenUp reports whether a request that made a change had been given up.
func givenUp(c *trace.Change) bool { return c != nil && c.Call() != nil && cameLate(c.Call(), c.By) }

// cameLate reports whether a request ran when its call had returned, or when a later request of the call had run.
func cameLate(o *trace.Call, m *trace.Command) bool {
	return m.Executed != nil && (m.Executed.AtNs > o.ReturnedNs() || slices.ContainsFunc(o.Sent, func(x *trace.Command) bool {
		return x.AtNs > m.AtNs && x.Executed != nil && x.Executed.AtNs < m.Executed.AtNs
	}))
}

// entered returns the threads that are in the queue after a change more often than before.
func entered(before, after []string) (fresh []string) {
	left := before
	for _, who := range after {
		switch i := slices.Index(left, who); i {
		case -1:
			fresh = append(fresh, who)
		case 0: // nearly always, since threads keep their order
			left = left[1:]
		default:
			left = slices.Concat(left[:i], left[i+1:])
		}
	}
	return fresh
}

// isTorn reports whether a queue and its deadlines have different members.
func isTorn(s *model.LockState) bool {
	members := make(map[string]bool, len(s.Queue))
	for _, who := range s.Queue {
		if _, ok := s.Deadlines[who]; !ok {
			return true
		}
		members[who] = true
	}
	return len(members) != len(s.Deadlines)
}

// membersOf returns the threads in the queue and the threads with a deadline, sorted.
func membersOf(s *model.LockState) (queue, deadlines []string) {
	queue = slices.Compact(slices.Sorted(slices.Values(s.Queue)))
	deadlines = slices.Sorted(maps.Keys(s.Deadlines))
	return queue, deadlines
}

// couldNotLeave returns the excuses for an entry whose owner could not leave: its leave
// command met a fault, or was lost with a connection that had met one, or a command that the server did not run, such
// as the first call of a script, or the command that queued it came late, or it met the greeting of a connection, on which
// the owner would have left.
func (r tidyJudge) couldNotLeave(o *trace.Call) []model.Excuse {
	var out []model.Excuse
	for _, m := range o.Sent {
		late := cameLate(o, m) // in whatever role, which the world may have guessed
		if m.Script != model.RoleLeave && m.Executed != nil && !late && !r.openedNothing(o, m) {
			continue
		}
		hits := m.Hits
		if m.LostWithConnection() { // of the connection that a rule met earlier
			for _, x := range r.Hit {
				if x.Process == m.Process && x.Conn == m.Conn && x.AtNs <= m.AtNs {
					hits = slices.Concat(hits, x.Hits)
				}
			}
		}
		for _, h := range hits {
			out = append(out, model.Excuse{Circumstance: model.WaiterAway, Fault: h.Fault, Cause: faultAt(r.Fault(h.Fault).Text, h.AtNs)})
		}
	}
	for _, x := range r.lateGreetings(o.Process) {
		if x.from <= o.ReturnedNs() && o.AtNs <= x.to {
			out = append(out, model.Excuse{Circumstance: model.WaiterAway, Fault: x.faults[0], Cause: faultAt(r.Fault(x.faults[0]).Text, x.from)})
		}
	}
	for _, t := range slices.Concat(r.partitions(o.Caller), r.pauses(o.Caller)) {
		if t.FromNs <= o.ReturnedNs() && o.AtNs <= t.ToNs {
			out = append(out, model.Excuse{Circumstance: model.WaiterAway, Fault: t.Number, Cause: faultIs(t.Text)})
		}
	}
	for _, t := range r.Faults {
		if t.Spec.Interrupts() && t.FromNs <= o.ReturnedNs() && o.AtNs <= t.ToNs {
			out = append(out, model.Excuse{Circumstance: model.WaiterAway, Fault: t.Number, Cause: faultIs(t.Text)})
		}
	}
	return out
}

// openedNothing reports whether a request was the first on its connection, did not ask for the lock, and had no answer when its
// call returned, so that the call could not use the connection.
func (r tidyJudge) openedNothing(o *trace.Call, m *trace.Command) bool {
	return len(m.Changes) == 0 && !m.Spells(o.Lock) && (m.RepliedNs < 0 || m.RepliedNs > o.ReturnedNs()) &&
		!slices.ContainsFunc(r.CommandsFrom(m.Process), func(x *trace.Command) bool { return x.Conn == m.Conn && x.Msg < m.Msg })
}

// abandoned finds the entries that stay when all have left, of threads that died or
// closed their client while they waited. It says nothing of threads that waited to the
// end.
func (r tidyJudge) abandoned(lock string) []Finding {
	changes := r.Changes(lock)
	if len(changes) == 0 {
		return nil
	}
	var out []Finding
	for _, who := range slices.Compact(slices.Sorted(slices.Values(changes[len(changes)-1].After.Queue))) {
		gone := r.goneAt(who)
		if gone >= r.LeaveNs {
			continue
		}
		f := Finding{Judge: model.JudgeTidy, Verdict: Broken, AtNs: r.LeaveNs, Facts: model.Facts{Form: model.FormGhost, Lock: lock, Thread: who},
			Excuses: []model.Excuse{{Circumstance: model.WaiterGone, Cause: model.Cause{Kind: model.CauseOwnClosed, AtNs: gone}}},
			Detail:  Abandoned{GoneNs: gone}}
		for _, t := range r.Faults {
			if t.Process != "" && t.FromNs == r.diedAt(who) {
				f.Excuses = []model.Excuse{{Circumstance: model.WaiterGone, Fault: t.Number, Cause: faultAt(t.Text, t.FromNs)}}
			}
		}
		out = append(out, f)
	}
	return out
}

// unasked finds holds that begin with a request which a client sent long after the last call of its process on the lock
// was over, while no thread of the process believed to hold it and no fault had held the process up since: the client
// went on asking for a caller who had left.
func (r tidyJudge) unasked(lock string) []Finding {
	var out []Finding
	for _, c := range r.Changes(lock) {
		if !c.Started() || c.By == nil || c.By.Process == "" {
			continue
		}
		if owner := model.ProcessOf(c.After.Owner); owner != "" && owner != c.By.Process {
			continue // it gave up what it had, and others were next
		}
		m, over, wanted := c.By, int64(-1), false
		for _, o := range r.CallsOn(lock) {
			if o.Process == m.Process && o.AtNs <= m.AtNs {
				over = max(over, o.ReturnedNs())
			}
		}
		if over < 0 || m.AtNs-patience <= over {
			continue
		}
		for _, b := range r.beliefs(lock) {
			wanted = wanted || model.ProcessOf(b.who) == m.Process && b.from <= m.AtNs && m.AtNs <= b.to
		}
		for _, x := range r.disturbing(m.Process) {
			wanted = wanted || x.from <= m.AtNs && over <= x.to
		}
		if !wanted {
			out = append(out, Finding{Judge: model.JudgeTidy, Verdict: Broken, AtNs: c.AtNs, Facts: model.Facts{Form: model.FormUnasked, Lock: lock, Thread: c.After.Owner},
				Detail: Unasked{Process: m.Process, Command: m.Command, SentNs: m.AtNs, OverNs: over}})
		}
	}
	return out
}
