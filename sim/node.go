package sim

import (
	"slices"
	"time"

	"lockstep/model"
)

// node is a Node in a running world.
type node struct {
	Node
	parts     Parts // of the server, whole
	w         *World
	index     int
	prefix    string // of its objects
	object    string // ObjectServer, and so on
	conns     string
	stalled   string
	plannedNs int64 // of the next Tick, 0: none
	stallTill int64
	apartTill []int64 // by node, until when no message passes between the two
	states    map[string]*model.LockState
	stream    *segments // the Server, if it is one that Segments made
	// unsimulated is what a stream server met and does not simulate.
	unsimulated []string
	served      *message // for a stream: the segment that it got since all goroutines were last blocked
}

func (w *World) newNode(i int, n Node) *node {
	prefix := ""
	if len(w.cfg.Nodes) > 1 {
		prefix = n.Addr + " "
	}
	stream, _ := n.Server.(*segments)
	return &node{Node: n, parts: n.Server.Parts().whole(), w: w, index: i, prefix: prefix, object: prefix + ObjectServer, conns: prefix + ObjectConns,
		stalled: prefix + objStalled, states: map[string]*model.LockState{}, stream: stream, apartTill: make([]int64, len(w.cfg.Nodes))}
}

// node returns the node at an address; nil if there is none.
func (w *World) node(addr string) *node {
	for _, n := range w.nodes {
		if n.Addr == addr {
			return n
		}
	}
	return nil
}

// call lets f call a server, and carries out the effects.
func (n *node) call(f func(nowNs int64, out *Effects)) {
	out := n.w.takeEffects()
	f(n.w.now(), out)
	changed := out.Changed
	next := n.apply(out)
	if changed {
		n.look(nil)
	}
	n.callAll(next)
}

// callAll lets each function call a server, in order.
func (n *node) callAll(list []func(nowNs int64, out *Effects)) {
	for _, f := range list {
		n.call(f)
		n.w.stirred = true
	}
}

// takeEffects returns memory for the effects of a call. apply returns the memory. Effects may cause
// another call while they are carried out.
func (w *World) takeEffects() *Effects {
	if i := len(w.effects) - 1; i >= 0 {
		e := w.effects[i]
		w.effects = w.effects[:i]
		return e
	}
	return &Effects{}
}

// apply carries out effects. It returns the functions of Effects.Next.
func (n *node) apply(out *Effects) (next []func(nowNs int64, out *Effects)) {
	w := n.w
	for _, object := range out.reads {
		w.touch(n.prefix+object, false)
	}
	for _, object := range out.writes {
		w.touch(n.prefix+object, true)
	}
	for i := range out.list {
		switch e := &out.list[i]; e.kind {
		case effectRecord:
			w.record(&e.event)
		case effectSend:
			n.send(e.way, e.then)
		case effectSendTo:
			n.sendTo(w.node(e.to), e.way, e.message)
		case effectPlan:
			then := e.then
			w.sched.add(e.atNs, e.class, func() { n.call(then) })
		case effectAnswer:
			w.answered(w.conns[e.conn-1], e.reply, out.Changed)
		case effectHangUp:
			if c := w.conns[e.conn-1]; !c.severed && !c.closed {
				w.hangUp(c)
			}
		case effectKeep:
			w.conns[e.conn-1].kept = true
		case effectNext:
			next = append(next, e.then)
		}
	}
	clear(out.list)
	out.reads, out.writes, out.removed, out.list, out.Changed, out.Still = out.reads[:0], out.writes[:0], out.removed[:0], out.list[:0], false, false
	w.effects = append(w.effects, out)
	return next
}

// send sends a message between parts of the server. With NearReplicas its arrival is not a choice.
func (n *node) send(by *Way, arrive func(nowNs int64, out *Effects)) {
	w, line := n.w, n.prefix+by.Line
	if w.orders != nil && w.orders.NearReplicas {
		line = ""
	}
	length := w.between(by.Min, by.Max, by.Stream)
	w.travel(line, &by.last, length, func() { n.call(arrive) }, nil)
}

// sendTo sends a message to another node.
func (n *node) sendTo(to *node, by *Way, message any) {
	if n.isolatedFrom(to) {
		return
	}
	length := n.w.between(by.Min, by.Max, by.Stream)
	n.w.travel(by.Line, &by.last, length, func() { to.receive(n, message) }, nil)
}

// receive takes a message of another node, once the node does not stall.
func (n *node) receive(from *node, message any) {
	switch w := n.w; {
	case n.isolatedFrom(from):
	case n.stallTill > w.now():
		w.sched.add(n.stallTill, ClassDelivery, func() { n.receive(from, message) })
	default:
		n.call(func(nowNs int64, out *Effects) { n.parts.Receive(nowNs, message, out) })
	}
}

// isolatedFrom reports whether no message passes between two nodes.
func (n *node) isolatedFrom(other *node) bool { return n.apartTill[other.index] > n.w.now() }

// isolate separates the nodes that a fault names from all others. A fault that names every node
// separates each from each.
func (w *World) isolate(f model.FaultSpec) {
	named := w.struck(f)
	for _, n := range named {
		for _, other := range w.nodes {
			if other == n || len(named) < len(w.nodes) && slices.Contains(named, other) {
				continue
			}
			till := max(n.apartTill[other.index], w.now()+int64(f.For))
			n.apartTill[other.index], other.apartTill[n.index] = till, till
		}
	}
}

// look records what changed in the state of the node's locks after the request m
// (nil: no request), and plans the next tick.
func (n *node) look(m *message) {
	n.observe(m)
	n.plan()
}

// plan plans the next tick.
func (n *node) plan() {
	at, ok := n.parts.Next()
	if !ok || at == n.plannedNs {
		return
	}
	n.plannedNs = at
	n.w.sched.add(at, classExpiry, func() {
		if n.plannedNs != at {
			return // another tick was planned since
		}
		n.plannedNs = 0
		n.call(n.parts.Tick)
		n.look(nil)
	})
}

// observe records what changed in the state of the node's locks, and of the locks that
// several nodes keep together, after the request m.
func (n *node) observe(m *message) {
	for _, name := range n.Locks {
		n.w.change(n.states, name, n.parts.State(n.w.now(), name), m)
	}
	if n.w.cfg.State == nil {
		return
	}
	for _, name := range n.w.cfg.Locks {
		state, by := n.w.cfg.State(n.w.now(), name), m.writer()
		if n.w.owners.Follows(name, n.w.held[name], state, by) {
			n.w.goesOn(name, state.Owner)
		}
		if !n.w.held[name].Held() && state.Held() {
			n.w.began[name] = m
		}
		state = n.w.owners.Name(name, state, by)
		if was := n.w.held[name]; was.Held() && state.Held() && was.Value == state.Value && was.Owner != state.Owner {
			n.w.rename(name)
		}
		if was := n.w.held[name]; by != nil && by.Thread == "" && m.author.Op == 0 && was.Held() && state.Held() && state.Owner == was.Owner && state.ExpiresMs > was.ExpiresMs {
			n.w.owners.Prolonged(name, by.Words)
		}
		n.w.change(n.w.held, name, state, m)
	}
	n.w.lookAtTheEnd()
}

// lookAtTheEnd plans to read the locks of Config.State when the next of their holds ends by its
// ExpiresMs. Servers that end holds have a tick then. But a lock may also keep the end of a hold in a
// value, and no server ends the hold.
func (w *World) lookAtTheEnd() {
	const ms = int64(time.Millisecond)
	next, now := int64(0), w.now()
	for _, name := range w.cfg.Locks {
		s := w.held[name]
		if !s.Held() || s.ExpiresMs < 0 {
			continue
		}
		// The end is within the millisecond.
		for _, at := range []int64{s.ExpiresMs * ms, (s.ExpiresMs + 1) * ms} {
			if at > now && (next == 0 || at < next) {
				next = at
			}
		}
	}
	if next == 0 || next == w.lookNs {
		return
	}
	w.lookNs = next
	w.sched.addLook(next, func() {
		if w.lookNs == next { // no other look was planned since
			w.lookNs = 0
			w.nodes[0].observe(nil)
		}
	})
}

// change records the state s of a lock if it differs from the one in states.
func (w *World) change(states map[string]*model.LockState, lock string, s *model.LockState, m *message) {
	if s == nil {
		s = &model.LockState{}
	}
	w.read++
	before := states[lock]
	if before.Equal(s) {
		return
	}
	w.read += 10 * (len(s.Queue) + len(s.Deadlines))
	states[lock] = s
	e := model.Event{Kind: model.KindState, Lock: lock, State: s}
	if m != nil {
		e.Msg = m.id
	}
	w.record(&e)
	if len(w.waiting) > 0 && before.Held() && (!s.Held() || s.Owner != before.Owner) {
		w.happened(func(_ *rule, c *model.Condition) {
			if c.Ended == lock {
				c.Ended = ""
			}
		})
	}
}

// describe returns a text that says what a fault of servers is about to do.
func (w *World) describe(f model.FaultSpec) string {
	if nodes := w.struck(f); f.Kind == model.FaultServer && len(nodes) == 1 {
		return nodes[0].parts.Describe(f)
	}
	return f.String()
}

// struck returns the nodes that a fault names, or all nodes if it names none.
func (w *World) struck(f model.FaultSpec) []*node {
	if len(f.Nodes) == 0 {
		return w.nodes
	}
	var nodes []*node
	for _, addr := range f.Nodes {
		n := w.node(addr)
		if n == nil {
			panic("sim: a fault names " + addr + ", which is no node")
		}
		nodes = append(nodes, n)
	}
	return nodes
}
