package locktest

import (
	"fmt"

	"lockstep/explore"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// why says what an undecided or nondeterministic run lacks.
func (r *runner) why(v play.Verdict) string {
	if f, ok := v.Doubtful(); ok && f.Judge == judges.JudgeHarness && len(v.Played.Panics) > 0 {
		return r.panicText(v.Played.Panics[0])
	}
	return sentence.Verdict(v)
}

// firstPanic returns the first panic of a run that was explored, if a panic leaves it undecided.
func firstPanic(r explore.Run) (p sim.Panic, ok bool) {
	if r.Doubtful == nil || r.Doubtful.Judge != judges.JudgeHarness || len(r.Panics) == 0 {
		return sim.Panic{}, false
	}
	return r.Panics[0], true
}

// placeOf returns what panics with the same cause have in common.
func placeOf(p sim.Panic) string { return fmt.Sprintf("%s\n%s", p.Action, p.Frames) }

// panicText says in which call the lock panicked. The lines after the first say where, and what may help, unless
// they were shown before.
func (r *runner) panicText(p sim.Panic) string {
	who, when := model.ThreadName(p.Process, p.Thread), model.At(p.AtNs)
	text := ""
	switch {
	case p.Thread == 0:
		text = fmt.Sprintf("the client of process %s panicked at %s, when it was closed: %s", p.Process, when, p.Value)
	case p.Action == "":
		text = fmt.Sprintf("the lock panicked at %s for thread %s, which was in no call: %s", when, who, p.Value)
	default:
		text = fmt.Sprintf("the lock panicked at %s in %s(%q) of thread %s: %s", when, methods[p.Action], p.Lock, who, p.Value)
	}
	if place := placeOf(p); r.panicked[place] {
		return text + "; the place is shown above"
	} else if p.Frames != "" {
		r.panicked[place] = true
		text += "\n" + p.Frames
	}
	if p.Action == model.ActUnlock {
		text += "\nhint: Unlock is also called by a thread that holds nothing, and after a Lock that failed; it must then return locktest.ErrNotHeld"
	}
	return text
}

// methods are the methods of a handle that the calls of a thread use.
var methods = map[model.Action]string{
	model.ActLock: "Lock", model.ActTryLockTimed: "Lock", model.ActTryLock: "TryLock", model.ActUnlock: "Unlock", model.ActExtend: "Extend",
}
