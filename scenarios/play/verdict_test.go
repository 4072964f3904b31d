package play

import (
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
)

// Nothing that the judges find after the lock panicked counts, nor after a server met what it does not simulate, but what
// the harness says of it does.
func TestFindingsAfterAPanicDoNotCount(t *testing.T) {
	found := []judges.Finding{
		{Judge: model.JudgeMisdelete, AtNs: 4},
		{Judge: judges.JudgeHarness, AtNs: 5},
		{Judge: model.JudgeLiveness, AtNs: 9},
		{Judge: model.JudgeLinearizable, AtNs: 2, Ops: []judges.OpRef{{ReturnNs: 6}}},
	}
	for kind, want := range map[model.Kind]int{model.KindDefect: 2, model.KindUnsimulated: 2, model.KindFault: 4} {
		left := faithful(&model.Record{Events: []model.Event{{Kind: model.KindInvoke, AtNs: 1}, {Kind: kind, AtNs: 5}}}, append([]judges.Finding{}, found...))
		if len(left) != want || left[0].Judge != model.JudgeMisdelete || left[1].Judge != judges.JudgeHarness {
			t.Errorf("after %s the findings are %v", kind, left)
		}
	}
}

// The run without the excuse of a limit makes a bug of it if it shows a bug like it. Another bug of the same judge
// says nothing about the limit.
func TestALimitIsConvictedByABugLikeIt(t *testing.T) {
	limit := judges.Finding{
		Judge: model.JudgeTidy, Verdict: judges.Broken, Class: judges.ClassLimit, AtNs: 7, Detail: judges.Ghost{ReturnNs: 7},
		Facts:   model.Facts{Form: model.FormGhost, Lock: "x", Thread: "a/1"},
		Excuses: []model.Excuse{{Circumstance: model.WaiterGone, Fault: 1}},
	}
	sc := &scenarios.Scenario{Faults: make([]scenarios.Fault, 1)}
	for name, c := range map[string]struct {
		change func(f *judges.Finding)
		bug    bool
	}{
		"at another instant, after another call": {func(f *judges.Finding) { f.AtNs, f.Detail = 9, judges.Ghost{Call: model.ActLock} }, true},
		"of another judge":                       {func(f *judges.Finding) { f.Judge = model.JudgeLease }, false},
		"of another form":                        {func(f *judges.Finding) { f.Form = model.FormLeftover }, false},
		"of another rule":                        {func(f *judges.Finding) { f.Detail = judges.Abandoned{} }, false},
		"on another lock":                        {func(f *judges.Finding) { f.Lock = "y" }, false},
		"about another thread":                   {func(f *judges.Finding) { f.Thread = "b/1" }, false},
		"a limit":                                {func(f *judges.Finding) { f.Class = judges.ClassLimit }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := limit
			g.Class = judges.ClassBug
			c.change(&g)
			for _, asked := range [][]judges.Finding{nil, {limit}} {
				j := judges.Judgement{Findings: []judges.Finding{limit}}
				Convict(sc, &j, asked, func(less *scenarios.Scenario, _ []model.Excuse, doubted []judges.Finding) judges.Judgement {
					if len(less.Faults) != 0 || len(doubted) != 1 {
						t.Errorf("the run without the excuse has %v, and is asked about %v", less.Faults, doubted)
					}
					return judges.Judgement{Findings: []judges.Finding{g}}
				})
				if f := j.Findings[0]; f.Convicted != c.bug || (f.Class == judges.ClassBug) != c.bug {
					t.Errorf("convicted: %v, class: %s", f.Convicted, f.Class)
				}
			}
		})
	}
}
