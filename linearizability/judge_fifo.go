package linearizability

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

// judgeFIFO: a new hold although another thread, waiting and within its own
// wait, had its first try executed by the server before.
func judgeFIFO(r *run) []Finding {
	if !r.rec.Params.Fair {
		return nil
	}
	var out []Finding
	for _, lock := range r.locks {
		out = append(out, r.outrun(lock)...)
	}
	return out
}

// outrun are the new holds of one lock that were given out of turn.
func (r *run) outrun(lock string) []Finding {
	var out []Finding
	ops := r.opsOf(lock)
	for _, c := range r.states[lock] {
		if !c.started() || c.by == nil || c.by.Op == 0 {
			continue
		}
		y := r.ops[c.by.Op-1]
		tried := y.first("acquire")
		if tried == nil {
			continue
		}
		// A thread that gave up a call and waits anew is given the lock by what
		// arrives late of the old one, too.
		for _, z := range ops {
			if z.who == y.who && z.Action.Acquires() && z.AtNs <= c.at && c.at < z.returned() {
				if first := z.first("acquire"); first != nil && first.exec.AtNs < tried.exec.AtNs {
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
func (r *run) overtaken(x, y *operation, tried *msg, c change) bool {
	if x == y || x.who == y.who || x.Action != model.ActLock && x.Action != model.ActTryLockTimed {
		return false
	}
	first := x.first("acquire")
	if first == nil || first.exec.AtNs >= tried.exec.AtNs {
		return false
	}
	if x.returned() <= c.at || x.waitsUntil() <= c.at || r.diedAt(x.who) <= c.at || r.endNs <= c.at {
		return false
	}
	if x.interrupted <= c.at {
		return false // whether it still waits is its own affair
	}
	if at, ok := x.refused(); ok && at <= c.at {
		return false
	}
	for _, g := range r.grants(x) {
		if g.at < c.at {
			return false
		}
	}
	return true
}

// silence is how long after a fault a waiter may still not have asked.
const silence = 3 * time.Second

func (r *run) overtaking(lock string, x, y *operation, c change) Finding {
	first := x.first("acquire")
	f := Finding{Judge: model.JudgeFIFO, Verdict: Broken, AtNs: c.at, Ops: []OpRef{x.ref(), y.ref()}, Facts: model.Facts{Lock: lock, Thread: x.who}}
	evicted := int64(-1)
	for _, e := range r.states[lock] {
		if e.at > first.exec.AtNs && e.at <= c.at && slices.Contains(e.before.Queue, x.who) && !slices.Contains(e.after.Queue, x.who) {
			evicted = e.at
		}
	}
	f.Why = fmt.Sprintf("%s was granted %s at %s before %s, which had first tried at %s and still waited",
		y.who, lock, model.At(c.at), x.who, model.At(first.exec.AtNs))
	if evicted >= 0 {
		f.Why += fmt.Sprintf("; it had lost its place in the queue at %s", model.At(evicted))
	}
	f.Excuses = append(f.Excuses, r.clocksApart()...)
	covers := func(t trouble) bool {
		return t.from <= c.at && c.at <= t.to || evicted >= 0 && t.from <= evicted && evicted <= t.to
	}
	for _, t := range r.faults {
		own := (t.spec.Kind == model.FaultPause || t.spec.Kind == model.FaultPartition) && t.spec.Names(x.Process)
		// A waiter that could not ask may be thrown out a little later.
		if (own || t.spec.Interrupts()) && (covers(t) || t.from <= evicted && evicted <= t.to+int64(silence)) {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: t.number, Why: t.text})
		}
	}
	for _, m := range r.ordered {
		process, _, _ := strings.Cut(x.who, "/")
		if m.Op != x.Op && (m.Process != process || m.Op > 0) {
			continue
		}
		for _, h := range m.hits {
			if first.AtNs <= h.AtNs && h.AtNs <= c.at {
				f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: h.Fault, Why: r.fault(h.Fault).text})
			}
		}
	}
	for _, e := range r.states[lock] {
		// A failover may have given the one a place that it had given up, too.
		back := !slices.Contains(e.before.Queue, y.who) && slices.Contains(e.after.Queue, y.who)
		if e.fault > 0 && (back || first.exec.AtNs <= e.at) && e.at <= c.at {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.HoldRemoved, Fault: e.fault, Why: r.fault(e.fault).text})
		}
	}
	for _, t := range r.faults {
		if (t.spec.Kind == model.FaultKey) && first.exec.AtNs <= t.from && t.from <= c.at {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.MemoryRemoved, Fault: t.number, Why: t.text})
		}
	}
	return f
}

// clocksApart excuses an order that rests on the callers' wall clocks.
func (r *run) clocksApart() []model.Excuse {
	for _, p := range r.rec.Params.Processes {
		if p.Skew >= time.Millisecond {
			return []model.Excuse{{Circumstance: model.ClocksApart, Clocks: true, Why: "wall clocks that differ"}}
		}
	}
	return nil
}
