package sim

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"lockstep/model"
)

// StreamServer is a server that speaks a byte stream which the world does not parse. Usually it is
// a real server, with goroutines and timers of its own, that accepts its connections from a
// net.Listener in memory. Segments makes a Server of it.
//
// A message is a segment: all bytes that one side wrote on a connection at one instant. The borders
// of single writes have no meaning in a stream, and depend on the order of goroutines. The world
// delivers one segment, waits until every goroutine is durably blocked, reads the state of the
// locks, and continues. Bytes that the server wrote meanwhile on the same connection are the reply
// to the segment. Bytes that it writes at any other instant, or on another connection, are a push.
//
// The scheduler calls the methods and the functions of Parts. Only Boot may let simulated time pass.
type StreamServer interface {
	// Boot starts the server. It returns when the server serves its clients, or with an
	// error if it never will. Simulated time may pass: the world begins afterwards.
	Boot(Setup) error
	// Parts returns what else the server does. Stop begins the end of the server and does not wait
	// for it. State and Leftovers are called when every goroutine is durably blocked. Lacks is called
	// for faults of the server and of keys. A server that Strike restarts asks Setup.Listen for a new
	// listener. Clients may dial it at once, and are served when the server accepts them. The server
	// accepts connections and keeps time by itself, so AtOnce, Open, Close, Pushed, Next and Refusal
	// are not asked for.
	Parts() Parts
}

// Segments returns a server whose connections the world delivers by segments.
func Segments(s StreamServer) Server {
	says := s.Parts().Says
	if says == nil {
		says = SaysWhole(func(string) string { return "" })
	}
	return &segments{StreamServer: s, says: says, ends: map[ConnID]*end{}}
}

// SaysWhole returns a Says of Parts whose readers read each segment by itself.
func SaysWhole(says func(segment string) string) func() func(segment string) string {
	return func() func(string) string { return says }
}

// Streaming returns the StreamServer from which Segments made s; nil for other servers.
func Streaming(s Server) StreamServer {
	if seg, ok := s.(*segments); ok {
		return seg.StreamServer
	}
	return nil
}

// segments makes a StreamServer a Server that knows a single request: the bytes of a segment.
type segments struct {
	StreamServer
	says   func() func(segment string) string
	failed error // of Boot
	wake   func()

	mu       sync.Mutex // held for moments only; never over a wait
	changed  bool       // see Setup.Changed
	listener *listener
	ends     map[ConnID]*end // those that are open
	open     []ConnID        // the same, in order
}

// boot starts the server. From then on it wakes the world when the server has changed or sent
// something.
func (s *segments) boot(setup Setup, wake func(), instant func() Instant) {
	s.wake = wake
	setup.Listen, setup.Instant = s.listen, instant
	setup.Changed = func() {
		s.mu.Lock()
		s.changed = true
		s.mu.Unlock()
		wake()
	}
	s.failed = s.Boot(setup)
}

// listen returns a new listener in place of the last one.
func (s *segments) listen() net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.shut()
	}
	s.listener = &listener{ready: make(chan struct{}, 1)}
	return s.listener
}

// Parts implements Server. Bytes that the server wrote are pushes, its timers are timers of the bubble,
// and no rule answers in its place.
func (s *segments) Parts() Parts {
	p := s.StreamServer.Parts()
	p.AtOnce, p.Next, p.Tick, p.Refusal = nil, nil, nil, nil
	p.Open, p.Close, p.Pushed = s.connect, s.disconnect, s.pushed
	ofServer := p.Lacks
	p.Lacks = func(f model.FaultSpec) string { return lacksOfStream(f, ofServer) }
	return p
}

// Start implements Server. The server has been started by boot.
func (*segments) Start(Setup) {}

// Decode implements Server: the whole text is one request.
func (s *segments) Decode(text string) (Request, string, error) {
	return Request{Name: model.SegmentCommand, Words: []string{text}, Shown: []string{sizeOf(len(text))}, Abridged: true, Marks: true, Streams: true}, "", nil
}

func sizeOf(n int) string { return fmt.Sprintf("%d bytes", n) }

// connect lets a connection wait to be accepted.
func (s *segments) connect(c ConnID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &end{s: s, name: address(fmt.Sprintf("connection %d", c)), ready: make(chan struct{}, 1)}
	s.ends[c] = e
	s.open = append(s.open, c)
	if s.listener != nil {
		s.listener.offer(e)
	}
}

// disconnect ends the server's side of a connection.
func (s *segments) disconnect(_ int64, c ConnID, _ *Effects) {
	s.mu.Lock()
	e := s.ends[c]
	delete(s.ends, c)
	s.open = slices.DeleteFunc(s.open, func(o ConnID) bool { return o == c })
	s.mu.Unlock()
	if e != nil {
		e.end(io.EOF)
	}
}

// Handle implements Server: it hands the bytes to the server.
func (s *segments) Handle(_ int64, c ConnID, r *Request, out *Effects) (Reply, bool) {
	out.Write(ObjectServer) // the bytes may change anything
	s.mu.Lock()
	e := s.ends[c]
	s.mu.Unlock()
	if e != nil {
		e.arrive(r.Words[0])
	}
	return Reply{None: true}, true
}

// pushed collects the bytes that the server wrote, by connection.
func (s *segments) pushed(list []Push) []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		if b, closes := s.ends[c].collect(); len(b) > 0 || closes {
			list = append(list, Push{Conn: c, Bytes: b, Closes: closes})
		}
	}
	return list
}

// lacksOfStream is Parts.Lacks of a stream server. ofServer is the one that the server has itself.
func lacksOfStream(f model.FaultSpec, ofServer func(model.FaultSpec) string) string {
	const has = "; on its messages it has delay, hold, half_open, drop and reset, by process, direction and script"
	switch {
	case f.Server == model.ServerStall:
		return "has timers of its own, which nothing stalls; a rule with do: hold keeps its messages"
	case f.Kind != model.FaultRule:
		if ofServer == nil {
			return ""
		}
		return ofServer(f)
	case f.Do == "error":
		return "speaks a stream that is not taken apart, in which nobody else can answer" + has
	case f.When.Command != "":
		return "speaks a stream that is not taken apart, in which commands have no names" + has
	case f.When.Channel != "":
		return "speaks a stream that is not taken apart, in which channels have no names" + has
	case f.Awaits != nil && (f.Awaits.Published != "" || f.Awaits.Executed != nil && f.Awaits.Executed.Channel != ""):
		return "speaks a stream that is not taken apart, in which channels have no names; a rule can wait for granted, ended, and executed by process and script"
	case f.Awaits != nil && f.Awaits.Executed != nil && f.Awaits.Executed.Command != "":
		return "speaks a stream that is not taken apart, in which commands have no names; a rule can wait for executed by process and script"
	}
	return ""
}

// takeChanged reports whether Setup.Changed was called since its last call.
func (s *segments) takeChanged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.changed
	s.changed = false
	return changed
}

// rests checks the servers when every goroutine is durably blocked. It records how the last
// segment, or time, changed the locks of a stream server, and posts the connections on which
// servers have written.
func (w *World) rests() {
	for _, n := range w.nodes {
		m := n.served
		n.served = nil
		n.noteUnsimulated()
		if n.stream != nil && (n.stream.takeChanged() || m != nil) {
			n.observe(m)
		}
		w.collectPushes(n, m)
	}
}

// noteUnsimulated records what a stream server met and does not simulate, each once in a run.
func (n *node) noteUnsimulated() {
	for _, what := range n.parts.Unsimulated() {
		if !slices.Contains(n.unsimulated, what) {
			n.unsimulated = append(n.unsimulated, what)
			n.w.record(&model.Event{Kind: model.KindUnsimulated, Command: what})
		}
	}
}

// listener is the listener of a StreamServer.
type listener struct {
	mu     sync.Mutex
	queue  []*end
	closed bool
	ready  chan struct{}
}

func (l *listener) offer(e *end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		e.end(syscall.ECONNRESET)
		return
	}
	l.queue = append(l.queue, e)
	signal(l.ready)
}

// signal wakes the goroutine that waits on ready, or the next one that will.
func signal(ready chan struct{}) {
	select {
	case ready <- struct{}{}:
	default:
	}
}

func (l *listener) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, e := range l.queue {
		e.end(syscall.ECONNRESET)
	}
	l.queue = nil
	signal(l.ready)
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 || l.closed {
			signal(l.ready) // for whoever else accepts
		}
		switch {
		case len(l.queue) > 0:
			e := l.queue[0]
			l.queue = l.queue[1:]
			l.mu.Unlock()
			return e, nil
		case l.closed:
			l.mu.Unlock()
			return nil, net.ErrClosed
		}
		l.mu.Unlock()
		<-l.ready
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.shut()
	return nil
}

// Addr implements net.Listener.
func (*listener) Addr() net.Addr { return address("server") }

// end is the StreamServer's side of a connection: a net.Conn.
type end struct {
	s    *segments
	name address

	mu      sync.Mutex // held for moments only; never over a wait
	in, out []byte
	err     error // the error of reads after in, and of writes at once
	shut    bool  // the server closed it
	told    bool  // the world knows that it is shut
	expired bool  // the read deadline has passed
	timer   *time.Timer
	ready   chan struct{}
}

// arrive appends bytes of the client.
func (e *end) arrive(b string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.in = append(e.in, b...)
	signal(e.ready)
}

// end makes reads fail with err after the bytes that have arrived.
func (e *end) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
	e.stopTimer()
	signal(e.ready)
}

// collect takes the bytes that the server wrote. closes reports, once, that the server has closed
// the connection after them.
func (e *end) collect() (b []byte, closes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, e.out = e.out, nil
	closes = e.shut && !e.told
	e.told = e.shut
	return b, closes
}

// Read implements net.Conn.
func (e *end) Read(b []byte) (int, error) {
	for {
		e.mu.Lock()
		if len(e.in) > 0 || e.shut || e.err != nil || e.expired || len(b) == 0 {
			defer e.mu.Unlock()
			signal(e.ready) // for whoever else reads
			switch {
			case e.shut:
				return 0, net.ErrClosed
			case len(e.in) > 0 || len(b) == 0:
				n := copy(b, e.in)
				e.in = e.in[n:]
				return n, nil
			case e.err != nil:
				return 0, e.err
			}
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}
		e.mu.Unlock()
		<-e.ready
	}
}

// Write implements net.Conn. It never waits.
func (e *end) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.shut:
		return 0, net.ErrClosed
	case e.err != nil:
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	e.out = append(e.out, b...)
	e.s.wake()
	return len(b), nil
}

// Close implements net.Conn.
func (e *end) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
	e.stopTimer()
	signal(e.ready)
	e.s.wake()
	return nil
}

// LocalAddr implements net.Conn.
func (*end) LocalAddr() net.Addr { return address("server") }

// RemoteAddr implements net.Conn.
func (e *end) RemoteAddr() net.Addr { return e.name }

// SetDeadline implements net.Conn; writes never wait.
func (e *end) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn; writes never wait.
func (*end) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn. The deadline is a timer of the bubble, like all timers of
// the server.
func (e *end) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopTimer()
	e.expired = false
	if t.IsZero() || e.err != nil || e.shut {
		return nil
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.timer == timer {
			e.expired = true
			signal(e.ready)
		}
	})
	e.timer = timer
	return nil
}

func (e *end) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}
