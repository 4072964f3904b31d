// Package coverage gives names to the situations that a campaign has tried. A situation is the state
// of a lock, an operation of a thread and a moment of the operation; or the gap between two requests of an
// operation, and the actions of others in it. A cell is a situation that a kind of fault met. The package finds the situations and the cells of a run in its record, and says where
// in a run a fault would fill a cell.
package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"lockstep/model"
	index "lockstep/model/trace"
)

// Moment is a moment of an operation, or of the hold that an operation gained.
type Moment string

// The moments, in the order of an operation and its hold.
const (
	BeforeRequest Moment = "before the request"         // the thread is about to call
	ToServer      Moment = "between request and effect" // a request of the call is on its way
	FromServer    Moment = "between effect and reply"   // a reply to the call is on its way
	Waiting       Moment = "while waiting"              // the call is open, and nothing of it is on its way
	WakeUp        Moment = "at the wake-up"             // the lock is free, and the call has not asked for it again
	InSection     Moment = "in the critical section"    // the thread holds the lock
	AtRenewal     Moment = "at the renewal"             // a renewal of the hold is on its way
	AfterLease    Moment = "after the lease"            // the thread believes to hold, and the server knows better
)

// Moments are all moments but those between two requests, see Gaps.
var Moments = []Moment{BeforeRequest, ToServer, FromServer, Waiting, WakeUp, InSection, AtRenewal, AfterLease}

// State is the state of a lock and of its waiters as a thread finds them: an owner, with words
// about the waiters.
type State string

// The owners.
const (
	Free     State = "free"
	Own      State = "held by the thread"
	OwnAgain State = "entered again"
	Others   State = "held by another"
)

// Waiters are the words of a state about those who wait for the lock.
type Waiters string

// The waiters. The last two need a queue on the server. A situation has the last one that fits. A
// waiter is dead if its process is gone, or if its call has ended.
const (
	NobodyWaits  Waiters = ""                          // no other thread waits
	AnotherWaits Waiters = " and waited for"           // another thread waits
	WaiterAhead  Waiters = " with a waiter ahead"      // another thread waits before the thread in the queue
	DeadAhead    Waiters = " with a dead waiter ahead" // the thread is in the queue behind a dead waiter, or outside of a queue with one
)

// States are all states but those of gaps, see Between.
var States = states()

func states() (all []State) {
	for _, w := range []Waiters{NobodyWaits, AnotherWaits, WaiterAhead, DeadAhead} {
		for _, owner := range []State{Free, Own, OwnAgain, Others} {
			all = append(all, owner.With(w))
		}
	}
	return all
}

// With returns the state of a lock with an owner and waiters.
func (owner State) With(w Waiters) State { return owner + State(w) }

// Operations are the operations of situations. A hold has the operation that gained it.
var Operations = []model.Action{model.ActLock, model.ActTryLock, model.ActTryLockTimed, model.ActUnlock, model.ActForceUnlock, model.ActExtend}

// Kind is a kind of fault.
type Kind string

// The kinds of faults. None stands for no fault: a cell without a fault is a situation.
const (
	None         Kind = ""
	Drop         Kind = "drop"
	Delay        Kind = "delay"
	Hold         Kind = "hold"
	HalfOpen     Kind = "half_open"
	Reset        Kind = "reset"
	Error        Kind = "error"
	Crash        Kind = "crash"
	Pause        Kind = "pause"
	Partition    Kind = "partition"
	WallClock    Kind = "wall_clock"
	ServerClock  Kind = "server_clock"
	Restart      Kind = "restart"
	Failover     Kind = "failover"
	FlushScripts Kind = "flush_scripts"
	Stall        Kind = "stall"
	Isolate      Kind = "isolate"
	Delete       Kind = "delete"
	Expire       Kind = "expire"
	Interrupt    Kind = "interrupt"
)

// Kinds are all kinds of faults.
var Kinds = []Kind{
	Drop, Delay, Hold, HalfOpen, Reset, Error, Crash, Pause, Partition, WallClock, ServerClock, Restart, Failover, FlushScripts, Stall, Isolate, Delete, Expire, Interrupt,
}

// OnMessages reports whether faults of the kind strike a message, and so can meet only the
// moments at which one is on its way.
func (k Kind) OnMessages() bool {
	return slices.Index(Kinds, k) <= slices.Index(Kinds, Error) && k != None
}

// KindOf returns the kind of a fault; None for one that the package does not know.
func KindOf(f model.FaultSpec) Kind {
	kind := Kind(f.Kind)
	switch f.Kind {
	case model.FaultRule:
		kind = Kind(f.Do)
	case model.FaultServer:
		if kind = Kind(f.Server); f.Server == model.ServerWallClock {
			kind = ServerClock
		}
	case model.FaultKey:
		kind = Kind(f.KeyDo)
	}
	if !slices.Contains(Kinds, kind) {
		return None
	}
	return kind
}

// Cannot returns the reason for which faults of the kind cannot meet a moment; "": they can.
func Cannot(k Kind, m Moment) string {
	switch {
	case k.OnMessages() && !slices.Contains([]Moment{ToServer, FromServer, WakeUp, AtRenewal}, m) && !m.IsGap():
		return "no message is on its way"
	case k == Error && m != ToServer && m != AtRenewal && !m.IsGap():
		return "an error stands in place of the command, before its effect"
	case (k == HalfOpen || k == Hold) && m == WakeUp:
		return "published messages are dropped, delayed or reset"
	case k == Crash && m == BeforeRequest:
		return "the thread does not come to its call"
	case k == Interrupt && (m == BeforeRequest || m == InSection || m == AtRenewal || m == AfterLease):
		return "an interrupt meets threads that are in a call"
	}
	return ""
}

// Cell is a situation, and the kind of fault that met it.
type Cell struct {
	State  State
	Op     model.Action
	Moment Moment
	Fault  Kind
}

// Situation returns the cell without its fault.
func (c Cell) Situation() Cell {
	c.Fault = None
	return c
}

// String returns the cell in words.
func (c Cell) String() string {
	s := fmt.Sprintf("%s, %s, %s", c.Op, c.Moment, c.State)
	if c.Fault != None {
		s = string(c.Fault) + " met " + s
	}
	return s
}

// situations are all situations, in the order of operations, states and moments. Those of gaps are last.
var situations = allSituations()

func allSituations() (all []Cell) {
	add := func(ops []model.Action, states []State, moments []Moment) {
		for _, op := range ops {
			for _, state := range states {
				for _, m := range moments {
					all = append(all, Cell{State: state, Op: op, Moment: m})
				}
			}
		}
	}
	add(Operations, States, Moments)
	add(gapOperations, Between, Gaps)
	return all
}

// gapOperations are the operations that have gaps.
var gapOperations = append(slices.Clone(Operations), Renewal)

// places are the places of the situations in their list.
var places = func() map[Cell]int {
	m := map[Cell]int{}
	for i, c := range situations {
		m[c] = i
	}
	return m
}()

// Code returns the number that stands for the cell in files. CellOf is its reverse. It returns -1 for a
// cell that does not exist.
func (c Cell) Code() int {
	n, ok := places[c.Situation()]
	if !ok {
		return -1
	}
	return Struck(n*(len(Kinds)+1), c.Fault)
}

// Struck returns the code of the cell of a situation, given by its code, that a fault of the kind meets.
func Struck(situation int, k Kind) int { return situation + slices.Index(Kinds, k) + 1 }

// CellOf returns the cell with a code. It reports false if no cell has the code.
func CellOf(code int) (c Cell, ok bool) {
	if code < 0 || code >= len(situations)*(len(Kinds)+1) {
		return c, false
	}
	c = situations[code/(len(Kinds)+1)]
	if kind := code % (len(Kinds) + 1); kind > 0 {
		c.Fault = Kinds[kind-1]
	}
	return c, true
}

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
			l.turns = append(l.turns, c.AtNs, w.left(c))
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

// left returns when a call no longer waits: it has returned, or its process is gone.
func (w *walk) left(c *index.Call) int64 { return min(c.ReturnedNs(), w.run.GoneNs(c.Process)) }

// waiters returns the words about the waiters that the thread of a call finds at an instant. A place
// in the queue counts only if its name is that of a thread, since a server may not tell the thread.
func (w *walk) waiters(call *index.Call, s *model.LockState, atNs int64) Waiters {
	calls := w.callsOn(call.Lock)
	waits := func(thread string) bool {
		c := calls.latest(thread, atNs)
		return c != nil && c.Action.Acquires() && atNs < w.left(c) && s.Owner != thread
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

// Cells returns the codes of the situations of a run and of the cells that its faults met, each
// once. The openings must be the openings of that run.
func Cells(t *index.Run, openings []Opening) []int {
	seen := map[int]bool{}
	meet := func(c Cell, k Kind) {
		if c.Fault = k; k != None && Cannot(k, c.Moment) == "" {
			seen[c.Code()] = true
		}
	}
	next := map[int][]Cell{} // by the number of a request: the situations of the gap before it
	for _, o := range openings {
		seen[o.Code()] = true
		if o.request > 0 {
			next[o.request] = append(next[o.request], o.Cell)
		}
	}
	// at calls meet for the openings of which an instant is the end, or that it lies within: a
	// fault may end the situation that it meets.
	at := func(k Kind, atNs int64, concerns func(Opening) bool) {
		for _, o := range openings {
			if o.FromNs >= atNs {
				break
			}
			if atNs <= o.ToNs && concerns(o) {
				meet(o.Cell, k)
			}
		}
	}
	for _, f := range t.Faults {
		if k := KindOf(f.Spec); !k.OnMessages() {
			at(k, f.FromNs, func(o Opening) bool { return len(f.Spec.Processes) == 0 || f.Spec.Names(o.Process) })
		}
	}
	for _, e := range t.Interrupts {
		at(Interrupt, e.AtNs, func(o Opening) bool { return o.Thread == e.Text })
	}
	w := newWalk(t)
	for i := range t.Record.Events {
		e := &t.Record.Events[i]
		if e.Kind != model.KindHit {
			continue
		}
		k := Kind(e.Do)
		if e.Dir == "request" {
			for _, c := range next[e.Msg] {
				meet(c, k)
			}
		}
		switch m := t.Command(e.Msg); {
		case m == nil:
			// A message is published at the instant at which the lock becomes free.
			at(k, e.AtNs+1, func(o Opening) bool { return o.Moment == WakeUp && o.Process == e.Process })
		case m.Call != nil:
			moment := ToServer
			if e.Dir == "reply" {
				moment = FromServer
			}
			meet(Cell{State: w.state(m.Call, e.AtNs), Op: m.Call.Action, Moment: moment}, k)
		default:
			for _, thread := range m.Threads {
				if hold := holdAt(t, thread, e.AtNs); hold != nil {
					meet(Cell{State: w.state(hold, e.AtNs), Op: hold.Action, Moment: AtRenewal}, k)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// holdAt returns the last call before an instant that granted a hold to the thread; nil:
// there is none.
func holdAt(t *index.Run, thread string, atNs int64) (hold *index.Call) {
	for _, call := range t.Calls {
		if call.Caller == thread && call.Outcome == model.Granted && call.ReturnedNs() <= atNs {
			hold = call
		}
	}
	return hold
}
