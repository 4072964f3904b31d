package simrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/explore"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// stepsMost limits the steps of a scenario that a short test plays, summed over its locks and
// seeds. Eight scenarios have more, and together four fifths of all steps.
const stepsMost = 10_000

// scenariosToPlay returns the names of the scenarios that a test plays: nil for all of them, in a
// long test, else the scenarios with few steps in the committed verdicts.
func scenariosToPlay(t *testing.T, verdicts string) (names []string, longer map[string]bool) {
	t.Helper()
	longer = map[string]bool{}
	if longtest.Asked() {
		return nil, longer
	}
	steps := map[string]int{}
	for line := range strings.Lines(verdicts) {
		var run struct {
			Scenario string
			Steps    int
		}
		if err := json.Unmarshal([]byte(line), &run); err != nil {
			t.Fatal(err)
		}
		steps[run.Scenario] += run.Steps
	}
	for name, n := range steps {
		if n > stepsMost {
			longer[name] = true
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	t.Logf("%d scenarios of %d; LOCKSTEP_LONG=1 plays all", len(names), len(steps))
	return names, longer
}

// partOf reports whether the lines of part are lines of whole, in the same order. It ignores
// lines that quote the command, which names the scenarios.
func partOf(part, whole string) bool {
	rest := strings.SplitAfter(whole, "\n")
	for line := range strings.Lines(part) {
		if strings.Contains(line, "go run ./cmd/simrun run ") {
			continue
		}
		at := slices.Index(rest, line)
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

// The program writes the committed results byte for byte. A short test plays the scenarios that
// take few steps.
func TestResultsAreWhatSimrunWrites(t *testing.T) {
	committed, err := filepath.Abs("../../results")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	want := filetest.Contents(t, committed)
	names, longer := scenariosToPlay(t, want["verdicts.jsonl"])
	if code, out, stderr := call(t, append(append([]string{"run"}, names...), "--out", "results")...); code != exitOK {
		t.Fatalf("exit %d: %s\n%s", code, stderr, notYes(out))
	}
	got := filetest.Contents(t, "results")
	for name, text := range got {
		switch old, ok := want[name]; {
		case ok && names != nil && strings.HasPrefix(name, "verdicts."):
			if !partOf(text, old) {
				t.Errorf("%s has lines that %s has not; if that is meant, write it with: go run ./cmd/simrun run --out results", name, committed)
			}
		case !ok:
			t.Errorf("%s is missing; write it with: go run ./cmd/simrun run --out results", name)
		case name == versionsFile: // the committed file has the versions of other parts, too
			var all, verdicts map[string]explore.Versions
			if err := errors.Join(json.Unmarshal([]byte(old), &all), json.Unmarshal([]byte(text), &verdicts)); err != nil {
				t.Error(err)
			} else if all["verdicts"] != verdicts["verdicts"] || len(verdicts) != 1 {
				t.Errorf("%s has %v of the verdicts; want %v", name, all["verdicts"], verdicts)
			}
		case old != text:
			t.Errorf("%s differs; if that is meant, write it with: go run ./cmd/simrun run --out results", name)
		}
	}
	all := products()
	for name := range want {
		scenario, _, _ := strings.Cut(name, "/")
		p := productOf(all, name)
		if _, ok := got[name]; p == nil || !ok && !longer[scenario] && p.name == "verdicts" {
			t.Errorf("%s is not written any more; remove it", name)
		}
	}
}

// partsChecked returns the parts of the committed results that are checked in one way.
func partsChecked(t *testing.T, r *renewal, how checked) (parts []part) {
	t.Helper()
	all, err := r.parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.checked == how && !p.foreign {
			parts = append(parts, p)
		}
	}
	return parts
}

// writesAgain writes a part into a copy of the committed results that is the folder results of the working directory, and compares its files.
func writesAgain(t *testing.T, r *renewal, p part, committed map[string]string) {
	t.Helper()
	if err := p.write(r); err != nil {
		t.Fatal(err)
	}
	all := products()
	for name, text := range filetest.Contents(t, r.dir) {
		if of := productOf(all, name); of != nil && of.name == p.name && text != committed[name] {
			t.Errorf("%s differs; if that is meant, write it with: go run ./cmd/simrun results --only %s", name, p.name)
		}
	}
}

// The committed recordings replay. A long test replays all of them, and a short test a
// sample. A test in peers replays the recordings of other people's locks.
func TestRecordingsAmongTheResultsReplay(t *testing.T) {
	var recordings []string
	for name := range filetest.Contents(t, "../../results") {
		folder, _, _ := strings.Cut(name, "/")
		if strings.HasSuffix(name, ".lockstep") && !slices.Contains([]string{"inventory", "peers", "peers-recordings", "peers-track-record", "survey"}, folder) {
			recordings = append(recordings, name)
		}
	}
	if len(recordings) < 200 {
		t.Fatalf("only %d recordings", len(recordings))
	}
	slices.Sort(recordings)
	every := len(recordings) / longtest.Size(t, 40, len(recordings))
	for i := 0; i < len(recordings); i += every {
		if code, out, stderr := call(t, "replay", filepath.Join("../../results", recordings[i])); code != exitOK {
			t.Errorf("%s: exit %d; if the same decisions are meant to give another record, raise the number sim.Version\n%s%s", recordings[i], code, out, stderr)
		}
	}
}

// A recording of a test is of a lock that only the test knows.
func TestARecordingOfATestSaysWhatPlaysIt(t *testing.T) {
	text, err := os.ReadFile("../../results/misdelete/setnx-del/1.lockstep")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "orders.lockstep")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("setnx-del"), []byte("orders")), 0o644); err != nil {
		t.Fatal(err)
	}
	const want = "A recording of a test is played by the test, with -lockstep.replay"
	if code, _, stderr := call(t, "replay", file); code != exitUsage || !strings.Contains(stderr, `unknown lock "orders"`) || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %q; want it to contain %q", code, stderr, want)
	}
}

// In the control group no judge may find a bug, and a single seed draws too few cases to show that.
func TestTheControlGroupIsPlayedFromManySeeds(t *testing.T) {
	folders, err := filepath.Glob("../../results/explore/reference*")
	if err != nil || len(folders) < 6 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "verdicts.jsonl"))
		if err != nil {
			t.Error(err)
			continue
		}
		seeds := 0
		for line := range bytes.Lines(text) {
			var verdict struct {
				Group, Class string
				Plan         explore.Plan
			}
			if err := json.Unmarshal(line, &verdict); err != nil {
				t.Fatal(folder, err)
			}
			seeds = max(seeds, verdict.Plan.Seeds)
			if verdict.Class == "bug" {
				t.Errorf("%s has the bug %s", folder, verdict.Group)
			}
		}
		if seeds < 50 {
			t.Errorf("%s has runs of %d seeds, fewer than 50", folder, seeds)
		}
	}
}

// The committed summaries of the campaigns equal those that simrun writes. (The campaigns themselves take too
// long for a test. Another test replays their recordings.)
func TestFindingsAreWhatSimrunWrites(t *testing.T) {
	committed := filetest.Contents(t, "../../results")
	t.Chdir(t.TempDir())
	writeContents(t, "results", committed)
	r := &renewal{a: &app{host: sim.NewHost(t)}, dir: "results", stop: t.Context()}
	parts := partsChecked(t, r, comparedWithParts)
	if len(parts) != 2 {
		t.Errorf("this program writes %d summaries, want those of explore and exhaustive", len(parts))
	}
	for _, p := range parts {
		writesAgain(t, r, p, committed)
	}
	for name, text := range filetest.Contents(t, "results") { // the recordings of the campaigns are on the shelf
		if text != committed[name] {
			t.Errorf("%s is another file now", name)
		}
	}
	for name := range committed {
		if _, err := os.Stat(filepath.Join("results", name)); err != nil {
			t.Error(err)
		}
	}
}

// Each recording of a shelf shows the known defect or the limit that it is named after, and verdicts lead to it.
func TestTheRecordingsOfTheShelfShowWhatTheyAreNamedAfter(t *testing.T) {
	shelf := explore.Shelf{Dir: "../../results/recordings", Host: sim.NewHost(t)}
	names, err := shelf.Names()
	if err != nil || len(names) < 80 {
		t.Fatalf("%d recordings, %v", len(names), err)
	}
	every := len(names) / longtest.Size(t, 20, len(names))
	for i := 0; i < len(names); i += every {
		if err := shelf.Shows(names[i]); err != nil {
			t.Error(err)
		}
	}
}

// The tables of results/ link to files that are there, and each recording has a table that leads to it.
func TestTheLinksOfTheResultsLeadToTheirFiles(t *testing.T) {
	all := filetest.Contents(t, "../../results")
	led := map[string]bool{}
	links := regexp.MustCompile(`\]\(([^()#\s]+)(?:#[^()\s]*)?\)`)
	for name, text := range all {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := path.Join(path.Dir(name), m[1])
			led[to] = true
			if _, err := os.Stat(filepath.Join("../../results", filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: %s leads nowhere", name, m[1])
			}
		}
	}
	for name := range all {
		if path.Ext(name) == ".lockstep" && !led[name] {
			t.Errorf("no table leads to %s", name)
		}
	}
}

// The committed matrices equal those that simrun writes. A short test leaves out the track record, which takes
// longer.
func TestMatricesAreWhatSimrunWrites(t *testing.T) {
	committed := filetest.Contents(t, "../../results")
	for _, p := range partsChecked(t, &renewal{a: &app{}, dir: "../../results"}, comparedWhole) {
		if p.name == "verdicts" { // of TestResultsAreWhatSimrunWrites
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			if p.name == "track-record" {
				longtest.Only(t)
			}
			t.Chdir(t.TempDir())
			if err := os.Mkdir("results", 0o755); err != nil {
				t.Fatal(err)
			}
			writesAgain(t, &renewal{a: &app{host: sim.NewHost(t)}, dir: "results", stop: t.Context()}, p, committed)
		})
	}
}

// All formats of matrix say the same of a scenario.
func TestMatrixFormats(t *testing.T) {
	args := []string{"matrix", "unlock-of-a-free-lock", "--seed", "1"}
	for format, wants := range map[string][]string{
		"text":     {"3.4.2 3.11.0", "4.7.0 reference", "unlock-of-a-free-lock plain bug 1 held", "unlock-of-a-free-lock on setnx-cad: held"},
		"markdown": {"| unlock-of-a-free-lock | plain | [bug 1](unlock-of-a-free-lock/redisson@3.4.2/1.lockstep) | held |", "issue 2018", "Judged by: want"},
		"html":     {`<td class="bug">bug 1</td><td class="held">held</td>`},
		"json":     {`"scenario":"unlock-of-a-free-lock","lock":"redisson@3.4.2","seed":1,"verdict":"bug"`},
	} {
		code, out, stderr := call(t, append(args, "--format", format)...)
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(squeeze(out), want) {
				t.Errorf("%s: no %q in\n%s", format, want, out)
			}
		}
	}
	if _, out, _ := call(t, append(args, "--json")...); strings.Count(out, "\n") != 10 {
		t.Errorf("--json: not an object a cell:\n%s", out)
	}
	if code, _, stderr := call(t, append(args, "--format", "pdf")...); code != exitUsage || !strings.Contains(stderr, "known are text, json, markdown, html") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := call(t, "matrix", "--tag", "trak"); code != exitUsage || !strings.Contains(stderr, "track-record") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// notYes returns the output of run from the first pair on that was not as expected.
func notYes(out string) string {
	if i := strings.Index(out, " NO: "); i >= 0 {
		return out[strings.LastIndex(out[:i], "\n")+1:]
	}
	return out
}

// The reference has one column, even if one of the scenarios is not about releases.
func TestMatrixOfScenariosOfAllKinds(t *testing.T) {
	for _, names := range [][]string{{"unlock-of-a-free-lock", "a-lease-ends"}, {"a-lease-ends", "unlock-of-a-free-lock"}} {
		_, out, _ := call(t, append([]string{"matrix", "--lock", "redisson@4.7.0,reference", "--seed", "1"}, names...)...)
		if out = squeeze(out); !strings.Contains(out, "scenario lock 4.7.0 reference ") || !strings.Contains(out, "unlock-of-a-free-lock plain held held ") || strings.Contains(out, "on reference") {
			t.Errorf("%v:\n%s", names, out)
		}
	}
}

// A lock that no row names is expected to hold. A cell says whether the lock has the bug of
// the row, even if another judge is broken in the run.
func TestMatrixOfALockThatNoRowNames(t *testing.T) {
	_, out, _ := call(t, "matrix", "fair-deadline-drift", "fair-dead-waiters-add-up", "--lock", "redisson-nonreentrant-fair@4.7.0", "--seed", "1")
	if !strings.Contains(squeeze(out), "redisson-nonreentrant-fair@4.7.0 held! limit 1! ") {
		t.Errorf("want held! and limit 1! in\n%s", out)
	}
	const key = "held!: something broke that the scenario is not about; run shows it."
	if !strings.Contains(squeeze(out), key) {
		t.Errorf("want %q in\n%s", key, out)
	}
	if _, out, _ := call(t, "matrix", "misdelete", "--seed", "1"); strings.Contains(squeeze(out), key) {
		t.Errorf("nothing else broke, but %q is in\n%s", key, out)
	}
}

// In no format is a row a verdict on a lock that does not claim its property.
func TestARowThatALockDoesNotClaim(t *testing.T) {
	const why = "builtin/track-record/one-failed-renewal-ends-it.yaml: each run must reach renewed, and on setnx-cad nothing renews a hold"
	code, out, _ := call(t, "run", "--tag", trackRecord, "--lock", "setnx-cad", "--json")
	words := map[string]string{}
	for line := range strings.Lines(out) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		words[o.Scenario] = o.Verdict
		if o.Scenario == "one-failed-renewal-ends-it" && (len(o.Findings) != 1 || o.Findings[0].Finding != "n/a" || o.Findings[0].Why != why) {
			t.Errorf("findings %+v", o.Findings)
		}
	}
	if code != exitOK || words["one-failed-renewal-ends-it"] != "n/a" || words["partial-unlock-stretches-the-lease"] != "n/a" || words["unlock-of-a-free-lock"] != "held" {
		t.Errorf("exit %d, %v", code, words)
	}
	for scenario, word := range words {
		if word == string(play.VerdictUndecided) {
			t.Errorf("%s is undecided", scenario)
		}
	}
	for _, args := range [][]string{{"run"}, {"matrix"}, {"matrix", "--format", "markdown"}, {"matrix", "--format", "html"}, {"run", "--format", "junit"}} {
		code, out, _ := call(t, append(args, "one-failed-renewal-ends-it", "--lock", "setnx-cad")...)
		if code != exitOK || !strings.Contains(out, "n/a") && !strings.Contains(out, "<skipped") || !strings.Contains(squeeze(out), why) {
			t.Errorf("%v: exit %d\n%s", args, code, out)
		}
	}
	// A property is such a row, too.
	if code, out, _ := call(t, "matrix", "reentrant", "one-at-a-time", "--lock", "redisson-nonreentrant@4.7.0"); code != exitOK || !strings.Contains(squeeze(out), "redisson-nonreentrant@4.7.0 n/a held") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A table with a cell that was not played says why, and no other table does.
func TestMatrixSaysWhyACellIsEmpty(t *testing.T) {
	for _, c := range []struct {
		scenarios []string
		row       string
		why       bool
	}{
		{[]string{"fair-third-waiter-shares-deadline", "fair-deadline-drift"}, "fair-third-waiter-shares-deadline fair bug 1 bug 1 held held held held – ", true},
		{[]string{"fair-trylock-unit-mismatch", "fair-deadline-drift"}, "fair-trylock-unit-mismatch fair held held held bug 1 bug 1 bug 1 held ", false},
	} {
		_, out, _ := call(t, append([]string{"matrix", "--seed", "1"}, c.scenarios...)...)
		if out = squeeze(out); !strings.Contains(out, c.row) || strings.Contains(out, "–: not played, since the scenario does not name the lock.") != c.why {
			t.Errorf("want the row %q, and a reason: %v\n%s", c.row, c.why, out)
		}
	}
}

// Scenarios about different locks are the rows, each with its locks by verdict, and with the locks
// to which it does not apply.
func TestMatrixOfScenariosAboutDifferentLocks(t *testing.T) {
	dir := t.TempDir()
	fenced, late := filepath.Join(dir, "fenced.yaml"), filepath.Join(dir, "late.yaml")
	for file, text := range map[string]string{
		fenced: "name: fenced\nsource: a book\nlocks: [reference]\nresources: {stock: {start: 1, fence: x}}\nprocesses: {a: {}}\n" +
			"steps: {a/1: [{with_lock: {name: x, lease: 5s, steps: [{use: {resource: stock, take: 1, for: 1s}}]}}]}\n",
		late: "name: late\nsource: issue 1\nlocks: [setnx-del, setnx-cad]\nprocesses: {a: {}, b: {}}\n" +
			"steps: {a/1: [{lock: {name: x, lease: 3s}}, {sleep: 5s}, {unlock: x}], b/1: [{at: 1s}, {lock: {name: x, lease: 10s}}, {sleep: 4s}, {unlock: x}]}\n" +
			"expect: {setnx-del: {bug: [misdelete]}, setnx-cad: {not: [misdelete]}}\n",
	} {
		if err := os.WriteFile(file, []byte("lockstep: 1\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for format, wants := range map[string][]string{
		"text": {"scenario source broken held n/a", "fenced a book – reference setnx-del, setnx-cad", "late issue 1 bug 1 on setnx-del setnx-cad –", "fenced: n/a on setnx-del: "},
		"markdown": {"| fenced | a book | – | reference | setnx-del, setnx-cad |", "| late | issue 1 | [bug 1](late/setnx-del/1.lockstep) on setnx-del | setnx-cad | – |",
			"n/a on setnx-cad: " + fenced + ":7: "},
		"html": {`<td class="bug">bug 1 on setnx-del</td>`, "<br>n/a on setnx-del: "},
	} {
		code, out, stderr := call(t, "matrix", fenced, late, "--format", format)
		if code != exitOK {
			t.Fatalf("exit %d: %s%s", code, out, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(squeeze(out), want) {
				t.Errorf("%s: no %q in\n%s", format, want, out)
			}
		}
	}
	// A lock that plays both has a row, and its cell says what the lock lacks.
	_, out, _ := call(t, "matrix", fenced, late, "--lock", "setnx-del")
	if out = squeeze(out); !strings.Contains(out, "lock fenced late setnx-del n/a bug 1") {
		t.Errorf("no row of setnx-del in\n%s", out)
	}
}

// A run writes over the verdicts of an earlier run, and over no other file.
func TestVerdictsReplaceNothingOfTheUsers(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		verdictsPage:         "# Verdicts\n\nof the court\n",
		explore.VerdictsFile: `{"court":"high","verdict":"bug"}` + "\n",
	} {
		if err := errors.Join(os.Mkdir("r", 0o755), os.WriteFile(filepath.Join("r", name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "r")
		if code != exitUsage || !strings.Contains(stderr, filepath.Join("r", name)+" would be overwritten") {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if got := filetest.Contents(t, "r"); len(got) != 1 || got[name] != text {
			t.Errorf("the folder has %v; want %s as it was", got, name)
		}
		if err := os.RemoveAll("r"); err != nil {
			t.Fatal(err)
		}
	}
	// The table of a campaign has the same name.
	if code, _, stderr := call(t, "explore", "--lock", "setnx-del", "--runs", "2", "--quiet", "--out", "c"); code != exitOK {
		t.Fatal(stderr)
	}
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "c"); code != exitUsage || !strings.Contains(stderr, "would be overwritten") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	// And a campaign writes over the table of a campaign alone.
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "d"); code != exitOK {
		t.Fatal(stderr)
	}
	before := filetest.Contents(t, "d")
	code, _, stderr := call(t, "explore", "--lock", "setnx-del", "--runs", "2", "--quiet", "--out", "d")
	if code != exitUsage || !strings.Contains(stderr, "would be overwritten, and the command explore did not write it") || !maps.Equal(before, filetest.Contents(t, "d")) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr = call(t, "merge", "c", "--out", "d")
	if code != exitUsage || !strings.Contains(stderr, "would be overwritten, and the command explore did not write it") || !maps.Equal(before, filetest.Contents(t, "d")) {
		t.Errorf("merge: exit %d: %s", code, stderr)
	}
	for _, file := range []string{explore.PlanFile, explore.RunsFile} { // as a folder of results, which has no runs
		if err := os.Remove(filepath.Join("c", file)); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := call(t, "explore", "--lock", "setnx-del", "--runs", "2", "--quiet", "--out", "c"); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestAnInterruptedOrEarlierResultIsNeverHalfReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "r"); code != exitOK {
		t.Fatal(stderr)
	}
	before := filetest.Contents(t, "r")
	if _, ok := before["misdelete/setnx-del/1.lockstep"]; !ok {
		t.Fatalf("no recording: %v", before)
	}
	// A run with another seed removes the recording of the first and replaces the rest.
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "2", "--out", "r"); code != exitOK {
		t.Fatal(stderr)
	}
	after := filetest.Contents(t, "r")
	if _, ok := after["misdelete/setnx-del/1.lockstep"]; ok {
		t.Error("a recording that this run did not write stayed")
	}
	if !strings.Contains(after["verdicts.md"], "go run ./cmd/simrun run misdelete --seed 2 --out r") {
		t.Error("the command that wrote it is not on top")
	}
	// Bad input touches nothing.
	if code, _, _ := call(t, "run", "no-such-scenario", "--out", "r"); code != exitUsage {
		t.Fatal("an unknown scenario was run")
	}
	if got := filetest.Contents(t, "r"); len(got) != len(after) || got["verdicts.md"] != after["verdicts.md"] {
		t.Error("bad input changed the results")
	}
	for name := range after {
		if strings.Contains(name, ".writing-") {
			t.Errorf("a temporary file stayed: %s", name)
		}
	}
}
