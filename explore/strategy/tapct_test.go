package strategy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/sim"
)

// The bug that is planted needs two orderings of arrivals at the server. Of all draws of TaPCT,
// which are an order of the actors and a decision at which one falls, at least as large a part
// meets it as the bound says. TaPCT has fewer decisions than PCT, so its bound is better.
func TestTaPCTFindsWhatItPromises(t *testing.T) {
	h := sim.NewHost(t)
	seeds := map[bool]uint64{} // by whether a stands above b at first
	actors, decisions, ofPCT := 0, 0, 0
	for seed := range uint64(20) {
		p, a := NewPCT(seed, 1, 1), NewTaPCT(seed, 1, 1)
		planted(h, p, nil)
		planted(h, a, nil)
		seeds[a.priority["a"] > a.priority["b"]] = seed
		actors, decisions, ofPCT = max(actors, a.Actors()), max(decisions, a.Decisions()), max(ofPCT, p.Decisions())
	}
	if decisions*3 > ofPCT*2 {
		t.Errorf("%d decisions, and PCT has %d", decisions, ofPCT)
	}
	bound := PCTBound(actors, decisions, 2)
	found, all := 0, 0
	for _, seed := range seeds {
		for at := 1; at <= decisions; at++ {
			p := NewTaPCT(seed, 1, 1)
			p.falls[at] = -1
			all++
			if planted(h, p, nil) {
				found++
			}
		}
	}
	t.Logf("%d actors, %d decisions (PCT: %d): found by %d of %d draws, and the bound is %.4f", actors, decisions, ofPCT, found, all, bound)
	if all != 2*decisions || float64(found) < bound*float64(all) {
		t.Errorf("found by %d of %d draws, less than the bound %.4f says", found, all, bound)
	}
	if all == found {
		t.Error("every draw finds it: it depends on no order")
	}
}

func TestTaPCTRepeats(t *testing.T) {
	h := sim.NewHost(t)
	one, two := sim.NewRecorder(NewTaPCT(7, 3, 50)), sim.NewRecorder(NewTaPCT(7, 3, 50))
	planted(h, one, nil)
	planted(h, two, nil)
	if fmt.Sprint(one.Drawn) != fmt.Sprint(two.Drawn) {
		t.Error("the same seed drew otherwise")
	}
}

// An actor falls when something has left for a server, a replica or a resource, and at nothing
// else: the message itself still takes the time of the place before.
func TestTaPCTFallsWhereOthersArrive(t *testing.T) {
	for _, c := range []struct {
		stream string
		falls  bool
	}{
		{"latency/a/request", true}, {"latency/a/resource", true},
		{"latency/a/reply", false}, {"latency/a/close", false}, {"latency/a/cut", false}, {"jitter/a", false},
	} {
		for seed := range uint64(10) {
			p := NewTaPCT(seed, 1, 1)
			p.falls[3] = -1 // after the decisions of two actors that are new
			p.Choose("entropy/a", 1<<62)
			p.Choose("entropy/b", 1<<62)
			first := p.priority["a"] > p.priority["b"]
			drawn := p.Choose(c.stream, 101)
			if fell := p.priority["a"] < 0; fell != c.falls || p.Decisions() == 3 != c.falls {
				t.Errorf("seed %d, %s: a fell: %t, decisions: %d", seed, c.stream, fell, p.Decisions())
			}
			if c.falls && (drawn == 0) != first {
				t.Errorf("seed %d, %s: a took %d, and stood above b: %t", seed, c.stream, drawn, first)
			}
		}
	}
	p := NewTaPCT(1, 1, 1)
	for i, stream := range []string{"lag/1/write", "lag/1/ack", "lag/2/write"} {
		if p.Choose(stream, 5); p.Decisions() != []int{2, 3, 5}[i] {
			t.Errorf("%s: %d decisions", stream, p.Decisions())
		}
	}
}

// seen is a Chooser of orders that keeps the line and the effect of each step.
type seen struct {
	noting
	among []sim.Candidate
	lines []string
}

func (s *seen) Offer(_ int, among []sim.Candidate) bool {
	s.among = among
	if len(among) == 1 {
		s.lines = append(s.lines, among[0].Line)
	}
	return true
}

func (s *seen) Choose(stream string, n uint64) uint64 {
	i := s.noting.Choose(stream, n)
	if stream == "order" {
		s.lines = append(s.lines, s.among[i].Line)
	}
	return i
}

// What TaPCT leaves to chance commutes with the steps of other processes: of two steps of
// different processes that depend on each other, as the exhaustive search knows it, both
// arrive at a server or a resource. (Judges can tell some steps apart that touch nothing in common,
// which is left out here.)
func TestOnlyArrivalsDependOnOtherProcesses(t *testing.T) {
	h := sim.NewHost(t)
	pairs := map[string]int{}
	for _, name := range []string{"setnx-del", "redisson@4.7.0", "redisson-fair@4.7.0", "string-reentrant"} {
		l := scenariotest.Lock(t, name)
		sc := scenariotest.Parse(t, SmallCase(l))
		for seed := range uint64(5) {
			s := &seen{noting: noting{Chooser: sim.NewSeeded(seed)}}
			play.PlayIn(h, sc, l, s, &sim.Orders{})
			if len(s.lines) < len(s.effects) {
				t.Fatalf("%d lines, %d effects", len(s.lines), len(s.effects))
			}
			for i, a := range s.effects {
				for j, b := range s.effects[:i] {
					one, two := s.lines[i], s.lines[j]
					if processOf(one) == processOf(two) || !touch(a, b) {
						continue
					}
					kinds := []string{kindOf(one), kindOf(two)}
					slices.Sort(kinds)
					pairs[strings.Join(kinds, ", ")]++
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(pairs)); !slices.Equal(got, []string{"to server, to server"}) {
		t.Errorf("these steps of different processes depend on each other: %v", pairs)
	}
}

// processOf returns the process of a line, which has the name of the process first.
func processOf(line string) string { return line[:strings.IndexAny(line, "#/")] }

// kindOf returns what a line carries.
func kindOf(line string) string {
	if _, what, ok := strings.Cut(line, " "); ok {
		return what
	}
	return "step"
}
