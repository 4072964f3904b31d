//go:build linux

package live

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"lockstep/live/proxy"
	"lockstep/model"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// This file has the part of a run that is about Observed servers.

// viewsOf prepares the reading of states from views.
func (s *session) viewsOf(locks []string) {
	s.bytes = true
	s.world = s.lock.Servers.New(locks, subject.ServerOptions{})
	s.viewed = map[string]*model.LockState{}
	s.owners, s.valued, s.appeared = sim.NewOwners(), s.viewed, map[appearance]bool{}
}

// stands reports whether a fault stalls a node now.
func (s *session) stands(n *node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return slices.ContainsFunc(n.stalls, func(x [2]int64) bool { return x[0] <= now && now < x[1] })
}

// bytesGate is the way of a process to an Observed server.
type bytesGate struct {
	*gate
	last map[int]*message // the newest message without an answer, by connection; guarded by s.mu
}

// unread does what message does, for a proxy that does not read the protocol: only the child tells what
// the message says. Guarded by mu.
func (s *session) unread(c *side, conn string, index int) *message {
	key := connKey{c.process.Name, conn, index}
	m := s.byConn[key]
	if m == nil {
		m = &message{side: c, conn: conn, look: -1, known: make(chan struct{})}
		s.byConn[key] = m
		s.messages = append(s.messages, m)
	}
	return m
}

// Answered implements proxy.Handler. There are no bytes if the server did not answer.
func (g *bytesGate) Answered(p *proxy.Message, raw []byte) proxy.Fate {
	s, m := g.s, p.Data.(*message)
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.now()
	if len(raw) > 0 {
		m.cameNs = s.at(p.Came)
		to = m.cameNs
		if !m.request.Streams {
			m.reply.Shown = printable(raw)
		}
		delete(g.last, p.Conn.ID)
	} else {
		m.reply.None = true
		g.last[p.Conn.ID] = m
	}
	s.look(m, look{node: g.node.index, fromNs: m.fromNs, toNs: to})
	<-g.node.turn
	return g.later(m, "reply", p.Conn, p.Came)
}

// printable returns an answer on one line for the record; "" if it is no text.
func printable(raw []byte) string {
	text := strings.TrimSpace(strings.ReplaceAll(string(raw), "\r\n", " "))
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return text
}

// later applies the rules to a message of the server when its turn on the connection has come. Guarded
// by s.mu.
func (g *bytesGate) later(m *message, dir string, x *proxy.Conn, came time.Time) proxy.Fate {
	s := g.s
	s.mu.Unlock()
	latency := s.latency()
	s.mu.Lock()
	done := g.delivery(m, dir)
	return proxy.Fate{NotBefore: came.Add(latency), Done: done, Later: func() proxy.Fate {
		s.mu.Lock()
		defer s.mu.Unlock()
		if g.torn[x.ID] {
			why := model.LostReset
			if g.partitioned() {
				why = model.LostPartition
			}
			s.lose(m, dir, why)
			return proxy.Fate{Drop: g.partitioned(), Cut: !g.partitioned()}
		}
		f, stays := g.meet(m, dir, x)
		if !stays {
			f.Done = done
		}
		if late := time.Since(came.Add(latency)); late > 0 && !f.NotBefore.IsZero() {
			f.NotBefore = f.NotBefore.Add(-late) // it was behind others
		}
		return f
	}}
}

// Pushed implements proxy.Handler. If a message had no answer in time, the next bytes are its answer. The
// parent looks before the client gets them. Otherwise one look would see the grant together with the
// client's next change.
func (g *bytesGate) Pushed(x *proxy.Conn, _ string, _ []byte) proxy.Fate {
	s, came := g.s, time.Now()
	s.mu.Lock()
	m := g.last[x.ID]
	delete(g.last, x.ID)
	s.mu.Unlock()
	if m != nil {
		select {
		case g.node.turn <- struct{}{}:
			s.mu.Lock()
			s.look(nil, look{node: g.node.index, fromNs: s.now()})
			s.mu.Unlock()
			<-g.node.turn
		case <-time.After(turnMost): // the next message of this connection may have the turn, and its answer comes after this one
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m != nil {
		return g.later(m, "reply", x, came)
	}
	m = &message{side: g.side, conn: g.connName(x), push: true, came: true, told: true, sentNs: s.now(), look: -1}
	s.messages = append(s.messages, m)
	return g.later(m, "push", x, time.Now())
}

// breaks resets a connection that has lost a message, as soon as its client can be told. Guarded
// by s.mu.
func (g *gate) breaks(x *proxy.Conn) {
	if g.torn[x.ID] {
		return
	}
	g.torn[x.ID] = true
	s := g.s
	left := time.Duration(max(g.cut-s.now(), 0))
	go func() {
		for left > 0 {
			select {
			case <-time.After(left):
			case <-x.Gone():
				return
			}
			s.mu.Lock()
			left = 0
			if g.partitioned() {
				left = time.Duration(g.cut - s.now())
			}
			s.mu.Unlock()
		}
		x.Reset()
	}()
}

// turnMost is the longest time for which a late answer waits for a look.
const turnMost = 30 * time.Millisecond

// lateMost is the longest time between the answer to a message and a change that the message makes.
const lateMost = 100 * time.Millisecond

// nearly is the largest difference between two readings of the same end of a hold.
const nearly = 60 * time.Millisecond

// view does what look does, for an Observed server.
func (s *session) view(m *message, l look) {
	n := s.nodes[l.node]
	locks := play.LockNames(s.sc)
	s.mu.Unlock()
	views, err := n.observed.Look(locks)
	s.mu.Lock()
	if err != nil {
		s.failed = errors.Join(s.failed, err)
		return
	}
	l.msg, l.readNs = m, s.now()
	if l.toNs == 0 {
		l.toNs = l.readNs
	}
	for _, before := range slices.Backward(s.looks) {
		if before.node != l.node {
			continue
		}
		l.before = before.readNs
		if m == nil && before.msg != nil && l.fault == 0 && l.fromNs-before.readNs < int64(lateMost) {
			l.after = before.msg
		}
		if m == nil && before.after != nil && l.fromNs-before.after.fromNs < int64(lateMost) {
			l.after = before.after
		}
		break
	}
	for _, v := range views {
		n.observed.Show(s.world.Nodes[l.node].Server, v, l.readNs)
		states := map[string]*model.LockState{}
		for _, lock := range locks {
			now := s.world.State(l.readNs, lock)
			if now == nil {
				now = &model.LockState{}
			}
			states[lock] = steady(s.viewed[lock], now)
			s.correct(n, m, l, lock, s.viewed[lock], states[lock])
			s.viewed[lock] = states[lock]
			s.learnFrom(m, &l, lock, states[lock])
		}
		l.views = append(l.views, states)
	}
	if m != nil {
		m.look = len(s.looks)
	}
	s.looks = append(s.looks, l)
	// The time in which an answer settles is no time in which the machine stood still.
	settle := n.observed.Settle()
	quiet := settle.Quiet
	if m != nil && m.cameNs == 0 {
		quiet = settle.First
	}
	s.gapNs = max(s.gapNs, lengthOutside(l.fromNs, l.readNs, n.stalls)-int64(quiet))
}

// steady returns the state now, with the end of the hold as an earlier state has it if both mean the same
// end: two readings of one end differ a little.
func steady(before, now *model.LockState) *model.LockState {
	if before == nil || !before.Held() || before.Owner != now.Owner || before.ExpiresMs < 0 || now.ExpiresMs < 0 {
		return now
	}
	if d := now.ExpiresMs - before.ExpiresMs; max(d, -d) <= nearly.Milliseconds() {
		same := *now
		same.ExpiresMs = before.ExpiresMs
		return &same
	}
	return now
}

// correct corrects the end of a hold in earlier views in two cases. A Vague server may tell another end of
// the same hold although no message can have moved the end. And a hold may end a little earlier than the
// server had told. Guarded by mu.
func (s *session) correct(n *node, m *message, l look, lock string, before, now *model.LockState) {
	if before == nil || !before.Held() || before.ExpiresMs < 0 {
		return
	}
	if before.Owner != now.Owner {
		seen := l.fromNs/1e6 - 1
		if before.ExpiresMs > seen && s.ranOut(before, l.readNs) {
			s.revise(lock, before, seen)
		}
		return
	}
	vague, ok := n.observed.(Vague)
	if !ok || now.ExpiresMs < 0 || m != nil && (m.cmd.Script == model.RoleRenew || m.cmd.Script == model.RoleUnlock) {
		return
	}
	if d := now.ExpiresMs - before.ExpiresMs; d != 0 && max(d, -d) <= vague.EndsWithin().Milliseconds() {
		s.revise(lock, before, now.ExpiresMs)
	}
}

// revise gives a hold another end in the views that have it. Guarded by mu.
func (s *session) revise(lock string, held *model.LockState, endMs int64) {
	for _, l := range slices.Backward(s.looks) {
		for _, v := range slices.Backward(l.views) {
			if v[lock].Owner != held.Owner || v[lock].ExpiresMs != held.ExpiresMs {
				return
			}
			same := *v[lock]
			same.ExpiresMs = endMs
			v[lock] = &same
		}
	}
}

// learnFrom notes to whom the values of a state belong. If a message carried the value, it belongs to the
// first thread that sent it. Otherwise it belongs to the thread whose message was at the server. Guarded
// by mu.
func (s *session) learnFrom(m *message, l *look, lock string, state *model.LockState) {
	for _, value := range append([]string{state.Owner}, state.Queue...) {
		key := appearance{lock, value}
		if value == "" || s.appeared[key] {
			continue
		}
		s.appeared[key] = true
		by := s.sender(value)
		if by != nil && by != m && by.fromNs > 0 && (m == nil || by.fromNs < m.fromNs) {
			if l.causes == nil {
				l.causes = map[string]*message{}
			}
			l.causes[lock] = by // the look after this message came too early
		}
		if by == nil {
			by = cmp.Or(m, l.after)
		}
		s.owners.Name(lock, &model.LockState{Owner: value}, by.writer())
	}
}

// appearance is a value in the views of a lock.
type appearance struct{ lock, value string }

// valueLeast is the least length of a value that is looked for in messages. A shorter one may be in a
// message by chance.
const valueLeast = 8

// sender returns the first message of a known thread that carries a value, or nil. The server may have
// added digits to the value.
func (s *session) sender(value string) *message {
	short := strings.TrimRight(value, "0123456789")
	for _, text := range []string{value, short} {
		if len(text) < valueLeast {
			continue
		}
		for _, m := range s.messages {
			if m.author.Thread != "" && slices.ContainsFunc(m.request.Words, func(w string) bool { return strings.Contains(w, text) }) {
				return m
			}
		}
	}
	return nil
}

// named returns a state with threads in the place of values. Guarded by mu.
func (s *session) named(lock string, state *model.LockState) *model.LockState {
	if state == nil {
		return &model.LockState{}
	}
	return s.owners.Name(lock, state, nil)
}

// watchChanges looks at a node whenever its locks may have changed without a message, until stop is
// closed.
func (s *session) watchChanges(n *node, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-n.observed.Changed():
			s.alone(n, func() { s.look(nil, look{node: n.index, fromNs: s.now()}) })
		}
	}
}

// recordLeft records the keys that the servers still have.
func (s *session) recordLeft() {
	for _, n := range s.nodes {
		keys, err := n.observed.Left()
		s.mu.Lock()
		s.failed = errors.Join(s.failed, err)
		slices.Sort(keys)
		for _, k := range keys {
			s.record(model.Event{Kind: model.KindLeft, Key: k}, nil)
		}
		s.mu.Unlock()
	}
}

// views returns the events of Observed servers: the executions of requests, and the changes of state.
func (s *session) views(shift int64) (out []event) {
	states := map[string]*model.LockState{}
	last := int64(0)
	for _, l := range s.looks {
		from, to := s.earliest(l), l.readNs
		if l.fault > 0 {
			from = l.fromNs
			out = append(out, event{model.Event{AtNs: max(from, last), Kind: model.KindFault, Fault: l.fault, Text: l.text}, nil})
		}
		// A message was executed between its sending and its answer, if it had one.
		at, late := to, to
		if l.msg != nil {
			late = l.toNs
			at = from + (late-from)/2
		}
		switch {
		case shift < 0 || l.fault > 0:
			at = from
		case shift > 0:
			at = late
		}
		at = max(at, last)
		by := l.msg
		if by == nil && shift < 0 {
			by = l.after
		}
		if len(l.views) > 0 && l.fault == 0 {
			s.runOut(states, l, by, at, shift, &out)
		}
		// This look sees the effect of an earlier message late. The effect came before this message.
		for _, lock := range play.LockNames(s.sc) {
			if m := l.causes[lock]; m != nil && len(l.views) > 0 {
				if now := s.named(lock, l.views[0][lock]); !now.Equal(states[lock]) {
					states[lock] = now
					last = max(last, m.fromNs)
					out = append(out, event{model.Event{AtNs: last, Kind: model.KindState, Lock: lock, State: now}, m})
				}
			}
		}
		if m := l.msg; m != nil {
			out = append(out, event{m.executed(at), m})
			last = at
		}
		for _, view := range l.views {
			for _, lock := range play.LockNames(s.sc) {
				before, now := states[lock], s.named(lock, view[lock])
				if before.Equal(now) {
					continue
				}
				states[lock] = now
				last = at
				// Only the owner moves the end of its hold.
				if before != nil && before.Held() && before.Owner == now.Owner && before.ExpiresMs != now.ExpiresMs && by != nil && !slices.Contains(by.cmd.Owners, now.Owner) {
					moved := *before
					moved.ExpiresMs = now.ExpiresMs
					out = append(out, event{model.Event{AtNs: at, Kind: model.KindState, Lock: lock, State: &moved}, nil})
					if moved.Equal(now) {
						continue
					}
				}
				out = append(out, event{model.Event{AtNs: at, Kind: model.KindState, Lock: lock, State: now}, by})
			}
		}
	}
	return out
}

// runOut ends the holds whose leases were over when a look saw that they had ended. An unlock may have
// ended such a hold just before its lease; the early form says so.
func (s *session) runOut(states map[string]*model.LockState, l look, by *message, at, shift int64, out *[]event) {
	for _, lock := range play.LockNames(s.sc) {
		before, now := states[lock], s.named(lock, l.views[0][lock])
		if before == nil || before.Owner == now.Owner || !s.ranOut(before, l.readNs) {
			continue
		}
		if by != nil && (by.cmd.Script == model.RoleUnlock || by.cmd.Script == model.RoleForceUnlock) && shift < 0 {
			continue
		}
		if !s.streamed(l.node) {
			*out = append(*out, event{model.Event{AtNs: at, Kind: model.KindExpire, Key: lock}, nil})
		}
		free := &model.LockState{Token: before.Token}
		if s.streamed(l.node) || len(before.Queue) > 0 { // the next waiter has it at once
			if slices.Contains(before.Queue, now.Owner) || now.Owner == "" {
				free = now
			}
		}
		states[lock] = free
		*out = append(*out, event{model.Event{AtNs: at, Kind: model.KindState, Lock: lock, State: free}, nil})
	}
}

// ranOut reports whether the lease of a hold was over at an instant, by the last reading of its end.
func (s *session) ranOut(held *model.LockState, atNs int64) bool {
	return held != nil && held.Held() && held.ExpiresMs >= 0 && held.ExpiresMs*1e6 <= atNs+int64(nearly)
}

// streamed reports whether a server of the world reads a stream.
func (s *session) streamed(node int) bool { return sim.Streaming(s.world.Nodes[node].Server) != nil }

// toldMost is the longest time that a server takes to tell of a change. The time for which a process
// stood still comes on top.
const toldMost = 20 * time.Millisecond

// earliest returns the first instant at which the change that a look saw can have happened. Guarded by mu.
func (s *session) earliest(l look) int64 {
	if l.msg != nil || l.fault > 0 {
		return l.fromNs
	}
	return max(l.before, l.fromNs-int64(toldMost)-s.gapNs)
}

// width returns the longest time between the bounds of any change. Guarded by mu.
func (s *session) width() int64 {
	width := int64(0)
	var before map[string]*model.LockState
	for _, l := range s.looks {
		for _, v := range l.views {
			same := before != nil
			for lock, state := range v {
				same = same && before[lock].Equal(state)
			}
			if !same && before != nil && l.fault == 0 {
				from, to := s.earliest(l), l.readNs
				if l.msg != nil {
					to = l.toNs
				}
				width = max(width, lengthOutside(from, to, s.nodes[l.node].stalls))
			}
			before = v
		}
	}
	return width
}
