package explore

import (
	"slices"
	"testing"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/model"
	"lockstep/sim"
)

func aimedPlan(runs int) Plan {
	p := plan("setnx-cad", runs, draw.Classes...)
	p.Profile, p.Strategy = draw.Full, StrategyTold
	return p
}

// cellsOf returns the number of cells with a fault that the runs met.
func cellsOf(runs []Run) int {
	met := map[int]bool{}
	for _, r := range runs {
		for _, code := range r.Cells {
			if c, ok := coverage.CellOf(code); ok && c.Fault != coverage.None {
				met[code] = true
			}
		}
	}
	return len(met)
}

// A campaign that aims has the same runs whether one process plays it or a second one goes on
// with it. The second process plays a run again to learn its moments.
func TestACampaignThatAimsGoesOn(t *testing.T) {
	h := sim.NewHost(t)
	p := aimedPlan(FamilyRuns)
	want := played(t, h, Campaign{Plan: p})
	dir, fewer := t.TempDir(), p
	fewer.Runs = 81
	played(t, h, Campaign{Plan: fewer, Dir: dir})
	sameRuns(t, "begun again", played(t, h, Campaign{Plan: p, Dir: dir}), want)
	aimed := 0
	for _, r := range want {
		if r.From >= 0 && r.Seed == want[r.From].Seed {
			aimed++
		}
	}
	if aimed < 15 {
		t.Errorf("%d of 100 runs have the seed of the run that they change", aimed)
	}
}

func TestAimingMeetsMoreCells(t *testing.T) {
	h := sim.NewHost(t)
	met := map[string]int{}
	for _, name := range []string{StrategyPlain, StrategyTold} {
		p := plan("setnx-get-del", 3*FamilyRuns, draw.ClassPause)
		p.Strategy = name
		met[name] = cellsOf(played(t, h, Campaign{Plan: p}))
	}
	t.Logf("cells: %v", met)
	if met[StrategyTold] <= met[StrategyPlain] {
		t.Errorf("300 runs of which some aim meet %d cells, and 300 that do not meet %d", met[StrategyTold], met[StrategyPlain])
	}
}

func TestTheTallyHasTheTableOfCells(t *testing.T) {
	h := sim.NewHost(t)
	p := aimedPlan(20)
	var told Progress
	runs := played(t, h, Campaign{Plan: p, Progress: func(p Progress) { told = p }})
	o := Sum(p, runs)
	if told.CellsMet != o.Cells.Met || told.CellsOf != o.Cells.Of {
		t.Errorf("the progress has %d of %d cells, and the table %d of %d", told.CellsMet, told.CellsOf, o.Cells.Met, o.Cells.Of)
	}
	if o.Cells == nil || o.Cells.Met != cellsOf(runs) || o.Cells.Of <= o.Cells.Met || len(o.Cells.Rows) < 15 {
		t.Fatalf("the runs met %d cells, and the table is %+v", cellsOf(runs), o.Cells)
	}
	bare := aimedPlan(5)
	bare.Faults = nil
	if o := Sum(bare, played(t, h, Campaign{Plan: bare})); o.Cells == nil || o.Cells.Situations == 0 || len(o.Cells.Rows) > 0 {
		t.Errorf("without faults the table is %+v", o.Cells)
	}
}

// A campaign that has nothing to aim draws every run anew, and plays no run twice.
func TestWhatCannotBeAimedIsDrawn(t *testing.T) {
	h := sim.NewHost(t)
	p := aimedPlan(FamilyRuns)
	p.Faults = nil
	seeds := map[uint64]bool{}
	for _, r := range played(t, h, Campaign{Plan: p}) {
		if r.From >= 0 || seeds[r.Seed] {
			t.Errorf("run %d changes run %d, with seed %d", r.Index, r.From, r.Seed)
		}
		seeds[r.Seed] = true
	}
}

// A run that aims prefers a cell of a situation that is new to its family, and then one of the
// part of the cells that its family fills first.
func TestWhichCellsAreAimedAtFirst(t *testing.T) {
	cell := func(m coverage.Moment) coverage.Cell {
		return coverage.Cell{State: coverage.Own, Op: model.ActLock, Moment: m, Fault: coverage.Pause}
	}
	fresh, old := cell(coverage.InSection), cell(coverage.Waiting)
	mine := old
	for mine.Code()%aimFamilies != 3 { // family 3, and 19
		i := slices.Index(coverage.Kinds, mine.Fault) + 1
		mine.Fault = coverage.Kinds[i%len(coverage.Kinds)]
	}
	both := fresh
	for both.Code()%aimFamilies != 3 {
		i := slices.Index(coverage.Kinds, both.Fault) + 1
		both.Fault = coverage.Kinds[i%len(coverage.Kinds)]
	}
	for _, c := range []struct {
		family int
		cells  []coverage.Cell
		want   []int
	}{
		{3, []coverage.Cell{old, mine, fresh, both}, []int{3}},
		{19, []coverage.Cell{old, mine, fresh}, []int{2}},
		{3, []coverage.Cell{old, mine, old}, []int{1}},
		{4, []coverage.Cell{mine, mine}, []int{0, 1}},
		{3, nil, nil},
	} {
		got := task{index: c.family*FamilyRuns + 7, fresh: []int{fresh.Situation().Code()}}.best(c.cells)
		if !slices.Equal(got, c.want) {
			t.Errorf("family %d aims at %v of %v, want %v", c.family, got, c.cells, c.want)
		}
	}
}

// Each gap is drawn as often as any other, however many of its cells are empty, and a family aims at its own
// part of the cells of a gap first.
func TestWhichGapsAreAimedAt(t *testing.T) {
	cell := func(op model.Action, s coverage.State, k coverage.Kind) coverage.Cell {
		return coverage.Cell{Op: op, Moment: coverage.AfterFirst, State: s, Fault: k}
	}
	var empty []coverage.Cell
	for _, s := range coverage.Between {
		for _, k := range coverage.Kinds {
			empty = append(empty, cell(model.ActUnlock, s, k))
		}
	}
	empty = append(empty, cell(coverage.Renewal, coverage.Nothing, coverage.Pause))
	renewals := 0
	for seed := range uint64(200) {
		x := task{index: 3*FamilyRuns + 7}
		places := x.inGap(sim.NewSeeded(seed), empty)
		if len(places) == 1 && empty[places[0]].Op == coverage.Renewal {
			renewals++
			continue
		}
		for _, i := range places {
			if empty[i].Op != model.ActUnlock || !x.prefers(empty[i]) {
				t.Fatalf("seed %d: it aims at %v", seed, empty[i])
			}
		}
	}
	if renewals < 70 || renewals > 130 {
		t.Errorf("%d of 200 runs aim at the renewal, of two gaps", renewals)
	}
}
