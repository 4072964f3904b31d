package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/explore/draw"
	"lockstep/explore/survey"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/model"
)

// document returns the text of a document, named by its path in the repository.
func document(t *testing.T, page string) string {
	t.Helper()
	return filetest.Read(t, filepath.Join("..", page))
}

// blocks returns the fenced blocks of one language in a document.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(document(t, page), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("%s has no %s block", page, language)
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

// The commands of the README and of the documents that took their place beside it do what
// they say.
func TestTheCommandsOfTheDocumentsRun(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, block := range map[string]string{
		"my.yaml":       blocks(t, "docs/scenarios.md", "yaml")[0],
		"history.jsonl": blocks(t, "docs/histories.md", "json")[0],
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var commands []string
	for _, page := range []string{"README.md", "docs/scenarios.md", "docs/judges.md", "docs/commands.md", "docs/histories.md", "docs/locks.md"} {
		commands = append(commands, blocks(t, page, "sh")...)
	}
	t.Chdir(dir)
	if err := os.Symlink(filepath.Join(root, "results"), "results"); err != nil {
		t.Fatal(err)
	}

	ran := map[string]bool{}
	for _, block := range commands {
		for _, line := range strings.Split(block, "\n") {
			args, ok := strings.CutPrefix(line, "go run ./cmd/simrun ")
			args, _, _ = strings.Cut(args, "#")
			args = strings.TrimSpace(args)
			if !ok || args == "run" || args == "matrix" || ran[args] {
				continue // run and matrix play all scenarios, which the test of results/ does
			}
			ran[args] = true
			t.Run(args, func(t *testing.T) {
				want := frame.ExitOK
				if strings.HasPrefix(args, "explore") && !strings.Contains(args, "exhaustive") {
					want = frame.ExitUnexpected // it shows a bug
				}
				if a := callOnce(t, strings.Fields(args)...); a.code != want {
					t.Errorf("exit %d\n%s%s", a.code, a.out, a.stderr)
				}
			})
		}
	}
	if len(ran) < 10 {
		t.Errorf("only %d commands of the documents were run", len(ran))
	}
}

func TestTheQuotedOutputIsReal(t *testing.T) {
	_, run, _ := call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1")
	_, replay, _ := call(t, "replay", "../results/misdelete/setnx-del/1.lockstep")
	explored := callOnce(t, "explore", "--lock", "setnx-del", "--faults", "pause", "--runs", "300")
	covered := callOnce(t, "explore", "--lock", "setnx-del", "--faults", "network", "--strategy", "exhaustive")
	shrunk := callOnce(t, "shrink", "../results/misdelete/setnx-del/1.lockstep")
	explained := callOnce(t, "explain", "../results/misdelete/setnx-del/1.lockstep")
	said := squeeze(run + replay + explored.out + covered.out + shrunk.out + explained.out)
	for page, least := range map[string]int{"README.md": 2, "docs/commands.md": 20} {
		quoted := 0
		for _, line := range strings.Split(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(document(t, page), ""), "\n") {
			if strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "" {
				quoted++
				if !strings.Contains(said, squeeze(line)) {
					t.Errorf("%s quotes what simrun does not print: %s", page, line)
				}
			}
		}
		if quoted < least {
			t.Errorf("only %d quoted lines were found in %s", quoted, page)
		}
	}
}

// The commands in the documents about reading print the output that the documents show. A short
// test leaves out --blame, which plays 500 runs, and the lines below it.
func TestWhatIsReadIsReal(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	t.Chdir("..")
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
				if code != frame.ExitOK {
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
	}
}

// The Go code in docs/locks.md is part of an example that is compiled and run. The tests of
// peers run the examples of the README and of docs/locktest.md.
func TestTheCodeOfTheDocumentsIsAnExample(t *testing.T) {
	example := document(t, "lockimpl/redisson/example_test.go")
	for _, b := range blocks(t, "docs/locks.md", "go") {
		if !strings.Contains(example, b) {
			t.Errorf("not in the example:\n%s", b)
		}
	}
}

// The documents name every judge, every state that a run can reach, every command and every
// exit code. The help and the documents give the same order of the exit codes.
func TestTheDocumentsNameWhatThereIs(t *testing.T) {
	var listed []string
	for _, c := range commandsOf(t) {
		listed = append(listed, c.Name())
	}
	for page, words := range map[string][]string{"docs/judges.md": model.Judges, "docs/scenarios.md": model.Reachable, "docs/commands.md": listed} {
		text := document(t, page)
		for _, word := range words {
			if !regexp.MustCompile(`(?m)^\|[^|]*` + "`" + word + "`").MatchString(text) {
				t.Errorf("no table of %s has a row of %s", page, word)
			}
		}
	}
	for _, code := range []int{frame.ExitOK, frame.ExitUnexpected, frame.ExitUndecided, frame.ExitUsage, frame.ExitDefect, frame.ExitIO} {
		if !strings.Contains(document(t, "docs/commands.md"), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/commands.md says nothing of exit code %d", code)
		}
	}
	order := fmt.Sprintf("the first of %d, %d, %d, %d, %d, %d counts", frame.ExitDefect, frame.ExitUsage, frame.ExitIO, frame.ExitUnexpected, frame.ExitUndecided, frame.ExitOK)
	for name, text := range map[string]string{"docs/commands.md": document(t, "docs/commands.md"), "the help": moreAboutSimrun} {
		if !strings.Contains(text, order) {
			t.Errorf("%s does not say %q", name, order)
		}
	}
}

// tables returns the rows of all tables in a text of Markdown. A row is the texts of its
// cells, in which a link is only its words.
func tables(text string) (rows [][]string) {
	link := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	for line := range strings.SplitSeq(text, "\n") {
		if cells, ok := strings.CutPrefix(line, "| "); ok {
			row := strings.Split(strings.TrimSuffix(link.ReplaceAllString(cells, "$1"), " |"), " | ")
			rows = append(rows, row)
		}
	}
	return rows
}

// section returns the text below a heading of a document, up to the next heading.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, below, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// The README's tables are parts of those in results/.
func TestTheTablesOfTheReadmeAreOfResults(t *testing.T) {
	readme := document(t, "README.md")
	// word is the verdict in a cell, without the circumstances.
	word := func(cell string) string {
		return strings.FieldsFunc(cell, func(r rune) bool { return r == ' ' || r == ':' })[0]
	}

	played, _, err := survey.Read(strings.NewReader(document(t, "results/survey.jsonl")))
	if err != nil {
		t.Fatal(err)
	}

	t.Run("locks compared", func(t *testing.T) {
		rows := tables(section(t, readme, "## Locks compared"))
		if len(rows) < 8 {
			t.Fatalf("the table has %d rows", len(rows))
		}
		for _, row := range rows[1:] {
			i := slices.IndexFunc(played.Locks, func(l survey.Lock) bool { return l.Name == strings.Trim(row[0], "`") })
			if i < 0 {
				t.Errorf("the survey has no lock %s", row[0])
				continue
			}
			testRowOfTheReadme(t, rows[0], row, played.Locks[i])
		}
	})

	t.Run("track record", func(t *testing.T) {
		recorded := tables(section(t, document(t, "results/track-record.md"), "# Scenarios by locks"))
		scenario := regexp.MustCompile(`results/track-record\.md#([a-z0-9-]+)\) \| (.*) \|`)
		shown := section(t, readme, "## The track record")
		head := tables(shown)[0][1:]
		if want := recorded[0][2:]; strings.Join(head, " ") != strings.Join(want, " ") {
			t.Errorf("the columns are %q, want %q", head, want)
		}
		found := scenario.FindAllStringSubmatch(shown, -1)
		if len(found) < 5 {
			t.Errorf("the table has %d rows", len(found))
		}
		for _, m := range found {
			i := slices.IndexFunc(recorded, func(row []string) bool { return row[0] == m[1] })
			if i < 0 {
				t.Errorf("no row of results/track-record.md is called %s", m[1])
				continue
			}
			for j, cell := range strings.Split(m[2], " | ") {
				if want := word(recorded[i][j+2]); cell != want {
					t.Errorf("%s, %s: the README says %s and the track record %s", m[1], head[j], cell, want)
				}
			}
		}
		if bugs := fmt.Sprintf("\n%d bugs of Redisson", len(recorded)-1); !strings.Contains(shown, bugs) {
			t.Errorf("the README does not say %q", bugs)
		}
	})

	t.Run("figures", func(t *testing.T) {
		for _, c := range []struct{ page, figure string }{
			{"results/agreement.md", `\d+ of \d+ live runs`},
			{"results/agreement-ports.md", `\d+ of \d+ live runs`},
			{"results/upstream.md", `\d+ of \d+ defects`},
			{"results/kill-table.md", `\d+ locks that are wrong on purpose`},
		} {
			figure := regexp.MustCompile(c.figure).FindString(document(t, c.page))
			numbers := regexp.MustCompile(`\d+( of \d+)?`).FindString(figure)
			if figure == "" || !regexp.MustCompile(`\b`+numbers+`\b`).MatchString(readme) {
				t.Errorf("%s says %q, and the README does not", c.page, figure)
			}
		}
		of := regexp.MustCompile(`judges (\d+), names \d+, drawing \d+, stories (\d+)`).FindStringSubmatch(document(t, "results/survey.md"))
		if of == nil || !strings.Contains(readme, fmt.Sprintf("(judges %s, stories %s)", of[1], of[2])) {
			t.Errorf("the README does not say of which versions the survey is: %q", of)
		}
		for page, least := range map[string]int{"README.md": 1, "docs/survey.md": 2, "docs/locks.md": 1} {
			said := regexp.MustCompile(`survey of (\d+) locks|survey played (\d+) locks|compares (\d+) locks`).FindAllStringSubmatch(document(t, page), -1)
			if len(said) < least {
				t.Errorf("%s says %d times how many locks the survey has, want %d", page, len(said), least)
			}
			for _, m := range said {
				if want := strconv.Itoa(len(played.Locks)); !slices.Contains(m[1:], want) {
					t.Errorf("%s says %q, and the survey has %s", page, m[0], want)
				}
			}
		}
	})
}

// excuses are the words of the README for the circumstances of a limit.
var excuses = map[model.Circumstance]string{
	model.HolderStopped: "pause", model.HolderCutOff: "cut off", model.HoldRemoved: "removed", model.MemoryRemoved: "removed",
	model.ServerClockStepped: "clock", model.ClocksApart: "clock", model.WaiterAway: "waiter away",
}

// testRowOfTheReadme compares a row of the README's table with the survey of the lock. A limit has its circumstances
// behind it, and a bug, in a few words, what it takes.
func testRowOfTheReadme(t *testing.T, head, row []string, l survey.Lock) {
	t.Helper()
	bugs := 0
	for _, p := range survey.Promises {
		sum := l.Summary(p.Name)
		i := slices.Index(head, p.Name)
		if i < 0 && sum.Word == survey.Bug {
			bugs++
		}
		if i < 0 {
			continue
		}
		word, rest, _ := strings.Cut(row[i], ": ")
		words := strings.Split(rest, ", ")
		slices.Sort(words)
		var want []string
		for _, c := range l.Cells {
			for _, excuse := range c.Excuses {
				for e := range strings.SplitSeq(excuse, ", ") {
					if c.Promise == p.Name && c.Word == survey.Limit {
						want = append(want, cmp.Or(excuses[model.Circumstance(e)], e))
					}
				}
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		switch {
		case word != string(sum.Word):
			t.Errorf("%s, %s: the README says %q and the survey %q", l.Name, p.Name, row[i], sum)
		case sum.Word == survey.Limit && !slices.Equal(words, want):
			t.Errorf("%s, %s: the README says %q, and the survey has the circumstances %q", l.Name, p.Name, row[i], want)
		case sum.Word == survey.Bug && (len(strings.Fields(rest)) < 2 || len(strings.Fields(rest)) > 4):
			t.Errorf("%s, %s: %q does not say in about three words what the bug takes", l.Name, p.Name, row[i])
		}
	}
	renewed := !slices.ContainsFunc(l.Cells, func(c survey.Cell) bool {
		return c.Faults == string(draw.ClassWatchdog) && c.Word == survey.NoSuchFault
	})
	if by := row[slices.Index(head, "by, on")]; strings.Contains(by, "not renewed") == renewed {
		t.Errorf("%s: %q does not say whether something renews the lock", l.Name, by)
	}
	for column, want := range map[string]string{"runs": strconv.Itoa(l.Judged()), "other bugs": strconv.Itoa(bugs), "hand-over, ms": l.CostRow()[6]} {
		if i := slices.Index(head, column); i < 0 || row[i] != want {
			t.Errorf("%s, %s: the README says %q and the survey %q", l.Name, column, row, want)
		}
	}
}
