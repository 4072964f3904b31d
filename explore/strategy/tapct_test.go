package strategy

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// planted runs a program with a bug that needs two orderings. Process a raises a flag and
// lowers it at once. Process b does much work first and must not see the flag raised. It
// sees it if its last command comes after a's first and before a's second. planted reports
// whether b saw the flag.
func planted(h *sim.Host, chooser sim.Chooser) (seen bool) {
	const work = 8
	sim.Run(h, sim.Config{
		Chooser:    chooser,
		LatencyMin: 100 * time.Microsecond, LatencyMax: 50 * time.Millisecond,
		Processes: []sim.ProcessConfig{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}},
		Name:      func([]string, sim.Author) sim.Command { return sim.Command{} },
		Nodes:     []sim.Node{{Addr: "192.0.2.1:6379", Server: simredis.New(simredis.Config{})}},
		Quiet:     time.Second, Settle: time.Second, Drain: time.Second,
	}, func(w *sim.World) {
		thread := func(name string, do func(ctx context.Context, rdb *redis.Client)) {
			p := w.Process(name)
			rdb := goredis.NewClient(p, goredis.Options(p, "192.0.2.1:6379"))
			p.OnClose(func() { _ = rdb.Close() })
			t := p.Threads()[0]
			t.Start(func() {
				t.Call(sim.Operation{}, func(ctx context.Context) (model.Outcome, error) {
					do(ctx, rdb)
					return model.Granted, nil
				})
			})
		}
		thread("a", func(ctx context.Context, rdb *redis.Client) {
			rdb.Set(ctx, "flag", 1, 0)
			rdb.Set(ctx, "flag", 0, 0)
		})
		thread("b", func(ctx context.Context, rdb *redis.Client) {
			for range work {
				rdb.Incr(ctx, "work")
			}
			seen = rdb.Get(ctx, "flag").Val() == "1"
		})
	})
	return seen
}

// The bug that is planted needs two orderings of arrivals at the server. Of all draws of TaPCT,
// which are an order of the actors and a decision at which one falls, at least as large a part
// meets it as the bound says. Fewer than two in three messages are decisions.
func TestTaPCTFindsWhatItPromises(t *testing.T) {
	h := sim.NewHost(t)
	seeds := map[bool]uint64{} // by whether a stands above b at first
	actors, decisions, messages := 0, 0, 0
	for seed := range uint64(20) {
		p := NewTaPCT(seed, 1, 1)
		all := sim.NewRecorder(p)
		planted(h, all)
		seeds[p.priority["a"] > p.priority["b"]] = seed
		drawn := 0
		for stream, draws := range all.Drawn {
			if strings.HasPrefix(stream, "latency/") {
				drawn += len(draws)
			}
		}
		actors, decisions, messages = max(actors, p.Actors()), max(decisions, p.Decisions()), max(messages, drawn)
	}
	if decisions*3 > messages*2 {
		t.Errorf("%d decisions of %d messages", decisions, messages)
	}
	bound := TaPCTBound(actors, decisions, 2)
	found, all := 0, 0
	for _, seed := range seeds {
		for at := 1; at <= decisions; at++ {
			p := NewTaPCT(seed, 1, 1)
			p.falls[at] = -1
			all++
			if planted(h, p) {
				found++
			}
		}
	}
	t.Logf("%d actors, %d decisions of %d messages: found by %d of %d draws, and the bound is %.4f", actors, decisions, messages, found, all, bound)
	if all != 2*decisions || float64(found) < bound*float64(all) {
		t.Errorf("found by %d of %d draws, less than the bound %.4f says", found, all, bound)
	}
	for seed := range uint64(100) {
		if planted(h, sim.NewSeeded(seed)) {
			t.Errorf("random latencies find it with seed %d: it is too easy", seed)
		}
	}
}

func TestTaPCTRepeats(t *testing.T) {
	h := sim.NewHost(t)
	one, two := sim.NewRecorder(NewTaPCT(7, 3, 50)), sim.NewRecorder(NewTaPCT(7, 3, 50))
	planted(h, one)
	planted(h, two)
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

func TestTaPCTBound(t *testing.T) {
	for _, c := range []struct {
		actors, decisions, depth int
		want                     float64
	}{
		{2, 100, 1, 0.5}, {2, 100, 2, 0.005}, {4, 10, 3, 0.0025}, {1, 1, 5, 1}, {0, 0, 1, 1},
	} {
		if got := TaPCTBound(c.actors, c.decisions, c.depth); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("TaPCTBound(%d, %d, %d) = %v, want %v", c.actors, c.decisions, c.depth, got, c.want)
		}
	}
}

// The lowest process draws the longest latency, and the highest the shortest. A process that
// falls at a decision is the lowest from its next message on.
func TestTaPCTLatencies(t *testing.T) {
	fell := 0
	for seed := range uint64(50) {
		p := NewTaPCT(seed, 2, 10)
		for _, name := range []string{"a", "b", "c"} { // the first three decisions
			p.Choose("entropy/"+name, 1<<62)
		}
		fallen := ""
		for name, priority := range p.priority {
			if priority < 0 {
				fallen = name
			}
		}
		for i := 4; i <= 20; i++ {
			name := []string{"a", "b", "c"}[i%3]
			got := p.Choose("latency/"+name+"/request", 101)
			if got != 0 && got != 50 && got != 100 {
				t.Fatalf("seed %d: latency %d of 0..100 with three processes", seed, got)
			}
			if fallen != "" && (name == fallen) != (got == 100) {
				t.Fatalf("seed %d: %s fell, and %s draws %d", seed, fallen, name, got)
			}
			if _, falls := p.falls[i]; falls {
				fallen = name
				fell++
			}
		}
		if fallen == "" {
			t.Fatalf("seed %d: nobody fell in the first 10 decisions", seed)
		}
	}
	if fell == 0 {
		t.Error("no process fell after its first appearance")
	}
}
