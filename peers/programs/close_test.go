package programs

import (
	"fmt"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// closing has a client that is closed at 2 s. One of its threads then waits for a lock, which is given up later, and
// another asks for a free lock after that.
const closing = `lockstep: 1
name: closing
locks: [%s]
network: {latency: 1ms}
processes: {a: {threads: 3}, b: {}}
steps:
  a/1: [{lock: y}, {unlock: y}, {at: 3s}, {try_lock: {name: y, wait: 5s}}]
  a/2: [{at: 1s}, {lock: x}]
  a/3: [{at: 2s}, close]
  b/1: [{at: 500ms}, {lock: x}, {at: 4s}, {unlock: x}]
`

// A client that is closed is granted nothing, neither in a call that waits nor in a later one. It is granted a
// lock before.
func TestAClosedClientIsGrantedNothing(t *testing.T) {
	h := sim.NewHost(t)
	if err := locktest.Register(h, Locks()...); err != nil {
		t.Fatal(err)
	}
	for _, s := range Locks() {
		t.Run(s.Name, func(t *testing.T) {
			h := h.For(t)
			l, err := subject.Find(s.Name)
			if err != nil {
				t.Fatal(err)
			}
			sc, err := scenarios.Parse("closing.yaml", fmt.Appendf(nil, closing, s.Name), scenarios.AnyLock)
			if err != nil {
				t.Fatal(err)
			}
			before := 0
			for _, o := range trace.New(play.Play(h, sc, l, sim.NewSeeded(1)).Record).Calls {
				switch {
				case o.Process != "a" || o.Outcome != model.Granted:
				case o.ReturnedNs() < int64(2*time.Second):
					before++
				default:
					t.Errorf("%s was granted %s at %v", o.Caller, o.Lock, time.Duration(o.ReturnedNs()))
				}
			}
			if before != 1 {
				t.Errorf("the client was granted %d locks before it was closed, want 1", before)
			}
		})
	}
}
