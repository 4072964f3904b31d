package judges

import (
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// leaseJudge finds leases that are too long, ended or prolonged against the rules, renewals that
// come too late, extensions that give too little, owners that are not told of the end of their
// hold, and owners that are told of an end that did not happen.
type leaseJudge struct{ *run }

func (r leaseJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		out = append(out, r.leases(lock)...)
		out = append(out, r.lateRenewals(lock)...)
		out = append(out, r.undoneGrants(lock)...)
		out = append(out, r.shortExtensions(lock)...)
		out = append(out, r.untold(lock)...)
		out = append(out, r.misled(lock)...)
	}
	return out
}

func (r leaseJudge) leases(lock string) []Finding {
	var out []Finding
	add := func(form model.Form, who string, at int64, detail Detail) {
		out = append(out, Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: at, Excuses: r.clockSteps(0, at),
			Facts: model.Facts{Form: form, Lock: lock, Thread: who}, Detail: detail})
	}
	beliefs := r.beliefs(lock)
	changes := r.Changes(lock)
	endless := false
	for _, c := range changes {
		who := c.After.Owner
		if c.After.Held() && c.After.ExpiresMs < 0 && !endless && !r.Record.Params.Endless {
			endless = true
			add(model.FormEndless, who, c.AtNs, Endless{})
		}
		if c.By != nil && c.After.Held() && c.After.ExpiresMs >= 0 && !r.Record.Params.Endless && (c.Before.Owner != who || c.After.ExpiresMs != c.Before.ExpiresMs) {
			got := time.Duration(c.After.ExpiresMs-c.AtNs/int64(time.Millisecond)) * time.Millisecond
			longest := r.Record.Params.Uncertainty
			if r.recovering(c.AtNs) {
				longest += r.Record.Params.Recovery // a lease from before the fault begins anew with its end
			}
			// A lock may round its instant up to a whole millisecond.
			exact := got - time.Duration(c.AtNs%millisecond)
			if most := r.mostLease(lock, who, c, got); most > 0 && exact >= most+longest+time.Millisecond {
				add(model.FormLongLease, who, c.AtNs, LongLease{Got: got, Most: most})
			}
		}
		if c.Expired && c.Ended() {
			if b := believer(beliefs, c.Before.Owner, c.AtNs); b != nil && b.lease == 0 && !r.Record.Params.Endless && r.heard(lock, b.who, c.AtNs) && !r.replaced(lock, *b, c.AtNs) {
				if f, late := r.unrenewed(lock, *b, c); late {
					out = append(out, f)
				}
			}
		}
	}
	// An orphan outlives its lease.
	for _, process := range r.Dead() {
		died := r.DiedNs(process)
		held := r.StateAt(lock, died)
		if !strings.HasPrefix(held.Owner, process+"/") || held.ExpiresMs < 0 {
			held = new(model.LockState)
		}
		for _, c := range changes {
			if c.AtNs > died && c.Started() && strings.HasPrefix(c.After.Owner, process+"/") {
				held = c.After // a command that it had sent before it died
				continue
			}
			if c.AtNs > died && c.After.Owner == held.Owner && r.moved(c) {
				held = c.After // no command prolonged it
				continue
			}
			if c.AtNs > died && held.Held() && c.After.Owner == held.Owner && c.After.ExpiresMs > held.ExpiresMs {
				if c.By != nil && c.By.AtNs <= died {
					held = c.After // sent while the process lived
					continue
				}
				add(model.FormOutlivesOwner, held.Owner, c.AtNs, OutlivesOwner{DiedNs: died})
				break
			}
		}
	}
	return out
}

// moved reports whether a fault, and no command of the owner, delayed the end of a lease: the fault
// itself, or servers that fail over by themselves, within their recovery after it. Until then the
// leases of such servers stand still.
func (r leaseJudge) moved(c *trace.Change) bool {
	if c.Fault > 0 {
		return r.Fault(c.Fault).Spec.MovesLeases()
	}
	return !c.MadeFor(c.After.Owner) && r.recovering(c.AtNs)
}

// recovering reports whether the servers may be failing over at an instant, after a fault that
// interrupted them. Only servers with a time of recovery fail over.
func (r *run) recovering(ns int64) bool {
	recovery := int64(r.Record.Params.Recovery)
	return recovery > 0 && slices.ContainsFunc(r.Faults, func(t trace.Fault) bool {
		return t.Spec.Interrupts() && t.FromNs <= ns && ns <= t.ToNs+recovery
	})
}

// mostLease returns the longest lease that an owner may have after a change: the lease that its
// calls asked for, or the watchdog timeout for a call that asked for none. The search ends at a
// lease of at least enough.
func (r *run) mostLease(lock, who string, c *trace.Change, enough time.Duration) time.Duration {
	if !c.MadeFor(who) {
		return 0
	}
	began := r.start(lock, who, c.AtNs).AtNs
	var most time.Duration
	calls := r.CallsOn(lock)
	calls = calls[:called(calls, c.AtNs+1)]
	for i := len(calls) - 1; i >= 0 && most < enough; i-- { // the calls of the present hold are the last
		o := calls[i]
		if o.Caller != who || !o.Action.Acquires() {
			continue
		}
		// A call from before this hold counts only while it is open: its command may
		// arrive late.
		if o.ReturnedNs() < c.AtNs {
			g := r.grants(o)
			if len(g) > 0 && g[len(g)-1].AtNs < began || len(g) == 0 && o.Outcome != model.Unknown {
				continue
			}
		}
		if o.LeaseNs == 0 {
			most = max(most, r.Record.Params.Watchdog)
		}
		most = max(most, time.Duration(o.LeaseNs))
	}
	return most
}

// start returns the change that began the hold which an owner has at an instant. If
// there is none, the hold begins at that instant.
func (r *run) start(lock, who string, at int64) *trace.Change {
	for _, c := range slices.Backward(r.StartsUpTo(lock, at)) {
		if c.After.Owner == who {
			return c
		}
	}
	return &trace.Change{AtNs: at}
}

// heard reports whether a call of the owner returned with the hold that it has at an instant, or
// with another level of that hold, or whether a failover brought the hold back.
func (r leaseJudge) heard(lock, who string, at int64) bool {
	start := r.start(lock, who, at)
	return start.Fault > 0 || slices.ContainsFunc(r.CallsOn(lock), func(o *trace.Call) bool {
		return o.Caller == who && o.Outcome == model.Granted && o.ReturnedNs() <= at &&
			slices.ContainsFunc(r.grants(o), func(c *trace.Change) bool { return start.AtNs <= c.AtNs && c.AtNs <= at })
	})
}

// replaced reports whether a failover had replaced the hold in which the believer believes by an
// earlier one of its holds, with another token or value. Nobody renews the earlier one.
func (r leaseJudge) replaced(lock string, b belief, at int64) bool {
	return slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool {
		return c.Fault > 0 && b.from <= c.AtNs && c.AtNs <= at && c.Before.Owner == b.who && c.After.Owner == b.who &&
			(c.Before.Token != c.After.Token || c.Before.Value != c.After.Value)
	})
}

// believer returns the belief that a thread has at an instant; nil if it has none.
func believer(beliefs []belief, who string, at int64) *belief {
	for i := range beliefs {
		if b := &beliefs[i]; b.who == who && b.from <= at && at < b.to {
			return b
		}
	}
	return nil
}

// unrenewed finds a hold with a watchdog that ended with its lease although no fault
// had met its messages for a watchdog period.
func (r leaseJudge) unrenewed(lock string, b belief, c *trace.Change) (Finding, bool) {
	last := b.from
	d := Unrenewed{}
	for _, t := range r.metRenewals(lock, b.who, b.from-int64(r.Record.Params.Watchdog), c.AtNs) {
		if t.ToNs >= last {
			last = t.ToNs
			d = Unrenewed{Fault: r.Fault(t.Number).Text, FaultNs: t.ToNs}
		}
	}
	for _, x := range r.ChangesUpTo(lock, c.AtNs) {
		if x.Fault == 0 || x.AtNs < last || x.Before.Owner != b.who || x.After.Owner != b.who {
			continue
		}
		// A step of the server's clock may leave less time than there is until the next renewal.
		if t := r.Fault(x.Fault); t.Spec.StepsServerClock() && x.After.ExpiresMs < x.Before.ExpiresMs {
			last = x.AtNs
			d = Unrenewed{Fault: t.Text, FaultNs: x.AtNs, Shortened: true}
		}
	}
	if c.AtNs-last < int64(r.Record.Params.RenewalPeriod) {
		return Finding{}, false
	}
	return Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: c.AtNs, Ops: []OpRef{refOf(b.grant)}, Facts: model.Facts{Form: model.FormUnrenewed, Lock: lock, Thread: b.who}, Detail: d}, true
}

// undoneGrants finds holds that ended before their lease because a command of the same acquire that
// returned with them ended them.
func (r leaseJudge) undoneGrants(lock string) []Finding {
	var out []Finding
	for _, o := range r.CallsOn(lock) {
		c := r.returnedWith(o)
		if c == nil {
			continue
		}
		if end := r.EndOf(c); end != nil && end.Call() == o {
			d := UndoneGrant{GrantNs: c.AtNs, EndNs: end.AtNs, SentNs: end.By.AtNs}
			if closed := r.ClosedNs(o.Process); closed <= d.SentNs {
				d.ClosedNs = closed
			}
			out = append(out, Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: max(end.AtNs, o.ReturnedNs()), Ops: []OpRef{refOf(o)},
				Facts:  model.Facts{Form: model.FormUndone, Lock: lock, Thread: o.Caller},
				Detail: d})
		}
	}
	return out
}

// shortExtensions finds extensions that returned extended, but left the hold less than a lease from
// their sending on, by more than a tick.
func (r leaseJudge) shortExtensions(lock string) []Finding {
	var out []Finding
	tick := r.tick(lock)
	for _, o := range r.CallsOn(lock) {
		if o.Action != model.ActExtend || o.Outcome != model.Extended {
			continue
		}
		sent, now := r.extensionSent(o), r.StateAt(lock, o.ReturnedNs())
		due := sent + int64(r.Record.Params.Watchdog-tick)
		if now.Owner != o.Caller || now.ExpiresMs < 0 || (now.ExpiresMs+1)*millisecond >= due || len(r.partsLost(o.AtNs, o.ReturnedNs())) > 0 ||
			slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool { return c.Fault > 0 && o.AtNs <= c.AtNs && c.AtNs <= o.ReturnedNs() }) {
			continue
		}
		out = append(out, Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: o.ReturnedNs(), Ops: []OpRef{refOf(o)},
			Facts:  model.Facts{Form: model.FormShortExtension, Lock: lock, Thread: o.Caller},
			Detail: ShortExtension{SentNs: sent, EndNs: now.ExpiresMs * millisecond, Lease: r.Record.Params.Watchdog}})
	}
	return out
}

// untold finds threads that went on to believe in a hold that was gone, of a lock that tells of the end of
// its holds. Such a lock must tell before the lease that it knows ends, which needs no message. If a fault
// ended or shortened the hold, only a request can show it. At least one renewal per lease comes and fails, so
// the thread is told within a lease, plus the time in which a client notices a lost command. This time begins
// again with each disturbance of the process or its server.
func (r leaseJudge) untold(lock string) []Finding {
	if !r.Record.Params.Watched {
		return nil
	}
	var out []Finding
	for _, b := range r.beliefs(lock) {
		since := int64(-1)
		if r.StateAt(lock, b.from).Owner != b.who {
			since = b.from
		}
		back := false // the thread has a hold again
		for _, c := range r.ChangesAfter(lock, b.from) {
			switch {
			case c.AtNs >= b.to:
			case c.Ended() && c.Before.Owner == b.who && since < 0:
				since = c.AtNs
			case c.Started() && c.After.Owner == b.who:
				back = true
			}
		}
		if since < 0 || back {
			continue
		}
		f := Finding{Judge: model.JudgeLease, Verdict: Broken, Ops: []OpRef{refOf(b.grant)}, Facts: model.Facts{Form: model.FormUntold, Lock: lock, Thread: b.who}}
		if h := r.calmHold(b); h != nil {
			d := r.knownLease(h, b)
			due := r.dueBy(b, max(d.LeaseNs, d.EndedNs, b.from), d.SentNs)
			if d.BelievedNs = b.to; b.to <= due {
				continue
			}
			f.AtNs, f.Detail = due, d
			if h.Ended.By == nil {
				f.Loss = &model.Loss{Cause: model.LossExpired, Thread: b.who, Lock: lock, AtNs: h.ToNs()}
			}
		} else {
			bound := int64(max(r.Record.Params.Watchdog, time.Duration(b.lease)) + r.Record.Params.Resend + time.Second + r.Record.Params.Uncertainty)
			for _, x := range inOrder(r.disturbing(model.ProcessOf(b.who))).all {
				if x.from-since > bound {
					break
				}
				since = max(since, x.to)
			}
			if b.to-since <= bound {
				continue
			}
			f.AtNs, f.Detail = since+bound, Untold{BelievedNs: b.to, CalmNs: since, Bound: time.Duration(bound)}
		}
		out = append(out, f)
	}
	return out
}

// calmHold returns the last hold of a belief, which has a lease and ended before the belief did. It returns nil
// if there is none, or if a fault or a command of another may have begun, shortened or ended the hold. A hold that
// was over when the last request of the grant ran belongs to an earlier attempt of that call.
func (r leaseJudge) calmHold(b belief) *trace.Hold {
	holds := r.HoldsOf(b.lock, b.who, r.lastHeard(b.grant), b.to)
	if len(holds) == 0 || r.Record.Params.Endless {
		return nil
	}
	h := holds[len(holds)-1]
	if h.Ended == nil || h.Ended.By != nil && !h.Ended.MadeFor(b.who) || len(r.partsLost(b.first.AtNs, h.ToNs())) > 0 || r.Record.Params.Parts > 1 && len(r.clockSteps(b.first.AtNs, h.ToNs())) > 0 {
		return nil
	}
	for _, c := range append([]*trace.Change{h.Began, h.Ended}, h.Moved...) {
		if c.Fault > 0 || c.After.Owner == b.who && c.After.ExpiresMs < 0 || r.recovering(c.AtNs) {
			return nil
		}
	}
	return h
}

// knownLease returns the end of the lease that a thread knows for a hold, and the sending of the request from
// which it counts: of the last acquire or renewal whose answer its process has.
func (r leaseJudge) knownLease(h *trace.Hold, b belief) ToldLate {
	d := ToldLate{EndedNs: h.ToNs(), SentNs: b.grant.AtNs, LeaseNs: -1}
	for _, c := range append([]*trace.Change{h.Began}, h.Moved...) {
		if !c.MadeFor(b.who) || c.By.Executed == nil || c.By.RepliedNs < 0 || c.By.RepliedNs > b.to {
			continue
		}
		if end := c.After.ExpiresMs*millisecond - (c.By.Executed.AtNs - c.By.AtNs); end > d.LeaseNs {
			d.LeaseNs, d.SentNs = end, c.By.AtNs
		}
	}
	return d
}

// dueBy returns the instant by which a thread must have been told of the end of a lease that counts from
// an instant. A pause moves it by its length: a process that is paused hears nothing, and its clients
// wait longer by the pause.
func (r leaseJudge) dueBy(b belief, endNs, sentNs int64) int64 {
	due := endNs + millisecond + int64(r.Record.Params.Uncertainty)
	for _, p := range r.pauses(b.who) {
		if sentNs < p.ToNs && p.FromNs <= due {
			due += p.ToNs - max(p.FromNs, sentNs)
		}
	}
	return due
}

// misled finds threads that were told that their hold is gone although the server held it and
// nothing had happened to it. A client that cannot know whether it holds the lock may give the hold
// up to be safe: for a watchdog timeout after a disturbance of the process or its server, and in
// the last third of the lease that it knows of. But a lock that renews must not let that lease run out if
// nothing has disturbed it since its last renewal.
func (r leaseJudge) misled(lock string) []Finding {
	p := r.Record.Params
	var out []Finding
	for _, b := range r.beliefs(lock) {
		if b.told == nil {
			continue
		}
		at := b.told.AtNs
		start := r.start(lock, b.who, at)
		if r.StateAt(lock, at).Owner != b.who || start.AtNs > b.from {
			continue // the hold is gone; the server has another one
		}
		sent := r.attemptBegan(b.grant)
		touched := false // touched by a fault, or for another thread
		for _, c := range r.ChangesAfter(lock, start.AtNs) {
			switch {
			case c.AtNs > at:
			case !c.MadeFor(b.who):
				touched = true
			case !r.hasAnswers(c.By, at):
			case c.Before.Owner == b.who && c.After.ExpiresMs < c.Before.ExpiresMs:
				sent = r.attemptBegan(b.grant) // the remaining levels may be as old as that
			case c.After.ExpiresMs != c.Before.ExpiresMs: // a level may be given up without another end of the lease
				sent = max(sent, c.By.AtNs)
			}
		}
		lease := int64(p.Watchdog)
		if b.lease > 0 {
			lease = b.lease
		}
		soon := !p.Endless && at >= sent+lease-lease/3
		disturbed := func(since int64) bool {
			return slices.ContainsFunc(r.disturbing(model.ProcessOf(b.who)), func(x span) bool { return x.from <= at && since <= x.to })
		}
		if b.lease == 0 && !p.NoWatchdog {
			soon = soon && (r.renewing(b.who, at) || disturbed(sent-int64(p.Recovery)))
		}
		if touched || soon || disturbed(at-int64(p.Watchdog)) {
			continue
		}
		known := sent + lease
		if p.Endless {
			known = -1
		}
		out = append(out, Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: at, Ops: []OpRef{refOf(b.grant)},
			Facts:  model.Facts{Form: model.FormMisled, Lock: lock, Thread: b.who},
			Detail: Misled{HeldNs: start.AtNs, LeaseNs: known}})
	}
	return out
}

// hasAnswers reports whether a client had the answer to a request by an instant. If it asked several servers at once, it may wait
// for all of them.
func (r leaseJudge) hasAnswers(m *trace.Command, at int64) bool {
	answered := func(m *trace.Command) bool { return m.RepliedNs >= 0 && m.RepliedNs <= at }
	return answered(m) && (r.Record.Params.Parts < 2 || !slices.ContainsFunc(r.CommandsFrom(m.Process), func(x *trace.Command) bool {
		return x.Op == m.Op && x.Script == m.Script && x.AtNs-m.AtNs < millisecond && m.AtNs-x.AtNs < millisecond && !answered(x)
	}))
}

// renewing reports whether a client of the thread's process waits for the answer to a renewal at an
// instant.
func (r leaseJudge) renewing(who string, at int64) bool {
	return slices.ContainsFunc(r.CommandsFrom(model.ProcessOf(who)), func(m *trace.Command) bool {
		return m.Script == model.RoleRenew && m.AtNs <= at && (m.RepliedNs < 0 || m.RepliedNs > at)
	})
}

// attemptBegan returns the earliest instant from which a careful client may count the lease of a
// grant. An attempt may begin with other commands before the one that was granted, each sent after
// the answer to the one before.
func (r leaseJudge) attemptBegan(o *trace.Call) int64 {
	at := r.attemptSent(o)
	for _, m := range slices.Backward(o.Sent) {
		if m.RepliedNs >= 0 && m.RepliedNs <= at && at < m.RepliedNs+millisecond {
			at = m.AtNs
		}
	}
	return at
}

// disturbing returns the times in which a fault lasted, in which a client of the process had not yet
// noticed that a fault had met one of its commands, or in which it waited for a greeting that a fault
// had met.
func (r *run) disturbing(process string) []span {
	var out []span
	for _, t := range r.Faults {
		out = append(out, span{t.FromNs, t.ToNs})
	}
	for _, m := range r.CommandsFrom(process) {
		if m.Lost == nil && len(m.Hits) == 0 {
			continue
		}
		to := m.RepliedNs
		switch {
		case m.Lost != nil && slices.Contains([]model.LostReason{model.LostClosed, model.LostUnwanted}, m.Lost.Why):
			to = m.Lost.AtNs // the client had given it up
		case to < 0:
			to = m.AtNs + int64(r.Record.Params.GiveUp)
		}
		out = append(out, span{m.AtNs, to})
	}
	for _, x := range r.lateGreetings(process) {
		out = append(out, x.span)
	}
	return out
}

// lateRenewals finds renewals that were sent after the release of the last level had
// returned, or for an acquire that had returned without a grant.
func (r leaseJudge) lateRenewals(lock string) []Finding {
	owners := map[string]*renewed{}
	of := func(who string) *renewed {
		if owners[who] == nil {
			owners[who] = &renewed{}
		}
		return owners[who]
	}
	var forms map[string]bool
	if r.Record.Params.PerGrant {
		forms = r.renewalForms()
	}
	var out []Finding
	changes := r.Changes(lock)
	for _, e := range r.EventsOf(lock) {
		switch {
		case e.Kind == model.KindState:
			c := changes[0]
			changes = changes[1:]
			if c.Ended() && !c.MadeFor(c.Before.Owner) {
				k := of(c.Before.Owner)
				k.levels, k.lost = 0, true
			}
		case e.Kind == model.KindInvoke:
			of(e.ThreadName()).open = r.Call(e.Op)
		case e.Kind == model.KindReturn:
			o := r.Call(e.Op)
			of(o.Caller).answer(o)
		case e.Kind == model.KindSend && e.AtNs < r.LeaveNs && r.Command(e.Msg).Script == model.RoleRenew && e.Command != model.SegmentCommand:
			m := r.Command(e.Msg) // a part of a stream does not say which session it renews, or whether it renews one
			for j, l := range m.Locks {
				if l != lock || j >= len(m.Owners) {
					continue
				}
				who := m.Owners[j]
				k := of(who)
				if k.levels > 0 || k.lost || k.open != nil || k.told || r.renewsAnother(lock, who, m) || r.renewsLost(lock, who, m) || forms != nil && !forms[m.Form()] {
					continue
				}
				k.told = true
				f := Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: e.AtNs, Facts: model.Facts{Form: model.FormLateRenewal, Lock: lock, Thread: who}, Detail: k.since}
				if at := k.since.ReturnNs; at > 0 && e.AtNs-at <= int64(r.Record.Params.Uncertainty) {
					f.Verdict = Undecided // the decision to send it may be older than the return of the release
				}
				if k.last != nil {
					f.Ops = []OpRef{refOf(k.last)}
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// renewed has what a thread knows of a hold that is renewed.
type renewed struct {
	levels int
	own    int         // levels by its own calls, whatever happened to the hold
	open   *trace.Call // the call that may change the levels
	lost   bool        // the hold is gone, and no call has returned since
	since  LateRenewal // the reason why the thread has no hold
	last   *trace.Call
	told   bool // a late renewal was found
}

// answer updates the levels of the thread when one of its calls has returned.
func (k *renewed) answer(o *trace.Call) {
	k.open, k.last = nil, o
	unlocked := o.Action == model.ActUnlock
	switch {
	case o.Outcome == model.Granted:
		k.own++
	case o.Outcome == model.NotHeld:
		k.own = 0
	case unlocked:
		k.own = max(0, k.own-1)
	}
	// The thread does not learn that its hold is lost from a failed attempt, or from
	// an unlock that gave up one level of several, before the loss or without an answer.
	k.lost = k.lost && (o.Action.Acquires() && o.Outcome != model.Granted || o.Outcome == model.StillHeld ||
		(o.Outcome == model.Unknown || o.Outcome == model.Released) && k.own > 0)
	switch {
	case o.Outcome == model.Granted:
		k.levels++
	case unlocked && o.Outcome == model.NotHeld:
		k.levels = 0
	case unlocked && slices.Contains([]model.Outcome{model.Released, model.StillHeld, model.Unknown, model.Failed}, o.Outcome):
		k.levels = max(0, k.levels-1)
	}
	if k.levels == 0 {
		k.since = LateRenewal{Call: o.Action, Outcome: o.Answer(), ReturnNs: o.ReturnedNs()}
	}
}

// renewalForms returns the forms of the commands that prolonged a hold. Where threads know holds by their grants, a
// request outside of calls renews if it has such a form. Another one cleans up after a call, or asks for something.
func (r leaseJudge) renewalForms() map[string]bool {
	forms := map[string]bool{}
	for _, m := range r.Commands {
		if slices.ContainsFunc(m.Changes, func(c *trace.Change) bool {
			return c.Before.Owner == c.After.Owner && c.After.ExpiresMs > c.Before.ExpiresMs && m.Names(c.Lock)
		}) {
			forms[m.Form()] = true
		}
	}
	return forms
}

// renewsLost reports whether a renewal names a hold of a thread that another hand than its own ended, and after which the thread
// had another: its client learns of the loss by the answer.
func (r leaseJudge) renewsLost(lock, who string, m *trace.Command) bool {
	lost := false
	for _, h := range r.HoldsOf(lock, who, 0, m.AtNs) {
		if lost {
			return true
		}
		lost = h.Value != "" && slices.Contains(m.Args, h.Value) && h.Ended != nil && !h.Ended.MadeFor(who)
	}
	return false
}

// renewsAnother reports whether a renewal is of a session other than the one that has the thread's
// hold on the server. The hold is there when the renewal is sent. When it has run, the hold ends no
// later, or has ended with its lease. A thread that knows its holds by their grants alone may have left
// a hold on the server, and then renew a new session.
func (r leaseJudge) renewsAnother(lock, who string, m *trace.Command) bool {
	if !r.Record.Params.PerGrant || m == nil || m.Executed == nil {
		return false
	}
	held, changes := r.StateAt(lock, m.AtNs), r.ChangesAfter(lock, m.AtNs)
	if held.Owner != who {
		return false
	}
	return len(changes) == 0 || changes[0].AtNs > m.Executed.AtNs || changes[0].Ended() && changes[0].AtNs >= held.ExpiresMs*millisecond
}
