package redsync

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep/internal/filetest"
	"lockstep/lockmain"
	"lockstep/locktest"
	"lockstep/peers/chubby"
	subjects "lockstep/scenarios/subject"
)

// asSimrun is the variable that makes this test the command line with redsync.
const asSimrun = "LOCKSTEP_SIMRUN"

func TestMain(m *testing.M) {
	if os.Getenv(asSimrun) != "" {
		lockmain.Main(lockmain.Options{Locks: []locktest.Subject{Subject(1), Subject(5), SetOnExtend, chubby.Lock}})
		return
	}
	// The scenarios of this package are of several locks, and each test plays those of its own.
	subjects.Elsewhere(Subject(1).Name, Subject(5).Name, SetOnExtend.Name, chubby.Lock.Name)
	os.Exit(m.Run())
}

// simrun runs the command line and returns what it prints.
func simrun(t *testing.T, args ...string) (text string, passed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asSimrun+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err == nil
}

func files(t *testing.T, glob string) []string {
	t.Helper()
	list, err := filepath.Glob(glob)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %v, %v", glob, list, err)
	}
	return list
}

// A resource that checks the fencing token of a hold loses no update. Without the check the same
// schedule loses one. In both cases two clients believe that they hold the lock.
func TestATokenSavesTheResource(t *testing.T) {
	for _, file := range files(t, "testdata/fenced/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			fenced := filetest.Read(t, file)
			expect := regexp.MustCompile(`reference: \{not: \[workload, want, misdelete\]\}`)
			if n := len(expect.FindAllString(fenced, -1)); n != 1 {
				t.Fatalf("the scenario has %d expectations of the kind that this test knows", n)
			}
			for name, text := range map[string]string{
				"as it is":          fenced,
				"two owners":        expect.ReplaceAllString(fenced, "reference: {limit: [mutual-exclusion]}"),
				"without the fence": expect.ReplaceAllString(strings.NewReplacer(", fence: orders", "", ", want: refused", "").Replace(fenced), "reference: {limit: [mutual-exclusion, workload]}"),
			} {
				t.Run(name, func(t *testing.T) {
					played := filepath.Join(t.TempDir(), "s.yaml")
					if err := os.WriteFile(played, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
					if out, passed := simrun(t, "run", played); !passed {
						t.Error(out)
					}
				})
			}
		})
	}
}

// line is a line of a picture of a run: an event with its instant.
type line struct {
	at     string
	column int // where the text begins
	text   string
}

var startsLine = regexp.MustCompile(`^ *([0-9]+\.[0-9]{3}s)  *`)

// lines reads a picture. It joins wrapped lines again.
func lines(picture string) (all []line) {
	for text := range strings.Lines(picture) {
		m := startsLine.FindStringSubmatch(text)
		words := strings.Join(strings.Fields(text), " ")
		switch {
		case m != nil:
			all = append(all, line{m[1], utf8.RuneCountInString(m[0]), strings.TrimPrefix(words, m[1]+" ")})
		case len(all) > 0 && words != "":
			all[len(all)-1].text += " " + words
		}
	}
	return all
}

// Each picture of docs/redlock.md shows the scenario that the page names before it. Each of its
// lines occurs in the run, in the same order.
func TestThePicturesOfTheDebateAreReal(t *testing.T) {
	const page = "../../docs/redlock.md"
	scenario := regexp.MustCompile(`\]\((\.\./peers/[^)]*\.yaml)\)`)
	var file, picture string
	shown := 0
	compare := func() {
		if picture == "" {
			return
		}
		shown++
		dir := t.TempDir()
		if out, passed := simrun(t, "run", filepath.Join("../../docs", file), "--out", dir); !passed {
			t.Fatal(out)
		}
		recordings := files(t, dir+"/*/*/1.lockstep")
		said, passed := simrun(t, "replay", recordings[0])
		if !passed || len(recordings) != 1 {
			t.Fatalf("%v\n%s", recordings, said)
		}
		run := lines(said)
		for _, l := range lines(picture) {
			i := slices.Index(run, l)
			if i < 0 {
				t.Errorf("%s: the picture shows what does not happen, or not in this order: %+v\n%s", file, l, said)
				break
			}
			run = run[i+1:]
		}
		picture = ""
	}
	for text := range strings.Lines(filetest.Read(t, page)) {
		if after, ok := strings.CutPrefix(text, "    "); ok {
			picture += after
			continue
		}
		compare()
		if links := scenario.FindAllStringSubmatch(text, -1); links != nil {
			file = links[len(links)-1][1]
		}
	}
	compare()
	if shown != 3 {
		t.Errorf("%d pictures were compared, and the page has 3", shown)
	}
}

// The links of the page lead to existing files, and the page names each scenario.
func TestThePageOfTheDebateNamesEachScenario(t *testing.T) {
	page := filetest.Read(t, "../../docs/redlock.md")
	for _, file := range slices.Concat(files(t, "testdata/peers-track-record/*.yaml"), files(t, "testdata/fenced/*.yaml")) {
		if !strings.Contains(page, "](../peers/redsync/"+filepath.ToSlash(file)+")") {
			t.Errorf("the page says nothing of %s", file)
		}
	}
	for _, m := range regexp.MustCompile(`\]\((\.\./[^)#]*)\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join("../../docs", m[1])); err != nil {
			t.Errorf("the page leads nowhere: %v", err)
		}
	}
}
