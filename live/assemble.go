//go:build linux

package live

import (
	"cmp"
	"maps"
	"slices"

	"lockstep/model"
	"lockstep/scenarios/play"
)

// assemble makes the record. Instants that nobody observed are known within bounds. It moves
// them by shift, in nanoseconds, but not out of their bounds. Guarded by mu.
func (s *session) assemble(shift int64) *model.Record {
	out := slices.Clone(s.events)
	for _, m := range s.messages {
		switch {
		case m.hidden:
			continue
		case m.push:
			continue // it has no event of its own
		}
		e := m.event(model.KindSend, "")
		e.AtNs = m.sentNs
		out = append(out, event{m.facts(e), m})
		if !m.came { // it was written, and its connection ended
			lost := m.event(model.KindLost, "request")
			lost.AtNs, lost.Why = m.sentNs, model.LostReset
			out = append(out, event{lost, m})
		}
	}
	if s.bytes {
		out = append(out, s.views(shift)...)
	} else {
		out = append(out, s.held(shift)...)
	}
	s.afterPauses(out)
	slices.SortStableFunc(out, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
	rec := &model.Record{Params: play.Params(s.sc, s.lock)}
	rec.Params.Parts = max(rec.Params.Parts, len(s.reading.servers))
	for _, f := range s.faults() {
		rec.Params.Faults = append(rec.Params.Faults, f.FaultSpec)
	}
	s.number(out)
	for _, e := range out {
		rec.Add(e.Event)
	}
	last := int64(0)
	if len(out) > 0 {
		last = out[len(out)-1].AtNs
	}
	rec.Params.Processes = play.Skews(s.sc, last)
	rec.Params.Uncertainty = s.uncertainty()
	return rec
}

// rank orders events of one instant: a fault before its effects, a request before its
// execution.
func rank(k model.Kind) int {
	switch k {
	case model.KindFault:
		return 0
	case model.KindInvoke:
		return 1
	case model.KindSend:
		return 2
	case model.KindHit, model.KindLost:
		return 3
	case model.KindDeliver:
		return 5
	case model.KindReturn, model.KindDone:
		return 6
	default:
		return 4
	}
}

// executed returns the event that a server executed the request.
func (m *message) executed(atNs int64) model.Event {
	e := m.facts(m.event(model.KindExec, ""))
	e.AtNs, e.Reply, e.Answer = atNs, m.reply.Shown, m.reply.Answer
	return e
}

// facts adds the facts about the request to an event.
func (m *message) facts(e model.Event) model.Event {
	e.Dir, e.Channel = "", ""
	e.Command, e.Args = m.request.Name, m.request.Shown
	e.Listens, e.Channels, e.Program = m.request.Listens, m.request.Channels, m.request.Program
	return e
}

// afterPauses moves a delivery that came in a pause of its process to the end of the pause.
// Until then the bytes lay in the socket of the process.
func (s *session) afterPauses(events []event) {
	for i := range events {
		e := &events[i]
		if e.Kind != model.KindDeliver {
			continue
		}
		for _, p := range e.msg.side.pauses {
			if p[0] <= e.AtNs && e.AtNs < p[1] {
				e.AtNs = p[1]
			}
		}
	}
}

// number numbers operations, messages and connections as a record does: operations in the
// order of their calls, messages in the order of sending, connections in the order of their
// first messages.
func (s *session) number(events []event) {
	type opKey struct {
		process string
		op      int
	}
	ops := map[opKey]int{}
	conns := map[connKey]int{}
	msgs := map[*message]int{}
	for i := range events {
		e := &events[i]
		if e.Kind == model.KindInvoke {
			ops[opKey{e.Process, e.Op}] = len(ops) + 1
		}
		if m := e.msg; m != nil && msgs[m] == 0 {
			msgs[m] = len(msgs) + 1
			if c := (connKey{m.side.process.Name, m.conn, 0}); conns[c] == 0 {
				conns[c] = len(conns) + 1
			}
		}
	}
	for i := range events {
		e := &events[i]
		if e.Op > 0 {
			e.Op = ops[opKey{e.Process, e.Op}]
		}
		m := e.msg
		if m == nil {
			continue
		}
		e.Msg = msgs[m]
		if e.Kind == model.KindState {
			continue
		}
		e.Op = ops[opKey{e.Process, m.op}]
		switch e.Kind {
		case model.KindSend, model.KindExec, model.KindDeliver:
			e.Conn = conns[connKey{m.side.process.Name, m.conn, 0}]
		}
	}
}

// held returns the events of the servers: the executions of requests, and the changes of state.
func (s *session) held(shift int64) []event {
	r := replayed{s: s, locks: play.LockNames(s.sc), shift: shift, states: map[string]*model.LockState{}, keys: make([]map[string]key, len(s.nodes))}
	for _, l := range s.looks {
		r.add(l)
	}
	return r.out
}

// replayed is the servers while the looks at them are replayed.
type replayed struct {
	s      *session
	locks  []string
	shift  int64
	states map[string]*model.LockState
	lastNs int64            // the instant of the newest change
	keys   []map[string]key // of the nodes that take writes
	out    []event
}

func (r *replayed) event(e model.Event, m *message) { r.out = append(r.out, event{e, m}) }

// change records the locks whose state has changed.
func (r *replayed) change(at int64, m *message) {
	for _, lock := range r.locks {
		state := r.s.read(at, r.keys, lock)
		r.s.owners.Follows(lock, r.states[lock], state, m.writer())
		now := r.s.named(lock, state)
		if r.states[lock].Equal(now) {
			continue
		}
		r.states[lock] = now
		r.event(model.Event{AtNs: at, Kind: model.KindState, Lock: lock, State: now}, m)
	}
}

// expire ends the keys whose time is over by an instant. Keys that end in one millisecond end
// together, as in a simulated world: no state has only some of them.
func (r *replayed) expire(until int64) {
	for {
		first := until + 1
		for _, on := range r.keys {
			for _, k := range on {
				if k.endMs >= 0 {
					first = min(first, r.s.goneNs(k))
				}
			}
		}
		if first > until {
			return
		}
		r.lastNs = max(r.lastNs, first)
		for i, on := range r.keys {
			r.keys[i] = maps.Clone(on)
			for _, name := range slices.Sorted(maps.Keys(on)) {
				if k := on[name]; k.endMs >= 0 && r.s.goneNs(k) == first {
					delete(r.keys[i], name)
					r.event(model.Event{AtNs: r.lastNs, Kind: model.KindExpire, Key: r.s.bare(name)}, nil)
				}
			}
		}
		r.change(r.lastNs, nil)
	}
}

// add adds what happened before a look.
func (r *replayed) add(l look) {
	at := r.s.instant(l, r.shift, r.lastNs)
	r.expire(at)
	r.lastNs = at
	if l.serving != nil {
		for i := range r.keys {
			if !slices.Contains(l.serving, i) {
				r.keys[i] = nil
			}
		}
	}
	if l.blind {
		if m := l.msg; m != nil {
			r.event(m.executed(at), m)
		}
		return
	}
	r.read(at, l)
	if l.fault > 0 {
		r.event(model.Event{AtNs: at, Kind: model.KindFault, Fault: l.fault, Text: l.text}, nil)
		for _, n := range l.removed {
			r.event(model.Event{AtNs: at, Kind: model.KindExpire, Key: r.s.bare(n)}, nil)
		}
	}
	for _, e := range l.published {
		e.AtNs = at
		r.event(e, nil)
	}
	if m := l.msg; m != nil {
		r.event(m.executed(at), m)
	}
	r.change(at, l.msg)
}

// read gives a node the keys that it had at a look, and those that ended between the change and the look.
func (r *replayed) read(at int64, l look) {
	before, now := r.keys[l.node], maps.Clone(l.keys)
	r.keys[l.node] = now
	if l.msg != nil || l.fault > 0 {
		// A key that is gone may have ended between the command and the look, or the
		// command removed it. The early form says that the command did.
		for n, k := range before {
			if _, there := now[n]; !there && r.shift >= 0 && k.endMs >= 0 && r.s.goneNs(k) > at && r.s.goneNs(k) <= l.readNs+r.s.wallError() && !slices.Contains(l.removed, n) {
				now[n] = k
			}
		}
	} else if !l.first && !l.moved {
		// Nothing but time changes keys between two commands.
		for n, k := range before {
			if _, there := now[n]; !there {
				now[n] = k
			}
		}
		r.expire(max(at, l.readNs))
	}
}

// instant returns when the change before a look happened. It is the instant that the server
// tells, moved by shift, but within the bounds that the parent saw and not before last, the
// instant of the change before.
func (s *session) instant(l look, shift, last int64) int64 {
	if l.msg == nil {
		return max(l.fromNs, last)
	}
	from, to := l.fromNs, l.toNs
	for _, stall := range s.nodes[l.node].stalls { // a server that stands still executes nothing
		if stall[0] <= from && from < stall[1] {
			from = min(stall[1], to)
		}
	}
	at := l.atNs
	if at == 0 {
		at = (from + to) / 2
		if shift < 0 {
			at = from
		} else if shift > 0 {
			at = to
		}
	}
	return max(min(max(at+shift, from), to), last)
}
