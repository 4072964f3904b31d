package judges

import (
	"cmp"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// exclusionJudge finds two threads that believe to hold a lock at the same instant.
type exclusionJudge struct{ *run }

func (r exclusionJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		beliefs := r.beliefs(lock)
		slices.SortStableFunc(beliefs, func(a, b belief) int { return cmp.Compare(a.from, b.from) })
		// If any earlier belief overlaps, the one that lasts longest does.
		var longest *belief
		for i := range beliefs {
			b := &beliefs[i]
			if longest != nil && longest.who != b.who && b.from < longest.to {
				out = append(out, r.overlap(lock, *longest, *b))
			}
			if longest == nil || b.to > longest.to {
				longest = b
			}
		}
	}
	return out
}

func (r exclusionJudge) overlap(lock string, a, b belief) Finding {
	f := Finding{
		Judge: model.JudgeMutualExclusion, Verdict: Broken, AtNs: b.from,
		Ops: []OpRef{refOf(a.grant), refOf(b.grant)},
	}
	loser := r.withoutHold(lock, a, b, b.from)
	loss, ending, excuses := r.howLost(lock, loser, b.from)
	f.Facts = model.Facts{Lock: lock, Thread: loser.who, Loss: loss}
	f.Detail = Overlap{Earlier: a.who, EarlierNs: a.from, Later: b.who, Answer: b.grant.Answer(), Ending: ending}
	f.Excuses = excuses
	return f
}

// withoutHold returns which of two believers does not hold the lock at an instant: the one that
// began earlier, unless the other lost the lock before its grant came back.
func (r exclusionJudge) withoutHold(lock string, a, b belief, at int64) belief {
	if r.StateAt(lock, at).Owner == a.who {
		return b
	}
	return a
}

// howLost returns how a's hold had ended on the server before the instant at, with the excuses for
// it. The loss is nil if the server never knew of that hold.
func (r exclusionJudge) howLost(lock string, a belief, at int64) (loss *model.Loss, e Ending, excuses []model.Excuse) {
	ended := func(cause model.LossCause, c *trace.Change) *model.Loss {
		l := &model.Loss{Cause: cause, Thread: a.who, Lock: lock, AtNs: c.AtNs, Fault: c.Fault}
		if c.By != nil {
			l.Msg = c.By.Msg
		}
		return l
	}
	since := a.from
	if m := r.entered(a.first); m != nil && m.Executed != nil {
		since = m.Executed.AtNs
	} else if !a.first.Action.Acquires() {
		since = a.first.AtNs // the hold that an extension prolongs is there before
	}
	var first, lost *trace.Change
	for i, c := range r.Changes(lock) {
		if c.AtNs > at || c.Before.Owner != a.who || c.After.Owner == a.who {
			continue
		}
		lost = r.Changes(lock)[i]
		if first == nil && since <= c.AtNs {
			first = lost
		}
	}
	if lost != nil && lost.MadeFor(a.who) && first != nil {
		// Its own release ended it: a thread that lost its levels and entered
		// again has fewer than it believes.
		lost = first
	}
	if lost != nil && first != nil && r.notTold(lock, lost, at) {
		lost = first // the thread believes in an earlier hold
	}
	if lost != nil && r.Record.Params.PerGrant && a.first.Action.Acquires() && lost.AtNs < a.first.AtNs {
		lost = nil // an earlier hold ended, and the server never knew this one
	}
	switch {
	case (lost == nil || lost.MadeFor(a.who)) && r.shortened(lock, a, since, at) != nil:
		s := r.shortened(lock, a, since, at)
		t := r.Fault(s.Fault)
		return ended(model.LossShortened, s), Ending{Cause: model.LossShortened, AtNs: t.FromNs, Fault: t.Text},
			[]model.Excuse{takenBy(t, model.HoldRemoved, faultAt(t.Text, t.FromNs))}
	case lost == nil:
		// One of several servers may forget its part before there is a majority, and a server one of several keys
		// before it has the last.
		forgot := r.partsLost(a.first.AtNs, at)
		if len(forgot) == 0 {
			forgot = r.removedDuring(a.first)
		}
		for _, f := range forgot {
			excuses = append(excuses, takenBy(f, model.HoldRemoved, faultAt(f.Text, f.FromNs)))
			if r.unseen() {
				e = Ending{Cause: model.LossRemoved, AtNs: f.FromNs, Fault: f.Text}
			}
		}
		return nil, e, excuses
	case lost.Fault > 0:
		t := r.Fault(lost.Fault)
		return ended(model.LossRemoved, lost), Ending{Cause: model.LossRemoved, AtNs: lost.AtNs, Fault: t.Text},
			[]model.Excuse{takenBy(t, model.HoldRemoved, faultAt(t.Text, t.FromNs))}
	case forced(lost):
		who := lost.Call().Caller
		return ended(model.LossForced, lost), Ending{Cause: model.LossForced, AtNs: lost.AtNs, Thread: who},
			[]model.Excuse{{Circumstance: model.HoldRemoved, Cause: model.Cause{Kind: model.CauseForced, Thread: who, AtNs: lost.AtNs}}}
	case lost.By != nil && !lost.Overdue():
		for _, f := range r.removedUntil(a.first, lost.AtNs) { // a part of the hold that its State does not read
			excuses = append(excuses, takenBy(f, model.HoldRemoved, faultAt(f.Text, f.FromNs)))
		}
		return ended(model.LossEnded, lost), Ending{Cause: model.LossEnded, AtNs: lost.AtNs, By: senderOf(lost.By)}, excuses
	}
	e = Ending{Cause: model.LossExpired, AtNs: lost.AtNs, Unleased: r.unleased(lost)}
	harmed := func(kind HarmKind, t trace.Fault, atNs int64) { e.Before = append(e.Before, Harm{kind, t.Text, atNs}) }
	excuses = r.whyExpired(lock, a, lost)
	if s := r.shortened(lock, a, since, lost.AtNs); s != nil && s.After.ExpiresMs < s.Before.ExpiresMs {
		t := r.Fault(s.Fault)
		harmed(HarmShortened, t, s.AtNs)
		excuses = append(excuses, takenBy(t, model.HoldRemoved, faultAt(t.Text, t.FromNs)))
	}
	for _, t := range r.shortenedUnseen(lock, a, since, lost) {
		if !slices.ContainsFunc(excuses, func(e model.Excuse) bool { return e.Fault == t.Number }) {
			harmed(HarmUnseen, t, t.FromNs)
			excuses = append(excuses, takenBy(t, "", faultAt(t.Text, t.FromNs)))
		}
	}
	for _, c := range r.removedAndBroughtBack(lock, a.who, since, lost.AtNs) {
		t := r.Fault(c.Fault)
		harmed(HarmRemoved, t, c.AtNs)
		excuses = append(excuses, takenBy(t, model.HoldRemoved, faultAt(t.Text, t.FromNs)))
	}
	return ended(model.LossExpired, lost), e, excuses
}

// shortenedUnseen returns the steps of servers' clocks that shortened the hold of a thread although
// no change of the hold shows it. They shortened the hold before its grant came back, or may have
// shortened a part of a hold on several servers before there was a majority.
func (r exclusionJudge) shortenedUnseen(lock string, a belief, since int64, lost *trace.Change) []trace.Fault {
	var out []trace.Fault
	for _, c := range r.ChangesUpTo(lock, lost.AtNs) {
		if c.Fault == 0 || c.AtNs < since || c.Before.Owner != a.who || c.After.Owner != a.who || c.After.ExpiresMs >= c.Before.ExpiresMs {
			continue
		}
		if t := r.Fault(c.Fault); t.Spec.StepsServerClock() {
			out = append(out, t)
		}
	}
	if a.lease > 0 && lost.AtNs >= r.attemptSent(a.grant)+a.lease {
		return out // it ended with its lease
	}
	for _, t := range r.partsLost(a.first.AtNs, lost.AtNs) {
		if t.Spec.StepsServerClock() {
			out = append(out, t)
		}
	}
	return out
}

// notTold reports whether the call that began a hold, which the change lost ended, had not returned
// at an instant, or did not return with a grant.
func (r exclusionJudge) notTold(lock string, lost *trace.Change, at int64) bool {
	for _, c := range slices.Backward(r.Changes(lock)) {
		if c.AtNs < lost.AtNs && c.Started() && c.After.Owner == lost.Before.Owner {
			o := c.Call()
			return o != nil && (o.Outcome != model.Granted || o.ReturnedNs() > at)
		}
	}
	return false
}

// removedAndBroughtBack returns the changes between two instants in which a fault
// removed a hold of a thread that a failover then brought back.
func (r exclusionJudge) removedAndBroughtBack(lock, who string, from, to int64) []*trace.Change {
	var removed, out []*trace.Change
	for _, c := range r.Changes(lock) {
		switch {
		case c.AtNs < from || c.AtNs >= to || c.Before.Owner == c.After.Owner:
		case c.Before.Owner == who:
			removed = nil
			if c.Fault > 0 {
				removed = []*trace.Change{c}
			}
		case c.After.Owner == who && c.Fault > 0:
			out = append(out, removed...)
		}
	}
	return out
}

// shortened returns the first change between two instants in which a fault shortened the believer's
// hold without ending it, as a failover that loses a renewal does; nil if there is none.
func (r exclusionJudge) shortened(lock string, a belief, since, at int64) *trace.Change {
	for _, c := range r.Changes(lock) {
		if c.Fault > 0 && since <= c.AtNs && c.AtNs <= at && c.Before.Owner == a.who && c.After.Owner == a.who && (c.After.ExpiresMs < c.Before.ExpiresMs || c.After.Count < c.Before.Count) {
			return c
		}
	}
	return nil
}

// whyExpired returns the excuses for a hold that ended with its lease: the circumstances that kept
// the believer from noticing the end, or from renewing in time.
func (r exclusionJudge) whyExpired(lock string, a belief, lost *trace.Change) []model.Excuse {
	var out []model.Excuse
	for _, p := range r.pauses(a.who) {
		// Past its lease: the pause began while the hold existed, and outlasted it.
		if p.FromNs < lost.AtNs && lost.AtNs < p.ToNs {
			out = append(out, model.Excuse{Circumstance: model.HolderStopped, Fault: p.Number,
				Cause: model.Cause{Kind: model.CauseFaultFrom, Fault: p.Text, AtNs: p.FromNs, ToNs: p.ToNs}})
		}
	}
	if a.lease > 0 {
		return out // nothing renews it
	}
	period := int64(r.Record.Params.RenewalPeriod)
	if r.Record.Params.Endless {
		period = trace.Never - lost.AtNs // it is unknown how its session is kept alive
	}
	// A fault that delayed the grant on its way back also delayed the first renewal.
	granted := r.entered(a.first)
	from := a.from
	met := []trace.Fault{}
	if granted != nil {
		from = granted.AtNs
		for _, h := range granted.Hits {
			met = append(met, trace.Fault{Number: h.Fault, FromNs: h.AtNs, ToNs: max(h.AtNs, granted.RepliedNs)})
		}
	}
	for _, n := range append(met, r.metRenewals(lock, a.who, from, lost.AtNs)...) {
		t := r.Fault(n.Number)
		if n.ToNs > lost.AtNs-period {
			out = append(out, model.Excuse{Circumstance: model.HolderCutOff, Fault: n.Number,
				Cause: model.Cause{Kind: model.CauseFaultLast, Fault: t.Text, ToNs: n.ToNs}})
		}
	}
	return out
}

// metRenewals returns the faults that met a holder's renewals within [from, to], or
// kept them from leaving. Each ends at the last instant at which it did so. A process may renew all its holds one after
// another, so a fault that met any of these renewals may have. A client that has heard nothing for a lease may give up.
func (r *run) metRenewals(lock, who string, from, to int64) []trace.Fault {
	last, heard := map[int]int64{}, from // when the last request that prolonged the hold left, of those with an answer
	for _, m := range r.CommandsFrom(model.ProcessOf(who)) {
		if m.SpeaksFor(who) && 0 <= m.RepliedNs && m.RepliedNs <= to && slices.ContainsFunc(m.Changes, func(c *trace.Change) bool { return c.Lock == lock && c.After.Owner == who }) {
			heard = max(heard, m.AtNs)
		}
		if m.Script != model.RoleRenew {
			continue
		}
		for _, h := range m.Hits {
			at := max(h.AtNs, m.AtNs)
			end := at
			if h.Msg != m.Msg {
				// The rule met an earlier message. The renewal, and any that its client sends
				// only when this one is answered, waits behind that message.
				end = max(at, min(m.EndNs(), m.AtNs+int64(r.Record.Params.GiveUp)))
			}
			if at <= to && at-heard >= int64(r.Record.Params.Watchdog) {
				end = to
			}
			if at <= to && end >= from {
				last[h.Fault] = max(last[h.Fault], min(end, to))
			}
		}
	}
	// A client whose connection does not come about, or is reset, sends no renewal.
	for _, x := range r.heldConnections(model.ProcessOf(who)) {
		for _, f := range x.faults {
			if x.from <= to && x.to >= from {
				last[f] = max(last[f], min(x.to, to))
			}
		}
	}
	for _, p := range r.partitions(who) {
		if p.FromNs <= to && p.ToNs >= from {
			last[p.Number] = max(last[p.Number], min(p.ToNs, to))
		}
	}
	for _, p := range r.pauses(who) {
		// A pause that held no renewal back, and was too short to cover a renewal period, changed
		// nothing.
		if p.FromNs <= to && p.ToNs >= from && (p.ToNs-p.FromNs >= int64(r.Record.Params.RenewalPeriod) || r.heldBack(p, who)) {
			last[p.Number] = max(last[p.Number], min(p.ToNs, to))
		}
	}
	for _, t := range r.Faults {
		if t.Process == "" && t.FromNs <= to && r.silentUntil(t, lock, who) >= from && t.Spec.Interrupts() {
			last[t.Number] = max(last[t.Number], min(r.silentUntil(t, lock, who), to))
		}
	}
	var out []trace.Fault
	for _, f := range sortedKeys(last) {
		out = append(out, trace.Fault{Number: f, FromNs: from, ToNs: last[f]})
	}
	return out
}

// silentUntil returns when a fault of the server no longer kept the renewals of a
// thread from it. After a fault that ended all connections that is when the first
// renewal is sent, or should have been: a client finds its connection dead only when
// it uses it.
func (r *run) silentUntil(t trace.Fault, lock, who string) int64 {
	if !t.Spec.EndsConnections() {
		return t.ToNs
	}
	until := t.ToNs + int64(r.Record.Params.RenewalPeriod+r.Record.Params.Resend)
	for _, m := range r.CommandsOn(lock) {
		if m.Script == model.RoleRenew && m.AtNs > t.ToNs && m.SpeaksFor(who) {
			until = min(until, m.AtNs)
		}
	}
	return until
}

// heldBack reports whether a renewal of the thread was sent, or its answer arrived, in
// the pause.
func (r *run) heldBack(p trace.Fault, who string) bool {
	return slices.ContainsFunc(r.Commands, func(m *trace.Command) bool {
		return m.Script == model.RoleRenew && m.SpeaksFor(who) && m.AtNs <= p.ToNs && (m.AtNs >= p.FromNs || m.RepliedNs >= p.FromNs)
	})
}
