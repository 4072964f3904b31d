package judges

import (
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// misdeleteJudge finds commands of one owner that ended, shortened or prolonged another
// owner's hold on the server. If the thread of a command is unknown, it is judged by its process. Anybody may
// end a hold whose end has come, or of which a fault has removed a part.
type misdeleteJudge struct{ *run }

func (r misdeleteJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		for _, c := range r.Changes(lock) {
			if c.By == nil || !c.Before.Held() || c.By.Script == model.RoleForceUnlock || forced(c) || c.MadeFor(c.Before.Owner) || r.nobodys(c) || c.Overdue() {
				continue
			}
			by := senderOf(c.By)
			switch owner := model.ProcessOf(c.Before.Owner); {
			case owner == "" && (len(by.Threads) == 0 || r.begunBy(c) == c.By.Process || c.By.Command == model.SegmentCommand):
				continue // a value of an unknown thread, perhaps of the one that sent the request; on a stream, nobody can read whose it is
			case len(by.Threads) == 0 && (owner == c.By.Process || c.By.Command == model.SegmentCommand):
				continue // perhaps the owner itself, or a server that does other work
			}
			d := Misdelete{By: by, SentNs: c.By.AtNs, Levels: c.After.Count, Owner: c.Before.Owner}
			switch {
			case c.After.Owner != c.Before.Owner:
				d.Change = HoldEnded
			case c.After.Count != c.Before.Count:
				d.Change = HoldCounted
			case c.After.ExpiresMs < c.Before.ExpiresMs && c.After.ExpiresMs >= 0 && (c.By.Command != model.SegmentCommand || !r.renewsSession(c) || r.movesEnd(c)):
				d.Change = HoldShortened
			case c.After.ExpiresMs != c.Before.ExpiresMs && r.movesEnd(c) && !r.renewsValue(c):
				d.Change = HoldProlonged
			default:
				continue // only the queue moved, or nobody knows by whom the hold was prolonged
			}
			g := r.holderOp(lock, c.Before.Owner, c.AtNs)
			if g != nil && len(r.removedUntil(g, c.AtNs)) > 0 {
				continue
			}
			f := Finding{Judge: model.JudgeMisdelete, Verdict: Broken, AtNs: c.AtNs, Facts: model.Facts{Lock: lock}, Detail: d}
			if len(by.Threads) > 0 {
				f.Thread = by.Threads[0]
			}
			if call := c.Call(); call != nil {
				f.Thread = call.Caller
				f.Ops = append(f.Ops, refOf(call))
			}
			if g != nil {
				f.Ops = append(f.Ops, refOf(g))
			}
			out = append(out, f)
		}
	}
	return out
}

// movesEnd reports whether the command of a change is known to have moved the end of that hold, and not the end of a session
// that its process has. A part of a stream is known to if it renews for a thread of another process, none of the owner's
// commands ran at the same time, and the servers do not recover, after which they may prolong holds by themselves.
func (r misdeleteJudge) movesEnd(c *trace.Change) bool {
	owner := model.ProcessOf(c.Before.Owner)
	if c.By.Command != model.SegmentCommand {
		return c.By.Process != owner || c.By.Names(c.Lock)
	}
	return c.By.Script == model.RoleRenew && len(c.By.Threads) > 0 && c.By.Process != owner && !r.recovering(c.AtNs) &&
		!slices.ContainsFunc(r.CommandsFrom(owner), func(m *trace.Command) bool {
			return m.Executed != nil && c.AtNs-millisecond <= m.Executed.AtNs && m.Executed.AtNs <= c.AtNs
		})
}

// renewsValue reports whether the threads of a process share the value of its holds, and a command of one of them prolonged
// the hold of another. It was sent when the value was that of the sender's own hold.
func (r misdeleteJudge) renewsValue(c *trace.Change) bool {
	if c.Before.Value == "" || c.By.Process != model.ProcessOf(c.Before.Owner) {
		return false
	}
	return slices.ContainsFunc(c.By.Threads, func(who string) bool {
		return slices.ContainsFunc(r.HoldsOf(c.Lock, who, c.By.AtNs, c.By.AtNs), func(h *trace.Hold) bool { return h.Began.After.Value == c.Before.Value })
	})
}

// renewsSession reports whether a part of a stream moved the end of a hold as the renewal of a session does. It has that role,
// or the owner's process sent it, for whatever call, and a whole lease is left.
func (r misdeleteJudge) renewsSession(c *trace.Change) bool {
	p := r.Record.Params
	return c.By.Script == model.RoleRenew ||
		c.By.Process == model.ProcessOf(c.Before.Owner) && (c.After.ExpiresMs+1)*millisecond >= c.AtNs+int64(p.Watchdog-p.Tick)
}

// begunBy returns the process whose request began the hold that a change met; "": none did.
func (r misdeleteJudge) begunBy(c *trace.Change) string {
	if holds := r.HoldsOf(c.Lock, c.Before.Owner, c.AtNs, c.AtNs); len(holds) > 0 && holds[0].Began.By != nil {
		return holds[0].Began.By.Process
	}
	return ""
}

// nobodys reports whether a change met a hold in which its owner did not believe, and which a fault had brought back, or
// which ended with the session of its process and was granted to no call. Threads must know holds by their grants.
func (r misdeleteJudge) nobodys(c *trace.Change) bool {
	holds := r.HoldsOf(c.Lock, c.Before.Owner, c.AtNs, c.AtNs)
	session := model.ProcessOf(c.Before.Owner) == c.By.Process && (c.By.Command == model.SegmentCommand || !c.By.Names(c.Lock)) &&
		!slices.ContainsFunc(r.CallsOn(c.Lock), func(o *trace.Call) bool {
			return o.Caller == c.Before.Owner && o.AtNs <= c.AtNs && c.AtNs <= o.ReturnedNs() && o.Outcome != model.Unknown
		})
	return r.Record.Params.PerGrant && len(holds) > 0 && (holds[0].Began.Fault > 0 || session && c.Ended()) &&
		!slices.ContainsFunc(r.beliefs(c.Lock), func(b belief) bool { return b.who == c.Before.Owner && b.from <= c.AtNs && c.AtNs <= b.to })
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
