package judges

import (
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// disturbance is an event after which a waiter may have to wait for a lease to end: since nobody
// tells the waiter, or nobody knows, that the lock is free.
type disturbance struct {
	from  int64
	at    int64 // when it last had an effect, not before from
	what  Disturbance
	extra time.Duration // the time that it may cost; 0: a lease
	most  time.Duration // a bound, if that ends earlier than a lease would; 0: none
	by    *trace.Call   // the acquire whose unknown or interrupted end it is; nil: none
}

// byFaultNamed returns the disturbance by a fault with that text.
func byFaultNamed(text string) Disturbance { return Disturbance{DisturbedByFault, text} }

// disturbances returns the disturbances of one lock and those that all locks share.
func (r livenessJudge) disturbances(lock string) []disturbance {
	out := r.wakeUps()
	for _, t := range r.Faults {
		if t.Spec.Interrupts() && r.Record.Params.Recovery > 0 {
			out = append(out, disturbance{from: t.FromNs, at: t.ToNs, what: byFaultNamed(t.Text), extra: r.Record.Params.Recovery})
		}
	}
	out = append(out, r.outlasted(lock)...)
	out = append(out, r.partsLeft(lock)...)
	for _, process := range r.Dead() {
		// The holds of the dead, and those that they are still granted, end with their leases.
		for _, at := range r.orphaned(lock, process) {
			out = append(out, disturbance{from: at, at: r.prolonged(lock, at, r.DiedNs(process)), what: Disturbance{Kind: DisturbedByCrash}})
		}
	}
	for _, x := range r.CallsOn(lock) {
		d := disturbance{from: troubled(x)}
		switch {
		case x.Outcome == "":
			continue
		case x.InterruptedNs < math.MaxInt64:
			d.what.Kind = DisturbedInterrupted
		case x.Outcome == model.Unknown:
			d.what.Kind = DisturbedUnknown
		case x.Action == model.ActUnlock && x.Outcome == model.Failed:
			d.what.Kind = DisturbedRelease
		default:
			continue
		}
		if d.at = r.lastTouch(x); x.Action.Acquires() {
			d.by = x
		}
		out = append(out, d)
	}
	if r.Record.Params.PerGrant {
		for _, c := range r.Changes(lock) {
			if o := c.Call(); o != nil && c.Started() && c.AtNs > o.ReturnedNs() {
				out = append(out, disturbance{from: c.AtNs, at: c.AtNs, what: Disturbance{Kind: DisturbedLateRequest}})
			}
		}
	}
	for _, e := range r.Closes {
		if e.AtNs < r.LeaveNs { // not one of the closes that end the run
			d := disturbance{from: e.AtNs, at: e.AtNs, what: Disturbance{Kind: DisturbedClose}}
			if model.ProcessOf(r.StateAt(lock, e.AtNs).Owner) == e.Process {
				d.at = r.prolonged(lock, e.AtNs, e.AtNs)
			}
			out = append(out, d)
		}
	}
	for _, c := range r.Changes(lock) {
		if c.Fault > 0 && c.Ended() {
			out = append(out, disturbance{from: c.AtNs, at: c.AtNs, what: Disturbance{Kind: DisturbedRemoval}})
		}
		switch {
		case c.Fault == 0 || !c.After.Held():
		case r.Fault(c.Fault).Spec.StepsServerClock():
			// A waiter may have been told the later of the two ends.
			left := time.Duration(max(max(c.Before.ExpiresMs, c.After.ExpiresMs)*millisecond-c.AtNs, 0))
			out = append(out, disturbance{from: c.AtNs, at: c.AtNs, what: Disturbance{Kind: DisturbedClock}, extra: left})
		default:
			out = append(out, disturbance{from: c.AtNs, at: c.AtNs, what: Disturbance{Kind: DisturbedFailover}})
		}
	}
	return out
}

// partsLeft returns the disturbances by parts of holds that faults may have left, for as long as a lease:
// no state shows them, and if there are enough, they keep others from a majority. A fault leaves parts of
// a call if it stops the client, holds up a request until the call is over, or holds up one of an unlock, or
// one that takes back the effect of an earlier request. A request that is sent once more takes nothing back.
func (r livenessJudge) partsLeft(lock string) []disturbance {
	parts := r.Record.Params.Parts
	if parts < 2 {
		return nil
	}
	var left []disturbance // one for each part
	for _, x := range r.CallsOn(lock) {
		if !x.Action.Acquires() && x.Action != model.ActUnlock {
			continue
		}
		before := len(left)
		var done []*trace.Command
		for _, m := range x.Sent {
			again := func(d *trace.Command) bool {
				return d.Script == m.Script && d.Command == m.Command && slices.Equal(d.Args, m.Args)
			}
			heldUpTo := func(ns int64) bool {
				return len(m.Hits) > 0 || slices.ContainsFunc(r.Faults, func(t trace.Fault) bool { return t.Spec.Interrupts() && t.FromNs <= ns && m.AtNs <= t.ToNs })
			}
			if m.Executed != nil && m.Executed.AtNs > x.ReturnedNs() && heldUpTo(m.Executed.AtNs) {
				left = append(left, disturbance{from: x.AtNs, at: m.Executed.AtNs, what: Disturbance{Kind: DisturbedLateRequest}})
			}
			takesBack := x.Action == model.ActUnlock || len(done) > 0 && done[0].AtNs < m.AtNs && !slices.ContainsFunc(done, again)
			if takesBack && (m.Lost != nil || heldUpTo(m.EndNs())) {
				d := disturbance{from: m.AtNs, at: m.AtNs, what: Disturbance{Kind: DisturbedUnknown}}
				if m.Executed != nil {
					d.at = m.Executed.AtNs
				}
				left = append(left, d)
			}
			if m.Executed != nil {
				done = append(done, m)
			}
		}
		if x.Action == model.ActUnlock && x.Outcome == model.Unknown && len(left) == before { // its connection was dead
			left = append(left, disturbance{from: troubled(x), at: x.ReturnedNs(), what: Disturbance{Kind: DisturbedUnknown}})
		}
		if len(done) == 0 {
			continue
		}
		if gone := r.goneAt(x.Caller); gone <= x.ReturnedNs() {
			left = append(left, disturbance{from: gone, at: max(gone, done[len(done)-1].Executed.AtNs), what: Disturbance{Kind: DisturbedByCrash}})
		}
		if x.InterruptedNs <= x.ReturnedNs() {
			left = append(left, disturbance{from: x.InterruptedNs, at: r.lastTouch(x), what: Disturbance{Kind: DisturbedInterrupted}})
		}
		for _, p := range r.pauses(x.Caller) {
			if done[0].Executed.AtNs <= p.ToNs && p.FromNs <= x.ReturnedNs() {
				left = append(left, disturbance{from: p.FromNs, at: p.ToNs, what: byFaultNamed(p.Text)})
			}
		}
	}
	lease := int64(r.longestLease(lock, r.LeaveNs))
	var out []disturbance
	for _, d := range left {
		n := 0
		for _, other := range left {
			if other.at <= d.at && d.at <= other.at+lease {
				n++
			}
		}
		if 2*n >= parts {
			out = append(out, d)
		}
	}
	return out
}

// partsLeftWithin reports whether parts that faults left may have kept others from a majority between two instants.
func (r livenessJudge) partsLeftWithin(lock string, from, to int64) bool {
	lease := int64(r.longestLease(lock, to))
	return slices.ContainsFunc(r.partsLeft(lock), func(d disturbance) bool { return d.from <= to && from <= d.at+lease })
}

// troubled returns when it began that a call was to end badly: when a fault met it first, or else
// when it returned. An interrupt of a call that cannot be interrupted ends nothing.
func troubled(o *trace.Call) int64 {
	at := o.ReturnedNs()
	for _, m := range o.Sent {
		for _, h := range m.Hits {
			at = min(at, h.AtNs)
		}
	}
	return at
}

// outlasted returns the holds that still lasted on the servers when their owners were told that they
// are gone. A client that a fault separates from servers that fail over counts the lease from an
// earlier instant than they do. On other servers a renewal prolongs the hold whose answer the client
// never gets. Others wait until the lease on the servers is over.
func (r livenessJudge) outlasted(lock string) []disturbance {
	var out []disturbance
	for _, b := range r.beliefs(lock) {
		if b.told == nil || !r.cutOff(b.who, b.from, b.to) || r.Record.Params.Recovery == 0 && !r.renewedUnheard(lock, b) {
			continue
		}
		held := r.StateAt(lock, b.to)
		if end := held.ExpiresMs * millisecond; held.Owner == b.who && end > b.to {
			out = append(out, disturbance{from: b.to, at: end, what: Disturbance{Kind: DisturbedOutlasting}, extra: time.Millisecond})
		}
	}
	return out
}

// renewedUnheard reports whether a fault took the answer to the last renewal of a believed hold since
// its owner asked for it. A client renews a hold of which its owner does not know yet.
func (r livenessJudge) renewedUnheard(lock string, b belief) bool {
	unheard := false
	for _, m := range r.CommandsOn(lock) {
		if m.Script == model.RoleRenew && m.SpeaksFor(b.who) && m.Executed != nil && b.grant.AtNs <= m.Executed.AtNs && m.Executed.AtNs <= b.to {
			unheard = m.RepliedNs < 0 && len(m.Hits) > 0
		}
	}
	return unheard
}

// cutOff reports whether a fault separated a thread from its servers in a stretch of time.
func (r livenessJudge) cutOff(who string, from, to int64) bool {
	during := func(t trace.Fault) bool { return t.FromNs <= to && from <= t.ToNs }
	return r.recovering(to) || slices.ContainsFunc(append(r.partitions(who), r.pauses(who)...), during) ||
		slices.ContainsFunc(r.Hit, func(m *trace.Command) bool {
			return m.Process == model.ProcessOf(who) && slices.ContainsFunc(m.Hits, func(h *model.Event) bool { return from <= h.AtNs && h.AtNs <= to })
		})
}

// wakeUps returns the published messages that were lost, or that a fault delayed. A late message is
// as good as lost until it comes.
func (r livenessJudge) wakeUps() []disturbance {
	var out []disturbance
	late := map[int]int{} // message -> its index in out
	for _, e := range r.Pushes {
		j, put := late[e.Msg]
		lost := e.Kind == model.KindLost && e.Why != model.LostUnwanted
		switch {
		case e.Kind == model.KindHit && !put:
			late[e.Msg] = len(out)
			out = append(out, disturbance{from: e.AtNs, at: e.AtNs, what: Disturbance{Kind: DisturbedLateWakeUp}})
		case lost && put:
			out[j].at, out[j].what = e.AtNs, Disturbance{Kind: DisturbedLostWakeUp}
		case lost:
			out = append(out, disturbance{from: e.AtNs, at: e.AtNs, what: Disturbance{Kind: DisturbedLostWakeUp}})
		case put && (e.Kind == model.KindDeliver || e.Kind == model.KindLost):
			out[j].most = max(time.Duration(e.AtNs-out[j].from), 1)
		}
	}
	return out
}

// costsNothing reports whether an acquire of unknown outcome is no reason why a waiter of another process got nothing from
// an instant on: State shows nothing of the acquire, no request of it is under way, and the waiter's process had no answer,
// so that it met nothing that State does not show. Then it sleeps by the design of the lock, whose acquire takes the
// wake-up of another with it when it is given up.
func (r livenessJudge) costsNothing(x, waiter *trace.Call, fromNs int64) bool {
	if len(x.Sent) == 0 || x.Process == waiter.Process || r.Record.Params.Parts > 1 || r.unseen() || r.Record.Params.Fair && !r.showsQueue(x.Lock) {
		return false
	}
	to := fromNs + int64(time.Second+r.Record.Params.Waits+r.Record.Params.Uncertainty)
	mayShow := func(s *model.LockState) bool {
		return s.Owner == x.Caller || s.Held() && model.ProcessOf(s.Owner) == "" || slices.Contains(s.Queue, x.Caller)
	}
	return !mayShow(r.StateAt(x.Lock, x.AtNs)) &&
		!slices.ContainsFunc(r.ChangesWithin(x.Lock, x.AtNs, to), func(c *trace.Change) bool { return mayShow(c.After) }) &&
		!slices.ContainsFunc(x.Sent, func(m *trace.Command) bool { return m.Executed == nil && m.Lost == nil }) &&
		!slices.ContainsFunc(r.CommandsFrom(waiter.Process), func(m *trace.Command) bool { return fromNs < m.RepliedNs && m.RepliedNs <= to })
}

// ownDisturbances returns the faults that met the waiter's own client.
func (r livenessJudge) ownDisturbances(o *trace.Call) []disturbance {
	var out []disturbance
	reconnect := max(r.Record.Params.Resend, r.Record.Params.Reconnect)
	for _, t := range r.partitions(o.Caller) {
		out = append(out, disturbance{from: t.ToNs, at: t.ToNs, what: byFaultNamed(t.Text), extra: reconnect})
	}
	for _, t := range r.pauses(o.Caller) {
		out = append(out, disturbance{from: t.ToNs, at: t.ToNs, what: byFaultNamed(t.Text), extra: r.Record.Params.Resend})
	}
	for _, t := range r.Faults {
		if t.Spec.EndsConnections() {
			out = append(out, disturbance{from: t.ToNs, at: t.ToNs, what: byFaultNamed(t.Text), extra: reconnect})
		}
	}
	for _, x := range r.heldConnections(o.Process) {
		if x.ungreeted && r.Record.Params.Reconnect > 0 {
			out = append(out, disturbance{from: x.from, at: x.to, what: byFaultNamed(r.Fault(x.faults[0]).Text), extra: reconnect})
		}
	}
	for _, m := range undone(o) {
		out = append(out, disturbance{from: m.AtNs, at: m.AtNs, what: Disturbance{Kind: DisturbedGivenBack}, extra: r.Record.Params.Resend})
	}
	for _, m := range r.Hit {
		// A client whose session is not kept alive does not know whether its servers fail over. Its
		// calls wait until it has found out.
		if recovery := r.Record.Params.Recovery; recovery > 0 && m.Process == o.Process && m.Lost != nil && m.Script == model.RoleRenew {
			for _, h := range m.Hits {
				out = append(out, disturbance{from: h.AtNs, at: h.AtNs, what: byFaultNamed(h.Text), extra: recovery})
			}
		}
		if m.Process == o.Process && m.Op == o.Op || m.Lost != nil && m.Process == o.Process && m.Script == "" {
			for _, h := range m.Hits {
				d := disturbance{from: h.AtNs, at: h.AtNs, what: byFaultNamed(h.Text), extra: reconnect}
				if m.Lost == nil && m.RepliedNs >= 0 && len(m.Changes) == 0 && h.Do != "error" {
					d.at, d.extra = m.RepliedNs, time.Millisecond // it was late, and left nothing behind
				}
				out = append(out, d)
			}
		}
	}
	return out
}

// lastTouch returns the last instant at which the caller touched the hold that its failed call may
// have left behind. The call's commands may take effect after its return. Entering the hold again
// and leaving it once starts its lease anew without ending it.
func (r livenessJudge) lastTouch(x *trace.Call) int64 {
	at := x.ReturnedNs()
	for _, c := range r.effects(x) {
		at = max(at, c.AtNs)
	}
	if r.StateAt(x.Lock, at).Owner == x.Caller {
		at = r.prolonged(x.Lock, at, x.ReturnedNs())
	}
	t := r.touchesOf(x.Lock)[x.Caller]
	end := int64(math.MaxInt64)
	if i, _ := slices.BinarySearch(t.ends, at+1); i < len(t.ends) {
		end = t.ends[i]
	}
	if n, _ := slices.BinarySearch(t.called, end); n > 0 {
		at = max(at, min(t.returned[n-1], end))
	}
	return at
}

// prolonged returns the last instant at which a request renewed the hold that is there at atNs, if its owner had sent
// the request by sentNs. It returns atNs if there is no such request. A fault may put a request off.
func (r livenessJudge) prolonged(lock string, atNs, sentNs int64) int64 {
	who := r.StateAt(lock, atNs).Owner
	for _, c := range r.ChangesAfter(lock, atNs) {
		if c.Ended() {
			break
		}
		if c.Before.ExpiresMs != c.After.ExpiresMs && c.MadeFor(who) && c.By.AtNs <= sentNs {
			atNs = c.AtNs
		}
	}
	return atNs
}

// touches are the instants of a thread's calls on a lock that have returned, and of the ends of its holds.
type touches struct {
	called   []int64 // in order
	returned []int64 // the latest return of the calls up to this one
	ends     []int64 // in order
}

// touchesOf returns the touches of the threads, by name.
func (r livenessJudge) touchesOf(lock string) map[string]*touches {
	if of := r.touched[lock]; of != nil {
		return of
	}
	of := map[string]*touches{}
	r.touched[lock] = of
	for _, o := range r.CallsOn(lock) {
		t := of[o.Caller]
		if t == nil {
			t = &touches{}
			of[o.Caller] = t
		}
		if o.Return == nil {
			continue
		}
		latest := o.ReturnedNs()
		if n := len(t.returned); n > 0 {
			latest = max(latest, t.returned[n-1])
		}
		t.called, t.returned = append(t.called, o.AtNs), append(t.returned, latest)
	}
	for _, c := range r.Changes(lock) {
		if t := of[c.Before.Owner]; t != nil && c.After.Owner != c.Before.Owner {
			t.ends = append(t.ends, c.AtNs)
		}
	}
	return of
}
