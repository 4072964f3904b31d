package explore

import (
	"slices"
	"strings"
	"testing"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/model"
	"lockstep/sim"
)

// pauseIn is the code of a cell of pauses.
func pauseIn(m coverage.Moment) int {
	return coverage.Cell{State: coverage.Own, Op: model.ActLock, Moment: m, Fault: coverage.Pause}.Code()
}

func TestAFullCampaignEnds(t *testing.T) {
	section, waiting := pauseIn(coverage.InSection), pauseIn(coverage.Waiting)
	met := func(codes ...int) Run { return Run{Cells: codes} }
	could := func(codes ...int) Run { return Run{Open: codes} }
	both := func(code int) Run { return Run{Open: []int{code}, Cells: []int{code}} }
	for _, c := range []struct {
		name string
		runs []Run
		want int // runs; 0: it does not end
	}{
		{"three runs after its only cell", []Run{both(section), {}, {}, {}, {}}, 4},
		{"not while a cell is empty", []Run{both(section), could(waiting), {}, {}, {}, {}}, 0},
		{"three runs after the last cell is met", []Run{could(section, waiting), met(section), {}, met(waiting), {}, {}, {}, {}}, 7},
		{"a cell that nobody thought open counts", []Run{both(section), {}, {}, met(waiting), {}, {}, {}}, 7},
		{"a cell that is met again is not new", []Run{both(section), both(section), met(section), both(section), {}}, 4},
		{"a situation is no cell", []Run{met(coverage.Cell{State: coverage.Own, Op: model.ActLock, Moment: coverage.InSection}.Code()), {}, {}, {}, {}}, 0},
	} {
		p := Plan{Runs: len(c.runs), Settled: 3}
		var reversed []Run
		for i := range c.runs {
			c.runs[i].Index = i
			reversed = append([]Run{c.runs[i]}, reversed...)
		}
		for _, runs := range [][]Run{c.runs, reversed} {
			e := newEnding(p)
			for _, r := range runs {
				e.read(r)
			}
			if e.full != (c.want > 0) || e.full && e.runs != c.want {
				t.Errorf("%s: full %v after %d runs, want %d", c.name, e.full, e.runs, c.want)
			}
		}
		o := Sum(p, reversed)
		if o.Full != (c.want > 0) || o.Full && (o.Runs != c.want || o.Missing != 0 || !strings.Contains(o.Total(), "it is full and ended after")) {
			t.Errorf("%s: the tally is of %d runs, %d are missing, full %v: %s", c.name, o.Runs, o.Missing, o.Full, o.Total())
		}
		p.Settled = 0
		if o := Sum(p, c.runs); o.Full || o.Runs != len(c.runs) {
			t.Errorf("%s: a campaign that keeps going ends after %d runs", c.name, o.Runs)
		}
		gap := slices.Delete(slices.Clone(c.runs), 0, 1)
		p.Settled = 3
		if o := Sum(p, gap); o.Full || o.Missing != 1 {
			t.Errorf("%s: without its first run it is full %v, and %d runs are missing", c.name, o.Full, o.Missing)
		}
	}
}

// A full campaign has the same runs whether one process plays it, or several do, or shards that
// know nothing of each other. It goes on where it ended if it is to.
func TestAFullCampaignIsTheSameHoweverItIsPlayed(t *testing.T) {
	h := sim.NewHost(t)
	p := plan("none", 600, draw.ClassOperator)
	p.Strategy, p.Settled = StrategyTold, 20
	dir := t.TempDir()
	runsPlayed := 0
	want := played(t, h, Campaign{Plan: p, Dir: dir, Player: func() (Player, error) {
		player, err := Here(h, p)
		return counting{player, &runsPlayed}, err
	}})
	o := Sum(p, want)
	if !o.Full || len(want) != o.Runs || o.Runs >= 500 || o.Missing != 0 || o.Cells.Met != o.Cells.Of {
		t.Fatalf("%d of %d runs, full %v, %v", o.Runs, len(want), o.Full, o.Cells)
	}
	if runsPlayed > o.Runs+2*FamilyRuns { // one family is under way, and one is next
		t.Errorf("%d runs were played, and the campaign ended after %d", runsPlayed, o.Runs)
	}
	var dirs []string
	for shard := range 2 {
		dirs = append(dirs, t.TempDir())
		if runs := played(t, h, Campaign{Plan: p, Dir: dirs[shard], Shard: shard, Of: 2}); len(runs) != 300 {
			t.Errorf("a shard has %d runs", len(runs))
		}
	}
	merged, runs, err := Merge(dirs)
	if err != nil {
		t.Fatal(err)
	}
	if got := Sum(merged, runs); !got.Full || got.Runs != o.Runs || got.Total() != o.Total() {
		t.Errorf("merged: %s\nin one:  %s", got.Total(), o.Total())
	}
	sameRuns(t, "merged", sorted(runs)[:o.Runs], want)
	p.Settled = 0
	more := played(t, h, Campaign{Plan: p, Dir: dir})
	if len(more) != 600 {
		t.Fatalf("it went on to %d runs", len(more))
	}
	sameRuns(t, "gone on", more[:o.Runs], want)
}
