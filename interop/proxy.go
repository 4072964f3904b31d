//go:build interop

package interop

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/live/proxy"
)

// Proxy stands between one client and one server: it records the client's commands, and loses,
// delays or forges answers as its rule says. It knows nothing of locks.
type Proxy struct {
	Addr string // host:port to connect to

	proxy  *proxy.Proxy
	target string
	born   time.Time
	ports  *strings.Replacer // replaces the ports in a cluster's description of its nodes; nil: none

	mu      sync.Mutex
	rule    func(Sent) Verdict
	sent    []Sent
	heard   []string // the answer to each command of sent, as it was on the wire
	pending int      // commands without an answer
	last    time.Time
}

// Sent is one command as a client sent it.
type Sent struct {
	Words []string
	At    time.Duration // since the proxy was made
	Conn  int           // which of the client's connections
	Index int           // its place among all commands of the proxy
}

// Is reports whether the command has the name, in upper or lower case.
func (s Sent) Is(name string) bool { return strings.EqualFold(s.Words[0], name) }

// Verdict says what happens to a command. The zero value lets it pass.
type Verdict struct {
	// Hold delays the command on its way to the server, and all commands after it on its
	// connection.
	Hold time.Duration
	// Delay delays its answer, and all answers after it.
	Delay time.Duration
	// Drop loses the answer; the connection lives on.
	Drop bool
	// Cut ends the connection in place of the answer.
	Cut bool
	// CutBefore ends the connection in place of sending it to the server.
	CutBefore bool
	// Error is sent as the answer, and the command does not reach the server. It begins with the
	// code of the error.
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
	p := &Proxy{target: target, born: time.Now()}
	x, err := proxy.Start(proxy.Options{Addr: "127.0.0.1:0", Handler: p, Dial: func() (net.Conn, error) { return net.Dial("tcp", target) }})
	if err != nil {
		return nil, err
	}
	p.proxy, p.Addr = x, x.Addr()
	return p, nil
}

// Sever makes the server see a crash of the client, see proxy.Proxy.Sever.
func (p *Proxy) Sever() { p.proxy.Sever() }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.proxy.Close()
}

// proxiesAgain returns new proxies of the same servers. If the servers name one another, as the
// nodes of a cluster do, clients learn the addresses of the new proxies.
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

// rename puts the addresses of the client's proxies into a cluster's description of its nodes.
func (p *Proxy) rename(command string, raw []byte) []byte {
	if p.ports == nil || !strings.EqualFold(command, "CLUSTER") && !bytes.HasPrefix(raw, []byte("-MOVED")) {
		return raw
	}
	return []byte(p.ports.Replace(string(raw)))
}

// Rule sets the function that decides about each command from now on; nil lets all pass.
func (p *Proxy) Rule(rule func(Sent) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// Sent returns the commands from the given index on.
func (p *Proxy) Sent(from int) []Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Sent(nil), p.sent[from:]...)
}

// Answer returns the server's answer to a command, as it was on the wire; "" if there was none.
func (p *Proxy) Answer(s Sent) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[s.Index]
}

// Now returns the time on the clock of Sent.At.
func (p *Proxy) Now() time.Duration { return time.Since(p.born) }

// Quiet returns when nothing was sent for the time calm and no command waits for an answer, or when
// limit is over.
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

// asked is a command under way.
type asked struct {
	index   int
	verdict Verdict
	listens bool // its answers cannot be distinguished from messages
	once    sync.Once
}

// Request implements proxy.Handler.
func (p *Proxy) Request(m *proxy.Message) proxy.Fate {
	s, v := p.note(m.Conn.ID, m.Words)
	a := &asked{index: s.Index, verdict: v, listens: subscribes(m.Words[0])}
	m.Data = a
	if v.Hold > 0 {
		time.Sleep(v.Hold)
	}
	switch {
	case v.CutBefore:
		p.answered(a, "")
		return proxy.Fate{Cut: true}
	case v.Error != "":
		return proxy.Fate{Error: v.Error, Done: func(bool, time.Time) { p.answered(a, "") }}
	}
	return proxy.Fate{}
}

func subscribes(name string) bool { return strings.HasSuffix(strings.ToUpper(name), "SUBSCRIBE") }

// Answered implements proxy.Handler.
func (p *Proxy) Answered(m *proxy.Message, raw []byte) proxy.Fate {
	a := m.Data.(*asked)
	if a.listens {
		p.answered(a, "")
		return proxy.Fate{}
	}
	raw = p.rename(m.Words[0], raw)
	p.answered(a, string(raw))
	f := proxy.Fate{Instead: raw, Cut: a.verdict.Cut, Drop: a.verdict.Drop}
	if a.verdict.Delay > 0 {
		f.NotBefore = time.Now().Add(a.verdict.Delay)
	}
	return f
}

// Unanswered implements proxy.Handler.
func (p *Proxy) Unanswered(m *proxy.Message) { p.answered(m.Data.(*asked), "") }

// Pushed implements proxy.Handler.
func (*Proxy) Pushed(*proxy.Conn, string, []byte) proxy.Fate { return proxy.Fate{} }

// Closed implements proxy.Handler.
func (*Proxy) Closed(*proxy.Conn) {}

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

func (p *Proxy) answered(a *asked, raw string) {
	a.once.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.heard[a.index] = raw
		p.pending--
		p.last = time.Now()
	})
}
