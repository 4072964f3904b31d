package linearizability

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// judgeFIFO: a new hold although another thread, waiting and within its own
// wait, had its first try executed by the server before.
func judgeFIFO(r *run) []Finding {
	if !r.Record.Params.Fair {
		return nil
	}
	var out []Finding
	for _, lock := range r.Locks {
		out = append(out, r.outrun(lock)...)
	}
	return out
}

// outrun are the new holds of one lock that were given out of turn.
func (r *run) outrun(lock string) []Finding {
	var out []Finding
	ops := r.CallsOn(lock)
	for _, c := range r.Changes(lock) {
		if !c.Started() || c.By == nil || c.By.Op == 0 {
			continue
		}
		y := r.Call(c.By.Op)
		tried := y.First("acquire")
		if tried == nil {
			continue
		}
		// A thread that gave up a call and waits anew is given the lock by what
		// arrives late of the old one, too.
		for _, z := range ops {
			if z.Caller == y.Caller && z.Action.Acquires() && z.AtNs <= c.AtNs && c.AtNs < z.ReturnedNs() {
				if first := z.First("acquire"); first != nil && first.Executed.AtNs < tried.Executed.AtNs {
					tried = first
				}
			}
		}
		for _, x := range ops {
			if r.overtaken(x, y, tried, c) {
				out = append(out, r.overtaking(lock, x, y, c))
				break
			}
		}
	}
	return out
}

// overtaken: x waited when y, which tried later, was given the lock.
func (r *run) overtaken(x, y *trace.Call, tried *trace.Command, c *trace.Change) bool {
	if x == y || x.Caller == y.Caller || x.Action != model.ActLock && x.Action != model.ActTryLockTimed {
		return false
	}
	first := x.First("acquire")
	if first == nil || first.Executed.AtNs >= tried.Executed.AtNs {
		return false
	}
	if x.ReturnedNs() <= c.AtNs || x.WaitsUntilNs() <= c.AtNs || r.diedAt(x.Caller) <= c.AtNs || r.LeaveNs <= c.AtNs {
		return false
	}
	if x.InterruptedNs <= c.AtNs {
		return false // whether it still waits is its own affair
	}
	if at, ok := refused(x); ok && at <= c.AtNs {
		return false
	}
	for _, g := range r.grants(x) {
		if g.AtNs < c.AtNs {
			return false
		}
	}
	return true
}

// silence is how long after a fault a waiter may still not have asked.
const silence = 3 * time.Second

func (r *run) overtaking(lock string, x, y *trace.Call, c *trace.Change) Finding {
	first := x.First("acquire")
	f := Finding{Judge: model.JudgeFIFO, Verdict: Broken, AtNs: c.AtNs, Ops: []OpRef{refOf(x), refOf(y)}, Facts: model.Facts{Lock: lock, Thread: x.Caller}}
	evicted := int64(-1)
	for _, e := range r.Changes(lock) {
		if e.AtNs > first.Executed.AtNs && e.AtNs <= c.AtNs && slices.Contains(e.Before.Queue, x.Caller) && !slices.Contains(e.After.Queue, x.Caller) {
			evicted = e.AtNs
		}
	}
	f.Why = fmt.Sprintf("%s was granted %s at %s before %s, which had first tried at %s and still waited",
		y.Caller, lock, model.At(c.AtNs), x.Caller, model.At(first.Executed.AtNs))
	if evicted >= 0 {
		f.Why += fmt.Sprintf("; it had lost its place in the queue at %s", model.At(evicted))
	}
	f.Excuses = append(f.Excuses, r.clocksApart()...)
	covers := func(t trace.Fault) bool {
		return t.FromNs <= c.AtNs && c.AtNs <= t.ToNs || evicted >= 0 && t.FromNs <= evicted && evicted <= t.ToNs
	}
	for _, t := range r.Faults {
		own := (t.Spec.Kind == model.FaultPause || t.Spec.Kind == model.FaultPartition) && t.Spec.Names(x.Process)
		// A waiter that could not ask may be thrown out a little later.
		if (own || t.Spec.Interrupts()) && (covers(t) || t.FromNs <= evicted && evicted <= t.ToNs+int64(silence)) {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: t.Number, Why: t.Text})
		}
	}
	for _, m := range r.Commands {
		process, _, _ := strings.Cut(x.Caller, "/")
		if m.Op != x.Op && (m.Process != process || m.Op > 0) {
			continue
		}
		for _, h := range m.Hits {
			if first.AtNs <= h.AtNs && h.AtNs <= c.AtNs {
				f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: h.Fault, Why: r.Fault(h.Fault).Text})
			}
		}
	}
	for _, e := range r.Changes(lock) {
		// A failover may have given the one a place that it had given up, too.
		back := !slices.Contains(e.Before.Queue, y.Caller) && slices.Contains(e.After.Queue, y.Caller)
		if e.Fault > 0 && (back || first.Executed.AtNs <= e.AtNs) && e.AtNs <= c.AtNs {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.HoldRemoved, Fault: e.Fault, Why: r.Fault(e.Fault).Text})
		}
	}
	for _, t := range r.Faults {
		if (t.Spec.Kind == model.FaultKey) && first.Executed.AtNs <= t.FromNs && t.FromNs <= c.AtNs {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.MemoryRemoved, Fault: t.Number, Why: t.Text})
		}
	}
	return f
}

// clocksApart excuses an order that rests on the callers' wall clocks.
func (r *run) clocksApart() []model.Excuse {
	for _, p := range r.Record.Params.Processes {
		if p.Skew >= time.Millisecond {
			return []model.Excuse{{Circumstance: model.ClocksApart, Clocks: true, Why: "wall clocks that differ"}}
		}
	}
	return nil
}
