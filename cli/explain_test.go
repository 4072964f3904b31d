package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
)

// The recording of a test names the test that explains it. A recording elsewhere names no test.
func TestTheRecordingOfATestNamesItsTest(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/lockstep/TestOrders/a.lockstep":             "go test . -run '^TestOrders$' -lockstep.replay=testdata/lockstep/TestOrders/a.lockstep",
		"./shop/testdata/lockstep/TestOrders/a.lockstep":      "go test ./shop -run '^TestOrders$' -lockstep.replay=testdata/lockstep/TestOrders/a.lockstep",
		"../shop/testdata/lockstep/TestOrders/big/a.lockstep": "go test ./../shop -run '^TestOrders$/^big$' -lockstep.replay=testdata/lockstep/TestOrders/big/a.lockstep",
		"/src/shop/testdata/lockstep/TestOrders/a.lockstep":   "go test /src/shop -run '^TestOrders$' -lockstep.replay=testdata/lockstep/TestOrders/a.lockstep",
		"testdata/lockstep/a.lockstep":                        "",
		"mytestdata/lockstep/TestOrders/a.lockstep":           "",
		"results/a.lockstep":                                  "",
	} {
		if got := testReplay(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1", "--out", "r"); code != frame.ExitOK {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile("r/misdelete/setnx-del/1.lockstep")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "lockstep", "TestOrders", "a.lockstep")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"lock":"setnx-del"`, `"lock":"orders"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for flag, args := range map[string][]string{"-lockstep.explain=text": {"explain", file}, "-lockstep.mended": {"explain", file, "--mended"}} {
		want := `is of the lock "orders", which a test judges; explain it with: go test . -run '^TestOrders$' -lockstep.replay=` + file + " " + flag
		if code, _, stderr := call(t, args...); code != frame.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("exit %d: %s", code, stderr)
		}
	}
}
