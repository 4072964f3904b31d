package judges

import (
	"time"

	"lockstep/model"
)

// wantJudge finds wants, replies and reads of steps that were not met.
type wantJudge struct{ *run }

func (r wantJudge) judge() []Finding {
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

// harnessJudge finds errors of the harness itself, panics of the lock, and runs without an end.
type harnessJudge struct{ *run }

func (r harnessJudge) judge() []Finding {
	var out []Finding
	for _, e := range r.Defects {
		if e.Limit > 0 {
			out = append(out, unended(r.run, e))
			continue
		}
		out = append(out, Finding{Judge: JudgeHarness, Verdict: Undecided, AtNs: e.AtNs, Detail: Defect{Text: e.Text}})
	}
	return out
}

// unended describes a run that the world ended, since it had too many events or took too long.
func unended(r *run, e *model.Event) Finding {
	d := Unended{Events: e.Limit}
	facts := model.Facts{}
	for _, c := range r.Calls { // in order of their beginning
		if c.Action.Acquires() && (c.Return == nil || c.Return.AtNs >= e.AtNs) {
			facts, d.FromNs = model.Facts{Lock: c.Lock, Thread: c.Caller}, c.AtNs
			if s := r.StateAt(c.Lock, e.AtNs); s.Held() && s.ExpiresMs > 0 {
				d.Owner, d.UntilNs = s.Owner, s.ExpiresMs*int64(time.Millisecond)
			}
			break
		}
	}
	return Finding{Judge: JudgeHarness, Verdict: Undecided, AtNs: e.AtNs, Facts: facts, Detail: d}
}
