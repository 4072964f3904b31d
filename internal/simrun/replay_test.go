package simrun

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"lockstep/scenarios"
	"lockstep/sim"
)

// A recording of another world version does not replay, but its scenario is still printed.
func TestReplayPrintsTheScenario(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "r"); code != exitOK {
		t.Fatal(stderr)
	}
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	file := "r/misdelete/setnx-del/1.lockstep"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(text), fmt.Sprintf(`"world":%d`, sim.Version), `"world":0`, 1)
	if err := os.WriteFile("old.lockstep", []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, recording := range []string{file, "old.lockstep"} {
		if code, out, stderr := call(t, "replay", recording, "--scenario"); code != exitOK || out != sc.Text {
			t.Errorf("%s: exit %d\n%s%s", recording, code, stderr, out)
		}
	}
	if code, _, stderr := call(t, "replay", "old.lockstep"); code != exitUsage || !strings.Contains(stderr, "recorded in world version 0") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, _ := call(t, "replay", file, "--scenario", "--json"); code != exitUsage {
		t.Errorf("--scenario and --json: exit %d", code)
	}
}
