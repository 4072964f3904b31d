package judges

import (
	"math"
	"slices"
	"time"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/model/trace"
)

// millisecond is the unit of leases, in nanoseconds. A lease may last longer by up to a
// millisecond, because a server keeps a key through the millisecond of its expiry.
const millisecond = int64(time.Millisecond)

// underWayUntil returns the instant at which a call has returned and its last command has run.
func (r *run) underWayUntil(o *trace.Call) int64 {
	until := o.ReturnedNs()
	for _, m := range o.Sent {
		if m.Executed != nil {
			until = max(until, m.Executed.AtNs)
		}
	}
	return until
}

// resurrected reports whether a fault gave a thread the lock or a place in its queue, or changed
// the level or the lease of a hold without ending it. A server that forgets one of several parts
// may do any of this later, so the calls of such a run make no history, either. A step of the clock
// by which a part ends has the same effect. Two holds of one thread without a lease look alike, so
// a failover may bring an earlier one back without a visible change.
func (r *run) resurrected(lock string) bool {
	if len(r.partsLost(0, r.LeaveNs)) > 0 || r.Record.Params.Parts > 1 && len(r.clockSteps(0, r.LeaveNs)) > 0 {
		return true
	}
	if r.Record.Params.Endless && slices.ContainsFunc(r.Faults, func(t trace.Fault) bool { return t.Spec.Server == model.ServerFailover }) {
		return true
	}
	return slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool {
		return c.Fault > 0 && (c.After.Held() && (c.Started() || c.Before.Count != c.After.Count || c.Before.ExpiresMs != c.After.ExpiresMs) ||
			slices.ContainsFunc(c.After.Queue, func(who string) bool { return !slices.Contains(c.Before.Queue, who) }))
	})
}

// splits reports whether another thread was taking or freeing the lock at the same time as the call. If
// a hold has several parts, both may then be refused, although nobody holds the lock.
func (r answerJudge) splits(o *trace.Call) bool {
	return slices.ContainsFunc(r.CallsOn(o.Lock), func(x *trace.Call) bool {
		return x.Caller != o.Caller && (x.Action.Acquires() || x.Action == model.ActUnlock) && x.AtNs <= o.ReturnedNs() && o.AtNs <= r.underWayUntil(x)
	})
}

// knowsNoHold reports whether the caller may answer not_held although the server holds the
// lock for it: a thread that knows a hold by its grant alone did not hear of this one, was
// told that it is gone, could not extend it, or has given it up.
func (r *run) knowsNoHold(o *trace.Call) bool {
	return r.Record.Params.PerGrant && (r.holdsUnknowingly(o) || r.toldOf(o.Lock, o.Caller, o.ReturnedNs()) != nil || r.letGo(o) || r.leaseOver(o))
}

// leaseOver reports whether the last lease that the caller knows of was over when the call returned: the lease of
// its last grant, and of the last request for its hold whose answer it has.
func (r *run) leaseOver(o *trace.Call) bool {
	lease, now := int64(r.Record.Params.Watchdog), o.ReturnedNs()
	if r.Record.Params.Endless || lease <= 0 {
		return false
	}
	for _, x := range r.CallsOn(o.Lock) {
		if lease = max(lease, x.LeaseNs); x.Caller == o.Caller && x.Outcome == model.Granted && x.ReturnedNs() <= now && now < x.ReturnedNs()+lease {
			return false
		}
	}
	return !slices.ContainsFunc(r.ChangesUpTo(o.Lock, now), func(c *trace.Change) bool {
		return c.After.Owner == o.Caller && c.MadeFor(o.Caller) && 0 <= c.By.RepliedNs && c.By.RepliedNs <= now && now < c.By.AtNs+lease
	})
}

// holdsUnknowingly reports whether the caller knows of no level of its last hold up to the return of the call. It knows
// of one by the answer to its acquire, and does not if that answer is missing or the request came late. An unlock gives
// up the levels that its caller knows first.
func (r *run) holdsUnknowingly(o *trace.Call) bool {
	holds := r.HoldsOf(o.Lock, o.Caller, 0, o.ReturnedNs())
	if len(holds) == 0 {
		return false
	}
	h := holds[len(holds)-1]
	by, known := r.grantedBy(h.Began), h.Began.After.Count
	unheard := by != nil && r.returnedWith(by) != h.Began
	if unheard {
		known = 0
	}
	for _, c := range h.Moved {
		if c.AtNs > o.ReturnedNs() {
			break
		}
		if by := c.Call(); by != nil && by.Action.Acquires() && by.Outcome != model.Granted {
			unheard = unheard || c.Gain(o.Caller) > 0
		} else {
			known += c.After.Count - c.Before.Count
		}
	}
	return unheard && known <= 0
}

// letGo reports whether the caller has called an unlock of unknown outcome since its last grant, or answers without a
// request after it could not extend the hold. An unlock of unknown outcome gives the hold up, whatever its effect on the server, unless
// the hold had several levels.
func (r *run) letGo(o *trace.Call) bool {
	gone := false
	for _, x := range r.CallsOn(o.Lock) {
		switch {
		case x.Caller != o.Caller || x.AtNs >= o.AtNs:
		case x.Outcome == model.Granted || x.Outcome == model.Extended:
			gone = false
		case x.Action == model.ActExtend && len(o.Sent) == 0, x.Action == model.ActUnlock && x.Outcome == model.Unknown && r.Record.Params.Uncounted:
			gone = true
		}
	}
	return gone
}

// toldOf returns the event that tells a thread that the hold of its last grant up to an instant is
// gone. It returns nil if there is none up to then.
func (r *run) toldOf(lock, who string, upTo int64) *model.Event {
	var granted int64
	for _, o := range r.CallsOn(lock) {
		if at := o.ReturnedNs(); o.Caller == who && o.Outcome == model.Granted && at <= upTo {
			granted = max(granted, at)
		}
	}
	for _, e := range r.Told(lock) {
		if e.ThreadName() == who && granted <= e.AtNs && e.AtNs <= upTo {
			return e
		}
	}
	return nil
}

// closures returns the times in which a lock is closed, as holds without an owner: each begins when
// the lock closes, and is lost when it opens.
func (r *run) closures(lock string) []linearizability.Op {
	var ops []linearizability.Op
	add := func(op, outcome string, at int64) {
		ops = append(ops, linearizability.Op{Process: "nobody", Lock: lock, Op: op, Outcome: outcome, CallNs: at, ReturnNs: &at})
	}
	for _, c := range r.Changes(lock) {
		if c.Before.ClosedMs == 0 && c.After.ClosedMs > 0 {
			add(linearizability.OpAcquire, string(model.Granted), c.AtNs)
		}
		if c.Before.ClosedMs > 0 && c.After.ClosedMs == 0 {
			add(linearizability.OpLost, "", c.AtNs)
		}
	}
	return ops
}

// effects returns the changes of a call's hold that its own commands made. A renewal of the watchdog
// is an operation of its own, even if it seems to belong to the call: a recording of real clients
// gives a command to the only call of its process that is under way.
func (r *run) effects(o *trace.Call) []*trace.Change {
	var out []*trace.Change
	for _, c := range o.Changes {
		if c.By != nil && ofWatchdog(c.By) {
			continue
		}
		moved := c.Before.Owner != c.After.Owner || c.Before.Count != c.After.Count || c.Before.ExpiresMs != c.After.ExpiresMs
		if moved && (c.Before.Owner == o.Caller || c.After.Owner == o.Caller || o.Action == model.ActForceUnlock) {
			out = append(out, c)
		}
	}
	return out
}

// inTurn reports whether a call has a place in the order from its first try on. A call that does
// not wait has one only if that try gave it the lock or a place in the queue.
func (r answerJudge) inTurn(o *trace.Call, first *trace.Command) bool {
	if o.Action == model.ActTryLockTimed && o.WaitNs == 0 {
		now := r.StateAt(o.Lock, first.Executed.AtNs)
		return now.Owner == o.Caller || slices.Contains(now.Queue, o.Caller)
	}
	return o.Action != model.ActTryLock
}

// queuedUntil reports whether a call without a grant stood in the queue, and until when: until it
// returned or was removed. A call of a dead process, or one that waits to the end, stands there
// until it is taken out. A late command may bring a call back into the queue; the last departure
// counts.
func (r answerJudge) queuedUntil(o *trace.Call) (until int64, queued bool) {
	first := o.First(model.RoleAcquire)
	if !r.Record.Params.Fair || first == nil || !slices.Contains(r.StateAt(o.Lock, first.Executed.AtNs).Queue, o.Caller) {
		return 0, false
	}
	until = o.ReturnedNs()
	if until == math.MaxInt64 || until < first.Executed.AtNs || r.goneAt(o.Caller) <= until { // only the server removes it
		until = r.Record.Events[len(r.Record.Events)-1].AtNs
	}
	end, in := until, true
	for _, c := range r.ChangesAfter(o.Lock, first.Executed.AtNs) {
		if c.AtNs >= until {
			break
		}
		was := in
		switch in = slices.Contains(c.After.Queue, o.Caller); {
		case in:
			end = until
		case was:
			end = c.AtNs
		}
	}
	return end, end >= first.Executed.AtNs
}

// ofWatchdog reports whether a command is a renewal that no call asked for.
func ofWatchdog(m *trace.Command) bool {
	return m.Script == model.RoleRenew && (m.Call == nil || m.Call.Action != model.ActExtend)
}

// lastRun returns the command of a call that ran last; nil if none did.
func lastRun(o *trace.Call) *trace.Command {
	var last *trace.Command
	for _, m := range o.Sent {
		if m.Executed != nil && (last == nil || last.Executed.AtNs <= m.Executed.AtNs) {
			last = m
		}
	}
	return last
}
