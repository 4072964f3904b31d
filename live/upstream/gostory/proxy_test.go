package gostory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// echo is a server that answers each request of the protocol of Redis with itself.
type echo struct{ net.Listener }

func (e echo) Addr() string { return e.Listener.Addr().String() }

func (echo) Restart(bool) {}

func serveEcho(t *testing.T, _ int) []Server {
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
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return []Server{echo{l}}
}

// asker is the lock of a client, which sends a command for each call.
type asker struct {
	net.Conn
	in *bufio.Reader
}

func (a asker) ask(command string) error {
	if _, err := io.WriteString(a, fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", len(command), command)); err != nil {
		return err
	}
	raw, words, _, err := respValue(a.in)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(string(raw), "-BUSY"):
		return ErrBusy
	case len(words) != 1 || words[0] != command:
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (asker) Lost() <-chan struct{} { return nil }

func (a asker) TryLock(context.Context) error { return a.ask("TAKE") }

func (a asker) Lock(context.Context) error { return a.ask("WAIT") }

func (a asker) Unlock(context.Context) error { return a.ask("FREE") }

type client struct{ asker }

func (c client) Lock(string) Lock { return c.asker }

// play plays a story of one thread, and returns its calls.
func play(t *testing.T, rule Rule, do func(*Thread)) []*call {
	t.Helper()
	s := NewStory(t, Library{Serve: serveEcho, Open: func(addrs []string) (Client, error) {
		c, err := net.Dial("tcp", addrs[0])
		return client{asker{c, bufio.NewReader(c)}}, err
	}, Split: Resp}, 1)
	s.Client("a")
	done := make(chan struct{})
	s.Thread("a/1", func(w *Thread) {
		defer close(done)
		do(w)
	})
	s.Rule(rule)
	s.Play(time.Minute)
	<-done
	return s.threads[0].calls
}

// A rule meets the messages that it names, and no other.
func TestARuleMeetsItsMessages(t *testing.T) {
	twice := func(w *Thread) {
		w.TryLock("x")
		w.Unlock("x")
	}
	for _, c := range []struct {
		name string
		rule Rule
		want string
	}{
		{"another client", Rule{Client: "b", Do: "error", With: "BUSY"}, "granted released"},
		{"an answer of the proxy", Rule{Role: "acquire", Direction: "request", Do: "error", With: "BUSY"}, "busy released"},
		{"by the name of the command", Rule{Command: "FREE", Direction: "request", Do: "reset"}, "granted error"},
		{"the second message", Rule{Direction: "request", Nth: 2, Do: "reset"}, "granted error"},
		{"a rule that begins later", Rule{Direction: "request", From: time.Hour, Do: "reset"}, "granted released"},
		{"a reply", Rule{Direction: "reply", Role: "unlock", Do: "reset"}, "granted error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, x := range play(t, c.rule, twice) {
				outcome, _, _ := strings.Cut(x.outcome, ":")
				got = append(got, outcome)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

// A message that is late is late by what the rule says.
func TestADelayedMessageIsLate(t *testing.T) {
	calls := play(t, Rule{Direction: "request", Do: "delay", Delay: 300 * time.Millisecond}, func(w *Thread) { w.TryLock("x") })
	if d := calls[0].to - calls[0].from; calls[0].outcome != "granted" || d < 300*time.Millisecond {
		t.Errorf("%s after %v", calls[0].outcome, d)
	}
}

// failing is a testing.T of its own for each assertion that must fail.
func failing(t *testing.T, assert func(s *Story)) bool {
	t.Helper()
	inner := &testing.T{}
	s := &Story{t: inner, clients: map[string]*process{"a": {name: "a"}, "b": {name: "b"}}, begun: time.Now().Add(-10 * time.Second)}
	a, b := &Thread{s: s, name: "a/1", p: s.clients["a"]}, &Thread{s: s, name: "b/1", p: s.clients["b"]}
	a.holds = []*belief{{lock: "x", from: time.Second, to: 4 * time.Second}}
	b.holds = []*belief{{lock: "x", from: 3 * time.Second, to: -1, lease: 5 * time.Second}}
	b.calls = []*call{{role: "acquire", lock: "x", outcome: "busy", from: 2 * time.Second, to: 3 * time.Second}, {role: "acquire", lock: "x", from: 6 * time.Second, wait: -1}}
	for i := range 30 {
		s.clients["b"].sent = append(s.clients["b"].sent, time.Duration(i)*40*time.Millisecond)
	}
	s.threads = []*Thread{a, b}
	assert(s)
	return inner.Failed()
}

// Each assertion fails for the defect that it is about, and for no other.
func TestAssertionsFailForTheirDefect(t *testing.T) {
	for _, c := range []struct {
		name   string
		assert func(s *Story)
		want   bool
	}{
		{"two owners", func(s *Story) { s.AssertOneOwner("x") }, true},
		{"of another lock", func(s *Story) { s.AssertOneOwner("y") }, false},
		{"a refusal", func(s *Story) { s.AssertCallIsNot("b/1", 1, "busy") }, true},
		{"another outcome", func(s *Story) { s.AssertCallIsNot("b/1", 1, "released") }, false},
		{"a waiter", func(s *Story) { s.AssertWaiterIsServed("x", "b/1", 3*time.Second) }, true},
		{"a waiter within the bound", func(s *Story) { s.AssertWaiterIsServed("x", "b/1", time.Minute) }, false},
		{"late", func(s *Story) { s.AssertReturnsInTime("b/1", 1, 500*time.Millisecond) }, true},
		{"in time", func(s *Story) { s.AssertReturnsInTime("b/1", 1, 2*time.Second) }, false},
		{"often", func(s *Story) { s.AssertAsksSeldom("b/1", 20) }, true},
		{"not that often", func(s *Story) { s.AssertAsksSeldom("b/1", 26) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := failing(t, c.assert); got != c.want {
				t.Errorf("it fails: %v, want %v", got, c.want)
			}
		})
	}
}
