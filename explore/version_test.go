package explore

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"lockstep/scenarios/scenariotest"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/internal/longtest"
	"lockstep/known"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/sim"
)

var locksOfVersions = []string{
	"redisson@3.4.2", "redisson@3.21.3", "redisson@4.7.0", "redisson@3.21.3+replicas", "redisson-fair@3.11.0", "redisson-fair@4.7.0",
	"reference-fair", "setnx-get-del", "string-reentrant",
}

func TestTheVersionOfTheDrawing(t *testing.T) {
	const version, want = 4, "34d6a6c4c1a872f2"
	classes := [][]draw.Class{nil, draw.Classes}
	for _, c := range draw.Classes {
		classes = append(classes, []draw.Class{c})
	}
	sum := sha256.New()
	for seed, name := range locksOfVersions {
		l := scenariotest.Lock(t, name)
		for _, p := range []draw.Profile{draw.Simple, draw.Full} {
			for _, classes := range classes {
				_, _ = fmt.Fprintln(sum, draw.New(sim.NewSeeded(uint64(seed)), l, p, classes).Write())
			}
		}
	}
	holdVersion(t, "the same seeds draw other scenarios", "draw.Version", draw.Version, version, fmt.Sprintf("%x", sum.Sum(nil)[:8]), want)
}

func TestTheVersionOfTheStories(t *testing.T) {
	const version, want = 18, "0361f11469cf9934"
	sum := sha256.New()
	for seed, name := range locksOfVersions {
		l := scenariotest.Lock(t, name)
		for _, p := range []draw.Profile{draw.Simple, draw.Full} {
			told := Plan{Lock: name, Faults: draw.Classes, Profile: p, Strategy: StrategyTold}
			all := told.tellings(l)
			for n := range 2 * FamilyRuns {
				s, ok := told.telling(all, n)
				if !ok {
					continue
				}
				_, _ = fmt.Fprintln(sum, told.tell(sim.NewSeeded(uint64(seed+n)), l, s).Write())
			}
		}
	}
	holdVersion(t, "the same seeds tell other schedules", "story.Version", story.Version, version, fmt.Sprintf("%x", sum.Sum(nil)[:8]), want)
}

// TestTheVersionOfTheNames fails if a finding becomes another defect without a new version.
// The titles of defects do not count, so they may be reworded.
func TestTheVersionOfTheNames(t *testing.T) {
	// The digests of the runs of all seeds, which a long test plays, and of the first ones.
	const version, all, first = 13, "8479230907dd5f9b", "ab27013e176425ef"
	h := sim.NewHost(t)
	sum := sha256.New()
	seen := map[string]bool{}
	seeds, want := longtest.Size[uint64](t, 10, 16), first
	if longtest.Asked() {
		want = all
	}
	for _, name := range locksOfVersions {
		l := scenariotest.Lock(t, name)
		for seed := range seeds {
			v := play.Run(h, draw.New(sim.NewSeeded(seed), l, draw.Full, draw.Classes).Scenario, l, seed)
			for _, f := range v.Findings {
				defect := failure.NewNamer(h, v).Name(f).ID
				seen[defect] = true
				_, _ = fmt.Fprintln(sum, f.Judge, f.Class, defect)
			}
			_, _ = fmt.Fprintln(sum)
		}
	}
	if len(seen) < longtest.Size(t, 8, 15) {
		t.Errorf("only %d defects came up", len(seen)-1)
	}
	holdVersion(t, "findings of the same runs are other defects (if the world, the judges or the drawing changed, raise theirs in place of it)",
		"known.Version", known.Version, version, fmt.Sprintf("%x", sum.Sum(nil)[:8]), want)
}

// holdVersion fails the test unless the digest of the current version is the golden one.
func holdVersion(t *testing.T, what, constant string, now, version int, got, want string) {
	t.Helper()
	switch {
	case now != version:
		t.Errorf("put %d and %s here", now, got)
	case got != want:
		t.Errorf("%s: raise the number %s, then put it and %s here", what, constant, got)
	}
}

func TestVersionsAreReadAsTheyAreWritten(t *testing.T) {
	now := CurrentVersions()
	for _, v := range []Versions{now, now.Played(), {World: 5}, noVersions} {
		text, err := json.Marshal(v)
		var got Versions
		if err := errors.Join(err, json.Unmarshal(text, &got)); got != v || err != nil {
			t.Errorf("%v was read as %v, %v", v, got, err)
		}
	}
	if d := now.Played().Difference(now); d != "" {
		t.Errorf("what is not used differs: %s", d)
	}
	if d, want := (Versions{World: now.World - 1, Judges: now.Judges, Names: NotUsed, Draw: NotUsed, Stories: NotUsed}).Difference(now), fmt.Sprintf("world %d, and the program has %d", now.World-1, now.World); d != want {
		t.Errorf("it says %q, not %q", d, want)
	}
	for text, want := range map[string]string{
		`{"world": "six"}`: "cannot unmarshal string",
		`{"moon": 1}`:      `there is no version of "moon"`,
		`{"names": -2}`:    "names -2 is no version",
	} {
		var v Versions
		if err := json.Unmarshal([]byte(text), &v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
