package gostory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// echo is a server that answers each request of the protocol of Redis with itself.
type echo struct{ net.Listener }

func (e echo) Addr() string { return e.Listener.Addr().String() }

func (echo) Restart(bool) {}

func serveEcho(t *testing.T) Server {
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
	return echo{l}
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
	raw, words, err := respValue(a.in)
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

func (a asker) TryLock(context.Context) error { return a.ask("TAKE") }

func (a asker) Lock(context.Context) error { return a.ask("WAIT") }

func (a asker) Unlock(context.Context) error { return a.ask("FREE") }

func openAsker(addrs []string) (func(string) Lock, error) {
	c, err := net.Dial("tcp", addrs[0])
	return func(string) Lock { return asker{c, bufio.NewReader(c)} }, err
}

// play plays a story of one thread on a network that add adds to, and returns its calls.
func play(t *testing.T, add func(*Network), do func(*Thread)) []*call {
	t.Helper()
	s := NewStory(t, Library{Serve: serveEcho, Open: openAsker}, 1)
	n := s.Network(Resp)
	s.Client("a")
	done := make(chan struct{})
	s.Thread("a/1", func(w *Thread) {
		defer close(done)
		do(w)
	})
	add(n)
	s.Play(time.Minute)
	<-done
	return s.threads[0].calls
}

// outcomes writes the outcomes of calls.
func outcomes(calls []*call) string {
	var all []string
	for _, c := range calls {
		switch {
		case c.err == nil:
			all = append(all, "success")
		case errors.Is(c.err, ErrBusy):
			all = append(all, "busy")
		default:
			all = append(all, "error")
		}
	}
	return strings.Join(all, " ")
}

func twice(w *Thread) {
	w.At(20 * time.Millisecond)
	w.TryLock("x")
	w.Unlock("x")
}

// A rule meets the messages that it names, and no other.
func TestARuleMeetsItsMessages(t *testing.T) {
	during := func(s *Story, role string) func(*Message) bool { return s.During(role) }
	for _, c := range []struct {
		name string
		rule func(s *Story) Rule
		want string
	}{
		{"another client", func(*Story) Rule { return Rule{Client: "b", Do: Refuse("BUSY")} }, "success success"},
		{"an answer of the proxy", func(s *Story) Rule { return Rule{If: during(s, "acquire"), Direction: "request", Do: Refuse("BUSY")} }, "busy success"},
		{"by the name of the command", func(*Story) Rule { return Rule{Command: "FREE", Direction: "request", Do: Reset} }, "success error"},
		{"the second message", func(*Story) Rule { return Rule{Direction: "request", Nth: 2, Do: Reset} }, "success error"},
		{"a rule that begins later", func(*Story) Rule { return Rule{Direction: "request", From: time.Hour, Do: Reset} }, "success success"},
		{"a rule that is over", func(*Story) Rule { return Rule{Direction: "request", Until: 10 * time.Millisecond, Do: Reset} }, "success success"},
		{"a reply", func(s *Story) Rule { return Rule{Direction: "reply", If: during(s, "unlock"), Do: Reset} }, "success error"},
		{"the reply to a command", func(*Story) Rule { return Rule{Direction: "reply", Command: "FREE", Do: Reset} }, "success error"},
		{"a loss", func(*Story) Rule { return Rule{Direction: "reply", Nth: 1, Do: Drop} }, "error error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := outcomes(play(t, func(n *Network) { n.Rule(c.rule(n.s)) }, twice)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A rule, or the latency of the network, delays a message by the time that it names.
func TestADelayedMessageIsLate(t *testing.T) {
	const late = 300 * time.Millisecond
	for name, add := range map[string]func(*Network){
		"delay":   func(n *Network) { n.Rule(Rule{Direction: "request", Do: Delay(late)}) },
		"hold":    func(n *Network) { n.Rule(Rule{Direction: "request", Do: HoldUntil(late)}) },
		"latency": func(n *Network) { n.Latency(late / 2) },
	} {
		calls := play(t, add, func(w *Thread) { w.TryLock("x") })
		if d := calls[0].to - calls[0].from; outcomes(calls) != "success" || d < late-slack {
			t.Errorf("%s: %s after %v", name, outcomes(calls), d)
		}
	}
}

// A client that is cut off or crashes hears nothing, and its connections end.
func TestACutEndsWithAReset(t *testing.T) {
	for name, add := range map[string]func(*Network){
		"cut":              func(n *Network) { n.Cut("a", 0, 300*time.Millisecond) },
		"cut off a server": func(n *Network) { n.Cut("a", 0, 300*time.Millisecond, 1) },
		"crash":            func(n *Network) { n.Crash("a", 0) },
	} {
		if got := outcomes(play(t, add, twice)); got != "error error" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := outcomes(play(t, func(n *Network) { n.Cut("a", 0, 300*time.Millisecond, 2) }, twice)); got != "success success" {
		t.Errorf("cut off another server: %s", got)
	}
}

// asserting has a testing.T of its own for an assertion that may fail.
func asserting(t *testing.T, assert func(s *Story)) bool {
	t.Helper()
	inner := &testing.T{}
	s := &Story{t: inner, servers: []Server{nowhere{}}, begun: time.Now().Add(-10 * time.Second)}
	granted := func(from, to time.Duration) *call {
		return &call{role: "acquire", lock: "x", from: from, to: to, over: true}
	}
	a := &Thread{s: s, name: "a/1", calls: []*call{granted(500*time.Millisecond, time.Second), {role: "unlock", lock: "x", from: 4 * time.Second, to: 4 * time.Second, over: true}}}
	b := &Thread{s: s, name: "b/1", calls: []*call{
		{role: "acquire", lock: "x", from: 2 * time.Second, to: 3 * time.Second, over: true, err: ErrBusy}, {role: "acquire", lock: "x", from: 6 * time.Second},
	}}
	lost := granted(2*time.Second, 3*time.Second)
	lost.lost = 5 * time.Second
	c := &Thread{s: s, name: "c/1", calls: []*call{lost}}
	s.threads = []*Thread{a, b, c}
	assert(s)
	return inner.Failed()
}

// nowhere is a server that only has an address.
type nowhere struct{}

func (nowhere) Addr() string { return "" }

func (nowhere) Restart(bool) {}

// Each assertion fails for the defect that it is about, and for no other.
func TestAssertionsFailForTheirDefect(t *testing.T) {
	places := func(n int) func(string, string) (int, error) {
		return func(string, string) (int, error) { return n, nil }
	}
	ttl := func(d time.Duration) func(string, string) (time.Duration, error) {
		return func(string, string) (time.Duration, error) { return d, nil }
	}
	asks := func(most int) func(s *Story) {
		return func(s *Story) {
			n := &Network{s: s, sent: map[string][]time.Duration{}}
			for i := range 30 {
				n.sent["b"] = append(n.sent["b"], time.Duration(i)*40*time.Millisecond)
			}
			n.AssertAsksSeldom(most)
		}
	}
	for _, c := range []struct {
		name   string
		assert func(s *Story)
		want   bool
	}{
		{"two owners", func(s *Story) { s.AssertOneOwner("x") }, true},
		{"two owners of another lock", func(s *Story) { s.AssertOneOwner("y") }, false},
		{"the lease of the first is over", func(s *Story) { s.library.Lease = 2 * time.Second; s.AssertOneOwner("x") }, false},
		{"the first was told in time", func(s *Story) { s.threads[0].calls[0].lost = 2 * time.Second; s.AssertOneOwner("x") }, false},
		{"a refusal", func(s *Story) { s.AssertCallIsNot("b/1", 1, ErrBusy) }, true},
		{"another answer", func(s *Story) { s.AssertCallIsNot("b/1", 1, ErrNotHeld) }, false},
		{"a success", func(s *Story) { s.AssertCallFails("a/1", 2) }, true},
		{"no success", func(s *Story) { s.AssertCallFails("b/1", 1) }, false},
		{"a call under way", func(s *Story) { s.AssertCallFails("b/1", 2) }, false},
		{"a waiter", func(s *Story) { s.AssertWaiterIsServed("x", "b/1", 3*time.Second) }, true},
		{"a waiter within the bound", func(s *Story) { s.AssertWaiterIsServed("x", "b/1", time.Minute) }, false},
		{"a waiter for a lock that is held", func(s *Story) { s.threads[2].calls[0].lost = 0; s.AssertWaiterIsServed("x", "b/1", 3*time.Second) }, false},
		{"late", func(s *Story) { s.AssertReturnsWithin("b/1", 1, 500*time.Millisecond) }, true},
		{"not at all", func(s *Story) { s.AssertReturnsWithin("b/1", 2, time.Second) }, true},
		{"in time", func(s *Story) { s.AssertReturnsWithin("b/1", 1, time.Second) }, false},
		{"a ghost", func(s *Story) { s.AssertNoGhost("x", "a/1", places(2)) }, true},
		{"a place for each", func(s *Story) { s.AssertNoGhost("x", "a/1", places(1)) }, false},
		{"a thread that waits", func(s *Story) { s.AssertNoGhost("x", "b/1", places(2)) }, false},
		{"an endless hold", func(s *Story) { s.AssertHoldEnds("x", ttl(0)) }, true},
		{"a hold that ends", func(s *Story) { s.AssertHoldEnds("x", ttl(time.Second)) }, false},
		{"often", asks(20), true},
		{"not that often", asks(26), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := asserting(t, c.assert); got != c.want {
					t.Errorf("it fails: %v, want %v", got, c.want)
				}
			})
		})
	}
}

// Requests count for the client that sends them while it acquires a lock.
func TestRequestsOfAcquiresAreCounted(t *testing.T) {
	var n *Network
	play(t, func(network *Network) {
		n = network
		n.CountRequests()
	}, func(w *Thread) {
		twice(w)
		twice(w)
	})
	if got := len(n.sent["a"]); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}
