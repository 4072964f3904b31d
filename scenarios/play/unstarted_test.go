package play

import (
	"errors"
	"strings"
	"testing"

	"lockstep/scenarios"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// weak has a server more, which does not start in some worlds.
type weak struct {
	subject.Servers
	fails func() bool
}

func (s weak) New(locks []string, o subject.ServerOptions) subject.World {
	w := s.Servers.New(locks, o)
	w.Nodes = append(w.Nodes, sim.Node{Addr: "127.0.0.9:1", Server: sim.Segments(starting{s.fails()})})
	return w
}

type starting struct{ fails bool }

func (s starting) Boot(setup sim.Setup) error {
	setup.Listen()
	if s.fails {
		return errors.New("no room")
	}
	return nil
}

func (starting) Parts() sim.Parts { return sim.Parts{Stop: func() {}} }

// A server that does not start is no fault of the lock: not in one of two plays, either.
func TestAServerThatDoesNotStart(t *testing.T) {
	sc, err := scenarios.Find("crashed-holder")
	if err != nil {
		t.Fatal(err)
	}
	l := *scenariotest.Lock(t, "reference")
	h, started := sim.NewHost(t), 0
	for name, c := range map[string]struct {
		fails func(n int) bool
		why   string
	}{
		"never":               {func(int) bool { return false }, ""},
		"in the first world":  {func(n int) bool { return n == 1 }, "the server at 127.0.0.9:1 did not start: no room. This is of the machine"},
		"in the second world": {func(n int) bool { return n == 2 }, "the server at 127.0.0.9:1 did not start: no room. This is of the machine"},
	} {
		t.Run(name, func(t *testing.T) {
			started = 0
			own := l
			own.Servers = weak{l.Servers, func() bool { started++; return c.fails(started) }}
			v := RunTwice(h.For(t), sc, &own, 1)
			if (v.Word == VerdictUndecided) != (c.why != "") || c.why != "" && v.AsExpected || v.Word == VerdictNondeterministic || v.Word == VerdictBug || !strings.HasPrefix(v.Why, c.why) {
				t.Errorf("the verdict is %s: %q", v.Word, v.Why)
			}
			if again := RunTwice(h.For(t), sc, &own, 1); again.Word == VerdictUndecided {
				t.Errorf("when it starts, the verdict is %q", again.Why)
			}
		})
	}
}
