package judges

import (
	"fmt"
	"slices"

	"lockstep/internal/counted"
	"lockstep/model"
	"lockstep/model/trace"
)

// judgeMisdelete finds commands of one owner that ended, shortened or prolonged another
// owner's hold on the server.
func judgeMisdelete(r *run) []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		for _, c := range r.Changes(lock) {
			if c.By == nil || !c.Before.Held() || c.By.Script == model.RoleForceUnlock || len(c.By.Threads) == 0 {
				continue
			}
			if forced(c) || c.MadeFor(c.Before.Owner) {
				continue
			}
			what := ""
			switch {
			case c.After.Owner != c.Before.Owner:
				what = "ended"
			case c.After.Count != c.Before.Count:
				what = "changed to " + counted.Of(c.After.Count, "level")
			case c.After.ExpiresMs < c.Before.ExpiresMs && c.After.ExpiresMs >= 0:
				what = "shortened"
			case c.After.ExpiresMs != c.Before.ExpiresMs:
				what = "prolonged"
			default:
				continue // only the queue moved
			}
			f := Finding{Judge: model.JudgeMisdelete, Verdict: Broken, AtNs: c.AtNs, Facts: model.Facts{Lock: lock, Thread: c.By.Threads[0]}}
			verb := string(c.By.Script)
			if verb == "" {
				verb = c.By.Command
			}
			f.Why = fmt.Sprintf("%s of %s (%s, sent at %s) %s the hold of %s on %s at %s",
				verb, name(c.By.Threads), c.By.Command, model.At(c.By.AtNs), what, c.Before.Owner, lock, model.At(c.AtNs))
			if by := c.Call(); by != nil {
				f.Thread = by.Caller
				f.Ops = append(f.Ops, refOf(by))
			}
			if g := r.holderOp(lock, c.Before.Owner, c.AtNs); g != nil {
				f.Ops = append(f.Ops, refOf(g))
			}
			out = append(out, f)
		}
	}
	return out
}

// holderOp returns the latest call up to an instant that began a hold of the thread;
// nil if there is none.
func (r *run) holderOp(lock, who string, at int64) *trace.Call {
	for _, c := range slices.Backward(r.StartsUpTo(lock, at)) {
		if c.After.Owner == who && c.Call() != nil {
			return c.Call()
		}
	}
	return nil
}
