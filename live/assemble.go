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
func (s *session) held(shift int64) (out []event) {
	locks := play.LockNames(s.sc)
	states := map[string]*model.LockState{}
	last := int64(0)
	keys := make([]map[string]key, len(s.nodes)) // of the nodes that take writes
	// change records the locks whose state has changed.
	change := func(at int64, m *message) {
		for _, lock := range locks {
			state := s.read(at, keys, lock)
			if !states[lock].Held() {
				s.owners.Took(lock, state, m.writer())
			}
			now := s.named(lock, state)
			if states[lock].Equal(now) {
				continue
			}
			states[lock] = now
			out = append(out, event{model.Event{AtNs: at, Kind: model.KindState, Lock: lock, State: now}, m})
		}
	}
	// expire ends the keys whose time is over by an instant. Keys that end in one millisecond end
	// together, as in a simulated world: no state has only some of them.
	expire := func(until int64) {
		for {
			first := until + 1
			for _, on := range keys {
				for _, k := range on {
					if k.endMs >= 0 {
						first = min(first, s.gone(k))
					}
				}
			}
			if first > until {
				return
			}
			last = max(last, first)
			for i, on := range keys {
				keys[i] = maps.Clone(on)
				for _, name := range slices.Sorted(maps.Keys(on)) {
					if k := on[name]; k.endMs >= 0 && s.gone(k) == first {
						delete(keys[i], name)
						out = append(out, event{model.Event{AtNs: last, Kind: model.KindExpire, Key: s.bare(name)}, nil})
					}
				}
			}
			change(last, nil)
		}
	}
	for _, l := range s.looks {
		at := s.instant(l, shift, last)
		expire(at)
		last = at
		if l.serving != nil {
			for i := range keys {
				if !slices.Contains(l.serving, i) {
					keys[i] = nil
				}
			}
		}
		if l.blind {
			if m := l.msg; m != nil {
				out = append(out, event{m.executed(at), m})
			}
			continue
		}
		before := keys[l.node]
		now := maps.Clone(l.keys)
		keys[l.node] = now
		if l.msg != nil || l.fault > 0 {
			// A key that is gone may have ended between the command and the look, or the
			// command removed it. The early form says that the command did.
			for n, k := range before {
				if _, there := now[n]; !there && shift >= 0 && k.endMs >= 0 && s.gone(k) > at && s.gone(k) <= l.readNs+s.wallError() && !slices.Contains(l.removed, n) {
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
			expire(max(at, l.readNs))
		}
		if l.fault > 0 {
			e := model.Event{AtNs: at, Kind: model.KindFault, Fault: l.fault, Text: l.text}
			out = append(out, event{e, nil})
			for _, n := range l.removed {
				out = append(out, event{model.Event{AtNs: at, Kind: model.KindExpire, Key: s.bare(n)}, nil})
			}
		}
		for _, e := range l.published {
			e.AtNs = at
			out = append(out, event{e, nil})
		}
		if m := l.msg; m != nil {
			out = append(out, event{m.executed(at), m})
		}
		change(at, l.msg)
	}
	return out
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
