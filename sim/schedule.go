package sim

import (
	"slices"
	"time"
)

// Class orders the events of one instant: expiries, faults, deliveries, deadlines, steps. Timers of
// the code under test run in between: they inherit the nanosecond within the slot from the event
// that started them.
type Class int

// The classes of events. A server may plan events of the exported classes.

const (
	classExpiry Class = iota
	classFault
	ClassDelivery // messages
	ClassDeadline
	classStep
)

// slotNs is the resolution of nominal time. Within a slot every wake-up of the world has a
// nanosecond of its own, because the runtime fires timers of one instant in random order.
const slotNs = 10_000

// Resolution is the distance of the instants at which faults and steps of a scenario happen. An
// instant in between is moved to the earlier one.
const Resolution = slotNs * time.Nanosecond

// residue is the nanosecond within a slot at which a class begins. room is the number of
// nanoseconds of a class.
var residue = [...]int64{classExpiry: 0, classFault: 100, ClassDelivery: 1000, ClassDeadline: 5000, classStep: 7000}

const room = 2000

// instants is the nanosecond within a slot at which the instants of Process.Instant begin, between
// those of the classes.
const instants = 3000

// Instant is a nanosecond of its own in every slot. The zero Instant belongs to no world, and its
// Wait returns at once.
type Instant struct {
	w       *World
	residue time.Duration
}

// Instant returns an instant that nothing else in the world has. A client uses it for its own work,
// besides that of its callers, since two goroutines that wake at one instant would continue in any
// order.
func (p *Process) Instant() Instant { return p.w.instant() }

func (w *World) instant() Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instants++
	return Instant{w, instants + time.Duration(w.instants%room)}
}

// Wait sleeps until the instant comes, which may be now. Any goroutine.
func (i Instant) Wait() {
	if i.w == nil {
		return
	}
	time.Sleep((i.residue - i.w.Now()%slotNs + slotNs) % slotNs)
}

// event runs a function at a slot.
type event struct {
	slot  int64 // ns, multiple of slotNs
	class Class
	seq   uint64
	run   func()
	// For a message in a world of Orders: lose loses it, and late notes that it is
	// late.
	lose func()
	late func(time.Duration)
	// choice reports that the event is a candidate that was not chosen yet.
	choice bool
	// deadline is the socket of a read deadline, which is the set-th of the socket.
	deadline *socket
	set      uint64
}

// stale reports that the event is a deadline for which nobody waits any more. It does nothing when it
// comes.
func (e *event) stale() bool { return e.deadline != nil && e.deadline.pastDeadline(e.set) }

func (e *event) ns() int64 {
	r := residue[e.class]
	if e.class >= ClassDelivery {
		r += int64(e.seq % room)
	}
	return e.slot + r
}

type schedule struct {
	events eventHeap
	seq    uint64
	last   int64 // ns at which the last event ran
	orders *orders
	free   []*event // memory for events
	// skipped are stale events, in order, that are no longer in events. The scheduler does not wake for
	// them. But each has an instant of its own, as if it did.
	skipped []skipped
	passed  int // see takePassed
}

// skipped is a stale event for which the scheduler does not wake.
type skipped struct {
	planned
	// soonest is its instant if nothing but skipped events comes before it.
	soonest int64
}

// add plans run at the slot of nominal time atNs.
func (s *schedule) add(atNs int64, c Class, run func()) *event {
	s.seq++
	if atNs < 0 {
		atNs = 0
	}
	if len(s.free) == 0 {
		for some := make([]event, 32); len(some) > 0; some = some[1:] {
			s.free = append(s.free, &some[0])
		}
	}
	last := len(s.free) - 1
	e := s.free[last]
	s.free = s.free[:last]
	*e = event{slot: atNs / slotNs * slotNs, class: c, seq: s.seq, run: run}
	s.events.push(e)
	return e
}

// lastSeq is a seq that comes after all others.
const lastSeq = 1<<56 - 1

// addLook plans run at the slot of nominal time atNs, after the expiries of that slot. It leaves the
// nanoseconds of all other events as they are.
func (s *schedule) addLook(atNs int64, run func()) {
	s.events.push(&event{slot: atNs / slotNs * slotNs, class: classExpiry, seq: lastSeq, run: run})
}

// addTo is add for an event that a line carries in order. Without a line it does the same as add. p
// is set for a message that may be lost or late.
func (s *schedule) addTo(line string, atNs int64, c Class, run func(), p *parcel) {
	if s.orders == nil || line == "" {
		s.add(atNs, c, run)
		return
	}
	s.seq++
	e := &event{slot: max(atNs, 0) / slotNs * slotNs, class: c, seq: s.seq, run: run}
	if p != nil {
		e.lose = p.lose
		e.late = func(d time.Duration) { p.late("late by " + d.String()) }
	}
	s.orders.add(line, e)
}

// next returns the next event and its instant, which is always later than that of the event before it,
// skipped or not. It is now ns since the start.
func (s *schedule) next(now int64) (*event, int64) {
	if s.orders != nil {
		var e *event
		var at int64
		if len(s.events) > 0 {
			e = s.events[0].event
			at = max(e.ns(), s.last+1)
		}
		return s.orders.next(e, at)
	}
	s.pass(func(at int64, _ planned) bool { return at <= now })
	for len(s.events) > 0 {
		first := s.events[0]
		n := len(s.skipped)
		for n > 0 && !s.skipped[n-1].before(first) {
			n--
		}
		at := s.last + int64(n) // the soonest instant of the last of n skipped events
		if n > 0 {
			at = max(at, s.skipped[n-1].soonest)
		}
		if at = max(first.ns(), at+1); at <= now || !first.stale() {
			return first.event, at
		}
		s.skip()
	}
	return nil, 0
}

// takePassed returns the number of skipped events whose instants are over, and that it has not returned yet.
func (s *schedule) takePassed() int {
	n := s.passed
	s.passed = 0
	return n
}

// skip moves the first event to the skipped ones.
func (s *schedule) skip() {
	x := s.events.pop()
	i := len(s.skipped)
	for i > 0 && x.before(s.skipped[i-1].planned) {
		i--
	}
	s.skipped = slices.Insert(s.skipped, i, skipped{planned: x})
	for ; i < len(s.skipped); i++ {
		x := &s.skipped[i]
		if x.soonest = x.ns(); i > 0 {
			x.soonest = max(x.soonest, s.skipped[i-1].soonest+1)
		}
	}
}

// pass ends the skipped events, in order, as long as they are over at their instants.
func (s *schedule) pass(over func(at int64, x planned) bool) {
	n := 0
	for ; n < len(s.skipped); n++ {
		x := s.skipped[n].planned
		at := max(x.ns(), s.last+1)
		if !over(at, x) {
			break
		}
		s.last = at
		s.forget(x.event)
	}
	s.skipped = slices.Delete(s.skipped, 0, n)
	s.passed += n
}

// pop takes the next event, which happens at an instant, and returns its function.
func (s *schedule) pop(atNs int64) (run func()) {
	first := s.events[0]
	s.pass(func(_ int64, x planned) bool { return x.before(first) })
	s.last = atNs
	s.events.pop()
	run = first.run
	s.forget(first.event)
	return run
}

// forget takes the memory of an event back.
func (s *schedule) forget(e *event) {
	*e = event{}
	s.free = append(s.free, e)
}

// eventHeap is a binary heap. Most of its events are deadlines that will be stale when
// they come: thousands where a client is busy.
type eventHeap []planned

// planned is an event with its place in the order: by slot, class and seq.
type planned struct {
	slot int64
	rank uint64
	*event
}

func (a planned) before(b planned) bool {
	return a.slot < b.slot || a.slot == b.slot && a.rank < b.rank
}

func (h *eventHeap) push(e *event) {
	p := planned{e.slot, uint64(e.class)<<56 | e.seq, e}
	*h = append(*h, p)
	q, i := *h, len(*h)-1
	for up := (i - 1) / 2; i > 0 && p.before(q[up]); i, up = up, (up-1)/2 {
		q[i] = q[up]
	}
	q[i] = p
}

func (h *eventHeap) pop() planned {
	q := *h
	first, n := q[0], len(q)-1
	p := q[n]
	q[n] = planned{}
	q = q[:n]
	*h = q
	i := 0
	for down := 1; down < n; down = 2*i + 1 {
		if down+1 < n && q[down+1].before(q[down]) {
			down++
		}
		if !q[down].before(p) {
			break
		}
		q[i] = q[down]
		i = down
	}
	if n > 0 {
		q[i] = p
	}
	return first
}
