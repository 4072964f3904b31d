package play

import (
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/model"
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
