package simrun

import (
	"os"
	"strings"
	"testing"

	"lockstep/bench"
	_ "lockstep/scenarios/subject/builtin"
)

// A campaign, or the hunt for a planted bug, starts this program again to play its
// runs: here that is the test, which is simrun when its first argument is a command.
type benchmarks struct{ bench.Options }

func (b benchmarks) Run(each func(BenchReport) error) error {
	return bench.Run(b.Options, func(r *bench.Report) error { return each(r) })
}

func TestMain(m *testing.M) {
	NewBenchmarks = func(o BenchOptions) Benchmarks { return benchmarks{bench.Options(o)} }
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		Main(nil)
		return
	}
	os.Exit(m.Run())
}
