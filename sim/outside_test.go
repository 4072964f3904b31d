package sim

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"lockstep/model"
)

// A process that is in no world knows for whom its goroutines write.
func TestWhoWritesOutsideOfAWorld(t *testing.T) {
	p := NewOutside(ProcessConfig{Name: "a", Threads: 2}, 0, 1, time.Now(), (&net.Dialer{}).DialContext)
	in := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	is := func(what string, want Author, op int) {
		t.Helper()
		by, got := p.SenderOf([]string{"GET", "orders"})
		if by.in = nil; by != want || got != op {
			t.Errorf("%s: %+v in operation %d, want %+v in %d", what, by, got, want, op)
		}
	}
	is("nobody calls", Author{}, 0)
	take := Operation{Action: model.ActLock, Lock: "orders"}
	began, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	in(func() {
		p.Enters(2)
		is("between calls", Author{Thread: "a/2"}, 0)
		p.Begins(2, 7, take)
		call := Author{Thread: "a/2", Op: 7, Action: model.ActLock, Lock: "orders"}
		is("in a call", call, 7)
		in(func() { is("in a goroutine of the call", call, 7) })
		go func() {
			defer close(over)
			is("in a goroutine of the call that goes on", call, 7)
			close(began)
			<-goOn
			is("in a goroutine that wrote in a call that is over", Author{}, 0)
		}()
		<-began
		p.Ends(2)
	})
	close(goOn)
	<-over

	defer p.Sending(OutsideCall(context.Background(), 9), "GET\x00orders")()
	is("words that an operation said it would send", Author{}, 9)
}

// Bytes that a process writes on a stream in real time belong to the goroutine that has the turn.
// The next one that asks waits until something was written, or for a short time.
func TestTurnsInRealTime(t *testing.T) {
	p := NewOutside(ProcessConfig{Name: "a", Threads: 2}, 0, 1, time.Now(), nil)
	p.TakesTurns()
	if by, asked := p.SpeakerOf(); by != (Author{}) || asked != nil {
		t.Errorf("before anybody asks: %+v, %q", by, asked)
	}
	begun := time.Now()
	for n, word := range []string{"one", "two"} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Enters(n + 1)
			p.Begins(n+1, n+1, Operation{Action: model.ActLock, Lock: "orders"})
			p.Asks([]string{word})
		}()
		<-done
		if n == 0 {
			continue // this turn writes nothing
		}
		// If the machine stands still for longer than a turn, the bytes belong to nobody.
		if by, asked := p.SpeakerOf(); by != (Author{}) && (by.Thread != "a/2" || by.Op != 2 || !slices.Equal(asked, []string{word})) {
			t.Errorf("in the turn of thread 2: %+v, %q", by, asked)
		}
	}
	if waited := time.Since(begun); waited < askedMost {
		t.Errorf("the second had its turn after %v, want %v at least: the first had not written", waited, askedMost)
	}
}
