package simrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/explore"
)

// Every part of the results names the versions of the program that wrote it. The test logs
// the parts that an older program wrote, and does not fail for them.
func TestTheResultsSayWhichProgramWroteThem(t *testing.T) {
	code, out, stderr := call(t, "results", "../../results", "--check")
	if code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	t.Logf("older than this program; go run ./cmd/simrun results --older writes them anew:\n%s", out)
}

// littleResults makes a folder of results with a campaign and an exhaustive search.
func littleResults(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for folder, args := range map[string][]string{
		"r/explore/one":    {"--faults", "pause", "--runs", "40"},
		"r/exhaustive/two": {"--strategy", "exhaustive"},
	} {
		if code, _, stderr := call(t, append([]string{"explore", "--lock", "setnx-del", "--out", folder}, args...)...); code != exitOK && code != exitUnexpected {
			t.Fatalf("exit %d: %s", code, stderr)
		}
	}
	for _, file := range []string{explore.RunsFile, explore.PlanFile} { // these are not results
		if err := os.Remove(filepath.Join("r/explore/one", file)); err != nil {
			t.Fatal(err)
		}
	}
	for folder, file := range map[string]string{"explore": "findings.md", "exhaustive": "exhaustive.md"} {
		dirs, _ := filepath.Glob("r/" + folder + "/*")
		if code, _, stderr := call(t, append(append([]string{"findings"}, dirs...), "-o", "r/"+file)...); code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
	}
}

// same compares the files of two folders.
func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is not as before:\n%s", name, got[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s was not there before", name)
		}
	}
}

var campaigns = []string{"results", "r", "--only", "explore,explore-summary,exhaustive,exhaustive-summary"}

func TestResultsAreWrittenAnew(t *testing.T) {
	littleResults(t)
	want := files(t, "r")
	spoil := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spoil("r/explore/one/of-an-older-program/1.lockstep", "{}")
	spoil("r/explore/one/verdicts.jsonl", "")
	spoil("r/findings.md", "")
	// The folder of an interrupted campaign, whose runs another version played.
	spoil("r/.renewing/explore/one/old/1.lockstep", "{}")
	spoil("r/.renewing/explore/one/campaign.json", `{"world": 1}`)
	spoil("r/.renewing/explore/one/runs.jsonl", "{}\n")

	code, out, stderr := call(t, campaigns...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, part := range []string{"explore/one ", "explore-summary ", "exhaustive/two ", "exhaustive-summary "} {
		if !strings.Contains(out, part) || !strings.Contains(out, "s of processors") {
			t.Errorf("it does not say what %s cost:\n%s", part, out)
		}
	}
	same(t, files(t, "r"), want)
}

func TestResultsGoOnWhereTheyWereStopped(t *testing.T) {
	littleResults(t)
	want := files(t, "r")
	r := &renewal{a: &app{}, dir: "r"}
	parts, err := r.parts()
	if err == nil {
		parts, err = chooseParts(parts, strings.Split(campaigns[3], ","))
	}
	if err == nil {
		err = r.keepDone(journal(parts), []string{"exhaustive/two"})
	}
	if err != nil {
		t.Fatal(err)
	}
	// Another command ignores the list of finished parts.
	if _, out, stderr := call(t, "results", "r", "--only", "exhaustive/two"); strings.Contains(out, "was done before") {
		t.Errorf("%s%s", out, stderr)
	}
	if err := r.keepDone(journal(parts), []string{"exhaustive/two"}); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, campaigns...)
	if code != exitOK || strings.Count(out, "was done before") != 1 || !strings.Contains(out, "exhaustive/two ") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	same(t, files(t, "r"), want)
}

// A call that is killed while it replaces a folder leaves the old one aside. The next call
// puts it back, or removes it once the new one is there.
func TestResultsRecoverFromAKill(t *testing.T) {
	littleResults(t)
	want := files(t, "r")
	aside := "r/.renewing/explore/one" + replaced
	for _, newOne := range []bool{false, true} {
		if err := os.MkdirAll(filepath.Dir(aside), 0o755); err != nil {
			t.Fatal(err)
		}
		if newOne {
			if err := os.Mkdir(aside, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Rename("r/explore/one", aside); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := call(t, "results", "r", "--only", "explore"); code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		same(t, files(t, "r"), want)
	}
}

// A campaign is played anew by its command, whatever its program was called.
func TestTheCommandOfACampaign(t *testing.T) {
	for line, want := range map[string]string{
		"<!-- written by: go run ./cmd/simrun explore --lock setnx-del --runs 20 --seed 1 -->": "",
		"<!-- written by: locks explore --lock setnx-del --runs 20 --seed 1 -->":               "",
		"<!-- written by: go run . matrix -->":                                                 "no command of simrun explore",
		"explore --lock setnx-del --runs 20":                                                   "no command of simrun explore",
		"<!-- written by: locks explore --runs 20 --seed 1 -->":                                "names no lock",
		"<!-- written by: locks explore --lock theirs --runs 20 -->":                           "theirs",
	} {
		args, err := campaignCommand(line + "\n# What was found\n")
		if err != nil || want != "" {
			if err == nil || want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", line, err, want)
			}
			continue
		}
		if got := strings.Join(args, " "); got != "explore --lock setnx-del --runs 20 --seed 1" {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// A program leaves alone the campaigns of locks that it does not know.
func TestResultsOfLocksOfAnotherProgram(t *testing.T) {
	littleResults(t)
	if err := os.Mkdir("r/peers", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("r/exhaustive/two", "r/peers/theirs"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("r/peers/theirs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("r/peers/theirs/verdicts.md", []byte(strings.ReplaceAll(string(text), "--lock setnx-del", "--lock theirs")), 0o644); err != nil {
		t.Fatal(err)
	}
	want := files(t, "r")
	code, out, stderr := call(t, "results", "r", "--only", "peers,peers-summary")
	if code != exitOK || strings.Count(out, "is of locks that this program does not know") != 2 {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	same(t, files(t, "r"), want)
	if code, out, stderr := call(t, "results", "r", "--only", "peers", "--check"); code != exitOK || !strings.Contains(out, "0 of 1 parts") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

func TestResultsOfAnOlderProgram(t *testing.T) {
	littleResults(t)
	file := "r/explore/one/verdicts.md"
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now := explore.CurrentVersions()
	for _, c := range []struct {
		name, comment string
		code          int
		says          string
	}{
		{"the same", now.Comment(), exitOK, "0 of 2 parts are older"},
		{"older judges", explore.Versions{World: now.World, Judges: now.Judges - 1, Names: now.Names, Draw: now.Draw}.Comment(), exitOK, fmt.Sprintf("explore/one: judges %d, and the program has %d", now.Judges-1, now.Judges)},
		{"no versions", "", exitUsage, "verdicts.md does not say"},
		{"not all versions", now.Played().Comment(), exitUsage, "says nothing of the versions of: names, drawing"},
		{"no number", "<!-- versions: world x -->\n", exitUsage, `"world x" is no version`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(string(whole), now.Comment(), c.comment, 1)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := call(t, "results", "r", "--only", "explore,exhaustive", "--check")
			if code != c.code || !strings.Contains(out+stderr, c.says) {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, c.code, c.says, out, stderr)
			}
		})
	}
	// In the last case explore/one has no version: only it and its summary are written anew.
	code, out, stderr := call(t, append([]string{"results", "--older"}, campaigns[1:]...)...)
	if code != exitOK || strings.Count(out, "\n") != 2 || !strings.Contains(out, "explore/one ") || !strings.Contains(out, "explore-summary ") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != string(whole) {
		t.Errorf("it is not written anew: %v\n%s", err, text)
	}
}

func TestResultsRefuse(t *testing.T) {
	littleResults(t)
	for _, c := range []struct{ args, says string }{
		{"no-such-folder", "there is no folder no-such-folder"},
		{"r --only explore/three", "--only explore/three: known are verdicts"},
		{"r --only peers", "--only peers: the folder has no campaign in peers"},
		{"r r", "takes one folder"},
		{"r --jobs 0", "at least 1"},
		{"r --only=", "--only names no part"},
		{"r --check --only performance", "say no versions"},
		{"r/explore/one/verdicts.md", "is a file"},
	} {
		if code, _, stderr := call(t, append([]string{"results"}, strings.Fields(c.args)...)...); code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
	if err := os.WriteFile("r/explore/one/verdicts.md", []byte("# What was found\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "results", "r", "--only", "explore/one"); code == exitOK || !strings.Contains(stderr, "no command of simrun explore") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
