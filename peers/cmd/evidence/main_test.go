package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame/frametest"
)

// The tests call this program again.
func TestMain(m *testing.M) {
	frametest.AsProgram(main)
	m.Run()
}

// A whole hunt for the defects of these locks takes hours. So the test asks for a part that does not exist.
func TestEvidenceHasTheBenchmarks(t *testing.T) {
	if code, _, stderr := frametest.Start(t, "bench", "--only", "nothing", "--out", "-"); code != 64 || !strings.Contains(stderr, `there is no part "nothing"`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestEvidenceHasTheFarm(t *testing.T) {
	if code, _, stderr := frametest.Start(t, "standing", "nowhere.yaml", "--dir", t.TempDir()); code != 64 || !strings.Contains(stderr, "there is no file nowhere.yaml") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The results have parts of the locks that this program knows. It finds the defects of their libraries.
func TestEvidenceKnowsTheLocksOfTheResults(t *testing.T) {
	t.Chdir("../..")
	code, out, stderr := frametest.Start(t, "results", "../results", "--check", "--only", "peers-track-record,repeatability")
	if code != 0 || !strings.Contains(out, " of 2 parts are older than this program") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, out, _ := frametest.Start(t, "__complete", "upstream", "REDSYNC-"); code != 0 || !strings.Contains(out, "REDSYNC-late-clean-up") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The committed summary of the campaigns on these locks is the one that this program writes.
func TestTheFindingsAreWhatThisProgramWrites(t *testing.T) {
	t.Chdir("../..")
	committed, err := os.ReadFile("../results/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob("../results/peers/*")
	if err != nil {
		t.Fatal(err)
	}
	code, out, stderr := frametest.Start(t, append([]string{"findings"}, dirs...)...)
	_, got, _ := strings.Cut(strings.ReplaceAll(out, "](../results/", "]("), "\n\n|") // links from the folder results
	_, want, _ := strings.Cut(string(committed), "\n\n|")
	if code != 0 || got == "" || got != want {
		t.Errorf("exit %d: results/peers.md differs: %s\n%s", code, stderr, out)
	}
}
