package linearizability

import (
	"fmt"
	"slices"

	"lockstep/model"
)

// judgeMisdelete: a release, renewal or script of one owner ended, shortened
// or prolonged another owner's hold on the server.
func judgeMisdelete(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		for _, c := range r.states[lock] {
			if c.by == nil || !c.before.Held() || c.by.Script == "force_unlock" || len(c.by.owners) == 0 {
				continue
			}
			if c.by.Op > 0 && r.ops[c.by.Op-1].Action == model.ActForceUnlock {
				continue
			}
			if slices.Contains(c.by.owners, c.before.Owner) {
				continue
			}
			what := ""
			switch {
			case c.after.Owner != c.before.Owner:
				what = "ended"
			case c.after.Count != c.before.Count:
				what = fmt.Sprintf("changed to %d levels", c.after.Count)
			case c.after.ExpiresMs < c.before.ExpiresMs && c.after.ExpiresMs >= 0:
				what = "shortened"
			case c.after.ExpiresMs != c.before.ExpiresMs:
				what = "prolonged"
			default:
				continue // only the queue moved
			}
			f := Finding{Judge: model.JudgeMisdelete, Verdict: Broken, AtNs: c.at, Facts: model.Facts{Lock: lock, Thread: c.by.owners[0]}}
			verb := c.by.Script
			if verb == "" {
				verb = c.by.Command
			}
			f.Why = fmt.Sprintf("%s of %s (%s, sent at %s) %s the hold of %s on %s at %s",
				verb, name(c.by.owners), c.by.Command, model.At(c.by.AtNs), what, c.before.Owner, lock, model.At(c.at))
			if c.by.Op > 0 {
				by := r.ops[c.by.Op-1]
				f.Thread = by.who
				f.Ops = append(f.Ops, by.ref())
			}
			if g := r.holderOp(lock, c.before.Owner, c.at); g != nil {
				f.Ops = append(f.Ops, g.ref())
			}
			out = append(out, f)
		}
	}
	return out
}

// holderOp is the call by which a thread holds the lock at an instant.
func (r *run) holderOp(lock, who string, at int64) *operation {
	var found *operation
	for _, c := range r.states[lock] {
		if c.at <= at && c.started() && c.after.Owner == who && c.by != nil && c.by.Op > 0 {
			found = r.ops[c.by.Op-1]
		}
	}
	return found
}
