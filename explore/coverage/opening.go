package coverage

import (
	"cmp"
	"slices"

	"lockstep/model"
	index "lockstep/model/trace"
)

// Opening is an interval of a run in which a thread is in a situation.
type Opening struct {
	Cell    // without a fault
	Process string
	Thread  string // process/thread
	Lock    string
	// FromNs and ToNs are the ends of the interval, in nanoseconds since the start. The
	// interval does not contain ToNs.
	FromNs, ToNs int64
	// LeftNs is the time from FromNs on until the hold of the lock ends, if nobody prolongs
	// it; 0: nobody holds the lock, or the hold has no end.
	LeftNs int64
	// Role and Command describe the command that leaves at FromNs. It is the Nth such command of the
	// process. At the wake-up, Nth counts the published messages to the process. Nth is 0 if no message
	// leaves in the opening: then no fault of messages can strike in it.
	Role    model.Role
	Command string
	Nth     int
	// After is the name of the request before a gap, and Rival is another thread that wants the lock then or
	// later; "": there is none.
	After string
	Rival string

	before  string // the name of the request after a gap
	request int    // its number
}

// Direction returns the direction of the message that is on its way in the opening.
func (o Opening) Direction() string {
	if o.Moment == FromServer || o.Moment == WakeUp {
		return "reply"
	}
	return "request"
}

// Openings returns the openings of a run, in the order of their beginnings.
func Openings(t *index.Run) []Opening {
	w := newWalk(t)
	w.count()
	for i := range t.Record.Events {
		if e := &t.Record.Events[i]; e.Kind == model.KindPublish {
			w.published = append(w.published, e.AtNs)
		}
	}
	byThread := map[string][]*index.Call{}
	var threads []string
	for _, call := range t.Calls {
		if byThread[call.Caller] == nil {
			threads = append(threads, call.Caller)
		}
		byThread[call.Caller] = append(byThread[call.Caller], call)
	}
	slices.Sort(threads)
	for _, thread := range threads {
		w.thread(byThread[thread])
	}
	w.renewalGaps()
	slices.SortStableFunc(w.out, func(a, b Opening) int { return cmp.Compare(a.FromNs, b.FromNs) })
	return w.out
}

// A walk reads the calls of one run and lists its openings.
type walk struct {
	run       *index.Run
	nth       map[*index.Command]int
	locks     map[string]*lockCalls
	published []int64 // the instants at which a server published a message
	out       []Opening
}

func newWalk(t *index.Run) *walk {
	return &walk{run: t, nth: map[*index.Command]int{}, locks: map[string]*lockCalls{}}
}

// lockCalls are the calls on one lock.
type lockCalls struct {
	threads []string // that have called
	of      map[string][]*index.Call
	turns   []int64 // the instants at which one of them began or left, sorted
}

// callsOn returns the calls on a lock. A run may have thousands, and each state asks for some of them.
func (w *walk) callsOn(lock string) *lockCalls {
	l := w.locks[lock]
	if l == nil {
		l = &lockCalls{of: map[string][]*index.Call{}}
		for _, c := range w.run.CallsOn(lock) {
			if l.of[c.Caller] == nil {
				l.threads = append(l.threads, c.Caller)
			}
			l.of[c.Caller] = append(l.of[c.Caller], c)
			l.turns = append(l.turns, c.AtNs, w.waitsUntil(c))
		}
		slices.Sort(l.turns)
		w.locks[lock] = l
	}
	return l
}

// latest returns the last call of a thread that has begun at an instant; nil: there is none. A thread
// makes one call after the other, so no earlier one is still waiting.
func (l *lockCalls) latest(thread string, atNs int64) *index.Call {
	calls := l.of[thread]
	n, _ := slices.BinarySearchFunc(calls, atNs+1, func(c *index.Call, atNs int64) int { return cmp.Compare(c.AtNs, atNs) })
	if n == 0 {
		return nil
	}
	return calls[n-1]
}

// end returns the instant at which the calm begins, in which there are no faults, or the
// instant after the last event.
func (w *walk) end() int64 {
	if n := len(w.run.Record.Events); n > 0 {
		return min(w.run.CalmNs, w.run.LeaveNs, w.run.Record.Events[n-1].AtNs+1)
	}
	return 0
}

// count numbers the commands of each process as a rule on them would count.
func (w *walk) count() {
	type key struct {
		process, command string
		role             model.Role
	}
	seen := map[key]int{}
	for _, m := range w.run.Commands {
		k := key{m.Process, m.Command, m.Script}
		if m.Script != "" {
			k.command = ""
		}
		seen[k]++
		w.nth[m] = seen[k]
	}
}

// add adds an interval as openings, one for each state that the lock has in it. It adds none
// if the interval has no length before the calm.
func (w *walk) add(call *index.Call, m Moment, from, to int64, on *index.Command) {
	to = min(to, w.end(), w.run.GoneNs(call.Process))
	if from >= to {
		return
	}
	state := w.state(call, from)
	for _, next := range w.turns(call.Lock, from, to) {
		then := state
		if next < to {
			then = w.state(call, next)
		}
		if next == to || then != state {
			w.open(Opening{Cell: Cell{State: state, Op: call.Action, Moment: m}, Process: call.Process, Thread: call.Caller, Lock: call.Lock, FromNs: from, ToNs: next}, on)
			from, state, on = next, then, nil
		}
	}
}

// changes returns the changes of a lock after from and before to.
func (w *walk) changes(lock string, from, to int64) []*index.Change {
	later := w.run.ChangesAfter(lock, from)
	n, _ := slices.BinarySearchFunc(later, to, func(c *index.Change, atNs int64) int { return cmp.Compare(c.AtNs, atNs) })
	return later[:n]
}

// turns returns the instants after from at which the state of a lock may change, sorted, and
// to as the last one.
func (w *walk) turns(lock string, from, to int64) []int64 {
	all := []int64{to}
	note := func(atNs int64) {
		if from < atNs && atNs < to {
			all = append(all, atNs)
		}
	}
	for _, c := range w.changes(lock, from, to) {
		note(c.AtNs)
	}
	turns := w.callsOn(lock).turns
	n, _ := slices.BinarySearch(turns, from)
	for _, atNs := range turns[n:] {
		if atNs >= to {
			break
		}
		note(atNs)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// open adds an opening. It fills in the time that is left of the lease, and the message that
// is on its way.
func (w *walk) open(o Opening, on *index.Command) {
	if s := w.run.StateAt(o.Lock, o.FromNs); s.Held() && s.ExpiresMs >= 0 {
		o.LeftNs = max(0, s.ExpiresMs*1_000_000-o.FromNs)
	}
	switch {
	case on != nil:
		o.Role, o.Command, o.Nth = on.Script, on.Command, w.nth[on]
	case o.Moment == WakeUp:
		o.Nth = w.push(o)
	}
	w.out = append(w.out, o)
}

// push returns which of the messages to its process that name a channel leaves and arrives in an opening: the
// n-th; 0: none does. Such messages are those that were published, and the replies to requests that name channels.
func (w *walk) push(o Opening) int {
	n := 0
	for _, e := range w.run.Pushes {
		if e.Process != o.Process || e.Kind == model.KindHit {
			continue
		}
		n++
		left := e.AtNs
		if i, _ := slices.BinarySearch(w.published, e.AtNs+1); i > 0 {
			left = w.published[i-1]
		}
		if o.FromNs <= left && e.AtNs <= o.ToNs {
			for _, m := range w.run.CommandsFrom(o.Process) {
				if len(m.Channels) > 0 && m.Executed != nil && m.Executed.AtNs <= left {
					n++
				}
			}
			return n
		}
	}
	return 0
}

// state returns the state of the lock of a call at an instant.
func (w *walk) state(call *index.Call, atNs int64) State {
	s := w.run.StateAt(call.Lock, atNs)
	state := Free
	switch {
	case s.Held() && s.Owner != call.Caller:
		state = Others
	case s.Held() && s.Count > 1:
		state = OwnAgain
	case s.Held():
		state = Own
	}
	return state.With(w.waiters(call, s, atNs))
}

// waitsUntil returns when a call no longer waits: it has returned, or its process is gone.
func (w *walk) waitsUntil(c *index.Call) int64 { return min(c.ReturnedNs(), w.run.GoneNs(c.Process)) }

// waiters returns the words about the waiters that the thread of a call finds at an instant. A place
// in the queue counts only if its name is that of a thread, since a server may not tell the thread.
func (w *walk) waiters(call *index.Call, s *model.LockState, atNs int64) Waiters {
	calls := w.callsOn(call.Lock)
	waits := func(thread string) bool {
		c := calls.latest(thread, atNs)
		return c != nil && c.Action.Acquires() && atNs < w.waitsUntil(c) && s.Owner != thread
	}
	found := NobodyWaits
	if slices.ContainsFunc(calls.threads, func(thread string) bool { return thread != call.Caller && waits(thread) }) {
		found = AnotherWaits
	}
	ahead := s.Queue
	place := slices.Index(s.Queue, call.Caller)
	if place >= 0 {
		ahead = ahead[:place]
	}
	for _, thread := range ahead {
		switch {
		case waits(thread):
			if place >= 0 {
				found = WaiterAhead
			}
		case calls.latest(thread, atNs) != nil:
			return DeadAhead
		}
	}
	return found
}

// thread adds the openings of one thread.
func (w *walk) thread(calls []*index.Call) {
	before := int64(0)
	for i, call := range calls {
		w.add(call, BeforeRequest, before, call.AtNs, nil)
		w.call(call)
		w.callGaps(call)
		before = call.ReturnedNs()
		if call.Outcome == model.Granted {
			w.hold(call, calls[i+1:])
		}
	}
}

// call adds the openings between the invocation of a call and its return.
func (w *walk) call(call *index.Call) {
	quiet := call.AtNs // since when nothing of the call is on its way
	for _, m := range call.Sent {
		w.waiting(call, quiet, m.AtNs)
		answered := m.RepliedNs
		switch {
		case m.Executed != nil:
			w.add(call, ToServer, m.AtNs, m.Executed.AtNs, m)
			if answered < 0 {
				answered = call.ReturnedNs()
			}
			w.add(call, FromServer, m.Executed.AtNs, answered, m)
		case m.Lost != nil:
			answered = m.Lost.AtNs
			w.add(call, ToServer, m.AtNs, answered, m)
		default:
			answered = call.ReturnedNs()
			w.add(call, ToServer, m.AtNs, answered, m)
		}
		quiet = max(quiet, answered)
	}
	if len(call.Sent) > 0 {
		w.waiting(call, quiet, call.ReturnedNs())
	}
}

// waiting adds an interval of a call in which nothing of it is on its way. It is at the
// wake-up once the lock is free.
func (w *walk) waiting(call *index.Call, from, to int64) {
	if from >= to || !call.Action.Acquires() {
		return
	}
	for _, c := range w.changes(call.Lock, from, to) {
		if c.Ended() && !c.After.Held() {
			w.add(call, Waiting, from, c.AtNs, nil)
			w.add(call, WakeUp, c.AtNs, to, nil)
			return
		}
	}
	w.add(call, Waiting, from, to, nil)
}

// hold adds the openings of the hold that a call gained: until the thread gives the lock up,
// or calls again.
func (w *walk) hold(call *index.Call, later []*index.Call) {
	from, to := call.ReturnedNs(), int64(index.Never)
	if i := slices.IndexFunc(later, func(c *index.Call) bool { return c.Lock == call.Lock }); i >= 0 {
		to = later[i].AtNs
	}
	lost := to
	if !w.holds(call, from) {
		lost = from
	}
	for _, c := range w.changes(call.Lock, from, to) {
		if c.Ended() && c.Before.Owner == call.Caller {
			lost = min(lost, c.AtNs)
		}
	}
	w.add(call, AfterLease, lost, to, nil)
	for _, m := range w.run.CommandsFrom(call.Process) {
		if m.Script != model.RoleRenew || m.AtNs < from || m.AtNs >= lost || !m.SpeaksFor(call.Caller) {
			continue
		}
		w.add(call, InSection, from, m.AtNs, nil)
		from = m.AtNs
		over := lost
		if m.RepliedNs >= 0 {
			over = min(over, m.RepliedNs)
		}
		w.add(call, AtRenewal, from, over, m)
		from = max(from, over)
	}
	w.add(call, InSection, from, lost, nil)
}

func (w *walk) holds(call *index.Call, atNs int64) bool {
	return w.run.StateAt(call.Lock, atNs).Owner == call.Caller
}
