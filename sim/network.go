package sim

import (
	"io"
	"net"
	"syscall"

	"lockstep/model"
)

// message is a request on its way, its reply, or a push.
type message struct {
	id      int
	conn    *conn
	request Request
	cmd     Command
	op      int
	author  Author   // unknown unless Config.Lineage
	asked   []string // of a segment: see Process.Asks
	reply   string   // what the server answered
	bytes   []byte   // of the reply or push
	channel string   // of a push
	there   bool     // it is at the server, which has postponed it
	// gathered: the server has not executed the request.
	gathered bool
	// pipe is the pipeline that the request was written in. A refused request keeps
	// its place there; refused is the error that a rule answers it with.
	pipe    *pipeline
	refused string
}

// pipeline is requests that a client wrote at once, or all messages of a connection that is a
// stream. Their connection carries them in order: none overtakes one that a rule holds.
type pipeline struct {
	lost map[string]int   // by direction, the first message that was lost; the messages after it are lost, too
	held map[string]*rule // by direction, the rule for whose end the later messages wait
}

// place is a place on the way of a message.
type place int

const (
	leaving  place = iota // at its sender
	waiting               // under way, behind a message that a rule held
	arriving              // at its receiver
)

// obstacle returns the reason why a message cannot pass a place on its way; "" if it can.
func (w *World) obstacle(m *message, dir string, at place) model.LostReason {
	c, request := m.conn, dir == "request"
	switch {
	case at == waiting: // it has left, and has not arrived
	case c.p.dead && !request:
		return model.LostProcessDead
	case c.severed, c.closed && request && at == arriving:
		return model.LostReset
	case request && at == arriving && (c.gone && m.request.Stays || c.ended && m.request.Blocks):
		return model.LostClosed
	case w.partitioned(c) && !(request && m.there):
		return model.LostPartition
	case !request && at == arriving && c.client.isShut():
		return model.LostUnwanted
	}
	// Lines with latencies keep the order in which messages left, so no message arrives that left
	// after the lost one. Its number does not tell that: a push may have left before a reply that
	// answers an earlier request.
	if m.behindLost(dir) && (request || at != arriving || w.orders != nil) {
		return model.LostBehindAnother
	}
	return ""
}

// passes reports whether a message can pass a place on its way. If it cannot, it is lost.
func (w *World) passes(m *message, dir string, at place) bool {
	why := w.obstacle(m, dir, at)
	if why != "" {
		w.lost(m, dir, why)
	}
	return why == ""
}

// behindLost reports whether m is lost because an earlier message is.
func (m *message) behindLost(dir string) bool {
	dir = way(dir)
	return m.pipe != nil && m.pipe.lost[dir] != 0 && m.id > m.pipe.lost[dir]
}

// way returns the direction in which a message travels: a push travels as replies do.
func way(dir string) string {
	if dir == "push" {
		return "reply"
	}
	return dir
}

// lines returns the pipelines in which a message waits for an earlier one that a rule holds: its own, and that of
// its connection if its client takes the replies in the order of its requests.
func (m *message) lines() (lines []*pipeline) {
	if m.pipe != nil {
		lines = append(lines, m.pipe)
	}
	if c := m.conn; !c.unordered && c.stream == nil {
		lines = append(lines, c.line)
	}
	return lines
}

func newPipeline() *pipeline {
	return &pipeline{lost: map[string]int{}, held: map[string]*rule{}}
}

// helped is the event of a request that a helper wrote, with its author and its words.
type helped struct {
	event int
	by    Author
	words []string
}

// send takes a request from a client. The goroutine called writer wrote it.
func (w *World) send(c *conn, r *Request, writer string, by Author, pipe *pipeline) {
	if c.node.stream != nil && c.p.dead {
		return // the timers of its client go on, at instants that other goroutines may have, too
	}
	w.msgs++
	c.unanswered++
	c.unordered = c.unordered || r.Unordered
	if c.missing {
		w.breakAtGap(c)
	}
	c.marked = c.marked || r.Marks
	c.gathers = c.gathers || r.Gathers
	if r.Streams && c.stream == nil {
		c.stream = newPipeline()
	}
	if c.stream != nil {
		pipe = c.stream
	}
	words, asked := r.Own(), []string(nil)
	if c.node.stream != nil {
		r.Says = c.says(r.Words[0])
		by, words = c.p.speaker(by)
		asked = words
	} else {
		by = c.p.asker(r.Words, by)
	}
	by = w.owners.Sends(by, words, c.node.stream != nil, func(lock string) string {
		if s := w.held[lock]; s != nil {
			return s.Owner
		}
		return ""
	})
	if c.node.stream != nil {
		w.owners.SendsSegment(by, r.Words[0])
	}
	named := by
	if by.Thread == "" || by.Guessed {
		if lock := w.owners.Renews(words); lock != "" {
			named = Author{Lock: lock, Kept: true}
		}
	}
	m := &message{id: w.msgs, conn: c, request: *r, cmd: w.cfg.Name(r.Words, named), op: c.p.opOf(r.Words, writer), author: by, asked: asked, pipe: pipe}
	if by.Op > 0 {
		m.op = by.Op
	}
	if !c.p.dead {
		w.record(&model.Event{Kind: model.KindSend, Process: c.p.cfg.Name, Op: m.op, Msg: m.id, Conn: c.id,
			Command: r.Name, Script: m.cmd.Script, Args: r.Shown, Owners: m.cmd.Owners, Locks: m.cmd.Locks,
			Listens: r.Listens, Channels: r.Channels, Program: r.Program, Abridged: r.Abridged, Greets: r.Greets, Blocks: r.Blocks, Asked: m.asked, Says: r.Says, Guessed: by.Guessed})
		if by.in != nil && !r.Greets {
			w.helped = append(w.helped, helped{len(w.rec.Events) - 1, by, words})
		}
	}
	if c.p.paused() {
		c.p.held = append(c.p.held, func() { w.transmit(m) })
		return
	}
	w.transmit(m)
}

// transmit puts a request on its way to the server.
func (w *World) transmit(m *message) {
	if !m.conn.p.dead && w.passes(m, "request", leaving) {
		w.meet(m, "request")
	}
}

// pass sends a message on after a delay.
func (w *World) pass(m *message, dir string, delayNs int64) {
	c := m.conn
	if dir == "request" {
		w.travel(c.outLine, &c.lastOut, w.latency(c.p, dir)+delayNs, func() { w.arrive(m, false) }, w.fated(m, dir))
		return
	}
	w.travel(c.inLine, &c.lastIn, w.latency(c.p, way(dir))+delayNs, func() { w.deliver(m, dir, false) }, w.fated(m, dir))
}

// refuse answers a message with an error in place of its receiver.
func (w *World) refuse(m *message, dir, text string) {
	switch {
	case dir == "push":
		w.lost(m, dir, model.LostUnanswerable)
	case dir == "reply":
		m.bytes = m.conn.node.parts.Refusal(text)
		w.pass(m, dir, 0)
	case m.pipe != nil, m.conn.gathers: // its answer has a place among the answers, or the server must hear of it
		m.refused = text
		w.pass(m, dir, 0)
	default:
		w.reply(m, m.conn.node.parts.Refusal(text), true)
	}
}

// refusable reports whether an error can take the place of a message.
func (m *message) refusable(dir string) bool {
	refuses := m.conn.node.parts.Refuses
	return dir == "push" || !m.gathered && (refuses == nil || refuses(m.request.Name))
}

// refusal returns the answer to a refused request that has arrived.
func (n *node) refusal(m *message) []byte {
	if m.conn.gathers {
		return n.parts.Refuse(ConnID(m.conn.id), &m.request, m.refused)
	}
	return n.parts.Refusal(m.refused)
}

// travel runs f when a message that travels for length ns arrives. It does not arrive before an
// earlier one of the same line.
func (w *World) travel(line string, last *int64, length int64, f func(), p *parcel) {
	*last = max(w.now()+length, *last)
	w.sched.addTo(line, *last, ClassDelivery, f, p)
}

// lost records that a message is lost.
func (w *World) lost(m *message, dir string, why model.LostReason) {
	if p := m.pipe; p != nil && (p.lost[way(dir)] == 0 || m.id < p.lost[way(dir)]) {
		p.lost[way(dir)] = m.id
	}
	w.record(&model.Event{Kind: model.KindLost, Process: m.conn.p.cfg.Name, Op: m.op, Msg: m.id, Dir: dir, Script: m.cmd.Script,
		Owners: m.cmd.Owners, Locks: m.cmd.Locks, Channel: m.channel, Why: why})
	if why == model.LostDropped || why == model.LostPartition {
		m.conn.missing = m.conn.missing || dir != "push"
		w.breakAtGap(m.conn)
	}
}

// breakAtGap breaks a connection that has lost a message if its client would take the next one for it: a stream does,
// and so does a client that has sent another request and takes the replies in the order of its requests.
func (w *World) breakAtGap(c *conn) {
	if c.breaking || c.severed || c.stream == nil && (!c.missing || c.unordered || c.unanswered < 2) {
		return
	}
	c.breaking = true
	w.reset(c)
}

// reset breaks a connection that has lost a message as soon as its client can be told.
func (w *World) reset(c *conn) {
	w.sched.add(max(w.now(), c.p.cutUntil[c.node.index]), ClassDelivery, func() {
		if w.partitioned(c) {
			w.reset(c)
			return
		}
		w.sever(c)
	})
}

// arrive lets a request arrive at the server. again reports that it was postponed before.
func (w *World) arrive(m *message, again bool) {
	c := m.conn
	n := c.node
	w.touch(n.object, false)
	if !w.passes(m, "request", arriving) {
		return
	}
	switch {
	case n.stallTill > w.now() || !again && c.stalled > 0:
		w.touch(n.stalled, true) // postponed requests arrive in the order in which they were postponed
		w.putOff(m)
		return
	case c.blocked != nil:
		m.there = true
		c.behind = append(c.behind, m)
		return
	case m.refused != "":
		w.reply(m, n.refusal(m), true)
		return
	}
	out := w.takeEffects()
	reply, answered := n.Server.Handle(w.now(), ConnID(c.id), &m.request, out)
	changed := out.Changed
	w.stirred = !out.Still
	if !answered {
		c.blocked = m
	}
	next := n.apply(out)
	if n.stream != nil {
		n.served = m
	}
	if answered {
		w.executed(m, reply, changed)
	}
	n.callAll(next)
}

// executed records that the server executed a request and sends the reply. changed reports that the
// state of locks may have changed.
func (w *World) executed(m *message, reply Reply, changed bool) {
	c := m.conn
	if w.forgets {
		w.ran = append(w.ran, m)
	}
	m.reply, m.gathered = reply.Shown, reply.Gathered
	w.record(&model.Event{Kind: model.KindExec, Process: c.p.cfg.Name, Op: m.op, Msg: m.id, Conn: c.id,
		Command: m.request.Name, Script: m.cmd.Script, Args: m.request.Shown, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Reply: reply.Shown, Answer: reply.Answer,
		Listens: m.request.Listens, Channels: m.request.Channels, Program: m.request.Program, Abridged: m.request.Abridged, Greets: m.request.Greets, Asked: m.asked, Says: m.request.Says})
	if changed {
		c.node.look(m)
	}
	if reply.None {
		c.unanswered--
	} else {
		w.reply(m, reply.Bytes, false)
	}
	if reply.Closes {
		w.hangUp(c)
	}
}

// hangUp lets the server close a connection. The client notices it after everything that the server
// has sent before.
func (w *World) hangUp(c *conn) {
	c.closed = true
	w.disconnect(c)
	w.travel(c.inLine, &c.lastIn, w.latency(c.p, "close"), func() { c.client.cut(io.EOF) }, nil)
}

// answered sends the reply to the request that kept a connection waiting, and lets those behind it
// arrive. changed reports that the state of locks may have changed.
func (w *World) answered(c *conn, reply Reply, changed bool) {
	m, behind := c.blocked, c.behind
	c.blocked, c.behind = nil, nil
	w.executed(m, reply, changed)
	for _, m := range behind {
		w.putOff(m)
	}
}

// putOff lets a request arrive again when the server goes on, after the requests of its
// connection that already wait.
func (w *World) putOff(m *message) {
	m.conn.stalled++
	w.sched.add(max(w.now(), m.conn.node.stallTill), ClassDelivery, func() {
		m.conn.stalled--
		w.arrive(m, true)
	})
}

// reply sends bytes back. injected reports that they come from a rule and not from the server.
func (w *World) reply(m *message, b []byte, injected bool) {
	m.bytes = b
	switch {
	case !w.passes(m, "reply", leaving):
	case injected && m.refused == "":
		w.pass(m, "reply", w.latency(m.conn.p, "request"))
	default:
		w.meet(m, "reply")
	}
}

// push sends a message that the server sent without a request.
func (w *World) push(c *conn, p Push) {
	if p.to != nil {
		c.unanswered++
		w.reply(p.to, p.Bytes, false)
		return
	}
	w.msgs++
	m := &message{id: w.msgs, conn: c, bytes: p.Bytes, channel: p.Channel, pipe: c.stream}
	if w.passes(m, "push", leaving) {
		w.meet(m, "push")
	}
}

// deliver lets bytes reach a client. again reports that they were postponed before.
func (w *World) deliver(m *message, dir string, again bool) {
	c := m.conn
	s := c.client
	w.touch(objProcess(c.p), true)
	switch {
	case !w.passes(m, dir, arriving):
	case c.p.paused() || !again && c.putOff > 0:
		// After the messages of this connection that already wait.
		c.putOff++
		w.sched.add(max(w.now(), c.p.pausedUntil), ClassDelivery, func() {
			c.putOff--
			w.deliver(m, dir, true)
		})
	default:
		w.record(&model.Event{Kind: model.KindDeliver, Process: c.p.cfg.Name, Op: m.op, Msg: m.id, Conn: c.id, Dir: dir,
			Script: m.cmd.Script, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Channel: m.channel})
		if dir == "reply" {
			c.unanswered--
		}
		s.mu.Lock()
		if len(s.in) == 0 {
			s.in = m.bytes
		} else {
			s.in = append(s.in, m.bytes...)
		}
		s.mu.Unlock()
		s.signal()
	}
}

// sever breaks a connection: nothing passes any more. The client notices in an event of its own,
// because goroutines that wake together continue in any order.
func (w *World) sever(c *conn) {
	if c.severed {
		return
	}
	c.severed = true
	w.touch(objProcess(c.p), true)
	w.disconnect(c)
	w.sched.add(w.now(), ClassDelivery, func() {
		c.client.cut(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	})
}

// disconnect ends a connection at the server.
func (w *World) disconnect(c *conn) {
	c.gone, c.ended = true, true
	w.touch(c.node.object, false)
	w.touch(c.node.conns, true)
	if c.id == 0 {
		return // the server never knew the connection
	}
	c.node.call(func(nowNs int64, out *Effects) { c.node.parts.Close(nowNs, ConnID(c.id), out) })
	w.stirred = true
	if c.blocked == nil {
		return
	}
	why := model.LostClosed
	if c.severed {
		why = model.LostReset
	}
	lost := c.behind
	if !c.kept {
		lost = append([]*message{c.blocked}, lost...)
		c.blocked = nil
	}
	c.behind = nil
	for _, m := range lost {
		w.lost(m, "request", why)
	}
}
