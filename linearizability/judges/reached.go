package judges

import (
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// reached returns the words of model.Reachable that are true of the run.
func (r *run) reached() []string {
	got := map[string]bool{}
	for _, lock := range r.Locks {
		for i, c := range r.Changes(lock) {
			if c.Expired && c.Ended() {
				got["lease_expired"] = true
			}
			if c.By != nil && c.By.Script == model.RoleRenew && c.Before.Owner == c.After.Owner && c.After.ExpiresMs > c.Before.ExpiresMs {
				got["renewed"] = true
			}
			if c.MadeFor(c.After.Owner) && c.By.Script == model.RoleAcquire && c.Before.Held() && c.Before.Owner == c.After.Owner {
				got["reentered"] = true
			}
			if c.Started() && handedOver(r.Changes(lock)[:i+1]) {
				got["handed_over"] = true
			}
		}
		for who, departures := range r.Departures(lock) {
			if slices.ContainsFunc(departures, func(c *trace.Change) bool { return c.By != nil && evicts(c, who) }) {
				got["waiter_evicted"] = true
			}
		}
	}
	for i := range r.Record.Events {
		e := &r.Record.Events[i]
		switch {
		case e.Kind == model.KindLost && e.Dir == "push" && e.Why != model.LostUnwanted:
			got["wakeup_lost"] = true
		case e.Kind == model.KindLost && e.Dir == "reply" && e.Script != "":
			if m := r.Command(e.Msg); m != nil && m.Executed != nil && e.Why != model.LostUnwanted {
				got["reply_lost_after_run"] = true
			}
		case e.Kind == model.KindFault && r.Record.Params.Fault(e.Fault).Server == model.ServerFailover:
			got["failed_over"] = true
		}
	}
	for _, o := range r.Calls {
		if o.Action != model.ActUnlock {
			continue
		}
		for _, m := range o.Sent {
			if m.Executed != nil {
				// Only the first command that ran says what the call found.
				if m.Before(o.Lock).Owner != o.Caller {
					got["stale_unlock"] = true
				}
				break
			}
		}
	}
	var out []string
	for _, name := range model.Reachable {
		if got[name] {
			out = append(out, name)
		}
	}
	return out
}

// handedOver reports whether the last of the changes, which began a hold, gave the
// lock to a thread that had asked before the holder before it gave up.
func handedOver(changes []*trace.Change) bool {
	next := changes[len(changes)-1].Call()
	if next == nil {
		return false
	}
	for i, c := range slices.Backward(changes) {
		if i < len(changes)-1 && c.Started() {
			return false
		}
		if c.Ended() && c.By != nil {
			first := next.First(model.RoleAcquire)
			return first != nil && first.Executed.AtNs < c.AtNs
		}
	}
	return false
}
