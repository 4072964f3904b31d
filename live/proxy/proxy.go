// Package proxy stands between clients and a server. It reads the requests, replies and pushes of
// Redis one by one, asks a [Handler] for the fate of each, and loses, delays or forges them. It
// carries other protocols as plain bytes (see [Settle]). It knows nothing of locks.
package proxy

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Handler decides the fates of messages. The goroutine that reads the client of a connection calls
// Request, and the goroutine that reads the server calls the other methods. A method that blocks
// delays everything that follows on the connection.
type Handler interface {
	// Request is called for a request before it goes to the server.
	Request(m *Message) Fate
	// Answered is called for the reply to a request, as it is on the wire.
	Answered(m *Message, raw []byte) Fate
	// Unanswered is called once for a request that went to the server and will get no reply,
	// because its connection has ended or has become a stream.
	Unanswered(m *Message)
	// Pushed is called for a message that answers no request.
	Pushed(c *Conn, channel string, raw []byte) Fate
	// Closed is called when a connection has ended.
	Closed(c *Conn)
}

// Fate says how a message goes on. The zero value lets it pass.
type Fate struct {
	Drop bool // the message is lost, and the connection lives on
	Cut  bool // the connection is reset in place of the message
	// Free, if there is a Settle, lets a request pass without waiting for its answer: neither
	// Answered nor Unanswered is called for it.
	Free bool
	// Error is sent to the client as the reply in place of the message, and a request does not
	// reach the server. The text begins with the code of the error.
	Error string
	// Instead, if not nil, goes to the client in place of a reply.
	Instead []byte
	// A reply or a push goes on at NotBefore or later, and not before Until is closed. What follows
	// it on the connection waits.
	NotBefore time.Time
	Until     <-chan struct{}
	// Later, if not nil, is called when everything before the message on its connection has gone
	// on. It may block. The Fate that it returns replaces this one, but of the two values of
	// NotBefore the later counts. If there is a Settle, a rule that holds messages blocks in Later.
	Later func() Fate
	// Close closes the connection, without a reset, in place of the message.
	Close bool
	// Done, if not nil, is called when the reply, the push or the forged reply has been written to
	// the client or is lost. at is when the proxy began to write it.
	Done func(delivered bool, at time.Time)
}

// Message is a request of a client.
type Message struct {
	Conn  *Conn
	Words []string
	Raw   []byte
	Index int // counts the requests of the connection from 0
	// Came is when the last bytes of its reply came, if there is a Settle.
	Came time.Time
	// Data is the handler's own.
	Data any

	forged *Fate
	need   int // the number of replies still to come
	reply  []byte
}

// Is reports whether the request is the named command, in upper or lower case.
func (m *Message) Is(name string) bool { return strings.EqualFold(m.Words[0], name) }

// Options are the settings of a Proxy.
type Options struct {
	Addr string // the address to listen at; port 0 means a free port
	// Dial opens the connection to the server for a connection of a client. The proxy
	// calls it before it reads the first request.
	Dial    func() (net.Conn, error)
	Handler Handler
	// Patience is how long the proxy waits for replies after the client has closed its connection,
	// so that the handler hears of them.
	Patience time.Duration
	// Welcome, if not nil, reports whether a client may connect. The proxy then sends a first byte
	// that tells the client; see Knock.
	Welcome func() bool
	// Settle, if not nil, says that the protocol is unknown. The client then writes frames (see
	// Frame), and each frame is a request without words. The handler lets one request at a time
	// pass to a server. Answered is called when the answer has settled, with the bytes that came,
	// if any.
	Settle *Settle
}

// Proxy accepts connections until Close.
type Proxy struct {
	o    Options
	l    net.Listener
	all  sync.WaitGroup
	mu   sync.Mutex
	next int
	open map[*Conn]bool
	over bool
	// severed is set by Sever. unheard are the connections that clients opened afterwards.
	severed bool
	unheard []net.Conn
}

// Start begins to listen.
func Start(o Options) (*Proxy, error) {
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, err
	}
	p := &Proxy{o: o, l: l, open: map[*Conn]bool{}}
	p.all.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Close ends the proxy and its connections, and waits for its goroutines.
func (p *Proxy) Close() {
	_ = p.l.Close()
	p.mu.Lock()
	p.over = true
	for _, client := range p.unheard {
		_ = client.Close()
	}
	p.mu.Unlock()
	p.Reset()
	p.all.Wait()
}

// Reset resets all connections.
func (p *Proxy) Reset() {
	for _, c := range p.conns() {
		c.Reset()
	}
}

func (p *Proxy) conns() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.open))
}

// Sever closes every connection to the server and opens no other. To the server it looks as if the
// clients had crashed, since the end of a process closes its connections. The clients do not
// notice: their ends of the connections stay open, and silent.
func (p *Proxy) Sever() {
	p.mu.Lock()
	p.severed = true
	p.mu.Unlock()
	for _, c := range p.conns() {
		c.mu.Lock()
		c.severed = true
		left := c.queue
		c.queue = nil
		c.mu.Unlock()
		_ = c.server.Close()
		for _, m := range left {
			c.unanswered(m)
		}
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client) })
	}
}

// The first byte on a connection of a proxy that has a Welcome.
const (
	welcome = '+'
	refused = '-'
)

// ErrRefused says that the proxy did not let a client connect.
var ErrRefused = errors.New("the proxy refuses connections")

// Knock reads the first byte of a new connection to a proxy that has a Welcome.
func Knock(c net.Conn) error {
	var b [1]byte
	if _, err := c.Read(b[:]); err != nil {
		return err
	}
	if b[0] != welcome {
		return ErrRefused
	}
	return nil
}

func (p *Proxy) serve(client net.Conn) {
	if p.o.Welcome != nil {
		answer := byte(welcome)
		if !p.o.Welcome() {
			answer = refused
		}
		if _, err := client.Write([]byte{answer}); err != nil || answer == refused {
			_ = client.Close()
			return
		}
	}
	server, err := p.o.Dial()
	if err != nil {
		_ = client.Close()
		return
	}
	c := &Conn{proxy: p, client: client, server: server, out: make(chan parcel, 1024), gone: make(chan struct{}), served: make(chan struct{}, 1), channels: map[string]map[string]bool{}}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		c.Reset()
		return
	}
	if p.severed {
		p.unheard = append(p.unheard, client)
		p.mu.Unlock()
		_ = server.Close()
		return
	}
	p.next++
	c.ID = p.next
	p.open[c] = true
	p.mu.Unlock()
	var both sync.WaitGroup
	if p.o.Settle != nil {
		both.Go(c.upBytes)
		both.Go(c.downBytes)
	} else {
		both.Go(c.up)
		both.Go(c.down)
	}
	both.Go(c.carry)
	both.Wait()
	c.drain() // the parcels that came after carry had ended
	c.mu.Lock()
	left := c.queue
	c.queue = nil
	c.mu.Unlock()
	for _, m := range left {
		c.unanswered(m)
	}
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	p.o.Handler.Closed(c)
}

// Conn is a connection of a client.
type Conn struct {
	ID int // counts the connections of the proxy from 1

	proxy          *Proxy
	client, server net.Conn
	out            chan parcel
	gone           chan struct{} // closed when the connection has ended
	once           sync.Once
	shut           atomic.Bool   // the client has closed it
	served         chan struct{} // gets a value when a reply came, if there is room

	mu       sync.Mutex
	queue    []*Message                 // the requests that have no reply yet
	channels map[string]map[string]bool // the channels that the client listens to, by kind of subscription
	listens  bool                       // the client has subscribed
	stream   bool                       // the server sends a stream, and no more replies
	severed  bool                       // see Proxy.Sever
	requests int
	askedAt  time.Time // when the present request went to the server, if there is a Settle
	settles  time.Time // when its answer counts as complete, unless more bytes come
}

// parcel has bytes for the client, and their fate.
type parcel struct {
	raw  []byte
	fate Fate
}

// ClientAddr is the address from which the client connected.
func (c *Conn) ClientAddr() string { return c.client.RemoteAddr().String() }

// Reset ends the connection at both sides, at the client's side with a TCP reset.
func (c *Conn) Reset() {
	if tcp, ok := c.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.close()
}

func (c *Conn) close() {
	c.once.Do(func() { close(c.gone) })
	_ = c.client.Close()
	_ = c.server.Close()
}

// Gone returns a channel that is closed when the connection has ended.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// unanswered tells the handler that a request will get no reply.
func (c *Conn) unanswered(m *Message) {
	if m.forged != nil {
		m.forged.done(false, time.Now())
		return
	}
	c.proxy.o.Handler.Unanswered(m)
}

// last returns the Fate that counts: that of Later, if there is one.
func (f Fate) last() Fate {
	if f.Later == nil {
		return f
	}
	g := f.Later()
	if f.NotBefore.After(g.NotBefore) {
		g.NotBefore = f.NotBefore
	}
	return g
}

func (f *Fate) done(delivered bool, at time.Time) {
	if f.Done != nil {
		f.Done(delivered, at)
	}
}

// up carries requests to the server.
func (c *Conn) up() {
	defer c.close()
	in := bufio.NewReaderSize(c.client, 1<<16)
	for {
		raw, words, err := ReadRequest(in)
		if err != nil {
			c.shut.Store(true)
			c.finish()
			return
		}
		m := &Message{Conn: c, Words: words, Raw: raw, Index: c.requests}
		c.requests++
		f := c.proxy.o.Handler.Request(m)
		switch {
		case f.Cut:
			c.Reset()
			return
		case f.Drop:
			continue
		case f.Error != "":
			m.forged = &f
		}
		c.mu.Lock()
		select {
		case <-c.gone:
			c.mu.Unlock()
			c.unanswered(m)
			return
		default:
		}
		if c.severed {
			c.mu.Unlock()
			c.unanswered(m)
			continue
		}
		m.need = c.replies(m)
		if m.Is("PSYNC") || m.Is("MONITOR") {
			c.stream = true
		}
		stream := c.stream
		if !stream {
			c.queue = append(c.queue, m)
		}
		c.mu.Unlock()
		switch {
		case stream:
			c.unanswered(m)
		case m.forged != nil:
			c.flush()
			continue
		}
		if _, err := c.server.Write(raw); err != nil && !c.isSevered() {
			return
		}
	}
}

func (c *Conn) isSevered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.severed
}

// finish waits, after the client has closed the connection, for the replies to the requests that
// the server still has.
func (c *Conn) finish() {
	t := time.NewTimer(c.proxy.o.Patience)
	defer t.Stop()
	for {
		c.mu.Lock()
		left := len(c.queue)
		c.mu.Unlock()
		if left == 0 || c.proxy.o.Patience == 0 {
			return
		}
		select {
		case <-c.served:
		case <-c.gone:
			return
		case <-t.C:
			return
		}
	}
}

// replies returns how many replies a request gets. Guarded by mu.
func (c *Conn) replies(m *Message) int {
	kind, begins := listening(m.Words[0])
	if kind == "" || m.forged != nil {
		return 1
	}
	names := m.Words[1:]
	if c.channels[kind] == nil {
		c.channels[kind] = map[string]bool{}
	}
	n := max(1, len(names))
	switch {
	case begins:
		c.listens = true
		for _, name := range names {
			c.channels[kind][name] = true
		}
	case len(names) == 0:
		n = max(1, len(c.channels[kind]))
		clear(c.channels[kind])
	default:
		for _, name := range names {
			delete(c.channels[kind], name)
		}
	}
	return n
}

// listening returns the kind of subscription that a command begins or ends; or "" if it does
// neither.
func listening(command string) (kind string, begins bool) {
	command = strings.ToUpper(command)
	for _, kind := range []string{"", "P", "S"} {
		switch command {
		case kind + "SUBSCRIBE":
			return kind + "SUBSCRIBE", true
		case kind + "UNSUBSCRIBE":
			return kind + "SUBSCRIBE", false
		}
	}
	return "", false
}

// down reads the server.
func (c *Conn) down() {
	defer c.close()
	in := bufio.NewReaderSize(c.server, 1<<16)
	for {
		raw, err := ReadReply(in)
		if err != nil {
			if c.isSevered() {
				<-c.gone
			}
			return
		}
		if !c.take(raw) {
			return
		}
	}
}

// take handles a value that the server sent. It reports false when the connection is to end.
func (c *Conn) take(raw []byte) bool {
	c.mu.Lock()
	stream := c.stream
	channel, push := pushed(raw)
	push = push && (c.listens || raw[0] == '>') // the reply of a script may look like a push
	var m *Message
	if !push && !stream && len(c.queue) > 0 {
		m = c.queue[0]
		m.reply = append(m.reply, raw...)
		if m.need--; m.need > 0 {
			c.mu.Unlock()
			return true
		}
		c.queue = c.queue[1:]
	}
	c.mu.Unlock()
	var f Fate
	switch {
	case m != nil:
		raw = m.reply
		f = c.proxy.o.Handler.Answered(m, raw)
	case push:
		f = c.proxy.o.Handler.Pushed(c, channel, raw)
	}
	ok := c.send(raw, f)
	c.flush()
	select {
	case c.served <- struct{}{}:
	default:
	}
	return ok
}

// send applies a fate to bytes for the client, and queues them for carry. It reports false when
// the connection is to end.
func (c *Conn) send(raw []byte, f Fate) bool {
	switch {
	case f.Cut:
		f.done(false, time.Now())
		c.Reset()
		return false
	case f.Drop:
		f.done(false, time.Now())
		return true
	case f.Error != "":
		raw = []byte("-" + f.Error + "\r\n")
	case f.Instead != nil:
		raw = f.Instead
	}
	select {
	case c.out <- parcel{raw, f}:
		return true
	case <-c.gone:
		f.done(false, time.Now())
		return false
	}
}

// carry writes the parcels to the client in their order, each when it is due.
func (c *Conn) carry() {
	defer c.close()
	for {
		select {
		case x := <-c.out:
			x.fate = x.fate.last()
			if !c.wait(x.fate) {
				x.fate.done(false, time.Now())
				c.drain()
				return
			}
			switch {
			case x.fate.Cut:
				x.fate.done(false, time.Now())
				c.Reset()
				c.drain()
				return
			case x.fate.Close:
				c.drain()
				return
			case x.fate.Drop:
				x.fate.done(false, time.Now())
				continue
			}
			if c.shut.Load() { // the client no longer reads
				x.fate.done(false, time.Now())
				continue
			}
			at := time.Now()
			_, err := c.client.Write(x.raw)
			x.fate.done(err == nil, at)
			if err != nil {
				c.drain()
				return
			}
		case <-c.gone:
			c.drain()
			return
		}
	}
}

// drain ends the connection, and gives up its parcels.
func (c *Conn) drain() {
	c.close()
	for {
		select {
		case x := <-c.out:
			x.fate.done(false, time.Now())
		default:
			return
		}
	}
}

// wait waits until a message may go on. It reports false when the connection has ended.
func (c *Conn) wait(f Fate) bool {
	if d := time.Until(f.NotBefore); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.gone:
			return false
		}
	}
	if f.Until != nil {
		select {
		case <-f.Until:
		case <-c.gone:
			return false
		}
	}
	return true
}

// flush sends the forged replies whose turn it is.
func (c *Conn) flush() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 || c.queue[0].forged == nil {
			c.mu.Unlock()
			return
		}
		m := c.queue[0]
		c.queue = slices.Delete(c.queue, 0, 1)
		c.mu.Unlock()
		if !c.send(nil, *m.forged) {
			return
		}
	}
}
