// Package proxy stands between clients and a server. It reads the requests, replies and pushes of
// Redis one by one, asks a [Handler] for the fate of each, and loses, delays or forges them. It
// carries other protocols as plain bytes (see [Settle]). It knows nothing of locks.
package proxy

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
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
		both.Go(c.carryRequests)
		both.Go(c.readReplies)
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

// final returns the Fate that counts: that of Later, if there is one.
func (f Fate) final() Fate {
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
