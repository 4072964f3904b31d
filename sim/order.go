package sim

import (
	"fmt"
	"slices"
	"time"

	"lockstep/model"
)

// Orders is the mode of a world in which messages have an order in place of latencies: every
// message under way and every step that is due may come next, and the chooser decides which does
// (stream "order", among the first of every line, see Candidate). Time passes only when nothing is
// left to choose from.
//
// Events that are chosen in a row, a burst, happen within one slot, a few nanoseconds apart. A
// burst has a place of its own in its millisecond, later than the place of every earlier burst. So
// every timer that earlier bursts set for this millisecond has fired: timers come before the chosen
// events, and the order within a burst cannot decide which of two timers is too late for a later
// event. (After a hundred bursts the places begin again.) One such run stands for all runs in which
// no message takes a millisecond and events come in this order, except that a line carries at most
// perBurst messages in one burst.
//
// When all leave, the choices end: messages that are still under way are delivered in
// the order in which they were sent.
type Orders struct {
	// Lose lets the chooser lose a message, and Late lets it delay a message by one of these
	// durations (stream "fate", 0 for neither). This happens to one message of a run at most, and
	// to none after the calm began.
	Lose bool            `json:"lose,omitempty"`
	Late []time.Duration `json:"late_ns,omitempty"`
	// NearReplicas makes messages between the parts of a server, such as its replicas, arrive
	// before any other event, so they are not choices.
	NearReplicas bool `json:"near_replicas,omitempty"`
}

// fates is the number of ways in which a message can go.
func (o *Orders) fates() int {
	n := 1 + len(o.Late)
	if o.Lose {
		n++
	}
	return n
}

// Candidate is an event that may come next: the first of a line. A line carries events
// in order: one direction of a connection, the steps of one thread, its visits to a
// resource, one way between two parts of a server.
type Candidate struct {
	Line string
	// Nth counts the events of the line, from 1. Line and Nth name the same event in
	// every run that begins alike.
	Nth int
	// Fates is the number of ways in which the event can go. It is 1, except for
	// messages while one may be lost or late.
	Fates int
}

// Place names an event by its line and its place there.
type Place struct {
	Line string
	Nth  int
}

// Effect is everything that a choice caused at its instant: the objects that it read and wrote, the
// events that it put on lines, and whether there were calls or returns of threads, or changes of a
// lock's state. Two choices of different lines may change places with the same result, unless one
// of them wrote an object that the other read or wrote.
type Effect struct {
	Reads, Writes           map[string]bool
	Sent                    []Place
	Calls, Returns, Changes bool
}

// Watcher is a Chooser that learns the candidates of its choices in a world of Orders.
type Watcher interface {
	Chooser
	// Offer comes before every choice, even of a single candidate, for which nothing is drawn.
	// Bursts count from 1. If it returns false, the run ends here.
	Offer(burst int, among []Candidate) bool
	// Took reports the effect of the candidate that was chosen last.
	Took(Effect)
}

// Offer implements Watcher for the chooser that is recorded.
func (r *Recorder) Offer(burst int, among []Candidate) bool {
	if w, ok := r.From.(Watcher); ok {
		return w.Offer(burst, among)
	}
	return true
}

// Took implements Watcher for the chooser that is recorded.
func (r *Recorder) Took(e Effect) {
	if w, ok := r.From.(Watcher); ok {
		w.Took(e)
	}
}

// orders is a world's state of Orders.
type orders struct {
	Orders
	w     *World
	lines map[string]*line
	names []string // of the lines, sorted
	burst int
	at    int64 // when the burst began
	spent bool  // a message was lost or late
	// effect is the effect of the last choice so far.
	effect *Effect
}

// line is a queue of events.
type line struct {
	queue []*event
	added int
	taken int // the number of events that it has carried
	burst int // the last burst in which it carried any
	inIt  int // the number of events that it carried in that burst
}

// perBurst is the number of events that a line carries in a burst. The next event waits until the
// next millisecond, so that a client that asks again and again reaches the instant for which it
// waits.
const perBurst = 16

// due returns the time from which the first event of the line may be chosen; it is negative if the
// line is empty.
func (o *orders) due(l *line) int64 {
	switch {
	case len(l.queue) == 0:
		return -1
	case o.bursting() && l.burst == o.burst && l.inIt >= perBurst:
		return max(l.queue[0].slot, o.at/int64(time.Millisecond)*int64(time.Millisecond)+int64(time.Millisecond))
	default:
		return l.queue[0].slot
	}
}

// shift removes the first event of the line.
func (o *orders) shift(l *line) {
	l.queue = l.queue[1:]
	l.taken++
	if l.burst != o.burst {
		l.burst, l.inIt = o.burst, 0
	}
	l.inIt++
}

// burstsPerMs is the number of places that a millisecond has for bursts.
const burstsPerMs = int(time.Millisecond/slotNs) - 1

// place returns the place of the next burst in its millisecond.
func (o *orders) place() int64 { return int64(o.burst%burstsPerMs+1) * slotNs }

// bursting reports whether no time has passed since the last choice.
func (o *orders) bursting() bool { return o.burst > 0 && o.w.now() < o.at+slotNs }

func (o *orders) add(name string, e *event) {
	l := o.lines[name]
	if l == nil {
		l = &line{}
		o.lines[name] = l
		i, _ := slices.BinarySearch(o.names, name)
		o.names = slices.Insert(o.names, i, name)
	}
	l.queue = append(l.queue, e)
	l.added++
	if o.effect != nil {
		o.effect.Sent = append(o.effect.Sent, Place{name, l.added})
		o.effect.Writes["line "+name] = true
	}
}

// next returns the next event: e, which belongs to no line, or a choice.
func (o *orders) next(e *event, at int64) (*event, int64) {
	now := o.w.now()
	if o.bursting() {
		if e != nil && e.slot <= o.at {
			return e, o.w.sched.last + 1 // the last choice caused it
		}
	}
	first := int64(-1)
	for _, name := range o.names {
		if due := o.due(o.lines[name]); due >= 0 && (first < 0 || due < first) {
			first = due
		}
	}
	if first < 0 {
		return e, at
	}
	if o.bursting() && first <= o.at {
		return &event{choice: true}, o.w.sched.last + 1
	}
	ms := int64(time.Millisecond)
	soonest := max(first, now)
	begin := soonest/ms*ms + o.place()
	if begin < soonest {
		begin += ms
	}
	if e != nil && at <= begin {
		return e, at
	}
	return &event{choice: true}, begin
}

// choose lets one candidate happen. If it returns false, the run ends here.
func (o *orders) choose() bool {
	w := o.w
	o.settle()
	if !o.bursting() {
		o.burst++
		o.at = w.now() / slotNs * slotNs
	}
	var among []Candidate
	var oldest int
	for _, name := range o.names {
		l := o.lines[name]
		if due := o.due(l); due < 0 || due > o.at {
			continue
		}
		c := Candidate{Line: name, Nth: l.taken + 1, Fates: 1}
		if l.queue[0].lose != nil && !o.spent && !w.calm {
			c.Fates = o.fates()
		}
		if among = append(among, c); l.queue[0].seq < o.lines[among[oldest].Line].queue[0].seq {
			oldest = len(among) - 1
		}
	}
	if w.leaving {
		o.take(among[oldest], 0)
		return true
	}
	if watcher, ok := w.chooser.(Watcher); ok && !watcher.Offer(o.burst, among) {
		return false
	}
	o.effect = &Effect{Reads: map[string]bool{}, Writes: map[string]bool{}}
	c := among[0]
	if len(among) > 1 {
		c = among[w.chooser.Choose("order", uint64(len(among)))]
	}
	fate := 0
	if c.Fates > 1 {
		fate = int(w.chooser.Choose("fate", uint64(c.Fates)))
	}
	o.take(c, fate)
	return true
}

func (o *orders) take(c Candidate, fate int) {
	w, l := o.w, o.lines[c.Line]
	e := l.queue[0]
	if fate == 0 {
		o.shift(l)
		e.run()
		return
	}
	o.spent = true
	w.touch("fate", true)
	if o.Lose {
		fate--
	}
	if fate == 0 {
		o.shift(l)
		e.lose()
		return
	}
	// The events after it on its line are late, too.
	d := o.Late[fate-1]
	e.slot = (w.now() + int64(d)) / slotNs * slotNs
	e.late(d)
}

// settle reports the effect of the last choice to the watcher.
func (o *orders) settle() {
	if o == nil || o.effect == nil {
		return
	}
	e := *o.effect
	o.effect = nil
	if watcher, ok := o.w.chooser.(Watcher); ok {
		watcher.Took(e)
	}
}

// FateFault returns the fault number of a message that a chooser lost or delayed in a world of
// Orders: the number after the faults of the world.
func FateFault(faults int) int { return faults + 1 }

// parcel has the ways in which a line may lose or delay a message.
type parcel struct {
	lose func()
	late func(what string)
}

// fated returns the ways in which the chooser may lose or delay a message; nil in a world with
// latencies.
func (w *World) fated(m *message, dir string) *parcel {
	if w.orders == nil {
		return nil
	}
	hit := func(do, what string) {
		w.record(&model.Event{Kind: model.KindHit, Fault: FateFault(len(w.cfg.Faults)), Process: m.conn.p.cfg.Name, Op: m.op, Msg: m.id, Dir: dir,
			Script: m.cmd.Script, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Text: what, Do: do})
	}
	return &parcel{
		lose: func() {
			hit("drop", string(model.LostChosen))
			w.lost(m, dir, model.LostChosen)
		},
		late: func(what string) { hit("delay", what) },
	}
}

// touch notes that the choice under way read an object, or changed it.
func (w *World) touch(object string, write bool) {
	if w.orders == nil || w.orders.effect == nil {
		return
	}
	if e := w.orders.effect; write {
		e.Writes[object] = true
	} else {
		e.Reads[object] = true
	}
}

// see notes that the choice under way made an event that judges read.
func (w *World) see(k model.Kind) {
	if w.orders == nil || w.orders.effect == nil {
		return
	}
	switch e := w.orders.effect; k {
	case model.KindInvoke:
		e.Calls = true
	case model.KindReturn:
		e.Returns = true
	case model.KindState:
		e.Changes = true
	case model.KindUse, model.KindCheck, model.KindResource, model.KindClose, model.KindTold, model.KindFault, model.KindFaultEnd:
		e.Calls, e.Returns, e.Changes = true, true, true
	}
}

// The objects of the kernel. Servers have others: see ObjectServer.
const (
	objStalled = "stalled" // requests that wait for the end of a stall; per node
	objRules   = "rules"
	objUses    = "resources"
)

func objProcess(p *Process) string { return p.object }

func (o *Orders) String() string {
	if o == nil {
		return "latencies"
	}
	s := "orders"
	if o.Lose {
		s += ", one message lost"
	}
	for _, d := range o.Late {
		s += fmt.Sprintf(", or late by %v", d)
	}
	return s
}
