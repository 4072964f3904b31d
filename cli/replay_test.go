package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/lockimpl"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// The report about a replay that differs from its recording distinguishes a lock that changed from
// a lock that does not repeat.
func TestAReplayThatDiffersSaysWhy(t *testing.T) {
	t.Chdir(t.TempDir())
	cad, err := subject.Find("setnx-cad")
	if err != nil {
		t.Fatal(err)
	}
	del, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	edited, opened, fickle := *cad, 0, false
	edited.Name, edited.Unlisted = "edited", true
	open := cad.Open
	edited.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		if opened++; fickle && opened > 1 {
			return del.Open(p, o)
		}
		return open(p, o)
	}
	subject.Register(&edited)
	if code, _, stderr := call(t, "run", "pause-past-lease", "--lock", "edited", "--seed", "1", "--out", "r"); code > frame.ExitUndecided {
		t.Fatal(stderr)
	}
	const file = "r/pause-past-lease/edited/1.lockstep"
	for _, c := range []struct {
		change  func()
		verdict string
		says    string // "": the replay equals the recording
	}{
		{func() {}, "", ""},
		{func() { open = del.Open }, "undecided", "edited changed since it was recorded, or a package that it is built with, or somebody edited the recording: two replays agree with each other; the recording has digest "},
		{func() { open, fickle, opened = cad.Open, true, 0 }, "nondeterministic", "; the records differ from event "},
	} {
		c.change()
		code, out, stderr := call(t, "replay", file, "--json")
		var o object
		if err := json.Unmarshal([]byte(out), &o); err != nil {
			t.Fatal(err, stderr)
		}
		if c.says == "" {
			if code != frame.ExitOK {
				t.Errorf("exit %d: %s", code, out)
			}
			continue
		}
		why := o.Findings[len(o.Findings)-1].Why
		if code != frame.ExitUndecided || o.Verdict != c.verdict || !strings.Contains(why, c.says) {
			t.Errorf("exit %d, %s: %s; want %s: %s", code, o.Verdict, why, c.verdict, c.says)
		}
	}
}

// A recording of another world version does not replay, but its scenario is still printed.
func TestReplayPrintsTheScenario(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--seed", "1", "--out", "r"); code != frame.ExitOK {
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
		if code, out, stderr := call(t, "replay", recording, "--scenario"); code != frame.ExitOK || out != sc.Text {
			t.Errorf("%s: exit %d\n%s%s", recording, code, stderr, out)
		}
	}
	if code, _, stderr := call(t, "replay", "old.lockstep"); code != frame.ExitUsage || !strings.Contains(stderr, "recorded in world version 0") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, _ := call(t, "replay", file, "--scenario", "--json"); code != frame.ExitUsage {
		t.Errorf("--scenario and --json: exit %d", code)
	}
}
