//go:build linux

package live

import (
	"time"

	"lockstep/live/proxy"
	"lockstep/model"
	"lockstep/scenarios/play"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// rule is a fault on messages while it runs. It is guarded by session.mu.
type rule struct {
	number  int // of the fault, from 1
	fault   model.FaultSpec
	matched int
	fired   bool
	held    int           // the number of messages that it holds
	over    chan struct{} // closed when the rule ends
	ended   bool
}

// gate is the way of a process to a node: a proxy.
type gate struct {
	*side
	node  *node
	proxy *proxy.Proxy
	conns map[int]string // the names of connections, by the proxy's number; guarded by s.mu
	// torn are the connections that lost a message, by the proxy's number; see tear. Guarded by
	// s.mu.
	torn map[int]bool
	cut  int64 // the end of a partition; guarded by s.mu
	// streams are the connections whose clients do not notice that a message is missing, by the
	// proxy's number. It is nil if the proxy reads the protocol. Guarded by s.mu.
	streams map[int]bool
}

// welcome reports whether the process may connect. A process that is cut off may not, and nobody may
// connect to a server that has ended.
func (c *gate) welcome() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return !c.partitioned() && !c.node.down
}

// partitioned reports whether no message passes. Guarded by s.mu.
func (c *gate) partitioned() bool { return !c.s.leaving && c.cut > c.s.now() }

// connName returns the name of a connection; see connNames. The first call gives the connection
// its name. Guarded by s.mu.
func (c *gate) connName(x *proxy.Conn) string {
	if c.conns[x.ID] == "" {
		c.conns[x.ID] = c.names.next(x.ClientAddr(), c.proxy.Addr())
	}
	return c.conns[x.ID]
}

// Request implements proxy.Handler: it lets the request travel, meet the rules, and wait for
// its turn at the server.
func (c *gate) Request(p *proxy.Message) proxy.Fate {
	s := c.s
	s.mu.Lock()
	m := c.arrived(p)
	queued := time.Duration(max(s.now()-m.sentNs, 0)) // it waited behind others of its connection, and travelled meanwhile
	f, stays := c.meetAll(m, p.Conn)
	s.mu.Unlock()
	if stays {
		return f
	}
	if !m.greets() && !s.travel(queued, p.Conn.Gone()) {
		c.lost(m, "request", model.LostReset)
		return proxy.Fate{Drop: true}
	}
	if c.node.observed != nil && c.node.observed.AsksNothing(p.Raw) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.partitioned() {
			s.lose(m, "request", model.LostPartition)
			c.breaks(p.Conn)
			return proxy.Fate{Drop: true}
		}
		s.record(m.facts(m.event(model.KindExec, "")), m)
		return proxy.Fate{Free: true}
	}
	select {
	case c.node.turn <- struct{}{}:
	case <-p.Conn.Gone():
		c.lost(m, "request", model.LostReset)
		return proxy.Fate{Drop: true}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.partitioned() {
		<-c.node.turn
		s.lose(m, "request", model.LostPartition)
		if c.streams[p.Conn.ID] {
			c.breaks(p.Conn)
		}
		return proxy.Fate{Drop: true}
	}
	if c.node.down {
		<-c.node.turn
		s.lose(m, "request", model.LostReset)
		return proxy.Fate{Cut: true}
	}
	m.fromNs = s.now()
	if m.request.Blocks {
		<-c.node.turn // it keeps only its own connection waiting
	}
	return proxy.Fate{}
}

// arrived notes that a request has come to the proxy. Guarded by s.mu, which it releases while it waits for the
// child to tell of the request.
func (c *gate) arrived(p *proxy.Message) (m *message) {
	s := c.s
	if s.bytes {
		m = s.unread(c.side, c.connName(p.Conn), p.Index)
	} else {
		m = s.message(c.side, c.connName(p.Conn), p.Index, p.Words)
	}
	m.came = true
	m.hidden = m.hidden || c.node.sentinel || s.group != nil && asksForNodes(m.request.Name)
	if s.owners != nil && !m.told { // the child tells of it before it writes, but on another way
		s.mu.Unlock()
		select {
		case <-m.known:
		case <-p.Conn.Gone():
		case <-time.After(patience): // the lock dialled past the adapter, so that the child tells of nothing
		}
		s.mu.Lock()
	}
	if !m.told {
		m.sentNs = s.now()
		if s.foreign != nil {
			m.op = c.opOf(m.cmd)
		}
	}
	p.Data = m
	if m.request.Streams && c.streams != nil {
		c.streams[p.Conn.ID] = true
	}
	return m
}

// meetAll lets a request meet a broken connection, a partition and the rules. It reports whether the request goes no
// further, and its fate. Guarded by s.mu.
func (c *gate) meetAll(m *message, conn *proxy.Conn) (f proxy.Fate, stays bool) {
	torn, partitioned := c.torn[conn.ID], c.partitioned()
	switch {
	case torn && !partitioned:
		c.s.lose(m, "request", model.LostReset)
		return proxy.Fate{Cut: true}, true
	case torn && c.streams[conn.ID]:
		c.s.lose(m, "request", model.LostPartition)
		return proxy.Fate{Drop: true}, true
	case !m.hidden:
		return c.meet(m, "request", conn)
	}
	return proxy.Fate{Drop: true}, partitioned
}

// Answered implements proxy.Handler.
func (c *gate) Answered(p *proxy.Message, raw []byte) proxy.Fate {
	s, m := c.s, p.Data.(*message)
	if m.request.Blocks { // it is executed when it is answered, as in a world
		now := s.now()
		c.node.turn <- struct{}{}
		m.fromNs = now
	}
	s.mu.Lock()
	if !m.hidden {
		m.reply = simredis.ReplyOf(raw)
		s.look(m, look{node: c.node.index, fromNs: m.fromNs, toNs: s.now()})
	}
	<-c.node.turn
	if m.hidden {
		s.mu.Unlock()
		if m.greets() {
			return proxy.Fate{}
		}
		return proxy.Fate{NotBefore: time.Now().Add(s.latency())}
	}
	f, stays := c.meet(m, "reply", p.Conn)
	s.mu.Unlock()
	return c.sends(m, "reply", f, stays)
}

// sends lets a message of the server travel, unless it stays at the proxy.
func (c *gate) sends(m *message, dir string, f proxy.Fate, stays bool) proxy.Fate {
	if stays {
		return f
	}
	if at := time.Now().Add(c.s.latency()); at.After(f.NotBefore) {
		f.NotBefore = at
	}
	f.Done = c.delivery(m, dir)
	return f
}

// Pushed implements proxy.Handler.
func (c *gate) Pushed(x *proxy.Conn, channel string, _ []byte) proxy.Fate {
	s := c.s
	s.mu.Lock()
	if !s.begun || c.node.sentinel {
		drop := c.partitioned()
		s.mu.Unlock()
		return proxy.Fate{Drop: drop}
	}
	if s.called != nil {
		channel = s.called.Replace(channel)
	}
	m := &message{side: c.side, conn: c.connName(x), push: true, came: true, told: true, channel: channel, sentNs: s.now(), look: -1}
	s.messages = append(s.messages, m)
	f, stays := c.meet(m, "push", x)
	s.mu.Unlock()
	return c.sends(m, "push", f, stays)
}

// Unanswered implements proxy.Handler. The server, or the connection to it, ended.
func (c *gate) Unanswered(p *proxy.Message) {
	s, m := c.s, p.Data.(*message)
	if m.fromNs == 0 {
		return
	}
	if m.request.Blocks {
		c.lost(m, "request", model.LostReset)
		return
	}
	s.mu.Lock()
	if s.begun && !m.hidden {
		s.look(nil, look{node: c.node.index, fromNs: m.fromNs})
	}
	<-c.node.turn
	if !m.hidden {
		s.lose(m, "request", model.LostReset)
	}
	s.mu.Unlock()
}

// Closed implements proxy.Handler.
func (*gate) Closed(*proxy.Conn) {}

// delivery returns a function that records whether a message reached the client.
func (c *side) delivery(m *message, dir string) func(bool, time.Time) {
	return func(delivered bool, at time.Time) {
		s := c.s
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case delivered:
			e := m.event(model.KindDeliver, dir)
			e.AtNs = s.at(at)
			s.record(e, m)
		case c.dead:
			s.lose(m, dir, model.LostProcessDead)
		default:
			s.lose(m, dir, model.LostUnwanted)
		}
	}
}

// greets reports whether the message is the greeting of a client, which no record has. It has no
// latency, since a world answers it at once: judges would take its round trip for a part of the call.
func (m *message) greets() bool { return m.hidden && m.request.Name == "HELLO" }

// event returns an event about a message.
func (m *message) event(kind model.Kind, dir string) model.Event {
	return model.Event{Kind: kind, Process: m.side.process.Name, Dir: dir, Script: m.cmd.Script, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Channel: m.channel}
}

// lose records that a message will never arrive. Guarded by mu.
func (s *session) lose(m *message, dir string, why model.LostReason) {
	if m.hidden {
		return
	}
	e := m.event(model.KindLost, dir)
	e.Why = why
	s.record(e, m)
}

func (c *side) lost(m *message, dir string, why model.LostReason) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.lose(m, dir, why)
}

// meet applies the partition and the rules to a message. stays is true if the message does not go
// on by itself. Guarded by s.mu, which meet releases while a rule holds the message.
func (c *gate) meet(m *message, dir string, x *proxy.Conn) (f proxy.Fate, stays bool) {
	s := c.s
	if c.partitioned() {
		s.lose(m, dir, model.LostPartition)
		if c.streams[x.ID] {
			c.breaks(x)
		}
		return proxy.Fate{Drop: true}, true
	}
	r := s.rule(m, dir, c.node)
	if r == nil {
		return f, false
	}
	e := m.event(model.KindHit, dir)
	e.Fault, e.Text, e.Do = r.number, r.fault.String(), r.fault.Do
	s.record(e, m)
	switch r.fault.Do {
	case "drop":
		s.lose(m, dir, model.LostDropped)
		if c.streams[x.ID] {
			c.breaks(x)
		} else if dir != "push" && m.request.Listens == model.ListensNot {
			c.tear(x)
		}
		return proxy.Fate{Drop: true}, true
	case "delay":
		if dir == "request" {
			return f, !s.wait(r.fault.For-time.Duration(max(s.now()-m.sentNs, 0)), nil, x, m, dir)
		}
		f.NotBefore = time.Now().Add(r.fault.For + s.twice()/2)
		return f, false
	case "hold", "half_open":
		r.held++
		arrives := s.wait(0, r.over, x, m, dir)
		r.held--
		if r.fault.Do == "half_open" && arrives {
			s.lose(m, dir, model.LostReset)
			return proxy.Fate{Cut: true}, true
		}
		if !arrives {
			return proxy.Fate{Drop: true}, true
		}
		return f, false
	case "reset":
		s.lose(m, dir, model.LostReset)
		return proxy.Fate{Cut: true}, true
	case "error":
		if dir == "push" {
			s.lose(m, dir, model.LostUnanswerable)
			return proxy.Fate{Drop: true}, true
		}
		f = proxy.Fate{Error: r.fault.With}
		if dir == "request" {
			f.NotBefore = time.Now().Add(s.twice())
			f.Done = c.delivery(m, "reply")
			return f, true
		}
	}
	return f, false
}

// tearsAfter is how much later than the response timeout of its client a torn connection ends.
const tearsAfter = 200 * time.Millisecond

// tear notes that a connection has lost a message. TCP delivers nothing behind a lost message. If
// the proxy did, the client would take the next answer for the lost one. So the connection is reset
// by the next request that would pass, or when the client has waited for its response timeout.
// Guarded by s.mu.
func (c *gate) tear(x *proxy.Conn) {
	if c.torn[x.ID] {
		return
	}
	c.torn[x.ID] = true
	patience := play.Params(c.s.sc, c.s.lock).ResponseTimeout
	if own := c.process.ClientOptions.ResponseTimeout; own != nil {
		patience = *own
	}
	go func() {
		select {
		case <-time.After(patience + tearsAfter):
			x.Reset()
		case <-x.Gone():
		}
	}()
}

// twice draws a round trip. Guarded by mu.
func (s *session) twice() time.Duration {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.latency() + s.latency()
}

// wait holds a message for a time or until a channel is closed. If the connection ends before, wait
// records that the message is lost, and reports false. It releases mu while it waits.
func (s *session) wait(d time.Duration, until <-chan struct{}, x *proxy.Conn, m *message, dir string) bool {
	s.mu.Unlock()
	var due <-chan time.Time
	if until == nil {
		due = time.After(d)
	}
	arrives := true
	select {
	case <-due:
	case <-until:
	case <-x.Gone():
		arrives = false
	}
	s.mu.Lock()
	if !arrives {
		s.lose(m, dir, model.LostReset)
	}
	return arrives
}

// rule counts the message on every rule that matches it and returns the first that fires.
// Guarded by mu.
func (s *session) rule(m *message, dir string, n *node) *rule {
	var found *rule
	now := s.now()
	if dir == "request" {
		now = m.sentNs // it may have waited behind others
	}
	for _, r := range s.rules {
		if r.ended || s.calm || !sim.Meets(&r.fault, now, &sim.Passing{
			Process: m.side.process.Name, Dir: dir, Script: m.cmd.Script, Command: m.request.Name,
			Node: n.name, Channel: m.channel, Channels: m.request.Channels,
		}) {
			continue
		}
		r.matched++
		if sim.Fires(r.fault.When, r.matched) && found == nil {
			r.fired = true
			found = r
		}
	}
	return found
}

// end ends a rule, which releases the messages that it held. Guarded by mu.
func (r *rule) end(s *session) {
	if r.ended {
		return
	}
	r.ended = true
	if r.fired {
		s.record(model.Event{Kind: model.KindFaultEnd, Fault: r.number, Text: r.fault.String()}, nil)
	}
	close(r.over)
}

// heal begins the calm, in which no rule applies. Guarded by mu.
func (s *session) heal() {
	s.calm = true
	s.movedNs = s.now()
	s.record(model.Event{Kind: model.KindCalm}, nil)
	for _, r := range s.rules {
		r.end(s)
	}
}
