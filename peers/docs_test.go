package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockstep/internal/filetest"
)

// blocks returns the fenced blocks of a language in a page.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	var list []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(filetest.Read(t, page), -1) {
		list = append(list, m[1])
	}
	if len(list) == 0 {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return list
}

// shell runs a script in dir and returns what it prints. The script ends at the first
// command that fails.
func shell(dir string, env []string, script string) (text string, passed bool) {
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PWD="+dir, "GITHUB_ACTIONS="), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// must runs a script that has to pass.
func must(t *testing.T, dir string, env []string, script string) string {
	t.Helper()
	text, passed := shell(dir, env, script)
	if !passed {
		t.Fatalf("%s\n%s", script, text)
	}
	return text
}

// modulePath returns the path of the module in dir.
func modulePath(t *testing.T, dir string) string {
	t.Helper()
	return strings.TrimSpace(must(t, dir, nil, "go list -m"))
}

// example returns the test that a page shows first.
func example(t *testing.T, page string) string {
	t.Helper()
	first := blocks(t, page, "go")[0]
	if !strings.HasPrefix(first, "package shop\n") {
		t.Fatalf("%s begins with another example:\n%s", page, first)
	}
	return first
}

// ordersFail checks that the example came out as docs/locktest.md says, in a module of that path.
func ordersFail(t *testing.T, module, text string, passed bool) {
	t.Helper()
	if passed {
		t.Error("the example passed")
	}
	for _, want := range []string{"orders breaks traffic: ", "22 commands", "fingerprint: traffic.bug.acquire.agreed", "orders breaks mutual-exclusion: ", "orders breaks lease: ", "and the same call ended that hold", "replay:      go test " + module + " -run '^TestOrders$' -lockstep.replay="} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Count(text, "orders breaks ") != 4 || !strings.Contains(text, "orders breaks 3 promises. ") || strings.Contains(text, "nondeterministic") {
		t.Errorf("the page tells of three findings:\n%s", text)
	}
}

// outside makes a module outside this one, with a test that a page shows. It returns the folder of
// the module, and the commands of the page that make it use this module.
func outside(t *testing.T, page, test string) (dir, commands string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	filetest.Write(t, filepath.Join(dir, "go.mod"), filetest.Read(t, "go.mod")) // with the versions of this module
	filetest.Write(t, filepath.Join(dir, "go.sum"), filetest.Read(t, "go.sum"))
	filetest.Write(t, filepath.Join(dir, "orders_test.go"), test)
	must(t, dir, nil, "go mod edit -module shop -dropreplace "+modulePath(t, root))
	for _, block := range blocks(t, page, "sh") {
		if strings.Contains(block, "go mod edit -replace ") {
			return dir, strings.ReplaceAll(block, "=PATH", "="+root)
		}
	}
	t.Fatalf("%s does not say how to use the module", page)
	return "", ""
}

// The example of docs/locktest.md has the outcome that the page shows, with the commands that the
// page gives.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	const page = "../docs/locktest.md"
	dir, commands := outside(t, page, example(t, page))
	text, passed := shell(dir, nil, commands)
	ordersFail(t, "shop", text, passed)
	if again, _ := shell(dir, nil, "go test ./..."); !strings.Contains(again, "--- FAIL: TestOrders/recording/traffic.bug.acquire.agreed") {
		t.Errorf("the recording is not replayed:\n%s", again)
	}
}

// The example of the README has the outcome that the page shows, too. The test leaves out the drawn
// schedules, since their failures take long to make small, and the page shows a story.
func TestTheExampleOfTheReadme(t *testing.T) {
	const page = "../README.md"
	dir, commands := outside(t, page, example(t, page))
	text, passed := shell(dir, nil, strings.Replace(commands, "go test ./...", "go test ./... -run TestOrders/stories", 1))
	if passed {
		t.Errorf("the example passed:\n%s", text)
	}
	for _, block := range blocks(t, page, "text") {
		for want := range strings.Lines(block) {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in:\n%s", want, text)
			}
		}
	}
	if first := blocks(t, page, "text")[0]; !strings.HasPrefix(text[max(strings.Index(text, "orders breaks "), 0):], first[:strings.Index(first, "\n")+1]) {
		t.Errorf("the first failure is another than %q in:\n%s", first, text)
	}
	if reading := blocks(t, "../docs/first-hour.md", "text")[0]; !strings.Contains(text, reading) {
		t.Errorf("docs/first-hour.md reads %q, which is missing in:\n%s", reading, text)
	}
	replay := regexp.MustCompile(`go test \S+ -run '\S+' -lockstep\.replay=\S+`).FindString(blocks(t, page, "text")[0])
	if again, passed := shell(dir, nil, replay); passed || !strings.Contains(again, strings.TrimSpace(strings.SplitN(blocks(t, page, "text")[0], "\n", 2)[0])) {
		t.Errorf("%s shows something else:\n%s", replay, again)
	}
}

// The locks on etcd, ZooKeeper, MySQL and NATS that docs/servers.md links pass in a module outside of this
// one, with the commands of the page. Those that compare the owner fail without that, since they then end
// the hold of another.
func TestTheLocksOnOtherServersOfTheDocumentation(t *testing.T) {
	const page = "../docs/servers.md"
	dir, commands := outside(t, page, "")
	if err := os.Remove(filepath.Join(dir, "orders_test.go")); err != nil {
		t.Fatal(err)
	}
	alone := func(file string) string { return strings.TrimSuffix(file, "_test.go") + "/shop_test.go" }
	shown := map[string]string{}
	for _, file := range []string{
		"etcdtest/orders_test.go", "zookeepertest/orders_test.go", "zookeepertest/single_test.go", "mysqltest/orders_test.go", "mysqltest/table_test.go", "mysqltest/userlock_test.go",
		"natstest/orders_test.go",
	} {
		if !strings.Contains(filetest.Read(t, page), "](../peers/"+file+")") {
			t.Errorf("%s does not link %s", page, file)
		}
		shown[file] = strings.Replace(filetest.Read(t, file), "package "+filepath.Dir(file)+"_test\n", "package shop\n", 1)
		filetest.Write(t, filepath.Join(dir, alone(file)), shown[file])
	}
	// Few schedules, since the tests of the packages play the rest.
	must(t, dir, nil, strings.Replace(commands, "go test ./...", "go test ./... -lockstep.runs=5", 1))
	for _, l := range []struct{ file, compares, blind, finding string }{
		{"etcdtest/orders_test.go", "If(mine).", "If([]clientv3.Cmp{mine}[:0]...).", "orders breaks misdelete: "},
		{"zookeepertest/single_test.go", "node.EphemeralOwner != l.session", "node.EphemeralOwner == 0", "single breaks misdelete: "},
		{"mysqltest/orders_test.go", "AND owner = ? AND expires > NOW(6)", "AND '' <> ? AND expires > NOW(6)", "orders breaks misdelete: "},
		{"mysqltest/table_test.go", "AND holder = ? AND", "AND '' <> ? AND", "leases breaks misdelete: "},
		{"natstest/orders_test.go", ", jetstream.LastRevision(l.revision))", ")", "orders breaks misdelete: "},
	} {
		if strings.Count(shown[l.file], l.compares) != 1 {
			t.Fatalf("%s does not compare as this test expects", l.file)
		}
		filetest.Write(t, filepath.Join(dir, alone(l.file)), strings.Replace(shown[l.file], l.compares, l.blind, 1))
		if text, passed := shell(dir, nil, "go test ./"+filepath.Dir(alone(l.file))+" -run /stories"); passed || !strings.Contains(text, l.finding) {
			t.Errorf("%s passes without its comparison; want %q in:\n%s", l.file, l.finding, text)
		}
	}
}
