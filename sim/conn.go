package sim

import (
	"bytes"
	"cmp"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"lockstep/model"
)

var errCut = errors.New("connection cut")

// socket is the client's side of a connection: a net.Conn.
type socket struct {
	p    *Process
	node *node
	// c is the connection to which the socket belongs. Only the scheduler changes it: see
	// settleSockets.
	c *conn

	mu       sync.Mutex // held for moments only; never over a wait
	out      []byte     // written by the client, not collected yet
	writer   string     // the goroutine that wrote it; "" if not needed
	author   Author     // for whom it wrote; unknown if not needed
	code     []Site     // the code that wrote it; nil if not needed
	in       []byte     // arrived, not read yet
	err      error      // the error of reads and writes from now on
	shut     bool       // the client closed it
	expired  bool       // the read deadline has passed
	deadline time.Time
	setAt    uint64 // counts SetReadDeadline
	ready    chan struct{}
	posted   bool // the socket is in w.dirty; guarded by w.mu

	planned uint64 // setAt of the deadline that was planned last; only for the scheduler
}

// conn is a connection between a process and a node in the network. Only the scheduler uses it.
type conn struct {
	p      *Process
	node   *node
	client *socket
	id     int // 0 until its first bytes were collected
	// outLine and inLine name its directions among the lines of Orders. They
	// count the connections of the process, which no other process can change.
	outLine, inLine string

	lastIn     int64 // nominal arrival of the last message, each way
	lastOut    int64
	severed    bool                        // reset: nothing passes any more
	gone       bool                        // the client closed it, or it broke
	ended      bool                        // the server knows
	closed     bool                        // the server closed it
	blocked    *message                    // the request whose reply comes later
	kept       bool                        // blocked will have its effect although the connection has ended
	behind     []*message                  // requests that arrived after blocked
	pushed     []Push                      // messages of the server that were not collected yet
	putOff     int                         // deliveries that wait for the end of a pause
	stalled    int                         // arrivals that wait for the end of a stall
	unanswered int                         // requests whose replies the client does not have
	marked     bool                        // it carried a request that may distinguish it from others
	gathers    bool                        // it carried a request that Gathers
	line       *pipeline                   // has what rules hold of its messages, if its client takes the replies in order
	stream     *pipeline                   // holds all its messages since a Request that Streams; nil: there was none
	says       func(segment string) string // of a stream: see Parts.Says
	breaking   bool                        // it has lost a message and will be reset
	missing    bool                        // it has lost a request or a reply
	unordered  bool                        // it carried a request whose answers have no place among the others
}

func newSocket(p *Process, n *node) *socket {
	c := &conn{p: p, node: n, line: newPipeline()}
	c.client = &socket{p: p, node: n, c: c, ready: make(chan struct{}, 1)}
	return c.client
}

// post makes the scheduler check s. Callers may hold s.mu.
func (s *socket) post() {
	w := s.p.w
	w.mu.Lock()
	if !s.posted {
		s.posted = true
		w.dirty = append(w.dirty, s)
	}
	w.mu.Unlock()
	w.bell.ring()
}

func (s *socket) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Read implements net.Conn.
func (s *socket) Read(b []byte) (int, error) {
	for {
		s.mu.Lock()
		switch {
		case len(s.in) > 0:
			n := copy(b, s.in)
			s.in = s.in[n:]
			s.mu.Unlock()
			return n, nil
		case s.shut:
			s.mu.Unlock()
			return 0, net.ErrClosed
		case s.err != nil:
			err := s.err
			s.mu.Unlock()
			return 0, err
		case s.expired:
			s.mu.Unlock()
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}
		s.mu.Unlock()
		<-s.ready
	}
}

// Write implements net.Conn. A request that the server answers at once never reaches the network.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return 0, net.ErrClosed
	}
	if s.err != nil {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	n := len(b)
	reply, b := s.node.parts.AtOnce(b)
	if len(reply) > 0 {
		s.in = append(s.in, reply...)
		s.signal()
	}
	if len(b) > 0 {
		s.out = append(s.out, b...)
		s.writer = ""
		if s.p.alike.Load() > 0 {
			s.writer = goroutine()
		}
		if s.author = (Author{}); s.node.stream == nil || !s.p.asksForAll() { // see speaker
			s.author = s.p.w.lineage.author(s.p)
		}
		if s.p.w.writers != nil {
			s.code = writers()
		}
		s.post()
	}
	return n, nil
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.shut = true
		s.signal()
		s.post()
	}
	return nil
}

// LocalAddr implements net.Conn.
func (s *socket) LocalAddr() net.Addr { return address(s.p.cfg.Name) }

// RemoteAddr implements net.Conn.
func (s *socket) RemoteAddr() net.Addr { return address(s.node.Addr) }

type address string

func (address) Network() string  { return "sim" }
func (a address) String() string { return string(a) }

// SetDeadline implements net.Conn; writes never wait.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn; writes never wait.
func (*socket) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn. The deadline is an event of the
// scheduler, so that it does not count while the process is paused.
func (s *socket) SetReadDeadline(t time.Time) error {
	t = s.p.deadline(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline, s.expired = t, false
	s.setAt++
	if !t.IsZero() {
		s.post()
	}
	return nil
}

// isShut reports whether the client closed it.
func (s *socket) isShut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shut
}

// cut ends the client's side with err.
func (s *socket) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.signal()
}

// collect takes the changes that sockets posted: bytes of clients, messages of servers, closes and
// deadlines.
func (w *World) collect(dirty []*socket) {
	w.settleSockets(dirty)
	conns, fresh := w.collected[:0], []*conn(nil)
	for _, s := range dirty {
		switch {
		case s.c.id > 0:
			conns = append(conns, s.c)
		case len(s.written()) > 0 || s.node.stream != nil:
			fresh = append(fresh, s.c)
		}
	}
	// A connection gets its number with its first bytes, in the order of those bytes: connections
	// that are dialled at the same time have no other identity. If the bytes are the same, that
	// of the earlier operation comes first.
	slices.SortStableFunc(fresh, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), bytes.Compare(a.client.out, b.client.out), cmp.Compare(a.node.index, b.node.index), compareWriters(a.client, b.client))
	})
	for _, c := range fresh {
		w.conns = append(w.conns, c)
		c.id = len(w.conns)
		c.p.spoken++
		name := c.p.cfg.Name + "#" + strconv.Itoa(c.p.spoken)
		c.outLine, c.inLine = name+" to server", name+" from server"
		if c.node.stream != nil {
			c.stream, c.says = newPipeline(), c.node.stream.says()
		}
		c.node.parts.Open(ConnID(c.id))
		w.stirred = true
		conns = append(conns, c)
	}
	slices.SortFunc(conns, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.id, b.id))
	})
	w.collected = conns
	for _, c := range conns {
		w.collectConn(c)
	}
}

// settleSockets assigns interchangeable connections in the order of the bytes written, and of the
// operations if the bytes are the same. Goroutines that wake together continue in any order, so
// chance decided which of them got which idle connection of the client, or a new one.
func (w *World) settleSockets(dirty []*socket) {
	var wrote []*socket
	for _, s := range dirty {
		if s.couldBeAnother() {
			wrote = append(wrote, s)
		}
	}
	if len(wrote) < 2 { // nearly always
		return
	}
	wrote = slices.DeleteFunc(wrote, func(s *socket) bool { return !w.leavesNoMark(s) })
	slices.SortStableFunc(wrote, func(a, b *socket) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.node.index, b.node.index), bytes.Compare(a.out, b.out), compareWriters(a, b))
	})
	for len(wrote) > 0 {
		n := 1
		for n < len(wrote) && wrote[n].p == wrote[0].p && wrote[n].node == wrote[0].node {
			n++
		}
		conns := make([]*conn, n)
		for i, s := range wrote[:n] {
			conns[i] = s.c
		}
		slices.SortStableFunc(conns, func(a, b *conn) int { // those without a number last
			return cmp.Compare(uint(a.id-1), uint(b.id-1))
		})
		for i, s := range wrote[:n] {
			s.c, conns[i].client = conns[i], s
		}
		wrote = wrote[n:]
	}
}

// compareWriters orders sockets to which one process wrote the same bytes, by the operations that wrote.
func compareWriters(a, b *socket) int {
	if a.p != b.p || !bytes.Equal(a.out, b.out) {
		return 0
	}
	return cmp.Or(cmp.Compare(a.writing(), b.writing()), cmp.Compare(a.author.Thread, b.author.Thread))
}

// writing returns the operation whose request the client has just written; 0 if it is unknown.
func (s *socket) writing() int {
	if s.author.Op > 0 {
		return s.author.Op
	}
	r, _, err := s.node.Server.Decode(string(s.out))
	if err != nil {
		return 0
	}
	return s.p.opOf(r.Words, s.writer)
}

// couldBeAnother reports whether the client wrote, and nothing distinguishes the connection from
// other idle ones.
func (s *socket) couldBeAnother() bool {
	c := s.c
	return len(s.written()) > 0 && c.unanswered == 0 && !c.severed && !c.gone && !c.ended && !c.marked && c.blocked == nil
}

// leavesNoMark reports whether the client wrote requests that leave no mark on a
// connection.
func (w *World) leavesNoMark(s *socket) bool {
	requests, rest := w.decode(nil, s.node, string(s.written()))
	return rest == "" && !slices.ContainsFunc(requests, func(r Request) bool { return r.Marks })
}

// written returns the bytes that the client wrote and that were not collected yet.
func (s *socket) written() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

func (w *World) collectConn(c *conn) {
	s := c.client
	s.mu.Lock()
	out, writer, author, code, shut := s.out, s.writer, s.author, s.code, s.shut
	s.out = nil
	deadline, set := s.deadline, s.setAt
	s.mu.Unlock()
	if w.over {
		return
	}

	requests, rest := w.decode(w.requests[:0], c.node, string(out))
	w.requests = requests
	s.mu.Lock()
	if rest != "" {
		s.out = append([]byte(rest), s.out...) // an unfinished request waits for its rest
	} else if s.out == nil {
		s.out = out[:0]
	}
	s.mu.Unlock()
	var pipe *pipeline
	if len(requests) > 1 && !slices.ContainsFunc(requests, func(r Request) bool { return r.Unordered }) {
		pipe = newPipeline()
	}
	for i := range requests {
		if w.writers != nil {
			w.writers[w.msgs+1] = code
		}
		w.send(c, &requests[i], writer, author, pipe)
	}
	pushed := c.pushed
	c.pushed = nil
	for _, p := range pushed {
		if len(p.Bytes) > 0 {
			w.push(c, p)
		}
		if p.Closes {
			w.hangUp(c)
		}
	}
	if shut && !c.gone {
		c.gone = true
		// The end of a connection arrives after what was written before it.
		at := max(w.now()+w.latency(c.p, "close"), c.lastOut)
		w.sched.addTo(c.outLine, at, ClassDelivery, func() { w.disconnect(c) }, nil)
	}
	if !deadline.IsZero() && set != s.planned && !shut {
		s.planned = set
		w.planDeadline(s, int64(deadline.Sub(w.start)), set)
	}
}

// decode appends the finished requests at the beginning of text to list, and returns the text after
// them.
func (w *World) decode(list []Request, n *node, text string) (requests []Request, rest string) {
	for text != "" {
		r, rest, err := n.Server.Decode(text)
		if errors.Is(err, ErrUnfinished) {
			break
		}
		text = rest
		if err != nil {
			w.record(&model.Event{Kind: model.KindDefect, Text: err.Error()})
			continue
		}
		list = append(list, r)
	}
	return list, text
}

// collectPushes hands the messages that a server has sent without a request to its
// connections, and lets their sockets be collected. If a stream server sent bytes on the
// connection of served, they are the reply to served.
func (w *World) collectPushes(n *node, served *message) {
	w.pushed = n.parts.Pushed(w.pushed[:0])
	for _, p := range w.pushed {
		c := w.conns[p.Conn-1]
		if served != nil && served.conn == c {
			p.to = served
		}
		c.pushed = append(c.pushed, p)
		c.client.post()
	}
	clear(w.pushed)
}

// planDeadline plans the end of a read deadline. A pause shifts it by the length of the pause.
func (w *World) planDeadline(s *socket, at int64, set uint64) {
	w.planDeadlineFrom(s, w.now(), at-w.now(), set)
}

func (w *World) planDeadlineFrom(s *socket, asked, left int64, set uint64) {
	e := w.sched.add(asked+left, ClassDeadline, func() {
		if s.pastDeadline(set) {
			w.stirred = false
			return
		}
		if lost := s.p.pausedBetween(asked, w.now()); lost > 0 {
			w.planDeadlineFrom(s, max(w.now(), s.p.pausedUntil), lost, set)
			return
		}
		s.mu.Lock()
		s.expired = true
		s.mu.Unlock()
		s.signal()
	})
	e.deadline, e.set = s, set
}

// pastDeadline reports whether nobody waits any more for the deadline that was set as the set-th.
func (s *socket) pastDeadline(set uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setAt != set || s.shut || s.p.dead
}
