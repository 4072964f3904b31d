package explore

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/explore/draw"
	"lockstep/internal/filetest"
	"lockstep/sim"
)

// writeCampaign plays a campaign and writes its results into a folder.
func writeCampaign(t *testing.T, h *sim.Host, dir string, p Plan) {
	t.Helper()
	runs := t.TempDir()
	s := Shrinking{Plan: p, Budget: 100, Program: "simrun", Jobs: 1, Stop: t.Context(), Dir: runs, From: []string{runs}, Player: func() (Player, error) { return Here(h, p) }}
	o, small, err := s.Conclude(played(t, h, Campaign{Plan: p, Dir: runs}))
	if err != nil {
		t.Fatal(err)
	}
	o, small = o.Fold(small)
	if err := WriteTally(dir, "simrun", o, small); err != nil {
		t.Fatal(err)
	}
}

// A shelf keeps the shortest recording of each known defect and of each limit, in whatever order the campaigns come, and
// their verdicts lead to it.
func TestAShelfKeepsOneRecordingOfEachDefectAndLimit(t *testing.T) {
	h := sim.NewHost(t)
	var kept map[string]string
	for _, order := range [][]string{{"one", "two"}, {"two", "one"}} {
		dir := t.TempDir()
		shelf := Shelf{Dir: filepath.Join(dir, "recordings"), Host: h}
		short := map[string]string{}
		for name, seed := range map[string]uint64{"one": 7, "two": 10} {
			p := plan("setnx-del", 40, draw.ClassPause)
			p.Seed = seed
			campaign := filepath.Join(dir, "explore", name)
			writeCampaign(t, h, campaign, p)
			told, err := readTold(campaign)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range told.groups {
				text, err := os.ReadFile(filepath.Join(campaign, g.Recording))
				if err != nil {
					t.Fatal(err)
				}
				if old, ok := short[g.Name()]; !ok || shorter(text, []byte(old)) {
					short[g.Name()] = string(text)
				}
			}
		}
		var campaigns []string
		for _, name := range order {
			campaigns = append(campaigns, filepath.Join(dir, "explore", name))
			if err := shelf.Add(campaigns[len(campaigns)-1]); err != nil {
				t.Fatal(err)
			}
		}
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(shelf.file(name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("R-0", "a recording that no campaign has")
		if err := shelf.Sweep(campaigns); err != nil {
			t.Fatal(err)
		}
		got := filetest.Contents(t, shelf.Dir)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"SETNX-misdelete.lockstep", "holder-paused-past-its-lease.lockstep"}) {
			t.Fatalf("the shelf has %q", names)
		}
		for name, text := range got {
			name = strings.TrimSuffix(name, recordingExt)
			if text != short[name] {
				t.Errorf("%s is not the shortest:\n%s\n%s", name, text, short[name])
			}
			if err := shelf.Shows(name); err != nil {
				t.Error(err)
			}
		}
		if kept == nil {
			kept = got
		}
		if !maps.Equal(got, kept) {
			t.Error("in another order the shelf keeps other recordings")
		}
		for _, campaign := range campaigns {
			if missing, err := MissingRecordings(campaign); err != nil || len(missing) > 0 {
				t.Errorf("%s leads to %q, %v", campaign, missing, err)
			}
			files := filetest.Contents(t, campaign)
			if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, []string{"verdicts.jsonl", "verdicts.md"}) {
				t.Errorf("%s has %q", campaign, names)
			}
			if page := files[verdictsPage]; !strings.Contains(page, "[recording](../../recordings/SETNX-misdelete.lockstep)") {
				t.Errorf("the page does not lead to the shelf:\n%s", page)
			}
		}
		// What no longer shows its defect gives way, even to a longer recording, and is missed when it is gone.
		write("SETNX-misdelete", got["holder-paused-past-its-lease.lockstep"])
		if err := shelf.Shows("SETNX-misdelete"); err == nil || !strings.Contains(err.Error(), "the run does not show SETNX-misdelete") {
			t.Errorf("got %v", err)
		}
		if err := shelf.keep("SETNX-misdelete", []byte(short["SETNX-misdelete"]+"\n")); err != nil || shelf.Shows("SETNX-misdelete") != nil {
			t.Errorf("%v, %v", err, shelf.Shows("SETNX-misdelete"))
		}
		if err := os.Remove(shelf.file("SETNX-misdelete")); err != nil {
			t.Fatal(err)
		}
		if missing, _ := MissingRecordings(campaigns[0]); !slices.Equal(missing, []string{shelf.file("SETNX-misdelete")}) {
			t.Errorf("missing are %q", missing)
		}
	}
}
