package judges

import (
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// fencingJudge finds new holds whose token is not greater than all before. It compares the tokens
// on the server, and the tokens that the callers got. Locks without tokens have none to compare.
type fencingJudge struct{ *run }

func (r fencingJudge) judge() []Finding {
	var out []Finding
	for _, lock := range r.Locks {
		var greatest, since int64
		for _, c := range r.Changes(lock) {
			if c.By == nil {
				continue // a hold that a failover brings back is not new
			}
			if token := r.tokenOf(c); c.Started() && token > 0 && token <= greatest {
				f := Finding{Judge: model.JudgeFencing, Verdict: Broken, AtNs: c.AtNs, Excuses: r.countLost(since, c.AtNs), Facts: model.Facts{Lock: lock, Thread: c.After.Owner},
					Detail: RepeatedToken{Token: token, Greatest: greatest}}
				if g := r.holderOp(lock, c.After.Owner, c.AtNs); g != nil {
					f.Ops = []OpRef{refOf(g)}
				}
				out = append(out, f)
			}
			if c.After.Token > greatest {
				greatest, since = c.After.Token, c.AtNs
			}
		}
		out = append(out, r.staleTokens(lock)...)
	}
	return out
}

// tokenOf returns the token of the hold that a change began; 0: none that its caller knows. The call may draw the token after
// that, before it is granted. It may also begin a later hold, if its first request had no answer.
func (r fencingJudge) tokenOf(c *trace.Change) int64 {
	o := c.Call()
	if o == nil || !o.Action.Acquires() || c.AtNs > o.ReturnedNs() {
		return c.After.Token
	}
	holds := r.HoldsOf(c.Lock, c.After.Owner, o.ReturnedNs(), o.ReturnedNs())
	if o.Outcome != model.Granted || len(holds) == 0 || holds[0].Began != c {
		return 0
	}
	return r.StateAt(c.Lock, o.ReturnedNs()).Token
}

// token returns the token that is not greater than an earlier one, of a finding of the judge of
// fencing.
func (f Finding) token() int64 {
	switch d := f.Detail.(type) {
	case RepeatedToken:
		return d.Token
	case StaleToken:
		return int64(d.Token)
	}
	return 0
}

// told is a grant with the token that its caller got.
type told struct {
	o     *trace.Call
	grant *trace.Change // nil: the record does not show it
}

// before reports whether a grant certainly came before another one.
func (a told) before(b told) bool {
	if a.grant != nil && b.grant != nil {
		return a.grant.Precedes(b.grant)
	}
	return a.o.ReturnedNs() <= b.o.AtNs
}

// staleTokens finds calls that were granted a new hold, with a token that is not greater than that
// of an earlier hold.
func (r fencingJudge) staleTokens(lock string) []Finding {
	beliefs := r.beliefs(lock)
	var all []told
	for _, o := range r.CallsOn(lock) {
		if o.Return == nil || o.Outcome != model.Granted || o.Return.Token == 0 {
			continue
		}
		x := told{o: o}
		if kept := r.grantsKept(o); len(kept) > 0 && kept[0].AtNs <= o.ReturnedNs() {
			x.grant = kept[0]
		}
		again := !r.Record.Params.Uncounted && believer(beliefs, o.Caller, o.AtNs) != nil || r.Record.Params.Idempotent && r.heldThroughout(o)
		if x.grant != nil {
			again = !x.grant.Started()
		}
		if !again { // a re-entry needs no token of its own
			all = append(all, x)
		}
	}
	var out []Finding
	for _, b := range all {
		var last *told // the earlier grant with the greatest token
		for i := range all {
			if a := &all[i]; a.before(b) && (last == nil || a.o.Return.Token > last.o.Return.Token) {
				last = a
			}
		}
		if last == nil || b.o.Return.Token > last.o.Return.Token {
			continue
		}
		out = append(out, Finding{Judge: model.JudgeFencing, Verdict: Broken, AtNs: b.o.ReturnedNs(), Ops: []OpRef{refOf(last.o), refOf(b.o)},
			Excuses: r.countLost(last.o.AtNs, b.o.ReturnedNs()), Facts: model.Facts{Lock: lock, Thread: b.o.Caller},
			Detail: StaleToken{Token: b.o.Return.Token, Before: last.o.Caller, BeforeToken: last.o.Return.Token}})
	}
	return out
}

// heldThroughout reports whether the servers held the lock of a call for its caller from the call to the return.
func (r fencingJudge) heldThroughout(o *trace.Call) bool {
	return r.StateAt(o.Lock, o.AtNs).Owner == o.Caller &&
		!slices.ContainsFunc(r.ChangesWithin(o.Lock, o.AtNs, o.ReturnedNs()), func(c *trace.Change) bool { return c.Started() || c.Ended() })
}

// countLost returns the excuses for a token that is not greater than an earlier one: a
// fault between the two may have removed the counter of tokens, whoever held the lock.
func (r fencingJudge) countLost(since, at int64) []model.Excuse {
	var out []model.Excuse
	for _, t := range r.Faults {
		// A token may also be the time of the server.
		if (t.Spec.MayRemoveKeys() || t.Spec.StepsServerClock()) && since <= t.FromNs && t.FromNs <= at {
			out = append(out, takenBy(t, model.HoldRemoved, faultAt(t.Text, t.FromNs)))
		}
	}
	return out
}
