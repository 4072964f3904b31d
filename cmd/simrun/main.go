// Simrun runs lock code in a simulated world and says what it promised and
// what it kept. See simrun help.
package main

import (
	"lockstep/bench"
	"lockstep/internal/simrun"
	"lockstep/locktest"
	_ "lockstep/scenarios/subject/builtin"
)

func main() {
	simrun.NewBenchmarks = func(o simrun.BenchOptions) simrun.Benchmarks { return benchmarks{bench.Options(o)} }
	locktest.Main()
}

// benchmarks adapts package bench to the interface of the command line.
type benchmarks struct{ bench.Options }

func (b benchmarks) Run(each func(simrun.BenchReport) error) error {
	return bench.Run(b.Options, func(r *bench.Report) error { return each(r) })
}
