package judges

import (
	"cmp"
	"slices"

	"lockstep/linearizability"
	"lockstep/model"
)

// blindSteps limits the blind search, which only tests the judge. The settled search decides.
const blindSteps = 50_000

// judgeLinearizable checks the history of a run twice: settled, with every unknown outcome and the
// end of every lease taken from the record, and blind, with the knowledge of a user who wrote down
// the calls. If only the blind check finds the history broken, that is a defect of Lockstep.
func judgeLinearizable(r *run) []Finding {
	spec := r.spec()
	var out []Finding
	for _, lock := range r.Locks {
		if r.resurrected(lock) {
			continue // a failover brought something back, which no history can express
		}
		settled := r.check(lock, linearizability.Options{Spec: spec}, true)
		blind := r.check(lock, linearizability.Options{Spec: spec, StepLimit: blindSteps}, false)
		switch {
		case settled.Verdict == linearizability.Broken:
			f := r.unplaceable(lock, settled)
			f.Excuses = r.memoryLost(lock)
			if spec == "fair" && r.aboutOrder(lock) {
				f.Excuses = append(f.Excuses, r.outOfOrder(lock, settled.First)...)
			}
			f.Excuses = slices.CompactFunc(slices.SortedStableFunc(slices.Values(f.Excuses), byFault), func(a, b model.Excuse) bool { return a == b })
			out = append(out, f)
		case blind.Verdict == linearizability.Broken:
			out = append(out, Finding{Judge: JudgeHarness, Verdict: Undecided,
				Detail: BlindOnly{lock, blind.Reason}})
		case settled.Verdict == linearizability.Undecided:
			out = append(out, Finding{Judge: model.JudgeLinearizable, Verdict: Undecided, Detail: Unplaceable{lock, settled.Reason}})
		}
	}
	return out
}

// spec returns the name of the specification that the lock keeps.
func (r *run) spec() string {
	if r.Record.Params.Fair {
		return "fair"
	}
	return "reentrant"
}

// byFault orders excuses without a fault last.
func byFault(a, b model.Excuse) int {
	return cmp.Or(cmp.Compare(uint(a.Fault-1), uint(b.Fault-1)), cmp.Compare(a.Circumstance, b.Circumstance))
}

// outOfOrder returns the excuses for an order of grants that no queue explains. They are
// circumstances that may have changed the queue up to the end of the call that has no place in the
// order: clocks apart, faults that removed a hold or a place, and the excuses for threads that were
// overtaken or stood in the queue without waiting.
func (r *run) outOfOrder(lock string, first *linearizability.Op) []model.Excuse {
	until := r.LeaveNs
	if first != nil && first.ReturnNs != nil {
		until = *first.ReturnNs
	}
	out := append(r.clocksApart(), r.clockSteps(0, until)...)
	for _, c := range r.Changes(lock) {
		if c.AtNs <= until {
			out = append(out, r.byHand(c)...)
		}
	}
	for _, g := range slices.Concat(r.outrun(lock), r.lingering(lock)) {
		if g.AtNs <= until {
			out = append(out, g.Excuses...)
		}
	}
	return out
}

// aboutOrder reports whether the history breaks only the order in which waiters were served, or
// only answers that depend on threads that stood in the queue and no longer waited.
func (r *run) aboutOrder(lock string) bool {
	if r.check(lock, linearizability.Options{Spec: "reentrant"}, true).Verdict == linearizability.OK {
		return true
	}
	ops, waiting := r.history(lock, true), false
	for _, g := range r.lingering(lock) {
		for i := range ops {
			op := &ops[i]
			if op.Op == linearizability.OpAcquire && len(g.Ops) > 0 && op.CallNs == g.Ops[0].CallNs && op.Process == g.Ops[0].Process && op.Thread == g.Ops[0].Thread {
				op.Outcome, op.ReturnNs, waiting = model.AnswerUnknown, nil, true
			}
		}
	}
	return waiting && r.checkOps(lock, ops, linearizability.Options{Spec: "fair"}).Verdict == linearizability.OK
}

func (r *run) check(lock string, opt linearizability.Options, settled bool) linearizability.LockResult {
	return r.checkOps(lock, r.history(lock, settled), opt)
}

func (r *run) checkOps(lock string, ops []linearizability.Op, opt linearizability.Options) linearizability.LockResult {
	opt.LeaseGrainNs = millisecond
	res := linearizability.Check(ops, opt)
	if len(res.Locks) == 0 {
		return linearizability.LockResult{Lock: lock, Verdict: linearizability.OK}
	}
	return res.Locks[0]
}

func (r *run) unplaceable(lock string, res linearizability.LockResult) Finding {
	f := Finding{Judge: model.JudgeLinearizable, Verdict: Broken, Facts: model.Facts{Lock: lock}, Detail: Unplaceable{lock, res.Reason}}
	if op := res.First; op != nil {
		f.AtNs = op.CallNs
		caller := model.ThreadName(op.Process, op.Thread)
		if op.Op != linearizability.OpLost {
			f.Thread = caller
		}
		for _, o := range r.CallsOn(lock) {
			if o.Caller == caller && o.AtNs == op.CallNs {
				f.Ops = []OpRef{refOf(o)}
			}
		}
	}
	return f
}
