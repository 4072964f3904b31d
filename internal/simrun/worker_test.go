package simrun

import (
	"os"
	"strings"
	"testing"

	"lockstep/bench"
	_ "lockstep/scenarios/subject/builtin"
)

// A campaign, and the hunt for a planted bug, start this program again to play their runs.
// Here the program is the test, which is simrun when its first argument is a command.
func TestMain(m *testing.M) {
	NewBenchmarks = bench.New
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		Main(nil)
		return
	}
	os.Exit(m.Run())
}
