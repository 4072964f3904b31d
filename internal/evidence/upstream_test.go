package evidence

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"lockstep/cli/frame"
	"lockstep/cli/livetest"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/known"
	"lockstep/live/upstream"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Each story shows the defect of its name on the port, which gives the finding this name, and a
// test in Java can express it.
func TestStoriesShowTheirDefect(t *testing.T) {
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t)}
	ids := upstream.IDs()
	step := len(ids) / longtest.Size(t, 6, len(ids)) // some of them take seconds
	for i, id := range ids {
		if i%step != 0 {
			continue
		}
		t.Run(id, func(t *testing.T) {
			d := known.Find(id)
			if d == nil {
				t.Fatal("there is no such defect")
			}
			sc, err := upstream.Story(id)
			if err != nil {
				t.Fatal(err)
			}
			l, err := subject.Find(sc.Locks[0])
			if err != nil {
				t.Fatal(err)
			}
			v := play.Run(a.Host, sc, l, sc.SeedFirst)
			if !v.AsExpected {
				t.Errorf("the story expects %s, and comes to %s", v.Expected, v.Word)
			}
			f, ok := findingOf(a, v, d)
			if !ok {
				t.Fatalf("no finding has the name of the defect: %v", v.Findings)
			}
			r := upstream.Report{Defect: upstream.Defect{ID: id, Title: d.Title, Release: l.Release, Fair: l.Fair}, Simulated: v, Finding: f, Tries: 1}
			files, err := r.Project()
			if err != nil {
				t.Fatal(err)
			}
			plays := string(files["src/test/java/lockreport/StoryTest.java"])
			for _, m := range regexp.MustCompile(`"(?:do|that)": ("[^"]*")`).FindAllStringSubmatch(string(files["src/test/resources/story.json"]), -1) {
				if !strings.Contains(plays, "case "+m[1]+":") {
					t.Errorf("StoryTest.java does not know %s", m[1])
				}
			}
		})
	}
}

// fakeLibrary registers the locks of the library, of which the program for tests has the ports only.
func fakeLibrary(t *testing.T) {
	for _, x := range [][2]string{{"redisson", "redisson-java"}, {"redisson-fair", "redisson-java-fair"}} {
		if _, err := subject.Find(x[1] + "@4.7.0"); err == nil {
			continue
		}
		port, err := subject.Find(x[0] + "@4.7.0")
		if err != nil {
			t.Fatal(err)
		}
		l := *port
		l.Name, l.Port, l.Unlisted = x[1]+"@4.7.0", port, true
		subject.Register(&l)
	}
}

// The table says which defects were seen, and how often. A defect that was not seen has no folder.
// The next command goes on with the defects that were not looked for.
func TestUpstreamWritesWhatItSaw(t *testing.T) {
	fakeLibrary(t)
	results := t.TempDir()
	out := filepath.Join(results, "upstream")
	one := []string{"upstream", "R-watchdog-leased-level", "R-4818-long", "--runs", "2", "--tries", "0", "--results", results}
	setLive(t, &livetest.Player{})
	if code, _, stderr := call(t, one...); code != frame.ExitOK {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	table := filetest.Read(t, out+".md")
	for _, want := range []string{
		"| R-4818-long |", "| #4818 | 2 of 2 | no test | [R-4818-long](upstream/R-4818-long/report.md) |", "2 of 2 defects were seen, 0 of them by a test",
		"| none known | 2 of 2 | no test | [R-watchdog-leased-level](upstream/R-watchdog-leased-level/report.md) |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	report := filetest.Read(t, filepath.Join(out, "R-watchdog-leased-level", "report.md"))
	for _, want := range []string{
		"**Expected behavior**", "**Actual behavior**", "**Steps to reproduce or test case**", "**Redisson version**\n\n4.7.0", "fake-server 1.2.3",
		"Thread a/1: lock() on x, lock(10000, MILLISECONDS) on x, at 1s, unlock() on x, sleep 25s.", "2 of 2 runs of the library", "lockWatchdogTimeout 9000", "(acquire) a/1 → nil",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	files := filetest.Contents(t, filepath.Join(out, "R-watchdog-leased-level"))
	if want := []string{"report.md", "scenario.yaml"}; !slices.Equal(slices.Sorted(maps.Keys(files)), want) {
		t.Errorf("the folder has %q, want %q", slices.Sorted(maps.Keys(files)), want)
	}
	command := func(want string) {
		t.Helper()
		if got, _, _ := strings.Cut(filetest.Read(t, out+".md"), "\n"); got != "<!-- written by: go run ./cmd/evidence upstream "+want+" --results "+results+" -->" {
			t.Errorf("the table names the command %s", got)
		}
	}
	command("R-watchdog-leased-level R-4818-long --runs 2 --tries 0")
	// Another lock takes the place of the library, and does not have the defect.
	setLive(t, &livetest.Player{Other: "reference"})
	if code, _, stderr := call(t, "upstream", "R-4818-long", "--runs", "3", "--tries", "0", "--results", results); code != frame.ExitOK {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	command("--runs 3 --tries 0") // some of its defects are not named
	table = filetest.Read(t, out+".md")
	if !strings.Contains(table, "| #4818 | 0 of 3 | no test | the library was not seen to do it |") || !strings.Contains(table, "| R-watchdog-leased-level |") {
		t.Errorf("the table is\n%s", table)
	}
	if _, err := os.Stat(filepath.Join(out, "R-4818-long")); !os.IsNotExist(err) {
		t.Errorf("the folder of what was not seen is there: %v", err)
	}
}

// If a defect cannot be played, the others are in the table, and the exit code is that of a system that
// fails.
func TestUpstreamSaysWhatCouldNotBePlayed(t *testing.T) {
	fakeLibrary(t)
	results := t.TempDir()
	out := filepath.Join(results, "upstream")
	setLive(t, &livetest.Player{After: 1})
	code, _, stderr := call(t, "upstream", "R-watchdog-leased-level", "R-4818-long", "--runs", "1", "--tries", "0", "--jobs", "1", "--results", results)
	const want = "\nevidence: 1 of 2 defects could not be played, the first because of this: R-4818-long: the machine is gone; the defects that are done are kept\n"
	if code != frame.ExitIO || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit %d, %s; want %d and %q", code, stderr, frame.ExitIO, want)
	}
	if table := filetest.Read(t, out+".md"); !strings.Contains(table, "| R-watchdog-leased-level |") || strings.Contains(table, "| R-4818-long |") {
		t.Errorf("the table is\n%s", table)
	}
}

// The locks of peers are of many libraries, so their table has a title of its own.
func TestTheTablesOfUpstreamHaveTitles(t *testing.T) {
	for release, title := range map[string]string{"4.7.0": "# Known defects on the library itself", "": "# Known defects of other people's locks on real servers"} {
		table := upstreamTable{text: filepath.Join(t.TempDir(), "upstream.md"), release: release}
		if err := table.write(nil); err != nil {
			t.Fatal(err)
		}
		if text := filetest.Read(t, table.text); !strings.Contains(text, "\n"+title+"\n") {
			t.Errorf("release %q: the title is not %q:\n%s", release, title, text)
		}
	}
}

func TestUpstreamRefusesBadInput(t *testing.T) {
	fakeLibrary(t)
	results := t.TempDir()
	for _, c := range []struct{ rule, args, want string }{
		{"an unknown defect", "R-none", "no known defect R-none"},
		{"a defect of another release", "R-2018", "no lock of release 4.7.0 that live plays has the defect R-2018"},
		{"an unknown release", "--release 9.9.9", "9.9.9"},
		{"no run", "--runs 0", "--runs 0"},
		{"runs of a project", "--out out --runs 2", "upstream: --out plays nothing, and takes no --runs"},
		{"a project without a try", "--out out --tries 0", "upstream: --out writes a test, which needs --tries of 1 or more"},
		{"a defect without a test", "R-fair-ghost --out out", "upstream: there is no test to write: R-fair-ghost: a test in one process cannot express it: a simulated run does not show it"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			setLive(t, &livetest.Player{})
			t.Chdir(results)
			if code, _, stderr := call(t, append([]string{"upstream", "--results", "."}, strings.Fields(c.args)...)...); code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, %s; want %d and %q", code, stderr, frame.ExitUsage, c.want)
			}
		})
	}
}

func TestWhatMavenWroteIsCounted(t *testing.T) {
	r, err := readSurefire(fstest.MapFS{"target/surefire-reports/TEST-lockreport.XTest.xml": {Data: []byte(
		`<testsuite><testcase name="1"><failure message="a and b">x</failure></testcase><testcase name="2"/><testcase name="3"><error message="no server"/></testcase></testsuite>`)}})
	if err != nil || r.Tries != 3 || r.Failed != 1 || r.Errors != 1 || r.Message != "a and b" {
		t.Errorf("%v: %+v", err, r)
	}
}

// A story that one JVM cannot play says so.
func TestAPauseCannotBeExpressedInOneJVM(t *testing.T) {
	text := strings.Replace(filetest.Read(t, "../../live/upstream/stories/R-watchdog-leased-level.yaml"), "expect:", "faults: [{at: 20s, pause: a, for: 1s}]\nexpect:", 1)
	sc, err := scenarios.Parse("s.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := subject.Find("redisson@4.7.0")
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t)}
	v := play.Run(a.Host, sc, l, 1)
	r := upstream.Report{Defect: upstream.Defect{ID: "R-x", Title: "x"}, Simulated: v, Finding: v.Findings[0], Tries: 1}
	if _, err := r.Project(); !upstream.Inexpressible(err) || !strings.Contains(err.Error(), "pause of a") {
		t.Errorf("got %v", err)
	}
}

func TestTheTriesOfAGoTestAreCounted(t *testing.T) {
	line := func(action, test, rest string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Test\":%q%s}\n", action, test, rest)
	}
	shown := func(test, how string) string {
		return line("attr", test, fmt.Sprintf(",\"Key\":%q,\"Value\":%q", upstream.ShownAttribute, how))
	}
	output := line("output", "TestX/3", ",\"Output\":\"    reproduce_test.go:9: b/1 has not made call 2\\n\"")
	r, err := readGoTest([]byte("no JSON\n" + shown("TestX/1", "b/1 waited for x") + shown("TestX/1", "and for y") + line("fail", "TestX/1", "") +
		line("pass", "TestX/2", "") + output + line("fail", "TestX/3", "") + line("fail", "TestX", "")))
	if err != nil || r.Tries != 3 || r.Failed != 1 || r.Errors != 1 || r.Message != "b/1 waited for x" {
		t.Errorf("%v: %+v", err, r)
	}
	if r, err := readGoTest([]byte(line("fail", "", ",\"Output\":\"undefined: x\""))); err == nil {
		t.Errorf("a test that does not compile counts as %+v", r)
	}
}

// The project of a test has all that the test needs, and the scenario. Nothing is played.
func TestUpstreamWritesAProject(t *testing.T) {
	fakeLibrary(t)
	live := &livetest.Player{}
	setLive(t, live)
	dir := t.TempDir()
	code, out, stderr := call(t, "upstream", "R-watchdog-leased-level", "R-token-lease", "--tries", "2", "--results", t.TempDir(), "--out", dir)
	if code != frame.ExitOK || live.Runs != 0 || out != filepath.Join(dir, "R-token-lease")+"\n"+filepath.Join(dir, "R-watchdog-leased-level")+"\n" {
		t.Fatalf("exit %d after %d runs, %s%s", code, live.Runs, out, stderr)
	}
	const java = "src/test/java/lockreport/"
	for id, test := range map[string]string{"R-token-lease": "RTokenLeaseTest.java", "R-watchdog-leased-level": "StoryTest.java"} {
		files := filetest.Contents(t, filepath.Join(dir, id))
		for _, name := range []string{"pom.xml", java + "Story.java", java + "Proxy.java", java + "Resp.java", java + test} {
			if files[name] == "" {
				t.Errorf("%s lacks %s", id, name)
			}
		}
	}
	files := filetest.Contents(t, filepath.Join(dir, "R-watchdog-leased-level"))
	script := strings.Join(strings.Fields(files["src/test/resources/story.json"]), " ")
	for _, want := range []string{`"tries": 2`, `"do": "acquire", "lock": "x", "lease_ms": 10000`, `"check": { "that": "assertHoldStays", "lock": "x", "thread": "a/1" }`} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %s:\n%s", want, script)
		}
	}
	if !strings.Contains(files["scenario.yaml"], "name: report-r-watchdog-leased-level") {
		t.Errorf("the scenario is\n%s", files["scenario.yaml"])
	}
}

// This program does not have the locks of other libraries.
func TestUpstreamOfPeersNeedsTheirProgram(t *testing.T) {
	setLive(t, &livetest.Player{})
	if code, _, stderr := call(t, "upstream", "--peers", "--release", "3.21.3"); code != frame.ExitUsage || !strings.Contains(stderr, "upstream: --release is of Redisson") {
		t.Errorf("--release: exit %d, %s", code, stderr)
	}
	code, _, stderr := call(t, "upstream", "--peers", "--results", t.TempDir())
	if code != frame.ExitUsage || !strings.Contains(stderr, "upstream: --peers is for the program in peers/") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
