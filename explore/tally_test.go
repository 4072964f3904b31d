package explore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/model"
)

// Failures with one known cause are one group, whatever faults the runs had.
func TestGroupsOfAKnownCause(t *testing.T) {
	failed := func(class judges.Class, op, fault, defect, excuse string) Failed {
		return Failed{Group: failure.Group{Judge: "tidy", Class: class, Op: op, Faults: []string{fault}}, Origin: failure.Origin{Defect: defect, Excuse: excuse}, Size: 9}
	}
	const bug, limit = judges.ClassBug, judges.ClassLimit
	var runs []Run
	for i, f := range []Failed{
		failed(limit, "acquire", "pause", "", "waiter away"),
		failed(limit, "acquire", "partition", "", "waiter away"),
		failed(limit, "unlock", "pause", "", "waiter away"),
		failed(limit, "acquire", "pause", "", "waiter away, waiter gone"),
		failed(bug, "acquire", "pause", "R-1", ""),
		failed(bug, "unlock", "crash", "R-1", ""),
		failed(bug, "acquire", "pause", "", ""),
		failed(bug, "acquire", "partition", "", ""),
	} {
		runs = append(runs, Run{Index: i, Failures: []Failed{f}})
	}
	var got []string
	for _, g := range Sum(Plan{Runs: len(runs)}, runs).Groups {
		got = append(got, fmt.Sprintf("%d %s", g.Count, g.folder()))
	}
	want := []string{
		"1 tidy.bug.acquire.pause",
		"1 tidy.bug.acquire.partition",
		"2 tidy.bug.acquire.R-1",
		"2 tidy.limit.acquire.waiter-away",
		"1 tidy.limit.unlock.waiter-away",
		"1 tidy.limit.acquire.waiter-away--waiter-gone",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the groups are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The words about states and cells are those of docs/README.md, and a campaign without faults says
// nothing of cells.
func TestTheTotalSpeaksOfStatesAndCells(t *testing.T) {
	at := coverage.Cell{State: coverage.Own, Op: model.ActLock, Moment: coverage.InSection}
	met, never := at, at
	met.Fault, never.Fault = coverage.Crash, coverage.Pause
	runs := []Run{{Index: 0, States: []uint64{1, 2}, Cells: []int{at.Code()}}, {Index: 1, States: []uint64{2, 3}}}
	p := plan("setnx-del", 2)
	if got, want := Sum(p, runs).Total(), "2 runs of setnx-del, 0 steps; every promise held in all of them; 3 states were met, 1 of them only in the second half"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	p.Faults = []draw.Class{draw.ClassCrash, draw.ClassPause}
	runs[1].Cells, runs[1].Open = []int{met.Code()}, []int{met.Code(), never.Code()}
	if got, want := Sum(p, runs).Total(), "; faults met 1 of the 2 cells that they could meet"; !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant %s at the end", got, want)
	}
}

// The plan of a campaign is read back from its folder as it was.
func TestTheFolderOfACampaignKeepsItsPlan(t *testing.T) {
	p := plan("setnx-del", 300, draw.ClassPause, draw.ClassCrash)
	p.Strategy, p.Depth, p.Seed, p.Seeds, p.Steps = StrategyTaPCT, 2, 5, 3, 1000
	dir := t.TempDir()
	if err := WriteTally(dir, "locks", Sum(p, nil), nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "verdicts.md"))
	if err != nil || !strings.Contains(string(text), "<!-- written by: locks explore --lock setnx-del ") || !strings.Contains(string(text), "Written by `locks explore --lock setnx-del ") {
		t.Errorf("%v; the table does not name the command that wrote it:\n%s", err, text)
	}
	told, err := readTold(dir)
	if err != nil || !reflect.DeepEqual(told.total.Plan, &p) {
		t.Errorf("%+v, %v; want %+v", told.total.Plan, err, p)
	}
}

// A campaign removes only the recordings that it keeps in found.
func TestAFinishedCampaignRemovesOnlyItsOwnRecordings(t *testing.T) {
	dir := t.TempDir()
	mine, kept := filepath.Join(dir, FoundDir, "mine.txt"), filepath.Join(dir, FoundDir, "misdelete.bug.unlock", "run-7.lockstep")
	for _, file := range []string{mine, kept} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeFound(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(kept)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a recording: %v", err)
	}
	if err := errors.Join(os.Remove(mine), removeFound(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, FoundDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder: %v", err)
	}
}

// What a campaign keeps of the failures that it has not made small goes, with what a process was writing when it died. The
// folder stays if it has anything else.
func TestRemoveFound(t *testing.T) {
	for _, other := range []string{"", "notes.txt"} {
		dir := t.TempDir()
		group := filepath.Join(dir, FoundDir, "misdelete.bug")
		if err := os.MkdirAll(group, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"run-6.lockstep", ".run-6.lockstep1130947608", other} {
			if name == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(group, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := removeFound(dir); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(group)
		if other == "" && !errors.Is(err, fs.ErrNotExist) || other != "" && (len(left) != 1 || left[0].Name() != other) {
			t.Errorf("beside %q it leaves %v, %v", other, left, err)
		}
	}
}
