package locktest

import (
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/play"
)

// A replay shows the bug for which its recording was made, although the run has others before it.
func TestTheBugOfARecording(t *testing.T) {
	v := play.Verdict{Findings: []judges.Finding{
		{Judge: model.JudgeMutualExclusion, Verdict: judges.Broken, Class: judges.ClassLimit},
		{Judge: model.JudgeMisdelete, Verdict: judges.Broken, Class: judges.ClassBug},
		{Judge: model.JudgeLinearizable, Verdict: judges.Broken, Class: judges.ClassBug},
	}}
	for _, c := range []struct {
		preferred []string
		want      string
	}{
		{nil, model.JudgeMisdelete},
		{[]string{model.JudgeLinearizable}, model.JudgeLinearizable},
		{[]string{model.JudgeMutualExclusion, model.JudgeLease}, model.JudgeMisdelete}, // neither is a bug of the run
	} {
		if f, ok := firstBug(v, c.preferred...); !ok || f.Judge != c.want {
			t.Errorf("of %v: %s, want %s", c.preferred, f.Judge, c.want)
		}
	}
	if f, ok := firstBug(play.Verdict{Findings: v.Findings[:1]}, model.JudgeMutualExclusion); ok {
		t.Errorf("a limit is taken for a bug: %+v", f)
	}
}
