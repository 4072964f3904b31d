package linearizability

import (
	"fmt"

	"lockstep/model"
)

// judgeFencing finds new holds whose token is not greater than every one before. Locks
// without tokens have none to compare.
func judgeFencing(r *run) []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		var greatest, since int64
		for _, c := range r.Changes(lock) {
			if c.By == nil {
				continue // what a failover brings back is no new hold
			}
			if c.Started() && c.After.Token > 0 && c.After.Token <= greatest {
				f := Finding{Judge: model.JudgeFencing, Verdict: Broken, AtNs: c.AtNs, Excuses: r.countLost(since, c.AtNs), Facts: model.Facts{Lock: lock, Thread: c.After.Owner},
					Why: fmt.Sprintf("the hold of %s on %s since %s has the token %d, and there was a token %d before",
						c.After.Owner, lock, model.At(c.AtNs), c.After.Token, greatest)}
				if g := r.holderOp(lock, c.After.Owner, c.AtNs); g != nil {
					f.Ops = []OpRef{refOf(g)}
				}
				out = append(out, f)
			}
			if c.After.Token > greatest {
				greatest, since = c.After.Token, c.AtNs
			}
		}
	}
	return out
}

// countLost returns the excuses for a token that is not greater than an earlier one: a
// fault between the two may have removed the counter of tokens, whoever held the lock.
func (r *run) countLost(since, at int64) []model.Excuse {
	var out []model.Excuse
	for _, t := range r.Faults {
		// A token may also be the time of the server.
		if (t.Spec.MayRemoveKeys() || t.Spec.StepsServerClock()) && since <= t.FromNs && t.FromNs <= at {
			out = append(out, takenBy(t, model.HoldRemoved, t.Text+" at "+model.At(t.FromNs)))
		}
	}
	return out
}
