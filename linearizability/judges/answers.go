package judges

import (
	"cmp"
	"slices"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/model/trace"
)

// answerJudge compares the answer of each call with the holds of the servers while the call was
// under way. An answer is right if an instant of the call allows it. The holds are known, so that no
// order of the calls needs to be searched.
type answerJudge struct{ *run }

func (r answerJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		if r.resurrected(lock) {
			continue
		}
		for _, o := range r.CallsOn(lock) {
			if o.Return == nil || r.placed(o) {
				continue
			}
			excuses := r.memoryLost(o)
			if o.Outcome == model.Busy && r.stoodBefore(o) {
				excuses = append(excuses, r.outOfOrder(lock, o.ReturnedNs())...)
			}
			f := r.unplaced(o)
			f.Excuses = slices.CompactFunc(slices.SortedStableFunc(slices.Values(excuses), byFault), func(a, b model.Excuse) bool { return a == b })
			out = append(out, f)
			break // later answers may depend on the first
		}
	}
	return out
}

// byFault orders excuses without a fault last.
func byFault(a, b model.Excuse) int {
	return cmp.Or(cmp.Compare(uint(a.Fault-1), uint(b.Fault-1)), cmp.Compare(a.Circumstance, b.Circumstance))
}

// placed reports whether the servers allow the answer of a call at an instant of the call. An error and
// an unknown outcome say nothing.
func (r answerJudge) placed(o *trace.Call) bool {
	from, to := r.during(o)
	lock, who := o.Lock, o.Caller
	switch o.Outcome {
	case model.Extended:
		// A hold that the extension itself begins is another one, unless nobody had the lock in between.
		return r.lostAfter(o) || slices.ContainsFunc(r.HoldsOf(lock, who, r.lastHeard(o), to), func(h *trace.Hold) bool { return h.Began.Call() != o || r.resumes(h) })
	case model.Granted:
		return len(r.HoldsOf(lock, who, r.lastHeard(o), to)) > 0 || r.lostAfter(o) || r.returnedWith(o) != nil
	case model.Busy:
		return r.refusable(o)
	case model.Released, model.StillHeld:
		return r.gaveUp(o, from, to) || r.ranOut(lock, who, from, to) == o
	case model.NotHeld:
		if o.Action == model.ActForceUnlock {
			return !r.gaveUp(o, from, to) && (!r.StateAt(lock, from).Held() ||
				slices.ContainsFunc(r.ChangesWithin(lock, from, to), func(c *trace.Change) bool { return !(c.Before.Held() && c.After.Held()) }))
		}
		freed := r.ranOut(lock, who, from, to)
		return r.knowsNoHold(o) || r.FreeWithin(lock, who, from, to) && !r.gaveUp(o, from, to) || freed != nil && freed != o && freed.Action == model.ActUnlock
	}
	return true
}

// resumes reports whether a hold goes on with the one that its owner had before: it has the same value, no request
// ended that one, and nobody had the lock in between.
func (r answerJudge) resumes(h *trace.Hold) bool {
	var last *trace.Hold
	for _, x := range r.HoldsOf(h.Lock, h.Owner, 0, h.FromNs()) {
		if x != h {
			last = x
		}
	}
	return last != nil && last.Ended.By == nil && last.Value == h.Value && !r.HeldWithin(h.Lock, last.ToNs(), h.FromNs(), h.Owner)
}

// during returns the first and the last instant of a call, each as far apart as the clocks of a live run
// allow.
func (r *run) during(o *trace.Call) (fromNs, toNs int64) {
	u := int64(r.Record.Params.Uncertainty)
	return o.AtNs - u, o.ReturnedNs() + u
}

// lastHeard returns the instant at which the last request of a call ran whose answer the call had when it
// returned. A call that had no answer has heard nothing since it began.
func (r *run) lastHeard(o *trace.Call) int64 {
	at := o.AtNs
	for _, m := range o.Sent {
		if m.Executed != nil && m.RepliedNs >= 0 && m.RepliedNs <= o.ReturnedNs() {
			at = max(at, m.Executed.AtNs)
		}
	}
	return at - int64(r.Record.Params.Uncertainty)
}

// lostAfter reports whether a call had a hold that ended before the last request of the call ran, in a way
// that this request need not show: a fault or another thread took it, a command of the call itself did, or
// its lease was over while a fault delayed the call.
func (r answerJudge) lostAfter(o *trace.Call) bool {
	from, to := r.during(o)
	for _, h := range r.HoldsOf(o.Lock, o.Caller, from, to) {
		switch end := h.Ended; {
		case end == nil || end.AtNs > to || r.takenBack(o, h.Began):
			// The call did not lose it, or has asked again since.
		case end.Fault > 0 || end.By != nil:
			return true
		case slices.ContainsFunc(r.disturbing(o.Process), func(x span) bool { return x.from <= to && x.to >= from }):
			return true
		}
	}
	return false
}

// refusable reports whether a call may answer busy: somebody had the lock, it was closed, others had some
// of its parts, or left some, or another waiter was before the call.
func (r answerJudge) refusable(o *trace.Call) bool {
	from, to := r.during(o)
	self := ""
	if r.enters() && (!r.Record.Params.PerGrant || believer(r.beliefs(o.Lock), o.Caller, o.AtNs) != nil) {
		self = o.Caller // its owner enters again
	}
	but := func(h *trace.Hold) bool { return h.Owner == self || r.leftKnowingly(o, h) }
	if len(o.Sent) == 0 && r.heldByItsProcess(o) || r.HeldWithinBut(o.Lock, from, to, but) || r.Record.Params.Parts > 1 && (r.splits(o) || livenessJudge(r).partsLeftWithin(o.Lock, from, to)) {
		return true
	}
	return r.Record.Params.Fair && (r.behindGhost(o) || slices.ContainsFunc(r.CallsOn(o.Lock), func(x *trace.Call) bool {
		return x.Caller != o.Caller && (x.Action == model.ActLock || x.Action == model.ActTryLockTimed && x.WaitNs > 0) && from <= r.waitsUntil(x) && r.tried(x) <= to
	}))
}

// leftKnowingly reports whether a call itself began a hold, had the answer, and left the hold on the servers when it
// returned. A call whose wait was over when the answer came may not have read it, and neither may one that asked again. One
// that has a request without an answer may have tried to end the hold.
func (r answerJudge) leftKnowingly(o *trace.Call, h *trace.Hold) bool {
	m, ret := h.Began.By, o.ReturnedNs()
	if h.Owner != o.Caller || h.Began.Call() != o || m.DeliveredNs < 0 || m.DeliveredNs > ret || m.DeliveredNs >= o.InterruptedNs ||
		o.Action != model.ActTryLock && m.DeliveredNs >= o.WaitsUntilNs() {
		return false
	}
	if end := h.Ended; end != nil && (end.AtNs <= ret+int64(r.Record.Params.Uncertainty) || end.By != nil && (end.Call() == nil || end.Call() == o)) {
		return false // it gave the hold back, or the hold was over
	}
	return !slices.ContainsFunc(r.CommandsFrom(o.Process), func(x *trace.Command) bool {
		return x != m && (x.Call == o || x.Call == nil) && m.AtNs <= x.AtNs && x.AtNs <= ret && (x.DeliveredNs < 0 || x.DeliveredNs > ret || x.Call == o && x.AtNs > m.AtNs && x.Command == m.Command)
	})
}

// heldByItsProcess reports whether a thread of a call's process believed in a hold during the call, or had not yet
// returned from its unlock. Such a process need not ask a server.
func (r answerJudge) heldByItsProcess(o *trace.Call) bool {
	from, to := r.during(o)
	return slices.ContainsFunc(r.beliefs(o.Lock), func(b belief) bool {
		return model.ProcessOf(b.who) == o.Process && b.from <= to && from <= b.to
	}) || slices.ContainsFunc(r.CallsOn(o.Lock), func(x *trace.Call) bool {
		return x.Process == o.Process && x.Action == model.ActUnlock && x.AtNs <= to && from <= x.ReturnedNs()
	})
}

// behindGhost reports whether another thread stood in the queue during a call since a late request of its own had put it there.
func (r answerJudge) behindGhost(o *trace.Call) bool {
	from, to := r.during(o)
	ghosts := map[string]bool{} // that stand in the queue
	for _, c := range r.ChangesUpTo(o.Lock, to) {
		if c.AtNs > from && len(ghosts) > 0 {
			return true
		}
		for _, who := range entered(c.After.Queue, c.Before.Queue) {
			delete(ghosts, who)
		}
		for _, who := range entered(c.Before.Queue, c.After.Queue) {
			if who != o.Caller && givenUp(c) {
				ghosts[who] = true
			}
		}
	}
	return len(ghosts) > 0
}

// stoodBefore reports whether another thread stood in the queue of a fair lock during a call, whether it
// waited or not.
func (r answerJudge) stoodBefore(o *trace.Call) bool {
	from, to := r.during(o)
	other := func(s *model.LockState) bool {
		return slices.ContainsFunc(s.Queue, func(who string) bool { return who != o.Caller })
	}
	return r.Record.Params.Fair && (other(r.StateAt(o.Lock, from)) ||
		slices.ContainsFunc(r.ChangesWithin(o.Lock, from, to), func(c *trace.Change) bool { return other(c.Before) || other(c.After) }))
}

// tried returns when the first try of a call ran that has a place in the order, or trace.Never.
func (r answerJudge) tried(o *trace.Call) int64 {
	if first := o.First(model.RoleAcquire); first != nil && r.inTurn(o, first) {
		return first.Executed.AtNs
	}
	return trace.Never
}

// waitsUntil returns until when others may have to wait behind an acquire: until it returns, or, if it was
// granted nothing and does not know that it left, until it has left the queue.
func (r answerJudge) waitsUntil(o *trace.Call) int64 {
	until := o.ReturnedNs()
	if o.Outcome == model.Failed || o.Outcome == model.Unknown || o.Return == nil {
		if queued, ok := r.queuedUntil(o); ok {
			until = max(until, queued)
		}
	}
	return until
}

// gaveUp reports whether a call ended a hold, or a level of one, between two instants.
func (r answerJudge) gaveUp(o *trace.Call, from, to int64) bool {
	return slices.ContainsFunc(r.ChangesWithin(o.Lock, from, to), func(c *trace.Change) bool { return r.gaveUpBy(o, c) })
}

// gaveUpBy reports whether a change is the end of a hold, or of a level of one, by a call: of a hold of its
// caller, or of anybody's if it forces the lock open. If the servers count levels, the answer says whether one
// is left. A command of an unknown thread of the caller's process may be of the call.
func (r *run) gaveUpBy(o *trace.Call, c *trace.Change) bool {
	switch {
	case o.Action == model.ActForceUnlock:
		return c.Call() == o && c.Before.Held()
	case c.Call() == o && c.Before.Owner == o.Caller && c.After.Owner == o.Caller && c.Before.Value != c.After.Value && o.Action == model.ActUnlock:
		return true // the servers gave the lock to another request of the caller, which had been given up
	case c.Before.Owner != o.Caller || !c.Ended() && c.Gain(o.Caller) >= 0:
		return false
	case !r.Record.Params.PerGrant && !r.Record.Params.Uncounted && o.Outcome != model.NotHeld:
		return c.Call() == o && c.Ended() == (o.Outcome == model.Released) && trace.Levels(c.Before, o.Caller)-trace.Levels(c.After, o.Caller) == 1
	}
	if o.Outcome != model.NotHeld && r.setEnd(o, c) {
		return true
	}
	expires := (c.Before.ExpiresMs + 1) * millisecond
	if atOnce := expires-millisecond <= c.AtNs && c.AtNs <= expires+int64(r.Record.Params.Uncertainty); c.By == nil && c.Fault == 0 && !atOnce && o.Outcome != model.NotHeld && len(o.Sent) > 0 {
		return true // not the end of the lease: servers that agree on a request may run it after they have refused to answer it
	}
	// An unlock that found nothing may have come after another part of its process, such as a close, gave the hold up.
	return c.Call() == o || o.Outcome != model.NotHeld && c.Call() == nil && c.By != nil && (c.MadeFor(o.Caller) || len(c.By.Threads) == 0 && c.By.Process == o.Process)
}

// setEnd reports whether a change is the end of the rest of a hold in several parts, of which a request of the call had
// removed some.
func (r *run) setEnd(o *trace.Call, c *trace.Change) bool {
	return c.By == nil && c.Fault == 0 && c.Ended() && r.Record.Params.Parts > 1 &&
		slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return m.Executed != nil && m.Executed.AtNs <= c.AtNs })
}

// ranOut returns the call that set the end of the last hold which a thread has between two instants, to the second one
// at the latest. The clocks of the servers count milliseconds. It returns nil if there is none.
func (r answerJudge) ranOut(lock, thread string, from, to int64) *trace.Call {
	holds := r.HoldsOf(lock, thread, from, to)
	if len(holds) == 0 {
		return nil
	}
	h := holds[len(holds)-1]
	if n := len(h.Moved); n > 0 {
		if end := h.Moved[n-1].After.ExpiresMs; 0 <= end && end*millisecond <= to+millisecond {
			return h.Moved[n-1].Call()
		}
	}
	return nil
}

// unplaced returns the finding about an answer that the servers do not allow.
func (r answerJudge) unplaced(o *trace.Call) Finding {
	ret := o.ReturnedNs()
	op := linearizability.Op{Process: o.Process, Thread: o.Thread, Lock: o.Lock, CallNs: o.AtNs, ReturnNs: &ret, Outcome: string(o.Answer())}
	in := model.Input{ID: o.Op, Owner: o.Caller, Answer: string(o.Outcome)}
	at := o.AtNs
	switch {
	case o.Action.Acquires():
		op.Op, in.Do = linearizability.OpAcquire, model.DoAcquire
	case o.Action == model.ActForceUnlock:
		op.Op, in.Do = linearizability.OpForceRelease, model.DoForceRelease
	case o.Action == model.ActExtend:
		op.Op, in.Do = linearizability.OpRenew, model.DoRenew
		if o.Outcome == model.Extended {
			op.Outcome, in.Answer = model.AnswerRenewed, model.AnswerRenewed
		}
	default:
		op.Op, in.Do = linearizability.OpRelease, model.DoRelease
	}
	m := lastRun(o)
	d := Unplaceable{Lock: o.Lock}
	if m != nil {
		d.RanNs = m.Executed.AtNs
	}
	if m != nil && m.Executed.AtNs <= ret {
		at = m.Executed.AtNs
	}
	held := r.StateAt(o.Lock, at)
	// The answer is about the hold that the call met, which its commands may have ended.
	if m != nil && m.Before(o.Lock).Held() && m.Before(o.Lock).Owner != o.Caller {
		held = m.Before(o.Lock)
	}
	if o.Outcome == model.NotHeld {
		for _, c := range r.ChangesWithin(o.Lock, o.AtNs, ret) {
			if r.gaveUpBy(o, c) {
				held = c.Before
			}
		}
	}
	if o.Outcome == model.Extended {
		for _, h := range r.HoldsOf(o.Lock, o.Caller, o.AtNs, ret) {
			if h.Began.Call() == o {
				held = h.Began.Before // the hold that the caller asked to extend was gone
			}
		}
	}
	refused := linearizability.Refused{Op: op, State: model.State{Owner: held.Owner, Count: held.Count}, In: in, By: model.Held}
	if r.Record.Params.Fair && o.Outcome == model.Busy {
		refused.By = model.NobodyWaits
	}
	d.Reason.Refused, d.Closed = &refused, held.ClosedMs > 0
	return Finding{Judge: model.JudgeLinearizable, Verdict: Broken, AtNs: o.AtNs, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Lock: o.Lock, Thread: o.Caller}, Detail: d}
}
