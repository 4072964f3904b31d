package play

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"lockstep/linearizability"
	"lockstep/linearizability/judges"
	"lockstep/model"
)

// A live recording gives back the findings that were written to it, whatever their details are.
func TestFindingsOfALiveRecordingAreReadAsTheyWere(t *testing.T) {
	details := append([]judges.Detail{
		judges.Overlap{Earlier: "a/1", Later: "b/1", Ending: judges.Ending{Cause: model.LossExpired, AtNs: 5, Before: []judges.Harm{{Kind: judges.HarmUnseen, Fault: "a step", AtNs: 3}}}},
		judges.Unplaceable{Lock: "x", Reason: linearizability.Reason{Refused: &linearizability.Refused{
			Op: linearizability.Op{Process: "a", Thread: 1}, State: model.State{Owner: "b/1", Count: 1}, By: model.Held}}},
		judges.WrongResource{Name: "stock", Together: &judges.Together{Earlier: "a/1", Later: "b/1", Ending: &judges.Ending{Cause: model.LossForced, Thread: "c/1"}}},
	}, judges.Details...)
	for _, d := range details {
		f := judges.Finding{
			Judge: model.JudgeLease, Verdict: judges.Undecided, AtNs: 7, Convicted: true, Doubt: judges.Doubt{Uncertainty: 2},
			Facts: model.Facts{Form: model.FormGhost, Lock: "x", Thread: "a/1"}, Detail: d,
			Excuses: []model.Excuse{{Circumstance: model.HolderStopped, Fault: 1, Cause: model.Cause{Kind: model.CauseFaultAt, Fault: "pause of a", AtNs: 9}}},
		}
		text, err := json.Marshal(liveFinding{Finding: f})
		if err != nil {
			t.Fatal(err)
		}
		var got liveFinding
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got.Finding, f) {
			t.Errorf("%v: read\n%+v\nof %s\nwant\n%+v", err, got.Finding, text, f)
		}
	}
	for text, want := range map[string]string{
		`{"Rule":"Nobody","Detail":{}}`:                `there is no rule "Nobody"`,
		`{"Rule":"Ghost","Detail":{"Colour":"white"}}`: `unknown field "Colour"`,
		`{"Why":"it is so"}`:                           `unknown field "Why"`,
	} {
		if err := json.Unmarshal([]byte(text), new(liveFinding)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
