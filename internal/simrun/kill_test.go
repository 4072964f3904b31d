package simrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The rows beside the table are its cells, and the index of the folder has them.
func TestTheRowsOfPlantedBugsAreBesideTheirTable(t *testing.T) {
	dir := t.TempDir()
	code, _, stderr := call(t, "kill", "unlock-by-anyone", "--seeds", "1", "-o", filepath.Join(dir, "kill-table.md"))
	if code != exitOK {
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
	x, err := readIndex(root, dir)
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
	if code != exitUsage || !strings.Contains(stderr, "give a file that ends in .md, or --json") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
