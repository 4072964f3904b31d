package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/internal/filetest"
	"lockstep/scenarios/subject"
)

func TestSurveyRefusesBadInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--lock setnx-dell", "setnx-del"},
		{"--lock setnx-del --runs 0", "--runs 0: from 1 to 1000000000"},
		{"--lock setnx-del --jobs 0", "--jobs 0: from 1"},
		{"--lock setnx-del --seconds -1", "--seconds -1: from 0 to 1000000000"},
		{"--lock setnx-del --runs-of setnx-del", "want LOCK=N"},
		{"--lock setnx-del --runs-of setnx-del=0", "want LOCK=N"},
		{"--lock setnx-del --runs-of setnx-cad=5", "setnx-cad is not surveyed"},
		{"--again setnx-del", "--again needs --out"},
		{"--again setnx-del --out " + t.TempDir(), "there is no survey in"},
		{"--lock setnx-del more", `"more" is no option`},
		{"--lock setnx-del --out " + file, "--out"},
	} {
		code, out, stderr := call(t, append([]string{"survey"}, strings.Fields(c.args)...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("survey %s: exit %d, %q, %q; want exit %d and %q", c.args, code, out, stderr, frame.ExitUsage, c.want)
		}
	}
}

// TestASurveyTakesOneReleaseOfALibrary asks which locks are surveyed when none is named.
func TestASurveyTakesOneReleaseOfALibrary(t *testing.T) {
	locks, err := surveyed(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range locks {
		names = append(names, l.Name)
		if l.Advice == "" {
			t.Errorf("%s does not say when to take it", l.Name)
		}
	}
	got := " " + strings.Join(names, " ") + " "
	for name, want := range map[string]bool{
		"setnx-del": true, "reference": true, "reference-fair": true, "redisson@4.7.0": true, "redisson-fenced@4.7.0": true,
		"redisson@3.43.0": false, "redisson@4.7.0+replicas": false,
	} {
		if strings.Contains(got, " "+name+" ") != want {
			t.Errorf("%s is surveyed: %v; want %v (%s)", name, !want, want, got)
		}
	}
}

// TestASurveyGoesOn gives a survey parts that an interrupted one kept, and parts of another
// program, which it must not take.
func TestASurveyGoesOn(t *testing.T) {
	dir := t.TempDir()
	setnx, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	lock := *setnx
	lock.Name = "no-such-lock" // no process can play it
	task := surveyTask{Lock: lock.Name, Options: survey.Options{Runs: 1, Seed: 1, Budget: 1}, Versions: explore.CurrentVersions()}
	keep := func(of surveyTask) {
		t.Helper()
		answer := surveyAnswer{Part: survey.Part{Odd: 7, Recordings: map[string]survey.SizedRecording{of.Part: {Text: "text", Size: 1}}}}
		_, err := frame.Kept(filepath.Join(dir, surveyingDir), of.Lock+"."+of.Part, of, func(surveyTask) (surveyAnswer, error) { return answer, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	goOn := func() ([]survey.Lock, error) {
		a := &frame.App{Program: testProgram(), Quiet: true}
		return surveyAll(a, t.Context(), []*subject.Subject{&lock}, task.Options, nil, 2, dir)
	}
	task.Versions.World++
	task.Part = survey.Stories
	keep(task)
	if all, err := goOn(); err == nil || all[0].Name != "" {
		t.Errorf("the answer of another program was taken: %+v, %v", all, err)
	}
	task.Versions.World--
	parts := survey.Parts()
	for _, task.Part = range parts[2:] {
		keep(task)
	}
	all, err := goOn()
	if l := all[0]; l.Name != lock.Name || l.Odd != 7*len(parts[2:]) || len(l.Recordings) != len(parts[2:]) {
		t.Errorf("kept: %+v", l)
	}
	if want := fmt.Sprintf("survey of no-such-lock, %s, %s: ", parts[0], parts[1]); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error %v; want %q", err, want)
	}
	if c := all[0].Cell("fair", parts[1]); c.Word != survey.Undecided || !strings.HasPrefix(c.Reason, "not played: ") {
		t.Errorf("the cell of a campaign that could not be played: %+v", c)
	}
}

// A survey deletes and replaces nothing but a survey that it repeats.
func TestASurveySparesWhatItDidNotWrite(t *testing.T) {
	args := func(dir string, more ...string) []string {
		return append([]string{"survey", "--lock", "none", "--runs", "1", "--out", dir}, more...)
	}
	refuses := func(want string, args ...string) {
		t.Helper()
		if code, _, stderr := call(t, args...); code != frame.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s; want exit %d and %q", args, code, stderr, frame.ExitUsage, want)
		}
	}
	dir := t.TempDir()
	mine := filepath.Join(dir, survey.RecordingsDir, "survey.go")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("package survey\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := filetest.Contents(t, dir)
	refuses("would be overwritten", args(dir)...)
	if after := filetest.Contents(t, dir); !maps.Equal(after, before) {
		t.Errorf("the folder has %q, and had %q", after, before)
	}

	dir = t.TempDir()
	s := survey.Survey{Command: "simrun survey", Options: survey.Options{Runs: 1, Seed: 1}}
	for _, lock := range []string{"none", "setnx-del"} {
		s.Locks = append(s.Locks, survey.Lock{Name: lock, Recordings: map[string]string{"r": "text"}})
		for _, campaign := range survey.Campaigns() {
			for _, p := range survey.Promises {
				s.Locks[len(s.Locks)-1].Cells = append(s.Locks[len(s.Locks)-1].Cells, survey.Cell{Promise: p.Name, Faults: campaign, Word: survey.Held})
			}
		}
	}
	old := filepath.Join(dir, filepath.FromSlash(survey.RecordingFile("none", "old")))
	for range 2 { // the second one repeats the first
		if err := writeSurvey(&frame.App{Program: testProgram()}, dir, s); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(old); err == nil {
			t.Error("a recording of the earlier survey is still there")
		}
		mine = filepath.Join(dir, survey.RecordingsDir, "mine")
		for _, file := range []string{mine, old} {
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	half := t.TempDir() // a survey was killed while it wrote its recordings
	for _, folder := range []string{surveyingDir, survey.RecordingsDir} {
		if err := os.Mkdir(filepath.Join(half, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := replaceable(half, nil, s.Options); err != nil {
		t.Errorf("a survey that goes on: %v", err)
	}
	locks := []*subject.Subject{{Name: "setnx-del"}, {Name: "none"}, {Name: "new"}}
	if err := replaceable(dir, locks, s.Options); err != nil {
		t.Errorf("a survey that repeats the old one, with one more lock: %v", err)
	}
	before = filetest.Contents(t, dir)
	refuses("holds another survey (it has setnx-del)", args(dir)...)
	refuses("holds another survey (its campaigns have 1 run, and not 2)", args(dir, "--lock", "setnx-del", "--runs", "2")...)
	refuses("holds another survey (it has seed 1, and not 7)", args(dir, "--lock", "setnx-del", "--seed", "7")...)
	if after := filetest.Contents(t, dir); !maps.Equal(after, before) {
		t.Errorf("the folder has %q, and had %q", after, before)
	}
}

// TestSomeLocksAreSurveyedAgain puts wrong figures into a survey of two locks. The lock that is
// surveyed again gets its real figures, and the other one keeps the wrong ones.
func TestSomeLocksAreSurveyedAgain(t *testing.T) {
	dir, _ := surveyTwo(t)
	before := filetest.Contents(t, dir)
	s, _, err := OpenSurvey(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Locks {
		if s.Locks[i].Recordings, err = readRecordings(dir, &s.Locks[i]); err != nil {
			t.Fatal(err)
		}
		s.Locks[i].Odd = 7
	}
	if err := writeSurvey(&frame.App{Program: testProgram()}, dir, s); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "survey", "--again", "none", "--out", dir)
	if code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	after := filetest.Contents(t, dir)
	was, is := strings.Split(before[survey.LocksFile], "\n"), strings.Split(after[survey.LocksFile], "\n")
	if is[0] != was[0] || is[1] != was[1] || !strings.Contains(is[2], `"odd":7`) {
		t.Errorf("written:\n%s\nwant the first lock of\n%s", after[survey.LocksFile], before[survey.LocksFile])
	}
	for name, text := range before {
		if strings.HasSuffix(name, ".lockstep") && after[name] != text {
			t.Errorf("%s is another file", name)
		}
	}
	// Another number of runs goes into the command on top, which plays the whole survey like this.
	if code, _, stderr := call(t, "survey", "--again", "none", "--runs-of", "none=1", "--out", dir); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if s, _, err := OpenSurvey(dir); err != nil || !strings.HasSuffix(s.Command, " --runs-of none=1") || s.Locks[0].Runs != 1 || s.Locks[1].Runs != 2 {
		t.Errorf("%q: %d and %d runs, %v", s.Command, s.Locks[0].Runs, s.Locks[1].Runs, err)
	}
	older := s
	older.Versions = explore.CurrentVersions()
	older.Locks = []survey.Lock{{Name: "redisson@4.7.0"}, {Name: "string-reentrant"}}
	two := t.TempDir()
	if err := writeSurveyData(two, older); err != nil {
		t.Fatal(err)
	}
	if _, err := toSurveyAgain([]string{"string-reentrant"}, two); err != nil {
		t.Errorf("nothing has changed: %v", err)
	}
	older.Versions.Judges = 11 // since then the judges have changed for both locks
	if err := writeSurveyData(two, older); err != nil {
		t.Fatal(err)
	}
	if _, err := toSurveyAgain([]string{"redisson@4.7.0"}, two); err == nil || !strings.Contains(err.Error(), "survey all locks") {
		t.Errorf("the judges have changed for a lock that is not surveyed again: %v", err)
	}
	older.Versions = explore.CurrentVersions().Untold() // as in surveys that told no stories
	if err := writeSurveyData(two, older); err != nil {
		t.Fatal(err)
	}
	if _, err := toSurveyAgain([]string{"string-reentrant"}, two); err == nil || !strings.Contains(err.Error(), "without the version of: stories") {
		t.Errorf("a survey without stories: %v", err)
	}
	for _, c := range []struct{ args, want string }{
		{"--again setnx-del", "does not have it"},
		{"--again none --runs 3", "--again takes --runs from the survey"},
		{"--again none --runs-of setnx-cad=3", "setnx-cad is not surveyed"},
	} {
		code, _, stderr := call(t, append(append([]string{"survey"}, strings.Fields(c.args)...), "--out", dir)...)
		if code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("survey %s: exit %d, %s", c.args, code, stderr)
		}
	}
}

// The tables of a survey can be written anew without a run. They keep the versions of the program
// that played it, and a survey without reasons can be read.
func TestTheTablesOfASurveyAreWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	old, err := os.ReadFile(filepath.Join("..", "results", survey.LocksFile))
	if err != nil {
		t.Fatal(err)
	}
	versions := regexp.MustCompile(`"world":\d+`)
	old = versions.ReplaceAll(old, []byte(`"world":6`))
	if err := os.WriteFile(filepath.Join(dir, survey.LocksFile), old, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "survey", "--tables", "--out", dir); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	after := filetest.Contents(t, dir)
	if after[survey.LocksFile] != string(old) || !strings.Contains(after[survey.MarkdownFile], "<!-- versions: world 6, ") || !strings.Contains(after[survey.PageFile], "<th>runs</th>") {
		t.Errorf("written:\n%.600s", after[survey.MarkdownFile])
	}
	for file, mark := range map[string]string{survey.MarkdownFile: "[`chubby`](#chubby) (only simulated)", survey.PageFile: ">chubby</a> (only simulated)"} {
		if !strings.Contains(after[file], mark) || strings.Contains(after[file], strings.ReplaceAll(mark, "chubby", "reference-fair")) {
			t.Errorf("%s does not say %q", file, mark)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--tables", "--tables needs --out"},
		{"--tables --runs 3 --lock none --out " + dir, "--tables plays nothing, and takes no --lock, --runs"},
		{"--tables --out " + filepath.Join(dir, "none"), "there is no survey in"},
		{"--costs", "--costs needs --out"},
		{"--costs --runs 3 --out " + dir, "--costs plays no schedules, and takes no --runs"},
		{"--costs --tables --out " + dir, "--costs plays no schedules, and takes no --tables"},
	} {
		if code, _, stderr := call(t, append([]string{"survey"}, strings.Fields(c.args)...)...); code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("survey %s: exit %d, %s", c.args, code, stderr)
		}
	}
}

// twoSurveyed holds what the survey of surveyTwo prints and the contents of its folder, once a test has
// asked for it.
var twoSurveyed struct {
	out    string
	folder map[string]string
}

// surveyTwo writes the folder of a survey of two locks, and returns what it prints. The survey is made
// once for all tests.
func surveyTwo(t *testing.T) (folder, out string) {
	t.Helper()
	folder = t.TempDir()
	if twoSurveyed.folder != nil {
		filetest.WriteContents(t, folder, twoSurveyed.folder)
		return folder, twoSurveyed.out
	}
	code, out, stderr := call(t, "survey", "--lock", "none", "--lock", "setnx-cad", "--runs", "2", "--out", folder)
	if code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	twoSurveyed.out, twoSurveyed.folder = out, filetest.Contents(t, folder)
	return folder, out
}

// The costs of a survey can be measured anew. Nothing else changes.
func TestTheCostsOfASurveyAreMeasuredAnew(t *testing.T) {
	dir, out := surveyTwo(t)
	if want := "cost: an acquire takes 1 request in 1 round trip, an unlock 1 request in 1 round trip; "; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	before := filetest.Contents(t, dir)
	data := filepath.Join(dir, survey.LocksFile)
	wrong := regexp.MustCompile(`"hand_over_ms":\d+`).ReplaceAllString(before[survey.LocksFile], `"hand_over_ms":7000`)
	if wrong == before[survey.LocksFile] {
		t.Fatalf("there is no cost in\n%s", wrong)
	}
	if err := os.WriteFile(data, []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "survey", "--costs", "--out", dir); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	after := filetest.Contents(t, dir)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was\n%s\nand is\n%s", name, text, after[name])
		}
	}
}

// TestTheIndexShowsTheSurvey writes a survey into a folder and makes the index of it.
func TestTheIndexShowsTheSurvey(t *testing.T) {
	dir := t.TempDir()
	l := survey.Lock{Name: "mine", Recordings: map[string]string{"r": "text"}}
	for _, campaign := range survey.Campaigns() {
		for _, p := range survey.Promises {
			l.Cells = append(l.Cells, survey.Cell{Promise: p.Name, Faults: campaign, Word: survey.Held, Runs: 1})
		}
	}
	l.Cells[0].Word, l.Cells[0].Recording = survey.Bug, "r"
	if err := writeSurvey(&frame.App{Program: testProgram()}, dir, survey.Survey{Command: "simrun survey", Locks: []survey.Lock{l}}); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err := ReadIndex(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Tables) != 2 {
		t.Fatalf("%d tables; want one of promises and one of costs", len(x.Tables))
	}
	if runs, want := x.Tables[0].Rows[0][1].Text, strconv.Itoa(len(survey.Campaigns())); runs != want {
		t.Errorf("%s runs; want %s", runs, want)
	}
	cell := x.Tables[0].Rows[0][2]
	if cell.Text != "bug without a fault" || cell.Recording != "survey/mine/r.lockstep" {
		t.Errorf("the cell of the bug: %+v", cell)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(cell.Recording))); err != nil {
		t.Error(err)
	}
}

// A lock whose process fails takes no result of another lock with it.
func TestOtherLocksArePrintedWhenOneFails(t *testing.T) {
	l, err := subject.Find("setnx-cad")
	if err != nil {
		t.Fatal(err)
	}
	here := *l
	here.Name, here.Unlisted = "known-here-only", true // the process that surveys it does not know it
	subject.Register(&here)
	code, out, stderr := call(t, "survey", "--lock", here.Name, "--lock", "none", "--runs", "1", "--jobs", "1")
	if code == frame.ExitOK || !strings.HasPrefix(out, "none: ") || strings.Contains(out, here.Name) || !strings.Contains(stderr, "survey of "+here.Name) {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	code, out, stderr = call(t, "repeat", "--lock", here.Name, "--lock", "none", "--runs", "1", "--seeds", "1")
	if code == frame.ExitOK || !strings.Contains(out, "| `"+here.Name+"` | not played: ") || !strings.Contains(out, "| `none` | ") || strings.Count(stderr, "unknown lock") != 1 {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}
