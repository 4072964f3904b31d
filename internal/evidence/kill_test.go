package evidence

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/sim"
)

// The rows beside the table are its cells, and the index of the folder has them.
func TestTheRowsOfPlantedBugsAreBesideTheirTable(t *testing.T) {
	dir := t.TempDir()
	code, _, stderr := call(t, "kill", "unlock-by-anyone", "--seeds", "1", "-o", filepath.Join(dir, "kill-table.md"))
	if code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kill-table.md"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err := cli.ReadIndex(root, dir)
	if err != nil || len(x.Tables) != 1 || len(x.Tables[0].Rows) != 1 {
		t.Fatalf("%v: the index has the tables %+v, want one with one row", err, x.Tables)
	}
	row := x.Tables[0].Rows[0]
	var cells []string
	for _, c := range row[:len(row)-1] {
		cells = append(cells, c.Text)
	}
	if line := "| " + strings.Join(cells, " | ") + " | `" + row[len(row)-1].Text + "` |\n"; cells[0] != "unlock-by-anyone" || !strings.Contains(string(text), line) {
		t.Errorf("the table has no line %q:\n%s", line, text)
	}
}

func TestATableOfPlantedBugsIsNotWrittenOverItsRows(t *testing.T) {
	code, _, stderr := call(t, "kill", "unlock-by-anyone", "-o", filepath.Join(t.TempDir(), "kills.jsonl"))
	if code != frame.ExitUsage || !strings.Contains(stderr, "give a file that ends in .md, or --json") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The summary names a bug that is not found.
func TestAKillThatFailedIsToldInShort(t *testing.T) {
	var out strings.Builder
	a := &frame.App{Program: testProgram(), Out: &out}
	killsInShort(a, []cli.Killed{{Bug: "found", Kills: killsAfter(3, 4)}, {Bug: "lives", Judge: "lease", Kills: killsAfter(3, 0, 0)}})
	if want := "1 of 2 planted bugs found with every seed\nlives: lease found it with 1 of 3 seeds\n"; out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

// killsAfter returns the result of one seed for each number of runs; 0: the bug was not found.
func killsAfter(runs ...int) (kills []explore.Kill) {
	for _, n := range runs {
		kills = append(kills, explore.Kill{Runs: n})
	}
	return kills
}

// An interrupted kill writes no table.
func TestAnInterruptedKillWritesNoTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.md")
	stop, interrupt := context.WithCancel(t.Context())
	var stdout, stderr strings.Builder
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: &stdout, Err: &stderr, Stop: stop}
	go func() {
		for !a.Caught.Load() {
			runtime.Gosched()
		}
		interrupt()
	}()
	code := a.Run([]string{"kill", "unlock-by-anyone", "--seeds", "1000000", "-o", file})
	if want := "evidence: interrupted after 0 of 1 planted bug; there is no table\n"; code != frame.ExitUndecided || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("exit %d\n%s%s; want %q", code, stdout.String(), stderr.String(), want)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it wrote the table")
	}
}
