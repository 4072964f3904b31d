package simrun

import (
	"os"
	"strings"
	"testing"

	"lockstep/bench"
	_ "lockstep/scenarios/subject/builtin"
)

// benchmarks adapts package bench to the interface of the command line.
type benchmarks struct{ bench.Options }

func (b benchmarks) Run(each func(BenchReport) error) error {
	return bench.Run(b.Options, func(r *bench.Report) error { return each(r) })
}

// A campaign, and the hunt for a planted bug, start this program again to play their runs.
// Here the program is the test, which is simrun when its first argument is a command.
func TestMain(m *testing.M) {
	NewBenchmarks = func(o BenchOptions) Benchmarks { return benchmarks{bench.Options(o)} }
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		Main(nil)
		return
	}
	os.Exit(m.Run())
}
