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
	simrun.NewBenchmarks = bench.New
	locktest.Main()
}
