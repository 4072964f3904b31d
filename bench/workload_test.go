package bench

import (
	"runtime"
	"testing"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// docs/performance.md has the figures and their bounds.

// inTest runs f in a test, because only a test can have a bubble. Time in a
// bubble is not real: the benchmark's timer is touched outside of it.
func inTest(b *testing.B, f func(h *sim.Host)) {
	b.Helper()
	b.ReportAllocs()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before := processorTime()
	defer func() { b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op") }()
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) { f(sim.NewHost(t)) }}}) {
		b.Fail()
	}
}

func BenchmarkFloor(b *testing.B) { inTest(b, func(h *sim.Host) { Floor(h, b.N) }) }

func BenchmarkStep(b *testing.B) {
	inTest(b, func(h *sim.Host) {
		commands := Step(h, b.N)
		if commands < b.N {
			b.Errorf("only %d commands", commands)
		}
		b.ReportMetric(float64(commands)/float64(b.N), "commands/op")
	})
}

func BenchmarkSchedule(b *testing.B) {
	for _, lock := range schedule.Locks {
		for _, scripts := range []string{"pooled", "miniredis"} {
			b.Run(lock+"/"+scripts, func(b *testing.B) {
				inTest(b, func(h *sim.Host) {
					h.NoShortcuts = scripts == "miniredis"
					b.ReportMetric(float64(Schedule(h, lock, b.N))/float64(b.N), "steps/op")
				})
			})
		}
	}
}

// BenchmarkCampaign plays runs of a campaign on the fair lock with every class of faults, in one
// process. It makes no failure small.
func BenchmarkCampaign(b *testing.B) {
	inTest(b, func(h *sim.Host) {
		p := explore.Plan{World: sim.Version, Lock: fairLock, Faults: draw.Classes, Profile: draw.Full, Strategy: explore.StrategyPlain, Seed: 1, Runs: b.N}
		player, err := explore.Here(h, p)
		if err != nil {
			panic("bench: " + err.Error())
		}
		steps := int64(0)
		for family := range p.Families() {
			err := player.Family(family, nil, func(r explore.Run) error {
				steps += r.Steps
				return nil
			})
			if err != nil {
				panic("bench: " + err.Error())
			}
		}
		b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
	})
}

func BenchmarkEmpty(b *testing.B) {
	inTest(b, func(h *sim.Host) {
		for range b.N {
			play.Run(h, empty, mustLock(plainLock), 1)
		}
	})
}

func BenchmarkIdleHour(b *testing.B) { inTest(b, func(h *sim.Host) { IdleHour(h, b.N) }) }

// A scenario may have this number of steps at most.
func TestTheLargestScenariosOfTheCurvesAreAccepted(t *testing.T) {
	for _, c := range curves {
		c.scenario(c.sizes[len(c.sizes)-1]) // panics otherwise
	}
}
