package simrun

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/explore"
	"lockstep/explore/spread"
	"lockstep/explore/spread/queuetest"
	"lockstep/internal/filetest"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/subject"
)

// withFarm gives the program the command farm, with a queue in memory, until the test ends.
func withFarm(t *testing.T) {
	t.Helper()
	RegisterFarm(&queuetest.Engine{Wait: time.Minute})
	t.Cleanup(func() { engine = nil })
}

// The folder of a farm is the one that explore writes.
func TestAFarmWritesWhatExploreWrites(t *testing.T) {
	one, told := playPauses(t)
	withFarm(t)
	args, _ := pauses(t)
	dir := t.TempDir()
	farm := append([]string{"farm", "--dir", dir, "--queue", "memory", "--json"}, args[1:]...)
	for _, workers := range []string{"2", "0"} { // the second time there is nothing to play
		if code, out, stderr := call(t, append(slices.Clone(farm), "--workers", workers)...); code != exitUnexpected || out != told {
			t.Errorf("exit %d\n%s%s", code, out, stderr)
		}
		if got := filetest.Contents(t, filepath.Join(dir, farmCampaign)); !maps.Equal(got, filetest.Contents(t, one)) {
			t.Errorf("the folder has %v, or other contents", slices.Sorted(maps.Keys(got)))
		}
	}
	page := filetest.Contents(t, dir)[farmPageFile]
	for _, want := range []string{"Farm: setnx-del", "is complete", "SETNX-misdelete", `href="./campaign/misdelete.bug.unlock.SETNX-misdelete/1.lockstep"`, "The coordinator has ended."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	code, _, stderr := call(t, "farm", "--dir", dir, "--queue", "memory", "--lock", "setnx-del", "--runs", "5")
	if code != exitUsage || !strings.Contains(stderr, "holds another campaign") {
		t.Errorf("another campaign in the folder: exit %d, %s", code, stderr)
	}
}

func TestFarmRefusesBadInput(t *testing.T) {
	if code, _, stderr := call(t, "farm"); code != exitUsage || !strings.Contains(stderr, `unknown command "farm"; the program in peers/ has it`) {
		t.Errorf("without an engine: exit %d, %s", code, stderr)
	}
	withFarm(t)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, farmPageFile), []byte("<title>mine</title>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "farm", "--lock", "setnx-del", "--dir", other); code != exitUsage || !strings.Contains(stderr, "would be overwritten, and the command farm did not write it") {
		t.Errorf("a folder with another page: exit %d, %s", code, stderr)
	}
	if got := filetest.Contents(t, other); got[farmPageFile] != "<title>mine</title>" || len(got) != 1 {
		t.Errorf("the folder has %v", got)
	}
	mine := filepath.Join(t.TempDir(), farmQueue, "mine.txt")
	if err := errors.Join(os.Mkdir(filepath.Dir(mine), 0o755), os.WriteFile(mine, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "farm", "--lock", "setnx-del", "--dir", filepath.Dir(filepath.Dir(mine))); code != exitUsage || !strings.Contains(stderr, "would be removed, and the command farm did not write it") {
		t.Errorf("a folder with another queue: exit %d, %s", code, stderr)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "standing.yaml")
	for _, c := range []struct{ args, standing, want string }{
		{"", "", "--dir is missing"},
		{"--dir DIR", "", "--lock is missing"},
		{"--dir DIR --lock setnx-del --strategy exhaustive", "", "--strategy exhaustive: known are plain, told, aimed, tapct"},
		{"--dir DIR --lock setnx-del --scenario inventory-small", "", "unknown option --scenario"},
		{"--dir DIR --lock setnx-del --workers -1", "", "--workers -1: from 0"},
		{"--dir DIR --lock setnx-del --ahead 0", "", "--ahead 0: from 1"},
		{"--dir DIR --lock setnx-del --patience 0s", "", "too short: at least 1ms"},
		{"--dir DIR --lock setnx-del wok", "", `"wok" is no option`},
		{"work", "", "--queue is missing"},
		{"work --queue memory --workers 0", "", "--workers 0: from 1"},
		{"--dir DIR --standing nope.yaml", "", "there is no file nope.yaml; --standing takes a file of campaigns"},
		{"--dir DIR --standing FILE", "", "not a standing campaign"},
		{"--dir DIR --standing FILE --lock setnx-del", "campaigns: [{lock: setnx-del}]", "--lock is for a single campaign"},
		{"--dir DIR --standing FILE", "canaries: [unlock-by-anyone]", "names no campaigns"},
		{"--dir DIR --standing FILE", "campaigns: [{lok: setnx-del}]", "field lok not found"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-dell}]", "did you mean"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del, faults: [pauze]}]", "pauze"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del, profile: wild}]", "wild"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del, strategy: exhaustive}]", "strategy exhaustive"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del, strategy: luck}]", "strategy luck"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del, weight: -1}]", "weight -1"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del}, {lock: setnx-del, weight: 2}]", "another one of this lock"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del}]\nevery: soon", "not a duration"},
		{"--dir DIR --standing FILE", "campaigns: [{lock: setnx-del}]\ncanaries: [unlock-by-anybody]", "no planted bug"},
	} {
		if err := os.WriteFile(file, []byte(c.standing), 0o644); err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(strings.NewReplacer("DIR", filepath.Join(dir, "farm"), "FILE", file).Replace(c.args))
		code, out, stderr := call(t, append([]string{"farm"}, args...)...)
		if code != exitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("farm %s: %s: exit %d, %q, %q; want %q", c.args, c.standing, code, out, stderr, c.want)
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
	if code != exitOK || !ok || !strings.Contains(flags, "--strategy WORD ") {
		t.Fatalf("exit %d: %s", code, out)
	}
	for _, refused := range []string{"exhaustive", "--scenario", "see above"} {
		if strings.Contains(flags, refused) {
			t.Errorf("the options have %q:\n%s", refused, flags)
		}
	}
}

// The campaigns have turns in proportion to their weights, whatever was played before.
func TestTheTurnsGoByWeight(t *testing.T) {
	s := &standing{turn: 100, members: []*member{{dir: "a", weight: 3}, {dir: "b", weight: 1}, {dir: "c", weight: 2, runs: 200}}}
	for range 57 {
		s.next().runs += 100
	}
	var got []int
	for _, m := range s.members {
		got = append(got, m.runs)
	}
	if want := []int{2900, 1000, 2000}; !slices.Equal(got, want) {
		t.Errorf("%v runs, want %v", got, want)
	}
}

// A turn that was cut off is continued, and a turn grows with the number of runs that it must read.
func TestTheGoalOfATurn(t *testing.T) {
	dir := t.TempDir()
	m := &member{plan: explore.Plan{Lock: "setnx-del"}}
	s := &standing{turn: 250}
	for _, c := range []struct {
		planned, played int
		want            int
	}{{0, 0, 300}, {300, 120, 300}, {300, 300, 600}, {50_000, 50_000, 55_000}} {
		if c.planned > 0 {
			if err := os.WriteFile(filepath.Join(dir, explore.PlanFile), fmt.Appendf(nil, `{"runs":%d}`, c.planned), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m.runs = c.played
		if p, err := s.goal(m, dir); err != nil || p.Runs != c.want {
			t.Errorf("%d of %d played: the goal is %d, %v; want %d", c.played, c.planned, p.Runs, err, c.want)
		}
	}
}

// A canary is due before its time is over, and after the clock has jumped.
func TestCanariesAndAClockThatJumps(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	b := &subject.PlantedBug{Name: "one", Judge: "misdelete", Runs: 500}
	s := &standing{bugs: []*subject.PlantedBug{b}, every: time.Hour}
	dir := t.TempDir()
	start := func() *canaries {
		t.Helper()
		c, err := newCanaries(s, dir, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := start()
	is := func(what string, due bool, left time.Duration, alarm string) {
		t.Helper()
		got, wait := c.due()
		if (got != nil) != due || !due && wait != left || c.alarm(b) != alarm {
			t.Errorf("%s: due %v, in %v, alarm %q; want %v, %v, %q", what, got != nil, wait, c.alarm(b), due, left, alarm)
		}
	}
	is("at the beginning", true, 0, "")
	now = now.Add(61 * time.Minute)
	is("nobody looked for an hour", true, 0, "not found for 1h0m0s")
	c.looked(b, 7)
	is("found", false, 45*time.Minute, "")
	now = now.Add(30 * time.Minute)
	is("later", false, 15*time.Minute, "")
	now = now.Add(15 * time.Minute)
	is("after three quarters of an hour", true, 0, "")
	c.looked(b, 0)
	is("not found", false, 45*time.Minute, "not found in 500 runs")
	if rows, alarms := c.rows(); len(alarms) != 1 || !strings.Contains(alarms[0], "The planted bug one was not found in 500 runs.") || rows[0].Runs != 7 {
		t.Errorf("%+v, %q", rows, alarms)
	}
	now = now.Add(45 * time.Minute)
	c.looked(b, 3)
	is("found again", false, 45*time.Minute, "")

	now = now.Add(-24 * time.Hour)
	is("the clock went back a day", true, 0, "")
	c.looked(b, 1)
	is("found then", false, 45*time.Minute, "")
	if err := c.write(dir); err != nil {
		t.Fatal(err)
	}
	now = now.Add(1000 * time.Hour)
	c = start()
	is("started again when the clock went forward", true, 0, "")
	if c.looked(b, 2); c.state["one"].Round != 5 {
		t.Errorf("round %d, want 5", c.state["one"].Round)
	}
	is("found after that", false, 45*time.Minute, "")
}

func TestThePageOfAFarm(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := &farmPage{dir: t.TempDir(), title: "Farm: <x>", now: func() time.Time { return now }}
	p.workers = func() []spread.Told { return []spread.Told{{Worker: "a & b", Lock: "setnx-del", Family: 3, Runs: 42}} }
	p.canaries = func() ([]farmCanary, []string) {
		return []farmCanary{{Bug: "one", Alarm: "not found in 5 runs"}}, []string{"The planted bug one was not found in 5 runs."}
	}
	r := p.row(explore.Plan{Lock: "setnx-del", Strategy: explore.StrategyPlain, Profile: "simple", Runs: 1000}, "campaign")
	write := func(wants ...string) {
		t.Helper()
		if err := p.write(); err != nil {
			t.Fatal(err)
		}
		page := filetest.Contents(t, p.dir)[farmPageFile]
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not say %q:\n%s", want, page)
			}
		}
	}
	write("Farm: &lt;x&gt;", "Nothing yet.", "family 3 of setnx-del", "a &amp; b", `<p class="cut">The planted bug one was not found`, "0 runs since this start", `http-equiv="refresh"`)
	r.progress(explore.Progress{Runs: 300, Of: 1000, Played: 200})
	f := explore.Failed{Why: "<b>", Size: 4}
	f.Judge, f.Class, f.Op = "misdelete", judges.ClassBug, "unlock"
	r.found(f, filepath.Join(p.dir, "campaign", "found", "a b#c", "run-1.lockstep"))
	now = now.Add(10 * time.Second)
	write("300 of 1000", "20 runs a second in the last 10s; 200 runs", "&lt;b&gt;", `href="./campaign/found/a%20b%23c/run-1.lockstep"`)
	now = now.Add(-time.Hour) // the clock was set back
	write("200 runs since this start")
	r.rest("waits")
	r.progress(explore.Progress{Runs: 400, Of: 1000, Played: 100})
	now = now.Add(time.Second)
	write("100 runs a second in the last 1s; 300 runs")
}
