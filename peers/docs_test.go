package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The example of docs/locktest.md, in a module of its own outside of this one, comes out
// as the page says.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/locktest.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```go\n(package shop\n.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("docs/locktest.md has no example")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("module lockstep/peers", "module example.com/shop", "lockstep => ../", "lockstep => "+root).Replace(string(module))
	for name, content := range map[string][]byte{"go.mod": []byte(text), "go.sum": sums, "orders_test.go": example[1]} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func() string {
		cmd := exec.Command("go", "test", "-mod=mod", ".")
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // it fails, which is the point
		return string(out)
	}
	first := run()
	for _, want := range []string{"orders breaks traffic: ", "22 commands", "fingerprint: traffic.bug.acquire.agreed", "replay:      go test -run '^TestOrders$' -lockstep.replay="} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is missing in:\n%s", want, first)
		}
	}
	if strings.Count(first, "breaks ") != 1 || strings.Contains(first, "nondeterministic") {
		t.Errorf("the page tells of one finding:\n%s", first)
	}
	if again := run(); !strings.Contains(again, "--- FAIL: TestOrders/recording/traffic.bug.acquire.agreed") {
		t.Errorf("the recording is not replayed:\n%s", again)
	}
}
