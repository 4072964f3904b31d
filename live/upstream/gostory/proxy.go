package gostory

import (
	"bufio"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Split takes the bytes of a connection apart.
type Split struct {
	// Request reads a request and the name of its command.
	Request func(*bufio.Reader) (raw []byte, command string, err error)
	// Reply reads a reply. Answers reports whether it answers the oldest request that has no answer.
	Reply func(*bufio.Reader) (raw []byte, answers bool, err error)
	// Idle are commands that have nothing to do with locks.
	Idle []string
}

// A Rule is what happens to the messages that it matches. A field that is zero matches every message.
type Rule struct {
	Client    string
	Direction string // request, reply, or push, which answers no request
	Role      string // what the call under way is for: acquire, unlock; renew: none is under way
	Command   string
	From      time.Duration
	Until     time.Duration
	Nth       int // the only one of the messages that match
	// Do is drop, which resets the connection with the next request, since a stream loses no piece; delay;
	// hold, until the rule ends; reset; or error, which is the answer of the proxy.
	Do    string
	Delay time.Duration
	With  string

	met int
}

// proxy stands between a client and a server.
type proxy struct {
	s        *Story
	client   string
	server   string
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	away     time.Time // the end of a cut
}

func newProxy(s *Story, client, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	p := &proxy{s: s, client: client, server: server, listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.carry(c)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.reset()
}

// reset resets all connections.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		abort(c)
	}
	p.conns = nil
}

func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// cut loses what is on its way for a time, and resets the connections at its end.
func (p *proxy) cut(length time.Duration) {
	p.mu.Lock()
	p.away = time.Now().Add(length)
	p.mu.Unlock()
	time.AfterFunc(length, p.reset)
}

func (p *proxy) isAway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.away)
}

// sent is a message, with the instant at which it may arrive.
type sent struct {
	raw []byte
	at  time.Time
}

func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil || p.isAway() {
		abort(client)
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	asked := make(chan [2]string, 1<<16) // the role and the command of each request that the server gets
	var torn atomic.Bool                 // something was dropped
	up, down := make(chan sent, 1<<16), make(chan sent, 1<<16)
	go deliver(server, up)
	go deliver(client, down)
	go func() {
		defer close(up) // what is late still arrives
		in := bufio.NewReader(client)
		for {
			raw, command, err := p.request(in)
			if err != nil {
				return
			}
			role := ""
			if split := p.s.library.Split; split == nil || !slices.Contains(split.Idle, command) {
				role = p.s.asks(p.client)
			}
			if torn.Load() {
				abort(client)
				return
			}
			if p.pass(client, "request", role, command, raw, up, down, &torn) {
				asked <- [2]string{role, command}
			}
		}
	}()
	in := bufio.NewReader(server)
	last := [2]string{}
	for {
		raw, answers, err := p.reply(in)
		if err != nil {
			_ = client.Close()
			return
		}
		if !answers {
			p.pass(client, "push", "", "", raw, down, down, &torn)
			continue
		}
		select {
		case last = <-asked:
		default: // more of the answer before
		}
		p.pass(client, "reply", last[0], last[1], raw, down, down, &torn)
	}
}

func (p *proxy) request(in *bufio.Reader) ([]byte, string, error) {
	if split := p.s.library.Split; split != nil {
		return split.Request(in)
	}
	raw, err := piece(in)
	return raw, "", err
}

func (p *proxy) reply(in *bufio.Reader) ([]byte, bool, error) {
	if split := p.s.library.Split; split != nil {
		return split.Reply(in)
	}
	raw, err := piece(in)
	return raw, true, err
}

// piece reads what a side wrote at once.
func piece(in *bufio.Reader) ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	raw := make([]byte, in.Buffered())
	_, err := io.ReadFull(in, raw)
	return raw, err
}

// asks notes a request of a client, and returns what it is for.
func (s *Story) asks(client string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	role := s.role(client)
	if role == "acquire" {
		p := s.clients[client]
		p.sent = append(p.sent, time.Since(s.begun))
	}
	return role
}

// tornMost is how long a connection may go on that has lost a message.
const tornMost = 3200 * time.Millisecond

// pass sends a message on its way, or does to it what a rule says. It reports whether it is on its way.
func (p *proxy) pass(client net.Conn, direction, role, command string, raw []byte, on, back chan<- sent, torn *atomic.Bool) bool {
	at := time.Now().Add(p.s.latency)
	if r := p.s.meet(p.client, direction, role, command); r != nil {
		switch r.Do {
		case "delay":
			at = at.Add(r.Delay)
		case "hold":
			p.s.mu.Lock()
			at = p.s.begun.Add(r.Until)
			p.s.mu.Unlock()
		case "drop":
			torn.Store(true)
			time.AfterFunc(tornMost, func() { abort(client) })
			return false
		case "error":
			back <- sent{[]byte("-" + r.With + "\r\n"), at}
			return false
		default:
			abort(client)
			return false
		}
	}
	if p.isAway() {
		return false
	}
	on <- sent{raw, at}
	return true
}

// meet returns the rule that strikes a message; nil: none.
func (s *Story) meet(client, direction, role, command string) (found *Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begun)
	for _, r := range s.rules {
		if now < 0 || now < r.From || r.Until > 0 && now >= r.Until || r.Client != "" && r.Client != client || r.Direction != "" && r.Direction != direction ||
			r.Role != "" && r.Role != role || r.Command != "" && r.Command != command {
			continue
		}
		r.met++
		if found == nil && (r.Nth == 0 || r.met == r.Nth) {
			found = r
		}
	}
	return found
}

// deliver writes messages in their order, each at its instant.
func deliver(to net.Conn, messages <-chan sent) {
	defer func() { _ = to.Close() }()
	for m := range messages {
		time.Sleep(time.Until(m.at))
		if _, err := to.Write(m.raw); err != nil {
			return
		}
	}
}
