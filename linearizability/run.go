package linearizability

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/model"
)

// run is a record as the judges read it: its operations, what the server held
// when, and what went wrong when. Built once, in one pass.
type run struct {
	rec     *model.Record
	ops     []*operation            // by number, from 1 at index 0
	calls   map[string][]*operation // by lock, in order
	states  map[string][]change
	starts  map[string][]change            // those of them that began a hold
	changed map[changeOf]int               // which of states a message made first, from 1
	left    map[string]map[string][]change // by lock and thread: what took it out of the queue
	locks   []string                       // names with a state or an operation, sorted
	msgs    map[int]*msg
	ordered []*msg // by number
	met     []*msg // those that a fault's rule hit
	faults  []trouble
	dead    map[string]int64 // process -> when it died
	closed  map[string]int64 // process -> when its client was closed
	calmNs  int64            // when every fault was over
	endNs   int64            // when all left
}

// operation is a call of a thread.
type operation struct {
	model.Event // its invoke
	who         string
	ret         *model.Event // nil: none, or the end of the run
	outcome     model.Outcome
	sent        []*msg   // commands sent for it, in order
	changes     []change // of its lock by its own commands, in order
	interrupted int64    // when it was; MaxInt64: never
}

func (o *operation) returned() int64 {
	if o.ret == nil {
		return math.MaxInt64
	}
	return o.ret.AtNs
}

// waitsUntil is when the operation's own wait ends.
func (o *operation) waitsUntil() int64 {
	if o.WaitNs < 0 {
		return math.MaxInt64
	}
	return o.AtNs + o.WaitNs
}

// first gives the command of that script that was executed first, which need
// not be the one that was sent first.
func (o *operation) first(script string) *msg {
	var found *msg
	for _, m := range o.sent {
		if m.exec != nil && m.Script == script && (found == nil || m.exec.AtNs < found.exec.AtNs) {
			found = m
		}
	}
	return found
}

// refused is when the server gave the error with which the operation ended; ok is
// false where it did not.
func (o *operation) refused() (at int64, ok bool) {
	for _, m := range slices.Backward(o.sent) {
		if m.exec != nil && m.Script == "acquire" {
			return m.exec.AtNs, o.outcome == model.Failed && strings.HasPrefix(m.exec.Reply, "(error)")
		}
	}
	return 0, false
}

func (o *operation) ref() OpRef {
	ret := int64(-1)
	if o.ret != nil && o.outcome != model.Waiting {
		ret = o.ret.AtNs
	}
	return OpRef{Process: o.Process, Thread: o.Thread, Op: string(o.Action), CallNs: o.AtNs, ReturnNs: ret}
}

// msg is a command: sent, perhaps executed, perhaps answered.
type msg struct {
	model.Event // its send
	exec        *model.Event
	delivered   int64 // -1: never
	lost        *model.Event
	hits        []model.Event
	owners      []string // for whom, resolved
}

// change is one change of what the server held of a lock.
type change struct {
	at            int64
	before, after model.LockState
	by            *msg // nil: expiry, or a fault
	expired       bool
	fault         int // the fault whose hand it was, 0: none
}

func (c change) started() bool { return c.after.Held() && c.before.Owner != c.after.Owner }
func (c change) ended() bool   { return c.before.Held() && c.before.Owner != c.after.Owner }

// evicts: of a change that took a thread out of the queue, that another hand did.
func (c change) evicts(who string) bool {
	return c.after.Owner != who && (c.by == nil || !slices.Contains(c.by.owners, who))
}

// trouble is a fault while it lasted.
type trouble struct {
	number   int
	spec     model.FaultSpec
	text     string // for people
	process  string // "" for those on several or on none
	from, to int64
}

// changeOf is a message's change of a lock.
type changeOf struct {
	lock string
	msg  int
}

func newRun(rec *model.Record) *run {
	r := &run{rec: rec, calls: map[string][]*operation{}, states: map[string][]change{}, starts: map[string][]change{}, changed: map[changeOf]int{}, left: map[string]map[string][]change{}, msgs: map[int]*msg{}, dead: map[string]int64{}, closed: map[string]int64{}, calmNs: math.MaxInt64, endNs: math.MaxInt64}
	last := map[string]model.LockState{}
	names := map[string]bool{}
	var expired bool
	var lastFault int
	var lastAt int64
	for i := range rec.Events {
		e := &rec.Events[i]
		if e.AtNs != lastAt {
			expired, lastFault, lastAt = false, 0, e.AtNs
		}
		switch e.Kind {
		case model.KindInvoke:
			o := &operation{Event: *e, who: e.ThreadName(), interrupted: math.MaxInt64}
			r.ops = append(r.ops, o)
			r.calls[e.Lock] = append(r.calls[e.Lock], o)
			names[e.Lock] = true
		case model.KindReturn:
			o := r.ops[e.Op-1]
			o.ret, o.outcome = e, e.Outcome
		case model.KindSend:
			m := &msg{Event: *e, delivered: -1, owners: e.Owners}
			if e.Op > 0 {
				o := r.ops[e.Op-1]
				o.sent = append(o.sent, m)
				if len(m.owners) == 0 {
					m.owners = []string{o.who}
				}
			}
			r.msgs[e.Msg] = m
			r.ordered = append(r.ordered, m)
		case model.KindExec:
			if m := r.msgs[e.Msg]; m != nil && !e.NotRun() {
				m.exec = e
			}
		case model.KindDeliver:
			if m := r.msgs[e.Msg]; m != nil {
				m.delivered = e.AtNs
			}
		case model.KindLost:
			if m := r.msgs[e.Msg]; m != nil {
				m.lost = e
			}
		case model.KindHit:
			if m := r.msgs[e.Msg]; m != nil {
				m.hits = append(m.hits, *e)
			}
		case model.KindExpire:
			expired = true
		case model.KindState:
			c := change{at: e.AtNs, before: last[e.Lock], after: *e.State}
			switch {
			case e.Msg > 0:
				c.by = r.msgs[e.Msg]
			case lastFault > 0:
				c.fault = lastFault
			default:
				c.expired = expired
			}
			r.states[e.Lock] = append(r.states[e.Lock], c)
			if c.started() {
				r.starts[e.Lock] = append(r.starts[e.Lock], c)
			}
			if c.by != nil {
				if by := (changeOf{e.Lock, e.Msg}); r.changed[by] == 0 {
					r.changed[by] = len(r.states[e.Lock])
				}
			}
			if c.by != nil && c.by.Op > 0 && r.ops[c.by.Op-1].Lock == e.Lock {
				o := r.ops[c.by.Op-1]
				o.changes = append(o.changes, c)
			}
			last[e.Lock] = *e.State
			names[e.Lock] = true
		case model.KindFault:
			lastFault = e.Fault
			r.faults = append(r.faults, trouble{e.Fault, rec.Params.Fault(e.Fault), e.Text, e.Process, e.AtNs, e.AtNs})
			if _, dead := r.dead[e.Process]; !dead && rec.Params.Fault(e.Fault).Kind == model.FaultCrash {
				r.dead[e.Process] = e.AtNs
			}
		case model.KindFaultEnd:
			for j := range r.faults {
				if r.faults[j].number == e.Fault {
					r.faults[j].to = e.AtNs
				}
			}
		case model.KindUse:
			if e.Phase == "interrupt" && e.Met {
				for _, o := range r.ops {
					if o.who == e.Text && o.ret == nil {
						o.interrupted = min(o.interrupted, e.AtNs)
					}
				}
			}
		case model.KindCalm:
			r.calmNs = e.AtNs
		case model.KindClose:
			if _, ok := r.closed[e.Process]; !ok {
				r.closed[e.Process] = e.AtNs
			}
		case model.KindLeave:
			r.endNs = e.AtNs
		}
	}
	for _, m := range r.ordered {
		if len(m.hits) > 0 {
			r.met = append(r.met, m)
		}
	}
	r.locks = slices.Sorted(maps.Keys(names))
	return r
}

// opsOf are the operations on one lock, in order of their calls.
func (r *run) opsOf(lock string) []*operation { return r.calls[lock] }

// diedAt is when a thread's process died; never: MaxInt64.
func (r *run) diedAt(who string) int64 {
	process := model.ProcessOf(who)
	if at, ok := r.dead[process]; ok {
		return at
	}
	return math.MaxInt64
}

// goneAt is when a thread's process died or closed its client: what it
// believes to hold it has given up.
func (r *run) goneAt(who string) int64 {
	process := model.ProcessOf(who)
	if at, ok := r.closed[process]; ok {
		return min(at, r.diedAt(who))
	}
	return r.diedAt(who)
}

// pauses of a thread's process, in order.
func (r *run) pauses(who string) []trouble { return r.troubles(who, model.FaultPause) }

// cuts are the partitions of a thread's process.
func (r *run) cuts(who string) []trouble { return r.troubles(who, model.FaultPartition) }

// troubles returns the faults of a kind that struck the thread's process, in order.
func (r *run) troubles(who string, kind model.FaultKind) []trouble {
	process := model.ProcessOf(who)
	var out []trouble
	for _, f := range r.faults {
		if f.spec.Kind == kind && f.spec.Names(process) {
			out = append(out, f)
		}
	}
	return out
}

// stateAt is what the server held of a lock at an instant.
func (r *run) stateAt(lock string, at int64) model.LockState {
	changes := r.states[lock]
	if i := len(changes) - len(r.after(lock, at)); i > 0 {
		return changes[i-1].after
	}
	return model.LockState{}
}

// after are the changes of a lock that came later than an instant.
func (r *run) after(lock string, at int64) []change {
	return r.states[lock][upTo(r.states[lock], at):]
}

// upTo is how many of the changes came by an instant.
func upTo(changes []change, at int64) int {
	i, _ := slices.BinarySearchFunc(changes, at, func(c change, at int64) int {
		if c.at <= at {
			return -1
		}
		return 1
	})
	return i
}

// departures are the changes that took a thread out of a lock's queue, by thread,
// in order.
func (r *run) departures(lock string) map[string][]change {
	if out, ok := r.left[lock]; ok {
		return out
	}
	out := map[string][]change{}
	for _, c := range r.states[lock] {
		before, after := c.before.Queue, c.after.Queue
		for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
			before, after = before[1:], after[1:]
		}
		for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
			before, after = before[:len(before)-1], after[:len(after)-1]
		}
		for i, who := range before {
			if !slices.Contains(before[:i], who) && !slices.Contains(c.after.Queue, who) {
				out[who] = append(out[who], c)
			}
		}
	}
	r.left[lock] = out
	return out
}

// grants are the changes in which the operation's own commands took or entered
// the lock, but those that it gave back itself because no replica had them:
// more than one is a grant too many.
func (r *run) grants(o *operation) []change {
	kept, _ := r.keptAndGivenBack(o)
	return kept
}

// givenBack is a grant that the operation gave up itself, because no replica had
// it in time.
type givenBack struct{ grant, undo change }

// givenBack are those of an operation.
func (r *run) givenBack(o *operation) []givenBack {
	_, back := r.keptAndGivenBack(o)
	return back
}

func (r *run) keptAndGivenBack(o *operation) (kept []change, back []givenBack) {
	for _, c := range o.changes {
		switch levels := levelsOf(c, o.who); {
		case levels > 0:
			kept = append(kept, c)
		case levels < 0 && c.by.Script == "unlock" && len(kept) > 0:
			last := len(kept) - 1
			back = append(back, givenBack{kept[last], c})
			kept = kept[:last]
		}
	}
	return kept, back
}

// undone are the commands with which an acquire gave back what no replica had.
func (o *operation) undone() []*msg {
	var out []*msg
	for _, m := range o.sent {
		if o.Action.Acquires() && m.Script == "unlock" {
			out = append(out, m)
		}
	}
	return out
}

// grantsKept are the grants of the hold with which the operation came back:
// one that was sent again may have had another before, which ended without the
// caller's knowing, and may be given another when it is over.
func (r *run) grantsKept(o *operation) []change {
	all := r.grants(o)
	if o.outcome != model.Granted {
		return all
	}
	var kept []change
	for _, g := range all {
		if g.at > o.returned() {
			break
		}
		if g.started() {
			kept = nil
		}
		kept = append(kept, g)
	}
	return kept
}

// entered is the execution that granted the lock, for locks too whose state
// does not change when it is entered again.
func (r *run) entered(o *operation) *msg {
	if g := r.grantsKept(o); len(g) > 0 {
		return g[0].by
	}
	if o.outcome != model.Granted {
		return nil
	}
	var last *msg
	for _, m := range o.sent {
		if m.exec != nil && m.Script == "acquire" {
			last = m
		}
	}
	return last
}

// reached says what the run came to, beside its findings.
func (r *run) reached() []string {
	got := map[string]bool{}
	for _, lock := range r.locks {
		for i, c := range r.states[lock] {
			if c.expired && c.ended() {
				got["lease_expired"] = true
			}
			if c.by != nil && c.by.Script == "renew" && c.before.Owner == c.after.Owner && c.after.ExpiresMs > c.before.ExpiresMs {
				got["renewed"] = true
			}
			if c.by != nil && c.by.Script == "acquire" && c.before.Held() && c.before.Owner == c.after.Owner && slices.Contains(c.by.owners, c.after.Owner) {
				got["reentered"] = true
			}
			if c.started() && c.by != nil && c.by.Op > 0 && r.handedOver(lock, i, r.ops[c.by.Op-1]) {
				got["handed_over"] = true
			}
		}
		for who, departures := range r.departures(lock) {
			if slices.ContainsFunc(departures, func(c change) bool { return c.by != nil && c.evicts(who) }) {
				got["waiter_evicted"] = true
			}
		}
	}
	for i := range r.rec.Events {
		e := &r.rec.Events[i]
		switch {
		case e.Kind == model.KindLost && e.Dir == "push" && e.Why != model.LostUnwanted:
			got["wakeup_lost"] = true
		case e.Kind == model.KindLost && e.Dir == "reply" && e.Script != "":
			if m := r.msgs[e.Msg]; m != nil && m.exec != nil && e.Why != model.LostUnwanted {
				got["reply_lost_after_run"] = true
			}
		case e.Kind == model.KindFault && r.rec.Params.Fault(e.Fault).Server == model.ServerFailover:
			got["failed_over"] = true
		}
	}
	for _, o := range r.ops {
		if o.Action != model.ActUnlock {
			continue
		}
		for _, m := range o.sent {
			if m.exec != nil {
				// The first thing that it did at the server.
				if r.stateBefore(o.Lock, m.Msg, m.exec.AtNs).Owner != o.who {
					got["stale_unlock"] = true
				}
				break
			}
		}
	}
	var out []string
	for _, name := range model.Reachable {
		if got[name] {
			out = append(out, name)
		}
	}
	return out
}

// handedOver: the new holder had been waiting when the one before gave up.
func (r *run) handedOver(lock string, i int, next *operation) bool {
	for j := i; j >= 0; j-- {
		c := r.states[lock][j]
		if j < i && c.started() {
			return false
		}
		if c.ended() && c.by != nil {
			first := next.first("acquire")
			return first != nil && first.exec.AtNs < c.at
		}
	}
	return false
}

// stateBefore is what the server held before it executed a message.
func (r *run) stateBefore(lock string, id int, at int64) model.LockState {
	if c, ok := r.changeBy(lock, id); ok {
		return c.before
	}
	return r.stateAt(lock, at)
}

// belief is a time in which a thread believes to hold a lock.
type belief struct {
	who      string
	lock     string
	from, to int64
	lease    int64      // 0: none
	grant    *operation // or the release that told of a level
	first    *operation // the grant of its first level
	end      *operation // the release that ended it; nil: none did
	paused   *trouble   // the pause that made it last longer
}

// beliefs are what the callers believe: from the return of a grant to the call
// of the last release, or one lease after the granted attempt was sent.
func (r *run) beliefs(lock string) []belief {
	// What a thread believes of the end of its hold is what its latest level
	// says; a release goes back to the level before, from its call on.
	type term struct{ to, lease int64 }
	type open struct {
		b      *belief
		levels []term
	}
	var out []*belief
	now := map[string]*open{}
	lapsed := map[string]*open{} // of a thread whose latest lease is over
	type point struct {
		at     int64
		isCall bool
		o      *operation
	}
	var points []point
	for _, o := range r.opsOf(lock) {
		points = append(points, point{o.AtNs, true, o})
		if o.ret != nil && o.outcome != model.Waiting {
			points = append(points, point{o.ret.AtNs, false, o})
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	stop := func(who string, at int64, by *operation) {
		if h := now[who]; h != nil {
			h.b.to = min(h.b.to, at)
			h.b.end = by
			delete(now, who)
		}
	}
	for _, p := range points {
		o := p.o
		h := now[o.who]
		if h != nil && h.b.to <= p.at {
			delete(now, o.who) // the lease was over before
			lapsed[o.who] = h
			h = nil
		}
		kept := o.Action == model.ActUnlock && o.outcome == model.Failed // it has what it had
		if was := lapsed[o.who]; !p.isCall && h == nil && (o.outcome == model.StillHeld || kept) && was != nil && len(was.levels) > 1 {
			// Only the lease of its latest level was over, as the server tells it, or
			// that of the level before.
			h = &open{b: &belief{who: o.who, lock: lock, from: p.at, grant: o, first: was.b.first}, levels: was.levels}
			out = append(out, h.b)
			now[o.who] = h
		}
		if !p.isCall {
			delete(lapsed, o.who)
		}
		switch {
		case p.isCall && o.Action == model.ActUnlock && h != nil && len(h.levels) == 1,
			p.isCall && o.Action == model.ActForceUnlock:
			stop(o.who, p.at, o)
		case p.isCall && o.Action == model.ActUnlock && h != nil:
			h.b.to = min(h.b.to, max(h.levels[len(h.levels)-2].to, p.at))
		case p.isCall:
		case o.Action.Acquires() && o.outcome == model.Granted:
			to := r.goneAt(o.who)
			lease := o.LeaseNs
			if lease == 0 && r.rec.Params.NoWatchdog {
				lease = int64(r.rec.Params.Watchdog)
			}
			if lease > 0 {
				to = min(to, r.attemptSent(o)+lease)
			}
			if h == nil {
				h = &open{b: &belief{who: o.who, lock: lock, from: p.at, grant: o, first: o}}
				out = append(out, h.b)
				now[o.who] = h
			}
			h.levels = append(h.levels, term{to, lease})
			h.b.to, h.b.lease = to, lease
		case o.Action == model.ActUnlock && (o.outcome == model.NotHeld || o.outcome == model.Unknown):
			stop(o.who, p.at, o)
		case o.Action == model.ActUnlock && h != nil && (o.outcome == model.Released || o.outcome == model.StillHeld):
			if h.levels = h.levels[:len(h.levels)-1]; len(h.levels) == 0 {
				stop(o.who, p.at, o)
				break
			}
			top := h.levels[len(h.levels)-1]
			h.b.to, h.b.lease = max(top.to, p.at), top.lease
		case kept && h != nil:
			h.b.to = max(h.levels[len(h.levels)-1].to, p.at)
		}
	}
	var done []belief
	for _, b := range out {
		b.to = min(b.to, r.endNs)
		for _, p := range r.pauses(b.who) {
			if p.from < b.to && b.to < p.to {
				b.to, b.paused = min(p.to, r.endNs), &p
			}
		}
		if b.from < b.to {
			done = append(done, *b)
		}
	}
	return done
}

// attemptSent is when the attempt that was granted left its process.
func (r *run) attemptSent(o *operation) int64 {
	if m := r.entered(o); m != nil {
		return m.AtNs
	}
	return o.AtNs
}

// fault is the trouble of a number; a rule that was never noted as begun has
// its text from its hits.
func (r *run) fault(number int) trouble {
	for _, t := range r.faults {
		if t.number == number {
			return t
		}
	}
	t := trouble{number: number, spec: r.rec.Params.Fault(number), text: fmt.Sprintf("fault %d", number)}
	for _, e := range r.rec.Events {
		if e.Kind == model.KindHit && e.Fault == number {
			t.from, t.text = e.AtNs, e.Text
			break
		}
	}
	return t
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

func name(owners []string) string {
	if len(owners) == 0 {
		return "somebody"
	}
	return strings.Join(owners, ", ")
}
