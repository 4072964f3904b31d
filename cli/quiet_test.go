package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/cli/livetest"
)

// The summary is the first line of a table, and with --quiet only what was not as expected follows it.
func TestTheSummaryComesFirst(t *testing.T) {
	surprise := surprising(t)
	setLive(t, &livetest.Player{})
	const replay = "replay: go run ./cmd/simrun run "
	for _, c := range []struct {
		args        string
		first       string
		loud, quiet string // a line of both outputs, or only of the output without --quiet
	}{
		{"run misdelete --lock setnx-del --seed 1..3", "3 runs of 1 pair of scenario and lock; 0 not as expected\n", "yes: bug misdelete", ""},
		{"run misdelete --lock none --seed 4", "1 run of 1 pair of scenario and lock; 1 not as expected\n", "scenario    ", replay + "misdelete --lock none --seed 4\n"},
		{"matrix misdelete --lock setnx-del --seed 1", "1 run of 1 pair of scenario and lock; 0 not as expected\n", "bug 1", ""},
		{"matrix " + surprise, "1 run of 1 pair of scenario and lock; 1 not as expected\n", "bug 1!", "got granted"},
		{"explore --lock setnx-del --faults pause --runs 20", "20 runs of setnx-del, ", "\nlimit ", "\nbug "},
		{"explore --lock setnx-del --faults pause --runs 20", "20 runs of setnx-del, ", "\nnot tried: no pause ", "\nbug "},
		{"explore --lock setnx-cad --runs 20", "20 runs of setnx-cad, ", "", ""},
		{"live misdelete --lock setnx-del", "", "yes: bug misdelete", "1 run of 1 pair of scenario and lock; 0 not as expected\n"},
		{"live " + surprise, "", "scenario    ", "got granted"},
	} {
		words := strings.Fields(c.args)
		loud := callOnce(t, words...)
		quiet := callOnce(t, append(words, "--quiet")...)
		if loud.code != quiet.code || quiet.stderr != "" {
			t.Errorf("%s --quiet: exit %d, and %d without; %s", c.args, quiet.code, loud.code, quiet.stderr)
		}
		if !strings.HasPrefix(loud.out, c.first) || !strings.HasPrefix(quiet.out, c.first) {
			t.Errorf("%s does not begin with %q:\n%s\n%s", c.args, c.first, loud.out, quiet.out)
		}
		if c.loud != "" && (!strings.Contains(loud.out, c.loud) || strings.Contains(quiet.out, c.loud)) {
			t.Errorf("%s: %q is a matter of the whole output:\n%s\n%s", c.args, c.loud, loud.out, quiet.out)
		}
		if !strings.Contains(quiet.out, c.quiet) {
			t.Errorf("%s --quiet: no %q:\n%s", c.args, c.quiet, quiet.out)
		}
	}
}

// The table of several scenarios has a line for each, and lists only the unexpected pairs one by
// one. The totals are its first line and, below the table, one of its last.
func TestManyScenariosTakeALineEach(t *testing.T) {
	yes := callOnce(t, "run", "misdelete", "pause-past-lease", "--lock", "setnx-del", "--seed", "1")
	const good = "2 runs of 2 pairs of scenario and lock; 0 not as expected\n"
	if want := good + `
scenario                             locks    runs  expected  verdicts by locks
misdelete                                1       1  yes       1 bug
pause-past-lease                         1       1  yes       1 bug

` + good + `next: go run ./cmd/simrun list explains each scenario;
      go run ./cmd/simrun run misdelete shows its findings on each lock
`; yes.code != frame.ExitOK || yes.out != want {
		t.Errorf("exit %d\n%s\nwant\n%s", yes.code, yes.out, want)
	}
	for _, c := range []struct {
		args    string
		here    []string // in this order
		nowhere string
	}{
		{"run misdelete pause-past-lease --lock setnx-del --seed 1 --details", []string{good, "\nmisdelete ", "yes: bug misdelete\n    misdelete: ", "\npause-past-lease ", "\n\n" + good}, "locks"},
		{"run misdelete pause-past-lease --lock setnx-del,none --seed 1", []string{
			"4 runs of 4 pairs of scenario and lock; 2 not as expected\n\nscenario ", "\nmisdelete                                2       2  NO        1 bug, 1 undecided", "\npause-past-lease ",
			"\n\nscenario ", "\nmisdelete                    none ", "NO: held (lock not named)\n", "misdelete does not name the lock none. ", "\n    mutual-exclusion: ", "\npause-past-lease             none ",
			"\n\n4 runs of 4 pairs of scenario and lock; 2 not as expected\nreplay: ", "--seed 1\nnext: go run ./cmd/simrun list explains each scenario\n",
		}, "yes: "},
		{"run misdelete --lock setnx-del,setnx-cad --seed 1", []string{"2 runs of 2 pairs", "\nmisdelete ", "yes: bug misdelete\n    misdelete: ", "\nmisdelete ", "held       yes", "\n\n" + good}, "locks"},
		{"run misdelete --lock setnx-del --seed 1", []string{"1 run of 1 pair", "\nmisdelete "}, "\n\n1 run of 1 pair"},
	} {
		rest := callOnce(t, strings.Fields(c.args)...).out
		out := rest
		for _, want := range c.here {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("%s: no %q, or not in this order:\n%s", c.args, want, out)
				break
			}
			rest = after
		}
		if strings.Contains(out, c.nowhere) {
			t.Errorf("%s: %q is there:\n%s", c.args, c.nowhere, out)
		}
	}
}

// The last line of a run names a recording, if there is one.
func TestARunNamesARecordingToReplay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args string
		file string // "": none
	}{
		{"misdelete --lock setnx-cad,setnx-del", "misdelete/setnx-del/1.lockstep"},
		{"misdelete pause-past-lease --lock setnx-del,none", "misdelete/none/1.lockstep"}, // which was not as expected
		{"misdelete --lock setnx-cad", ""},
		{"misdelete --lock setnx-del --quiet", ""},
	} {
		_, out, stderr := call(t, strings.Fields("run --seed 1 --out "+dir+" "+c.args)...)
		if c.file == "" {
			if strings.Contains(out, "next: ") {
				t.Errorf("%s: %s%s", c.args, out, stderr)
			}
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(c.file))
		if !strings.HasSuffix(out, " go run ./cmd/simrun replay "+file+" shows a run\n") {
			t.Errorf("%s: %s%s", c.args, out, stderr)
		}
		if code, _, stderr := call(t, "replay", file); code != frame.ExitOK {
			t.Errorf("replay: exit %d: %s", code, stderr)
		}
	}
}

// The output for other programs is the same with --quiet.
func TestQuietDoesNotChangeWhatProgramsRead(t *testing.T) {
	for _, args := range []string{
		"run misdelete --lock setnx-del --seed 1 --json", "run misdelete --lock setnx-del --seed 1 --format junit",
		"matrix misdelete --lock setnx-del --seed 1 --json", "explore --lock setnx-cad --runs 20 --json",
	} {
		words := strings.Fields(args)
		loud, quiet := callOnce(t, words...), callOnce(t, append(words, "--quiet")...)
		if loud.out != quiet.out || loud.code != quiet.code || quiet.stderr != "" {
			t.Errorf("%s: exit %d and %d\n%s\n%s%s", args, loud.code, quiet.code, loud.out, quiet.out, quiet.stderr)
		}
	}
}

// Each command that reports progress has --quiet, which leaves it out.
func TestQuietLeavesTheProgressOut(t *testing.T) {
	frametest.Quiet(t, testProgram(), "run", "matrix", "explore", "survey", "repeat", "live", "report", "merge")
	for _, args := range []string{"survey --lock none --runs 1", "repeat --lock none --runs 1 --seeds 1"} {
		words := strings.Fields(args)
		loud, quiet := callOnce(t, words...), callOnce(t, append(words, "--quiet")...)
		if told := "lock 1 of 1: none\n"; loud.stderr != told || quiet.stderr != "" || loud.code != quiet.code {
			t.Errorf("%s: exit %d and %d; stderr %q, and %q with --quiet; want %q and nothing", args, loud.code, quiet.code, loud.stderr, quiet.stderr, told)
		}
	}
}
