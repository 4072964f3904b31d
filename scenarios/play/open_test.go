package play

import (
	"testing"

	"lockstep/lockimpl"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func TestAnOpenWithoutAClientIsAnError(t *testing.T) {
	l := &subject.Subject{Name: "own", Open: func(*sim.Process, subject.Options) (lockimpl.Client, error) { return nil, nil }}
	if _, err := open(l, nil, subject.Options{}); err == nil {
		t.Error("open returns no error for a client that is nil")
	}
}
