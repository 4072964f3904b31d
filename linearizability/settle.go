package linearizability

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

// millisecond is what Redis's clock may add to a lease: a key lives through
// the millisecond of its expiry.
const millisecond = int64(time.Millisecond)

// blindSteps limits the blind search: it only tests the judge, and the settled
// one decides.
const blindSteps = 50_000

// judgeLinearizable checks the history of a run twice: settled, with every
// unknown outcome and every lease's end as the record has them, and blind, as
// a user who wrote down the calls would have to. Blind and not settled broken
// would be a mistake of ours.
func judgeLinearizable(r *run) []Finding {
	spec := "reentrant"
	if r.rec.Params.Fair {
		spec = "fair"
	}
	var out []Finding
	for _, lock := range r.locks {
		if r.resurrected(lock) {
			continue // a failover brought something back: no history can say so
		}
		settled := r.check(lock, Options{Spec: spec}, true)
		blind := r.check(lock, Options{Spec: spec, StepLimit: blindSteps}, false)
		switch {
		case settled.Verdict == Broken:
			f := r.unplaceable(lock, settled)
			f.Excuses = r.memoryLost(lock)
			if spec == "fair" && r.aboutOrder(lock) {
				f.Excuses = append(f.Excuses, r.outOfOrder(lock, settled.First)...)
			}
			f.Excuses = slices.CompactFunc(slices.SortedStableFunc(slices.Values(f.Excuses), byFault), func(a, b model.Excuse) bool { return a == b })
			out = append(out, f)
		case blind.Verdict == Broken:
			out = append(out, Finding{Judge: JudgeHarness, Verdict: Undecided,
				Why: "the history of " + lock + " is broken when checked blind and not when settled: " + blind.Why})
		case settled.Verdict == Undecided:
			out = append(out, Finding{Judge: model.JudgeLinearizable, Verdict: Undecided, Why: lock + ": " + settled.Why})
		}
	}
	return out
}

// byFault puts excuses that no fault is behind last.
func byFault(a, b model.Excuse) int {
	return cmp.Or(cmp.Compare(uint(a.Fault-1), uint(b.Fault-1)), cmp.Compare(a.Circumstance, b.Circumstance))
}

// memoryLost excuses answers that rest on what the server no longer knew: keys
// were removed, or data lost, when a command of a call had run and the call, or
// another command of it, was still under way.
func (r *run) memoryLost(lock string) []model.Excuse {
	var out []model.Excuse
	for _, t := range r.faults {
		if !(t.spec.Kind == model.FaultKey) && !t.spec.LosesData() {
			continue
		}
		if slices.ContainsFunc(r.opsOf(lock), func(o *operation) bool {
			return t.from <= r.underWayUntil(o) && slices.ContainsFunc(o.sent, func(m *msg) bool { return m.exec != nil && m.exec.AtNs <= t.from })
		}) {
			out = append(out, model.Excuse{Circumstance: model.MemoryRemoved, Fault: t.number, Why: t.text})
		}
	}
	return out
}

// underWayUntil is when a call has returned and nothing of what it sent runs any
// more.
func (r *run) underWayUntil(o *operation) int64 {
	until := o.returned()
	for _, m := range o.sent {
		if m.exec != nil {
			until = max(until, m.exec.AtNs)
		}
	}
	return until
}

// outOfOrder excuses an order of grants that no queue explains: by what may have
// changed the queue up to the end of the call that has no place in it. That is
// clocks apart, what took a hold or a place away, and what excuses the judges of
// order and of the queue: one who was passed over, one who stands there and does
// not wait.
func (r *run) outOfOrder(lock string, first *Op) []model.Excuse {
	until := r.endNs
	if first != nil && first.ReturnNs != nil {
		until = *first.ReturnNs
	}
	out := r.clocksApart()
	for _, c := range r.states[lock] {
		if c.at <= until {
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

// aboutOrder: what is broken is the order in which waiters were served, or what
// was answered because of somebody who stood in the queue and waited no longer.
func (r *run) aboutOrder(lock string) bool {
	if r.check(lock, Options{Spec: "reentrant"}, true).Verdict == OK {
		return true
	}
	ops, waiting := r.history(lock, true), false
	for _, g := range r.lingering(lock) {
		for i := range ops {
			op := &ops[i]
			if op.Op == OpAcquire && len(g.Ops) > 0 && op.CallNs == g.Ops[0].CallNs && op.Process == g.Ops[0].Process && op.Thread == g.Ops[0].Thread {
				op.Outcome, op.ReturnNs, waiting = model.AnswerUnknown, nil, true
			}
		}
	}
	return waiting && r.checkOps(lock, ops, Options{Spec: "fair"}).Verdict == OK
}

func (r *run) check(lock string, opt Options, settled bool) LockResult {
	return r.checkOps(lock, r.history(lock, settled), opt)
}

func (r *run) checkOps(lock string, ops []Op, opt Options) LockResult {
	opt.LeaseGrainNs = millisecond
	res := Check(ops, opt)
	if len(res.Locks) == 0 {
		return LockResult{Lock: lock, Verdict: OK}
	}
	return res.Locks[0]
}

func (r *run) unplaceable(lock string, res LockResult) Finding {
	f := Finding{Judge: model.JudgeLinearizable, Verdict: Broken, Why: lock + ": " + res.Why, Facts: model.Facts{Lock: lock}}
	if op := res.First; op != nil {
		f.AtNs = op.CallNs
		if !op.environment() || op.Op == OpCrash {
			f.Thread = op.owner()
		}
		for _, o := range r.opsOf(lock) {
			if o.who == op.owner() && o.AtNs == op.CallNs {
				f.Ops = []OpRef{o.ref()}
			}
		}
	}
	return f
}

// resurrected: a fault gave the lock, or a place in its queue, to somebody, or
// took a level or a lease from who had it and has it still.
func (r *run) resurrected(lock string) bool {
	return slices.ContainsFunc(r.states[lock], func(c change) bool {
		return c.fault > 0 && (c.after.Held() && (c.started() || c.before.Count != c.after.Count || c.before.ExpiresMs != c.after.ExpiresMs) ||
			slices.ContainsFunc(c.after.Queue, func(who string) bool { return !slices.Contains(c.before.Queue, who) }))
	})
}

// history writes a lock's calls, renewals and losses as a history.
func (r *run) history(lock string, settled bool) []Op {
	var ops []Op
	for _, o := range r.opsOf(lock) {
		if op, ok := r.asOp(o, settled); ok {
			ops = append(ops, op)
		}
		ops = append(ops, r.takenAway(o, settled)...)
		ops = append(ops, r.prolonged(o, settled)...)
	}
	ops = append(ops, r.renewals(lock, settled)...)
	for _, c := range r.states[lock] {
		if c.fault > 0 && c.ended() {
			at := c.at
			ops = append(ops, Op{Lock: lock, Op: OpLost, CallNs: at, ReturnNs: &at})
		}
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.CallNs, b.CallNs) })
	return ops
}

// takenAway writes the holds that a call was given before the one with which it
// came back, where a fault took them: a server that lost the hold has lost its
// memory of the call too, and grants it anew when it is sent again.
func (r *run) takenAway(o *operation, settled bool) []Op {
	if !o.Action.Acquires() {
		return nil
	}
	kept := r.grantsKept(o)
	var ops []Op
	for _, g := range r.grants(o) {
		if len(kept) == 0 || g.at >= kept[0].at || !g.started() {
			continue
		}
		end := slices.IndexFunc(r.states[o.Lock], func(c change) bool { return c.at > g.at && c.before.Owner == o.who && c.ended() })
		if end < 0 || r.states[o.Lock][end].fault == 0 {
			continue
		}
		op := Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: o.AtNs, Op: OpAcquire, Outcome: model.AnswerUnknown}
		if settled {
			at := g.at
			op.Outcome, op.ReturnNs = string(model.Granted), &at
		}
		r.lease(&op, g, settled)
		ops = append(ops, op)
	}
	return ops
}

// prolonged writes what a call did to the lease of a hold that it entered again
// and gave that level back of, because no replica had it: both start it anew.
func (r *run) prolonged(o *operation, settled bool) []Op {
	var ops []Op
	for _, g := range r.givenBack(o) {
		if g.grant.started() || g.undo.ended() {
			continue
		}
		for _, c := range []change{g.grant, g.undo} {
			op := Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: c.by.AtNs, Op: OpRenew, Outcome: model.AnswerUnknown}
			if settled {
				at := c.at
				op.Outcome, op.ReturnNs = model.AnswerRenewed, &at
			}
			r.lease(&op, c, settled)
			ops = append(ops, op)
		}
	}
	return ops
}

// asOp writes a call as a line of a history; ok is false for one that took no
// effect.
func (r *run) asOp(o *operation, settled bool) (op Op, ok bool) {
	op = Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: o.AtNs}
	ret := o.returned()
	outcome := o.outcome
	if o.ret == nil || outcome == model.Waiting {
		outcome = model.Unknown
	}
	effects := r.effects(o)
	if r.rec.Params.Uncounted && outcome == model.Busy && r.selfBusy(o) {
		return op, false // a lock without re-entry is busy for its owner too
	}
	switch {
	case o.Action.Acquires():
		op.Op = OpAcquire
		if len(effects) > 0 && outcome == model.Granted || outcome == model.Unknown && settled {
			effects = r.grantsKept(o)
		}
		if first := o.first("acquire"); r.rec.Params.Fair && first != nil && r.inTurn(o, first) && !r.evicted(o) {
			op.ArrivedNs = &first.exec.AtNs
		}
	case o.Action == model.ActForceUnlock:
		op.Op = OpForceRelease
	default:
		op.Op = OpRelease
	}
	if outcome == model.Failed || settled && outcome == model.Unknown && len(effects) == 0 {
		if until, queued := r.queuedUntil(o); queued {
			// It was granted nothing, and stood in the way of others.
			op.Outcome, op.ReturnNs = model.AnswerFailed, &until
			return op, true
		}
	}
	if outcome == model.Unknown && settled {
		if len(effects) == 0 {
			return op, false // it never ran, or changed nothing
		}
		c := effects[0]
		ret = max(c.at, o.AtNs)
		switch {
		case op.Op == OpAcquire:
			outcome = model.Granted
		case c.after.Owner == c.before.Owner:
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
	// Blind, too, the length of a lease is that of the record: a release may leave
	// that of an outer level, which no call says.
	keeps := len(effects) > 0 && effects[len(effects)-1].after.Held() && op.Op == OpRelease
	starts := outcome == model.Granted || outcome == model.StillHeld || outcome == model.Unknown && (op.Op == OpAcquire || keeps)
	if starts && len(effects) > 0 {
		r.lease(&op, effects[len(effects)-1], settled)
	} else if outcome == model.Unknown && op.Op != OpForceRelease {
		// It may have started a lease; a release that leaves a level does too.
		ms := r.mostLeaseMs(o)
		op.LeaseMs = &ms
	}
	return op, true
}

// selfBusy: the call was refused because its own thread held the lock.
func (r *run) selfBusy(o *operation) bool {
	for _, m := range o.sent {
		if m.exec != nil && r.stateBefore(o.Lock, m.Msg, m.exec.AtNs).Owner == o.who {
			return true
		}
	}
	return false
}

// mostLeaseMs is the lease that a call asked for.
func (r *run) mostLeaseMs(o *operation) int64 {
	if o.LeaseNs > 0 {
		return o.LeaseNs / millisecond
	}
	return r.rec.Params.Watchdog.Milliseconds()
}

// effects are the changes that a call's own commands made of its hold.
func (r *run) effects(o *operation) []change {
	var out []change
	for _, c := range o.changes {
		moved := c.before.Owner != c.after.Owner || c.before.Count != c.after.Count || c.before.ExpiresMs != c.after.ExpiresMs
		if moved && (c.before.Owner == o.who || c.after.Owner == o.who || o.Action == model.ActForceUnlock) {
			out = append(out, c)
		}
	}
	return out
}

// lease says which lease an operation started: its length from what the server
// set, and, settled, when it ran out.
func (r *run) lease(op *Op, c change, settled bool) {
	if c.after.ExpiresMs < 0 || !c.after.Held() {
		return
	}
	ms := c.after.ExpiresMs - c.at/millisecond
	op.LeaseMs = &ms
	if !settled {
		return
	}
	op.NeverExpires = true
	for _, later := range r.after(op.Lock, c.at) {
		if later.expired && later.before.Owner == c.after.Owner && later.before.ExpiresMs == c.after.ExpiresMs && later.ended() {
			at := max(later.at, op.CallNs)
			op.ExpireNs, op.NeverExpires = &at, false
			return
		}
		if later.fault > 0 && later.ended() {
			// Removed by another hand, which may stand before this operation in
			// the order: then its lease ran out like any other.
			op.NeverExpires = false
			return
		}
		if later.before.Owner != later.after.Owner || later.before.ExpiresMs != later.after.ExpiresMs {
			// Replaced or given back. In an order in which it is not, because the two
			// were under way at one time, it runs out.
			at := max((c.after.ExpiresMs+1)*millisecond, op.CallNs)
			op.ExpireNs, op.NeverExpires = &at, false
			return
		}
	}
}

// inTurn says whether a call has a turn from its first try on: one that does not wait
// has none, unless that gave it the lock or a place in the queue.
func (r *run) inTurn(o *operation, first *msg) bool {
	if o.Action == model.ActTryLockTimed && o.WaitNs == 0 {
		now := r.stateAt(o.Lock, first.exec.AtNs)
		return now.Owner == o.who || slices.Contains(now.Queue, o.who)
	}
	return o.Action != model.ActTryLock
}

// evicted: the server took the call out of its queue while it still waited.
func (r *run) evicted(o *operation) bool {
	until := min(o.returned(), r.endNs)
	return slices.ContainsFunc(r.departures(o.Lock)[o.who], func(c change) bool {
		return o.AtNs <= c.at && c.at <= until && c.evicts(o.who)
	})
}

// queuedUntil says whether a call that was granted nothing stood in the queue,
// and until when: until it returned, and one of the dead, or of those who wait
// to the end, until it was taken out. One that was taken out and came back, because
// what it had sent was late, stood there until the last time.
func (r *run) queuedUntil(o *operation) (until int64, queued bool) {
	first := o.first("acquire")
	if !r.rec.Params.Fair || first == nil || !slices.Contains(r.stateAt(o.Lock, first.exec.AtNs).Queue, o.who) {
		return 0, false
	}
	until = o.returned()
	if until == math.MaxInt64 || until < first.exec.AtNs || r.goneAt(o.who) <= until { // nobody takes it out but the server
		until = r.rec.Events[len(r.rec.Events)-1].AtNs
	}
	end, in := until, true
	for _, c := range r.after(o.Lock, first.exec.AtNs) {
		if c.at >= until {
			break
		}
		was := in
		switch in = slices.Contains(c.after.Queue, o.who); {
		case in:
			end = until
		case was:
			end = c.at
		}
	}
	return end, end >= first.exec.AtNs
}

// renewals writes the watchdog's renewals.
func (r *run) renewals(lock string, settled bool) []Op {
	var ops []Op
	for _, m := range r.ordered {
		if m.Script != "renew" {
			continue
		}
		for i, l := range m.Locks {
			if l != lock || i >= len(m.Owners) {
				continue
			}
			process, thread := splitName(m.Owners[i])
			op := Op{Process: process, Thread: thread, Lock: lock, Op: OpRenew, CallNs: m.AtNs, Outcome: model.AnswerUnknown}
			known := m.delivered >= 0
			if m.exec == nil {
				if settled {
					continue
				}
			} else if known || settled {
				ret := m.delivered
				if !known {
					ret = m.exec.AtNs
				}
				op.ReturnNs = &ret
				op.Outcome = model.AnswerNotHeld
				if r.heldBefore(lock, m).Owner == m.Owners[i] {
					op.Outcome = model.AnswerRenewed
				}
				if strings.HasPrefix(m.exec.Reply, "(error)") {
					continue
				}
			}
			if c, ok := r.changeBy(lock, m.Msg); ok && op.Outcome != model.AnswerNotHeld {
				r.lease(&op, c, settled)
			} else if op.Outcome != model.AnswerNotHeld {
				ms := r.rec.Params.Watchdog.Milliseconds()
				op.LeaseMs = &ms
				if settled && m.exec != nil {
					r.sameLease(&op, lock, m)
				}
			}
			ops = append(ops, op)
		}
	}
	return ops
}

// sameLease is lease for a renewal that set the expiry to what it was.
func (r *run) sameLease(op *Op, lock string, m *msg) {
	now := r.stateAt(lock, m.exec.AtNs)
	r.lease(op, change{at: m.exec.AtNs, before: now, after: now}, true)
}

func (r *run) heldBefore(lock string, m *msg) model.LockState {
	return r.stateBefore(lock, m.Msg, m.exec.AtNs)
}

func (r *run) changeBy(lock string, msg int) (change, bool) {
	if i := r.changed[changeOf{lock, msg}]; i > 0 {
		return r.states[lock][i-1], true
	}
	return change{}, false
}

func splitName(who string) (process string, thread int) {
	process, number, _ := strings.Cut(who, "/")
	for _, d := range number {
		thread = thread*10 + int(d-'0')
	}
	return process, thread
}
