package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/cli/livetest"
	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/sim"
)

func TestOptionsOfALiveCampaign(t *testing.T) {
	setLive(t, &livetest.Player{})
	for _, c := range []struct {
		args, want string
	}{
		{"--lock setnx-del", "say for how long, as in --time 1h"},
		{"--lock setnx-del --time -5s", "too short: at least 1ms"},
		{"--time 1h", "--lock is missing"},
		{"--lock setnx-dell --time 1h", `unknown lock "setnx-dell"`},
		{"--lock setnx-del --time 1h --runs 10 --strategy tapct", "it takes no --runs, --strategy"},
		{"--lock setnx-del --time 1h --jobs 65", "--jobs 65: from 1 to 64"},
		{"--lock setnx-del --time 1h --faults fire", "fire"},
		{"--lock setnx-del --time 1h more", `"more" is no option`},
	} {
		code, out, stderr := call(t, append([]string{"explore", "--live"}, strings.Fields(c.args)...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %q; want %d and %q", c.args, code, stderr, frame.ExitUsage, c.want)
		}
	}
	means.Live = nil
	if code, _, stderr := call(t, "explore", "--live", "--lock", "setnx-del", "--time", "1h"); code != frame.ExitUsage || !strings.Contains(stderr, "does not play live") {
		t.Errorf("without live: exit %d, %s", code, stderr)
	}
}

// hunted returns a live campaign of some runs, and what it prints.
func hunted(t *testing.T, f *livetest.Player, runs int) *liveHunt {
	t.Helper()
	setLive(t, f)
	p := explore.Plan{World: sim.Version, Lock: "setnx-del", Profile: draw.Simple, Faults: []draw.Class{draw.ClassPause}, Seed: 1, Seeds: 1}
	h := newLiveHunt(&frame.App{Program: testProgram(), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, p, scenariotest.Lock(t, "setnx-del"), t.TempDir(), play.LiveOptions{}, time.Hour)
	for range runs {
		h.next(t.Context())
	}
	if err := h.failed(); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestALiveCampaignKeepsWhatItFinds(t *testing.T) {
	h := hunted(t, &livetest.Player{}, 20)
	if h.runs != 20 || h.verdicts[play.VerdictBug] == 0 || h.verdicts[play.VerdictHeld] == 0 || len(h.found) != h.verdicts[play.VerdictBug] {
		t.Fatalf("%d runs, %v, %d found; want some bugs and some without", h.runs, h.verdicts, len(h.found))
	}
	code, err := h.conclude(false, false)
	out := h.a.Out.(*bytes.Buffer).String()
	first := h.found[0]
	for _, want := range []string{"20 runs of setnx-del", "fake-server 1.2.3", "misdelete", "report " + first.Recording, "run " + first.Scenario + " --lock setnx-del"} {
		if code != frame.ExitUnexpected || err != nil || !strings.Contains(out, want) {
			t.Errorf("exit %d, %v; %q is not in\n%s", code, err, want, out)
		}
	}
	for _, f := range h.found {
		text, err := os.ReadFile(f.Recording)
		if err != nil {
			t.Fatal(err)
		}
		if run, err := play.ReadLive(f.Recording, text); err != nil || run.Word != play.VerdictBug {
			t.Errorf("%s: %s, %v", f.Recording, run.Word, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(h.dir, "*")); len(files) != 2*len(h.found) {
		t.Errorf("%d files for %d findings", len(files), len(h.found))
	}
	h.a.Out.(*bytes.Buffer).Reset()
	if _, err := h.conclude(false, true); err != nil {
		t.Fatal(err)
	}
	var o struct {
		Lock     string         `json:"lock"`
		Runs     int            `json:"runs"`
		Verdicts map[string]int `json:"verdicts"`
		Found    []liveFound    `json:"found"`
	}
	if err := json.Unmarshal(h.a.Out.(*bytes.Buffer).Bytes(), &o); err != nil || o.Lock != "setnx-del" || o.Runs != 20 || len(o.Found) != len(h.found) || o.Found[0].Judges[0] == "" {
		t.Errorf("%v: %+v", err, o)
	}
}

func TestALiveCampaignCountsWhatIsNotPossible(t *testing.T) {
	h := hunted(t, &livetest.Player{Refuses: "setnx-del"}, 5)
	code, err := h.conclude(false, false)
	out := h.a.Out.(*bytes.Buffer).String()
	if code != frame.ExitOK || err != nil || h.runs != 0 || !strings.Contains(out, "5 more were drawn that are not possible live") {
		t.Errorf("exit %d, %v, %d runs:\n%s", code, err, h.runs, out)
	}
	h.a.Out.(*bytes.Buffer).Reset()
	h.verdicts[play.VerdictUndecided]++
	if code, err := h.conclude(false, true); code != frame.ExitUndecided || err != nil || !strings.Contains(h.a.Out.(*bytes.Buffer).String(), `"found":[]`) {
		t.Errorf("with a run that nobody can decide: exit %d, %v\n%s", code, err, h.a.Out)
	}
}

// A run that cannot be played is kept and told, and the campaign goes on. Many in a row end it.
func TestALiveCampaignOutlivesARunThatCannotBePlayed(t *testing.T) {
	h := hunted(t, &livetest.Player{After: 3}, 3+BrokenMost-1)
	code, err := h.conclude(false, false)
	out := h.a.Out.(*bytes.Buffer).String()
	if len(h.found) == 0 && code != frame.ExitUndecided || err != nil || h.runs != 3 || !strings.Contains(squeeze(out), "9 runs could not be played to the end, the first, run 3, because of this: the machine is gone.") {
		t.Errorf("exit %d, %v, %d runs:\n%s", code, err, h.runs, out)
	}
	for _, f := range h.broken {
		if _, err := os.Stat(f.Scenario); err != nil {
			t.Errorf("run %d: %v", f.Index, err)
		}
	}
	h.next(t.Context())
	if err := h.failed(); err == nil || err.Error() != "10 runs in a row could not be played, the last because of this: the machine is gone" {
		t.Errorf("it goes on: %v", err)
	}
}
