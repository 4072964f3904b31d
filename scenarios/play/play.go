package play

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Played is one run of a scenario: what happened, not yet judged.
type Played struct {
	sim.Result
	Trace     *trace.Run // the record, indexed; nil before the run is judged
	Decisions sim.Decisions
	// Strategy names the strategy that made the decisions; "" is random.
	Strategy string
	// Orders is the mode of the world, nil for one with latencies.
	Orders *sim.Orders
}

// Play runs a scenario on a lock with the decisions of a chooser.
func Play(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, chooser sim.Chooser) Played {
	return PlayIn(h, sc, l, chooser, nil)
}

// PlayIn is Play in a world of the given mode. It panics with the name of the subject if the
// subject does not pass Check, if the scenario does not apply to it (see Applies), or if
// it cannot be opened.
func PlayIn(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, chooser sim.Chooser, orders *sim.Orders) Played {
	mustPass(l.Check())
	mustPass(Applies(sc, l))
	return playIn(h, sc, l, chooser, orders)
}

func mustPass(err error) {
	if err != nil {
		panic("play: " + err.Error())
	}
}

// playIn is PlayIn for a subject that passes Check and a scenario that applies to it.
func playIn(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, chooser sim.Chooser, orders *sim.Orders) Played {
	drawn := sim.NewRecorder(chooser)
	locks := LockNames(sc)
	params := Params(sc, l)
	cfg := sim.Config{
		Chooser: drawn, Orders: orders, LatencyMin: sc.Latency.Min, LatencyMax: sc.Latency.Max,
		Resources: map[string]int64{},
		Params:    params,
	}
	world := l.Servers.New(locks, subject.ServerOptions{Replicas: sc.Server.Replicas, LagMin: sc.Server.Lag.Min, LagMax: sc.Server.Lag.Max})
	cfg.Nodes, cfg.Lineage, cfg.State, cfg.Locks = world.Nodes, world.Lineage, world.State, world.Locks
	cfg.Name = l.Servers.Commands(locks)
	cfg.Params.Parts = max(cfg.Params.Parts, len(world.Nodes))
	var addrs []string
	for _, n := range cfg.Nodes {
		addrs = append(addrs, n.Addr)
	}
	for _, p := range sc.Processes {
		cfg.Processes = append(cfg.Processes, sim.ProcessConfig{Name: p.Name, Threads: p.Threads, Offset: p.WallOffset, DriftPPM: p.WallDriftPPM})
	}
	for _, r := range sc.Resources {
		cfg.Resources[r.Name] = r.Start
	}
	for _, f := range sc.Faults {
		for _, number := range f.Servers {
			f.Nodes = append(f.Nodes, addrs[number-1])
		}
		cfg.Faults = append(cfg.Faults, f.FaultSpec)
	}
	length := LengthsOf(sc, l)
	cfg.Settle, cfg.Quiet, cfg.Drain = length.Settle, length.Quiet, length.Drain

	res := sim.Run(h, cfg, func(w *sim.World) {
		for _, p := range sc.Processes {
			process := w.Process(p.Name)
			run, err := Open(sc, l, process, addrs, "", place{w, world.Published})
			if err != nil {
				panic(fmt.Sprintf("play: %s cannot be opened in process %s: %v", l.Name, p.Name, err))
			}
			for _, t := range process.Threads() {
				t.Start(func() { run(thread{t, w}) })
			}
		}
	})
	res.Record.Params.Processes = Skews(sc, res.SimNs)
	return Played{Result: res, Decisions: drawn.Drawn, Orders: orders}
}

// Lengths are the lengths of the last phases of a run.
type Lengths struct {
	// Quiet is the time without a fault or a step after which all clients leave. Settle takes its
	// place when every thread is done and nobody waits.
	Quiet, Settle time.Duration
	// Drain is the time by the end of which the leases of threads that have left are over.
	Drain time.Duration
}

// LengthsOf returns the lengths that a scenario needs on a lock.
func LengthsOf(sc *scenarios.Scenario, l *subject.Subject) (n Lengths) {
	params := Params(sc, l)
	longest := max(params.Watchdog, longestLease(sc)) + putBack(sc)
	// The world settles for at least as long as a client takes to give a command up.
	n.Settle = max(longest, params.GiveUp+5*time.Second) + time.Second
	n.Quiet = n.Settle + params.Waits
	if l.Fair {
		n.Quiet += 2 * max(params.FairWait, longestWait(sc))
	}
	n.Drain = n.Settle
	if params.Memory > 0 {
		n.Drain = max(n.Drain, params.Memory+time.Second)
	}
	return n
}

// Params returns the parameters that the judges need for a run, except the processes and the
// faults.
func Params(sc *scenarios.Scenario, l *subject.Subject) model.Params {
	p := model.Params{Lock: l.Name, Traits: l.Traits, Timing: l.Timing(sc.Watchdog), Promises: l.Promises, Latency: sc.Latency.Max}
	if l.Kept != nil {
		for _, name := range LockNames(sc) {
			p.Kept = append(p.Kept, l.Kept(name)...)
		}
	}
	var own []time.Duration
	for _, pr := range sc.Processes {
		if w := pr.ClientOptions.FairWait; w != nil {
			own = append(own, *w)
		}
	}
	if l.Fair && len(own) == len(sc.Processes) {
		p.FairWait = slices.Max(own)
	}
	return p
}

// LockNames returns the names of the locks that the steps use, sorted.
func LockNames(sc *scenarios.Scenario) []string {
	names := map[string]bool{}
	for _, s := range sc.All() {
		switch s.Kind {
		case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock, scenarios.StepUnlock, scenarios.StepForceUnlock, scenarios.StepExtend, scenarios.StepRead, scenarios.StepPublished:
			names[s.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func longestLease(sc *scenarios.Scenario) (longest time.Duration) {
	for _, s := range sc.All() {
		if s.Lease != nil {
			longest = max(longest, *s.Lease)
		}
	}
	return longest
}

// putBack returns the total time by which faults put the clocks of servers back. A lease may end
// later by the same time. It leaves out a step that is longer than any wait.
func putBack(sc *scenarios.Scenario) (all time.Duration) {
	for _, f := range sc.Faults {
		if f.StepsServerClock() && f.Step < 0 {
			all = min(all-f.Step, 10*time.Minute)
		}
	}
	return all
}

func longestWait(sc *scenarios.Scenario) (longest time.Duration) {
	for _, s := range sc.All() {
		if s.Wait != nil {
			longest = max(longest, *s.Wait)
		}
	}
	return longest
}

// Skews returns the processes of a run of that length, each with the largest distance of its
// clock from the server's.
func Skews(sc *scenarios.Scenario, simNs int64) []model.ProcessParams {
	var out []model.ProcessParams
	for _, p := range sc.Processes {
		at, worst := p.WallOffset, p.WallOffset.Abs()
		for _, f := range sc.Faults {
			if f.Kind == model.FaultWallClock && f.Processes[0] == p.Name {
				at += f.Step
				worst = max(worst, at.Abs())
			}
		}
		drift := time.Duration(float64(simNs) * float64(p.WallDriftPPM) / 1e6)
		out = append(out, model.ProcessParams{Name: p.Name, Threads: p.Threads, Skew: worst + drift.Abs()})
	}
	return out
}
