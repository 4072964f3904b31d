package explore

import (
	"flag"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"os"
	"testing"
)

// checksGiven: the command line says how many cases rapid is to draw.
var checksGiven bool

// TestMain fixes rapid's seed, so that a run of the suite is the same every
// time; -rapid.seed and -rapid.checks still choose others.
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

func mustFind(t *testing.T, name string) *subject.Subject {
	t.Helper()
	l, err := subject.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
