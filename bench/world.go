package bench

import (
	"fmt"
	"time"

	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// per returns the processor time, the bytes and the allocations of a unit, as text.
func per(costs []cost) (cpu, bytes, allocs string) {
	return span(median(costs, cpuOf)), size(median(costs, func(c cost) float64 { return c.bytes })),
		fmt.Sprintf("%.0f", median(costs, func(c cost) float64 { return c.allocs }))
}

// add adds the row of a workload: its name, its cost, and the comparison.
func (s *section) add(name string, costs []cost, against string) {
	cpu, bytes, allocs := per(costs)
	s.row(name, cpu, bytes, allocs, against)
}

var costHead = []string{"", "processor time", "allocated", "allocations", "ratio"}

func (b *bench) step() (section, error) {
	n := b.count(20_000)
	costs := inTurn(b.Rounds,
		func() float64 { Floor(b.Host, n); return float64(n) },
		func() float64 { return float64(Step(b.Host, n)) },
	)
	r := ratioOf(costs[1], costs[0], cpuOf)
	s := section{
		Title: "A command",
		Text: []string{fmt.Sprintf("Floor: a GET through go-redis, a pipe in memory and miniredis, in a bubble. Step: a command through the whole world, recorded and not judged, "+
			"of %d locks and unlocks on `%s` by one thread.", n, plainLock)},
		Head: costHead,
		Goals: []goal{atMost("Step against Floor", 2, r.median, "", r.String(),
			"A command of the lock is a goroutine of its own, a script with several commands inside, and two or three events that are woken singly and recorded.")},
	}
	s.add("Floor", costs[0], "")
	s.add("Step", costs[1], r.String()+" of Floor")
	return s, nil
}

func (b *bench) schedule() (section, error) {
	s := section{
		Title: "A run",
		Text:  []string{"Schedule: three processes with three critical sections each, a network that fails each of them in another way, all judges; with our interpreter, and with miniredis's own EVAL."},
		Head:  costHead,
	}
	for _, c := range []struct {
		lock string
		runs int
	}{{plainLock, 100}, {fairLock, 20}} {
		n := b.count(c.runs)
		with := func(miniredis bool) workload {
			return func() float64 {
				h := *b.Host
				h.NoShortcuts = miniredis
				Schedule(&h, c.lock, n)
				return float64(n)
			}
		}
		costs := inTurn(b.Rounds, with(false), with(true))
		r := ratioOf(costs[1], costs[0], cpuOf)
		s.add(c.lock, costs[0], "")
		s.add(c.lock+", miniredis's EVAL", costs[1], r.String()+" of the line above")
		if c.lock == plainLock {
			s.Goals = append(s.Goals, atLeast("Schedule: miniredis's EVAL against ours", 5, r.median, r.String(),
				"What scripts cost is nearly gone; what is left is clients, connections, the server and the record, which both have."))
		}
	}
	return s, nil
}

// run measures the parts of a run's time: its making, its events, its judges.
func (b *bench) run() (section, error) {
	n := b.count(100)
	l := mustLock(plainLock)
	played := func(sc *scenarios.Scenario, then func(play.Played, uint64)) workload {
		return func() float64 {
			for i := range n {
				seed := uint64(i%50 + 1)
				then(play.Play(b.Host, sc, l, sim.NewSeeded(seed)), seed)
			}
			return float64(n)
		}
	}
	nothing := func(play.Played, uint64) {}
	costs := inTurn(b.Rounds,
		played(empty, nothing),
		played(schedule, nothing),
		played(schedule, func(p play.Played, seed uint64) { play.Judge(b.Host, schedule, l, seed, p) }),
	)
	setup := ratioOf(costs[0], costs[1], cpuOf)
	judged := ratioOf(costs[2], costs[1], cpuOf)
	s := section{
		Title: "What a run is made of",
		Text:  []string{"A run of the same three clients in which nothing happens: what making a world and clearing it away costs. Schedule played and not judged. Schedule judged too, with what is played again to tell a bug from a limit."},
		Head:  costHead,
		Goals: []goal{atMost("a world made and cleared away, of a short run", 0.1, setup.median, "", setup.String(),
			"Clients, their connections and miniredis are made anew for each run, and nobody's goroutines are left behind.")},
	}
	s.add("nothing happens", costs[0], setup.String()+" of Schedule played")
	s.add("Schedule, played", costs[1], "")
	s.add("Schedule, played and judged", costs[2], judged.String()+" of Schedule played")
	return s, nil
}

func (b *bench) hour() (section, error) {
	n := b.count(40)
	costs := inTurn(b.Rounds, func() float64 { IdleHour(b.Host, n); return float64(n) })
	cpu := median(costs[0], cpuOf)
	s := section{
		Title: "An hour",
		Text:  []string{"IdleHour: one thread holds `" + plainLock + "` for an hour, which the watchdog renews every ten seconds."},
		Head:  costHead,
		Goals: []goal{atMost("IdleHour", 20, cpu/1e6, " ms", span(cpu), "Each of its 360 renewals is a command through the world.")},
	}
	s.add("IdleHour", costs[0], digits(float64(time.Hour)/cpu)+" times real time")
	return s, nil
}
