package redis

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"lockstep/sim"
)

func TestARunDrawsTheSameForAProcessThatOthersLeave(t *testing.T) {
	h := sim.NewHost(t)
	drawn := func(bodies ...string) sim.Decisions {
		c := sim.NewRecorder(sim.NewSeeded(5))
		s := busy(c)
		s.Faults = nil
		for name := range s.bodies {
			if !slices.Contains(bodies, name) {
				delete(s.bodies, name)
			}
		}
		s.run(h)
		return c.Drawn
	}
	all, alone := drawn("a/1", "b/1"), drawn("a/1")
	for _, stream := range []string{"entropy/a", "latency/a/request", "latency/a/reply"} {
		n := min(len(all[stream]), len(alone[stream]), 20)
		if n == 0 {
			t.Fatalf("nothing drawn from %s", stream)
		}
		equal(t, stream, fmt.Sprint(all[stream][:n]), fmt.Sprint(alone[stream][:n]))
	}
}

func TestAReplayedRunGivesTheSameDigest(t *testing.T) {
	h := sim.NewHost(t)
	recorder := sim.NewRecorder(sim.NewSeeded(42))
	want := busy(recorder).run(h).Record.Digest()

	text, err := json.Marshal(recorder.Drawn) // as a recording keeps it
	if err != nil {
		t.Fatal(err)
	}
	var drawn sim.Decisions
	if err := json.Unmarshal(text, &drawn); err != nil {
		t.Fatal(err)
	}
	exact := sim.NewReplayer(drawn)
	again := sim.NewRecorder(exact)
	equal(t, "digest of the replay", busy(again).run(h).Record.Digest(), want)
	equal(t, "diverged", exact.Diverged(), "")
	for stream, d := range drawn {
		equal(t, "decisions used of "+stream, len(again.Drawn[stream]), len(d))
	}

	short := maps.Clone(drawn)
	short["latency/a/request"] = short["latency/a/request"][:3]
	diverging := sim.NewReplayer(short)
	if busy(diverging).run(h).Record.Digest() == want {
		t.Error("a shortened recording gives the same digest")
	}
	equal(t, "diverged", diverging.Diverged(), "decision 4 of latency/a/request is not in the recording")

	lenient := sim.NewLenientReplayer(short)
	busy(lenient).run(h)
	equal(t, "lenient diverged", lenient.Diverged(), "")
}
