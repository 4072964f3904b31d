package server

import (
	"testing"

	"lockstep/sim"
)

// A server that starts again within a millisecond gives no id of a session again.
func TestASessionIDIsGivenOnce(t *testing.T) {
	s := New()
	s.Start(sim.Setup{})
	given := s.nextID
	s.nextID++
	for _, keepData := range []bool{true, false} {
		if s.boot(0, keepData); s.nextID <= given {
			t.Errorf("keepData %v: the next id is %#x, and %#x was given", keepData, s.nextID, given)
		}
	}
}
