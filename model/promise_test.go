package model_test

import (
	"slices"
	"testing"

	"lockstep/model"
)

func TestPromiseOf(t *testing.T) {
	for _, c := range []struct {
		lock, judge string
		promised    bool
		unless      []model.Circumstance
	}{
		{"redisson@3.43.0", model.JudgeMutualExclusion, true, []model.Circumstance{model.HolderStopped, model.HolderCutOff, model.HoldRemoved}},
		{"setnx-del", model.JudgeMutualExclusion, true, []model.Circumstance{model.HolderStopped, model.HolderCutOff, model.HoldRemoved}},
		{"redisson@3.43.0", model.JudgeMisdelete, true, nil},
		{"setnx-del", model.JudgeMisdelete, true, nil},
		{"none", model.JudgeLinearizable, true, nil},
		{"redisson-fair@4.7.0", model.JudgeLinearizable, true, []model.Circumstance{model.ClocksApart}},
		{"redisson-fair@4.7.0", model.JudgeFIFO, true, []model.Circumstance{model.ClocksApart, model.WaiterAway, model.HoldRemoved}},
		{"redisson-fair", model.JudgeFIFO, true, []model.Circumstance{model.ClocksApart, model.WaiterAway, model.HoldRemoved}},
		{"reference-fair", model.JudgeFIFO, true, []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved}},
		{"reference-fair", model.JudgeLinearizable, true, []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved}},
		{"reference", model.JudgeLinearizable, true, []model.Circumstance{model.MemoryRemoved}},
		{"reference", model.JudgeHoldCount, true, []model.Circumstance{model.MemoryRemoved}},
		{"redisson@4.7.0", model.JudgeFIFO, false, nil},
		{"redisson", model.JudgeFIFO, false, nil},
		{"setnx-cad", model.JudgeFIFO, false, nil},
		{"none", model.JudgeFIFO, false, nil},
		{"redisson-fair@4.7.0", model.JudgeLiveness, true, []model.Circumstance{model.DeadWaiters, model.ClocksApart}},
		{"redisson@4.7.0", model.JudgeLiveness, true, []model.Circumstance{model.DeadWaiters}},
		{"reference-fair", model.JudgeLiveness, true, []model.Circumstance{model.DeadWaiters, model.WaiterAway, model.HoldRemoved}},
		{"string-reentrant", model.JudgeWorkload, true,
			[]model.Circumstance{model.HolderStopped, model.HolderCutOff, model.HoldRemoved, model.Overstayed, model.Unguarded}},
		{"redisson@4.7.0", model.JudgeWant, true, nil},
		{"redisson@4.7.0", "no such judge", false, nil},
	} {
		t.Run(c.lock+" "+c.judge, func(t *testing.T) {
			p, ok := model.PromiseOf(model.Params{Lock: c.lock}, c.judge)
			if ok != c.promised || !slices.Equal(p.Unless, c.unless) {
				t.Errorf("promised %t unless %v, want %t unless %v", ok, p.Unless, c.promised, c.unless)
			}
			if ok && (p.Judge != c.judge || p.Source == "") {
				t.Errorf("got %+v, want a promise of that judge with its source", p)
			}
		})
	}
}

func TestFamily(t *testing.T) {
	for lock, want := range map[string]string{
		"redisson@3.43.0": "redisson", "redisson": "redisson", "redisson-fair@4.7.0": "redisson-fair", "setnx-del": "setnx-del", "": "",
	} {
		if got := model.Family(lock); got != want {
			t.Errorf("Family(%q) = %q, want %q", lock, got, want)
		}
	}
}

func TestPromisesAreOfKnownJudges(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range model.Promises {
		if !slices.Contains(model.Judges, p.Judge) {
			t.Errorf("%q is no judge", p.Judge)
		}
		if cell := p.Judge + " " + p.Locks; seen[cell] {
			t.Errorf("two promises of %s", cell)
		} else {
			seen[cell] = true
		}
	}
	for _, judge := range model.Judges {
		if !slices.ContainsFunc(model.Promises, func(p model.Promise) bool { return p.Judge == judge }) {
			t.Errorf("no lock promises what %s judges, so that whatever it finds is left out: give it a row in model.Promises", judge)
		}
	}
}

func TestAdmitKeepsWhatCounts(t *testing.T) {
	p := model.Promise{Unless: []model.Circumstance{model.HolderStopped, model.HoldRemoved}}
	got := p.Admit([]model.Excuse{
		{Circumstance: model.HoldRemoved, Fault: 3},
		{Circumstance: model.Overstayed},
		{Circumstance: model.HolderStopped, Fault: 1},
		{Circumstance: model.ClocksApart, Clocks: true},
	})
	want := []model.Excuse{{Circumstance: model.HoldRemoved, Fault: 3}, {Circumstance: model.HolderStopped, Fault: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("admitted %v, want %v", got, want)
	}
	if got := (model.Promise{}).Admit(want); len(got) != 0 {
		t.Errorf("a promise without conditions admitted %v", got)
	}
}

func TestRemovable(t *testing.T) {
	for _, c := range []struct {
		rule   string
		excuse model.Excuse
		want   bool
	}{
		{"a fault can be left out", model.Excuse{Circumstance: model.HolderStopped, Fault: 1}, true},
		{"the skew of clocks can", model.Excuse{Circumstance: model.ClocksApart, Clocks: true}, true},
		{"what the caller did itself cannot", model.Excuse{Circumstance: model.Overstayed}, false},
	} {
		if got := c.excuse.Removable(); got != c.want {
			t.Errorf("%s: removable is %t", c.rule, got)
		}
	}
}
