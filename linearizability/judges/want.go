package judges

import (
	"lockstep/model"
)

// judgeWant finds wants, replies and reads of steps that were not met.
func judgeWant(r *run) []Finding {
	var out []Finding
	for _, e := range r.Checks {
		if !e.Met {
			out = append(out, Finding{Judge: model.JudgeWant, Verdict: Broken, AtNs: e.AtNs, Facts: model.Facts{Lock: e.Lock, Thread: e.ThreadName(), Check: e.Check},
				Detail: Unmet{Text: e.Text}})
		}
	}
	return out
}

// JudgeHarness is the name under which the harness accuses itself.
const JudgeHarness = "harness"

// judgeDefects finds errors of the harness itself, and panics of the lock.
func judgeDefects(r *run) []Finding {
	var out []Finding
	for _, e := range r.Defects {
		out = append(out, Finding{Judge: JudgeHarness, Verdict: Undecided, AtNs: e.AtNs, Detail: Defect{Text: e.Text}})
	}
	return out
}
