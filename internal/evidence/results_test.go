package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
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
	if code, out, stderr := call(t, append(append([]string{"run"}, names...), "--out", "results")...); code != frame.ExitOK {
		t.Fatalf("exit %d: %s\n%s", code, stderr, out)
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
		case name == cli.VersionsFile: // the committed file has the versions of other parts, too
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
			t.Errorf("%s differs; if that is meant, write it with: go run ./cmd/evidence results --only %s", name, p.name)
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
		if code, out, stderr := call(t, "replay", filepath.Join("../../results", recordings[i])); code != frame.ExitOK {
			t.Errorf("%s: exit %d; if the same decisions are meant to give another record, raise the number sim.Version\n%s%s", recordings[i], code, out, stderr)
		}
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

// The committed summaries of the campaigns equal those that frame.Simrun writes. (The campaigns themselves take too
// long for a test. Another test replays their recordings.)
func TestFindingsAreWhatSimrunWrites(t *testing.T) {
	committed := filetest.Contents(t, "../../results")
	t.Chdir(t.TempDir())
	filetest.WriteContents(t, "results", committed)
	r := &renewal{a: &frame.App{Program: testProgram(), Host: sim.NewHost(t)}, dir: "results", stop: t.Context()}
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
	for _, p := range partsChecked(t, &renewal{a: &frame.App{Program: testProgram()}, dir: "../../results"}, comparedWhole) {
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
			writesAgain(t, &renewal{a: &frame.App{Program: testProgram(), Host: sim.NewHost(t)}, dir: "results", stop: t.Context()}, p, committed)
		})
	}
}
