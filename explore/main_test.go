package explore

import (
	"flag"
	"os"
	"testing"

	_ "lockstep/scenarios/subject/builtin"
)

// checksGiven reports whether the command line says how many cases rapid draws.
var checksGiven bool

// TestMain fixes rapid's seed, so that every run of the suite is the same. The flags
// -rapid.seed and -rapid.checks override the seed and the number of cases.
func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["rapid.seed"] {
		_ = flag.Set("rapid.seed", "20240817")
	}
	checksGiven = set["rapid.checks"]
	os.Exit(m.Run())
}
