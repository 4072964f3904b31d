package sim

import (
	"context"
	"net"
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
		if by, got := p.SenderOf([]string{"GET", "orders"}); by != want || got != op {
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
			is("in a goroutine of a call that is over", Author{Thread: "a/2"}, 0)
		}()
		<-began
		p.Ends(2)
	})
	close(goOn)
	<-over

	defer p.Sending(OutsideCall(context.Background(), 9), "GET\x00orders")()
	is("words that an operation said it would send", Author{}, 9)
}
