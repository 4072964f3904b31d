package linearizability

import (
	"fmt"

	"lockstep/model"
)

// judgeFencing: a new hold's token is not greater than every one before. Locks
// without tokens have none to compare.
func judgeFencing(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		var greatest, since int64
		for _, c := range r.states[lock] {
			if c.by == nil {
				continue // what a failover brings back is no new hold
			}
			if c.started() && c.after.Token > 0 && c.after.Token <= greatest {
				f := Finding{Judge: model.JudgeFencing, Verdict: Broken, AtNs: c.at, Excuses: r.countLost(since, c.at), Facts: model.Facts{Lock: lock, Thread: c.after.Owner},
					Why: fmt.Sprintf("the hold of %s on %s since %s has the token %d, and there was a token %d before",
						c.after.Owner, lock, model.At(c.at), c.after.Token, greatest)}
				if g := r.holderOp(lock, c.after.Owner, c.at); g != nil {
					f.Ops = []OpRef{g.ref()}
				}
				out = append(out, f)
			}
			if c.after.Token > greatest {
				greatest, since = c.after.Token, c.at
			}
		}
	}
	return out
}

// countLost excuses a token that is not greater than one since before: another hand,
// or the server's own loss, may have removed what tokens are counted from, whoever
// held the lock and whatever could be seen of it.
func (r *run) countLost(since, at int64) []model.Excuse {
	var out []model.Excuse
	for _, t := range r.faults {
		if ((t.spec.Kind == model.FaultKey) || t.spec.LosesData()) && since <= t.from && t.from <= at {
			out = append(out, model.Excuse{Circumstance: model.HoldRemoved, Fault: t.number, Why: t.text + " at " + model.At(t.from)})
		}
	}
	return out
}
