package judges

import (
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// changes returns the changes of its lock that a call caused, in order: the changes that its own
// commands made, and those that handed the lock to it.
func (r *run) changes(o *trace.Call) []*trace.Change {
	if !r.Record.Params.PerGrant || !o.Action.Acquires() {
		return o.Changes
	}
	all := r.caused[o.Lock]
	if all == nil {
		all = map[*trace.Call][]*trace.Change{}
		for _, c := range r.Changes(o.Lock) {
			by, to := c.Call(), r.handedTo(c)
			all[by] = append(all[by], c)
			if to != by {
				all[to] = append(all[to], c)
			}
		}
		r.caused[o.Lock] = all
	}
	return all[o]
}

// handedTo returns the acquire to which a change gave the lock although no command of its thread
// made the change. It returns nil for all other changes, and for a lock whose threads do not know
// their holds by the grants alone. There are two such changes:
//
// If the queue on the server is the lock, the server gives the lock to the first thread of the
// queue. The acquire is the one that gave the thread this place. An earlier acquire may have left a
// place, too. Then later acquires gave the places that remain in the queue.
//
// After a failover the new master may execute a request that the old master received, but did not
// execute, whether or not the old one answered that it is no master any more. The acquire is the last
// one that its thread had called and that did not answer busy.
func (r *run) handedTo(c *trace.Change) *trace.Call {
	who := c.After.Owner
	if !r.Record.Params.PerGrant || !c.Started() || c.MadeFor(who) {
		return nil
	}
	if r.Record.Params.Recovery > 0 && c.By == nil && c.Fault == 0 {
		calls := r.CallsOn(c.Lock)
		for _, o := range slices.Backward(calls[:called(calls, c.AtNs)]) {
			if o.Caller == who && o.Action.Acquires() && o.Outcome != model.Busy {
				return o
			}
		}
	}
	if !slices.Contains(c.Before.Queue, who) {
		return nil
	}
	changes, later := r.Changes(c.Lock), places(c.After, who)
	for _, q := range slices.Backward(changes[:slices.Index(changes, c)]) {
		if by := q.Call(); by != nil && by.Action.Acquires() && by.Caller == who && places(q.After, who) > places(q.Before, who) {
			if later == 0 {
				return by
			}
			later--
		}
	}
	return nil
}

// places counts the places of a thread in a queue.
func places(s *model.LockState, who string) (n int) {
	for _, waiter := range s.Queue {
		if waiter == who {
			n++
		}
	}
	return n
}

// grantedBy returns the call to which a change granted the lock, or whose command made the change;
// nil if there is none.
func (r *run) grantedBy(c *trace.Change) *trace.Call {
	if o := r.handedTo(c); o != nil {
		return o
	}
	return c.Call()
}

// grants returns the changes in which the call took or entered the lock, without the grants that it
// gave back. There should be one at most.
func (r *run) grants(o *trace.Call) []*trace.Change {
	kept, _ := r.keptAndGivenBack(o)
	return kept
}

// givenBack is a grant that the call gave up itself, because it reached no replica in time, or
// because the call did not learn of it.
type givenBack struct{ grant, undo *trace.Change }

// grantsGivenBack returns the grants that the call gave back, in order.
func (r *run) grantsGivenBack(o *trace.Call) []givenBack {
	_, back := r.keptAndGivenBack(o)
	return back
}

// keptAndGivenBack divides the grants of a call. An unlock by the call gives back the latest grant.
// For a lock whose commands have the role of their call, any command gives the grant back, unless
// the call returns with that grant.
func (r *run) keptAndGivenBack(o *trace.Call) (kept []*trace.Change, back []givenBack) {
	known := r.returnedWith(o)
	for _, c := range r.changes(o) {
		switch levels := c.Gain(o.Caller); {
		case levels > 0, c.Ended() && r.handedTo(c) == o:
			kept = append(kept, c)
		case levels < 0 && len(kept) > 0 && (c.By.Script == model.RoleUnlock || r.Record.Params.PerGrant && kept[len(kept)-1] != known):
			last := len(kept) - 1
			back = append(back, givenBack{kept[last], c})
			kept = kept[:last]
		}
	}
	return kept, back
}

// returnedWith returns the grant that a granted call reported to its thread, for a lock whose
// threads know holds only by their grants. It is the latest grant before the return, even if it has
// ended by then, but not one that the call took back before it asked again. If there is none, because
// the server lost a part of the hold meanwhile, it is the first grant after the return. It returns nil
// for other calls.
func (r *run) returnedWith(o *trace.Call) *trace.Change {
	if !r.Record.Params.PerGrant || o.Outcome != model.Granted {
		return nil
	}
	var known *trace.Change
	for _, c := range r.changes(o) {
		if c.Started() && c.After.Owner == o.Caller && (known == nil || c.AtNs <= o.ReturnedNs()) && !r.takenBack(o, c) {
			known = c
		}
	}
	if known == nil || known.AtNs > o.ReturnedNs() {
		return known
	}
	for _, h := range r.HoldsOf(o.Lock, o.Caller, known.AtNs, o.ReturnedNs()) {
		if known.Precedes(h.Began) && h.Began.By != nil && h.Began.Call() == nil {
			known = h.Began // by a request that nobody knows to be of the call
		}
	}
	return known
}

// takenBack reports whether an acquire ended a hold that it had got, and asked again before it returned.
func (r *run) takenBack(o *trace.Call, grant *trace.Change) bool {
	end := r.EndOf(grant)
	return end != nil && end.Call() == o && slices.ContainsFunc(o.Sent, func(m *trace.Command) bool {
		return m.Script == model.RoleAcquire && m.AtNs > end.AtNs && m.Executed != nil && m.Executed.AtNs <= o.ReturnedNs()
	})
}

// undone returns the commands with which an acquire gave back grants that reached no replica.
func undone(o *trace.Call) []*trace.Command {
	var out []*trace.Command
	for _, m := range o.Sent {
		if o.Action.Acquires() && m.Script == model.RoleUnlock {
			out = append(out, m)
		}
	}
	return out
}

// grantsKept returns the grants of the hold with which the call returned. A call that was sent
// again may have had a hold before, which ended without its caller's knowledge, and may get another
// one after its return.
func (r *run) grantsKept(o *trace.Call) []*trace.Change {
	if known := r.returnedWith(o); known != nil {
		return []*trace.Change{known}
	}
	all := r.grants(o)
	if o.Outcome != model.Granted {
		return all
	}
	var kept []*trace.Change
	for _, g := range all {
		if g.AtNs > o.ReturnedNs() {
			break
		}
		if g.Started() {
			kept = nil
		}
		kept = append(kept, g)
	}
	return kept
}

// entered returns the command that granted the lock to the call. It also works for a lock whose
// state does not change when its owner enters again.
func (r *run) entered(o *trace.Call) *trace.Command {
	if g := r.grantsKept(o); len(g) > 0 {
		return g[0].By
	}
	if o.Outcome != model.Granted {
		return nil
	}
	var last *trace.Command
	for _, m := range o.Sent {
		if m.Executed != nil && m.Script == model.RoleAcquire {
			last = m
		}
	}
	return last
}

// refused returns when the server gave the answer with which the call ended without a grant. It
// reports false if the call ended otherwise. The record of a stream does not say what an answer means.
func refused(o *trace.Call) (at int64, ok bool) {
	for _, m := range slices.Backward(o.Sent) {
		if m.Executed != nil && m.Script == model.RoleAcquire {
			return m.Executed.AtNs, o.Outcome == model.Failed && m.Refused() || o.Return != nil && o.Outcome != model.Granted && m.RepliedNs == o.ReturnedNs()
		}
	}
	return 0, false
}
