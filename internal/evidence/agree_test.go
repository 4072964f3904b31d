package evidence

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/cli/livetest"
	"lockstep/internal/filetest"
)

// A command that ended early goes on with the runs that it has, even if it was killed while it
// wrote one. Runs of another scenario with the same name do not count.
func TestAgreeGoesOn(t *testing.T) {
	dir := t.TempDir()
	file, table := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "agreement.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := "lockstep: 1\nname: t\nlocks: [setnx-cad]\nprocesses: {a: {}}\nsteps: {a/1: [lock: {name: x}, unlock: x]}\n"
	write(text)
	command := []string{"agree", file, "--runs", "5", "--jobs", "1", "-o", table}
	play := func(f *livetest.Player) (int, string) {
		t.Helper()
		setLive(t, f)
		code, _, stderr := call(t, command...)
		return code, stderr
	}
	if code, stderr := play(&livetest.Player{After: 2}); code != frame.ExitIO || !strings.Contains(stderr, "the machine is gone") {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	kept := filepath.Join(dir, "agreement.jsonl")
	half, err := os.OpenFile(kept, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.WriteString(`{"scenario":"t","text":`); err != nil {
		t.Fatal(err)
	}
	_ = half.Close()
	rest := &livetest.Player{}
	if code, stderr := play(rest); code != frame.ExitOK || rest.Runs != 3 {
		t.Errorf("exit %d, %s; %d runs were played, want the other 3", code, stderr, rest.Runs)
	}
	all, err := os.ReadFile(table)
	if err != nil || !strings.Contains(string(all), "5 of 5 live runs agree") || !strings.Contains(string(all), "Run 5 of t on setnx-cad was") {
		t.Errorf("%v: the table is\n%s", err, all)
	}
	none := &livetest.Player{}
	if code, stderr := play(none); code != frame.ExitOK || none.Runs != 0 {
		t.Errorf("exit %d, %s; %d runs were played again", code, stderr, none.Runs)
	}
	write(text + "about: another\n")
	anew := &livetest.Player{}
	if code, stderr := play(anew); code != frame.ExitOK || anew.Runs != 5 {
		t.Errorf("exit %d, %s; %d runs of another file were played, want 5", code, stderr, anew.Runs)
	}
	if err := os.WriteFile(kept, []byte("{\"x\":1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, stderr := play(&livetest.Player{}); code != frame.ExitUsage || !strings.Contains(stderr, "line 1 is no run of agree") {
		t.Errorf("a file of somebody else: exit %d, %s", code, stderr)
	}
}

// The runs of a scenario are played anew in place of the kept ones, and the table names the command
// without --again.
func TestAgreePlaysAScenarioAnew(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "agreement.md")
	kept := filepath.Join(dir, "agreement.jsonl")
	command := []string{"agree", "misdelete", "pause-past-lease", "--lock", "setnx-cad", "--runs", "2", "--jobs", "1", "-o", table}
	setLive(t, &livetest.Player{Other: "setnx-del"}) // differs in misdelete
	if code, _, stderr := call(t, command...); code != frame.ExitOK || !strings.Contains(filetest.Read(t, table), "**0 of 2**") {
		t.Fatalf("exit %d, %s\n%s", code, stderr, filetest.Read(t, table))
	}
	before := strings.Split(strings.TrimSpace(filetest.Read(t, kept)), "\n")
	for _, again := range [][]string{{"--again", "misdelete"}, {"--again=misdelete"}} {
		anew := &livetest.Player{}
		setLive(t, anew)
		if code, _, stderr := call(t, append(slices.Clone(command), again...)...); code != frame.ExitOK || anew.Runs != 2 {
			t.Errorf("%v: exit %d, %s; %d runs, want those of misdelete", again, code, stderr, anew.Runs)
		}
		text := filetest.Read(t, table)
		if !strings.Contains(text, "| misdelete | setnx-cad | held | held (2 of 2) | 2 of 2 |") || !strings.HasPrefix(text, "<!-- go run ./cmd/evidence "+strings.Join(command, " ")+" -->\n") {
			t.Errorf("%v: the table is\n%s", again, text)
		}
		after := strings.Split(strings.TrimSpace(filetest.Read(t, kept)), "\n")
		if len(before) != 4 || len(after) != 4 || after[0] != before[2] || after[1] != before[3] || !strings.Contains(after[2], `"outcome":"held"`) {
			t.Errorf("%v: the runs were\n%s\nand are\n%s", again, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
	none := &livetest.Player{}
	setLive(t, none)
	if code, _, stderr := call(t, command...); code != frame.ExitOK || none.Runs != 0 {
		t.Errorf("exit %d, %s; %d runs were played again", code, stderr, none.Runs)
	}
	for _, c := range []struct{ args, want string }{
		{"agree misdelete --lock setnx-cad --again misdelete", "give the -o"},
		{"agree misdelete --lock setnx-cad --again inventory -o " + table, "--again inventory: this command does not play that scenario"},
	} {
		if code, _, stderr := call(t, strings.Fields(c.args)...); code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %q", c.args, code, stderr, c.want)
		}
	}
}

// A comparison takes the scenarios of several tags.
func TestAgreeTakesSeveralTags(t *testing.T) {
	setLive(t, &livetest.Player{})
	pairs, _, err := playableInBoth(&frame.App{Program: testProgram()}, nil, []string{"track-record", "six-properties"}, []string{"setnx-del"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"track-record", "six-properties"} {
		if !slices.ContainsFunc(pairs, func(p *cli.Pair) bool { return p.Scenario.Tag() == tag }) {
			t.Errorf("no pair is tagged %s", tag)
		}
	}
}

// An interrupted comparison judges no run that did not end, and keeps the others.
func TestAnInterruptOfAgree(t *testing.T) {
	table := filepath.Join(t.TempDir(), "agreement.md")
	for _, c := range []struct{ args, says string }{
		{"agree misdelete --lock setnx-del --runs 3 --jobs 1", "evidence: interrupted; a run that did not end is not judged\n"},
		{"agree misdelete --lock setnx-del --runs 3 --jobs 1 -o " + table, "evidence: interrupted; the runs that are done are kept, and the same command goes on\n"},
	} {
		live := &livetest.Player{Stopped: 2}
		setLive(t, live)
		code, _, stderr := call(t, strings.Fields(c.args)...)
		if code != frame.ExitUndecided || live.Runs != 2 || !strings.HasSuffix(stderr, c.says) {
			t.Errorf("%s: exit %d after %d runs, %q; want the end %q", c.args, code, live.Runs, stderr, c.says)
		}
	}
	// The next call goes on, since the first run is kept.
	live := &livetest.Player{}
	setLive(t, live)
	if code, _, stderr := call(t, "agree", "misdelete", "--lock", "setnx-del", "--runs", "3", "--jobs", "1", "-o", table); code != frame.ExitOK || live.Runs != 2 {
		t.Errorf("exit %d after %d runs, %s", code, live.Runs, stderr)
	}
}

func TestAgree(t *testing.T) {
	for _, c := range []struct {
		rule string
		live *livetest.Player
		args string
		code int
		want string // on stdout or stderr
	}{
		{"both worlds agree", &livetest.Player{}, "agree misdelete --lock setnx-del --runs 2", frame.ExitOK, "2 of 2 live runs agree"},
		{"they do not", &livetest.Player{Other: "setnx-del"}, "agree misdelete --lock setnx-cad --runs 2", frame.ExitOK, "| misdelete | setnx-cad | held | bug: misdelete, linearizable (2 of 2) | **0 of 2** |"},
		{"a named pair that is not possible", &livetest.Player{Refuses: "setnx-cad"}, "agree misdelete --lock setnx-cad", frame.ExitUsage, "not possible live"},
		{"a row that the lock does not claim", &livetest.Player{}, "agree misdelete one-failed-renewal-ends-it --lock setnx-cad --runs 1 --jobs 1", frame.ExitOK,
			"one-failed-renewal-ends-it on setnx-cad: builtin/track-record/one-failed-renewal-ends-it.yaml: each run must reach renewed"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			setLive(t, c.live)
			code, out, stderr := call(t, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(squeeze(out+stderr), c.want) {
				t.Errorf("exit %d, want %d with %q\n%s%s", code, c.code, c.want, out, stderr)
			}
		})
	}
}
