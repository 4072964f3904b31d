package judges

import (
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// takenBy returns the excuse for a hold or a place that a fault removed from a server, or restored.
// A step of the server's clock has a circumstance of its own.
func takenBy(t trace.Fault, otherwise model.Circumstance, cause model.Cause) model.Excuse {
	if t.Spec.StepsServerClock() {
		otherwise = model.ServerClockStepped
	}
	return model.Excuse{Circumstance: otherwise, Fault: t.Number, Cause: cause}
}

// faultIs returns a fault as the cause of an excuse.
func faultIs(text string) model.Cause { return model.Cause{Kind: model.CauseFault, Fault: text} }

// faultAt returns a fault, with an instant, as the cause of an excuse.
func faultAt(text string, atNs int64) model.Cause {
	return model.Cause{Kind: model.CauseFaultAt, Fault: text, AtNs: atNs}
}

// byHand returns the excuse for a change that an operator made, or a loss of the
// server.
func (r *run) byHand(c *trace.Change) []model.Excuse {
	if c == nil || c.Fault == 0 {
		return nil
	}
	return []model.Excuse{takenBy(r.Fault(c.Fault), model.HoldRemoved, faultIs(r.Fault(c.Fault).Text))}
}

// partsLost returns the faults between two instants by which a server may have forgotten one of
// several parts of a hold. It returns none for a hold of one part whose loss the record shows.
func (r *run) partsLost(fromNs, toNs int64) []trace.Fault {
	if r.Record.Params.Parts < 2 && !r.unseen() {
		return nil
	}
	var lost []trace.Fault
	for _, f := range r.Faults {
		if fromNs <= f.FromNs && f.FromNs <= toNs && f.Spec.MayRemoveKeys() {
			lost = append(lost, f)
		}
	}
	return lost
}

// removedDuring returns the faults that removed what a call had written while it was under way. The State of a lock with several
// keys shows no hold before the last key is written. It shows a place in the queue at once, so a call must notice the loss of
// its place, which is no excuse.
func (r *run) removedDuring(o *trace.Call) []trace.Fault {
	return slices.DeleteFunc(r.removedUntil(o, o.ReturnedNs()), func(t trace.Fault) bool {
		return slices.ContainsFunc(r.Changes(o.Lock), func(c *trace.Change) bool {
			return c.Fault == t.Number && slices.Contains(c.Before.Queue, o.Caller)
		})
	})
}

// removedUntil returns the faults up to an instant that removed what a call had written.
func (r *run) removedUntil(o *trace.Call, toNs int64) []trace.Fault {
	var out []trace.Fault
	for _, t := range r.Faults {
		if t.FromNs <= toNs && slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return slices.Contains(t.Removed, m.Msg) }) {
			out = append(out, t)
		}
	}
	return out
}

// unseen reports whether nobody knows what the servers hold.
func (r *run) unseen() bool { return r.Record.Params.Promises[model.JudgeMutualExclusion].Unjudged }

// clockSteps returns the excuses for a finding that depends on the wall clocks of servers between
// two instants.
func (r *run) clockSteps(fromNs, toNs int64) []model.Excuse {
	var out []model.Excuse
	for _, t := range r.Faults {
		if t.Spec.StepsServerClock() && fromNs <= t.FromNs && t.FromNs <= toNs {
			out = append(out, takenBy(t, "", faultAt(t.Text, t.FromNs)))
		}
	}
	return out
}

// clocksApart returns the excuse for an order that depends on the wall clocks of the processes.
func (r *run) clocksApart() []model.Excuse {
	for _, p := range r.Record.Params.Processes {
		if p.Skew >= time.Millisecond {
			return []model.Excuse{{Circumstance: model.ClocksApart, Clocks: true, Cause: model.Cause{Kind: model.CauseClocks}}}
		}
	}
	return nil
}

// memoryLost returns the excuses for a wrong answer of a call since the server had forgotten
// something: a fault removed keys, or lost data, when a command of a call had run and the call, or
// another command of it, was still under way. Where threads know holds by their grants, it is that call, and it was refused,
// or had written what the fault removed.
func (r *run) memoryLost(wrong *trace.Call) []model.Excuse {
	var out []model.Excuse
	if r.Record.Params.PerGrant && wrong.Outcome == model.Granted {
		for _, t := range r.removedDuring(wrong) {
			out = append(out, takenBy(t, model.MemoryRemoved, faultIs(t.Text)))
		}
		return out
	}
	if r.Record.Params.PerGrant && wrong.Outcome != model.NotHeld && wrong.Outcome != model.Busy {
		return nil
	}
	for _, t := range r.Faults {
		if !t.Spec.MayRemoveKeys() {
			continue
		}
		if slices.ContainsFunc(r.CallsOn(wrong.Lock), func(o *trace.Call) bool {
			return (o == wrong || !r.Record.Params.PerGrant) && t.FromNs <= r.underWayUntil(o) && slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return m.Executed != nil && m.Executed.AtNs <= t.FromNs })
		}) {
			out = append(out, takenBy(t, model.MemoryRemoved, faultIs(t.Text)))
		}
	}
	return out
}
