package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// listen serves each connection in a goroutine until the test ends, and returns its address.
func listen(t *testing.T, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// server answers each command with its words, LIST with a list that looks like a message, and
// SUBSCRIBE as Redis does, followed by a message.
func server(t *testing.T) string {
	return listen(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			_, words, err := ReadRequest(in)
			if err != nil {
				return
			}
			switch words[0] {
			case "SUBSCRIBE":
				for i, name := range words[1:] {
					_, _ = fmt.Fprintf(c, "*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(name), name, i+1)
				}
				_, _ = fmt.Fprint(c, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$2\r\nhi\r\n")
			case "LIST":
				_, _ = fmt.Fprint(c, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$2\r\nhi\r\n")
			default:
				_, _ = fmt.Fprintf(c, "+%s\r\n", strings.Join(words, "_"))
			}
		}
	})
}

// handler answers by the name of a command, and keeps what it hears.
type handler struct {
	request, reply map[string]Fate

	mu    sync.Mutex
	heard []string
}

func (h *handler) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, fmt.Sprintf(format, args...))
}

func (h *handler) Request(m *Message) Fate {
	h.note("request %s", strings.Join(m.Words, " "))
	return h.request[m.Words[0]]
}

func (h *handler) Answered(m *Message, raw []byte) Fate {
	h.note("reply to %s: %q", m.Words[0], raw)
	return h.reply[m.Words[0]]
}

func (h *handler) Unanswered(m *Message) { h.note("no reply to %s", m.Words[0]) }

func (h *handler) Pushed(_ *Conn, channel string, _ []byte) Fate {
	h.note("message on %s", channel)
	return Fate{}
}

func (h *handler) Closed(*Conn) { h.note("closed") }

func TestFates(t *testing.T) {
	gate := make(chan struct{})
	for _, c := range []struct {
		rule           string
		request, reply map[string]Fate
		send           string // commands, separated by spaces
		hears          string // what the client reads, until nothing comes
		knows          string // what the handler hears, separated by semicolons; "" means anything
	}{
		{rule: "all passes", send: "A B", hears: "+A +B", knows: `request A;request B;reply to A: "+A\r\n";reply to B: "+B\r\n";closed`},
		{rule: "a request is lost", request: map[string]Fate{"A": {Drop: true}}, send: "A B", hears: "+B"},
		{rule: "a reply is lost, and the connection lives on", reply: map[string]Fate{"A": {Drop: true}}, send: "A B", hears: "+B"},
		{rule: "a forged error stands in its place among replies", request: map[string]Fate{"B": {Error: "ERR made up"}}, send: "A B C", hears: "+A -ERR_made_up +C"},
		{rule: "a reply is forged", reply: map[string]Fate{"A": {Error: "ERR made up"}}, send: "A B", hears: "-ERR_made_up +B"},
		{rule: "what is late holds back what follows", reply: map[string]Fate{"A": {NotBefore: time.Now().Add(100 * time.Millisecond)}}, send: "A B", hears: "+A +B"},
		{rule: "a held reply waits for the end of the rule", reply: map[string]Fate{"A": {Until: gate}}, send: "A B", hears: ""},
		{rule: "a connection is cut in place of a request", request: map[string]Fate{"B": {Cut: true}}, send: "A B C", hears: "reset"},
		{rule: "each channel has a reply of its own, and a message is none", send: "SUBSCRIBE:x:y", hears: "*3 $9 subscribe $1 x :1 *3 $9 subscribe $1 y :2 *3 $7 message $1 x $2 hi",
			knows: `request SUBSCRIBE x y;reply to SUBSCRIBE: "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\ny\r\n:2\r\n";message on x;closed`},
		{rule: "a list that looks like a message is a reply where nobody subscribed", send: "LIST", hears: "*3 $7 message $1 x $2 hi",
			knows: `request LIST;reply to LIST: "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$2\r\nhi\r\n";closed`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			h := &handler{request: c.request, reply: c.reply}
			addr := server(t)
			p, err := Start(Options{Addr: "127.0.0.1:0", Handler: h, Dial: func() (net.Conn, error) { return net.Dial("tcp", addr) }})
			if err != nil {
				t.Fatal(err)
			}
			client, err := net.Dial("tcp", p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range strings.Fields(c.send) {
				words := strings.Split(command, ":")
				text := fmt.Sprintf("*%d\r\n", len(words))
				for _, w := range words {
					text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
				}
				if _, err := client.Write([]byte(text)); err != nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			var hears []string
			in := bufio.NewReader(client)
			for {
				_ = client.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
				line, err := in.ReadString('\n')
				if err != nil {
					if n, ok := err.(net.Error); !ok || !n.Timeout() {
						hears = []string{"reset"} // a reset may also lose what came before it
					}
					break
				}
				hears = append(hears, strings.ReplaceAll(strings.TrimSpace(line), " ", "_"))
			}
			if got := strings.Join(hears, " "); got != c.hears {
				t.Errorf("the client reads %q, want %q", got, c.hears)
			}
			_ = client.Close()
			p.Close()
			h.mu.Lock()
			defer h.mu.Unlock()
			if c.knows != "" && !sameInSomeOrder(h.heard, strings.Split(c.knows, ";")) {
				t.Errorf("the handler heard %q, want %q", h.heard, c.knows)
			}
		})
	}
}

// sameInSomeOrder reports whether two lists without repetitions have the same entries.
func sameInSomeOrder(a, b []string) bool {
	left := map[string]bool{}
	for _, x := range a {
		left[x] = true
	}
	for _, x := range b {
		if !left[x] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestAProxyThatRefusesSaysSo(t *testing.T) {
	addr := server(t)
	open := false
	p, err := Start(Options{Addr: "127.0.0.1:0", Handler: &handler{}, Welcome: func() bool { return open }, Dial: func() (net.Conn, error) { return net.Dial("tcp", addr) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	knock := func() error {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return Knock(c)
	}
	if err := knock(); err != ErrRefused {
		t.Errorf("knock: %v, want %v", err, ErrRefused)
	}
	open = true
	if err := knock(); err != nil {
		t.Errorf("knock: %v, want none", err)
	}
}

// The client's ends of its connections stay open after Sever, and the server gets nothing from the client.
func TestASeveredClientHearsNothing(t *testing.T) {
	addr := server(t)
	h := &handler{}
	p, err := Start(Options{Addr: "127.0.0.1:0", Handler: h, Dial: func() (net.Conn, error) { return net.Dial("tcp", addr) }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before := dial(t, p)
	if _, err := before.Write([]byte("*1\r\n$1\r\nA\r\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 16)
	if n, err := before.Read(answer); err != nil || string(answer[:n]) != "+A\r\n" {
		t.Fatalf("%q, %v", answer[:n], err)
	}
	p.Sever()
	after := dial(t, p)
	for name, c := range map[string]net.Conn{"opened before": before, "opened after": after} {
		if _, err := c.Write([]byte("*1\r\n$1\r\nB\r\n")); err != nil {
			t.Errorf("%s: %v; want an open end", name, err)
		}
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		var timeout net.Error
		if n, err := c.Read(answer); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: %q, %v; want silence", name, answer[:n], err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, heard := range h.heard {
		if strings.HasPrefix(heard, "reply to B") {
			t.Errorf("the server answered a severed client: %v", h.heard)
		}
	}
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	for raw, want := range map[string]string{
		"*0\r\n": "a command of 0 words", "*x\r\n": "invalid syntax", "*1\r\n$-5\r\nA\r\n": "a word of -5 bytes", "\r\n": "an empty command",
	} {
		if _, _, err := ReadRequest(bufio.NewReader(strings.NewReader(raw))); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%q: %v, want %s", raw, err, want)
		}
	}
}

func TestWhichValuesArePushes(t *testing.T) {
	for _, c := range []struct {
		raw, channel string
		pushed       bool
	}{
		{"*3\r\n$7\r\nmessage\r\n$6\r\norders\r\n$1\r\n0\r\n", "orders", true},
		{"*4\r\n$8\r\npmessage\r\n$2\r\no*\r\n$6\r\norders\r\n$1\r\n0\r\n", "orders", true},
		{">3\r\n$8\r\nsmessage\r\n$6\r\norders\r\n$1\r\n0\r\n", "orders", true},
		{">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\norders\r\n", "__redis__:invalidate", true},
		{"*2\r\n$10\r\ninvalidate\r\n$6\r\norders\r\n", "", false}, // a list that a script may return
		{">3\r\n$9\r\nsubscribe\r\n$6\r\norders\r\n:1\r\n", "", false},
		{"*1\r\n$6\r\norders\r\n", "", false},
		{":1\r\n", "", false},
	} {
		if channel, ok := pushed([]byte(c.raw)); channel != c.channel || ok != c.pushed {
			t.Errorf("%q: channel %q, %v; want %q, %v", c.raw, channel, ok, c.channel, c.pushed)
		}
	}
}
