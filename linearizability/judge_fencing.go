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
		var greatest int64
		var excuses []model.Excuse
		for _, c := range r.states[lock] {
			if c.fault > 0 && c.after.Token < c.before.Token {
				t := r.fault(c.fault)
				excuses = append(excuses, model.Excuse{Circumstance: model.HoldRemoved, Fault: c.fault, Why: t.text + " at " + model.At(t.from)})
			}
			if c.by == nil {
				continue // what a failover brings back is no new hold
			}
			if c.started() && c.after.Token > 0 && c.after.Token <= greatest {
				f := Finding{Judge: model.JudgeFencing, Verdict: Broken, AtNs: c.at, Excuses: excuses,
					Why: fmt.Sprintf("the hold of %s on %s since %s has the token %d, and there was a token %d before",
						c.after.Owner, lock, model.At(c.at), c.after.Token, greatest)}
				if g := r.holderOp(lock, c.after.Owner, c.at); g != nil {
					f.Ops = []OpRef{g.ref()}
				}
				out = append(out, f)
			}
			greatest = max(greatest, c.after.Token)
		}
	}
	return out
}
