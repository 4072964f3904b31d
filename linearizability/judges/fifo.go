package judges

import (
	"cmp"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/trace"
)

// fifoJudge finds new holds that were given out of turn: the server had executed the first try of
// another thread before, and that thread was still waiting, within its own wait. If State shows a queue, a
// thread has its turn from the place there, since a call may ask for other things first. If it shows none, nobody
// knows which request of a call takes the place: a handshake and a look take none. Then a waiter tried first
// if it sent each kind of request first that both sent.
type fifoJudge struct{ *run }

func (r fifoJudge) judge() []Finding {
	if !r.Record.Params.Fair {
		return nil
	}
	var out []Finding
	for _, lock := range r.Locks {
		out = append(out, r.outrun(lock)...)
	}
	return out
}

// outrun returns the new holds of one lock that were given out of turn.
func (r fifoJudge) outrun(lock string) []Finding {
	var out []Finding
	ops := r.CallsOn(lock)
	shown := r.showsQueue(lock)
	queues := r.Record.Params.PerGrant && shown
	for _, c := range r.Changes(lock) {
		y := r.taker(c)
		if y == nil || !c.Started() || r.Record.Params.PerGrant && r.answered(y) != c {
			continue // a hold that its owner is not told of overtakes nobody
		}
		tried := tries{}
		if tried.add(y, c.AtNs); len(tried) == 0 {
			continue
		}
		// A late command of a call that a thread gave up may give it the lock while it
		// waits in a new call.
		for _, z := range ops {
			if z.Caller == y.Caller && z.Action.Acquires() && z.AtNs <= c.AtNs && c.AtNs < z.ReturnedNs() {
				tried.add(z, c.AtNs)
			}
		}
		for _, x := range ops {
			if r.overtaken(x, y, tried, c, queues) {
				out = append(out, r.overtaking(lock, x, y, c, shown))
				break
			}
		}
	}
	return out
}

// showsQueue reports whether State shows a queue of a lock at any time.
func (r *run) showsQueue(lock string) bool {
	return slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool { return len(c.After.Queue) > 0 })
}

// taker returns the acquire that got the hold which a change began: the call whose command made the change, or
// the call in which the new owner waited when another thread handed it the lock. It returns nil if there is none.
func (r fifoJudge) taker(c *trace.Change) *trace.Call {
	o := c.Call()
	if o == nil || o.Caller == c.After.Owner {
		return o
	}
	for _, x := range r.CallsOn(c.Lock) {
		if x.Caller == c.After.Owner && x.Action.Acquires() && x.AtNs <= c.AtNs && c.AtNs <= x.ReturnedNs() {
			return x
		}
	}
	return nil
}

// overtaken reports whether x was waiting when y, which had tried later, got the lock. If queues is set, State shows a queue,
// and y must have got its place there later.
func (r fifoJudge) overtaken(x, y *trace.Call, tried tries, c *trace.Change, queues bool) bool {
	if x == y || x.Caller == y.Caller || x.Action != model.ActLock && x.Action != model.ActTryLockTimed {
		return false
	}
	first := x.First(model.RoleAcquire)
	if first == nil || first.Executed.AtNs > c.AtNs || !queues && !r.triedFirst(x, tried, c) {
		return false // also if it has its place from an earlier call
	}
	if x.ReturnedNs() <= c.AtNs || x.WaitsUntilNs() <= c.AtNs || r.diedAt(x.Caller) <= c.AtNs || r.LeaveNs <= c.AtNs {
		return false
	}
	if x.InterruptedNs <= c.AtNs {
		return false // it may have stopped waiting
	}
	if at, ok := refused(x); ok && at <= c.AtNs {
		return false
	}
	kept, back := r.keptAndGivenBack(x)
	if slices.ContainsFunc(kept, func(g *trace.Change) bool { return g.AtNs < c.AtNs }) ||
		slices.ContainsFunc(back, func(g givenBack) bool { return g.undo.AtNs <= c.AtNs && gaveUp(x, g.undo.AtNs) }) {
		return false // it had its turn
	}
	return !queues || r.cameFirst(x, y, c)
}

// gaveUp reports whether a call got no lock, and sent nothing more after an instant.
func gaveUp(o *trace.Call, atNs int64) bool {
	return o.Outcome != model.Granted && !slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return m.AtNs > atNs })
}

// A kind of requests has their name and the number of their words. The words differ with the value of the holder.
type kind struct {
	name  string
	words int
}

// tries has the first request of each kind that calls sent and the server executed.
type tries map[kind]*trace.Command

// add adds the requests of a call that ran up to an instant.
func (t tries) add(o *trace.Call, untilNs int64) {
	for _, m := range o.Sent {
		if m.Executed == nil || m.Script != model.RoleAcquire || m.Executed.AtNs > untilNs {
			continue
		}
		if first := t[kindOf(m)]; first == nil || m.Executed.AtNs < first.Executed.AtNs {
			t[kindOf(m)] = m
		}
	}
}

// kindOf returns the kind of a request. It reads the words of Says, which only the request of a stream has, and else the program or the command.
func kindOf(m *trace.Command) kind {
	if words := strings.Fields(m.Says); len(words) > 0 {
		return kind{words[0], len(words)}
	}
	return kind{cmp.Or(m.Program, m.Command), len(m.Args)}
}

// triedFirst reports whether x tried before the thread that sent the requests tried, and got the lock by the change c. It did
// if its first request of each kind that both sent ran before. If it sent none of the kind that the other sent last, it
// may be on the way to its place until it has the answers to all its requests.
func (r fifoJudge) triedFirst(x *trace.Call, tried tries, c *trace.Change) bool {
	own, common := tries{}, false
	own.add(x, trace.Never)
	var first, last *trace.Command
	for kind, m := range tried {
		if f := own[kind]; f != nil {
			if common = true; f.Executed.AtNs >= m.Executed.AtNs {
				return false
			}
		}
		if first == nil || m.Executed.AtNs < first.Executed.AtNs {
			first = m
		}
		if last == nil || m.Executed.AtNs > last.Executed.AtNs {
			last = m
		}
	}
	if !common {
		return x.First(model.RoleAcquire).Executed.AtNs < first.Executed.AtNs
	}
	return own[kindOf(last)] != nil || !slices.ContainsFunc(x.Sent, func(m *trace.Command) bool {
		return m.Executed != nil && m.Executed.AtNs <= c.AtNs && (m.RepliedNs < 0 || m.RepliedNs+int64(r.Record.Params.Uncertainty) > c.AtNs)
	})
}

// cameFirst reports whether x got its place before y. The clocks of the servers count milliseconds, so a lock that orders
// its waiters by the time cannot know which of two requests of one millisecond came first. State says whose place is before.
func (r fifoJudge) cameFirst(x, y *trace.Call, upTo *trace.Change) bool {
	name := r.standsAs(y, upTo)
	of, after := r.ticket(x, x.Caller, upTo), r.ticket(y, name, upTo)
	if of >= after {
		return false
	}
	changes := r.Changes(x.Lock)
	if after == len(changes) || changes[of].AtNs/millisecond != changes[after].AtNs/millisecond {
		return true
	}
	place := slices.Index(changes[after].After.Queue, name)
	return place < 0 || place > slices.Index(changes[after].After.Queue, x.Caller)
}

// standsAs returns the name under which State showed the thread of a call in the queue before a change gave it the lock. It is
// the value of the thread if nobody knew yet whose that was.
func (r fifoJudge) standsAs(o *trace.Call, granted *trace.Change) string {
	if slices.Contains(granted.Before.Queue, o.Caller) {
		return o.Caller
	}
	for _, name := range entered(granted.After.Queue, granted.Before.Queue) { // who left
		if !slices.ContainsFunc(r.Calls, func(x *trace.Call) bool { return x.Caller == name }) {
			return name
		}
	}
	return o.Caller
}

// ticket returns the number of the change, up to one that began a hold, with which the thread of a call, which stands in
// the queue under a name, got its place there, or during the call the lock; the number of changes if there is none. A
// place from before the call counts for as long as the thread stands there, unless the call takes one of its own.
func (r fifoJudge) ticket(o *trace.Call, name string, upTo *trace.Change) int {
	none := len(r.Changes(o.Lock))
	before := none // the place from before the call
	for i, c := range r.Changes(o.Lock) {
		comes, owns := slices.Contains(entered(c.Before.Queue, c.After.Queue), name) || fellBack(name, c.Before.Queue, c.After.Queue), c.Started() && c.After.Owner == o.Caller
		switch during := c.AtNs >= o.AtNs; {
		case during && comes:
			return i
		case during && owns:
			return min(before, i)
		case comes:
			before = i
		case !slices.Contains(c.After.Queue, name):
			before = none
		}
		if c == upTo {
			break
		}
	}
	return before
}

// fellBack reports whether a thread that stands in two queues has left its place for one behind another that stood
// behind it.
func fellBack(who string, before, after []string) bool {
	was, is := slices.Index(before, who), slices.Index(after, who)
	return was >= 0 && is >= 0 && slices.ContainsFunc(before[was+1:], func(other string) bool { return slices.Contains(after[:is], other) })
}

// overtaking returns the finding about x, which y overtook with a change. If State shows no queue, x may have lost its
// place by each fault that met it while it waited, or that may remove keys.
func (r fifoJudge) overtaking(lock string, x, y *trace.Call, c *trace.Change, shown bool) Finding {
	first := x.First(model.RoleAcquire)
	f := Finding{Judge: model.JudgeFIFO, Verdict: Broken, AtNs: c.AtNs, Ops: []OpRef{refOf(x), refOf(y)}, Facts: model.Facts{Lock: lock, Thread: x.Caller}}
	evicted := int64(-1)
	for _, e := range r.Changes(lock) {
		if e.AtNs > first.Executed.AtNs && e.AtNs <= c.AtNs && slices.Contains(e.Before.Queue, x.Caller) && !slices.Contains(e.After.Queue, x.Caller) {
			evicted = e.AtNs
		}
	}
	f.Detail = Overtaken{By: y.Caller, FirstNs: first.Executed.AtNs, EvictedNs: evicted}
	f.Excuses = append(f.Excuses, r.clocksApart()...)
	f.Excuses = append(f.Excuses, r.clockSteps(0, c.AtNs)...)
	covers := func(t trace.Fault) bool {
		return t.FromNs <= c.AtNs && (c.AtNs <= t.ToNs || !shown && first.Executed.AtNs <= t.ToNs) || evicted >= 0 && t.FromNs <= evicted && evicted <= t.ToNs
	}
	for _, t := range r.Faults {
		own := (t.Spec.Kind == model.FaultPause || t.Spec.Kind == model.FaultPartition) && t.Spec.Names(x.Process)
		// A waiter that could not ask may lose its place a little later. A first try that waited in
		// a stalled server may have been too old when the server continued.
		evicts := t.FromNs <= evicted && evicted <= t.ToNs+int64(r.Record.Params.ResponseTimeout)
		outdates := t.Spec.Server == model.ServerStall && first.AtNs <= t.ToNs && t.ToNs <= first.Executed.AtNs
		if (own || t.Spec.Interrupts()) && (covers(t) || evicts || outdates) {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: t.Number, Cause: faultIs(t.Text)})
		}
	}
	for _, m := range r.CommandsFrom(x.Process) {
		others := m.Op != x.Op && m.Op > 0
		for _, h := range m.Hits {
			// A connection that carries nothing more may be that of all threads of the process.
			if others && h.Do != "half_open" {
				continue
			}
			if x.AtNs <= h.AtNs && h.AtNs <= c.AtNs {
				f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: h.Fault, Cause: faultIs(r.Fault(h.Fault).Text)})
			}
		}
	}
	for _, m := range x.Sent {
		for _, t := range r.Faults {
			if t.Spec.EndsConnections() && m.LostWithConnection() && m.AtNs <= t.FromNs && t.FromNs <= m.Lost.AtNs && x.AtNs <= t.FromNs && t.FromNs <= c.AtNs {
				f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: t.Number, Cause: faultIs(t.Text)})
			}
		}
	}
	for _, e := range r.Changes(lock) {
		// A failover may also have brought back a place that y had given up.
		back := !slices.Contains(e.Before.Queue, y.Caller) && slices.Contains(e.After.Queue, y.Caller)
		if e.Fault > 0 && (back || first.Executed.AtNs <= e.AtNs) && e.AtNs <= c.AtNs {
			f.Excuses = append(f.Excuses, takenBy(r.Fault(e.Fault), model.HoldRemoved, faultIs(r.Fault(e.Fault).Text)))
		}
	}
	for _, t := range r.Faults {
		if (t.Spec.Kind == model.FaultKey || !shown && t.Spec.MayRemoveKeys()) && first.Executed.AtNs <= t.FromNs && t.FromNs <= c.AtNs {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.MemoryRemoved, Fault: t.Number, Cause: faultIs(t.Text)})
		}
	}
	return f
}
