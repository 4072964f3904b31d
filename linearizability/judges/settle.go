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

// history returns the calls, renewals and losses of a lock as a history.
// takenAway returns the holds that a call had before the one with which it returned, and that a
// fault removed. A server that lost a hold has also forgotten the call, and grants it again when it
// is sent again.
// visits returns the holds that an acquire had besides the one with which it returned, for a lock
// whose threads know holds only by their grants. Its own commands got them, or the release of another
// owner handed them over. The call gave them up itself, or did not learn of them. A try that answers busy
// has no hold that it was handed. Each is an acquire at the instant of the grant, and a release if the
// call itself ended it. If the call itself ended the hold with which it returned, that hold is lost.
// restored returns an acquire for each hold that a client took for its thread outside of calls.
// Such a client sends a command again, and so restores a key that the server had lost. If the
// history does not have the end of the last hold, it needs no acquire, either. A lock whose threads
// do not know their holds by the grants alone has no such holds.
// grownBy returns the changes in which an acquire made the lease of its own grant longer, as an
// acquire on several servers does. It is only for locks whose threads know holds only by their
// grants.
// grown returns the change after which the grant of an acquire had the lease with which
// the call returned.
// grownLater returns the changes of grownBy that came after the return of the call as
// renewals.
// prolongation returns a renewal for a change that made a lease longer without anybody being told.
// prolonged returns the effect of a call on the lease of a hold that it entered again, if it gave
// that level back because it reached no replica. Both commands start the lease again.
// asOp returns a call as an operation of a history. It reports false for a call without an effect.
// handedOver returns the change that gave the caller of an acquire the lock while it waited,
// although none of its commands did: the hold before it ended, and it was the next. It returns nil if
// there is none.
// enteredUnseen returns the change that began or prolonged the hold that an acquire entered again without
// changing it: the server does not count the entry, and gave the lease the end that it had. It returns nil
// for all other acquires.
// endedOutside returns the end of the caller's hold that its client made for an unlock outside any
// call. Some clients leave it to a goroutine that watches the hold, and some write the request of
// the unlock with others when they have connected again. It returns nil if there is none.
// selfBusy reports whether the call was refused because its own thread held the lock. The client of
// a thread may know that, and ask no server.
// splits reports whether another thread was taking the lock at the same time as the call. If a hold
// has several parts, both may then be refused, although nobody holds the lock.
func (r *run) splits(o *trace.Call) bool {
	return slices.ContainsFunc(r.CallsOn(o.Lock), func(x *trace.Call) bool {
		return x.Caller != o.Caller && x.Action.Acquires() && x.AtNs <= o.ReturnedNs() && o.AtNs <= r.underWayUntil(x)
	})
}

// knowsNoHold reports whether the caller may answer not_held although the server holds the
// lock for it: a thread that knows a hold by its grant alone did not hear of this one, was
// told that it is gone, or has given it up.
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

// holdsUnknowingly reports whether the last hold of the caller up to the return of the
// call began with an acquire that the caller got no answer to.
func (r *run) holdsUnknowingly(o *trace.Call) bool {
	starts := r.StartsUpTo(o.Lock, o.ReturnedNs())
	for i := len(starts) - 1; i >= 0; i-- {
		if c := starts[i]; c.After.Owner == o.Caller {
			by := r.grantedBy(c)
			return by != nil && by.Outcome != model.Granted
		}
	}
	return false
}

// letGo reports whether the caller has called an unlock of unknown outcome since its last grant.
// Such an unlock gives the hold up, whatever its effect on the server, unless the hold had several
// levels.
func (r *run) letGo(o *trace.Call) bool {
	if !r.Record.Params.Uncounted {
		return false
	}
	gone := false
	for _, x := range r.CallsOn(o.Lock) {
		switch {
		case x.Caller != o.Caller || x.AtNs >= o.AtNs:
		case x.Outcome == model.Granted:
			gone = false
		case x.Action == model.ActUnlock && x.Outcome == model.Unknown:
			gone = true
		}
	}
	return gone
}

// toldBefore reports whether the caller had been told, when the call returned, that the hold of its
// last grant is gone.
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

// givenUp reports whether a change is the end of a hold that the owner's client gave up outside any
// call, and of which it told the owner.
func (r *run) givenUp(c *trace.Change) bool {
	who := c.Before.Owner
	if len(r.Told(c.Lock)) == 0 || c.Call() != nil || !c.MadeFor(who) {
		return false
	}
	next := r.LeaveNs // the instant at which the owner knows another hold
	for _, o := range r.CallsOn(c.Lock) {
		if o.Caller == who && o.Outcome == model.Granted && o.ReturnedNs() > c.AtNs {
			next = min(next, o.ReturnedNs()-1)
		}
	}
	return r.toldOf(c.Lock, who, next) != nil
}

// closedWith reports whether a change is the end of a hold that the owner's client gave up after it was
// closed in an orderly way, even while the owner asked for a lock again.
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

// endedByServers reports whether servers that fail over ended a hold before its lease was over. The
// new master then executes a request that the old one had received, but had not executed.
// sessionOver reports whether a change is the end of a hold that has no lease and ended by itself,
// with the session of its owner. No command ended it.
// mostLeaseMs returns the lease that a call asked for.
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

// lease notes the lease that an operation started: its length on the server, and, if settled, its
// end.
// ranOut returns the change in which the lease that a change started ran out; nil if it did
// not. Some servers look for leases that are over only from time to time, and end a hold later. Others
// end it within the millisecond of its expiry, since their clock shows shorter times.
// inTurn reports whether a call has a place in the order from its first try on. A call that does
// not wait has one only if that try gave it the lock or a place in the queue.
func (r *run) inTurn(o *trace.Call, first *trace.Command) bool {
	if o.Action == model.ActTryLockTimed && o.WaitNs == 0 {
		now := r.StateAt(o.Lock, first.Executed.AtNs)
		return now.Owner == o.Caller || slices.Contains(now.Queue, o.Caller)
	}
	return o.Action != model.ActTryLock
}

// evicted reports whether the server took the call out of its queue while it still waited, or while
// a command of it was under way that could give it the lock.
func (r *run) evicted(o *trace.Call) bool {
	until := o.ReturnedNs()
	if o.Outcome == model.Unknown {
		until = r.underWayUntil(o)
	}
	until = min(until, r.LeaveNs)
	return slices.ContainsFunc(r.Departures(o.Lock)[o.Caller], func(c *trace.Change) bool {
		return o.AtNs <= c.AtNs && c.AtNs <= until && evicts(c, o.Caller)
	})
}

// queuedUntil reports whether a call without a grant stood in the queue, and until when: until it
// returned or was removed. A call of a dead process, or one that waits to the end, stands there
// until it is taken out. A late command may bring a call back into the queue; the last departure
// counts.
func (r *run) queuedUntil(o *trace.Call) (until int64, queued bool) {
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

// renewals returns the renewals of the watchdogs.
// renewedBesides returns the leases that a client made longer by commands which the record does not
// name as renewals of this lock, as renewals at that instant. It names a command of the client after
// the call that the owner is in, which may be an acquire of this lock again, or of another one. And
// it does not name the lock of a renewal that is sent before the hold begins. Where each grant is a
// hold of its own, an acquire prolongs no hold that is older than itself.
// heldBefore reports whether the call o is younger than the hold that c changed.
// triedOnly reports whether the hold that a thread has on the server at an instant is only that of
// a failed try: the call during which it began answers busy, after the call itself or the server has
// ended the hold. There is no grant to renew.
// prolongedByServers returns the leases that servers which fail over made longer by themselves, as
// renewals at that instant. A new master does so, and so does a master that answers a renewal long
// after it came, so that the answer itself changes nothing.
// serversProlonged reports whether servers that fail over made a lease longer by themselves.
func (r *run) serversProlonged(c *trace.Change) bool {
	return r.Record.Params.Recovery > 0 && c.By == nil && c.Fault == 0 && c.After.Held() &&
		c.Before.Owner == c.After.Owner && c.After.ExpiresMs > c.Before.ExpiresMs
}

// endsLate is how late a server may end a hold whose lease is over. Some servers look for such leases
// only from time to time: etcd every 500 ms (server/lease/lessor.go, runLoop), and NATS every 250 ms at
// most (server/memstore.go and filestore.go, resetAgeChk).
const endsLate = time.Second

// heldOn reports whether a hold may still have been there after the end of the lease that a change
// started, until a later change: some servers end holds late, and servers that fail over end none
// while no server serves.
// msHeldOn returns how long the lease that an operation started lasted at least, if heldOn. It returns
// 0 otherwise.
// extensions returns an extension as renewals: one for the answer to its caller, and one for each
// prolongation of which the caller does not know.
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

// sameLease is lease for a renewal that did not change the expiry.
