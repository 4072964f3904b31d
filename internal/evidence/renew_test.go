package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/cli/livetest"
	"lockstep/explore"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Every part of the results names the versions of the program that wrote it. The test logs
// the parts that an older program wrote, and does not fail for them.
func TestTheResultsSayWhichProgramWroteThem(t *testing.T) {
	code, out, stderr := call(t, "results", "../../results", "--check")
	if code != frame.ExitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	t.Logf("older than this program; go run ./cmd/evidence results --older writes them anew:\n%s", out)
}

// The help and the message about an unknown part name everything that a folder may have.
func TestThePartsOfResultsAreNamed(t *testing.T) {
	parts, err := (&renewal{a: &frame.App{Program: testProgram()}, dir: "../../results"}).parts()
	if err != nil {
		t.Fatal(err)
	}
	_, help, _ := call(t, "help", "results")
	_, err = chooseParts(parts, []string{"nothing"})
	for _, name := range productNames() {
		if !strings.Contains(squeeze(help), name+",") || !strings.Contains(err.Error(), name+",") {
			t.Errorf("%s is missing in\n%s\n%v", name, help, err)
		}
	}
}

// The table of products says of each file of results/ which command writes it, and each product has files there.
func TestEachFileOfTheResultsIsOfOneProduct(t *testing.T) {
	all := products()
	files := map[string]int{}
	for name := range filetest.Contents(t, "../../results") {
		of := 0
		for i := range all {
			if productOf(all[i:i+1], name) != nil {
				files[all[i].name]++
				of++
			}
		}
		if shared := strings.HasPrefix(name, "recordings/"); of != 1 && !(shared && of == 2) {
			t.Errorf("%s is of %d products", name, of)
		}
	}
	for _, p := range all {
		if files[p.name] == 0 {
			t.Errorf("results/ has no file of %s", p.name)
		}
	}
}

// little holds the folder of results that littleResults gives, once a test has asked for it.
var little map[string]string

// littleResults makes a folder of results with a campaign and an exhaustive search. They are
// played once for all tests.
func littleResults(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if little == nil {
		playLittleResults(t)
		little = filetest.Contents(t, "r")
		return
	}
	filetest.WriteContents(t, "r", little)
}

func playLittleResults(t *testing.T) {
	t.Helper()
	for folder, args := range map[string][]string{
		"r/explore/one":    {"--faults", "pause", "--runs", "12"},
		"r/exhaustive/two": {"--strategy", "exhaustive"},
	} {
		if code, _, stderr := call(t, append([]string{"explore", "--lock", "setnx-del", "--out", folder}, args...)...); code != frame.ExitOK && code != frame.ExitUnexpected {
			t.Fatalf("exit %d: %s", code, stderr)
		}
	}
	for _, file := range runsOfCampaign { // these are not results
		if err := os.Remove(filepath.Join("r/explore/one", file)); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := call(t, "results", "r", "--only", "explore-summary,exhaustive-summary"); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
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
	want := filetest.Contents(t, "r")
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
	spoil("r/explore/one/verdicts.md", "")
	spoil("r/findings.md", "")
	// The folder of an interrupted campaign, whose runs another version played.
	spoil("r/.renewing/explore/one/old/1.lockstep", "{}")
	spoil("r/.renewing/explore/one/campaign.json", `{"world": 1}`)
	spoil("r/.renewing/explore/one/runs.jsonl", "{}\n")

	code, out, stderr := call(t, campaigns...)
	if code != frame.ExitOK || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, part := range []string{"explore/one ", "explore-summary ", "exhaustive/two ", "exhaustive-summary "} {
		if !strings.Contains(out, part) || !strings.Contains(out, "s of processors") {
			t.Errorf("it does not say what %s cost:\n%s", part, out)
		}
	}
	same(t, filetest.Contents(t, "r"), want)
}

func TestResultsGoOnWhereTheyWereStopped(t *testing.T) {
	littleResults(t)
	want := filetest.Contents(t, "r")
	r := &renewal{a: &frame.App{Program: testProgram()}, dir: "r"}
	parts, err := r.parts()
	if err == nil {
		parts, err = chooseParts(parts, strings.Split(campaigns[3], ","))
	}
	if err == nil {
		err = r.keepDone(r.journal(parts), []string{"exhaustive/two"})
	}
	if err != nil {
		t.Fatal(err)
	}
	// Another command ignores the list of finished parts.
	if _, out, stderr := call(t, "results", "r", "--only", "exhaustive/two"); strings.Contains(out, "was done before") {
		t.Errorf("%s%s", out, stderr)
	}
	if err := r.keepDone(r.journal(parts), []string{"exhaustive/two"}); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, campaigns...)
	if code != frame.ExitOK || strings.Count(out, "was done before") != 1 || !strings.Contains(out, "exhaustive/two ") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	same(t, filetest.Contents(t, "r"), want)
}

// A campaign with more runs than the option --runs is played with fewer. The files of an interrupted
// call with more runs do no harm.
func TestResultsOfFewerRuns(t *testing.T) {
	littleResults(t)
	if code, _, stderr := call(t, "explore", "--lock", "setnx-del", "--faults", "pause", "--runs", "11", "--out", "r/.renewing/explore/one"); code != frame.ExitOK && code != frame.ExitUnexpected {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	want := filetest.Contents(t, "r/exhaustive/two")
	if code, _, stderr := call(t, append(campaigns, "--runs", "10")...); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if plan, _, err := explore.ReadCampaign("r/explore/one"); err != nil || plan.Runs != 10 {
		t.Errorf("%d runs, error %v", plan.Runs, err)
	}
	same(t, filetest.Contents(t, "r/exhaustive/two"), want)
	if code, _, stderr := call(t, append(campaigns, "--runs", "0")...); code != frame.ExitUsage || !strings.Contains(stderr, "results: --runs 0: from 1 to 1000000000") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A campaign of an older program, whose strategy this one does not have, is played with the
// default one.
func TestResultsOfAnOlderStrategy(t *testing.T) {
	littleResults(t)
	const file = "r/explore/one/verdicts.jsonl"
	older := strings.ReplaceAll(filetest.Read(t, file), `"strategy":"told"`, `"strategy":"random"`)
	if older == filetest.Read(t, file) {
		t.Fatal("the plan does not name its strategy")
	}
	filetest.Write(t, file, older)
	if code, _, stderr := call(t, "results", "r", "--only", "explore/one", "--runs", "10"); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if plan, _, err := explore.ReadCampaign("r/explore/one"); err != nil || plan.Strategy != explore.DefaultStrategy || plan.Runs != 10 {
		t.Errorf("the plan is %+v, error %v", plan, err)
	}
}

// A call that is killed while it replaces a folder leaves the old one aside. The next call
// puts it back, or removes it once the new one is there.
func TestResultsRecoverFromAKill(t *testing.T) {
	littleResults(t)
	want := filetest.Contents(t, "r")
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
		if code, _, stderr := call(t, "results", "r", "--only", "explore"); code != frame.ExitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		same(t, filetest.Contents(t, "r"), want)
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
	text, err := os.ReadFile("r/peers/theirs/verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("r/peers/theirs/verdicts.jsonl", []byte(strings.ReplaceAll(string(text), `"lock":"setnx-del"`, `"lock":"theirs"`)), 0o644); err != nil {
		t.Fatal(err)
	}
	want := filetest.Contents(t, "r")
	code, out, stderr := call(t, "results", "r", "--only", "peers,peers-summary")
	if code != frame.ExitOK || strings.Count(out, "is of locks that this program does not know") != 2 {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	same(t, filetest.Contents(t, "r"), want)
	if code, out, stderr := call(t, "results", "r", "--only", "peers", "--check"); code != frame.ExitOK || !strings.Contains(out, "0 of 1 parts") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// A check names the files that no command writes, and the recordings to which verdicts lead and that are not there.
func TestResultsThatLackARecordingOrHaveAnotherFile(t *testing.T) {
	littleResults(t)
	check := []string{"results", "r", "--only", "explore,exhaustive", "--check"}
	if code, out, stderr := call(t, check...); code != frame.ExitOK {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	const recording = "r/recordings/SETNX-misdelete.lockstep"
	if err := errors.Join(os.Remove(recording), os.Mkdir("r/recordings/sub", 0o755)); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, "r/notes.md", "")
	filetest.Write(t, "r/recordings/sub/1.lockstep", "")
	if code, _, stderr := call(t, check...); code != frame.ExitUsage || !strings.Contains(stderr, "explore/one/verdicts.jsonl: the recording "+recording+" is missing; write it anew: ") || strings.Contains(stderr, "notes") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr := call(t, "results", "r", "--check")
	for _, want := range []string{"no command of results writes r/notes.md; remove it", "no command of results writes r/recordings/sub/1.lockstep; remove it"} {
		if code != frame.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, and no %q: %s", code, want, stderr)
		}
	}
}

func TestResultsOfAnOlderProgram(t *testing.T) {
	littleResults(t)
	file := "r/explore/one/verdicts.jsonl"
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now := explore.CurrentVersions()
	lock, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	enough, older, tooOld := now, now, now
	enough.Judges, enough.Names = judges.VersionOf(lock.Traits), known.VersionOf(lock)
	older.Judges = enough.Judges - 1
	tooOld.Names = enough.Names - 1
	field := func(versions any) string {
		text, err := json.Marshal(versions)
		if err != nil {
			t.Fatal(err)
		}
		return `"versions":` + string(text) + ","
	}
	for _, c := range []struct {
		name, field string
		code        int
		says        string
	}{
		{"the same", field(now), frame.ExitOK, "0 of 2 parts are older"},
		{"older judges", field(older), frame.ExitOK, fmt.Sprintf("explore/one: judges %d, and the program has %d", older.Judges, now.Judges)},
		{"judges that find the same and names of a list in which only other locks differ", field(enough), frame.ExitOK, "0 of 2 parts are older"},
		{"older names", field(tooOld), frame.ExitOK, fmt.Sprintf("explore/one: names %d, and the program has %d", tooOld.Names, now.Names)},
		{"not all versions", field(now.Played()), frame.ExitUsage, "says nothing of the versions of explore/one: names, drawing"},
		{"no number", field(map[string]string{"world": "x"}), frame.ExitUsage, "verdicts.jsonl:"},
		{"no versions", "", frame.ExitUsage, "says nothing of the versions of explore/one: world, judges, names, drawing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(string(whole), field(now), c.field, 1)
			if c.field != field(now) && text == string(whole) {
				t.Fatalf("%s is not in\n%s", field(now), whole)
			}
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
	if code != frame.ExitOK || strings.Count(out, "\n") != 2 || !strings.Contains(out, "explore/one ") || !strings.Contains(out, "explore-summary ") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != string(whole) {
		t.Errorf("it is not written anew: %v\n%s", err, text)
	}
}

func TestResultsRefuse(t *testing.T) {
	littleResults(t)
	if err := errors.Join(os.Mkdir("source", 0o755), os.WriteFile("source/go.mod", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"source", "source has other files and no versions.json; results takes a folder of results, or an empty one"},
		{"source --older", "source has other files and no versions.json"},
		{"no-such-folder", "there is no folder no-such-folder"},
		{"r --only explore/three", `--only explore/three: did you mean "explore/one"? known are verdicts`},
		{"r --only peers", "--only peers: the folder has no campaign in peers"},
		{"r r", "takes one folder"},
		{"r --jobs 0", "--jobs 0: from 1 to 1024"},
		{"r --only=", "results: --only is empty; leave it out, or give it a value"},
		{"r --check --only performance", "have no versions"},
		{"r/explore/one/verdicts.jsonl", "is a file"},
	} {
		if code, _, stderr := call(t, append([]string{"results"}, strings.Fields(c.args)...)...); code != frame.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
	if err := os.WriteFile("r/explore/one/verdicts.jsonl", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "results", "r", "--only", "explore/one"); code == frame.ExitOK || !strings.Contains(stderr, "the totals of the campaign are missing") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The parts that are no campaigns say in one file which versions wrote them. A command that
// writes one of them keeps what the file says of the others.
func TestVersionsOfThePartsThatAreNoCampaigns(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("r", 0o755); err != nil {
		t.Fatal(err)
	}
	now := explore.CurrentVersions()
	older := now
	older.World--
	if err := cli.KeepVersions("r", "kill", older); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "results", "r", "--only", "verdicts", "--check"); code != frame.ExitUsage || !strings.Contains(stderr, "versions.json does not say which versions wrote verdicts") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "r"); code != frame.ExitOK {
		t.Fatal(stderr)
	}
	code, out, stderr := call(t, "results", "r", "--only", "verdicts,kill", "--check")
	if want := fmt.Sprintf("kill: world %d, and the program has %d\n1 of 2 parts are older", older.World, now.World); code != frame.ExitOK || !strings.Contains(out, want) {
		t.Errorf("exit %d: %s%s; want %s", code, out, stderr, want)
	}
	// Results writes a part and its versions.
	r := &renewal{a: &frame.App{Program: testProgram(), Out: io.Discard}, dir: "r"}
	parts := []part{{name: "kill", file: cli.VersionsFile, uses: now, write: func(*renewal) error { return nil }}}
	if code, err := r.writeAll(parts, nil); code != frame.ExitOK || err != nil {
		t.Fatal(code, err)
	}
	if _, out, _ := call(t, "results", "r", "--only", "verdicts,kill", "--check"); !strings.Contains(out, "0 of 2 parts are older") {
		t.Error(out)
	}
}

// A part that is played live is left out if the machine lacks a program, with a message that names
// the program. If the user names the part, nothing is written, and the message is the same.
func TestPartsThatArePlayedLiveNeedPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("r", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("r/upstream.md", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := &renewal{a: &frame.App{Program: testProgram(), Out: &out}, dir: "r"}
	all, err := r.parts()
	if err != nil {
		t.Fatal(err)
	}
	parts := slices.DeleteFunc(all, func(p part) bool { return p.live == nil })
	if len(parts) != 1 || parts[0].name != "upstream" {
		t.Fatalf("the live parts are %+v, want upstream, whose page is there", parts)
	}
	const says = "this program does not play live"
	if code, err := r.writeAll(parts, nil); code != frame.ExitOK || err != nil || !strings.Contains(out.String(), "upstream ") || !strings.Contains(out.String(), "is not written: "+says) {
		t.Errorf("%d, %v: %s", code, err, out.String())
	}
	if _, err := r.writeAll(parts, []string{"upstream"}); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
	if code, _, stderr := call(t, "results", "r", "--check", "--only", "upstream"); code != frame.ExitUsage || !strings.Contains(stderr, "r has no versions.json, which says the versions of upstream") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	older := upstreamVersions()
	older.Names--
	if err := cli.KeepVersions("r", "upstream", older); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := call(t, "results", "r", "--check", "--only", "upstream"); !strings.Contains(out, fmt.Sprintf("upstream: names %d, and the program has", older.Names)) {
		t.Error(out)
	}
}

// The part is what the command writes, with its versions. A machine that lacks a program says so.
func TestALivePartIsWrittenWithItsVersions(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("r", 0o755); err != nil {
		t.Fatal(err)
	}
	live := &livetest.Player{Lacks: livetest.Unusable(errors.New("there is no redis-server here; install it: apt-get install redis-server"))}
	setLive(t, live)
	if code, _, stderr := call(t, "results", "r", "--only", "agreement-ports"); code != frame.ExitUsage || !strings.Contains(stderr, "apt-get install redis-server") || live.Runs > 0 {
		t.Errorf("exit %d after %d runs: %s", code, live.Runs, stderr)
	}
	live.Lacks = nil
	parts := []struct {
		name, end, row string
		rows           int
	}{
		{"agreement-planted", "| 2 of 2 | 0 of 2 |\n", "| unlock-by-anyone | redisson@4.7.0 | ", 60},
		{"agreement-ports", "1 of 1 |\n", "| misdelete | redisson@3.4.2 | held |", 350},
	}
	for _, p := range parts[:longtest.Size(t, 1, len(parts))] {
		if code, _, stderr := call(t, "results", "r", "--only", p.name); code != frame.ExitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		page, err := os.ReadFile("r/" + p.name + ".md")
		if rows := strings.Count(string(page), p.end); err != nil || rows < p.rows || !strings.Contains(string(page), p.row) {
			t.Errorf("%v: %d rows in\n%s", err, rows, page)
		}
		if _, out, stderr := call(t, "results", "r", "--check", "--only", p.name); !strings.HasPrefix(out, "0 of 1 parts are older") {
			t.Errorf("%s%s", out, stderr)
		}
	}
}

// A command that results calls ends with results, and what it printed is not written.
func TestACommandOfResultsEndsWithIt(t *testing.T) {
	stop, interrupt := context.WithCancel(t.Context())
	interrupt()
	r := &renewal{a: &frame.App{Program: testProgram(), Host: sim.NewHost(t)}, stop: stop}
	if text, err := r.run("matrix", "misdelete", "--seed", "1"); !errors.Is(err, context.Canceled) || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
