package strategy

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// planted runs a program with a bug that needs two orderings. Process a raises a flag and
// lowers it at once. Process b does much work first and must not see the flag raised. It
// sees it if its last command comes after a's first and before a's second. planted reports
// whether b saw the flag.
func planted(h *sim.Host, chooser sim.Chooser, orders *sim.Orders) (seen bool) {
	const work = 8
	sim.Run(h, sim.Config{
		Chooser: chooser, Orders: orders,
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

func TestPCTFindsWhatItPromises(t *testing.T) {
	h := sim.NewHost(t)
	const runs = 300
	for _, mode := range []struct {
		name   string
		orders *sim.Orders
	}{
		{"orders", &sim.Orders{}},
		{"latencies", nil},
	} {
		t.Run(mode.name, func(t *testing.T) {
			h := h.For(t)
			actors, decisions := 0, 0
			for seed := range uint64(20) { // count the actors and decisions for the bound
				p := NewPCT(seed, 1, 1)
				planted(h, p, mode.orders)
				actors, decisions = max(actors, p.Actors()), max(decisions, p.Decisions())
			}
			bound := PCTBound(actors, decisions, 2)
			found, uniform := 0, 0
			for seed := range uint64(runs) {
				if planted(h, NewPCT(seed, 2, decisions), mode.orders) {
					found++
				}
				if planted(h, sim.NewSeeded(seed), mode.orders) {
					uniform++
				}
			}
			t.Logf("%d actors, %d decisions: at least %.2f of %d runs; PCT %d, uniform %d", actors, decisions, bound*runs, runs, found, uniform)
			if float64(found) < bound*runs {
				t.Errorf("found in %d of %d runs, less than the bound %.4f says", found, runs, bound)
			}
			if found <= uniform {
				t.Errorf("found in %d runs, and by a uniform choice in %d", found, uniform)
			}
		})
	}
}

// A bug of one ordering needs no fall, since one process has the lowest priority from the
// start.
func TestPCTOfDepthOneFindsEitherOrder(t *testing.T) {
	h := sim.NewHost(t)
	late := map[bool]int{}
	for seed := range uint64(40) {
		// b reads 0 both before the flag is raised and after it is lowered. So compare the
		// priorities instead of the value.
		p := NewPCT(seed, 1, 1)
		planted(h, p, &sim.Orders{})
		late[p.priority["a#1 to server"] < p.priority["b#1 to server"]]++
	}
	if late[true] < 10 || late[false] < 10 {
		t.Errorf("priorities are not even: %v", late)
	}
}

func TestPCTBound(t *testing.T) {
	for _, c := range []struct {
		actors, decisions, depth int
		want                     float64
	}{
		{2, 100, 1, 0.5}, {2, 100, 2, 0.005}, {4, 10, 3, 0.0025}, {1, 1, 5, 1}, {0, 0, 1, 1},
	} {
		if got := PCTBound(c.actors, c.decisions, c.depth); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("PCTBound(%d, %d, %d) = %v, want %v", c.actors, c.decisions, c.depth, got, c.want)
		}
	}
}

// The lowest process draws the longest latency, and the highest the shortest. A process that
// falls is the lowest from then on.
func TestPCTLatencies(t *testing.T) {
	for seed := range uint64(50) {
		p := NewPCT(seed, 2, 10)
		for _, name := range []string{"a", "b", "c"} {
			p.Choose("entropy/"+name, 1<<62)
		}
		var fallen string
		for i := 1; i <= 20; i++ {
			name := []string{"a", "b", "c"}[i%3]
			got := p.Choose("latency/"+name+"/request", 101)
			if _, falls := p.falls[i]; falls {
				fallen = name
			}
			if got != 0 && got != 50 && got != 100 {
				t.Fatalf("seed %d: latency %d of 0..100 with three processes", seed, got)
			}
			if name == fallen && got != 100 {
				t.Fatalf("seed %d: %s fell and draws %d", seed, name, got)
			}
			if fallen != "" && name != fallen && got == 100 {
				t.Fatalf("seed %d: %s draws the longest latency, and %s fell", seed, name, fallen)
			}
		}
		if fallen == "" {
			t.Fatalf("seed %d: nobody fell in the first 10 decisions", seed)
		}
	}
}

func TestPCTRepeats(t *testing.T) {
	h := sim.NewHost(t)
	one, two := sim.NewRecorder(NewPCT(7, 3, 50)), sim.NewRecorder(NewPCT(7, 3, 50))
	planted(h, one, nil)
	planted(h, two, nil)
	if fmt.Sprint(one.Drawn) != fmt.Sprint(two.Drawn) {
		t.Error("the same seed drew otherwise")
	}
}
