package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/internal/longtest"
)

func TestRunAsJSON(t *testing.T) {
	cases := []struct {
		lock, verdict, judge, reached string
	}{
		{"setnx-del", "bug", "misdelete", "stale_unlock"},
		{"redisson@4.7.0", "held", "", "stale_unlock"},
	}
	for _, c := range cases {
		t.Run(c.lock, func(t *testing.T) {
			code, out, stderr := call(t, "run", "misdelete", "--lock", c.lock, "--seed", "1", "--json")
			if code != frame.ExitOK || stderr != "" {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			var o object
			dec := json.NewDecoder(strings.NewReader(out))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&o); err != nil {
				t.Fatal(err)
			}
			if o.Verdict != c.verdict || !o.AsExpected || o.Seed != 1 || len(o.Digest) != 64 || o.Steps == 0 || o.SimNs == 0 {
				t.Errorf("got %+v", o)
			}
			if !strings.Contains(strings.Join(o.Reached, " "), c.reached) {
				t.Errorf("reached %v, want %s", o.Reached, c.reached)
			}
			judges := ""
			for _, f := range o.Findings {
				judges += f.Judge + " "
				if f.Finding != "broken" || f.Class == "" || f.Why == "" || f.AtNs == 0 {
					t.Errorf("an incomplete finding: %+v", f)
				}
			}
			if !strings.Contains(judges, c.judge) {
				t.Errorf("judges %q, want %q", judges, c.judge)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	head := "lockstep: 1\nname: t\nlocks: [setnx-cad]\nprocesses: {a: {}}\n"
	steps := "steps:\n  a/1:\n    - lock: {name: x, want: granted}\n    - unlock: x\n"
	held := write("held.yaml", head+steps)
	surprise := write("surprise.yaml", head+strings.Replace(steps, "granted", "error", 1))
	unreached := write("unreached.yaml", head+"reach: [lease_expired]\n"+steps)
	badStep := write("bad.yaml", head+"steps:\n  a/1:\n    - lok: x\n")
	replicas := write("replicas.yaml", head+"server: {replicas: 1, lag: 1s}\n"+steps)
	line := `{"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":0,"return_ns":10,"outcome":"granted"}` + "\n"
	other := `{"process":"b","thread":1,"lock":"x","op":"acquire","call_ns":20,"return_ns":30,"outcome":"granted"}` + "\n"
	valid, broken := write("valid.jsonl", line), write("broken.jsonl", line+other)
	cut := write("cut.jsonl", line+other[:40])
	entry := func(kind, f string, process int) string {
		return fmt.Sprintf("{:type :%s, :f :%s, :process %d}\n", kind, f, process)
	}
	took := entry("invoke", "acquire", 0) + entry("ok", "acquire", 0)
	jepsen := write("one.edn", took+entry("invoke", "release", 0)+entry("ok", "release", 0))
	two := write("two.edn", took+entry("invoke", "acquire", 1)+entry("ok", "acquire", 1))
	pictures := filepath.Join(dir, "pictures")
	empty := write("empty.lockstep", "")
	file := write("file", "")
	long := strings.Repeat("x", 250)
	record := func(name string, args ...string) string {
		out := filepath.Join(dir, name)
		if code, _, stderr := call(t, append([]string{"run", "--out", out}, args...)...); code > frame.ExitUndecided {
			t.Fatal(stderr)
		}
		found, err := filepath.Glob(filepath.Join(out, "*", "*", "*.lockstep"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0]
	}
	late := record("late", "misdelete", "--lock", "setnx-del", "--seed", "1")
	nothing := record("nothing", unreached)
	text, err := os.ReadFile(late)
	if err != nil {
		t.Fatal(err)
	}
	alter := func(name, old, new string) string {
		if !strings.Contains(string(text), old) {
			t.Fatalf("no %s in the recording", old)
		}
		return write(name, strings.Replace(string(text), old, new, 1))
	}
	otherWorld := alter("world.lockstep", `"world":`, `"world":9`)
	held1 := alter("held1.lockstep", `"verdict":"bug"`, `"verdict":"held"`)
	unknownLock := alter("unknown.lockstep", `"lock":"setnx-del"`, `"lock":"setnx-dll"`)
	changed := alter("changed.lockstep", `"digest":"`, `"digest":"0`)

	cases := []struct {
		rule   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"as expected", []string{"run", held}, 0, "0 not as expected", ""},
		{"a verdict that was not expected", []string{"run", surprise}, 1, "got granted", ""},
		{"undecided", []string{"run", unreached}, 2, "did not reach lease_expired", ""},
		{"a bug counts before undecided", []string{"run", unreached, surprise}, 1, "", ""},
		{"help", []string{"help"}, 0, "simrun run", ""},
		{"no command", nil, 64, "simrun run", ""},
		{"an unknown command", []string{"explode"}, 64, "", `unknown command "explode"`},
		{"an unknown option", []string{"run", "--sede", "1"}, 64, "", "run knows --details, --format, --json, --lock, --out, --quiet, --seed, --tag"},
		{"an unknown scenario", []string{"run", "misdelte"}, 64, "", `no scenario "misdelte" and no such file; did you mean "misdelete"? go run ./cmd/simrun list names all `},
		{"an unknown lock", []string{"run", held, "--lock", "redison"}, 64, "", `unknown lock "redison"; did you mean "redisson"? go run ./cmd/simrun list names all `},
		{"a bad seed", []string{"run", held, "--seed", "5..1"}, 64, "", "the smaller first"},
		{"a bad step: file, line and column", []string{"run", badStep}, 64, "", "bad.yaml:7:7: unknown"},
		{"nothing is run when one file is bad", []string{"run", held, badStep}, 64, "", "did you mean"},
		{"replicas", []string{"run", replicas}, 0, "0 not as expected", ""},
		{"a folder for a scenario", []string{"run", dir}, 64, "", dir + " is a folder; name a scenario, or the file of one"},
		{"a folder for a recording", []string{"replay", dir}, 64, "", dir + " is a folder; replay takes a recording"},
		{"a folder to shrink", []string{"shrink", dir}, 64, "", dir + " is a folder; shrink takes a recording"},
		{"a folder for a history", []string{"check", dir}, 64, "", dir + " is a folder; check takes a history"},
		{"a file for a folder of results", []string{"serve", file}, 64, "", file + " is a file; serve takes a folder"},
		{"a file for a shard", []string{"merge", file}, 64, "", file + " is a file; merge takes the folders"},
		{"no folder for a shard", []string{"merge", filepath.Join(dir, "no")}, 64, "", "there is no folder " + filepath.Join(dir, "no") + "; merge takes the folders"},
		{"a file to write runs into", []string{"run", held, "--out", file}, 64, "", "--out " + file + " is a file; name a folder"},
		{"an empty lock", []string{"run", held, "--lock", ""}, 64, "", "run: --lock is empty; leave it out, or give it a value"},
		{"a file to write a campaign into", []string{"explore", "--lock", "none", "--out", file}, 64, "", "--out " + file + " is a file; name a folder"},
		{"a file to write pages into", []string{"report", filepath.Join("..", "results", "peers-track-record"), "-o", file}, 64, "", "-o " + file + " is a file; name a folder"},
		{"no such file", []string{"run", filepath.Join(dir, "no.yaml")}, 64, "", "simrun: there is no file " + filepath.Join(dir, "no.yaml") + "; name a scenario, or the file of one\n"},
		{"a folder that cannot be written", []string{"run", held, "--out", filepath.Join(file, "x")}, 64, "", "--out"},
		{"an empty recording", []string{"replay", empty}, 64, "", "empty.lockstep:1:1: the file is empty"},
		{"two recordings", []string{"replay", empty, empty}, 64, "", "one recording, got 2"},
		{"shrunk", []string{"shrink", late}, 0, "setnx-del: {bug: [misdelete]}", ""},
		{"shrink what is no recording", []string{"shrink", held}, 64, "", "held.yaml is a scenario; "},
		{"shrink a recording that is not there", []string{"shrink", filepath.Join(dir, "no")}, 64, "", "simrun: there is no file " + filepath.Join(dir, "no") + "; shrink takes a recording, a file SEED.lockstep\n"},
		{"replay a recording that is not there", []string{"replay", "nope"}, 64, "", "simrun: there is no file nope; replay takes a recording, a file SEED.lockstep\n"},
		{"a history that is not there", []string{"check", "nope"}, 64, "", "simrun: there is no file nope; check takes a history, a file\n"},
		{"a recording below a file", []string{"replay", filepath.Join(file, "x")}, 64, "", "simrun: " + filepath.Join(file, "x") + " cannot be read: not a directory\n"},
		{"shrink a recording of another world", []string{"shrink", otherWorld}, 64, "", "recorded in world version"},
		{"shrink a recording that holds", []string{"shrink", held1}, 64, "", "nothing is broken in it"},
		{"shrink an undecided recording", []string{"shrink", nothing}, 64, "", "nothing is broken in it"},
		{"shrink what is not the same again", []string{"shrink", changed}, 2, "", "is not the same again"},
		{"shrink for another judge", []string{"shrink", late, "--judge", "fifo"}, 64, "", "fifo is not broken in it; misdelete is"},
		{"shrink for no judge", []string{"shrink", late, "--judge", "nobody"}, 64, "", "known are mutual-exclusion"},
		{"shrink nothing", []string{"shrink"}, 64, "", "one recording, got 0"},
		{"shrink into a folder", []string{"shrink", late, "-o", dir}, 64, "", "is a folder"},
		{"shrink into no folder", []string{"shrink", late, "-o", filepath.Join(dir, "no", "x.yaml")}, 64, "", "simrun: there is no folder " + filepath.Join(dir, "no") + "; -o takes a file in a folder that exists\n"},
		{"a report into no folder", []string{"report", late, "-o", filepath.Join(dir, "no", "x.html")}, 64, "", "simrun: there is no folder " + filepath.Join(dir, "no") + "; -o "},
		{"a report into a file with no room for a temporary name", []string{"report", late, "-o", filepath.Join(dir, long)}, 64, "", "simrun: -o " + filepath.Join(dir, long) + " cannot be written: file name too long\n"},
		{"shrink below a file", []string{"shrink", late, "-o", filepath.Join(file, "x.yaml")}, 64, "", "-o"},
		{"shrink into nothing", []string{"shrink", late, "-o", ""}, 64, "", "--out is empty"},
		{"shrink into itself", []string{"shrink", late, "-o", late}, 64, "", "is the recording itself; name another file"},
		{"explained", []string{"explain", late}, 0, "promise: no request of one thread ends", ""},
		{"explained as JSON", []string{"explain", late, "--json"}, 0, `{"explain":1,"recording":"`, ""},
		{"explained for a judge", []string{"explain", late, "--judge", "linearizable"}, 0, "breaks linearizable (bug)", ""},
		{"a mend that does not hold", []string{"explain", late, "--mended"}, 1, "setnx-del does not keep the promise of misdelete", ""},
		{"a mend of nothing", []string{"explain", held1, "--mended"}, 64, "", "held1.lockstep: nothing was broken in it, so nothing is to be mended"},
		{"explain what is no recording", []string{"explain", held}, 64, "", "held.yaml is a scenario; "},
		{"explain a folder", []string{"explain", dir}, 64, "", dir + " is a folder; explain takes a recording"},
		{"explain a recording that is not there", []string{"explain", "nope"}, 64, "", "simrun: there is no file nope; explain takes a recording, a file SEED.lockstep\n"},
		{"explain two recordings", []string{"explain", late, late}, 64, "", "explain takes one recording, got 2"},
		{"explain a recording of another world", []string{"explain", otherWorld}, 64, "", "recorded in world version"},
		{"explain a recording of an unknown lock", []string{"explain", unknownLock}, 64, "", `unknown lock "setnx-dll"`},
		{"explain an undecided recording", []string{"explain", nothing}, 64, "", "nothing is broken in it, so there is nothing to explain"},
		{"explain what is not the same again", []string{"explain", changed}, 2, "", "is not the same again"},
		{"explain another judge", []string{"explain", late, "--judge", "fifo"}, 64, "", "fifo is not broken in it; misdelete is, so there is nothing to explain"},
		{"linearizable", []string{"check", valid}, 0, "held (1 operation, reentrant)", ""},
		{"not linearizable", []string{"check", valid, broken}, 1, "line 2 is the first that no order can place", ""},
		{"a history that is cut off", []string{"check", cut}, 64, "", "cut.jsonl:2:"},
		{"an empty history", []string{"check", file}, 64, "", "file:1:1: the history has no call of a thread, so there is nothing to judge"},
		{"an empty history beside another", []string{"check", valid, file}, 64, "", "nothing to judge"},
		{"a history of Jepsen's", []string{"check", jepsen, valid}, 0, "held (2 operations, reentrant)", ""},
		{"one that fails, with its picture", []string{"check", jepsen, two, "--out", pictures}, 1, "picture: " + filepath.Join(pictures, "2-two.edn-lock.html"), ""},
		{"an unknown model", []string{"check", valid, "--model", "unfair"}, 64, "", "reentrant, fair, fenced"},
		{"a negative drift", []string{"check", valid, "--drift-ppm", "-1"}, 64, "", "--drift-ppm -1: from 0 to 999999"},
		{"no history", []string{"check"}, 64, "", "one history or more"},
		{"the planted bugs", []string{"list", "--planted"}, 0, "planted/acquire-without-lease", ""},
		{"a planted lock by its name", []string{"run", held, "--lock", "planted/nothing"}, 64, "", "unknown lock"},
		{"list takes nothing", []string{"list", "x"}, 64, "", "takes no argument"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			code, stdout, stderr := call(t, c.args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit %d (want %d)\nstdout: %s\nstderr: %s", code, c.code, stdout, stderr)
			}
			if c.code == frame.ExitUsage && c.args != nil && stdout != "" {
				t.Errorf("bad input printed a result: %s", stdout)
			}
		})
	}
}

func TestShrinkWritesAScenarioThatRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1", "--out", "r"); code != frame.ExitOK {
		t.Fatal(stderr)
	}
	const recording = "r/misdelete/setnx-del/1.lockstep"
	if err := os.WriteFile("small.yaml", []byte("what was there before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("small.yaml", "link.yaml"); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, "shrink", recording, "-o", "link.yaml")
	if code != frame.ExitOK || stderr != "" || !strings.Contains(out, "a scenario: go run ./cmd/simrun run link.yaml") {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	if info, err := os.Lstat("link.yaml"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced, not what it names")
	}
	if info, err := os.Stat("small.yaml"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v (%v)", info.Mode(), err)
	}
	if code, out, stderr := call(t, "run", "small.yaml"); code != frame.ExitOK || !strings.Contains(out, "5 runs of 1 pair") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	// Without -o the scenario is on stdout, and it runs, too.
	_, out, _ = call(t, "shrink", recording)
	if err := os.WriteFile("stdout.yaml", []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := call(t, "run", "stdout.yaml"); code != frame.ExitOK {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	small, err := os.ReadFile("small.yaml")
	if err != nil || !strings.HasSuffix(out, string(small)) {
		t.Errorf("on stdout it is another (%v)", err)
	}
	for _, line := range []string{
		"#     it was: unlock of a/1 (DEL, sent at 5.009s) ended the hold of b/1 on orders at 5.014s\n", "#     it is: unlock of a/1 (DEL, ", "#     the same known defect: SETNX-misdelete, ",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	left, err := filepath.Glob(".writing-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheLastLineOfAFailingRunReplaysIt(t *testing.T) {
	_, out, _ := call(t, "run", "misdelete", "--lock", "none", "--seed", "4")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; last != "replay: go run ./cmd/simrun run misdelete --lock none --seed 4" {
		t.Errorf("last line %q", last)
	}
}

func TestScenariosThatApplyToNoLockAreToldByTheReason(t *testing.T) {
	code, out, _ := call(t, "run", "crashed-watchdog", "watchdog-try-lock", "unlock-reply-lost", "a-lease-ends", "--lock", "setnx-cad", "--lock", "setnx-del")
	const want = `
Scenarios that are n/a on each of these locks:
    2 scenarios: on setnx-cad nothing renews a hold; on setnx-del nothing renews a hold
    1 scenario: setnx-cad counts no levels of a hold; setnx-del counts no levels of a hold
`
	if code != frame.ExitOK || !strings.Contains(out, want) || strings.Contains(out, "\ncrashed-watchdog") || !strings.Contains(out, "\na-lease-ends") {
		t.Errorf("exit code %d, and\n%s", code, out)
	}
}

func TestTheTableFitsAHundredColumns(t *testing.T) {
	run := []string{"run", "misdelete", "fair-dead-waiters-add-up", "--seed", "1"}
	if !longtest.Asked() { // a short test plays two locks in place of all
		run = append(run, "--lock", "setnx-del", "--lock", "redisson-fair@3.21.3")
	}
	for _, args := range [][]string{{"list"}, {"help"}, run} {
		_, out, _ := call(t, args...)
		for _, line := range strings.Split(out, "\n") {
			if n := len([]rune(line)); n > 100 && !strings.Contains(line, "replay:") {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
	}
}

func TestListNamesEveryScenarioAndLock(t *testing.T) {
	_, text, _ := call(t, "list")
	_, lines, _ := call(t, "list", "--json")
	for _, name := range []string{"misdelete", "pause-past-lease", "redisson@3.43.0", "redisson-fair@4.7.0", "setnx-get-del"} {
		if !strings.Contains(text, name) || !strings.Contains(lines, `"`+name+`"`) {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, l := range strings.Split(strings.TrimSpace(lines), "\n") {
		if !json.Valid([]byte(l)) {
			t.Errorf("not JSON: %s", l)
		}
	}
}

// For every type of flag, a bad value is refused with a message for users.
func TestAValueThatAFlagDoesNotTake(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explore", "--lock", "setnx-del", "--runs=1.5"}, "explore: --runs 1.5: want a whole number"},
		{[]string{"explore", "--lock", "setnx-del", "--time", "soon"}, "explore: --time soon: not a duration; write 1500ms, 2s or 1m30s"},
		{[]string{"explore", "--lock", "setnx-del", "--seed", "-1"}, `explore: --seed "-1": write one number`},
		{[]string{"explore", "--lock", "setnx-del", "--seed="}, "explore: --seed is empty; leave it out, or give it a value"},
		{[]string{"explore", "--lock", "setnx-del", "--seed", "1..11"}, "explore: --seed 1..11 --runs 1000: each seed needs at least 100 runs"},
		{[]string{"explore", "--lock", "setnx-del", "--seed", "0..18446744073709551615"}, "each seed needs at least 100 runs"},
		{[]string{"run", "--json=perhaps"}, "run: --json perhaps: want true or false"},
	} {
		code, _, stderr := call(t, c.args...)
		if code != frame.ExitUsage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "strconv") || strings.Contains(stderr, "no such file") {
			t.Errorf("%v: exit %d, %s; want %q", c.args, code, stderr, c.want)
		}
	}
}
