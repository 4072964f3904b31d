package judges

import (
	"cmp"
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
func (r *run) history(lock string, settled bool) []linearizability.Op {
	var ops []linearizability.Op
	for _, o := range r.CallsOn(lock) {
		if o.Action == model.ActExtend {
			ops = append(ops, r.extensions(o, settled)...)
			continue
		}
		if op, ok := r.asOp(o, settled); ok {
			ops = append(ops, op)
		}
		if r.Record.Params.PerGrant {
			ops = append(ops, r.visits(o, settled)...)
			ops = append(ops, r.grownLater(o, settled)...)
		} else {
			ops = append(ops, r.takenAway(o, settled)...)
		}
		ops = append(ops, r.prolonged(o, settled)...)
	}
	ops = append(ops, r.restored(lock, settled)...)
	ops = append(ops, r.renewals(lock, settled)...)
	ops = append(ops, r.renewedBesides(lock, settled)...)
	ops = append(ops, r.prolongedByServers(lock, settled)...)
	ops = append(ops, r.closures(lock)...)
	for _, c := range r.Changes(lock) {
		if c.Ended() && (c.Fault > 0 || r.givenUp(c) || r.closedWith(c) || r.sessionOver(c) || r.endedByServers(c)) {
			at := c.AtNs
			ops = append(ops, linearizability.Op{Lock: lock, Op: linearizability.OpLost, CallNs: at, ReturnNs: &at})
		}
	}
	slices.SortStableFunc(ops, func(a, b linearizability.Op) int { return cmp.Compare(a.CallNs, b.CallNs) })
	return ops
}

// takenAway returns the holds that a call had before the one with which it returned, and that a
// fault removed. A server that lost a hold has also forgotten the call, and grants it again when it
// is sent again.
func (r *run) takenAway(o *trace.Call, settled bool) []linearizability.Op {
	if !o.Action.Acquires() {
		return nil
	}
	kept := r.grantsKept(o)
	var ops []linearizability.Op
	for _, g := range r.grants(o) {
		if len(kept) == 0 || g.AtNs >= kept[0].AtNs || !g.Started() {
			continue
		}
		end := slices.IndexFunc(r.Changes(o.Lock), func(c *trace.Change) bool { return c.AtNs > g.AtNs && c.Before.Owner == o.Caller && c.Ended() })
		if end < 0 || r.Changes(o.Lock)[end].Fault == 0 {
			continue
		}
		op := linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: o.AtNs, Op: linearizability.OpAcquire, Outcome: model.AnswerUnknown}
		if settled {
			at := g.AtNs
			op.Outcome, op.ReturnNs = string(model.Granted), &at
		}
		r.lease(&op, g, settled)
		ops = append(ops, op)
	}
	return ops
}

// visits returns the holds that an acquire had besides the one with which it returned, for a lock
// whose threads know holds only by their grants. Its own commands got them, or the release of another
// owner handed them over. The call gave them up itself, or did not learn of them. A try that answers busy
// has no hold that it was handed. Each is an acquire at the instant of the grant, and a release if the
// call itself ended it. If the call itself ended the hold with which it returned, that hold is lost.
func (r *run) visits(o *trace.Call, settled bool) []linearizability.Op {
	if !o.Action.Acquires() {
		return nil
	}
	var known *trace.Change // the grant that asOp returns
	if kept := r.grantsKept(o); len(kept) > 0 && (o.Return == nil || o.Outcome == model.Granted || o.Outcome == model.Unknown) {
		known = kept[len(kept)-1]
	}
	var ops []linearizability.Op
	add := func(op linearizability.Op, at int64, outcome model.Outcome, lease *trace.Change) {
		op.Process, op.Thread, op.Lock, op.CallNs, op.Outcome = o.Process, o.Thread, o.Lock, at, model.AnswerUnknown
		if settled {
			op.ReturnNs, op.Outcome = &at, string(outcome)
		}
		if lease != nil {
			r.lease(&op, lease, settled)
		}
		ops = append(ops, op)
	}
	for _, c := range r.Changes(o.Lock) {
		handed := c.Call() != o
		if !c.Started() || c.After.Owner != o.Caller || handed && (o.Outcome == model.Busy || r.handedTo(c) != o) {
			continue
		}
		end := r.EndOf(c)
		own := end != nil && end.Call() == o
		if c != known {
			add(linearizability.Op{Op: linearizability.OpAcquire}, c.AtNs, model.Granted, r.grown(o, c))
			if own {
				add(linearizability.Op{Op: linearizability.OpRelease}, end.AtNs, model.Released, nil)
			}
		} else if own {
			at := end.AtNs
			ops = append(ops, linearizability.Op{Lock: o.Lock, Op: linearizability.OpLost, CallNs: at, ReturnNs: &at})
		}
	}
	return ops
}

// restored returns an acquire for each hold that a client took for its thread outside of calls.
// Such a client sends a command again, and so restores a key that the server had lost. If the
// history does not have the end of the last hold, it needs no acquire, either. A lock whose threads
// do not know their holds by the grants alone has no such holds.
func (r *run) restored(lock string, settled bool) []linearizability.Op {
	if !r.Record.Params.PerGrant {
		return nil
	}
	var ops []linearizability.Op
	told := true // the history has the last end of a hold
	for _, c := range r.Changes(lock) {
		if c.Ended() {
			told = c.By == nil || c.Call() != nil || r.givenUp(c)
		}
		if who := c.After.Owner; told && c.Started() && c.By != nil && c.Call() == nil && c.MadeFor(who) {
			process, thread := model.ProcessOf(who), model.NumberOf(who)
			op := linearizability.Op{Process: process, Thread: thread, Lock: lock, Op: linearizability.OpAcquire, CallNs: c.AtNs, Outcome: model.AnswerUnknown}
			if settled {
				at := c.AtNs
				op.Outcome, op.ReturnNs = string(model.Granted), &at
			}
			r.lease(&op, c, settled)
			ops = append(ops, op)
		}
	}
	return ops
}

// grownBy returns the changes in which an acquire made the lease of its own grant longer, as an
// acquire on several servers does. It is only for locks whose threads know holds only by their
// grants.
func (r *run) grownBy(o *trace.Call, grant *trace.Change) []*trace.Change {
	if !r.Record.Params.PerGrant || !o.Action.Acquires() || !grant.Started() {
		return nil
	}
	end := r.EndOf(grant)
	var out []*trace.Change
	for _, c := range r.effects(o) {
		if grant.Precedes(c) && (end == nil || c.Precedes(end)) && c.After.Owner == o.Caller {
			out = append(out, c)
		}
	}
	return out
}

// grown returns the change after which the grant of an acquire had the lease with which
// the call returned.
func (r *run) grown(o *trace.Call, grant *trace.Change) *trace.Change {
	last := grant
	for _, c := range r.grownBy(o, grant) {
		if c.AtNs <= o.ReturnedNs() {
			last = c
		}
	}
	return last
}

// grownLater returns the changes of grownBy that came after the return of the call as
// renewals.
func (r *run) grownLater(o *trace.Call, settled bool) []linearizability.Op {
	var ops []linearizability.Op
	for _, g := range r.grantsKept(o) {
		for _, c := range r.grownBy(o, g) {
			if c.AtNs > o.ReturnedNs() {
				ops = append(ops, r.prolongation(o, c, settled))
			}
		}
	}
	return ops
}

// prolongation returns a renewal for a change that made a lease longer without anybody being told.
func (r *run) prolongation(o *trace.Call, c *trace.Change, settled bool) linearizability.Op {
	op := linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, Op: linearizability.OpRenew, CallNs: o.AtNs, Outcome: model.AnswerUnknown}
	if settled {
		at := c.AtNs
		op.Outcome, op.ReturnNs = model.AnswerRenewed, &at
		r.lease(&op, c, settled)
		return op
	}
	most := max(r.Record.Params.Watchdog.Milliseconds(), r.msHeldOn(&op, c))
	op.LeaseMs = &most
	return op
}

// prolonged returns the effect of a call on the lease of a hold that it entered again, if it gave
// that level back because it reached no replica. Both commands start the lease again.
func (r *run) prolonged(o *trace.Call, settled bool) []linearizability.Op {
	var ops []linearizability.Op
	for _, g := range r.grantsGivenBack(o) {
		if g.grant.Started() || g.undo.Ended() {
			continue
		}
		for _, c := range []*trace.Change{g.grant, g.undo} {
			op := linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: c.By.AtNs, Op: linearizability.OpRenew, Outcome: model.AnswerUnknown}
			if settled {
				at := c.AtNs
				op.Outcome, op.ReturnNs = model.AnswerRenewed, &at
			}
			r.lease(&op, c, settled)
			ops = append(ops, op)
		}
	}
	return ops
}

// asOp returns a call as an operation of a history. It reports false for a call without an effect.
func (r *run) asOp(o *trace.Call, settled bool) (op linearizability.Op, ok bool) {
	op = linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: o.AtNs}
	ret := o.ReturnedNs()
	outcome := o.Outcome
	if o.Return == nil {
		outcome = model.Unknown
	}
	effects := r.effects(o)
	if end := r.endedOutside(o); end != nil && len(effects) == 0 && outcome == model.Unknown {
		effects = []*trace.Change{end}
	}
	if r.Record.Params.Uncounted && outcome == model.Busy && r.selfBusy(o) {
		return op, false // a lock without re-entry is busy for its owner too
	}
	if r.Record.Params.Parts > 1 && outcome == model.Busy && r.splits(o) {
		return op, false // each has some of the parts, and none has the majority
	}
	if outcome == model.NotHeld && r.knowsNoHold(o) {
		return op, false // the answer is about the holds that the thread knows
	}
	switch {
	case o.Action.Acquires():
		op.Op = linearizability.OpAcquire
		// A server that does not count a second entry may still start the lease anew. Then the call has
		// an effect, and no grant.
		if kept := r.grantsKept(o); len(effects) > 0 && len(kept) > 0 && outcome == model.Granted || outcome == model.Unknown && settled {
			effects = kept
		}
		if n := len(effects); r.Record.Params.PerGrant && n > 1 {
			effects = effects[n-1:] // the others are visits
		}
		if first := o.First(model.RoleAcquire); r.Record.Params.Fair && first != nil && r.inTurn(o, first) && !r.evicted(o) {
			op.ArrivedNs = &first.Executed.AtNs
		}
	case o.Action == model.ActForceUnlock:
		op.Op = linearizability.OpForceRelease
	default:
		op.Op = linearizability.OpRelease
	}
	if outcome == model.Failed || settled && outcome == model.Unknown && len(effects) == 0 {
		if until, queued := r.queuedUntil(o); queued {
			// It was granted nothing, but others had to wait behind it.
			op.Outcome, op.ReturnNs = model.AnswerFailed, &until
			return op, true
		}
	}
	if outcome == model.Unknown && settled {
		if len(effects) == 0 {
			return op, false // it never ran, or changed nothing
		}
		c := effects[0]
		if r.Record.Params.PerGrant && op.Op == linearizability.OpRelease {
			// Several servers may release the hold one by one. It ends only once.
			i := slices.IndexFunc(effects, (*trace.Change).Ended)
			if i < 0 {
				return op, false
			}
			c = effects[i]
		}
		ret = max(c.AtNs, o.AtNs)
		switch {
		case op.Op == linearizability.OpAcquire:
			outcome = model.Granted
		case c.Before.Held() && !c.Ended():
			outcome = model.StillHeld
		default:
			outcome = model.Released
		}
	}
	op.Outcome = string(outcome)
	switch outcome {
	case model.Failed:
		return op, false
	case model.Unknown:
		op.Outcome = model.AnswerUnknown
	default:
		op.ReturnNs = &ret
	}
	// The blind check also takes the length of a lease from the record: a release may leave the
	// lease of an outer level, which no call shows.
	keeps := len(effects) > 0 && effects[len(effects)-1].After.Held() && op.Op == linearizability.OpRelease
	starts := outcome == model.Granted || outcome == model.StillHeld || outcome == model.Unknown && (op.Op == linearizability.OpAcquire || keeps)
	if starts && len(effects) > 0 {
		r.lease(&op, r.grown(o, effects[len(effects)-1]), settled)
	} else if c := r.handedOver(o); outcome == model.Granted && c != nil {
		r.lease(&op, c, settled)
	} else if c := r.enteredUnseen(o); outcome == model.Granted && c != nil {
		r.lease(&op, c, settled)
	} else if outcome == model.Unknown && op.Op != linearizability.OpForceRelease && !r.Record.Params.Endless {
		// It may have started a lease, as a release that leaves a level does.
		ms := r.mostLeaseMs(o)
		op.LeaseMs = &ms
	}
	return op, true
}

// handedOver returns the change that gave the caller of an acquire the lock while it waited,
// although none of its commands did: the hold before it ended, and it was the next. It returns nil if
// there is none.
func (r *run) handedOver(o *trace.Call) *trace.Change {
	for _, c := range slices.Backward(r.StartsUpTo(o.Lock, o.ReturnedNs())) {
		if c.AtNs < o.AtNs || c.MadeFor(o.Caller) {
			return nil
		}
		if c.After.Owner == o.Caller {
			return c
		}
	}
	return nil
}

// enteredUnseen returns the change that began or prolonged the hold that an acquire entered again without
// changing it: the server does not count the entry, and gave the lease the end that it had. It returns nil
// for all other acquires.
func (r *run) enteredUnseen(o *trace.Call) *trace.Change {
	m := r.entered(o)
	if m == nil || m.Executed == nil || r.Record.Params.PerGrant || m.Before(o.Lock).Owner != o.Caller {
		return nil
	}
	var last *trace.Change
	for _, c := range r.Changes(o.Lock) {
		if c.AtNs <= m.Executed.AtNs && c.After.Owner == o.Caller {
			last = c
		}
	}
	return last
}

// endedOutside returns the end of the caller's hold that its client made for an unlock outside any
// call. Some clients leave it to a goroutine that watches the hold, and some write the request of
// the unlock with others when they have connected again. It returns nil if there is none.
func (r *run) endedOutside(o *trace.Call) *trace.Change {
	if o.Action != model.ActUnlock || r.StateAt(o.Lock, o.AtNs).Owner != o.Caller {
		return nil
	}
	for _, c := range r.ChangesAfter(o.Lock, o.AtNs) {
		if c.Ended() {
			if c.Before.Owner != o.Caller || c.By == nil || c.Call() != nil || r.givenUp(c) {
				return nil
			}
			watched := r.Record.Params.PerGrant && c.MadeFor(o.Caller)
			withOthers := c.By.Process == o.Process && len(c.By.Threads) == 0 && c.AtNs <= r.underWayUntil(o)
			if watched || withOthers {
				return c
			}
			return nil
		}
	}
	return nil
}

// selfBusy reports whether the call was refused because its own thread held the lock. The client of
// a thread may know that, and ask no server.
func (r *run) selfBusy(o *trace.Call) bool {
	if r.Record.Params.PerGrant && len(o.Sent) == 0 && r.StateAt(o.Lock, o.AtNs).Owner == o.Caller {
		return true
	}
	for _, m := range o.Sent {
		if m.Executed != nil && m.Before(o.Lock).Owner == o.Caller {
			return true
		}
	}
	return false
}

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
	return r.Record.Params.PerGrant && (r.holdsUnknowingly(o) || r.toldBefore(o) || r.letGo(o))
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
func (r *run) toldBefore(o *trace.Call) bool {
	return r.toldOf(o.Lock, o.Caller, o.ReturnedNs()) != nil
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
func (r *run) closedWith(c *trace.Change) bool {
	return r.Record.Params.PerGrant && (c.Call() == nil || c.Call().Action.Acquires()) && c.MadeFor(c.Before.Owner) && r.ClosedNs(model.ProcessOf(c.Before.Owner)) <= c.AtNs
}

// closures returns the times in which a lock is closed, as holds without an owner: each begins when
// the lock closes, and is lost when it opens. A grant before that does not open it.
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
			end := (c.Before.ClosedMs + 1) * millisecond
			if !c.Started() {
				add(linearizability.OpLost, "", c.AtNs)
			} else if end <= c.AtNs {
				add(linearizability.OpLost, "", end)
			}
		}
	}
	return ops
}

// endedByServers reports whether servers that fail over ended a hold before its lease was over. The
// new master then executes a request that the old one had received, but had not executed.
func (r *run) endedByServers(c *trace.Change) bool {
	return r.Record.Params.Recovery > 0 && c.By == nil && c.Fault == 0 && !c.Expired && c.Ended() && c.AtNs < c.Before.ExpiresMs*millisecond
}

// sessionOver reports whether a change is the end of a hold that has no lease and ended by itself,
// with the session of its owner. No command ended it.
func (r *run) sessionOver(c *trace.Change) bool {
	return r.Record.Params.Endless && c.By == nil && c.Fault == 0
}

// mostLeaseMs returns the lease that a call asked for.
func (r *run) mostLeaseMs(o *trace.Call) int64 {
	if o.LeaseNs > 0 {
		return o.LeaseNs / millisecond
	}
	return r.Record.Params.Watchdog.Milliseconds()
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

// lease notes the lease that an operation started: its length on the server, and, if settled, its
// end.
func (r *run) lease(op *linearizability.Op, c *trace.Change, settled bool) {
	if c.After.ExpiresMs < 0 || !c.After.Held() {
		return
	}
	ms := c.After.ExpiresMs - c.AtNs/millisecond
	op.LeaseMs = &ms
	if !settled {
		// Some servers keep a hold through the millisecond of its expiry. Others end it, and may
		// give the lock to the next in the queue, as that millisecond begins.
		if end := r.ranOut(op.Lock, c); end != nil {
			ms = min(ms, (end.AtNs-c.AtNs)/millisecond)
		}
		ms = max(ms, r.msHeldOn(op, c))
		return
	}
	op.NeverExpires = true
	end := r.ranOut(op.Lock, c)
	for _, later := range r.ChangesAfter(op.Lock, c.AtNs) {
		if later == end {
			at := max(later.AtNs, op.CallNs)
			op.ExpireNs, op.NeverExpires = &at, false
			return
		}
		if later.Fault > 0 && later.Ended() {
			// The hold was removed from outside. The removal may come before this operation in the
			// order; then the lease ran out like any other.
			op.NeverExpires = false
			return
		}
		if later.Before.Owner != later.After.Owner || later.Before.ExpiresMs != later.After.ExpiresMs {
			// The lease was replaced or given back. In an order in which it was not, because both
			// operations were under way at the same time, it runs out.
			at := max((c.After.ExpiresMs+1)*millisecond, op.CallNs)
			if r.heldOn(c, later) {
				at = max(at, later.AtNs+millisecond)
			}
			op.ExpireNs, op.NeverExpires = &at, false
			return
		}
	}
}

// ranOut returns the change in which the lease that a change started ran out; nil if it did
// not. Some servers look for leases that are over only from time to time, and end a hold later. Others
// end it within the millisecond of its expiry, since their clock shows shorter times.
func (r *run) ranOut(lock string, c *trace.Change) *trace.Change {
	for _, later := range r.ChangesAfter(lock, c.AtNs) {
		switch {
		case (later.Expired || later.By == nil && later.Fault == 0 && (r.heldOn(c, later) || later.AtNs/millisecond == c.After.ExpiresMs)) &&
			later.Before.Owner == c.After.Owner && later.Before.ExpiresMs == c.After.ExpiresMs && later.Ended():
			return later
		case later.Before.Owner != later.After.Owner || later.Before.ExpiresMs != later.After.ExpiresMs:
			return nil
		}
	}
	return nil
}

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
func (r *run) renewals(lock string, settled bool) []linearizability.Op {
	var ops []linearizability.Op
	for _, m := range r.CommandsOn(lock) {
		if !ofWatchdog(m) {
			continue
		}
		for i, l := range m.Locks {
			if l != lock || i >= len(m.Owners) {
				continue
			}
			process, thread := model.ProcessOf(m.Owners[i]), model.NumberOf(m.Owners[i])
			op := linearizability.Op{Process: process, Thread: thread, Lock: lock, Op: linearizability.OpRenew, CallNs: m.AtNs, Outcome: model.AnswerUnknown}
			known := m.RepliedNs >= 0
			if m.Executed != nil && r.triedOnly(lock, m.Owners[i], m.Executed.AtNs) {
				continue
			}
			if m.Executed == nil {
				if settled {
					continue
				}
			} else if known || settled {
				ret := m.RepliedNs
				if !known {
					ret = m.Executed.AtNs
				}
				op.ReturnNs = &ret
				op.Outcome = model.AnswerNotHeld
				if m.Before(lock).Owner == m.Owners[i] {
					op.Outcome = model.AnswerRenewed
				}
				if m.Refused() || r.Record.Params.PerGrant && (op.Outcome == model.AnswerNotHeld || m.After(lock).Owner != m.Owners[i]) {
					continue // for such a lock it is unknown that the command was a renewal
				}
			}
			if r.Record.Params.Recovery > 0 && m.Executed != nil && m.Change(lock) == nil {
				continue // prolongedByServers has its effect, if it had any
			}
			if c := m.Change(lock); c != nil && op.Outcome != model.AnswerNotHeld {
				r.lease(&op, c, settled)
			} else if op.Outcome != model.AnswerNotHeld {
				ms := r.Record.Params.Watchdog.Milliseconds()
				op.LeaseMs = &ms
				if m.Executed != nil {
					r.sameLease(&op, lock, m, settled)
				}
			}
			ops = append(ops, op)
		}
	}
	return ops
}

// renewedBesides returns the leases that a client made longer by commands which the record does not
// name as renewals of this lock, as renewals at that instant. It names a command of the client after
// the call that the owner is in, which may be an acquire of this lock again, or of another one. And
// it does not name the lock of a renewal that is sent before the hold begins. Where each grant is a
// hold of its own, an acquire prolongs no hold that is older than itself.
func (r *run) renewedBesides(lock string, settled bool) []linearizability.Op {
	if !r.Record.Params.PerGrant {
		return nil
	}
	var ops []linearizability.Op
	for _, c := range r.Changes(lock) {
		who := c.Before.Owner
		if !c.MadeFor(who) || c.After.Owner != who || c.Started() || c.After.ExpiresMs <= c.Before.ExpiresMs || r.triedOnly(lock, who, c.AtNs) {
			continue
		}
		switch m := c.By; {
		case m.Script == model.RoleRenew && m.Call == nil && !slices.Contains(m.Locks, lock):
		case m.Script == model.RoleAcquire && m.Call != nil && r.heldBefore(lock, c, m.Call):
		default:
			continue
		}
		ops = append(ops, r.prolongation(&trace.Call{Event: &model.Event{Process: model.ProcessOf(who), Thread: model.NumberOf(who), Lock: lock, AtNs: c.By.AtNs}}, c, settled))
	}
	return ops
}

// heldBefore reports whether the call o is younger than the hold that c changed.
func (r *run) heldBefore(lock string, c *trace.Change, o *trace.Call) bool {
	starts := r.StartsUpTo(lock, c.AtNs)
	return len(starts) > 0 && starts[len(starts)-1].AtNs < o.AtNs
}

// triedOnly reports whether the hold that a thread has on the server at an instant is only that of
// a failed try: the call during which it began answers busy, after the call itself or the server has
// ended the hold. There is no grant to renew.
func (r *run) triedOnly(lock, thread string, at int64) bool {
	starts := r.StartsUpTo(lock, at)
	if len(starts) == 0 || starts[len(starts)-1].After.Owner != thread {
		return false
	}
	start := starts[len(starts)-1]
	end := r.EndOf(start)
	if end == nil || end.AtNs < at {
		return false
	}
	if o := r.handedTo(start); o != nil {
		return o.Outcome == model.Busy && end.AtNs <= o.ReturnedNs()
	}
	by := end.Call()
	return by != nil && by.Caller == thread && by.Action.Acquires() && by.Outcome == model.Busy && by.AtNs <= start.AtNs
}

// prolongedByServers returns the leases that servers which fail over made longer by themselves, as
// renewals at that instant. A new master does so, and so does a master that answers a renewal long
// after it came, so that the answer itself changes nothing.
func (r *run) prolongedByServers(lock string, settled bool) []linearizability.Op {
	var ops []linearizability.Op
	for _, c := range r.Changes(lock) {
		if !r.serversProlonged(c) {
			continue
		}
		process, thread := model.ProcessOf(c.After.Owner), model.NumberOf(c.After.Owner)
		ops = append(ops, r.prolongation(&trace.Call{Event: &model.Event{Process: process, Thread: thread, Lock: lock, AtNs: c.AtNs}}, c, settled))
	}
	return ops
}

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
func (r *run) heldOn(c, later *trace.Change) bool {
	over := (c.After.ExpiresMs + 1) * millisecond
	return over < later.AtNs && later.AtNs <= over+int64(endsLate) || r.serversProlonged(later)
}

// msHeldOn returns how long the lease that an operation started lasted at least, if heldOn. It returns
// 0 otherwise.
func (r *run) msHeldOn(op *linearizability.Op, c *trace.Change) int64 {
	later := r.ChangesAfter(op.Lock, c.AtNs)
	if len(later) == 0 || !r.heldOn(c, later[0]) {
		return 0
	}
	ms := (later[0].AtNs - op.CallNs) / millisecond
	if !later[0].Ended() {
		ms++ // it was still there in that instant
	}
	return ms
}

// extensions returns an extension as renewals: one for the answer to its caller, and one for each
// prolongation of which the caller does not know.
func (r *run) extensions(o *trace.Call, settled bool) []linearizability.Op {
	op := linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, Op: linearizability.OpRenew, CallNs: o.AtNs, Outcome: model.AnswerUnknown}
	var most *int64 // nil: a hold without a lease goes on as it was
	var effects []*trace.Change
	if !r.Record.Params.Endless {
		ms := r.Record.Params.Watchdog.Milliseconds()
		most = &ms
		for _, c := range r.effects(o) {
			if c.Before.Owner == o.Caller && c.After.Owner == o.Caller {
				effects = append(effects, c)
			}
		}
	}
	var ops []linearizability.Op
	switch o.Outcome {
	case model.NotHeld:
		if !r.knowsNoHold(o) {
			ret := o.ReturnedNs()
			op.Outcome, op.ReturnNs = model.AnswerNotHeld, &ret
			ops = append(ops, op)
		}
	case model.Extended:
		ret := o.ReturnedNs()
		op.Outcome, op.ReturnNs, op.LeaseMs = model.AnswerRenewed, &ret, most
		var last *trace.Change
		for _, c := range effects {
			if c.AtNs <= ret {
				last = c
			} else {
				ops = append(ops, r.prolongation(o, c, settled))
			}
		}
		if last != nil {
			r.lease(&op, last, settled)
		} else if m := lastRun(o); m != nil {
			now := r.StateAt(o.Lock, m.Executed.AtNs)
			r.lease(&op, &trace.Change{AtNs: m.Executed.AtNs, Before: now, After: now}, settled)
		}
		ops = append(ops, op)
	default:
		for _, c := range effects {
			ops = append(ops, r.prolongation(o, c, settled))
		}
	}
	return ops
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

// sameLease is lease for a renewal that did not change the expiry.
func (r *run) sameLease(op *linearizability.Op, lock string, m *trace.Command, settled bool) {
	now := r.StateAt(lock, m.Executed.AtNs)
	r.lease(op, &trace.Change{AtNs: m.Executed.AtNs, Before: now, After: now}, settled)
}
