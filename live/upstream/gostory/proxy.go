package gostory

import (
	"bufio"
	"io"
	"net"
	"time"
)

// A Protocol takes the bytes of a connection apart.
type Protocol struct {
	// Request reads a request and the name of its command, which is Idle for one that no lock needs.
	Request func(in *bufio.Reader) (raw []byte, name string, err error)
	// Reply reads a reply. Its name is Push for one that answers no request.
	Reply func(in *bufio.Reader) (raw []byte, name string, err error)
}

// Idle is the name of a request that no lock needs.
const Idle = "idle"

// Push is the name of a reply that answers no request.
const Push = "push"

// Bytes is any protocol: a message is what a side writes at once, and has no name.
var Bytes = Protocol{Request: piece, Reply: piece}

func piece(in *bufio.Reader) (raw []byte, name string, err error) {
	if _, err := in.Peek(1); err != nil {
		return nil, "", err
	}
	raw = make([]byte, in.Buffered())
	_, err = io.ReadFull(in, raw)
	return raw, "", err
}

// A Message is on its way between a client and a server.
type Message struct {
	Direction string // request, reply, or Push
	Command   string // of the request, or of the one that is answered
	raw       []byte // nil: the sender has closed the connection
	at        time.Time
	link      *link
}

// A Network has a proxy between each client and each server.
type Network struct {
	s        *Story
	protocol Protocol
	latency  time.Duration
	// Story.mu guards the rest.
	strike func(m *Message) bool // reports whether a message goes on; nil: each does
	rules  []*Rule
	sent   map[string][]time.Duration // by client
}

// Network puts proxies between the clients that are added from now on and the servers.
func (s *Story) Network(protocol Protocol) *Network {
	n := &Network{s: s, protocol: protocol}
	s.through = n.listen
	return n
}

// Latency is how long each message travels in one direction.
func (n *Network) Latency(d time.Duration) { n.latency = d }

// listen begins a proxy, and returns its address.
func (n *Network) listen(client string, server int, addr string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.s.t.Fatal(err)
	}
	n.s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			if up, err := net.Dial("tcp", addr); err != nil {
				_ = down.Close()
			} else {
				n.connect(&link{n: n, client: client, server: server, up: up, down: down})
			}
		}
	}()
	return l.Addr().String()
}

// link is a connection of a client, and that of its proxy to the server.
type link struct {
	n          *Network
	client     string
	server     int      // counted from 1
	up         net.Conn // to the server
	down       net.Conn // to the client
	toClient   chan *Message
	unanswered chan string // the commands that the server has got and not answered
	answered   string      // the command that it has answered last
}

func (n *Network) connect(l *link) {
	const most = 1 << 16 // messages on their way
	toServer := make(chan *Message, most)
	l.toClient, l.unanswered = make(chan *Message, most), make(chan string, most)
	go deliver(l.up, toServer)
	go deliver(l.down, l.toClient)
	go l.carry(l.down, toServer, "request", n.protocol.Request)
	go l.carry(l.up, l.toClient, "reply", n.protocol.Reply)
}

// deliver writes messages in their order, each at its instant.
func deliver(to net.Conn, messages <-chan *Message) {
	for m := range messages {
		time.Sleep(time.Until(m.at))
		if _, err := to.Write(m.raw); err != nil || m.raw == nil {
			_ = to.Close()
			return
		}
	}
}

// carry sends messages on their way.
func (l *link) carry(from net.Conn, to chan<- *Message, direction string, read func(in *bufio.Reader) ([]byte, string, error)) {
	in := bufio.NewReader(from)
	for {
		raw, name, err := read(in)
		m := &Message{Direction: direction, Command: name, raw: raw, at: time.Now().Add(l.n.latency), link: l}
		if err != nil {
			m.raw = nil // what is late still arrives
			to <- m
			return
		}
		switch {
		case name == Push:
			m.Direction = Push
		case direction == "reply":
			select {
			case l.answered = <-l.unanswered:
			default: // more of the last answer
			}
			m.Command = l.answered
		}
		l.n.s.mu.Lock()
		strike := l.n.strike
		l.n.s.mu.Unlock()
		if strike != nil && !strike(m) {
			continue
		}
		if direction == "request" {
			l.unanswered <- name
		}
		to <- m
	}
}

func (l *link) reset() {
	for _, c := range []net.Conn{l.up, l.down} {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}
