package judges

import (
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// Control says what the controls of a lock show about a limit. A control is a right lock of the same
// kind, played under the same faults. The zero value says that no control was played.
type Control struct {
	Word ControlWord `json:"word,omitempty"`
	// Lock is the control, Seed is the seed of a run of it that shows the word, and Watchdog is the
	// watchdog timeout of that run: the lease of the lock under test. They are set if a control broke
	// the promise or kept it.
	Lock     string        `json:"lock,omitempty"`
	Seed     uint64        `json:"seed,omitempty"`
	Watchdog time.Duration `json:"watchdog,omitempty"`
}

// A ControlWord says whether the controls of a lock show a limit.
type ControlWord string

// The words. ControlBroke shows the limit, and ControlKept shows that it is a bug. The others leave it
// a limit that is not shown.
const (
	ControlBroke   ControlWord = "broke"   // a control broke the promise in the same circumstance
	ControlKept    ControlWord = "kept"    // a control kept the promise each time it met the circumstance
	ControlUnmet   ControlWord = "unmet"   // too few runs of the controls met the circumstance
	ControlMissing ControlWord = "missing" // there is no control of this kind
)

// A Contrast compares a run of a control with a limit of another lock.
type Contrast string

// The contrasts. A run without a contrast says nothing: the circumstance of the limit did not meet it, the
// promise was not at stake, or it was broken for another reason.
const (
	NoContrast Contrast = ""
	BrokeToo   Contrast = "broke" // the circumstance met the control, which broke the promise
	KeptIt     Contrast = "kept"  // the circumstance met the control, and the control kept the promise
)

// ContrastOf returns what a run of a control says about f, a limit of another lock in the same scenario.
// The circumstances of the limit meet the run if the code that excuses a finding finds them there, with
// the same faults.
func ContrastOf(control *trace.Run, resources []Resource, f Finding) Contrast {
	if _, promised := control.Record.Params.Promise(f.Judge); !promised {
		return NoContrast
	}
	found := JudgeBy([]string{f.Judge, JudgeHarness}, control, resources).Findings
	for _, g := range found {
		if g.Judge == f.Judge && g.Verdict == Broken && slices.ContainsFunc(f.Excuses, func(e model.Excuse) bool { return excusedAlike(g.Excuses, e) }) {
			return BrokeToo
		}
	}
	if len(found) == 0 && (stakes{newRun(control)}).atStake(f) {
		return KeptIt
	}
	return NoContrast
}

// Contrastable reports whether a control may keep the promise in the circumstances of f, a limit of a lock with
// these traits. A judge that does not know when its promise is at stake is never shown that a control keeps it.
// A holder that is not told of the end of its hold works on, on any lock.
func Contrastable(t model.Traits, f Finding) bool {
	switch f.Judge {
	case model.JudgeMutualExclusion, model.JudgeWorkload:
		return t.Watched
	case model.JudgeWaitBound:
		return true
	}
	return false
}

// excusedAlike reports whether one of the excuses has the circumstance and the fault of another run's.
func excusedAlike(excuses []model.Excuse, e model.Excuse) bool {
	return slices.ContainsFunc(excuses, func(x model.Excuse) bool {
		return x.Circumstance == e.Circumstance && x.Fault == e.Fault && x.Clocks == e.Clocks
	})
}

// stakes finds the promises of a control that were at stake.
type stakes struct{ *run }

// atStake reports whether all circumstances of a limit of another lock met the run while the promise was at stake.
func (r stakes) atStake(f Finding) bool {
	met := func(excuses []model.Excuse) bool {
		return !slices.ContainsFunc(f.Excuses, func(e model.Excuse) bool { return !excusedAlike(excuses, e) })
	}
	switch f.Judge {
	case model.JudgeMutualExclusion, model.JudgeWorkload:
		return slices.ContainsFunc(r.Locks, func(lock string) bool {
			return (f.Lock == "" || f.Lock == lock) && r.leftInTime(lock, met)
		})
	case model.JudgeWaitBound:
		return slices.ContainsFunc(r.Calls, func(o *trace.Call) bool {
			return o.Action == model.ActTryLockTimed && o.Return != nil && o.Outcome == model.Busy && !waitBoundJudge(r).heldUp(o) &&
				met(r.clockSteps(o.AtNs, min(o.ReturnedNs(), o.WaitsUntilNs())))
		})
	}
	return false
}

// leftInTime reports whether a thread lost its hold of the lock in circumstances that are met, knew of it
// before the hold ended on the server, and was still to release the lock when another thread got it. A
// thread that knew of it later was lucky if nobody came before.
func (r stakes) leftInTime(lock string, met func([]model.Excuse) bool) bool {
	beliefs := r.beliefs(lock)
	for _, a := range beliefs {
		left := min(r.LeaveNs, r.goneAt(a.who))
		for _, o := range r.CallsOn(lock) {
			if o.Caller == a.who && o.AtNs > a.from {
				left = min(left, o.AtNs)
			}
		}
		for _, b := range beliefs {
			if b.who == a.who || b.from <= a.from || b.from >= left {
				continue
			}
			if loss, _, excuses := exclusionJudge(r).howLost(lock, a, b.from); loss != nil && a.to <= loss.AtNs && met(excuses) {
				return true
			}
		}
	}
	return false
}
