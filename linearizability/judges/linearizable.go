package judges

import (
	"slices"

	"lockstep/model"
)

// outOfOrder returns the excuses for an order of grants that no queue explains. They are
// circumstances that may have changed the queue up to the end of the call that has no place in the
// order: clocks apart, faults that removed a hold or a place, and the excuses for threads that were
// overtaken or stood in the queue without waiting.
func (r answerJudge) outOfOrder(lock string, until int64) []model.Excuse {
	out := append(r.clocksApart(), r.clockSteps(0, until)...)
	for _, c := range r.Changes(lock) {
		if c.AtNs <= until {
			out = append(out, r.byHand(c)...)
		}
	}
	for _, g := range slices.Concat(fifoJudge(r).outrun(lock), tidyJudge(r).lingering(lock)) {
		if g.AtNs <= until {
			out = append(out, g.Excuses...)
		}
	}
	return out
}
