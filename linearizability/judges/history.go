package judges

import (
	"cmp"
	"slices"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/model/trace"
)

// history returns the calls on a lock as a history, with the holds of the servers for everything that no
// answer says: a hold that nobody was told of is an acquire at its instant, and a hold that no answer
// ended is lost at its end. If answerJudge finds nothing, the search finds an order of the history. The
// order in which waiters are served is no part of it.
func (r *run) history(lock string) []linearizability.Op {
	var ops []linearizability.Op
	begun, ended := map[*trace.Change]bool{}, map[*trace.Change]bool{} // the changes that an answer tells
	for _, o := range r.CallsOn(lock) {
		op, ok := r.asOp(o)
		if !ok {
			continue
		}
		ops = append(ops, op)
		if c := r.answered(o); c != nil && o.Outcome == model.Granted {
			begun[c] = true
		} else if c != nil {
			ended[c] = true
		}
	}
	add := func(c *trace.Change, who, op string, outcome model.Outcome) {
		ns := c.AtNs
		ops = append(ops, linearizability.Op{Process: model.ProcessOf(who), Thread: model.NumberOf(who), Lock: lock, Op: op, Outcome: string(outcome), CallNs: ns, ReturnNs: &ns})
	}
	for _, c := range r.Changes(lock) {
		who, before := c.After.Owner, trace.Levels(c.Before, c.After.Owner)
		if c.Started() {
			before = 0
		}
		switch {
		case ended[c]:
		case c.Ended():
			add(c, "nobody/1", linearizability.OpLost, "")
		default:
			for range before - c.After.Count {
				add(c, who, linearizability.OpRelease, model.StillHeld)
			}
		}
		for range c.After.Count - before {
			if !begun[c] {
				add(c, who, linearizability.OpAcquire, model.Granted)
			}
		}
	}
	ops = append(ops, r.closures(lock)...)
	slices.SortStableFunc(ops, func(a, b linearizability.Op) int { return cmp.Compare(a.CallNs, b.CallNs) })
	return ops
}

// asOp returns a call as an operation of a history. It reports false for a call without an effect, and for
// an answer that is about parts of a hold or about the holds that the caller knows.
func (r *run) asOp(o *trace.Call) (op linearizability.Op, ok bool) {
	if o.Return == nil {
		return op, false
	}
	ret := o.ReturnedNs()
	op = linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: o.AtNs, ReturnNs: &ret, Outcome: string(o.Outcome)}
	switch o.Outcome {
	case model.Granted:
		op.Op = linearizability.OpAcquire
		return op, r.answered(o) != nil
	case model.Busy:
		op.Op = linearizability.OpAcquire
		return op, r.HeldWithin(o.Lock, o.AtNs, ret, o.Caller)
	case model.Extended:
		op.Op, op.Outcome = linearizability.OpRenew, model.AnswerRenewed
		return op, true
	case model.Released, model.StillHeld:
		op.Op = linearizability.OpRelease
	case model.NotHeld:
		op.Op = linearizability.OpRelease
		if o.Action == model.ActExtend {
			op.Op = linearizability.OpRenew
		}
		if r.knowsNoHold(o) {
			return op, false
		}
	default:
		return op, false
	}
	if c := r.answered(o); o.Action == model.ActForceUnlock || c != nil && c.Ended() && c.Before.Count > 1 {
		op.Op = linearizability.OpForceRelease // it ends levels of which its caller may not know, too
	}
	return op, true
}

// answered returns the change of which the answer of a call tells its caller; nil: none.
func (r *run) answered(o *trace.Call) *trace.Change {
	switch o.Outcome {
	case model.Granted:
		if kept := r.grantsKept(o); len(kept) > 0 && kept[0].AtNs <= o.ReturnedNs() {
			return kept[0]
		}
		for _, h := range r.HoldsOf(o.Lock, o.Caller, r.lastHeard(o), o.ReturnedNs()) {
			if h.FromNs() >= o.AtNs {
				return h.Began
			}
		}
	case model.Released, model.StillHeld:
		from, to := r.during(o)
		for _, c := range r.ChangesWithin(o.Lock, from, to) {
			if r.gaveUpBy(o, c) {
				return c
			}
		}
	}
	return nil
}
