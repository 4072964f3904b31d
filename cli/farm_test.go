package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/spread"
	"lockstep/explore/spread/queuetest"
	"lockstep/internal/filetest"
	"lockstep/linearizability/judges"
)

// withFarm gives the program the command farm, with a queue in memory, until the test ends.
func withFarm(t *testing.T) {
	t.Helper()
	means.Farm = &queuetest.Engine{Wait: time.Minute}
	t.Cleanup(func() { means.Farm = nil })
}

// The folder of a farm is the one that explore writes.
func TestAFarmWritesWhatExploreWrites(t *testing.T) {
	one, told := playPauses(t)
	withFarm(t)
	args, _ := pauses(t)
	dir := t.TempDir()
	farm := append([]string{"farm", "--dir", dir, "--queue", "memory", "--json"}, args[1:]...)
	for _, workers := range []string{"2", "0"} { // the second time there is nothing to play
		if code, out, stderr := call(t, append(slices.Clone(farm), "--workers", workers)...); code != frame.ExitUnexpected || out != told {
			t.Errorf("exit %d\n%s%s", code, out, stderr)
		}
		if got := filetest.Contents(t, filepath.Join(dir, farmCampaign)); !maps.Equal(got, filetest.Contents(t, one)) {
			t.Errorf("the folder has %v, or other contents", slices.Sorted(maps.Keys(got)))
		}
	}
	page := filetest.Contents(t, dir)[FarmPageFile]
	for _, want := range []string{"Farm: setnx-del", "is complete", "SETNX-misdelete", `href="./campaign/misdelete.bug.unlock.SETNX-misdelete/1.lockstep"`, "The coordinator has ended."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	code, _, stderr := call(t, "farm", "--dir", dir, "--queue", "memory", "--lock", "setnx-del", "--runs", "5")
	if code != frame.ExitUsage || !strings.Contains(stderr, "holds another campaign") {
		t.Errorf("another campaign in the folder: exit %d, %s", code, stderr)
	}
}

func TestFarmRefusesBadInput(t *testing.T) {
	if code, _, stderr := call(t, "farm"); code != frame.ExitUsage || !strings.Contains(stderr, `unknown command "farm"; the program in peers/ has it`) {
		t.Errorf("without an engine: exit %d, %s", code, stderr)
	}
	withFarm(t)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, FarmPageFile), []byte("<title>mine</title>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "farm", "--lock", "setnx-del", "--dir", other); code != frame.ExitUsage || !strings.Contains(stderr, "would be overwritten, and the command farm did not write it") {
		t.Errorf("a folder with another page: exit %d, %s", code, stderr)
	}
	if got := filetest.Contents(t, other); got[FarmPageFile] != "<title>mine</title>" || len(got) != 1 {
		t.Errorf("the folder has %v", got)
	}
	mine := filepath.Join(t.TempDir(), farmQueue, "mine.txt")
	if err := errors.Join(os.Mkdir(filepath.Dir(mine), 0o755), os.WriteFile(mine, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "farm", "--lock", "setnx-del", "--dir", filepath.Dir(filepath.Dir(mine))); code != frame.ExitUsage || !strings.Contains(stderr, "would be removed, and the command farm did not write it") {
		t.Errorf("a folder with another queue: exit %d, %s", code, stderr)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	for _, c := range []struct{ args, want string }{
		{"", "--dir is missing"},
		{"--dir DIR", "--lock is missing"},
		{"--dir DIR --lock setnx-del --strategy exhaustive", "--strategy exhaustive: known are plain, told, tapct"},
		{"--dir DIR --lock setnx-del --scenario inventory-small", "unknown option --scenario"},
		{"--dir DIR --lock setnx-del --workers -1", "--workers -1: from 0"},
		{"--dir DIR --lock setnx-del --ahead 0", "--ahead 0: from 1"},
		{"--dir DIR --lock setnx-del --patience 0s", "too short: at least 1ms"},
		{"--dir DIR --lock setnx-del wok", `"wok" is no option`},
		{"work", "--queue is missing"},
		{"work --queue memory --workers 0", "--workers 0: from 1"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "DIR", filepath.Join(dir, "farm")))
		code, out, stderr := call(t, append([]string{"farm"}, args...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("farm %s: exit %d, %q, %q; want %q", c.args, code, out, stderr, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "farm")); err == nil {
		t.Error("something was written")
	}
}

// The help offers no option that the command refuses.
func TestTheHelpOfFarmOffersWhatItTakes(t *testing.T) {
	withFarm(t)
	code, out, _ := call(t, "farm", "--help")
	_, flags, ok := strings.Cut(out, "\nFlags:")
	if code != frame.ExitOK || !ok || !strings.Contains(flags, "--strategy WORD ") {
		t.Fatalf("exit %d: %s", code, out)
	}
	for _, refused := range []string{"exhaustive", "--scenario", "see above"} {
		if strings.Contains(flags, refused) {
			t.Errorf("the options have %q:\n%s", refused, flags)
		}
	}
}

func TestThePageOfAFarm(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := &FarmPage{dir: t.TempDir(), title: "Farm: <x>", now: func() time.Time { return now }}
	p.Workers = func() []spread.Told { return []spread.Told{{Worker: "a & b", Lock: "setnx-del", Family: 3, Runs: 42}} }
	p.canaries = func() ([]FarmCanary, []string) {
		return []FarmCanary{{Bug: "one", Alarm: "not found in 5 runs"}}, []string{"The planted bug one was not found in 5 runs."}
	}
	r := p.Row(explore.Plan{Lock: "setnx-del", Strategy: explore.StrategyPlain, Profile: "simple", Runs: 1000}, "campaign")
	write := func(wants ...string) {
		t.Helper()
		if err := p.write(); err != nil {
			t.Fatal(err)
		}
		page := filetest.Contents(t, p.dir)[FarmPageFile]
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not say %q:\n%s", want, page)
			}
		}
	}
	write("Farm: &lt;x&gt;", "Nothing yet.", "family 3 of setnx-del", "a &amp; b", `<p class="cut">The planted bug one was not found`, "0 runs since this start", `http-equiv="refresh"`)
	r.Progress(explore.Progress{Runs: 300, Of: 1000, Played: 200})
	f := explore.Failed{Why: "<b>", Size: 4}
	f.Judge, f.Class, f.Op = "misdelete", judges.ClassBug, "unlock"
	r.Found(f, filepath.Join(p.dir, "campaign", "found", "a b#c", "run-1.lockstep"))
	now = now.Add(10 * time.Second)
	write("300 of 1000", "20 runs a second in the last 10s; 200 runs", "&lt;b&gt;", `href="./campaign/found/a%20b%23c/run-1.lockstep"`)
	now = now.Add(-time.Hour) // the clock was set back
	write("200 runs since this start")
	r.Rest("waits")
	r.Progress(explore.Progress{Runs: 400, Of: 1000, Played: 100})
	now = now.Add(time.Second)
	write("100 runs a second in the last 1s; 300 runs")
}

// A farm says whose folder it is before it starts a queue, so that it goes on after it was killed while the
// queue started.
func TestAFarmGoesOnThatWasKilledWhileItStarted(t *testing.T) {
	withFarm(t)
	dir := t.TempDir()
	args := []string{"farm", "--dir", dir, "--lock", "setnx-cad", "--runs", "5"}
	if code, _, stderr := call(t, args...); code != frame.ExitIO || !strings.Contains(stderr, "did not start") {
		t.Fatalf("exit %d: %s", code, stderr) // a child of this test knows no queue
	}
	filetest.WriteContents(t, filepath.Join(dir, farmQueue), map[string]string{"lock": ""}) // the child was killed here
	if code, _, stderr := call(t, append(args, "--queue", "memory", "--workers", "1")...); code != frame.ExitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// during is an engine that calls do when its queue is opened.
type during struct {
	spread.Engine
	do func()
}

func (d during) Open(ctx context.Context, url string) (spread.Queue, error) {
	d.do()
	return d.Engine.Open(ctx, url)
}

// The folder of the campaign of a farm is the farm's while the farm plays.
func TestExploreLeavesTheCampaignOfAFarmAlone(t *testing.T) {
	withFarm(t)
	dir := t.TempDir()
	plan := []string{"--lock", "setnx-cad", "--runs", "5"}
	explore := append([]string{"explore", "--out", filepath.Join(dir, farmCampaign)}, plan...)
	means.Farm = during{means.Farm, func() {
		if code, _, stderr := call(t, explore...); code != frame.ExitUsage || !strings.Contains(stderr, "another process writes into the folder "+filepath.Join(dir, farmCampaign)) {
			t.Errorf("explore during the farm: exit %d, %s", code, stderr)
		}
	}}
	if code, _, stderr := call(t, append([]string{"farm", "--dir", dir, "--queue", "memory", "--workers", "1"}, plan...)...); code != frame.ExitOK {
		t.Errorf("farm: exit %d, %s", code, stderr)
	}
	if code, _, stderr := call(t, explore...); code != frame.ExitOK {
		t.Errorf("explore after the farm: exit %d, %s", code, stderr)
	}
}
