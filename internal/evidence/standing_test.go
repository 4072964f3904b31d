package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/filetest"
	"lockstep/scenarios/subject"
)

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

func TestStandingRefusesBadInput(t *testing.T) {
	withFarm(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "standing.yaml")
	for _, c := range []struct{ args, standing, want string }{
		{"", "", "standing takes one file of campaigns, got 0"},
		{"FILE", "", "--dir is missing"},
		{"nope.yaml --dir DIR", "", "there is no file nope.yaml; standing takes a file of campaigns"},
		{"FILE --dir DIR", "", "not a standing campaign"},
		{"FILE --dir DIR --lock setnx-del", "campaigns: [{lock: setnx-del}]", "unknown option --lock"},
		{"FILE --dir DIR", "canaries: [unlock-by-anyone]", "names no campaigns"},
		{"FILE --dir DIR", "campaigns: [{lok: setnx-del}]", "field lok not found"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-dell}]", "did you mean"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del, faults: [pauze]}]", "pauze"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del, profile: wild}]", "wild"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del, strategy: exhaustive}]", "strategy exhaustive"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del, strategy: luck}]", "strategy luck"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del, weight: -1}]", "weight -1"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del}, {lock: setnx-del, weight: 2}]", "another one of this lock"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del}]\nevery: soon", "not a duration"},
		{"FILE --dir DIR", "campaigns: [{lock: setnx-del}]\ncanaries: [unlock-by-anybody]", "no planted bug"},
	} {
		filetest.Write(t, file, c.standing)
		args := strings.Fields(strings.NewReplacer("DIR", filepath.Join(dir, "farm"), "FILE", file).Replace(c.args))
		code, out, stderr := call(t, append([]string{"standing"}, args...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("standing %s: %s: exit %d, %q, %q; want %q", c.args, c.standing, code, out, stderr, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "farm")); err == nil {
		t.Error("something was written")
	}
}
