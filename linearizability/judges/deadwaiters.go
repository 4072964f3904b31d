package judges

import (
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// orphaned returns the instants from which on a dead process held the lock.
func (r livenessJudge) orphaned(lock, process string) []int64 {
	died := r.DiedNs(process)
	var out []int64
	if strings.HasPrefix(r.StateAt(lock, died).Owner, process+"/") {
		out = append(out, died)
	}
	for _, c := range r.Changes(lock) {
		if c.AtNs > died && c.Started() && strings.HasPrefix(c.After.Owner, process+"/") {
			out = append(out, c.AtNs)
		}
	}
	return out
}

// deadWaiters returns the threads in the queue whose process is dead or closed its
// client.
func (r livenessJudge) deadWaiters(lock string, at int64) []string {
	var out []string
	for _, who := range r.StateAt(lock, at).Queue {
		if r.goneAt(who) <= at {
			out = append(out, who)
		}
	}
	return out
}

// deadInQueue reports whether the queue had a dead waiter in a stretch of time. A dead process's
// last commands may come after its death.
func (r livenessJudge) deadInQueue(lock string, from, to int64) bool {
	return len(r.deadWaiters(lock, from)) > 0 || slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool {
		return from < c.AtNs && c.AtNs <= to && len(r.deadWaiters(lock, c.AtNs)) > 0
	})
}

// deadInFront returns the excuses for a wait behind more than one dead waiter.
func (r livenessJudge) deadInFront(lock string, at int64) []model.Excuse {
	var out []model.Excuse
	dead := r.deadWaiters(lock, at)
	if len(dead) < 2 {
		return nil
	}
	for _, t := range r.Faults {
		if t.Spec.Kind == model.FaultCrash && slices.ContainsFunc(dead, func(who string) bool { return strings.HasPrefix(who, t.Process+"/") }) {
			out = append(out, model.Excuse{Circumstance: model.DeadWaiters, Fault: t.Number, Cause: faultAt(t.Text, t.FromNs)})
		}
	}
	return out
}

// ghostsInFront returns the excuses for a wait behind threads that stood in the queue during the
// wait, no longer waited and could not leave. They excuse it up to the bound after the deadline of
// their place.
func (r livenessJudge) ghostsInFront(lock string, from, to, bound int64) []model.Excuse {
	var out []model.Excuse
	for _, g := range tidyJudge(r).lingering(lock) {
		if len(g.Ops) == 0 {
			continue
		}
		who := model.ThreadName(g.Ops[0].Process, g.Ops[0].Thread)
		place := r.StateAt(lock, from).Deadlines[who]
		for _, c := range r.ChangesAfter(lock, from) {
			if c.AtNs <= to {
				place = max(place, c.After.Deadlines[who])
			}
		}
		if place > 0 && to-place*millisecond <= bound {
			out = append(out, g.Excuses...)
		}
	}
	return out
}

// gone returns the excuses for a wait for a lock without leases. They apply if the server holds the
// lock for a thread that will not give it up: the thread died, its client closed, a failover brought the
// hold back, or a fault or an interrupt met the call that should have learned of the hold or given it up. The hold must begin
// before the bound of the wait, and last until a waiter can no longer get the lock before the end of the wait.
func (r livenessJudge) gone(lock string, from, to, bound int64) []model.Excuse {
	starts := r.StartsUpTo(lock, min(from+bound, to))
	if !r.Record.Params.Endless || len(starts) == 0 {
		return nil
	}
	start := starts[len(starts)-1]
	who := start.After.Owner
	if end := r.EndOf(start); end != nil && end.AtNs+int64(time.Second+r.Record.Params.Waits) < to {
		return nil
	}
	excuse := func(fault int, cause model.Cause) []model.Excuse {
		return []model.Excuse{{Circumstance: model.HolderGone, Fault: fault, Cause: cause}}
	}
	placed := r.placedByFault(start)
	for _, c := range r.ChangesWithin(lock, start.AtNs, to) {
		if c.Fault > 0 && c.Before.Value != c.After.Value { // an earlier hold of the same thread
			placed = c
		}
	}
	if placed != nil {
		return excuse(placed.Fault, faultAt(r.Fault(placed.Fault).Text, placed.AtNs))
	}
	if o := start.Call(); o != nil {
		if lost := r.removedUntil(o, to); len(lost) > 0 { // what is left is an earlier hold, and the state looks the same
			return excuse(lost[0].Number, faultAt(lost[0].Text, lost[0].FromNs))
		}
	}
	if died := r.diedAt(who); died <= to {
		for _, t := range r.Faults {
			if t.Spec.Kind == model.FaultCrash && t.FromNs == died && t.Spec.Names(model.ProcessOf(who)) {
				return excuse(t.Number, faultAt(t.Text, died))
			}
		}
	}
	if at := r.goneAt(who); at <= to {
		return excuse(0, model.Cause{Kind: model.CauseClosed, Thread: who, AtNs: at})
	}
	for _, o := range slices.Backward(r.CallsOn(lock)) {
		late := o == start.Call() && start.AtNs > o.ReturnedNs()
		if o.Caller != who || o.AtNs > to || o.Outcome != model.Unknown && !late {
			continue
		}
		for _, m := range o.Sent {
			for _, h := range m.Hits {
				return excuse(h.Fault, faultAt(h.Text, h.AtNs))
			}
		}
		for _, t := range r.Faults {
			// A client finds its connection dead when it writes to it for the first time after the fault.
			ended := t.Spec.EndsConnections() && t.FromNs <= o.AtNs && !slices.ContainsFunc(r.CommandsFrom(o.Process), func(m *trace.Command) bool {
				return t.FromNs < m.AtNs && 0 <= m.RepliedNs && m.RepliedNs <= o.ReturnedNs()
			})
			if ended || t.FromNs <= r.underWayUntil(o) && o.AtNs <= t.ToNs {
				return excuse(t.Number, faultAt(t.Text, t.FromNs))
			}
		}
		if o.InterruptedNs <= o.ReturnedNs() {
			return excuse(0, model.Cause{Kind: model.CauseInterrupt, Thread: who, AtNs: o.InterruptedNs})
		}
	}
	return nil
}

// placedByFault returns the change in which a fault, such as a failover that loses writes, brought a hold back of which
// its thread does not know, or its place in the queue, in which it stood until the hold began; nil if none did.
func (r *run) placedByFault(start *trace.Change) *trace.Change {
	if start.Fault > 0 {
		return start
	}
	for _, c := range slices.Backward(r.ChangesUpTo(start.Lock, start.AtNs)) {
		switch {
		case start.Precedes(c):
		case c != start && c.Fault > 0:
			return c
		case !slices.Contains(c.Before.Queue, start.After.Owner):
			return nil
		}
	}
	return nil
}

// deadByOtherClocks returns the excuses for a wait behind dead waiters that exceeds its bound by no
// more than the distance of the clocks. The end of a place in the queue depends on the clock of the
// process that made it, and on that of the process that asks.
func (r livenessJudge) deadByOtherClocks(lock string, from, to, bound int64) []model.Excuse {
	var skews []time.Duration
	for _, p := range r.Record.Params.Processes {
		skews = append(skews, p.Skew)
	}
	slices.Sort(skews)
	var apart time.Duration
	for _, s := range skews[max(0, len(skews)-2):] {
		apart += s
	}
	if !r.deadInQueue(lock, from, to) || to-from > bound+int64(apart) {
		return nil
	}
	return r.clocksApart()
}
