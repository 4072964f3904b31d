package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/model"
)

var errCut = errors.New("connection cut")

// socket is a connection as the client has it: a net.Conn.
type socket struct {
	p *Process
	// c is the connection that it is the end of. Only the scheduler changes that:
	// see settleSockets.
	c *conn

	mu       sync.Mutex // held for moments only; never over a wait
	out      []byte     // written by the client, not collected yet
	writer   string     // the goroutine that wrote it; "" where nobody would ask
	in       []byte     // arrived, not read yet
	err      error      // what reads and writes give from now on
	shut     bool       // the client closed it
	expired  bool       // the read deadline has passed
	deadline time.Time
	setAt    uint64 // counts SetReadDeadline
	ready    chan struct{}
	posted   bool // it is among w.dirty; guarded by w.mu

	planned uint64 // setAt of the deadline that was planned last; the scheduler's
}

// conn is a connection of a process with the server, as the network and the
// server know it: a Peer for miniredis. It is the scheduler's.
type conn struct {
	p      *Process
	client *socket
	id     int // 0 until its first bytes were collected
	// outLine and inLine name its directions among the lines of Orders. They
	// count the connections of the process, which no other process can change.
	outLine, inLine string

	peer       *mserver.Peer
	fromServer *serverSide
	lastIn     int64 // nominal arrival of the last message, each way
	lastOut    int64
	severed    bool // reset: nothing passes any more
	gone       bool // the client closed it, or it broke
	ended      bool // the server knows
	subscribes bool
	shards     []string // sharded channels that it is subscribed to, in order
	multi      bool     // between MULTI and EXEC
	elsewhere  bool     // it has selected a database
	seen       int64    // writes of anybody, up to its last command
	waits      *wait    // it is blocked in a WAIT
	putOff     int      // deliveries that wait for the end of a pause
	stalled    int      // arrivals that wait for the end of a stall
	unanswered int      // commands whose answers the client does not have
	marked     bool     // it was sent what may set it apart from others
}

func newSocket(p *Process) *socket {
	c := &conn{p: p, fromServer: &serverSide{}}
	c.client = &socket{p: p, c: c, ready: make(chan struct{}, 1)}
	c.fromServer.posted = func() { c.client.post() }
	c.peer = mserver.NewPeer(bufio.NewWriterSize(c.fromServer, bufferSize))
	return c.client
}

// serverSide is where miniredis writes, from the scheduler and from the
// goroutine that it keeps for a subscriber.
type serverSide struct {
	mu     sync.Mutex
	buf    []byte
	posted func()
	// awaited: the scheduler is about to take what is written.
	awaited bool
}

func (s *serverSide) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.buf = append(s.buf, b...)
	awaited := s.awaited
	s.mu.Unlock()
	if !awaited {
		s.posted()
	}
	return len(b), nil
}

func (s *serverSide) await() {
	s.mu.Lock()
	s.awaited = true
	s.mu.Unlock()
}

func (s *serverSide) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buf
	s.buf, s.awaited = nil, false
	return b
}

// post tells the scheduler to look at s. Callers may hold s.mu.
func (s *socket) post() {
	w := s.p.w
	w.mu.Lock()
	if !s.posted {
		s.posted = true
		w.dirty = append(w.dirty, s)
	}
	w.mu.Unlock()
	w.wake()
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

// Write implements net.Conn. A HELLO is answered here and at once: go-redis
// waits for it while holding a mutex, which simulated time cannot see.
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
	if isHello(b) {
		if _, rest, ok := readCommand(string(b)); ok {
			b = b[len(b)-len(rest):]
			s.in = append(s.in, "-ERR unknown command 'hello'\r\n"...)
			s.signal()
		}
	}
	if len(b) > 0 {
		s.out = append(s.out, b...)
		s.writer = ""
		if s.p.alike.Load() > 0 {
			s.writer = goroutine()
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
func (*socket) RemoteAddr() net.Addr { return address("server") }

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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline, s.expired = t, false
	s.setAt++
	if !t.IsZero() {
		s.post()
	}
	return nil
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

// collect takes what the connections posted: bytes of clients, messages of
// the server, closes and deadlines.
func (w *World) collect(dirty []*socket) {
	w.settleSockets(dirty)
	conns, fresh := w.collected[:0], []*conn(nil)
	for _, s := range dirty {
		switch {
		case s.c.id > 0:
			conns = append(conns, s.c)
		case len(s.written()) > 0:
			fresh = append(fresh, s.c)
		}
	}
	// A connection gets its number with its first bytes, in the order of those
	// bytes: connections dialled at one time have no other identity.
	slices.SortStableFunc(fresh, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), bytes.Compare(a.client.out, b.client.out))
	})
	for _, c := range fresh {
		w.conns = append(w.conns, c)
		c.id = len(w.conns)
		c.p.spoken++
		name := fmt.Sprintf("%s#%d", c.p.cfg.Name, c.p.spoken)
		c.outLine, c.inLine = name+" to server", name+" from server"
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

// settleSockets says which of the connections that a client could have taken
// for what it wrote at this instant it took for which. Goroutines that wake
// together go on in any order, so that chance has given each of them one of the
// client's idle connections, or a new one: they get them in the order of what
// they wrote.
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
	wrote = slices.DeleteFunc(wrote, func(s *socket) bool { return !w.plainly(s) })
	slices.SortStableFunc(wrote, func(a, b *socket) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), bytes.Compare(a.out, b.out))
	})
	for len(wrote) > 0 {
		n := 1
		for n < len(wrote) && wrote[n].p == wrote[0].p {
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

// couldBeAnother: the client wrote, and nothing sets the connection apart from
// other idle ones.
func (s *socket) couldBeAnother() bool {
	c := s.c
	return len(s.written()) > 0 && c.unanswered == 0 && !c.severed && !c.gone && !c.ended && !c.subscribes && !c.multi && !c.elsewhere && !c.marked &&
		c.waits == nil && len(c.shards) == 0
}

// plainly: what was written are commands that leave no mark on a connection.
func (w *World) plainly(s *socket) bool {
	commands, rest := w.readCommands(string(s.written()))
	return rest == "" && !slices.ContainsFunc(commands, func(words []string) bool { return marks(words[0]) })
}

// marks: after that command a connection may differ from others, or it rests on
// what was sent on it before. (WAIT rests on the command before it, which comes
// with it.)
func marks(name string) bool {
	name = strings.ToUpper(name)
	return !reading[name] && !writing[name] && !slices.Contains([]string{
		"EVAL", "EVALSHA", "SCRIPT", "WAIT", "INFO", "EXISTS", "DEL", "UNLINK", "PUBLISH", "SPUBLISH", "PING", "ECHO", "TIME",
	}, name)
}

// written is what the client wrote and nobody collected.
func (s *socket) written() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

func (w *World) collectConn(c *conn) {
	s := c.client
	s.mu.Lock()
	out, writer, shut := s.out, s.writer, s.shut
	s.out = nil
	deadline, set := s.deadline, s.setAt
	s.mu.Unlock()
	if w.over {
		return
	}

	commands, rest := w.readCommands(string(out))
	s.mu.Lock()
	if rest != "" {
		s.out = append([]byte(rest), s.out...) // an unfinished command waits for its rest
	} else if s.out == nil {
		s.out = out[:0]
	}
	s.mu.Unlock()
	var pipe *pipeline
	// What a subscriber writes is no pipeline: its answers have no place.
	if len(commands) > 1 && !slices.ContainsFunc(commands, subscribing) {
		pipe = newPipeline()
	}
	for _, words := range commands {
		w.send(c, words, writer, pipe)
	}
	w.pushes(c)
	if shut && !c.gone {
		c.gone = true
		// The end of a connection arrives after what was written before it.
		at := max(w.now()+w.latency(c.p, "close"), c.lastOut)
		w.sched.addTo(c.outLine, at, classDelivery, func() { w.server.disconnect(c) }, nil)
	}
	if !deadline.IsZero() && set != s.planned && !shut {
		s.planned = set
		w.planDeadline(s, int64(deadline.Sub(w.start)), set)
	}
}

// readCommands reads what a client wrote, as far as its commands are finished.
func (w *World) readCommands(text string) (commands [][]string, rest string) {
	for text != "" {
		words, after, ok := readCommand(text)
		if !ok { // unfinished, or none
			raw, err := proto.Read(bufio.NewReader(strings.NewReader(text)))
			if err != nil {
				return commands, text
			}
			if words, err = proto.ReadStrings(raw); err != nil || len(words) == 0 {
				w.record(model.Event{Kind: model.KindDefect, Text: "a client wrote what is no command"})
			}
			after = text[len(raw):]
		}
		text = after
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	return commands, ""
}

// readCommand reads a command as clients write it: an array of bulk strings.
func readCommand(text string) (words []string, rest string, ok bool) {
	n, rest, ok := header(text, '*')
	if !ok || n == 0 || n > len(text) {
		return nil, "", false
	}
	words = make([]string, n)
	for i := range words {
		var size int
		if size, rest, ok = header(rest, '$'); !ok || size > len(rest)-2 || rest[size:size+2] != "\r\n" {
			return nil, "", false
		}
		words[i], rest = rest[:size], rest[size+2:]
	}
	return words, rest, true
}

// header reads the line before an array or a bulk string: its size.
func header(text string, kind byte) (size int, rest string, ok bool) {
	line, rest, ok := strings.Cut(text, "\r\n")
	if !ok || len(line) < 2 || line[0] != kind {
		return 0, "", false
	}
	for _, digit := range []byte(line[1:]) {
		if digit < '0' || digit > '9' || size > 1<<30 {
			return 0, "", false
		}
		size = 10*size + int(digit-'0')
	}
	return size, rest, true
}

func subscribing(words []string) bool {
	return strings.HasSuffix(strings.ToUpper(words[0]), "SUBSCRIBE")
}

// planDeadline lets a read deadline pass: not within a pause, which shifts it
// by its length.
func (w *World) planDeadline(s *socket, at int64, set uint64) {
	w.planDeadlineFrom(s, w.now(), at-w.now(), set)
}

func (w *World) planDeadlineFrom(s *socket, asked, left int64, set uint64) {
	w.sched.add(asked+left, classDeadline, func() {
		s.mu.Lock()
		stale := s.setAt != set || s.shut
		s.mu.Unlock()
		if stale || s.p.dead {
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
}
