package linearizability

import (
	"fmt"
	"slices"
	"time"

	"lockstep/model"
)

// judgeMutualExclusion: two threads believe to hold at one instant.
func judgeMutualExclusion(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		beliefs := r.beliefs(lock)
		slices.SortStableFunc(beliefs, func(a, b belief) int { return int(sign(a.from - b.from)) })
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

func sign(n int64) int64 {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func (r *run) overlap(lock string, a, b belief) Finding {
	f := Finding{
		Judge: model.JudgeMutualExclusion, Verdict: Broken, AtNs: b.from,
		Ops: []OpRef{a.grant.ref(), b.grant.ref()},
	}
	how, excuses := r.howLost(lock, a, b.from)
	f.Why = fmt.Sprintf("%s was granted %s at %s while %s believed to hold it since %s%s",
		b.who, lock, model.At(b.from), a.who, model.At(a.from), how)
	f.Excuses = excuses
	return f
}

// howLost says how a's hold had ended on the server before the instant at, and
// what excuses it.
func (r *run) howLost(lock string, a belief, at int64) (how string, excuses []model.Excuse) {
	var lost *change
	for i, c := range r.states[lock] {
		if c.at <= at && c.before.Owner == a.who && c.after.Owner != a.who {
			lost = &r.states[lock][i]
		}
	}
	switch {
	case lost == nil && r.shortened(lock, a, at) != nil:
		t := r.fault(r.shortened(lock, a, at).fault)
		return ": " + t.text + " had taken from it at " + model.At(t.from),
			[]model.Excuse{{Circumstance: model.HoldRemoved, Fault: t.number, Why: t.text + " at " + model.At(t.from)}}
	case lost == nil:
		return ": the server never ended that hold, or never knew of it", nil
	case lost.fault > 0:
		t := r.fault(lost.fault)
		return fmt.Sprintf(": %s had removed it at %s", t.text, model.At(lost.at)),
			[]model.Excuse{{Circumstance: model.HoldRemoved, Fault: lost.fault, Why: t.text + " at " + model.At(t.from)}}
	case lost.by != nil && lost.by.Op > 0 && r.ops[lost.by.Op-1].Action == model.ActForceUnlock:
		who := r.ops[lost.by.Op-1].who
		return fmt.Sprintf(": %s had forced it open at %s", who, model.At(lost.at)),
			[]model.Excuse{{Circumstance: model.HoldRemoved, Why: who + " forced it open at " + model.At(lost.at)}}
	case lost.by != nil:
		return fmt.Sprintf(": %s of %s had ended it at %s", lost.by.Script, name(lost.by.owners), model.At(lost.at)), nil
	}
	how = fmt.Sprintf(": its lease had ended at %s", model.At(lost.at))
	return how, r.whyExpired(lock, a, *lost)
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
	for _, n := range r.metRenewals(lock, a.who, a.from, lost.at) {
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
		if t.process == "" && t.from <= to && t.to >= from && serverFault(t) {
			last[t.number] = max(last[t.number], min(t.to, to))
		}
	}
	var out []trouble
	for _, f := range sortedKeys(last) {
		out = append(out, trouble{number: f, from: from, to: last[f]})
	}
	return out
}

// heldBack: a renewal of the thread was sent, or its answer came, in the pause.
func (r *run) heldBack(p trouble, who string) bool {
	return slices.ContainsFunc(r.ordered, func(m *msg) bool {
		return m.Script == "renew" && slices.Contains(m.owners, who) && m.AtNs <= p.to && (m.AtNs >= p.from || m.delivered >= p.from)
	})
}

// judgeMisdelete: a release, renewal or script of one owner ended, shortened
// or prolonged another owner's hold on the server.
func judgeMisdelete(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		for _, c := range r.states[lock] {
			if c.by == nil || !c.before.Held() || c.by.Script == "force_unlock" || len(c.by.owners) == 0 {
				continue
			}
			if c.by.Op > 0 && r.ops[c.by.Op-1].Action == model.ActForceUnlock {
				continue
			}
			if slices.Contains(c.by.owners, c.before.Owner) {
				continue
			}
			what := ""
			switch {
			case c.after.Owner != c.before.Owner:
				what = "ended"
			case c.after.Count != c.before.Count:
				what = fmt.Sprintf("changed to %d levels", c.after.Count)
			case c.after.ExpiresMs < c.before.ExpiresMs && c.after.ExpiresMs >= 0:
				what = "shortened"
			case c.after.ExpiresMs != c.before.ExpiresMs:
				what = "prolonged"
			default:
				continue // only the queue moved
			}
			f := Finding{Judge: model.JudgeMisdelete, Verdict: Broken, AtNs: c.at}
			verb := c.by.Script
			if verb == "" {
				verb = c.by.Command
			}
			f.Why = fmt.Sprintf("%s of %s (%s, sent at %s) %s the hold of %s on %s at %s",
				verb, name(c.by.owners), c.by.Command, model.At(c.by.AtNs), what, c.before.Owner, lock, model.At(c.at))
			if c.by.Op > 0 {
				f.Ops = append(f.Ops, r.ops[c.by.Op-1].ref())
			}
			if g := r.holderOp(lock, c.before.Owner, c.at); g != nil {
				f.Ops = append(f.Ops, g.ref())
			}
			out = append(out, f)
		}
	}
	return out
}

// holderOp is the call by which a thread holds the lock at an instant.
func (r *run) holderOp(lock, who string, at int64) *operation {
	var found *operation
	for _, c := range r.states[lock] {
		if c.at <= at && c.started() && c.after.Owner == who && c.by != nil && c.by.Op > 0 {
			found = r.ops[c.by.Op-1]
		}
	}
	return found
}

// judgeHoldCount: while no call of an owner is open, the server's count differs
// from its grants less its releases since the key was last lost. A call of
// unknown outcome counts as the record settled it, once.
func judgeHoldCount(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		out = append(out, r.miscounts(lock)...)
	}
	return out
}

// miscounts follows calls and changes in the order in which they happened.
func (r *run) miscounts(lock string) []Finding {
	type tally struct {
		levels int
		open   bool
		wrong  bool
		last   *operation
	}
	tallies := map[string]*tally{}
	of := func(who string) *tally {
		if tallies[who] == nil {
			tallies[who] = &tally{}
		}
		return tallies[who]
	}
	var out []Finding
	var state model.LockState
	look := func(who string, at int64) {
		t := of(who)
		count := 0
		if state.Owner == who {
			count = state.Count
		}
		if t.open || t.wrong || t.last == nil || count == t.levels || r.diedAt(who) <= at || r.endNs <= at {
			return
		}
		t.wrong = true // once an owner; what follows is the same fault
		out = append(out, Finding{Judge: model.JudgeHoldCount, Verdict: Broken, AtNs: at, Ops: []OpRef{t.last.ref()},
			Why: fmt.Sprintf("at %s, after its %s, the server counts %d for %s on %s, and its calls add up to %d",
				model.At(at), t.last.Action, count, who, lock, t.levels)})
	}
	uncounted := map[int]bool{} // calls that returned with their effect still to come
	changes := r.states[lock]
	next := 0
	for i := range r.rec.Events {
		e := &r.rec.Events[i]
		if e.Lock != lock {
			continue
		}
		switch e.Kind {
		case model.KindState:
			c := changes[next]
			next++
			state = c.after
			forced := c.by != nil && c.by.Op > 0 && r.ops[c.by.Op-1].Action == model.ActForceUnlock
			if c.ended() && (forced || c.by == nil || !slices.Contains(c.by.owners, c.before.Owner)) {
				of(c.before.Owner).levels = 0 // expired, removed, or taken by another
			}
			if c.fault > 0 && c.after.Held() {
				of(c.after.Owner).levels = c.after.Count // a failover: what it left is the truth
			}
			if c.by != nil && c.by.Op > 0 {
				o := r.ops[c.by.Op-1]
				if uncounted[o.Op] {
					delete(uncounted, o.Op)
					of(o.who).levels = max(0, of(o.who).levels+levelsOf(c, o.who))
				}
			}
			for _, who := range []string{c.before.Owner, c.after.Owner} {
				if who != "" {
					look(who, e.AtNs)
				}
			}
		case model.KindInvoke:
			t := of(e.ThreadName())
			t.open, t.last = true, r.ops[e.Op-1]
		case model.KindReturn:
			o := r.ops[e.Op-1]
			t := of(o.who)
			t.open = false
			if o.outcome == model.Waiting {
				continue
			}
			n, counted := r.settledLevels(o)
			if !counted {
				uncounted[o.Op] = true
			}
			t.levels = max(0, t.levels+n)
			look(o.who, e.AtNs)
		}
	}
	return out
}

// levelsOf is what a change adds to a thread's count: 1, -1 or 0.
func levelsOf(c change, who string) int {
	count := func(s model.LockState) int {
		if s.Owner == who {
			return s.Count
		}
		return 0
	}
	return int(sign(int64(count(c.after) - count(c.before))))
}

// settledLevels is what a call has added to its owner's levels when it
// returned: what it answered, or, where that is unknown, what the record says
// that it did until then, once.
func (r *run) settledLevels(o *operation) (n int, counted bool) {
	switch {
	case o.Action == model.ActForceUnlock:
		return 0, true
	case o.outcome == model.Granted:
		if r.lostSince(o) {
			return 0, true
		}
		return 1, true
	case o.outcome == model.Released || o.outcome == model.StillHeld:
		return -1, true
	case o.outcome == model.Unknown:
		for _, c := range r.states[o.Lock] {
			if c.by != nil && c.by.Op == o.Op && c.at <= o.returned() {
				if n := levelsOf(c, o.who); n != 0 {
					if n > 0 && r.lostSince(o) {
						n = 0
					}
					return n, true
				}
			}
		}
		return 0, false
	}
	return 0, true
}

// lostSince: the hold that the call was granted ended before the call returned.
func (r *run) lostSince(o *operation) bool {
	g := r.grants(o)
	if len(g) == 0 {
		return false
	}
	for _, c := range r.states[o.Lock] {
		if c.at > g[0].at && c.at <= o.returned() && c.before.Owner == o.who && c.after.Owner != o.who &&
			(c.by == nil || !slices.Contains(c.by.owners, o.who)) {
			return true
		}
	}
	return false
}

// judgeWorkload: a resource's own rule is broken, because two owners lost an
// update.
func judgeWorkload(r *run, resources []Resource) []Finding {
	var out []Finding
	for _, res := range resources {
		left, taken := res.Start, int64(0)
		var at int64
		why := ""
		for _, e := range r.rec.Events {
			if e.Kind != model.KindResource || e.Key != res.Name || e.Phase != "write" {
				continue
			}
			taken += e.Count
			left = e.Value
			if why == "" && (left != res.Start-taken || res.NeverBelow != nil && left < *res.NeverBelow) {
				at = e.AtNs
				why = fmt.Sprintf("%s wrote %d to %s at %s, although %d of %d were taken", e.ThreadName(), left, res.Name, model.At(at), taken, res.Start)
			}
		}
		if why == "" && res.End != nil && left != *res.End && !r.stranded() {
			at = r.endNs
			why = fmt.Sprintf("%s ended at %d, not at %d", res.Name, left, *res.End)
		}
		if why == "" {
			continue
		}
		f := Finding{Judge: model.JudgeWorkload, Verdict: Broken, AtNs: at}
		var together string
		together, f.Excuses = r.usedTogether(res.Name, at)
		f.Why = why + together
		out = append(out, f)
	}
	return out
}

// stranded: a process died, so that what it meant to do is undone.
func (r *run) stranded() bool { return len(r.dead) > 0 }

// use is a time in which a thread worked on a resource.
type use struct {
	who      string
	from, to int64
}

// usedTogether names two threads that worked on a resource at one time up to
// the instant at, and what excuses it.
func (r *run) usedTogether(resource string, at int64) (string, []model.Excuse) {
	var uses []use
	open := map[string]int{}
	for _, e := range r.rec.Events {
		if e.Key != resource || e.Kind != model.KindResource {
			continue
		}
		who := e.ThreadName()
		if e.Phase == "read" {
			open[who] = len(uses)
			uses = append(uses, use{who, e.AtNs, r.endNs})
		} else if i, ok := open[who]; ok {
			uses[i].to = e.AtNs
		}
	}
	for i, b := range uses {
		for _, a := range uses[:i] {
			if a.who != b.who && b.from < a.to && b.from <= at {
				how, excuses := r.howOverrun(a, b)
				return fmt.Sprintf("; %s worked from %s to %s, %s from %s%s", a.who, model.At(a.from), model.At(a.to), b.who, model.At(b.from), how), excuses
			}
		}
	}
	return "", nil
}

// howOverrun says how a came to work still when b began.
func (r *run) howOverrun(a, b use) (string, []model.Excuse) {
	for _, lock := range r.locks {
		for _, h := range r.beliefs(lock) {
			if h.who != a.who || h.from > a.from || h.paused == nil && h.to < a.from {
				continue
			}
			if h.lease > 0 && h.to <= b.from {
				return fmt.Sprintf(": the lease that %s asked for had ended", a.who),
					[]model.Excuse{{Circumstance: model.Overstayed, Why: fmt.Sprintf("%s worked past its lease of %v", a.who, time.Duration(h.lease))}}
			}
			if h.to >= b.from {
				return r.howLost(lock, h, b.from)
			}
		}
	}
	return "", nil
}

// judgeWant: a step's want, reply or read was not met.
func judgeWant(r *run) []Finding {
	var out []Finding
	for _, e := range r.rec.Events {
		if e.Kind == model.KindCheck && !e.Met {
			out = append(out, Finding{Judge: model.JudgeWant, Verdict: Broken, AtNs: e.AtNs,
				Why: fmt.Sprintf("%s at %s: %s", e.ThreadName(), model.At(e.AtNs), e.Text)})
		}
	}
	return out
}
