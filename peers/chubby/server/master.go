package server

import (
	"maps"
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// The times of sessions (Burrows 2006, section 2.8).
const (
	// SessionLease is the lease that the answer to a KeepAlive gives to a session.
	SessionLease = 12 * time.Second
	// AnswerBefore is the time before the end of the lease at which the master answers a KeepAlive.
	AnswerBefore = 2 * time.Second
)

// master has the memory of a replica while it is the master. It begins with the sessions and locks
// of the database. It gives each session a whole lease, and each lock-delay its whole length: the
// master before cannot have promised more (section 2.9).
type master struct {
	r        *Replica
	epoch    uint64
	sessions map[string]*lease
	delays   map[string]int64 // the ends of lock-delays, by lock
	// proposed has the calls that wait for a command of the log, by the id of the command. A
	// command of the master's own has a call without a connection.
	proposed map[uint64]*call
	waiters  map[string][]*call // for locks, in the order in which they came
	// early has the calls that came before every session had sent a KeepAlive or expired.
	early []*call
	// answering has the KeepAlives whose answers are planned.
	answering []*call
}

// lease has the master's facts about a session.
type lease struct {
	endsNs int64
	// heard says that the session has sent a KeepAlive to this master.
	heard bool
	// expiring says that the master has proposed to end the session.
	expiring bool
	// keepAlive is the KeepAlive that has no answer yet; nil: there is none.
	keepAlive *call
}

// call is a request that has no answer yet.
type call struct {
	Request
	conn    sim.ConnID // 0: the master's own
	sinceNs int64
	ended   bool // the connection has ended
}

func newMaster(r *Replica, nowNs int64) *master {
	m := &master{r: r, epoch: r.raft.term, sessions: map[string]*lease{}, delays: map[string]int64{},
		proposed: map[uint64]*call{}, waiters: map[string][]*call{}}
	for _, id := range r.db.ids() {
		m.sessions[id] = &lease{endsNs: nowNs + int64(SessionLease)}
	}
	for name, l := range r.db.locks {
		if l.Delayed != "" {
			m.delays[name] = nowNs + int64(l.Delay)
		}
	}
	return m
}

// resign tells every waiting caller to look for another master. Nobody tells a master that has resigned
// which connections have ended, so the KeepAlives that it was about to answer are among them.
func (m *master) resign(out *sim.Effects) {
	calls := m.waiting()
	for _, c := range m.answering {
		if !c.ended {
			c.ended = true
			calls = append(calls, c)
		}
	}
	for _, c := range calls {
		out.Answer(c.conn, answer(m.r.redirect()))
	}
}

// waiting returns the calls that have no answer, in the order of their connections.
func (m *master) waiting() []*call {
	var list []*call
	for _, x := range m.sessions {
		if x.keepAlive != nil {
			list = append(list, x.keepAlive)
		}
	}
	for _, c := range m.proposed {
		list = append(list, c)
	}
	for _, w := range m.waiters {
		list = append(list, w...)
	}
	list = append(list, m.early...)
	list = slices.DeleteFunc(list, func(c *call) bool { return c.conn == 0 })
	slices.SortFunc(list, func(a, b *call) int { return int(a.conn - b.conn) })
	return slices.CompactFunc(list, func(a, b *call) bool { return a.conn == b.conn })
}

// hungUp notes that a connection has ended. A command that is already proposed still runs.
func (m *master) hungUp(c sim.ConnID, out *sim.Effects) {
	for _, x := range m.sessions {
		if x.keepAlive != nil && x.keepAlive.conn == c {
			x.keepAlive = nil
		}
	}
	for _, x := range m.answering {
		x.ended = x.ended || x.conn == c
	}
	for _, x := range m.proposed {
		if x.conn == c && !x.ended {
			x.ended = true
			out.Keep(c)
		}
	}
	ended := func(x *call) bool { return x.conn == c }
	for name, list := range m.waiters {
		m.waiters[name] = slices.DeleteFunc(list, ended)
	}
	m.early = slices.DeleteFunc(m.early, ended)
}

// nextNs is the next instant at which time changes something.
func (m *master) nextNs() int64 {
	at := m.r.raft.leaseNs(len(m.r.cell.replicas))
	for _, x := range m.sessions {
		if !x.expiring {
			at = min(at, x.dueNs())
		}
	}
	for _, end := range m.delays {
		at = min(at, end)
	}
	return at
}

// dueNs returns the instant at which something is due for a session: an answer, or its end.
func (x *lease) dueNs() int64 {
	if x.keepAlive != nil {
		return x.endsNs - int64(AnswerBefore)
	}
	return x.endsNs
}

// elapse does the first thing that is due. Each thing has an event of its own, so that the world
// knows the request behind each change.
func (m *master) elapse(nowNs int64, out *sim.Effects) {
	for _, id := range slices.Sorted(maps.Keys(m.sessions)) {
		x := m.sessions[id]
		switch {
		case x.expiring || x.dueNs() > nowNs:
		case x.keepAlive != nil:
			m.extend(nowNs, x, out)
			return
		default:
			x.expiring = true
			m.propose(&call{Request: Request{Do: expireSession, Session: id}})
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.delays)) {
		if m.delays[name] <= nowNs {
			m.delays[name] = math.MaxInt64 // the end is proposed
			m.propose(&call{Request: Request{Do: endDelay, Lock: name, Generation: m.r.db.locks[name].Generation}})
			return
		}
	}
}

// extend extends a lease, and then answers the KeepAlive. The record shows an action of the master,
// since the KeepAlive may be older than the hold that it keeps.
func (m *master) extend(nowNs int64, x *lease, out *sim.Effects) {
	c, life := x.keepAlive, m.r.life
	x.keepAlive = nil
	x.endsNs = max(x.endsNs, nowNs+int64(SessionLease))
	m.r.cell.observe(m)
	out.Changed = true
	out.Plan(nowNs, sim.ClassDelivery, func(_ int64, out *sim.Effects) {
		m.answering = slices.DeleteFunc(m.answering, func(o *call) bool { return o == c })
		if !c.ended && m.r.life == life { // a restart ends all connections
			out.Answer(c.conn, answer(Reply{Lease: SessionLease, Held: time.Duration(nowNs - c.sinceNs)}))
		}
	})
	m.answering = append(m.answering, c)
}

// handle begins a call. It reports false if the answer comes later.
func (m *master) handle(nowNs int64, conn sim.ConnID, q Request, out *sim.Effects) (reply Reply, done bool) {
	c := &call{Request: q, conn: conn, sinceNs: nowNs}
	x := m.sessions[q.Session]
	switch {
	case q.Do == CheckSequencer:
		return m.check(q.Sequencer)
	case q.Do == OpenSession:
	case q.Epoch != m.epoch:
		return Reply{Error: WrongEpoch, Epoch: m.epoch}, true
	case x == nil:
		return Reply{Error: Expired}, true
	case (q.Do == Open || q.Do == SetLockDelay) && (q.Delay < 0 || q.Delay > MaxLockDelay):
		return Reply{Error: Invalid}, true
	case q.Do == KeepAlive:
		return m.keepAlive(nowNs, c, x, out)
	case q.Do == CloseSession:
		x.heard = true // no KeepAlive will follow
		m.settle(nowNs, out)
	}
	if !m.settled() {
		m.early = append(m.early, c)
		return Reply{}, false
	}
	return m.begin(c)
}

// keepAlive takes a KeepAlive. It answers at once if this is the first KeepAlive of the session for
// a new master, or if the client did not get the answer to the KeepAlive before.
func (m *master) keepAlive(nowNs int64, c *call, x *lease, out *sim.Effects) (reply Reply, done bool) {
	if old := x.keepAlive; old != nil {
		x.keepAlive = nil
		out.Answer(old.conn, answer(Reply{Error: Refused})) // its client has another connection
	}
	x.keepAlive = c
	if x.heard && !c.Lost {
		return Reply{}, false
	}
	x.heard = true
	if x.expiring {
		return Reply{}, false
	}
	x.keepAlive = nil
	x.endsNs = max(x.endsNs, nowNs+int64(SessionLease))
	m.r.cell.observe(m)
	out.Changed = true
	m.settle(nowNs, out)
	return Reply{Lease: SessionLease}, true
}

// settled reports whether every session has sent a KeepAlive or expired.
func (m *master) settled() bool {
	for _, x := range m.sessions {
		if !x.heard {
			return false
		}
	}
	return true
}

// settle begins the early calls once the master is settled. It is an event of its own.
func (m *master) settle(nowNs int64, out *sim.Effects) {
	if len(m.early) == 0 || !m.settled() {
		return
	}
	out.Plan(nowNs, sim.ClassDelivery, func(nowNs int64, out *sim.Effects) {
		if m.r.master != m {
			return
		}
		early := m.early
		m.early = nil
		for _, c := range early {
			if reply, done := m.begin(c); done {
				out.Answer(c.conn, answer(reply))
			}
		}
		m.r.advance(nowNs, out)
	})
}

// begin begins a call on a settled master.
func (m *master) begin(c *call) (reply Reply, done bool) {
	if c.Do == GetSequencer {
		return m.sequencer(c.Request), true
	}
	if c.Do == Acquire {
		if m.r.db.locks[c.Lock] == nil {
			return Reply{Error: Invalid}, true
		}
		// The same acquire may have been sent again.
		m.waiters[c.Lock] = slices.DeleteFunc(m.waiters[c.Lock], func(w *call) bool { return w.Session == c.Session })
	}
	m.propose(c)
	return Reply{}, false
}

// propose proposes the command of c. The outcome is the answer to c.
func (m *master) propose(c *call) { m.proposed[m.r.propose(command{Request: c.Request})] = c }

// applied reacts to a command that has just changed the database.
func (m *master) applied(nowNs int64, c command, reply Reply, out *sim.Effects) {
	out.Changed = true
	who := &call{}
	if c.By == m.r.id && m.proposed[c.ID] != nil {
		who = m.proposed[c.ID]
		delete(m.proposed, c.ID)
	}
	switch c.Do {
	case OpenSession:
		m.sessions[reply.Session] = &lease{endsNs: nowNs + int64(SessionLease), heard: true}
		reply.Epoch, reply.Lease, reply.Held = m.epoch, SessionLease, time.Duration(nowNs-who.sinceNs)
	case CloseSession, expireSession:
		if who.conn != 0 {
			out.Answer(who.conn, answer(reply)) // the world takes the first answer for the cause of the end of the holds
			who = &call{}
		}
		m.end(nowNs, c, out)
	case endDelay:
		delete(m.delays, c.Lock)
		out.Record(model.Event{Kind: model.KindExpire, Key: c.Lock})
	case Acquire:
		if reply.Error == Busy && !c.Try && who.conn != 0 && !who.ended {
			m.waiters[c.Lock] = append(m.waiters[c.Lock], who)
			return
		}
	}
	m.r.cell.observe(m)
	if who.conn != 0 {
		out.Answer(who.conn, answer(reply))
	}
	m.settle(nowNs, out)
	m.serve()
}

// end notes that a session has ended.
func (m *master) end(nowNs int64, c command, out *sim.Effects) {
	x, ends := m.sessions[c.Session], nowNs
	delete(m.sessions, c.Session)
	if x != nil {
		ends = x.endsNs // the lock-delay counts from the end of the lease
	}
	if x != nil && x.keepAlive != nil {
		out.Answer(x.keepAlive.conn, answer(Reply{Error: Expired}))
	}
	for _, name := range slices.Sorted(maps.Keys(m.waiters)) {
		list := m.waiters[name]
		for _, w := range list {
			if w.Session == c.Session {
				out.Answer(w.conn, answer(Reply{Error: Expired}))
			}
		}
		m.waiters[name] = slices.DeleteFunc(list, func(w *call) bool { return w.Session == c.Session })
	}
	if c.Do == CloseSession {
		return
	}
	for _, name := range m.r.db.names() {
		l := m.r.db.locks[name]
		if _, begun := m.delays[name]; l.Delayed == c.Session && !begun {
			m.delays[name] = ends + int64(l.Delay)
		}
	}
	out.Record(model.Event{Kind: model.KindExpire, Key: c.Session})
}

// serve proposes to give each lock to its first waiter that may have it.
func (m *master) serve() {
	for _, name := range slices.Sorted(maps.Keys(m.waiters)) {
		list := m.waiters[name]
		if l := m.r.db.locks[name]; len(list) > 0 && l.grantable(list[0].Shared) {
			m.waiters[name] = list[1:]
			m.propose(list[0])
		}
	}
}

// sequencer describes a lock that the session holds.
func (m *master) sequencer(q Request) Reply {
	l := m.r.db.locks[q.Lock]
	if l == nil || l.holding(q.Session) < 0 {
		return Reply{Error: NotHeld}
	}
	return Reply{Sequencer: &Sequencer{Lock: q.Lock, Shared: l.Shared, Generation: l.Generation}}
}

// check reports whether a sequencer is valid: the lock has been held in that mode ever since.
func (m *master) check(s *Sequencer) (Reply, bool) {
	if s == nil {
		return Reply{Error: Invalid}, true
	}
	l := m.r.db.locks[s.Lock]
	return Reply{Valid: l != nil && len(l.Holders) > 0 && l.Generation == s.Generation && l.Shared == s.Shared}, true
}
