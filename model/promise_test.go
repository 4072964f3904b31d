package model_test

import (
	"slices"
	"testing"

	"lockstep/model"
)

func TestTraitsImplyPromises(t *testing.T) {
	for _, c := range []struct {
		rule     string
		traits   model.Traits
		judge    string
		promised bool
		unless   []model.Circumstance
	}{
		{"every lock lets one in at a time", model.Traits{}, model.JudgeMutualExclusion, true, []model.Circumstance{model.HolderStopped, model.HolderCutOff, model.HoldRemoved, model.ServerClockStepped}},
		{"every lock refuses the unlock of another's hold", model.Traits{}, model.JudgeMisdelete, true, nil},
		{"every lock answers in one order", model.Traits{}, model.JudgeLinearizable, true, []model.Circumstance{model.MemoryRemoved}},
		{"a fair one in that of its waiters", model.Traits{Fair: true}, model.JudgeLinearizable, true, []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved, model.ServerClockStepped}},
		{"only a fair lock promises an order of waiters", model.Traits{Fenced: true}, model.JudgeFIFO, false, nil},
		{"and it does", model.Traits{Fair: true}, model.JudgeFIFO, true, []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved, model.ServerClockStepped}},
		{"only a fenced lock promises tokens", model.Traits{Fair: true}, model.JudgeFencing, false, nil},
		{"and it does", model.Traits{Fenced: true}, model.JudgeFencing, true, []model.Circumstance{model.HoldRemoved, model.ServerClockStepped}},
		{"a free lock goes to a waiter", model.Traits{}, model.JudgeLiveness, true, []model.Circumstance{model.DeadWaiters, model.ServerClockStepped}},
		{"a hold ends with its lease", model.Traits{}, model.JudgeLease, true, []model.Circumstance{model.ServerClockStepped}},
		{"what the lock guards is worked on by one at a time", model.Traits{}, model.JudgeWorkload, true,
			[]model.Circumstance{model.HolderStopped, model.HolderCutOff, model.HoldRemoved, model.ServerClockStepped, model.Overstayed, model.Unguarded}},
		{"nothing is promised to a judge that does not exist", model.Traits{Fair: true, Fenced: true}, "no such judge", false, nil},
	} {
		t.Run(c.judge+": "+c.rule, func(t *testing.T) {
			p, ok := c.traits.Implies(c.judge)
			if ok != c.promised || ok && !slices.Equal(p.Unless, c.unless) {
				t.Errorf("promised %t unless %v, want %t unless %v", ok, p.Unless, c.promised, c.unless)
			}
		})
	}
}

func TestALockSaysWhereItDeviates(t *testing.T) {
	p := model.Params{Lock: "anybody's", Traits: model.Traits{Fair: true, Fenced: true}, Promises: model.Promises{
		model.JudgeFIFO:    {Unless: []model.Circumstance{model.ClocksApart}, Source: "deadlines are wall clocks"},
		model.JudgeFencing: {Waived: true, Source: "the token is an id"},
	}}
	if got, ok := p.Promise(model.JudgeFIFO); !ok || !slices.Equal(got.Unless, []model.Circumstance{model.ClocksApart}) {
		t.Errorf("fifo: promised %t: %+v; want what the lock says", ok, got)
	}
	if got, ok := p.Promise(model.JudgeFencing); ok {
		t.Errorf("fencing: promised %+v; the lock waives it", got)
	}
	if got, ok := p.Promise(model.JudgeTidy); !ok || len(got.Unless) == 0 {
		t.Errorf("tidy: promised %t: %+v; want what the traits imply", ok, got)
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

func TestSomeLockPromisesWhatAJudgeJudges(t *testing.T) {
	all := model.Traits{Fair: true, Fenced: true}
	for _, judge := range model.Judges {
		if p, ok := all.Implies(judge); !ok || p.Source == "" {
			t.Errorf("no lock promises what %s judges, so that whatever it finds is left out: give it a case in Traits.Implies", judge)
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
