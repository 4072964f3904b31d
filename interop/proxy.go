//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands between one client and one server: it writes down what the
// client sends, and loses, delays or forges answers where it is told to. It
// knows nothing of locks.
type Proxy struct {
	Addr string // host:port to connect to

	target string
	born   time.Time
	ports  *strings.Replacer // what is told of a cluster's nodes; nil: as it is

	mu      sync.Mutex
	rule    func(Sent) Verdict
	sent    []Sent
	heard   []string // answers that came for a command, as they are on the wire, by place in sent
	pending int      // commands without an answer
	last    time.Time
	conns   map[*proxied]bool
	nextID  int
	severed bool
	unheard []net.Conn // that clients opened after Sever

	listener net.Listener
	running  sync.WaitGroup
}

// Sent is one command as a client sent it.
type Sent struct {
	Words []string
	At    time.Duration // since the proxy was made
	Conn  int           // which of the client's connections
	Index int           // its place among all commands of the proxy
}

// Is says whether the command has that name, whatever its case.
func (s Sent) Is(name string) bool { return strings.EqualFold(s.Words[0], name) }

// Verdict is what becomes of a command. The zero value lets it pass.
type Verdict struct {
	// Hold is how long the command waits before it goes to the server, and all
	// that follow it on its connection.
	Hold time.Duration
	// Delay is how long its answer waits, and all that follow it.
	Delay time.Duration
	// Drop loses the answer; the connection lives on.
	Drop bool
	// Cut ends the connection in place of the answer.
	Cut bool
	// CutBefore ends the connection in place of sending it to the server.
	CutBefore bool
	// Error is the answer; the server hears nothing. It begins with its code.
	Error string
}

// StartProxy starts a proxy for a server; it ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := startProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// startProxy starts a proxy for a server; it ends with Close.
func startProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, born: time.Now(), conns: map[*proxied]bool{}, listener: l}
	p.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.accept(c)
		}
	})
	return p, nil
}

func (p *Proxy) accept(c net.Conn) {
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.severed {
		_ = s.Close()
		p.unheard = append(p.unheard, c)
		return
	}
	p.nextID++
	x := &proxied{proxy: p, id: p.nextID, client: c, server: s}
	p.conns[x] = true
	p.running.Go(x.up)
	p.running.Go(x.down)
}

// Sever closes every connection to the server and opens no other. To the server the
// client has crashed: its process's end closes its connections, too, and nothing comes
// from it any more. The client is not told: its own ends stay open, and silent.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = true
	for x := range p.conns {
		p.unheard = append(p.unheard, x.client)
		_ = x.server.Close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for x := range p.conns {
		x.close()
	}
	for _, c := range p.unheard {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// proxiesAgain are other proxies to the same servers. Where these name one
// another, as the nodes of a cluster do, clients are told of the new ones.
func proxiesAgain(t testing.TB, first []*Proxy) []*Proxy {
	var again []*Proxy
	var renamed []string
	for _, p := range first {
		a := StartProxy(t, p.target)
		_, from, _ := net.SplitHostPort(p.Addr)
		_, to, _ := net.SplitHostPort(a.Addr)
		if len(from) != len(to) {
			t.Fatalf("ports %s and %s are not of one length: a bulk string would have another", from, to)
		}
		again, renamed = append(again, a), append(renamed, from, to)
	}
	for _, a := range again {
		a.ports = strings.NewReplacer(renamed...)
	}
	return again
}

// rename names the clients' own proxies in what a cluster says of its nodes.
func (p *Proxy) rename(command string, raw []byte) []byte {
	if p.ports == nil || !strings.EqualFold(command, "CLUSTER") && !bytes.HasPrefix(raw, []byte("-MOVED")) {
		return raw
	}
	return []byte(p.ports.Replace(string(raw)))
}

// Rule says from now on what becomes of each command; nil lets all pass.
func (p *Proxy) Rule(rule func(Sent) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// Sent gives the commands from the given place on.
func (p *Proxy) Sent(from int) []Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Sent(nil), p.sent[from:]...)
}

// Answer gives what the server said to a command, as it is on the wire; empty
// when it said nothing.
func (p *Proxy) Answer(s Sent) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[s.Index]
}

// Now is the time on the clock of Sent.At.
func (p *Proxy) Now() time.Duration { return time.Since(p.born) }

// Quiet returns when nothing was sent for that long and nothing waits for an
// answer, or when the limit is over.
func (p *Proxy) Quiet(calm, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		p.mu.Lock()
		quiet := p.pending == 0 && time.Since(p.last) >= calm
		p.mu.Unlock()
		if quiet {
			return
		}
	}
}

// proxied is one connection.
type proxied struct {
	proxy          *Proxy
	id             int
	client, server net.Conn

	mu     sync.Mutex // of the queue, and of writing to the client
	queue  []*expected
	pubsub bool // answers cannot be told from messages any more
	stream bool // a replica's: what comes are not answers
}

// expected is a command that waits for its answer; forged answers do not come
// from the server.
type expected struct {
	index   int
	name    string
	verdict Verdict
	forged  []byte
}

func (x *proxied) close() {
	_ = x.client.Close()
	_ = x.server.Close()
}

// up carries commands to the server.
func (x *proxied) up() {
	defer x.end()
	in := bufio.NewReaderSize(x.client, 1<<16)
	for {
		raw, words, err := readCommand(in)
		if err != nil {
			return
		}
		s, v := x.proxy.note(x.id, words)
		if v.Hold > 0 {
			time.Sleep(v.Hold)
		}
		if v.CutBefore {
			x.proxy.answered(s.Index, "")
			return
		}
		e := &expected{index: s.Index, name: words[0], verdict: v}
		if v.Error != "" {
			e.forged = []byte("-" + v.Error + "\r\n")
		}
		x.mu.Lock()
		if subscribes(words[0]) {
			x.pubsub = true
		}
		if strings.EqualFold(words[0], "PSYNC") {
			x.pubsub, x.stream = true, true
		}
		known := !x.pubsub
		if known {
			x.queue = append(x.queue, e)
		}
		x.mu.Unlock()
		if !known {
			x.proxy.answered(s.Index, "")
		}
		if e.forged != nil && known {
			x.flush()
			continue
		}
		if _, err := x.server.Write(raw); err != nil {
			return
		}
	}
}

func subscribes(name string) bool {
	return strings.HasSuffix(strings.ToUpper(name), "SUBSCRIBE")
}

// down carries answers to the client.
func (x *proxied) down() {
	defer x.end()
	in := bufio.NewReaderSize(x.server, 1<<16)
	for {
		raw, err := readAnswer(in)
		if err != nil {
			return
		}
		x.mu.Lock()
		var e *expected
		if raw[0] != '>' && !x.pubsub && len(x.queue) > 0 {
			e, x.queue = x.queue[0], x.queue[1:]
		} else if x.pubsub {
			for _, left := range x.queue { // sent before the first SUBSCRIBE
				x.proxy.answered(left.index, "")
			}
			x.queue = nil
		}
		x.mu.Unlock()
		if e == nil {
			if _, err := x.client.Write(raw); err != nil {
				return
			}
			x.mu.Lock()
			stream := x.stream
			x.mu.Unlock()
			if stream {
				_, _ = io.Copy(x.client, in)
				return
			}
			continue
		}
		raw = x.proxy.rename(e.name, raw)
		x.proxy.answered(e.index, string(raw))
		switch v := e.verdict; {
		case v.Cut:
			return
		case v.Drop:
		default:
			if v.Delay > 0 {
				time.Sleep(v.Delay)
			}
			if _, err := x.client.Write(raw); err != nil {
				return
			}
		}
		x.flush()
	}
}

// flush writes the forged answers whose turn it is.
func (x *proxied) flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.queue) > 0 && x.queue[0].forged != nil {
		e := x.queue[0]
		x.queue = x.queue[1:]
		x.proxy.answered(e.index, "")
		if _, err := x.client.Write(e.forged); err != nil {
			return
		}
	}
}

func (x *proxied) end() {
	x.proxy.mu.Lock()
	severed := x.proxy.severed
	x.proxy.mu.Unlock()
	if !severed {
		x.close()
	}
	x.mu.Lock()
	left := x.queue
	x.queue = nil
	x.mu.Unlock()
	for _, e := range left {
		x.proxy.answered(e.index, "")
	}
	x.proxy.mu.Lock()
	delete(x.proxy.conns, x)
	x.proxy.mu.Unlock()
}

func (p *Proxy) note(conn int, words []string) (Sent, Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Sent{Words: words, At: time.Since(p.born), Conn: conn, Index: len(p.sent)}
	p.sent = append(p.sent, s)
	p.heard = append(p.heard, "")
	p.pending++
	p.last = time.Now()
	var v Verdict
	if p.rule != nil {
		v = p.rule(s)
	}
	return s, v
}

func (p *Proxy) answered(index int, raw string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard[index] = raw
	p.pending--
	p.last = time.Now()
}

// readCommand reads a command, an array of bulk strings.
func readCommand(in *bufio.Reader) (raw []byte, words []string, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	raw = append(raw, line...)
	if line[0] != '*' {
		words = strings.Fields(string(line))
		if len(words) == 0 {
			return nil, nil, fmt.Errorf("an empty command")
		}
		return raw, words, nil
	}
	n, err := count(line)
	if err != nil || n < 1 {
		return nil, nil, fmt.Errorf("a command of %d words: %w", n, err)
	}
	for range n {
		head, err := in.ReadBytes('\n')
		if err != nil {
			return nil, nil, err
		}
		size, err := count(head)
		if err != nil {
			return nil, nil, err
		}
		body := make([]byte, size+2)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, head...), body...)
		words = append(words, string(body[:size]))
	}
	return raw, words, nil
}

func count(line []byte) (int, error) { return strconv.Atoi(string(bytes.TrimSpace(line[1:]))) }

// readAnswer reads one value of RESP2 or RESP3 as it is on the wire.
func readAnswer(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	raw := append([]byte(nil), line...)
	values := 0
	switch line[0] {
	case '$', '=', '!':
		n, err := count(line)
		if err != nil || n < 0 {
			return raw, err
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(in, body)
		return append(raw, body...), err
	case '*', '~', '>':
		values, err = count(line)
	case '%', '|':
		values, err = count(line)
		values *= 2
	}
	for i := 0; i < values && err == nil; i++ {
		var inner []byte
		inner, err = readAnswer(in)
		raw = append(raw, inner...)
	}
	return raw, err
}
