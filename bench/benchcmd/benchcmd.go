// Package benchcmd gives the command line of Lockstep the command bench. Import it for that effect
// into a program that calls locktest.Main. The part hunt then looks for the bugs of all locks
// that the program has.
package benchcmd

import (
	"lockstep/bench"
	"lockstep/internal/simrun"
)

func init() { simrun.NewBenchmarks = bench.New }
