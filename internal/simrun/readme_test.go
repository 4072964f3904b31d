package simrun

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/internal/longtest"
	"lockstep/model"
)

// blocks returns the fenced blocks of one language in the README.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("the README has no %s block", language)
	}
	return out
}

// answer is the outcome of a command.
type answer struct {
	code        int
	out, stderr string
}

// answers holds the outcomes of callOnce by the words of the command.
var answers = map[string]answer{}

// callOnce runs simrun like call. Tests that give the same command get the outcome of one run.
func callOnce(t *testing.T, args ...string) answer {
	t.Helper()
	words := strings.Join(args, " ")
	a, ok := answers[words]
	if !ok {
		a.code, a.out, a.stderr = call(t, args...)
		answers[words] = a
	}
	return a
}

func TestTheReadmeIsTrue(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, language := range map[string]string{"my.yaml": "yaml", "history.jsonl": "json"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(blocks(t, language)[0]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := blocks(t, "sh")
	t.Chdir(dir)
	if err := os.Symlink(filepath.Join(root, "results"), "results"); err != nil {
		t.Fatal(err)
	}

	t.Run("the scenario runs as it says", func(t *testing.T) {
		if code, out, stderr := call(t, "run", "my.yaml"); code != exitOK {
			t.Errorf("exit %d\n%s%s", code, out, stderr)
		}
	})
	ran := 0
	for _, block := range commands {
		for _, line := range strings.Split(block, "\n") {
			args, ok := strings.CutPrefix(line, "go run ./cmd/simrun ")
			args, _, _ = strings.Cut(args, "#")
			if !ok || strings.TrimSpace(args) == "run" || strings.HasPrefix(args, "matrix") || strings.Contains(args, "> ") {
				continue // it plays all scenarios, which the test of results/ does
			}
			ran++
			t.Run(args, func(t *testing.T) {
				want := exitOK
				if strings.HasPrefix(args, "explore") {
					want = exitUnexpected // it shows a bug
				}
				if strings.Contains(args, "exhaustive") {
					want = exitOK
				}
				if a := callOnce(t, strings.Fields(args)...); a.code != want {
					t.Errorf("exit %d\n%s%s", a.code, a.out, a.stderr)
				}
			})
		}
	}
	if ran < 3 {
		t.Errorf("only %d commands of the README were run", ran)
	}
}

func TestTheReadmesOutputIsReal(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, run, _ := call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1")
	_, replay, _ := call(t, "replay", "../../results/misdelete/setnx-del/1.lockstep")
	explored := callOnce(t, "explore", "--lock", "setnx-del", "--faults", "pause", "--runs", "300")
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	covered := callOnce(t, "explore", "--lock", "setnx-del", "--faults", "network", "--strategy", "exhaustive")
	said := squeeze(run + replay + explored.out + covered.out)
	quoted := 0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "" && !strings.Contains(line, ": {") && !strings.HasPrefix(strings.TrimSpace(line), "- ") {
			quoted++
			if !strings.Contains(said, squeeze(line)) {
				t.Errorf("the README quotes what simrun does not print: %s", line)
			}
		}
	}
	if quoted < 8 {
		t.Errorf("only %d quoted lines were found", quoted)
	}
}

// The commands in the documents about reading print the output that the documents show. A short
// test leaves out --blame, which plays 500 runs, and the lines below it.
func TestWhatIsReadIsReal(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	t.Chdir("../..")
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, file := range []string{"docs/reading-a-failure.md", "docs/reports.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		var lines []string
		left := false
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.HasPrefix(line, "go run ./cmd/simrun ") {
				left = !longtest.Asked() && strings.Contains(line, "--blame")
			}
			if !left {
				lines = append(lines, line)
			}
		}
		for _, line := range lines {
			if args, ok := strings.CutPrefix(line, "go run ./cmd/simrun "); ok {
				code, out, stderr := call(t, strings.Fields(strings.Replace(args, "report.html", page, 1))...)
				if code != exitOK {
					t.Errorf("%s: exit %d\n%s%s", line, code, out, stderr)
				}
				said.WriteString(squeeze(out) + " ")
			}
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "    ") && !strings.Contains(said.String(), squeeze(line)) {
				t.Errorf("%s: not printed: %s", file, line)
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s leads nowhere: %v", file, err)
			}
		}
	}
}

// The Go code in the README is part of an example that is compiled and run. The tests of
// peers run the example of docs/locktest.md.
func TestTheReadmesCodeIsAnExample(t *testing.T) {
	var examples string
	for _, file := range []string{"../../lockimpl/redisson/example_test.go", "../../docs/locktest.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += string(text)
	}
	for _, b := range blocks(t, "go") {
		if !strings.Contains(examples, b) {
			t.Errorf("not in the examples:\n%s", b)
		}
	}
}

// The README names every judge and every state that a run can reach.
func TestTheReadmeNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range slices.Concat(model.Judges, model.Reachable) {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("the README says nothing of %s", word)
		}
	}
}
