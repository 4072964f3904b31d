package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/livetest"
)

// The recording of a test names the test that explains it. A recording elsewhere names no test.
func TestTheRecordingOfATestNamesItsTest(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/lockstep/TestOrders/a.lockstep":             "go test . -run '^TestOrders$' -lockstep.replay=testdata/lockstep/TestOrders/a.lockstep",
		"./shop/testdata/lockstep/TestOrders/a.lockstep":      "(cd shop && go test . -run '^TestOrders$' -lockstep.replay=testdata/lockstep/TestOrders/a.lockstep)",
		"../shop/testdata/lockstep/TestOrders/big/a.lockstep": "(cd ../shop && go test . -run '^TestOrders$/^big$' -lockstep.replay=testdata/lockstep/TestOrders/big/a.lockstep)",
		"/src/shop/testdata/lockstep/TestOrders/a.lockstep":   "(cd /src/shop && go test . -run '^TestOrders$' -lockstep.replay=testdata/lockstep/TestOrders/a.lockstep)",
		"testdata/lockstep/a.lockstep":                        "",
		"mytestdata/lockstep/TestOrders/a.lockstep":           "",
		"results/a.lockstep":                                  "",
	} {
		if got := testReplay(file, ""); got != want {
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
	setLive(t, &livetest.Player{})
	const of = `is of the lock "orders", which a test judges; `
	replay := "go test . -run '^TestOrders$' -lockstep.replay=" + file
	for args, want := range map[string]string{
		"explain FILE":          of + "explain it with: " + replay + " -lockstep.explain=text\n",
		"explain FILE --mended": of + "see whether it is mended with: " + replay + " -lockstep.mended\n",
		"replay FILE":           of + "replay it with: " + replay + "\n",
		"shrink FILE":           of + "a test makes the schedules that it draws small by itself; replay it with: " + replay + "\n",
		"report FILE":           of + "write its page with: " + replay + " -lockstep.report=pages\n",
		"live FILE":             of + "play it on real servers with: " + replay + " -lockstep.live=3\n",
	} {
		if code, _, stderr := call(t, strings.Fields(strings.ReplaceAll(args, "FILE", file))...); code != frame.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	// Another folder than that of a test may hold the recording of a lock that this program does not know.
	if err := os.Rename(file, "a.lockstep"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "replay", "a.lockstep"); code != frame.ExitUsage || strings.Contains(stderr, "go test") || !strings.Contains(stderr, `unknown lock "orders"`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
