package peers

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"lockstep/internal/filetest"
)

// workflow has the parts of a GitHub workflow that docs/ci.md uses.
type workflow struct {
	Name        string
	On          []string
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn string `yaml:"runs-on"`
		Steps  []step
	}
}

type step struct {
	Name, If, Uses, Run string
	With                map[string]string
}

// actions are the actions that a workflow may use, with their inputs that occur.
var actions = map[string][]string{
	"actions/checkout@v4":        nil,
	"actions/setup-go@v5":        {"go-version", "go-version-file"},
	"actions/upload-artifact@v4": {"name", "path", "if-no-files-found"},

	"github/codeql-action/upload-sarif@v4": {"sarif_file"},
}

// played is the outcome of a workflow.
type played struct {
	text      string   // what its steps print
	failed    []string // the steps that failed, by name
	artifacts []string // the files that are uploaded
}

// playWorkflow runs the steps of a workflow in dir, as GitHub does in a clone.
func playWorkflow(t *testing.T, text, dir string, env []string) played {
	t.Helper()
	var w workflow
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&w); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if w.Name == "" || !slices.Equal(w.On, []string{"push", "pull_request"}) || len(w.Jobs) != 1 {
		t.Errorf("the workflow is %+v", w)
	}
	var p played
	for _, job := range w.Jobs {
		if job.RunsOn != "ubuntu-latest" {
			t.Errorf("it runs on %q", job.RunsOn)
		}
		for _, s := range job.Steps {
			switch {
			case s.If == "" && len(p.failed) > 0, s.If == "failure()" && len(p.failed) == 0:
				continue
			case s.If != "" && s.If != "failure()" && s.If != "${{ !cancelled() }}":
				t.Errorf("the test does not know the condition %q", s.If)
			case s.Run != "" && s.Uses != "":
				t.Errorf("a step both runs and uses: %+v", s)
			case s.Run != "":
				out, passed := shell(dir, append(slices.Clone(env), "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+dir), s.Run)
				p.text += out
				if !passed {
					p.failed = append(p.failed, s.Name)
				}
				continue
			}
			inputs, ok := actions[s.Uses]
			if !ok {
				t.Errorf("the test does not know the action %q", s.Uses)
			}
			for name := range s.With {
				if !slices.Contains(inputs, name) {
					t.Errorf("%s has no input %s", s.Uses, name)
				}
			}
			if file := s.With["go-version-file"]; file != "" {
				filetest.Read(t, filepath.Join(dir, file))
			}
			if s.With["sarif_file"] != "" && w.Permissions["security-events"] != "write" {
				t.Errorf("%s may not upload a file", s.Uses)
			}
			for _, pattern := range strings.Fields(s.With["path"] + s.With["sarif_file"]) {
				files := matching(t, dir, pattern)
				if len(files) == 0 {
					t.Errorf("nothing is uploaded of %s; the steps say:\n%s", pattern, p.text)
				}
				p.artifacts = append(p.artifacts, files...)
			}
		}
	}
	return p
}

// matching returns the files in dir that a pattern of upload-artifact names. There, **
// stands for any number of folders.
func matching(t *testing.T, dir, pattern string) (files []string) {
	t.Helper()
	text := regexp.QuoteMeta(pattern)
	for _, r := range [][2]string{{`\*\*/`, `(?:.*/)?`}, {`\*\*`, `.*`}, {`\*`, `[^/]*`}} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	re := regexp.MustCompile("^" + text + "$")
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if name = filepath.ToSlash(name); re.MatchString(name) {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wrong is a scenario with a false expectation of a lock.
const wrong = `lockstep: 1
name: late-unlock
about: A thread outlives its lease and unlocks.
locks: [setnx-del]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, lease: 3s}, sleep: 5s, unlock: orders]
  b/1: [at: 1s, lock: {name: orders, lease: 10s}, sleep: 4s, unlock: orders]
expect: {setnx-del: held}
`

// unchecked is a lock whose unlock deletes the key of whoever holds it.
const unchecked = `package shop

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

func lockOrders(ctx context.Context, rdb *redis.Client) (bool, error) {
	return rdb.SetNX(ctx, "lock:orders", time.Now().String(), time.Minute).Result()
}

func unlockOrders(ctx context.Context, rdb *redis.Client) error {
	return rdb.Del(ctx, "lock:orders").Err()
}
`

// judgeWithCI runs the commands of docs/ci.md in a repository with a lock that fails.
func judgeWithCI(t *testing.T, p *published) {
	page := filepath.Join(p.clone, "docs", "ci.md")
	workflows, commands := blocks(t, page, "yaml"), blocks(t, page, "sh")
	if len(workflows) != 3 || len(commands) != 2 {
		t.Fatalf("docs/ci.md has %d workflows and %d other commands, want 3 and 2", len(workflows), len(commands))
	}
	orders := example(t, filepath.Join(p.clone, "docs", "locktest.md"))
	module := func(t *testing.T) string {
		dir := t.TempDir()
		filetest.Write(t, filepath.Join(dir, "orders_test.go"), orders)
		must(t, dir, p.env, p.variables+"go mod init example.com/shop\n"+`go get "$MODULE/locktest@$VERSION"`+"\ngo get -t .")
		return dir
	}
	scenarios := func(t *testing.T) string {
		dir := t.TempDir()
		filetest.Write(t, filepath.Join(dir, "scenarios", "mine.yaml"), wrong)
		return dir
	}

	t.Run("go test", func(t *testing.T) {
		w := playWorkflow(t, workflows[0], module(t), p.env)
		if !slices.Equal(w.failed, []string{"Judge the lock"}) {
			t.Errorf("failed: %q", w.failed)
		}
		before, _, _ := strings.Cut(orders, "locktest.Run(")
		annotation := "::error file=orders_test.go,line=" + strconv.Itoa(strings.Count(before, "\n")+1) + ",title=orders breaks traffic::"
		if !regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(annotation)).MatchString(w.text) {
			t.Errorf("no line begins with %s in:\n%s", annotation, w.text)
		}
		var want []string
		for _, file := range []string{"lockstep-report/%s.html", "testdata/lockstep/TestOrders/%s.lockstep"} {
			for _, fingerprint := range []string{"lease.bug.acquire.hold-ended-by-its-own-call", "mutual-exclusion.bug.acquire.hold-ended-by-its-own-call", "traffic.bug.acquire.agreed"} {
				want = append(want, fmt.Sprintf(file, fingerprint))
			}
		}
		if !slices.Equal(w.artifacts, want) {
			t.Errorf("uploaded: %q, want %q", w.artifacts, want)
		}
	})

	t.Run("simrun", func(t *testing.T) {
		dir := scenarios(t)
		summary := filepath.Join(t.TempDir(), "summary.md")
		w := playWorkflow(t, workflows[1], dir, append(slices.Clone(p.env), "GITHUB_STEP_SUMMARY="+summary))
		if !slices.Equal(w.failed, []string{"Run the scenarios"}) {
			t.Errorf("failed: %q", w.failed)
		}
		for _, part := range []string{"::error file=scenarios/mine.yaml,title=late-unlock on setnx-del", "replay: simrun run scenarios/mine.yaml "} {
			if !strings.Contains(w.text, part) {
				t.Errorf("%q is missing in:\n%s", part, w.text)
			}
		}
		if text := filetest.Read(t, summary); !strings.Contains(text, "| late-unlock | setnx-del |") {
			t.Errorf("the summary:\n%s", text)
		}
		for _, file := range []string{"lockstep-report/index.html", "lockstep-out/late-unlock/setnx-del/1.lockstep"} {
			if !slices.Contains(w.artifacts, file) {
				t.Errorf("%s is not uploaded: %q", file, w.artifacts)
			}
		}
	})

	t.Run("lockvet", func(t *testing.T) {
		for source, want := range map[string]int{unchecked: 1, strings.Replace(unchecked, `Del(ctx, "lock:orders")`, `Get(ctx, "lock:orders")`, 1): 0} {
			dir := module(t)
			filetest.Write(t, filepath.Join(dir, "lock.go"), source)
			w := playWorkflow(t, workflows[2], dir, p.env)
			var log struct {
				Runs []struct {
					Results []struct{ RuleID string }
				}
			}
			if err := json.Unmarshal([]byte(filetest.Read(t, filepath.Join(dir, "lockvet.sarif"))), &log); err != nil || len(log.Runs) != 1 {
				t.Fatalf("%v in lockvet.sarif; the steps say:\n%s", err, w.text)
			}
			if !slices.Equal(w.artifacts, []string{"lockvet.sarif"}) || slices.Contains(w.failed, "Read the code") != (want > 0) || len(log.Runs[0].Results) != want {
				t.Errorf("failed: %q, uploaded: %q, want %d results:\n%s\n%+v", w.failed, w.artifacts, want, w.text, log)
			}
		}
	})

	t.Run("JUnit of simrun", func(t *testing.T) {
		dir := scenarios(t)
		text, passed := shell(dir, p.env, commands[0])
		failure := junit(t, dir)
		if passed || !strings.Contains(failure, "misdelete: ") {
			t.Errorf("%s\nfailure: %s", text, failure)
		}
	})

	t.Run("JUnit of go test", func(t *testing.T) {
		tool := regexp.MustCompile(`gotest\.tools/gotestsum@\S+`).FindString(commands[1])
		if text, found := shell(t.TempDir(), p.env, "go run "+tool+" --version"); !found {
			if os.Getenv("LOCKSTEP_REQUIRE") == "all" {
				t.Fatal(text)
			}
			t.Skipf("the module cache has no gotestsum: go run %s --version", tool)
		}
		dir := module(t)
		text, passed := shell(dir, p.env, commands[1])
		failure := junit(t, dir)
		if passed || !strings.Contains(failure, "orders breaks traffic: ") || !strings.Contains(failure, "fingerprint: traffic.bug.acquire.agreed") {
			t.Errorf("%s\nfailure: %s", text, failure)
		}
	})
}

// junit returns the failures in lockstep.xml.
func junit(t *testing.T, dir string) string {
	t.Helper()
	var all struct {
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(filetest.Read(t, filepath.Join(dir, "lockstep.xml"))), &all); err != nil {
		t.Fatal(err)
	}
	var text string
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			text += c.Failure
		}
	}
	if all.Failures == 0 || text == "" {
		t.Errorf("%d failures: %s", all.Failures, text)
	}
	return text
}
