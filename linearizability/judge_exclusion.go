package linearizability

import (
	"cmp"
	"fmt"
	"slices"

	"lockstep/model"
)

// judgeMutualExclusion: two threads believe to hold at one instant.
func judgeMutualExclusion(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		beliefs := r.beliefs(lock)
		slices.SortStableFunc(beliefs, func(a, b belief) int { return cmp.Compare(a.from, b.from) })
		// Of those that began earlier, the one that lasts longest overlaps if
		// any does.
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

func (r *run) overlap(lock string, a, b belief) Finding {
	f := Finding{
		Judge: model.JudgeMutualExclusion, Verdict: Broken, AtNs: b.from,
		Ops: []OpRef{a.grant.ref(), b.grant.ref()},
	}
	loser := r.withoutHold(lock, a, b, b.from)
	loss, how, excuses := r.howLost(lock, loser, b.from)
	if loser.who == b.who {
		how = "; " + b.who + " did not hold it by then" + how
	}
	f.Facts = model.Facts{Lock: lock, Thread: loser.who, Loss: loss}
	f.Why = fmt.Sprintf("%s was granted %s at %s while %s believed to hold it since %s%s",
		b.who, lock, model.At(b.from), a.who, model.At(a.from), how)
	f.Excuses = excuses
	return f
}

// withoutHold returns the believer, of two, that does not hold the lock at an instant:
// the one that began earlier, unless the other lost it before its grant came back.
func (r *run) withoutHold(lock string, a, b belief, at int64) belief {
	if r.stateAt(lock, at).Owner == a.who {
		return b
	}
	return a
}

// howLost says how a's hold had ended on the server before the instant at, as a fact
// and as a clause of a sentence, and what excuses it. The loss is nil when the server
// never ended that hold.
func (r *run) howLost(lock string, a belief, at int64) (loss *model.Loss, how string, excuses []model.Excuse) {
	ended := func(cause model.LossCause, c *change) *model.Loss {
		l := &model.Loss{Cause: cause, Thread: a.who, Lock: lock, AtNs: c.at, Fault: c.fault}
		if c.by != nil {
			l.Msg = c.by.Msg
		}
		return l
	}
	since := a.from
	if m := r.entered(a.first); m != nil && m.exec != nil {
		since = m.exec.AtNs
	}
	var first, lost *change
	for i, c := range r.states[lock] {
		if c.at > at || c.before.Owner != a.who || c.after.Owner == a.who {
			continue
		}
		lost = &r.states[lock][i]
		if first == nil && since <= c.at {
			first = lost
		}
	}
	if lost != nil && lost.by != nil && slices.Contains(lost.by.owners, a.who) && first != nil {
		// Its own release ended it: a thread that lost its levels and entered
		// again has fewer than it believes.
		lost = first
	}
	if lost != nil && first != nil && r.unheard(lock, *lost, at) {
		lost = first // what it believes in is an earlier hold
	}
	switch {
	case (lost == nil || lost.by != nil && slices.Contains(lost.by.owners, a.who)) && r.shortened(lock, a, at) != nil:
		s := r.shortened(lock, a, at)
		t := r.fault(s.fault)
		return ended(model.LossShortened, s), ": " + t.text + " had taken from it at " + model.At(t.from),
			[]model.Excuse{{Circumstance: model.HoldRemoved, Fault: t.number, Why: t.text + " at " + model.At(t.from)}}
	case lost == nil:
		return nil, ": the server never ended that hold, or never knew of it", nil
	case lost.fault > 0:
		t := r.fault(lost.fault)
		return ended(model.LossRemoved, lost), fmt.Sprintf(": %s had removed it at %s", t.text, model.At(lost.at)),
			[]model.Excuse{{Circumstance: model.HoldRemoved, Fault: lost.fault, Why: t.text + " at " + model.At(t.from)}}
	case lost.by != nil && lost.by.Op > 0 && r.ops[lost.by.Op-1].Action == model.ActForceUnlock:
		who := r.ops[lost.by.Op-1].who
		return ended(model.LossForced, lost), fmt.Sprintf(": %s had forced it open at %s", who, model.At(lost.at)),
			[]model.Excuse{{Circumstance: model.HoldRemoved, Why: who + " forced it open at " + model.At(lost.at)}}
	case lost.by != nil:
		return ended(model.LossEnded, lost), fmt.Sprintf(": %s of %s had ended it at %s", lost.by.Script, name(lost.by.owners), model.At(lost.at)), nil
	}
	how = ": its lease had ended at " + model.At(lost.at)
	excuses = r.whyExpired(lock, a, *lost)
	if s := r.shortened(lock, a, lost.at); s != nil && s.after.ExpiresMs < s.before.ExpiresMs {
		t := r.fault(s.fault)
		how += fmt.Sprintf(", which %s had shortened at %s", t.text, model.At(s.at))
		excuses = append(excuses, model.Excuse{Circumstance: model.HoldRemoved, Fault: s.fault, Why: t.text + " at " + model.At(t.from)})
	}
	for _, c := range r.removedAndBroughtBack(lock, a.who, since, lost.at) {
		t := r.fault(c.fault)
		how += fmt.Sprintf(", and %s had removed it at %s", t.text, model.At(c.at))
		excuses = append(excuses, model.Excuse{Circumstance: model.HoldRemoved, Fault: c.fault, Why: t.text + " at " + model.At(t.from)})
	}
	return ended(model.LossExpired, lost), how, excuses
}

// unheard says whether the hold that ended with a change was begun by a call that
// had not said so at an instant.
func (r *run) unheard(lock string, lost change, at int64) bool {
	for _, c := range slices.Backward(r.states[lock]) {
		if c.at < lost.at && c.started() && c.after.Owner == lost.before.Owner {
			if c.by == nil || c.by.Op == 0 {
				return false
			}
			o := r.ops[c.by.Op-1]
			return o.outcome != model.Granted || o.returned() > at
		}
	}
	return false
}

// removedAndBroughtBack are the faults between two instants that removed a thread's
// hold which a failover then brought back, as it had been before.
func (r *run) removedAndBroughtBack(lock, who string, from, to int64) []change {
	var removed, out []change
	for _, c := range r.states[lock] {
		switch {
		case c.at < from || c.at >= to || c.before.Owner == c.after.Owner:
		case c.before.Owner == who:
			removed = nil
			if c.fault > 0 {
				removed = []change{c}
			}
		case c.after.Owner == who && c.fault > 0:
			out = append(out, removed...)
		}
	}
	return out
}

// shortened finds a fault that took from a's hold without ending it: a failover
// that lost a renewal or an entry.
func (r *run) shortened(lock string, a belief, at int64) *change {
	for i, c := range r.states[lock] {
		if c.fault > 0 && a.from <= c.at && c.at <= at && c.before.Owner == a.who && c.after.Owner == a.who {
			return &r.states[lock][i]
		}
	}
	return nil
}

// whyExpired gives what kept a believer from noticing, or from renewing in
// time, that its hold ended with its lease.
func (r *run) whyExpired(lock string, a belief, lost change) []model.Excuse {
	var out []model.Excuse
	for _, p := range r.pauses(a.who) {
		// Past the lease: it began while the hold lived and outlasted it.
		if p.from < lost.at && lost.at < p.to {
			out = append(out, model.Excuse{Circumstance: model.HolderStopped, Fault: p.number,
				Why: fmt.Sprintf("%s from %s to %s", p.text, model.At(p.from), model.At(p.to))})
		}
	}
	if a.lease > 0 {
		return out // nothing renews it
	}
	// What kept the grant from coming back kept the first renewal from being sent.
	granted := r.entered(a.first)
	from := a.from
	met := []trouble{}
	if granted != nil {
		from = granted.AtNs
		for _, h := range granted.hits {
			met = append(met, trouble{number: h.Fault, from: h.AtNs, to: max(h.AtNs, granted.delivered)})
		}
	}
	for _, n := range append(met, r.metRenewals(lock, a.who, from, lost.at)...) {
		t := r.fault(n.number)
		if n.to+int64(r.rec.Params.Watchdog/3) > lost.at {
			out = append(out, model.Excuse{Circumstance: model.HolderCutOff, Fault: n.number,
				Why: fmt.Sprintf("%s, last at %s", t.text, model.At(n.to))})
		}
	}
	return out
}

// metRenewals are the faults that met a holder's renewals within [from, to],
// or kept them from leaving, each with the last instant at which it did.
func (r *run) metRenewals(lock, who string, from, to int64) []trouble {
	last := map[int]int64{}
	for _, m := range r.ordered {
		if m.Script != "renew" || !slices.Contains(m.owners, who) || !slices.Contains(m.Locks, lock) {
			continue
		}
		for _, h := range m.hits {
			if from <= h.AtNs && h.AtNs <= to {
				last[h.Fault] = max(last[h.Fault], h.AtNs)
			}
		}
	}
	for _, p := range r.cuts(who) {
		if p.from <= to && p.to >= from {
			last[p.number] = max(last[p.number], min(p.to, to))
		}
	}
	for _, p := range r.pauses(who) {
		// A pause that held no renewal back, and was too short to cover the time
		// of one, changed nothing.
		if p.from <= to && p.to >= from && (p.to-p.from >= int64(r.rec.Params.Watchdog/3) || r.heldBack(p, who)) {
			last[p.number] = max(last[p.number], min(p.to, to))
		}
	}
	for _, t := range r.faults {
		if t.process == "" && t.from <= to && r.silentUntil(t, lock, who) >= from && t.spec.Interrupts() {
			last[t.number] = max(last[t.number], min(r.silentUntil(t, lock, who), to))
		}
	}
	var out []trouble
	for _, f := range sortedKeys(last) {
		out = append(out, trouble{number: f, from: from, to: last[f]})
	}
	return out
}

// silentUntil is when a server's fault no longer kept renewals of a thread from
// it: where it ended all connections, when the first is sent after that, or when
// that should have been, a client finding its connection dead only when it uses it.
func (r *run) silentUntil(t trouble, lock, who string) int64 {
	if !t.spec.EndsConnections() {
		return t.to
	}
	until := t.to + int64(r.rec.Params.Watchdog/3+resend)
	for _, m := range r.ordered {
		if m.Script == "renew" && m.AtNs > t.to && slices.Contains(m.owners, who) && slices.Contains(m.Locks, lock) {
			until = min(until, m.AtNs)
		}
	}
	return until
}

// heldBack: a renewal of the thread was sent, or its answer came, in the pause.
func (r *run) heldBack(p trouble, who string) bool {
	return slices.ContainsFunc(r.ordered, func(m *msg) bool {
		return m.Script == "renew" && slices.Contains(m.owners, who) && m.AtNs <= p.to && (m.AtNs >= p.from || m.delivered >= p.from)
	})
}
