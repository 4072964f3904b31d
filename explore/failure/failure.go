// Package failure describes the failure of a run: the kind of its call, the kinds of its
// faults, its origin, and the number of events that tell it. Shrinking compares failures by
// this description, and campaigns group them by it. The package plays nothing of its own;
// a namer of known defects may replay the run without some faults.
package failure

import (
	"math"
	"slices"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/play"
)

// Failure is one finding of one run.
type Failure struct {
	Verdict play.Verdict   // of the run: scenario, lock, seed, record, decisions
	Finding judges.Finding // the one that matters
	// Seeded reports whether NewSeeded(Verdict.Seed) makes the decisions of the run.
	// Otherwise Verdict.Played.Decisions has them.
	Seeded bool
}

// Size returns the number of events that tell the story of a run up to its first bug, or
// else up to its first limit, or to its end if nothing is broken:
//   - a call, and its return;
//   - a message that met a fault, or that was lost;
//   - the beginning and the end of any other fault, a client that closed;
//   - a change on the server of who holds a lock, how often, or who waits, but
//     not of how long;
//   - a use of a resource, a want that was not met.
//
// Commands are not counted. Their effects are.
func Size(v play.Verdict) int {
	f, _ := First(v, "")
	return SizeTo(v, f)
}

// First returns the finding of a judge that matters most: the first bug, or else the
// first limit. The judge "" stands for all judges.
func First(v play.Verdict, judge string) (judges.Finding, bool) {
	for _, class := range []judges.Class{judges.ClassBug, judges.ClassLimit} {
		for _, f := range v.Findings {
			if f.Verdict == judges.Broken && f.Class == class && (judge == "" || f.Judge == judge) {
				return f, true
			}
		}
	}
	return judges.Finding{}, false
}

// Until returns the instant up to which a run has to be told to show a finding.
func Until(f judges.Finding) int64 {
	switch {
	case f.Judge == "":
		return math.MaxInt64
	case f.Judge == model.JudgeLinearizable && len(f.Ops) > 0:
		return max(f.AtNs, f.Ops[0].ReturnNs) // it names the call
	}
	return f.AtNs
}

// SizeTo is Size up to the given finding.
func SizeTo(v play.Verdict, f judges.Finding) int {
	last := Until(f)
	n := 0
	met := map[int]bool{}
	held := map[string]model.LockState{}
	for i := range v.Played.Record.Events {
		e := &v.Played.Record.Events[i]
		if e.AtNs > last || e.Kind == model.KindLeave {
			break
		}
		switch e.Kind {
		case model.KindInvoke, model.KindReturn, model.KindFault, model.KindFaultEnd, model.KindClose, model.KindTold, model.KindResource:
			n++
		case model.KindHit:
			met[e.Msg] = true
			n++
		case model.KindLost:
			if !met[e.Msg] && e.Why != model.LostUnwanted {
				n++
			}
		case model.KindState:
			old := held[e.Lock]
			if old.Owner != e.State.Owner || old.Count != e.State.Count || !slices.Equal(old.Queue, e.State.Queue) {
				n++
			}
			held[e.Lock] = *e.State
		case model.KindCheck:
			if !e.Met {
				n++
			}
		}
	}
	return n
}
