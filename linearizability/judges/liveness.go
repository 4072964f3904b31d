package judges

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// judgeLiveness finds waiters that do not get the lock for longer than the bound, although nobody
// believes to hold it and the server is healthy.
func judgeLiveness(r *run) []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		occupied, kept, disturbed := r.occupied(lock), r.kept(lock), r.disturbances(lock)
		busy := inOrder(r.reasons(nil, occupied, kept))
		for _, o := range r.CallsOn(lock) {
			if f, ok := r.stuck(lock, o); ok {
				out = append(out, f)
				continue
			}
			if o.Action != model.ActLock && o.Action != model.ActTryLockTimed {
				continue
			}
			keep := busy
			if slices.ContainsFunc(kept, func(k keeping) bool { return k.own(r, o) }) {
				keep = inOrder(r.reasons(o, occupied, kept))
			}
			if f, ok := r.forgotten(lock, o, keep, disturbed); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// stuck finds a call that need not wait, and yet never returned although every fault was over: an
// unlock, a single try, or a timed try whose time was long over. If the lock promises no bound of
// its wait, a timed try may wait as a lock() does, for as long as the lock is held.
func (r *run) stuck(lock string, o *trace.Call) (Finding, bool) {
	if _, bounded := r.Record.Params.Promise(model.JudgeWaitBound); !bounded && o.Action == model.ActTryLockTimed {
		return Finding{}, false
	}
	if o.Outcome != model.Waiting || o.Action == model.ActLock || r.goneAt(o.Caller) < r.LeaveNs {
		return Finding{}, false
	}
	since := max(o.AtNs, r.CalmNs)
	if o.WaitNs > 0 {
		since = max(since, o.WaitsUntilNs())
	}
	if r.LeaveNs-since <= int64(r.Record.Params.GiveUp) {
		return Finding{}, false
	}
	return Finding{Judge: model.JudgeLiveness, Verdict: Broken, AtNs: since, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Form: model.FormStuck, Lock: lock, Thread: o.Caller},
		Detail: Stuck{Call: o.Action, CallNs: o.AtNs, LeftNs: r.LeaveNs, CalmNs: r.CalmNs}}, true
}

// span is a stretch of time.
type span struct{ from, to int64 }

// keeping is a time in which a hold keeps others waiting.
type keeping struct {
	span
	owner    string // "": an unknown thread
	believed bool   // the owner was told of it
}

// own reports whether the hold is the caller's own, and so no reason for its call to wait: the caller was told of it and may
// enter again, or the servers gave it the lock during the call.
func (k keeping) own(r *run, o *trace.Call) bool {
	if o == nil || k.owner != o.Caller || k.from >= o.ReturnedNs() {
		return false
	}
	return k.from >= o.AtNs || k.believed && r.enters()
}

// enters reports whether a thread that holds the lock and asks for it again is granted at once.
func (r *run) enters() bool { return !r.Record.Params.Uncounted || r.Record.Params.Idempotent }

// kept returns the times in which threads believed to hold the lock, were being served, or had it without being told.
func (r *run) kept(lock string) []keeping {
	out := append(r.served(lock), r.unheard(lock)...)
	for _, b := range r.beliefs(lock) {
		out = append(out, keeping{span: span{b.from, r.keptUntil(b)}, owner: b.who, believed: true})
	}
	return out
}

// reasons returns the times in which a call has a reason to wait, or, for nil, a call of somebody who has no hold.
func (r *run) reasons(o *trace.Call, occupied []span, kept []keeping) []span {
	all := slices.Clone(occupied)
	for _, k := range kept {
		if !k.own(r, o) {
			all = append(all, k.span)
			continue
		}
		for _, m := range o.Sent { // an answer may say that it has the lock
			if m.RepliedNs > k.from && m.AtNs < k.to {
				all = append(all, span{max(m.AtNs, k.from), min(m.RepliedNs, k.to)})
			}
		}
	}
	return all
}

// occupied returns the times in which a waiter has a reason to wait besides those in which a hold is kept: a thread was
// giving the lock up, the lock was closed, or a fault lasted.
func (r *run) occupied(lock string) []span {
	var busy []span
	for _, o := range r.CallsOn(lock) {
		if o.Action == model.ActUnlock && r.StateAt(lock, o.AtNs).Owner == o.Caller {
			busy = append(busy, span{o.AtNs, min(o.ReturnedNs(), r.goneAt(o.Caller))})
		}
	}
	for _, t := range r.Faults {
		busy = append(busy, span{t.FromNs, t.ToNs})
	}
	busy = append(busy, r.closed(lock)...)
	for _, m := range r.CommandsOn(lock) {
		for _, h := range m.Hits {
			busy = append(busy, span{h.AtNs, h.AtNs})
		}
	}
	return busy
}

// keptUntil returns until when a believed hold keeps others waiting. A thread whose extension failed no longer
// relies on its hold. Without a lease the hold lasts until the thread gives it up.
func (r *run) keptUntil(b belief) int64 {
	if !b.doubted || !r.Record.Params.Endless {
		return b.to
	}
	to := min(r.goneAt(b.who), r.LeaveNs)
	for _, o := range r.CallsOn(b.lock) {
		if o.Caller == b.who && o.Action == model.ActUnlock && o.AtNs >= b.to {
			return min(to, o.AtNs)
		}
	}
	return to
}

// unheard returns the times for which the servers held the lock for a thread that was not told, where threads
// know holds only by their grants. Each lasts until the end of the lease that a request of the thread's call
// began, or of the last such request if others came late. A call that answers busy leaves no hold behind. A hold of
// an unknown thread lasts until the servers end it.
func (r *run) unheard(lock string) []keeping {
	if !r.Record.Params.PerGrant {
		return nil
	}
	told := map[*trace.Change]bool{}
	for _, o := range r.CallsOn(lock) {
		if o.Outcome == model.Granted {
			told[r.answered(o)] = true
		}
	}
	var out []keeping
	for _, h := range r.Holds(lock) {
		if model.ProcessOf(h.Owner) == "" { // a value with which no call was granted the lock
			out = append(out, keeping{span: span{h.FromNs(), h.ToNs()}})
			continue
		}
		if !told[h.Began] && !r.Record.Params.Endless && r.placedByFault(h.Began) != nil {
			out = append(out, keeping{span: span{h.FromNs(), h.ToNs()}})
			continue
		}
		o := r.grantedBy(h.Began)
		if told[h.Began] || o == nil || o.Caller != h.Owner || o.Outcome == model.Busy {
			continue
		}
		for _, c := range append([]*trace.Change{h.Began}, h.Moved...) {
			during := c.By != nil && c.By.SpeaksFor(o.Caller) && o.AtNs <= c.By.AtNs && c.By.AtNs <= o.ReturnedNs()
			if c.After.ExpiresMs >= 0 && (during || c.Call() != o && r.grantedBy(c) == o) {
				out = append(out, keeping{span: span{c.AtNs, min(h.ToNs(), (c.After.ExpiresMs+1)*millisecond)}, owner: h.Owner})
			}
		}
	}
	return out
}

// closed returns the times in which nobody can take the lock although nobody holds it. Each ends,
// at the latest, when the server last said that it would.
func (r *run) closed(lock string) []span {
	var out []span
	changes := r.Changes(lock)
	for i, c := range changes {
		if c.After.ClosedMs == 0 {
			continue
		}
		to := (c.After.ClosedMs + 1) * millisecond
		if i+1 < len(changes) {
			to = min(to, changes[i+1].AtNs)
		}
		if c.AtNs < to {
			out = append(out, span{c.AtNs, to})
		}
	}
	return out
}

// spans are sorted by their beginning.
type spans struct {
	all []span
	to  []int64 // the latest end of the spans up to each
}

func inOrder(all []span) spans {
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	s := spans{all, make([]int64, len(all))}
	for i, x := range all {
		s.to[i] = max(s.to[max(i-1, 0)], x.to)
	}
	return s
}

// since returns the spans that begin after an instant, and the instant to which the
// earlier ones reach.
func (s spans) since(at int64) (after []span, to int64) {
	i, _ := slices.BinarySearchFunc(s.all, at, func(x span, at int64) int {
		if x.from <= at {
			return -1
		}
		return 1
	})
	if i > 0 {
		to = s.to[i-1]
	}
	return s.all[i:], to
}

// forgotten finds a time in which a waiter waited without a reason.
func (r *run) forgotten(lock string, o *trace.Call, occupied spans, disturbed []disturbance) (Finding, bool) {
	if o.AtNs >= r.ClosedNs(o.Process) && len(o.Sent) == 0 {
		return Finding{}, false // it asks for nothing, since its own process has closed its client
	}
	until := min(o.ReturnedNs(), o.WaitsUntilNs(), o.InterruptedNs, r.diedAt(o.Caller), r.LeaveNs)
	busy, reach := occupied.since(o.AtNs)
	idle := max(o.AtNs, reach)
	if !idles(idle, until, busy) {
		return Finding{}, false
	}
	disturbed = append(slices.Clip(disturbed), r.ownDisturbances(o)...)
	if r.Record.Params.Fair {
		// A thread in front holds up the threads behind it.
		for _, x := range r.CallsOn(lock) {
			if x != o && x.Action != model.ActUnlock && x.AtNs < until && x.ReturnedNs() > o.AtNs {
				disturbed = append(disturbed, r.ownDisturbances(x)...)
			}
		}
	}
	if own := slices.Concat(unanswered(o), r.connecting(o.Process), r.behindHeldReplies(o)); len(own) > 0 {
		busy = append(own, busy...)
		slices.SortStableFunc(busy, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	}
	for i := 0; i <= len(busy) && idle < until; i++ {
		next := span{until, until}
		if i < len(busy) {
			next = busy[i]
		}
		if end := min(next.from, until); end-idle > patience {
			if b := r.bound(lock, disturbed, idle, end); end-idle > b.Ns+r.slack(b) {
				bound := b.Ns
				return Finding{Judge: model.JudgeLiveness, Verdict: Broken, AtNs: idle + bound, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Form: model.FormForgotten, Lock: lock, Thread: o.Caller},
					Excuses: slices.Concat(r.gone(lock, idle, end, bound), r.deadInFront(lock, idle), r.deadByOtherClocks(lock, idle, end, bound), r.ghostsInFront(lock, idle, end, bound), r.clockSteps(0, end)),
					Detail:  Forgotten{FromNs: idle, ToNs: end, Bound: b, Own: r.StateAt(lock, idle).Owner == o.Caller}}, true
			}
		}
		idle = max(idle, next.to)
	}
	return Finding{}, false
}

// slack returns the time in ns by which a waiter may exceed a bound. A waiter that asks once in each second gets
// the lock a round trip after it asks. A bound of round trips, of a lease or of dead waiters has it already.
func (r *run) slack(b Bound) int64 {
	u := int64(r.Record.Params.Uncertainty)
	if b.RoundTrip > 0 || b.Cost > 0 || b.DeadWaiters {
		return u
	}
	return u + int64(2*r.Record.Params.Latency)
}

// patience is the time in ns that a waiter may wait for nothing in any case.
const patience = int64(time.Second)

// idles reports whether some time of more than patience within [from, to) is in none of the spans, which are
// ordered by their beginnings.
func idles(from, to int64, busy []span) bool {
	for _, b := range busy {
		if min(b.from, to)-from > patience {
			return true
		}
		if from = max(from, b.to); from >= to {
			return false
		}
	}
	return to-from > patience
}

// unanswered returns the times in which the call waited for the answer to a command of
// its own that a fault had met.
func unanswered(o *trace.Call) []span {
	var out []span
	for i, m := range o.Sent {
		if m.Lost == nil && len(m.Hits) == 0 {
			continue
		}
		to := o.ReturnedNs()
		if m.RepliedNs >= 0 {
			to = m.RepliedNs
		} else if i+1 < len(o.Sent) {
			to = o.Sent[i+1].AtNs
		}
		out = append(out, span{m.AtNs, to})
	}
	return out
}

// connecting returns the times in which a fault held up the connections of a process.
func (r *run) connecting(process string) []span {
	var out []span
	for _, x := range r.heldConnections(process) {
		out = append(out, x.span)
	}
	return out
}

// behindHeldReplies returns the times in which a fault held up what the server sent on a connection of
// the call. A stream has an order, so whatever the server sends behind a reply that is late is late, too.
func (r *run) behindHeldReplies(o *trace.Call) []span {
	var out []span
	for _, m := range r.Hit {
		if m.Command != model.SegmentCommand || m.Process != o.Process || m.Executed == nil ||
			!slices.ContainsFunc(m.Hits, func(h *model.Event) bool { return h.Dir == "reply" }) ||
			!slices.ContainsFunc(o.Sent, func(own *trace.Command) bool { return own.Conn == m.Conn }) {
			continue
		}
		to := int64(math.MaxInt64)
		switch {
		case m.RepliedNs >= 0:
			to = m.RepliedNs
		case m.Lost != nil:
			to = m.Lost.AtNs
		}
		out = append(out, span{m.Executed.AtNs, to})
	}
	return out
}

// heldConnection is a time in which faults held up a connection of a process.
type heldConnection struct {
	span
	faults    []int
	ungreeted bool // the client gave the connection up, since the greeting of the server did not come
}

// heldConnections returns the times in which a fault held up a request of the process that belongs
// to no call, such as the beginning of a connection or of a session, or ended its connection. Calls
// and renewals that are sent on the connection wait for it. A request that listens to a channel holds
// up only the messages of that channel, unless it is sent before any request of a call: calls wait until the client is open. A client that waits before it connects again has one
// connection, which any lost request ends.
func (r *run) heldConnections(process string) []heldConnection {
	var out []heldConnection
	called := false
	for _, m := range r.CommandsFrom(process) {
		called = called || m.Call != nil
		if m.Call != nil || called && m.Listens != model.ListensNot {
			continue
		}
		if m.LostWithConnection() { // whatever message the fault met
			out = append(out, heldConnection{span{m.AtNs, m.Lost.AtNs}, faultsThatMet(m), false})
			continue
		}
		if len(m.Hits) == 0 || m.Script != "" && (m.Lost == nil || r.Record.Params.Reconnect == 0) {
			continue
		}
		to := int64(math.MaxInt64)
		switch {
		case m.RepliedNs >= 0:
			to = m.RepliedNs
		case m.Lost != nil: // the client learns of the loss, or asks again, see ownDisturbances
			to = m.Lost.AtNs
		case m.Executed != nil && !slices.ContainsFunc(m.Hits, func(h *model.Event) bool { return h.Dir == "reply" }):
			to = m.Executed.AtNs // it needs no reply
		}
		out = append(out, heldConnection{span{m.AtNs, to}, faultsThatMet(m), false})
	}
	return append(out, r.lateGreetings(process)...)
}

// lateGreetings returns the times in which a fault held up a message that a server sends by itself
// and on no channel, such as its greeting. It begins a connection, or belongs to its stream.
func (r *run) lateGreetings(process string) []heldConnection {
	var out []heldConnection
	for i, e := range r.Pushes {
		if e.Kind != model.KindHit || e.Process != process {
			continue
		}
		for _, later := range r.Pushes[i+1:] {
			if later.Msg == e.Msg && (later.Kind == model.KindDeliver || later.Kind == model.KindLost) {
				if later.Channel == "" {
					out = append(out, heldConnection{span{e.AtNs, later.AtNs}, []int{e.Fault}, later.Kind == model.KindLost})
				}
				break
			}
		}
	}
	return out
}

// faultsThatMet returns the numbers of the faults that met a command.
func faultsThatMet(m *trace.Command) (faults []int) {
	for _, h := range m.Hits {
		faults = append(faults, h.Fault)
	}
	return faults
}

// served returns the times in which the server held the lock for a thread that had not asked to
// give it up, from the grant on. The thread may not know of the hold yet, or believe that its lease
// is over. A call that ended without a grant is served until it ends, since nobody gives up the
// hold that it left.
func (r *run) served(lock string) []keeping {
	var out []keeping
	ops, left := r.CallsOn(lock), r.releases(lock)
	for _, o := range ops {
		// While a client waits for replicas it is being served, too: WAIT ends after a second, and
		// a grant that the client then gives back has bounds of its own.
		for _, g := range r.grantsGivenBack(o) {
			k := keeping{span: span{g.grant.AtNs, g.undo.AtNs}}
			if g.grant.Call() != o { // another call handed it over
				k.owner = o.Caller
			}
			out = append(out, k)
		}
		grants := r.grants(o)
		if c := r.answered(o); len(grants) == 0 && c != nil && o.Outcome == model.Granted {
			grants = append(grants, c) // nobody knows who sent the request
		}
		if len(grants) == 0 {
			continue
		}
		from, to := grants[0].AtNs, min(r.goneAt(o.Caller), r.LeaveNs)
		if o.Outcome != model.Granted {
			to = min(to, o.ReturnedNs())
		}
		for _, u := range ops[called(ops, o.ReturnedNs()):] {
			if u.AtNs >= to {
				break // no later call ends it earlier
			}
			switch {
			case u.Caller != o.Caller || u.Action != model.ActUnlock:
			case left[u.Op].none():
				to = min(to, u.AtNs)
			case left[u.Op].unbounded > 0: // until the thread gives that level up
			default: // it may hold the lock for as long as it asked for
				for _, c := range r.effects(u) {
					to = min(to, c.AtNs+int64(r.mostLease(lock, u.Caller, c, math.MaxInt64)))
				}
			}
		}
		for _, c := range r.ChangesAfter(lock, from) {
			if c.AtNs >= to {
				break
			}
			if c.Before.Owner == o.Caller && c.After.Owner != o.Caller {
				to = c.AtNs
			}
		}
		k := keeping{span: span{from, to}, owner: o.Caller, believed: o.Outcome == model.Granted}
		if by := grants[0].By; by != nil && by.Wait != nil {
			k.owner = "" // it waits for replicas
		}
		if from < to {
			out = append(out, k)
		}
	}
	return out
}

// called returns the index of the first call at an instant or later.
func called(ops []*trace.Call, at int64) int {
	i, _ := slices.BinarySearchFunc(ops, at, func(o *trace.Call, at int64) int { return cmp.Compare(o.AtNs, at) })
	return i
}

// levels has the levels of a thread's hold, according to its calls.
type levels struct {
	leased    []bool // for each level, the latest last
	unbounded int    // the number of levels without a lease, which a watchdog renews
}

func (l levels) none() bool { return len(l.leased) == 0 }

func (l levels) with(leased bool) levels {
	l.leased = append(slices.Clip(l.leased), leased)
	if !leased {
		l.unbounded++
	}
	return l
}

func (l levels) withoutLatest() levels {
	if l.none() {
		return l
	}
	latest := len(l.leased) - 1
	if !l.leased[latest] {
		l.unbounded--
	}
	l.leased = l.leased[:latest]
	return l
}

// releases returns, by the number of each unlock, the levels that it leaves to its thread. A thread
// with levels left wants to keep the lock.
func (r *run) releases(lock string) map[int]levels {
	left := map[int]levels{}
	now := map[string]levels{}
	changes := r.Changes(lock)
	for _, e := range r.EventsOf(lock) {
		who := e.ThreadName()
		switch {
		case e.Kind == model.KindState:
			if c := changes[0]; c.Ended() {
				delete(now, c.Before.Owner)
			}
			changes = changes[1:]
		case e.Kind == model.KindReturn && e.Outcome == model.Granted:
			now[who] = now[who].with(r.Call(e.Op).LeaseNs > 0 || r.leased())
		case e.Kind == model.KindInvoke && e.Action == model.ActUnlock:
			now[who] = now[who].withoutLatest()
			left[e.Op] = now[who]
		}
	}
	return left
}

// disturbance is an event after which a waiter may have to wait for a lease to end: since nobody
// tells the waiter, or nobody knows, that the lock is free.
type disturbance struct {
	from  int64
	at    int64 // when it last had an effect, not before from
	lasts bool  // it may still have an effect at any time
	what  Disturbance
	extra time.Duration // the time that it may cost; 0: a lease
	most  time.Duration // a bound, if that ends earlier than a lease would; 0: none
}

// byFaultNamed returns the disturbance by a fault with that text.
func byFaultNamed(text string) Disturbance { return Disturbance{DisturbedByFault, text} }

// disturbances returns the disturbances of one lock and those that all locks share.
func (r *run) disturbances(lock string) []disturbance {
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
			out = append(out, disturbance{from: at, at: at, what: Disturbance{Kind: DisturbedByCrash}})
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
		d.at = r.lastTouch(x)
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
			out = append(out, disturbance{from: e.AtNs, at: e.AtNs, what: Disturbance{Kind: DisturbedClose}})
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
func (r *run) partsLeft(lock string) []disturbance {
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
func (r *run) partsLeftWithin(lock string, from, to int64) bool {
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
func (r *run) outlasted(lock string) []disturbance {
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
func (r *run) renewedUnheard(lock string, b belief) bool {
	unheard := false
	for _, m := range r.CommandsOn(lock) {
		if m.Script == model.RoleRenew && m.SpeaksFor(b.who) && m.Executed != nil && b.grant.AtNs <= m.Executed.AtNs && m.Executed.AtNs <= b.to {
			unheard = m.RepliedNs < 0 && len(m.Hits) > 0
		}
	}
	return unheard
}

// cutOff reports whether a fault separated a thread from its servers in a stretch of time.
func (r *run) cutOff(who string, from, to int64) bool {
	during := func(t trace.Fault) bool { return t.FromNs <= to && from <= t.ToNs }
	return r.recovering(to) || slices.ContainsFunc(append(r.partitions(who), r.pauses(who)...), during) ||
		slices.ContainsFunc(r.Hit, func(m *trace.Command) bool {
			return m.Process == model.ProcessOf(who) && slices.ContainsFunc(m.Hits, func(h *model.Event) bool { return from <= h.AtNs && h.AtNs <= to })
		})
}

// wakeUps returns the published messages that were lost, or that a fault delayed. A late message is
// as good as lost until it comes.
func (r *run) wakeUps() []disturbance {
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

// ownDisturbances returns the faults that met the waiter's own client.
func (r *run) ownDisturbances(o *trace.Call) []disturbance {
	var out []disturbance
	reconnect := max(r.Record.Params.Resend, r.Record.Params.Reconnect)
	for _, t := range r.partitions(o.Caller) {
		out = append(out, disturbance{from: t.ToNs, at: t.ToNs, what: byFaultNamed(t.Text), extra: reconnect})
	}
	for _, t := range r.pauses(o.Caller) {
		out = append(out, disturbance{from: t.ToNs, at: t.ToNs, what: byFaultNamed(t.Text), extra: r.Record.Params.Resend})
	}
	for _, t := range r.Faults {
		// Each client finds its connections dead when it uses one again.
		if t.Spec.EndsConnections() {
			out = append(out, disturbance{from: t.ToNs, at: t.ToNs, lasts: true, what: byFaultNamed(t.Text), extra: reconnect})
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
				if m.Lost == nil && m.RepliedNs >= 0 && len(m.Changes) == 0 {
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
func (r *run) lastTouch(x *trace.Call) int64 {
	at := x.ReturnedNs()
	for _, c := range r.effects(x) {
		at = max(at, c.AtNs)
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

// touches are the instants of a thread's calls on a lock that have returned, and of the ends of its holds.
type touches struct {
	called   []int64 // in order
	returned []int64 // the latest return of the calls up to this one
	ends     []int64 // in order
}

// touchesOf returns the touches of the threads, by name.
func (r *run) touchesOf(lock string) map[string]*touches {
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

// RoundTrips is the number of round trips that an acquire of a free lock may take on a slow
// network. It may connect, begin a session, and create a parent of the lock. It may try again if
// its first try failed because others tried at the same time.
const RoundTrips = 8

// bound returns how long a waiter may get nothing from the instant from on, if it gets nothing
// until the instant to.
func (r *run) bound(lock string, disturbed []disturbance, from, to int64) Bound {
	waits := r.Record.Params.Waits
	b := Bound{Ns: int64(time.Second + waits), Waits: waits}
	if trip := int64(2 * r.Record.Params.Latency); RoundTrips*trip > int64(time.Second) {
		b = Bound{Ns: RoundTrips*trip + int64(waits), RoundTrip: time.Duration(trip), Waits: waits}
	}
	lease := r.longestLease(lock, to)
	// An event extends the bound only of a wait that is not too long yet when it comes. Else
	// the end of the wait would decide whether an event at that very instant excuses it.
	disturbed = slices.Clone(disturbed)
	slices.SortStableFunc(disturbed, func(a, b disturbance) int { return cmp.Compare(a.from, b.from) })
	for _, d := range disturbed {
		if d.from > from+b.Ns+int64(r.Record.Params.Uncertainty) {
			break
		}
		cost := lease
		switch {
		case d.extra > 0:
			cost = d.extra
		case d.most > 0:
			cost = min(cost, d.most)
		}
		if d.lasts {
			d.at = max(d.from, from)
		}
		if d.at+int64(cost) < from {
			continue
		}
		if until := min(max(d.at, from), to) + int64(time.Second+waits) + int64(cost); until-from > b.Ns {
			b = Bound{Ns: until - from, Cost: cost, After: d.what, Waits: waits}
		}
	}
	if r.Record.Params.Fair {
		wait := r.Record.Params.FairWait
		for _, x := range r.CallsOn(lock) {
			wait = max(wait, time.Duration(x.WaitNs))
		}
		if two := int64(2*wait + time.Second + waits); r.deadInQueue(lock, from, to) && two > b.Ns {
			b = Bound{Ns: two, DeadWaiters: true, Waits: waits}
		}
	}
	return b
}

// longestLease returns the longest lease that a call up to an instant may have asked for.
func (r *run) longestLease(lock string, toNs int64) time.Duration {
	lease := max(r.Record.Params.Watchdog, 0)
	for _, x := range r.CallsOn(lock) {
		if x.AtNs < toNs {
			lease = max(lease, time.Duration(x.LeaseNs))
		}
	}
	return lease
}

// orphaned returns the instants from which on a dead process held the lock.
func (r *run) orphaned(lock, process string) []int64 {
	died := r.DiedNs(process)
	var out []int64
	if strings.HasPrefix(r.StateAt(lock, died).Owner, process+"/") {
		out = append(out, died)
	}
	for _, c := range r.Changes(lock) {
		if c.AtNs > died && c.Started() && strings.HasPrefix(c.After.Owner, process+"/") {
			out = append(out, c.AtNs)
		}
	}
	return out
}

// deadWaiters returns the threads in the queue whose process is dead or closed its
// client.
func (r *run) deadWaiters(lock string, at int64) []string {
	var out []string
	for _, who := range r.StateAt(lock, at).Queue {
		if r.goneAt(who) <= at {
			out = append(out, who)
		}
	}
	return out
}

// deadInQueue reports whether the queue had a dead waiter in a stretch of time. A dead process's
// last commands may come after its death.
func (r *run) deadInQueue(lock string, from, to int64) bool {
	return len(r.deadWaiters(lock, from)) > 0 || slices.ContainsFunc(r.Changes(lock), func(c *trace.Change) bool {
		return from < c.AtNs && c.AtNs <= to && len(r.deadWaiters(lock, c.AtNs)) > 0
	})
}

// deadInFront returns the excuses for a wait behind more than one dead waiter.
func (r *run) deadInFront(lock string, at int64) []model.Excuse {
	var out []model.Excuse
	dead := r.deadWaiters(lock, at)
	if len(dead) < 2 {
		return nil
	}
	for _, t := range r.Faults {
		if t.Spec.Kind == model.FaultCrash && slices.ContainsFunc(dead, func(who string) bool { return strings.HasPrefix(who, t.Process+"/") }) {
			out = append(out, model.Excuse{Circumstance: model.DeadWaiters, Fault: t.Number, Cause: faultAt(t.Text, t.FromNs)})
		}
	}
	return out
}

// ghostsInFront returns the excuses for a wait behind threads that stood in the queue during the
// wait, no longer waited and could not leave. They excuse it up to the bound after the deadline of
// their place.
func (r *run) ghostsInFront(lock string, from, to, bound int64) []model.Excuse {
	var out []model.Excuse
	for _, g := range r.lingering(lock) {
		if len(g.Ops) == 0 {
			continue
		}
		who := model.ThreadName(g.Ops[0].Process, g.Ops[0].Thread)
		place := r.StateAt(lock, from).Deadlines[who]
		for _, c := range r.ChangesAfter(lock, from) {
			if c.AtNs <= to {
				place = max(place, c.After.Deadlines[who])
			}
		}
		if place > 0 && to-place*millisecond <= bound {
			out = append(out, g.Excuses...)
		}
	}
	return out
}

// gone returns the excuses for a wait for a lock without leases. They apply if the server holds the
// lock for a thread that will not give it up: the thread died, its client closed, a failover brought the
// hold back, or a fault or an interrupt met the call that should have learned of the hold or given it up. The hold must begin
// before the bound of the wait and last to its end.
func (r *run) gone(lock string, from, to, bound int64) []model.Excuse {
	starts := r.StartsUpTo(lock, to)
	if !r.Record.Params.Endless || len(starts) == 0 {
		return nil
	}
	start := starts[len(starts)-1]
	who := start.After.Owner
	if end := r.EndOf(start); start.AtNs > from+bound || end != nil && end.AtNs < to {
		return nil
	}
	excuse := func(fault int, cause model.Cause) []model.Excuse {
		return []model.Excuse{{Circumstance: model.HolderGone, Fault: fault, Cause: cause}}
	}
	placed := r.placedByFault(start)
	for _, c := range r.ChangesWithin(lock, start.AtNs, to) {
		if c.Fault > 0 && c.Before.Value != c.After.Value { // an earlier hold of the same thread
			placed = c
		}
	}
	if placed != nil {
		return excuse(placed.Fault, faultAt(r.Fault(placed.Fault).Text, placed.AtNs))
	}
	if died := r.diedAt(who); died <= to {
		for _, t := range r.Faults {
			if t.Spec.Kind == model.FaultCrash && t.FromNs == died && t.Spec.Names(model.ProcessOf(who)) {
				return excuse(t.Number, faultAt(t.Text, died))
			}
		}
	}
	if at := r.goneAt(who); at <= to {
		return excuse(0, model.Cause{Kind: model.CauseClosed, Thread: who, AtNs: at})
	}
	for _, o := range slices.Backward(r.CallsOn(lock)) {
		late := o == start.Call() && start.AtNs > o.ReturnedNs()
		if o.Caller != who || o.AtNs > to || o.Outcome != model.Unknown && !late {
			continue
		}
		for _, m := range o.Sent {
			for _, h := range m.Hits {
				return excuse(h.Fault, faultAt(h.Text, h.AtNs))
			}
		}
		for _, t := range r.Faults {
			// A client finds its connection dead when it writes to it for the first time after the fault.
			ended := t.Spec.EndsConnections() && t.FromNs <= o.AtNs && !slices.ContainsFunc(r.CommandsFrom(o.Process), func(m *trace.Command) bool {
				return t.FromNs < m.AtNs && 0 <= m.RepliedNs && m.RepliedNs <= o.ReturnedNs()
			})
			if ended || t.FromNs <= r.underWayUntil(o) && o.AtNs <= t.ToNs {
				return excuse(t.Number, faultAt(t.Text, t.FromNs))
			}
		}
		if o.InterruptedNs <= o.ReturnedNs() {
			return excuse(0, model.Cause{Kind: model.CauseInterrupt, Thread: who, AtNs: o.InterruptedNs})
		}
	}
	return nil
}

// placedByFault returns the change in which a fault, such as a failover that loses writes, brought a hold back of which
// its thread does not know, or its place in the queue, in which it stood until the hold began; nil if none did.
func (r *run) placedByFault(start *trace.Change) *trace.Change {
	if start.Fault > 0 {
		return start
	}
	for _, c := range slices.Backward(r.ChangesUpTo(start.Lock, start.AtNs)) {
		switch {
		case start.Precedes(c):
		case c != start && c.Fault > 0:
			return c
		case !slices.Contains(c.Before.Queue, start.After.Owner):
			return nil
		}
	}
	return nil
}

// deadByOtherClocks returns the excuses for a wait behind dead waiters that exceeds its bound by no
// more than the distance of the clocks. The end of a place in the queue depends on the clock of the
// process that made it, and on that of the process that asks.
func (r *run) deadByOtherClocks(lock string, from, to, bound int64) []model.Excuse {
	var skews []time.Duration
	for _, p := range r.Record.Params.Processes {
		skews = append(skews, p.Skew)
	}
	slices.Sort(skews)
	var apart time.Duration
	for _, s := range skews[max(0, len(skews)-2):] {
		apart += s
	}
	if !r.deadInQueue(lock, from, to) || to-from > bound+int64(apart) {
		return nil
	}
	return r.clocksApart()
}
