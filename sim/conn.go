package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
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

// conn is a connection of a process with the server: a net.Conn for the
// client, a Peer for miniredis.
type conn struct {
	p  *Process
	id int // 0 until its first bytes were collected
	// outLine and inLine name its directions among the lines of Orders. They
	// count the connections of the process, which no other process can change.
	outLine, inLine string

	mu       sync.Mutex // held for moments only; never over a wait
	out      []byte     // written by the client, not collected yet
	in       []byte     // arrived, not read yet
	err      error      // what reads and writes give from now on
	shut     bool       // the client closed it
	expired  bool       // the read deadline has passed
	deadline time.Time
	setAt    uint64 // counts SetReadDeadline
	ready    chan struct{}
	posted   bool // it is among w.dirty; guarded by w.mu

	// The scheduler's.
	peer       *mserver.Peer
	fromServer *serverSide
	planned    uint64 // setAt of the deadline that was planned last
	lastIn     int64  // nominal arrival of the last message, each way
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
}

func newConn(p *Process) *conn {
	c := &conn{p: p, ready: make(chan struct{}, 1), fromServer: &serverSide{}}
	c.fromServer.posted = func() { c.post() }
	c.peer = mserver.NewPeer(bufio.NewWriter(c.fromServer))
	return c
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

// post tells the scheduler to look at c. Callers may hold c.mu.
func (c *conn) post() {
	w := c.p.w
	w.mu.Lock()
	if !c.posted {
		c.posted = true
		w.dirty = append(w.dirty, c)
	}
	w.mu.Unlock()
	w.wake()
}

func (c *conn) signal() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		switch {
		case len(c.in) > 0:
			n := copy(b, c.in)
			c.in = c.in[n:]
			c.mu.Unlock()
			return n, nil
		case c.shut:
			c.mu.Unlock()
			return 0, net.ErrClosed
		case c.err != nil:
			err := c.err
			c.mu.Unlock()
			return 0, err
		case c.expired:
			c.mu.Unlock()
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}
		c.mu.Unlock()
		<-c.ready
	}
}

// Write implements net.Conn. A HELLO is answered here and at once: go-redis
// waits for it while holding a mutex, which simulated time cannot see.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return 0, net.ErrClosed
	}
	if c.err != nil {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	n := len(b)
	if isHello(b) {
		rd := bufio.NewReader(bytes.NewReader(b))
		if _, err := proto.Read(rd); err == nil {
			b, _ = io.ReadAll(rd)
			c.in = append(c.in, "-ERR unknown command 'hello'\r\n"...)
			c.signal()
		}
	}
	if len(b) > 0 {
		c.out = append(c.out, b...)
		c.post()
	}
	return n, nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.shut = true
		c.signal()
		c.post()
	}
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return address(c.p.cfg.Name) }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return address("server") }

type address string

func (address) Network() string  { return "sim" }
func (a address) String() string { return string(a) }

// SetDeadline implements net.Conn; writes never wait.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn; writes never wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn. The deadline is an event of the
// scheduler, so that it does not count while the process is paused.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline, c.expired = t, false
	c.setAt++
	if !t.IsZero() {
		c.post()
	}
	return nil
}

// cut ends the client's side with err.
func (c *conn) cut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.signal()
}

// collect takes what the connections posted: bytes of clients, messages of
// the server, closes and deadlines.
func (w *World) collect(dirty []*conn) {
	conns, fresh := w.collected[:0], []*conn(nil)
	for _, c := range dirty {
		if c.id == 0 {
			c.mu.Lock()
			silent := len(c.out) == 0
			c.mu.Unlock()
			if !silent {
				fresh = append(fresh, c)
			}
			continue
		}
		conns = append(conns, c)
	}
	// A connection gets its number with its first bytes, in the order of those
	// bytes: connections dialled at one time have no other identity.
	slices.SortStableFunc(fresh, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), bytes.Compare(a.out, b.out))
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

func (w *World) collectConn(c *conn) {
	c.mu.Lock()
	out, shut := c.out, c.shut
	c.out = nil
	deadline, set := c.deadline, c.setAt
	c.mu.Unlock()
	if w.over {
		return
	}

	commands, rest := w.readCommands(string(out))
	c.mu.Lock()
	if rest != "" {
		c.out = append([]byte(rest), c.out...) // an unfinished command waits for its rest
	} else if c.out == nil {
		c.out = out[:0]
	}
	c.mu.Unlock()
	var pipe *pipeline
	// What a subscriber writes is no pipeline: its answers have no place.
	if len(commands) > 1 && !slices.ContainsFunc(commands, subscribing) {
		pipe = newPipeline()
	}
	for _, words := range commands {
		w.send(c, words, pipe)
	}
	w.pushes(c)
	if shut && !c.gone {
		c.gone = true
		// The end of a connection arrives after what was written before it.
		at := max(w.now()+w.latency(c.p, "close"), c.lastOut)
		w.sched.addTo(c.outLine, at, classDelivery, func() { w.server.disconnect(c) }, nil)
	}
	if !deadline.IsZero() && set != c.planned && !shut {
		c.planned = set
		w.planDeadline(c, int64(deadline.Sub(w.start)), set)
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
func (w *World) planDeadline(c *conn, at int64, set uint64) {
	w.planDeadlineFrom(c, w.now(), at-w.now(), set)
}

func (w *World) planDeadlineFrom(c *conn, asked, left int64, set uint64) {
	w.sched.add(asked+left, classDeadline, func() {
		c.mu.Lock()
		stale := c.setAt != set || c.shut
		c.mu.Unlock()
		if stale || c.p.dead {
			return
		}
		if lost := c.p.pausedBetween(asked, w.now()); lost > 0 {
			w.planDeadlineFrom(c, max(w.now(), c.p.pausedUntil), lost, set)
			return
		}
		c.mu.Lock()
		c.expired = true
		c.mu.Unlock()
		c.signal()
	})
}
