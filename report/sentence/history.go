package sentence

import (
	"fmt"

	"lockstep/internal/foreign"
	"lockstep/linearizability"
	"lockstep/model"
)

// History says what is wrong with the history of a lock, as one sentence without a full
// stop. The function at writes an instant. It returns "" if nothing is wrong.
func History(r linearizability.Reason, at func(ns int64) string) string {
	return foreign.Line(history(r, at))
}

func history(r linearizability.Reason, at func(ns int64) string) string {
	switch {
	case r.Limit != nil:
		limit := "the step limit"
		if r.Limit.Memory {
			limit = "the memory limit"
		}
		return fmt.Sprintf("the search met %s after %d steps, neither with an order of all operations nor out of orders", limit, r.Limit.Steps)
	case r.Overlap != nil:
		until := "on"
		if r.Overlap.UntilNs != linearizability.NoEnd {
			until = "to " + at(r.Overlap.UntilNs)
		}
		return fmt.Sprintf("%s, but %s held the lock at least from %s %s",
			r.Overlap.Later.Text(at), r.Overlap.Holder, at(r.Overlap.FromNs), until)
	case r.Refused != nil:
		x := r.Refused
		but := Refusal(x.By, x.State, x.In)
		if x.In.Do == model.DoExpire {
			return fmt.Sprintf("the lease of %s had to end by %s, but %s", x.Op.Text(at), at(x.EndNs), but)
		}
		return fmt.Sprintf("%s, but %s", x.Op.Text(at), but)
	}
	return ""
}

// LockThen says who held the lock when the operation came that no order can place.
func LockThen(r linearizability.Reason) string {
	switch {
	case r.Overlap != nil:
		return foreign.Line("held by " + r.Overlap.Holder)
	case r.Refused != nil:
		return foreign.Line(r.Refused.State.String())
	}
	return ""
}

// Refusal says why a state does not allow a step: the clause of a sentence that follows
// "but".
func Refusal(by model.Refusal, st model.State, in model.Input) string {
	switch by {
	case model.Over:
		return "the history was over"
	case model.Held:
		if st.Count == 1 && st.Owner == in.Owner && (in.Do == model.DoHoldCount || in.Answer == model.AnswerStillHeld) {
			return "the lock was " + st.Holder() + " with 1 level" // the answer was about the levels
		}
		return "the lock was " + st.Holder()
	case model.NobodyWaits:
		return "the lock was " + st.Holder() + " and no other acquire waited"
	case model.NotArrived:
		return "its first try had not reached the lock"
	case model.OutOfTurn:
		w := st.Ahead(in)
		return fmt.Sprintf("%s arrived before it (%s, itself %s) and still waited", w.Owner, model.Seconds(w.ArrivedNs), model.Seconds(in.ArrivedNs))
	case model.TokenTooSmall:
		return fmt.Sprintf("its token %d is not greater than %d, which was given out before", in.Token, st.Token)
	case model.LeaseOverFirst:
		return "its lease was over before it could take effect: the lock was " + st.Holder()
	case model.Allowed:
		return "no order of the operations before it allows that; in the one that came farthest the lock was " + st.String()
	}
	panic(fmt.Sprintf("sentence: there is no refusal %d", by))
}
