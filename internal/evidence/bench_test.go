package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/internal/longtest"
)

func TestBenchRefusesWhatItCannotDo(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	page, broken := filepath.Join(dir, "page.md"), filepath.Join(dir, "broken.md")
	for _, file := range []string{page, filepath.Join(dir, "broken.jsonl")} {
		if err := os.WriteFile(file, []byte("figures"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--only", "steps"}, `there is no part "steps"; did you mean "step"? known: step, schedule, run, hour, workers, memory, shrinking, real-time, lock, growth`},
		{[]string{"--rounds", "0"}, "bench: --rounds 0: from 1 to 1000"},
		{[]string{"step"}, `"step" is no option; bench takes options only`},
		{[]string{"--out", "nowhere/at/all.md"}, "there is no folder nowhere/at"},
		{[]string{"--out", filepath.Join(t.TempDir(), "figures.jsonl")}, "name the page, as in performance.md"},
		{[]string{"--only", "hour", "--out", page}, "would lose its other sections"},
		{[]string{"--out", broken}, "the figures of an earlier call cannot be read"},
		{[]string{"--fast"}, "bench knows --only, --out, --quick, --quiet, --rounds"},
	} {
		code, out, stderr := call(t, append([]string{"bench"}, c.args...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit %d, %s%s; want %q", c.args, code, out, stderr, c.want)
		}
	}
	t.Chdir("cmd")
	if code, _, stderr := call(t, "bench", "--out", "-"); code != frame.ExitUsage || !strings.Contains(stderr, "where go.mod is") {
		t.Errorf("outside of the repository: exit %d, %s", code, stderr)
	}
}

// A short test measures only the part that takes least.
func TestBenchWritesWhatItMeasured(t *testing.T) {
	parts := "hour"
	wants := []string{"* processor: ", "* Go: ", "* redis-server: ", "* Java: ", "| IdleHour | at most 20.0 ms | ", "times real time"}
	if longtest.Asked() {
		parts = "hour,workers,memory,shrinking"
		wants = append(wants, "| two workers against one | at least 1.80 | ", "| 500 | ", "| the most memory of a worker that makes a failure small | at most 512 MiB | ")
	}
	t.Chdir("../..")
	file := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(strings.TrimSuffix(file, ".md")+".jsonl", []byte(`{"part":"step","command":"an earlier one","section":{"title":"Steps of before"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, "bench", "--only", parts, "--quick", "--rounds", "1", "--out", file)
	if code != frame.ExitOK {
		t.Fatalf("exit %d, %s%s", code, out, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wants = append(wants, "## Steps of before\n\nMeasured on 1 January 0001, 00:00 UTC on machine 1 by `an earlier one`")
	for _, want := range append(wants, "Written by `go run ./cmd/evidence bench --only "+parts+" --quick --rounds 1") {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
