package judges

import (
	"cmp"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// livenessJudge finds waiters that do not get the lock for longer than the bound, although nobody
// believes to hold it and the server is healthy.
type livenessJudge struct{ *run }

func (r livenessJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		occupied, kept, disturbed := r.occupied(lock), r.kept(lock), r.disturbances(lock)
		busy := inOrder(r.reasons(nil, occupied, kept))
		for _, o := range r.CallsOn(lock) {
			if f, ok := r.stuck(lock, o); ok {
				out = append(out, f)
				continue
			}
			if o.Action != model.ActLock && o.Action != model.ActTryLockTimed || o.ReturnedNs()-o.AtNs <= patience {
				continue
			}
			keep := busy
			if slices.ContainsFunc(kept, func(k keeping) bool { return k.own(r.run, o) }) {
				keep = inOrder(r.reasons(o, occupied, kept))
			}
			if f, ok := r.forgotten(lock, o, keep, disturbed); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// stuck finds a call that need not wait, and yet never returned although every fault was over: an
// unlock, a single try, or a timed try whose time was long over. If the lock promises no bound of
// its wait, a timed try may wait as a lock() does, for as long as the lock is held.
func (r livenessJudge) stuck(lock string, o *trace.Call) (Finding, bool) {
	if _, bounded := r.Record.Params.Promise(model.JudgeWaitBound); !bounded && o.Action == model.ActTryLockTimed {
		return Finding{}, false
	}
	if o.Outcome != model.Waiting || o.Action == model.ActLock || r.goneAt(o.Caller) < r.LeaveNs {
		return Finding{}, false
	}
	since := max(o.AtNs, r.CalmNs)
	if o.WaitNs > 0 {
		since = max(since, o.WaitsUntilNs())
	}
	// A client may take longer than that to connect again.
	if own := r.bound(lock, r.ownDisturbances(o), since, r.LeaveNs); r.LeaveNs-since <= max(int64(r.Record.Params.GiveUp), own.Ns) {
		return Finding{}, false
	}
	return Finding{Judge: model.JudgeLiveness, Verdict: Broken, AtNs: since, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Form: model.FormStuck, Lock: lock, Thread: o.Caller},
		Detail: Stuck{Call: o.Action, CallNs: o.AtNs, LeftNs: r.LeaveNs, CalmNs: r.CalmNs}}, true
}

// forgotten finds a time in which a waiter waited without a reason.
func (r livenessJudge) forgotten(lock string, o *trace.Call, occupied spans, disturbed []disturbance) (Finding, bool) {
	if len(o.Sent) == 0 && r.ClosedNs(o.Process) < min(o.ReturnedNs(), r.LeaveNs) {
		return Finding{}, false // it asks for nothing until its own process closes its client, and cannot after that
	}
	until := min(o.ReturnedNs(), o.WaitsUntilNs(), o.InterruptedNs, r.diedAt(o.Caller), r.LeaveNs)
	busy, reach := occupied.since(o.AtNs)
	idle := max(o.AtNs, reach)
	if !idles(idle, until, busy) {
		return Finding{}, false
	}
	disturbed = append(slices.Clip(disturbed), r.ownDisturbances(o)...)
	if r.Record.Params.Fair {
		// A thread in front holds up the threads behind it.
		for _, x := range r.CallsOn(lock) {
			if x != o && x.Action != model.ActUnlock && x.AtNs < until && x.ReturnedNs() > o.AtNs {
				disturbed = append(disturbed, r.ownDisturbances(x)...)
			}
		}
	}
	if own := slices.Concat(unanswered(o), r.connecting(o.Process), r.behindHeldReplies(o), r.behindSiblings(o)); len(own) > 0 {
		busy = append(own, busy...)
		slices.SortStableFunc(busy, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	}
	for i := 0; i <= len(busy) && idle < until; i++ {
		next := span{until, until}
		if i < len(busy) {
			next = busy[i]
		}
		if end := min(next.from, until); end-idle > patience {
			idly := func(d disturbance) bool { return d.by != nil && r.costsNothing(d.by, o, idle) }
			if b := r.bound(lock, slices.DeleteFunc(slices.Clone(disturbed), idly), idle, end); end-idle > b.Ns+r.slack(b) {
				bound := b.Ns
				return Finding{Judge: model.JudgeLiveness, Verdict: Broken, AtNs: idle + bound, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Form: model.FormForgotten, Lock: lock, Thread: o.Caller},
					Excuses: slices.Concat(r.gone(lock, idle, end, bound), r.deadInFront(lock, idle), r.deadByOtherClocks(lock, idle, end, bound), r.ghostsInFront(lock, idle, end, bound), r.clockSteps(0, end)),
					Detail:  Forgotten{FromNs: idle, ToNs: end, Bound: b, Own: r.StateAt(lock, idle).Owner == o.Caller}}, true
			}
		}
		idle = max(idle, next.to)
	}
	return Finding{}, false
}

// slack returns the time in ns by which a waiter may exceed a bound. A waiter that asks once in each second gets
// the lock a round trip after it asks. A bound of round trips, of a lease or of dead waiters has it already.
func (r livenessJudge) slack(b Bound) int64 {
	u := int64(r.Record.Params.Uncertainty)
	if b.RoundTrip > 0 || b.Cost > 0 || b.DeadWaiters {
		return u
	}
	return u + int64(2*r.Record.Params.Latency)
}

// patience is the time in ns that a waiter may wait for nothing in any case.
const patience = int64(time.Second)

// idles reports whether some time of more than patience within [from, to) is in none of the spans, which are
// ordered by their beginnings.
func idles(from, to int64, busy []span) bool {
	for _, b := range busy {
		if min(b.from, to)-from > patience {
			return true
		}
		if from = max(from, b.to); from >= to {
			return false
		}
	}
	return to-from > patience
}

// RoundTrips is the number of round trips that an acquire of a free lock may take on a slow
// network. It may connect, begin a session, and create a parent of the lock. It may try again if
// its first try failed because others tried at the same time.
const RoundTrips = 8

// bound returns how long a waiter may get nothing from the instant from on, if it gets nothing
// until the instant to.
func (r livenessJudge) bound(lock string, disturbed []disturbance, from, to int64) Bound {
	waits := r.Record.Params.Waits
	b := Bound{Ns: int64(time.Second + waits), Waits: waits}
	if trip := int64(2 * r.Record.Params.Latency); RoundTrips*trip > int64(time.Second) {
		b = Bound{Ns: RoundTrips*trip + int64(waits), RoundTrip: time.Duration(trip), Waits: waits}
	}
	lease := r.longestLease(lock, to)
	// An event extends the bound only of a wait that is not too long yet when it comes. Else
	// the end of the wait would decide whether an event at that very instant excuses it.
	disturbed = slices.Clone(disturbed)
	slices.SortStableFunc(disturbed, func(a, b disturbance) int { return cmp.Compare(a.from, b.from) })
	for _, d := range disturbed {
		if d.from > from+b.Ns+int64(r.Record.Params.Uncertainty) {
			break
		}
		cost := d.extra
		switch {
		case d.extra > 0:
		case d.most > 0:
			cost = min(lease, d.most)
		default:
			d.at, cost = r.leaseAnew(d.at, lease)
		}
		if d.at+int64(cost) < from {
			continue
		}
		if until := min(max(d.at, from), to) + int64(time.Second+waits) + int64(cost); until-from > b.Ns {
			b = Bound{Ns: until - from, Cost: cost, After: d.what, Waits: waits}
		}
	}
	if r.Record.Params.Fair {
		wait := r.Record.Params.FairWait
		for _, x := range r.CallsOn(lock) {
			wait = max(wait, time.Duration(x.WaitNs))
		}
		if two := int64(2*wait + time.Second + waits); r.deadInQueue(lock, from, to) && two > b.Ns {
			b = Bound{Ns: two, DeadWaiters: true, Waits: waits}
		}
	}
	return b
}

// leaseAnew returns from when on a lease that begins at an instant at the latest ends after a time, and that time. It begins
// anew after a fault for which the servers fail over.
func (r livenessJudge) leaseAnew(atNs int64, lease time.Duration) (int64, time.Duration) {
	cost := lease
	for _, t := range r.Faults {
		if recovery := r.Record.Params.Recovery; recovery > 0 && t.Spec.Interrupts() && atNs <= t.ToNs+int64(recovery) && t.FromNs <= atNs+int64(lease) {
			atNs, cost = max(atNs, t.ToNs), lease+recovery
		}
	}
	return atNs, cost
}

// longestLease returns the longest lease that a call up to an instant may have asked for.
func (r livenessJudge) longestLease(lock string, toNs int64) time.Duration {
	lease := max(r.Record.Params.Watchdog, 0)
	for _, x := range r.CallsOn(lock) {
		if x.AtNs < toNs {
			lease = max(lease, time.Duration(x.LeaseNs))
		}
	}
	return lease
}
