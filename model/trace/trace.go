// Package trace indexes the record of a run: its calls, the commands that they
// sent, what the server held of each lock, and the faults while they lasted.
// Judges, the naming of defects, the search and the report read it. It knows no
// lock, no release and no judge.
package trace

import (
	"fmt"
	"math"
	"slices"

	"lockstep/model"
)

// Never is the instant of an event that does not happen in the run.
const Never int64 = math.MaxInt64

// Run is an indexed record. Its lists are in the order of the record, and are
// shared: a reader must not change them.
type Run struct {
	Record   *model.Record
	Calls    []*Call    // by number, from 1 at index 0
	Commands []*Command // in the order in which they were sent
	Hit      []*Command // the commands that the rule of a fault met
	Faults   []Fault    // those that began
	Locks    []string   // the names of the locks that have a call or a state, sorted

	Pushes     []*model.Event // every event of a published message on its way to a process
	Interrupts []*model.Event // interrupts that met a call; Text names the thread
	Closes     []*model.Event // clients that were closed in order
	Checks     []*model.Event
	Resources  []*model.Event // reads and writes of resources
	Defects    []*model.Event // what went wrong with the harness itself

	// Anonymous are the processes of which it is unknown for which of their threads they sent some requests, in
	// order: a goroutine of their client writes the requests of several threads, and nobody told the world whose
	// each is.
	Anonymous []string

	CalmNs  int64 // when every fault was over; Never if the run did not come to it
	LeaveNs int64 // when all left; Never if the run did not come to it

	// View is what a reader derived from the run, for its later questions. Only one reader uses it, package judges.
	View any

	locks     map[string]*lock
	processes map[string]*process
	threads   map[string][]*Call
	commands  map[int]*Command
	firstHits map[int]*model.Event // by the number of the fault
	hits      []*model.Event
	pushEnds  map[int]*model.Event // the arrivals and losses of pushes, by the number of the message
	values    values
}

// lock has the facts about one lock.
type lock struct {
	calls      []*Call
	commands   []*Command
	events     []*model.Event
	changes    []*Change
	starts     []*Change
	ends       []*Change
	told       []*model.Event
	departures map[string][]*Change // nil until somebody asks
	holds      *holds               // nil until somebody asks
}

// process has the facts about one process.
type process struct {
	commands         []*Command
	diedNs, closedNs int64
}

var free = new(model.LockState)

// New indexes a record in one pass. The record must not change any more.
func New(rec *model.Record) *Run {
	r := &Run{
		Record: rec, CalmNs: Never, LeaveNs: Never,
		locks: map[string]*lock{}, processes: map[string]*process{}, threads: map[string][]*Call{}, commands: map[int]*Command{}, firstHits: map[int]*model.Event{},
		pushEnds: map[int]*model.Event{}, values: valuesOf(rec),
	}
	var now instant
	for i := range rec.Events {
		e := &rec.Events[i]
		if e.AtNs != now.atNs {
			now = instant{atNs: e.AtNs}
		}
		r.add(e, i, &now)
	}
	if r.values != nil {
		r.nameRenewals()
	}
	r.fallBehind()
	r.findAnonymous()
	for _, m := range r.Commands {
		if len(m.Hits) > 0 {
			r.Hit = append(r.Hit, m)
		}
	}
	for name, l := range r.locks {
		if len(l.calls) > 0 || len(l.changes) > 0 {
			r.Locks = append(r.Locks, name)
		}
	}
	slices.Sort(r.Locks)
	return r
}

// late is a message that a rule put off.
type late struct {
	hit   *model.Event
	reply bool  // or a push, which travels the same way
	endNs int64 // when it arrived or was lost, or Never
	// lost reports whether it is a push that was lost. The record does not say on which
	// connection of the process, so that only commands without a reply are behind it.
	lost bool
}

// fallBehind gives each command the hits of the messages behind which it arrived or was lost. A
// connection carries its messages in order, so that what is sent after a late message is late,
// too. If the connection ends before the late message arrives, or a fault lets nothing more pass, neither arrives.
func (r *Run) fallBehind() {
	all := map[int][]late{}     // by connection
	lost := map[string][]late{} // pushes, by process
	for _, e := range r.hits {
		if e.Do != "delay" && e.Do != "hold" && e.Do != "half_open" {
			continue
		}
		switch m := r.commands[e.Msg]; {
		case m == nil:
			switch p := r.pushEnds[e.Msg]; {
			case p == nil:
				lost[e.Process] = append(lost[e.Process], late{hit: e, reply: true, endNs: Never, lost: true})
			case p.Kind == model.KindLost:
				lost[e.Process] = append(lost[e.Process], late{hit: e, reply: true, endNs: p.AtNs, lost: true})
			default:
				all[p.Conn] = append(all[p.Conn], late{hit: e, reply: true, endNs: p.AtNs})
			}
		case e.Dir == "reply":
			all[m.Conn] = append(all[m.Conn], late{hit: e, reply: true, endNs: m.EndNs()})
		case e.Dir == "request":
			all[m.Conn] = append(all[m.Conn], late{hit: e, endNs: m.requestEndNs()})
		}
	}
	for _, m := range r.Commands {
		for _, l := range slices.Concat(all[m.Conn], lost[m.Process]) {
			if slices.Contains(m.Hits, l.hit) || l.lost && m.RepliedNs >= 0 {
				continue
			}
			sent, end := m.AtNs, m.requestEndNs()
			if l.reply {
				if m.Executed == nil {
					continue
				}
				sent, end = m.Executed.AtNs, m.EndNs()
			}
			if l.hit.AtNs <= sent && sent < l.endNs && l.endNs <= end {
				m.Hits = append(m.Hits, l.hit)
			}
		}
	}
}

// instant is what has happened so far at one instant and may be the cause of a
// change that no command made.
type instant struct {
	atNs    int64
	expired bool
	fault   int
}

// add indexes the event at the index i.
func (r *Run) add(e *model.Event, i int, now *instant) {
	m := r.commands[e.Msg]
	if e.Dir == "push" {
		r.Pushes = append(r.Pushes, e)
	}
	switch e.Kind {
	case model.KindInvoke:
		r.addCall(e)
	case model.KindReturn:
		r.addReturn(e)
	case model.KindSend:
		r.addCommand(e)
	case model.KindExec:
		if m != nil && e.Answer != model.NotRun {
			m.Executed, m.executed = e, i
		}
	case model.KindDeliver:
		if m != nil {
			m.deliver(e.AtNs)
		} else if e.Dir == "push" {
			r.pushEnds[e.Msg] = e
		}
	case model.KindLost:
		if m != nil {
			m.Lost = e
		} else if e.Dir == "push" {
			r.pushEnds[e.Msg] = e
		}
	case model.KindHit:
		if r.firstHits[e.Fault] == nil {
			r.firstHits[e.Fault] = e
		}
		r.hits = append(r.hits, e)
		if m != nil {
			m.Hits = append(m.Hits, e)
		}
	case model.KindExpire:
		now.expired = true
	case model.KindState:
		r.addChange(e, i, m, *now)
	case model.KindFault:
		now.fault = e.Fault
		r.addFault(e)
	case model.KindFaultEnd:
		for j := range r.Faults {
			if r.Faults[j].Number == e.Fault {
				r.Faults[j].ToNs = e.AtNs
			}
		}
	case model.KindUse:
		if e.Phase == "interrupt" && e.Met {
			r.addInterrupt(e)
		}
	case model.KindCheck:
		r.Checks = append(r.Checks, e)
	case model.KindResource:
		r.Resources = append(r.Resources, e)
	case model.KindDefect:
		r.Defects = append(r.Defects, e)
	case model.KindCalm:
		r.CalmNs = e.AtNs
	case model.KindClose:
		r.Closes = append(r.Closes, e)
		p := r.process(e.Process)
		p.closedNs = min(p.closedNs, e.AtNs)
	case model.KindTold:
		l := r.lock(e.Lock)
		l.told = append(l.told, e)
	case model.KindLeave:
		r.LeaveNs = e.AtNs
	}
}

func (r *Run) addCall(e *model.Event) {
	o := &Call{Event: e, Caller: e.ThreadName(), InterruptedNs: Never, endNs: Never}
	r.Calls = append(r.Calls, o)
	r.threads[o.Caller] = append(r.threads[o.Caller], o)
	l := r.lock(e.Lock)
	l.calls = append(l.calls, o)
	l.events = append(l.events, e)
}

func (r *Run) addReturn(e *model.Event) {
	o := r.Calls[e.Op-1]
	o.Outcome, o.endNs = e.Outcome, e.AtNs
	if p := r.Record.Params; p.PerGrant && !p.Uncounted && o.Outcome == model.Released && o.leavesALevel() {
		o.Outcome = model.StillHeld // the unlock of such a lock does not say whether a level is left
	}
	if e.Outcome != model.Waiting {
		o.Return = e
	}
	l := r.lock(o.Lock)
	l.events = append(l.events, e)
}

func (r *Run) addInterrupt(e *model.Event) {
	r.Interrupts = append(r.Interrupts, e)
	for _, o := range r.threads[e.Text] {
		if o.Outcome == "" {
			o.InterruptedNs = min(o.InterruptedNs, e.AtNs)
		}
	}
}

func (r *Run) addCommand(e *model.Event) {
	m := &Command{Event: e, RepliedNs: -1, DeliveredNs: -1, run: r}
	m.attribute(r.values, r.Call(e.Op))
	m.Threads = m.Owners
	if n := len(r.Commands); n > 0 && e.Command == "WAIT" {
		if last := r.Commands[n-1]; last.Process == e.Process && last.Conn == e.Conn {
			m.WaitOf, last.Wait = last, m
		}
	}
	if m.Call != nil {
		m.Call.Sent = append(m.Call.Sent, m)
		if len(m.Threads) == 0 && !m.Guessed {
			m.Threads = m.Call.callers()
		}
	}
	r.commands[e.Msg] = m
	r.Commands = append(r.Commands, m)
	p := r.process(e.Process)
	p.commands = append(p.commands, m)
	for i, name := range m.Locks {
		if slices.Contains(m.Locks[:i], name) {
			continue
		}
		l := r.lock(name)
		l.commands = append(l.commands, m)
		l.events = append(l.events, e)
	}
}

func (r *Run) addChange(e *model.Event, i int, m *Command, now instant) {
	l := r.lock(e.Lock)
	c := &Change{AtNs: e.AtNs, Lock: e.Lock, Before: free, After: e.State, index: i}
	if n := len(l.changes); n > 0 {
		c.Before = l.changes[n-1].After
	}
	if c.After == nil {
		c.After = free
	}
	switch {
	case e.Msg > 0:
		c.By = m
	case now.fault > 0:
		c.Fault = now.fault
	default:
		c.Expired = now.expired
	}
	c.toItself = r.Record.Params.Uncounted && c.handsToItself()
	l.events = append(l.events, e)
	l.changes = append(l.changes, c)
	if c.Started() {
		l.starts = append(l.starts, c)
	}
	if c.Ended() {
		l.ends = append(l.ends, c)
	}
	if m := c.By; m != nil {
		m.Changes = append(m.Changes, c)
		if m.Call != nil && m.Call.Lock == e.Lock {
			m.Call.Changes = append(m.Call.Changes, c)
		}
	}
}

func (r *Run) addFault(e *model.Event) {
	f := Fault{Number: e.Fault, Spec: r.Record.Params.Fault(e.Fault), Text: e.Text, Process: e.Process, FromNs: e.AtNs, ToNs: e.AtNs, Removed: e.Removed}
	r.Faults = append(r.Faults, f)
	if f.Spec.Kind == model.FaultCrash {
		p := r.process(e.Process)
		p.diedNs = min(p.diedNs, e.AtNs)
	}
}

func (r *Run) lock(name string) *lock {
	l := r.locks[name]
	if l == nil {
		l = &lock{}
		r.locks[name] = l
	}
	return l
}

func (r *Run) process(name string) *process {
	p := r.processes[name]
	if p == nil {
		p = &process{diedNs: Never, closedNs: Never}
		r.processes[name] = p
	}
	return p
}

// known returns what the run knows of a lock, for reading only.
func (r *Run) known(name string) *lock {
	if l := r.locks[name]; l != nil {
		return l
	}
	return &lock{}
}

// Call returns the call with that number, counted from 1; nil if there is none.
func (r *Run) Call(op int) *Call {
	if op < 1 || op > len(r.Calls) {
		return nil
	}
	return r.Calls[op-1]
}

// Command returns the command with that message number. It is nil for a message
// that no process sent, such as a published one.
func (r *Run) Command(msg int) *Command { return r.commands[msg] }

// CallsOn returns the calls on a lock, in order.
func (r *Run) CallsOn(lock string) []*Call { return r.known(lock).calls }

// CommandsOn returns the commands that are about a lock, in the order in which
// they were sent.
func (r *Run) CommandsOn(lock string) []*Command { return r.known(lock).commands }

// CommandsFrom returns the commands of a process, in the order in which it sent
// them.
func (r *Run) CommandsFrom(process string) []*Command {
	if p := r.processes[process]; p != nil {
		return p.commands
	}
	return nil
}

// EventsOf returns the calls, the returns, the sends of commands and the changes
// of one lock, in order.
func (r *Run) EventsOf(lock string) []*model.Event { return r.known(lock).events }

// Told returns the events in which a thread learned that its hold on a lock is gone, in
// order.
func (r *Run) Told(lock string) []*model.Event { return r.known(lock).told }

// Interrupted reports whether an interrupt met a call of the thread within
// [fromNs, toNs].
func (r *Run) Interrupted(thread string, fromNs, toNs int64) bool {
	return slices.ContainsFunc(r.Interrupts, func(e *model.Event) bool { return e.Text == thread && fromNs <= e.AtNs && e.AtNs <= toNs })
}

// DiedNs returns when a process crashed, or Never.
func (r *Run) DiedNs(process string) int64 {
	if p := r.processes[process]; p != nil {
		return p.diedNs
	}
	return Never
}

// ClosedNs returns when the client of a process was closed in order, or Never.
func (r *Run) ClosedNs(process string) int64 {
	if p := r.processes[process]; p != nil {
		return p.closedNs
	}
	return Never
}

// GoneNs returns when a process crashed or its client was closed, or Never.
func (r *Run) GoneNs(process string) int64 { return min(r.DiedNs(process), r.ClosedNs(process)) }

// Dead returns the names of the processes that crashed, sorted.
func (r *Run) Dead() []string {
	var names []string
	for name, p := range r.processes {
		if p.diedNs != Never {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Fault is a fault while it lasted.
type Fault struct {
	Number       int // counted from 1
	Spec         model.FaultSpec
	Text         string // for people
	Process      string // "" for a fault of several processes or of none
	FromNs, ToNs int64
	Removed      []int // the requests that had written what it removed, see model.Event
}

// Fault returns the fault with that number. A rule has no beginning of its own: its
// text and its time are those of its first hit.
func (r *Run) Fault(number int) Fault {
	for _, f := range r.Faults {
		if f.Number == number {
			return f
		}
	}
	f := Fault{Number: number, Spec: r.Record.Params.Fault(number), Text: fmt.Sprintf("fault %d", number)}
	if e := r.firstHits[number]; e != nil {
		f.FromNs, f.Text = e.AtNs, e.Text
	}
	return f
}

// FaultsOn returns the faults of a kind that struck a process, in order.
func (r *Run) FaultsOn(process string, kind model.FaultKind) []Fault {
	var found []Fault
	for _, f := range r.Faults {
		if f.Spec.Kind == kind && f.Spec.Names(process) {
			found = append(found, f)
		}
	}
	return found
}

// Pauses returns the pauses of a process, in order.
func (r *Run) Pauses(process string) []Fault { return r.FaultsOn(process, model.FaultPause) }

// Partitions returns the partitions between a process and the server, in order.
func (r *Run) Partitions(process string) []Fault { return r.FaultsOn(process, model.FaultPartition) }
