package linearizability

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

// JudgeHarness is the name under which the harness accuses itself.
const JudgeHarness = "harness"

// judgeDefects: the harness itself went wrong, or the lock panicked.
func judgeDefects(r *run) []Finding {
	var out []Finding
	for _, e := range r.rec.Events {
		if e.Kind == model.KindDefect {
			out = append(out, Finding{Judge: JudgeHarness, Verdict: Undecided, AtNs: e.AtNs, Why: e.Text})
		}
	}
	return out
}

// judgeFIFO: a new hold although another thread, waiting and within its own
// wait, had its first try executed by the server before.
func judgeFIFO(r *run) []Finding {
	if !r.rec.Params.Fair {
		return nil
	}
	var out []Finding
	for _, lock := range r.locks {
		ops := r.opsOf(lock)
		for _, c := range r.states[lock] {
			if !c.started() || c.by == nil || c.by.Op == 0 {
				continue
			}
			y := r.ops[c.by.Op-1]
			tried := y.first("acquire")
			if tried == nil {
				continue
			}
			for _, x := range ops {
				if r.overtaken(x, y, tried, c) {
					out = append(out, r.overtaking(lock, x, y, c))
					break
				}
			}
		}
	}
	return out
}

// overtaken: x waited when y, which tried later, was given the lock.
func (r *run) overtaken(x, y *operation, tried *msg, c change) bool {
	if x == y || x.who == y.who || x.Action != model.ActLock && x.Action != model.ActTryLockTimed {
		return false
	}
	first := x.first("acquire")
	if first == nil || first.exec.AtNs >= tried.exec.AtNs {
		return false
	}
	if x.returned() <= c.at || x.waitsUntil() <= c.at || r.diedAt(x.who) <= c.at || r.endNs <= c.at {
		return false
	}
	if x.interrupted <= c.at {
		return false // whether it still waits is its own affair
	}
	for _, g := range r.grants(x) {
		if g.at < c.at {
			return false
		}
	}
	return true
}

func (r *run) overtaking(lock string, x, y *operation, c change) Finding {
	first := x.first("acquire")
	f := Finding{Judge: model.JudgeFIFO, Verdict: Broken, AtNs: c.at, Ops: []OpRef{x.ref(), y.ref()}}
	evicted := int64(-1)
	for _, e := range r.states[lock] {
		if e.at > first.exec.AtNs && e.at <= c.at && slices.Contains(e.before.Queue, x.who) && !slices.Contains(e.after.Queue, x.who) {
			evicted = e.at
		}
	}
	f.Why = fmt.Sprintf("%s was granted %s at %s before %s, which had first tried at %s and still waited",
		y.who, lock, model.At(c.at), x.who, model.At(first.exec.AtNs))
	if evicted >= 0 {
		f.Why += fmt.Sprintf("; it had lost its place in the queue at %s", model.At(evicted))
	}
	skewed := false
	for _, p := range r.rec.Params.Processes {
		skewed = skewed || p.Skew >= time.Millisecond
	}
	if skewed {
		f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.ClocksApart, Clocks: true, Why: "wall clocks differ"})
	}
	covers := func(t trouble) bool {
		return t.from <= c.at && c.at <= t.to || evicted >= 0 && t.from <= evicted && evicted <= t.to
	}
	for _, t := range append(r.pauses(x.who), r.cuts(x.who)...) {
		if covers(t) {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: t.number, Why: t.text})
		}
	}
	for _, m := range r.ordered {
		process, _, _ := strings.Cut(x.who, "/")
		if m.Op != x.Op && (m.Process != process || m.Op > 0) {
			continue
		}
		for _, h := range m.hits {
			if first.AtNs <= h.AtNs && h.AtNs <= c.at {
				f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.WaiterAway, Fault: h.Fault, Why: r.fault(h.Fault).text})
			}
		}
	}
	for _, e := range r.states[lock] {
		if e.fault > 0 && first.exec.AtNs <= e.at && e.at <= c.at {
			f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.HoldRemoved, Fault: e.fault, Why: r.fault(e.fault).text})
		}
	}
	return f
}

// judgeLease: what must be true of leases and renewals.
func judgeLease(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		out = append(out, r.leases(lock)...)
		out = append(out, r.lateRenewals(lock)...)
	}
	return out
}

func (r *run) leases(lock string) []Finding {
	var out []Finding
	add := func(at int64, format string, args ...any) {
		out = append(out, Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: at, Why: fmt.Sprintf(format, args...)})
	}
	beliefs := r.beliefs(lock)
	changes := r.states[lock]
	endless := false
	for _, c := range changes {
		who := c.after.Owner
		if c.after.Held() && c.after.ExpiresMs < 0 && !endless {
			endless = true
			add(c.at, "the hold of %s on %s has no time to live since %s", who, lock, model.At(c.at))
		}
		if c.by != nil && c.after.Held() && c.after.ExpiresMs >= 0 && (c.before.Owner != who || c.after.ExpiresMs != c.before.ExpiresMs) {
			if most := r.mostLease(lock, who, c); most > 0 {
				got := c.after.ExpiresMs - c.at/int64(time.Millisecond)
				if time.Duration(got)*time.Millisecond > most {
					add(c.at, "at %s the hold of %s on %s got a lease of %v, and asked for %v at most", model.At(c.at), who, lock, time.Duration(got)*time.Millisecond, most)
				}
			}
		}
		if c.expired && c.ended() {
			if b := believer(beliefs, c.before.Owner, c.at); b != nil && b.lease == 0 {
				if f, late := r.unrenewed(lock, *b, c); late {
					out = append(out, f)
				}
			}
		}
	}
	// An orphan outlives its lease.
	for _, process := range slices.Sorted(maps.Keys(r.dead)) {
		died := r.dead[process]
		held := r.stateAt(lock, died)
		if !strings.HasPrefix(held.Owner, process+"/") || held.ExpiresMs < 0 {
			held = model.LockState{}
		}
		for _, c := range changes {
			if c.at > died && c.started() && strings.HasPrefix(c.after.Owner, process+"/") {
				held = c.after // what it had sent before it died
				continue
			}
			if c.at > died && held.Held() && c.after.Owner == held.Owner && c.after.ExpiresMs > held.ExpiresMs {
				if c.by != nil && c.by.AtNs <= died {
					held = c.after // sent while it lived
					continue
				}
				add(c.at, "the hold of %s on %s was prolonged at %s, although it had died at %s", held.Owner, lock, model.At(c.at), model.At(died))
				break
			}
		}
	}
	return out
}

// mostLease is the longest lease that an owner may have after a change: what
// its calls asked for, or the watchdog timeout where it asked for none.
func (r *run) mostLease(lock, who string, c change) time.Duration {
	if c.by == nil || !slices.Contains(c.by.owners, who) {
		return 0
	}
	var most time.Duration
	unlimited := false
	began := c.at // when the present hold did
	for _, s := range r.states[lock] {
		if s.started() && s.after.Owner == who && s.at <= c.at {
			began = s.at
		}
	}
	for _, o := range r.opsOf(lock) {
		if o.who != who || o.AtNs > c.at || !o.Action.Acquires() {
			continue
		}
		// Calls of before this hold began count only when they are open: their
		// command may arrive late.
		g := r.grants(o)
		before := len(g) > 0 && g[len(g)-1].at < began || len(g) == 0 && o.outcome != model.Unknown
		if before && o.returned() < c.at {
			continue
		}
		if o.LeaseNs == 0 {
			unlimited = true
		}
		most = max(most, time.Duration(o.LeaseNs))
	}
	if unlimited {
		most = max(most, r.rec.Params.Watchdog)
	}
	return most
}

func believer(beliefs []belief, who string, at int64) *belief {
	for i := range beliefs {
		if b := &beliefs[i]; b.who == who && b.from <= at && at < b.to {
			return b
		}
	}
	return nil
}

// unrenewed: a hold with a watchdog ended by expiry although nothing had met
// its messages for a watchdog period.
func (r *run) unrenewed(lock string, b belief, c change) (Finding, bool) {
	last := b.from
	why := "no fault met its messages"
	for _, t := range r.metRenewals(lock, b.who, b.from-int64(r.rec.Params.Watchdog), c.at) {
		if t.to >= last {
			last = t.to
			why = fmt.Sprintf("the last fault that met its messages was %s at %s", r.fault(t.number).text, model.At(t.to))
		}
	}
	if c.at-last < int64(r.rec.Params.Watchdog/3) {
		return Finding{}, false
	}
	return Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: c.at, Ops: []OpRef{b.grant.ref()},
		Why: fmt.Sprintf("the hold of %s on %s ended with its lease at %s while %s believed to hold it and its watchdog should have renewed it; %s",
			b.who, lock, model.At(c.at), b.who, why)}, true
}

// lateRenewals: renewals sent after the release of the last level returned, or
// for an acquire that returned without a grant.
func (r *run) lateRenewals(lock string) []Finding {
	type known struct {
		at     int64
		levels int
		open   *operation // a call that may change the levels
		lost   bool       // the hold is gone, and no call has returned since
		why    string
		last   *operation
	}
	owners := map[string]*known{}
	of := func(who string) *known {
		if owners[who] == nil {
			owners[who] = &known{why: "it never held it"}
		}
		return owners[who]
	}
	var out []Finding
	told := map[string]bool{}
	changes := r.states[lock]
	for i := range r.rec.Events {
		e := &r.rec.Events[i]
		switch {
		case e.Kind == model.KindState && e.Lock == lock:
			c := changes[0]
			changes = changes[1:]
			if c.ended() && (c.by == nil || !slices.Contains(c.by.owners, c.before.Owner)) {
				k := of(c.before.Owner)
				k.levels, k.lost = 0, true
			}
		case e.Kind == model.KindInvoke && e.Lock == lock:
			of(e.ThreadName()).open = r.ops[e.Op-1]
		case e.Kind == model.KindReturn && e.Lock == lock:
			o := r.ops[e.Op-1]
			k := of(o.who)
			k.open, k.last, k.lost = nil, o, false
			switch {
			case o.outcome == model.Granted:
				k.levels++
			case o.Action == model.ActUnlock && (o.outcome == model.Released || o.outcome == model.StillHeld):
				k.levels = max(0, k.levels-1)
			case o.Action == model.ActUnlock && (o.outcome == model.NotHeld || o.outcome == model.Unknown || o.outcome == model.Failed):
				k.levels = max(0, k.levels-1)
				if o.outcome == model.NotHeld {
					k.levels = 0
				}
			}
			if k.levels == 0 {
				k.at = e.AtNs
				k.why = fmt.Sprintf("its %s had returned %s at %s", o.Action, o.outcome, model.At(e.AtNs))
			}
		case e.Kind == model.KindSend && e.Script == "renew" && e.AtNs < r.endNs:
			for j, l := range e.Locks {
				if l != lock || j >= len(e.Owners) {
					continue
				}
				who := e.Owners[j]
				k := of(who)
				if k.levels > 0 || k.lost || k.open != nil || told[who] {
					continue
				}
				told[who] = true
				f := Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: e.AtNs,
					Why: fmt.Sprintf("a renewal of %s for %s was sent at %s, although %s", lock, who, model.At(e.AtNs), k.why)}
				if k.last != nil {
					f.Ops = []OpRef{k.last.ref()}
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// judgeLiveness: nobody believes to hold, the server is healthy, and a waiter
// gets nothing for longer than the bound.
func judgeLiveness(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		busy, disturbed := r.occupied(lock), r.disturbances(lock)
		for _, o := range r.opsOf(lock) {
			if f, ok := r.stuck(lock, o); ok {
				out = append(out, f)
				continue
			}
			if o.Action != model.ActLock && o.Action != model.ActTryLockTimed {
				continue
			}
			if f, ok := r.forgotten(lock, o, busy, disturbed); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// stuckAfter is longer than any client takes to give a command up: the resends
// of a renewal take 22 s.
const stuckAfter = 25 * time.Second

// stuck: after calm, a call that waits for nobody never returned: an unlock, a
// single try, a timed one whose time was long over.
func (r *run) stuck(lock string, o *operation) (Finding, bool) {
	if o.outcome != model.Waiting || o.Action == model.ActLock || r.goneAt(o.who) < r.endNs {
		return Finding{}, false
	}
	since := max(o.AtNs, r.calmNs)
	if o.WaitNs > 0 {
		since = max(since, o.waitsUntil())
	}
	if r.endNs-since <= int64(stuckAfter) {
		return Finding{}, false
	}
	return Finding{Judge: model.JudgeLiveness, Verdict: Broken, AtNs: since, Ops: []OpRef{o.ref()},
		Why: fmt.Sprintf("%s of %s by %s, called at %s, had not returned at %s, although every fault was over at %s",
			o.Action, lock, o.who, model.At(o.AtNs), model.At(r.endNs), model.At(r.calmNs))}, true
}

// span is a stretch of time.
type span struct{ from, to int64 }

// occupied are the times in which somebody believed to hold the lock, was
// served by it or was giving it up, and those in which a fault was on: waiting
// then is not waiting for nobody. Sorted by their beginning.
func (r *run) occupied(lock string) []span {
	busy := r.served(lock)
	for _, o := range r.opsOf(lock) {
		if o.Action == model.ActUnlock && r.stateAt(lock, o.AtNs).Owner == o.who {
			busy = append(busy, span{o.AtNs, min(o.returned(), r.goneAt(o.who))})
		}
	}
	for _, b := range r.beliefs(lock) {
		busy = append(busy, span{b.from, b.to})
	}
	for _, t := range r.faults {
		busy = append(busy, span{t.from, t.to})
	}
	for _, m := range r.ordered {
		if !slices.Contains(m.Locks, lock) {
			continue
		}
		for _, h := range m.hits {
			busy = append(busy, span{h.AtNs, h.AtNs})
		}
	}
	slices.SortFunc(busy, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return busy
}

// forgotten looks for a time in which a waiter waited for nobody.
func (r *run) forgotten(lock string, o *operation, busy []span, disturbed []disturbance) (Finding, bool) {
	until := min(o.returned(), o.waitsUntil(), o.interrupted, r.diedAt(o.who), r.endNs)
	idle := o.AtNs
	disturbed = append(slices.Clip(disturbed), r.ownDisturbances(o)...)
	if r.rec.Params.Fair {
		// Whoever stands in front holds up those behind it.
		for _, x := range r.opsOf(lock) {
			if x != o && x.Action != model.ActUnlock && x.AtNs < until && x.returned() > o.AtNs {
				disturbed = append(disturbed, r.ownDisturbances(x)...)
			}
		}
	}
	if own := o.unanswered(); len(own) > 0 {
		busy = append(own, busy...)
		slices.SortStableFunc(busy, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	}
	for i := 0; i <= len(busy) && idle < until; i++ {
		next := span{until, until}
		if i < len(busy) {
			next = busy[i]
		}
		if end := min(next.from, until); end-idle > int64(time.Second) {
			if bound, why := r.bound(lock, disturbed, idle, end); end-idle > bound {
				return Finding{Judge: model.JudgeLiveness, Verdict: Broken, AtNs: idle + bound, Ops: []OpRef{o.ref()},
					Excuses: r.deadInFront(lock, idle),
					Why: fmt.Sprintf("%s waited for %s from %s to %s while nobody believed to hold it; the bound is %v%s",
						o.who, lock, model.At(idle), model.At(end), time.Duration(bound), why)}, true
			}
		}
		idle = max(idle, next.to)
	}
	return Finding{}, false
}

// unanswered are the times in which the call waited for the answer to a
// command of its own that a fault had met.
func (o *operation) unanswered() []span {
	var out []span
	for i, m := range o.sent {
		if m.lost == nil && len(m.hits) == 0 {
			continue
		}
		to := o.returned()
		if m.delivered >= 0 {
			to = m.delivered
		} else if i+1 < len(o.sent) {
			to = o.sent[i+1].AtNs
		}
		out = append(out, span{m.AtNs, to})
	}
	return out
}

// served are the times in which the server held the lock for a thread that
// had not asked to give it up, from the grant on: the thread may not know of it
// yet, or believe that its lease is over. Not those of calls that ended without
// a grant: nobody will give these up.
func (r *run) served(lock string) []span {
	var out []span
	ops := r.opsOf(lock)
	for _, o := range ops {
		grants := r.grants(o)
		if len(grants) == 0 {
			continue
		}
		from, to := grants[0].at, min(r.goneAt(o.who), r.endNs)
		if o.outcome != model.Granted {
			to = min(to, o.returned())
		}
		for _, u := range ops {
			if u.who == o.who && u.Action == model.ActUnlock && u.AtNs >= o.returned() {
				to = min(to, u.AtNs)
			}
		}
		for _, c := range r.states[lock] {
			if c.at > from && c.before.Owner == o.who && c.after.Owner != o.who {
				to = min(to, c.at)
			}
		}
		if from < to {
			out = append(out, span{from, to})
		}
	}
	return out
}

// disturbance is an event after which a waiter may have to wait for a lease to
// end: nobody tells it, or nobody knows, that the lock is free.
type disturbance struct {
	from  int64
	at    int64 // when it last had an effect, not before from
	what  string
	extra time.Duration // how long it may cost; 0: a lease
}

// resend is what a client may need to notice that its command was lost and to
// send it again, or to give up: Redisson's subscription timeout of 7.5 s is the
// longest of its waits.
const resend = 7500 * time.Millisecond

// disturbances of one lock, and of those that all locks share.
func (r *run) disturbances(lock string) []disturbance {
	var out []disturbance
	for _, process := range slices.Sorted(maps.Keys(r.dead)) {
		// What the dead held, or were still given, ends with its lease.
		for _, at := range r.orphaned(lock, process) {
			out = append(out, disturbance{from: at, at: at, what: "a crash"})
		}
	}
	for _, x := range r.opsOf(lock) {
		switch {
		case x.ret == nil:
		case x.outcome == model.Unknown || x.interrupted < math.MaxInt64:
			out = append(out, disturbance{from: x.returned(), at: r.lastTouch(x), what: "a call of unknown outcome"})
		case x.Action == model.ActUnlock && x.outcome == model.Failed:
			out = append(out, disturbance{from: x.returned(), at: r.lastTouch(x), what: "a release that failed"})
		}
	}
	for i := range r.rec.Events {
		e := &r.rec.Events[i]
		switch {
		case e.Kind == model.KindLost && e.Dir == "push" && e.Why != "nobody waits for it":
			out = append(out, disturbance{from: e.AtNs, at: e.AtNs, what: "a lost wake-up"})
		case e.Kind == model.KindClose:
			out = append(out, disturbance{from: e.AtNs, at: e.AtNs, what: "a client that closed"})
		}
	}
	for _, c := range r.states[lock] {
		if c.fault > 0 && c.ended() {
			out = append(out, disturbance{from: c.at, at: c.at, what: "a hold that another hand removed, which wakes nobody"})
		}
	}
	return out
}

// lastTouch is when the owner of a call that ended badly last had to do with
// the hold that it may have left behind: entering it again and leaving once
// more puts its time to live back without ending it.
func (r *run) lastTouch(x *operation) int64 {
	at := x.returned()
	end := int64(math.MaxInt64)
	for _, c := range r.states[x.Lock] {
		if c.at > at && c.before.Owner == x.who && c.after.Owner != x.who {
			end = c.at
			break
		}
	}
	for _, o := range r.opsOf(x.Lock) {
		if o.who == x.who && o.ret != nil && o.outcome != model.Waiting && o.AtNs < end {
			at = max(at, min(o.returned(), end))
		}
	}
	return at
}

// ownDisturbances are the faults that met the waiter's own client.
func (r *run) ownDisturbances(o *operation) []disturbance {
	var out []disturbance
	for _, t := range append(r.cuts(o.who), r.pauses(o.who)...) {
		out = append(out, disturbance{from: t.to, at: t.to, what: t.text, extra: resend})
	}
	for _, m := range r.ordered {
		if m.Process == o.Process && m.Op == o.Op || m.lost != nil && m.Process == o.Process && m.Script == "" {
			for _, h := range m.hits {
				out = append(out, disturbance{from: h.AtNs, at: h.AtNs, what: h.Text, extra: resend})
			}
		}
	}
	return out
}

// bound is how long a waiter may get nothing from the instant from on.
func (r *run) bound(lock string, disturbed []disturbance, from, to int64) (ns int64, why string) {
	ns = int64(time.Second)
	lease := max(r.rec.Params.Watchdog, 0)
	for _, x := range r.opsOf(lock) {
		if x.AtNs < to {
			lease = max(lease, time.Duration(x.LeaseNs))
		}
	}
	for _, d := range disturbed {
		cost := lease
		if d.extra > 0 {
			cost = d.extra
		}
		if d.from > to || d.at+int64(cost) < from {
			continue
		}
		if until := min(max(d.at, from), to) + int64(time.Second) + int64(cost); until-from > ns {
			ns = until - from
			why = fmt.Sprintf(" (a second and %v, after %s)", cost, d.what)
		}
	}
	if r.rec.Params.Fair && len(r.dead) > 0 {
		wait := r.rec.Params.FairWait
		for _, x := range r.opsOf(lock) {
			wait = max(wait, time.Duration(x.WaitNs))
		}
		if two := int64(2*wait + time.Second); len(r.deadWaiters(lock, from)) > 0 && two > ns {
			ns = two
			why = " (two waits of this lock and a second, with dead waiters in front)"
		}
	}
	return ns, why
}

// orphaned are the instants from which the lock was held by a dead process.
func (r *run) orphaned(lock, process string) []int64 {
	died := r.dead[process]
	var out []int64
	if strings.HasPrefix(r.stateAt(lock, died).Owner, process+"/") {
		out = append(out, died)
	}
	for _, c := range r.states[lock] {
		if c.at > died && c.started() && strings.HasPrefix(c.after.Owner, process+"/") {
			out = append(out, c.at)
		}
	}
	return out
}

// deadWaiters are the threads in the queue whose process is dead.
func (r *run) deadWaiters(lock string, at int64) []string {
	var out []string
	for _, who := range r.stateAt(lock, at).Queue {
		if r.diedAt(who) <= at {
			out = append(out, who)
		}
	}
	return out
}

// deadInFront excuses a wait behind more than one dead waiter.
func (r *run) deadInFront(lock string, at int64) []model.Excuse {
	var out []model.Excuse
	dead := r.deadWaiters(lock, at)
	if len(dead) < 2 {
		return nil
	}
	for _, t := range r.faults {
		if strings.HasPrefix(t.text, "crash of ") && slices.ContainsFunc(dead, func(who string) bool { return strings.HasPrefix(who, t.process+"/") }) {
			out = append(out, model.Excuse{Circumstance: model.DeadWaiters, Fault: t.number, Why: t.text + " at " + model.At(t.from)})
		}
	}
	return out
}

// fault is the trouble of a number; a rule that was never noted as begun has
// its text from its hits.
func (r *run) fault(number int) trouble {
	for _, t := range r.faults {
		if t.number == number {
			return t
		}
	}
	t := trouble{number: number, text: fmt.Sprintf("fault %d", number)}
	for _, e := range r.rec.Events {
		if e.Kind == model.KindHit && e.Fault == number {
			t.from, t.text = e.AtNs, e.Text
			break
		}
	}
	return t
}

func serverFault(t trouble) bool {
	return strings.HasPrefix(t.text, "server ") || strings.HasPrefix(t.text, "failover")
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

func name(owners []string) string {
	if len(owners) == 0 {
		return "somebody"
	}
	return strings.Join(owners, ", ")
}
