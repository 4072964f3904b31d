package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/filetest"
)

func TestRepeatRefusesBadInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--lock setnx-dell", "setnx-del"},
		{"--lock setnx-del --runs -1", "--runs -1: from 0 to 1000000000"},
		{"--lock setnx-del --seeds 3..1", "3..1"},
		{"--lock setnx-del --seeds x", "x"},
		{"--lock setnx-del --jobs 0", "--jobs 0: from 1"},
		{"--lock setnx-del more", `"more" is no option`},
		{"--lock setnx-del --out " + file, "--out"},
	} {
		code, out, stderr := call(t, append([]string{"repeat"}, strings.Fields(c.args)...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("repeat %s: exit %d, %q, %q; want exit %d and %q", c.args, code, out, stderr, frame.ExitUsage, c.want)
		}
	}
}

// The runs of a lock repeat in two processes, and the table counts them.
func TestRepeatPlaysEachRunTwice(t *testing.T) {
	dir := t.TempDir()
	code, out, stderr := call(t, "repeat", "--lock", "setnx-cad", "--lock", "setnx-del", "--runs", "3", "--seeds", "4..5", "--out", dir)
	if code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	text := filetest.Read(t, filepath.Join(dir, RepeatabilityFile))
	if out != text {
		t.Errorf("printed:\n%s\nand written:\n%s", out, text)
	}
	for _, want := range []string{"repeat --lock setnx-cad --lock setnx-del --runs 3 --seeds 4..5", "| `setnx-cad` | ", "| `setnx-del` | ", " | 0 | 3 | 0 |\n", "| all | ", " | 0 | 6 | 0 |\n", "seeds 4 to 5"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestRepeatGoesOn keeps the figures of a lock as an interrupted command does. The same command
// uses them, and removes them at its end.
func TestRepeatGoesOn(t *testing.T) {
	dir := t.TempDir()
	keep := filepath.Join(dir, repeatingDir)
	plan := explore.Repetition{Lock: "setnx-del", SeedFirst: 1, SeedLast: 1}
	_, err := frame.Kept(keep, plan.Lock, played{plan, explore.CurrentVersions().Recorded()}, func(played) (explore.Repeated, error) {
		return explore.Repeated{Lock: plan.Lock, Stories: [2]int{4711, 0}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, "repeat", "--lock", plan.Lock, "--runs", "0", "--seeds", "1..1", "--out", dir)
	if code != frame.ExitOK || !strings.Contains(out, "| `setnx-del` | 4711 |") {
		t.Errorf("exit %d: %s\n%s", code, stderr, out)
	}
	if _, err := os.Stat(keep); err == nil {
		t.Errorf("%s is left", keep)
	}
}
