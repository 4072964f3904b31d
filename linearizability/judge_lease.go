package linearizability

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

// judgeLease: what must be true of leases and renewals.
func judgeLease(r *run) []Finding {
	var out []Finding
	for _, lock := range r.locks {
		out = append(out, r.leases(lock)...)
		out = append(out, r.lateRenewals(lock)...)
	}
	return out
}

func (r *run) leases(lock string) []Finding {
	var out []Finding
	add := func(form model.Form, who string, at int64, format string, args ...any) {
		out = append(out, Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: at, Why: fmt.Sprintf(format, args...),
			Facts: model.Facts{Form: form, Lock: lock, Thread: who}})
	}
	beliefs := r.beliefs(lock)
	changes := r.states[lock]
	endless := false
	for _, c := range changes {
		who := c.after.Owner
		if c.after.Held() && c.after.ExpiresMs < 0 && !endless {
			endless = true
			add(model.FormEndless, who, c.at, "the hold of %s on %s has no time to live since %s", who, lock, model.At(c.at))
		}
		if c.by != nil && c.after.Held() && c.after.ExpiresMs >= 0 && (c.before.Owner != who || c.after.ExpiresMs != c.before.ExpiresMs) {
			got := time.Duration(c.after.ExpiresMs-c.at/int64(time.Millisecond)) * time.Millisecond
			if most := r.mostLease(lock, who, c, got); most > 0 && got > most {
				add(model.FormLongLease, who, c.at, "at %s the hold of %s on %s got a lease of %v, and asked for %v at most", model.At(c.at), who, lock, got, most)
			}
		}
		if c.expired && c.ended() {
			if b := believer(beliefs, c.before.Owner, c.at); b != nil && b.lease == 0 && r.heard(lock, b.who, c.at) && !r.replaced(lock, *b, c.at) {
				if f, late := r.unrenewed(lock, *b, c); late {
					out = append(out, f)
				}
			}
		}
	}
	// An orphan outlives its lease.
	for _, process := range slices.Sorted(maps.Keys(r.dead)) {
		died := r.dead[process]
		held := r.stateAt(lock, died)
		if !strings.HasPrefix(held.Owner, process+"/") || held.ExpiresMs < 0 {
			held = model.LockState{}
		}
		for _, c := range changes {
			if c.at > died && c.started() && strings.HasPrefix(c.after.Owner, process+"/") {
				held = c.after // what it had sent before it died
				continue
			}
			if c.at > died && held.Held() && c.after.Owner == held.Owner && c.after.ExpiresMs > held.ExpiresMs {
				if c.by != nil && c.by.AtNs <= died {
					held = c.after // sent while it lived
					continue
				}
				add(model.FormOutlivesOwner, held.Owner, c.at, "the hold of %s on %s was prolonged at %s, although it had died at %s", held.Owner, lock, model.At(c.at), model.At(died))
				break
			}
		}
	}
	return out
}

// mostLease is the longest lease that an owner may have after a change: what
// its calls asked for, or the watchdog timeout where it asked for none. Where it
// is no less than enough, any length that is no less either will do.
func (r *run) mostLease(lock, who string, c change, enough time.Duration) time.Duration {
	if c.by == nil || !slices.Contains(c.by.owners, who) {
		return 0
	}
	began := r.start(lock, who, c.at).at
	var most time.Duration
	calls := r.opsOf(lock)
	calls = calls[:called(calls, c.at+1)]
	for i := len(calls) - 1; i >= 0 && most < enough; i-- { // the present hold's are the last
		o := calls[i]
		if o.who != who || !o.Action.Acquires() {
			continue
		}
		// Calls of before this hold began count only when they are open: their
		// command may arrive late.
		if o.returned() < c.at {
			g := r.grants(o)
			if len(g) > 0 && g[len(g)-1].at < began || len(g) == 0 && o.outcome != model.Unknown {
				continue
			}
		}
		if o.LeaseNs == 0 {
			most = max(most, r.rec.Params.Watchdog)
		}
		most = max(most, time.Duration(o.LeaseNs))
	}
	return most
}

// start is how the hold that an owner has at an instant began; just then, where nothing
// says it.
func (r *run) start(lock, who string, at int64) change {
	starts := r.starts[lock]
	for _, c := range slices.Backward(starts[:upTo(starts, at)]) {
		if c.after.Owner == who {
			return c
		}
	}
	return change{at: at}
}

// heard says whether a call of its owner came back with the hold that there is at an
// instant, or with another level of it; or a failover brought it back.
func (r *run) heard(lock, who string, at int64) bool {
	start := r.start(lock, who, at)
	return start.fault > 0 || slices.ContainsFunc(r.opsOf(lock), func(o *operation) bool {
		return o.who == who && o.outcome == model.Granted && o.returned() <= at &&
			slices.ContainsFunc(r.grants(o), func(c change) bool { return start.at <= c.at && c.at <= at })
	})
}

// replaced says whether a failover had put an earlier hold of the believer in the
// place of the one it believes in, which nobody renews: their tokens differ.
func (r *run) replaced(lock string, b belief, at int64) bool {
	return slices.ContainsFunc(r.states[lock], func(c change) bool {
		return c.fault > 0 && b.from <= c.at && c.at <= at && c.before.Owner == b.who && c.after.Owner == b.who && c.before.Token != c.after.Token
	})
}

func believer(beliefs []belief, who string, at int64) *belief {
	for i := range beliefs {
		if b := &beliefs[i]; b.who == who && b.from <= at && at < b.to {
			return b
		}
	}
	return nil
}

// unrenewed: a hold with a watchdog ended by expiry although nothing had met
// its messages for a watchdog period.
func (r *run) unrenewed(lock string, b belief, c change) (Finding, bool) {
	last := b.from
	why := "no fault met its messages"
	for _, t := range r.metRenewals(lock, b.who, b.from-int64(r.rec.Params.Watchdog), c.at) {
		if t.to >= last {
			last = t.to
			why = fmt.Sprintf("the last fault that met its messages was %s at %s", r.fault(t.number).text, model.At(t.to))
		}
	}
	if c.at-last < int64(r.rec.Params.Watchdog/3) {
		return Finding{}, false
	}
	return Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: c.at, Ops: []OpRef{b.grant.ref()}, Facts: model.Facts{Form: model.FormUnrenewed, Lock: lock, Thread: b.who},
		Why: fmt.Sprintf("the hold of %s on %s ended with its lease at %s while %s believed to hold it and its watchdog should have renewed it; %s",
			b.who, lock, model.At(c.at), b.who, why)}, true
}

// lateRenewals: renewals sent after the release of the last level returned, or
// for an acquire that returned without a grant.
func (r *run) lateRenewals(lock string) []Finding {
	type known struct {
		at     int64
		levels int
		own    int        // levels by its own calls, whatever became of the hold
		open   *operation // a call that may change the levels
		lost   bool       // the hold is gone, and no call has returned since
		why    string
		last   *operation
	}
	owners := map[string]*known{}
	of := func(who string) *known {
		if owners[who] == nil {
			owners[who] = &known{why: "it never held it"}
		}
		return owners[who]
	}
	var out []Finding
	told := map[string]bool{}
	changes := r.states[lock]
	for i := range r.rec.Events {
		e := &r.rec.Events[i]
		switch {
		case e.Kind == model.KindState && e.Lock == lock:
			c := changes[0]
			changes = changes[1:]
			if c.ended() && (c.by == nil || !slices.Contains(c.by.owners, c.before.Owner)) {
				k := of(c.before.Owner)
				k.levels, k.lost = 0, true
			}
		case e.Kind == model.KindInvoke && e.Lock == lock:
			of(e.ThreadName()).open = r.ops[e.Op-1]
		case e.Kind == model.KindReturn && e.Lock == lock:
			o := r.ops[e.Op-1]
			k := of(o.who)
			k.open, k.last = nil, o
			switch {
			case o.outcome == model.Granted:
				k.own++
			case o.outcome == model.NotHeld:
				k.own = 0
			case o.Action == model.ActUnlock:
				k.own = max(0, k.own-1)
			}
			// Of an attempt that came to nothing the thread learns nothing of its
			// hold, and of an unlock that ran before it was lost that it goes on; nor
			// anything of one without answer, when that gave up a level of several.
			k.lost = k.lost && (o.Action.Acquires() && o.outcome != model.Granted || o.outcome == model.StillHeld ||
				o.outcome == model.Unknown && k.own > 0)
			switch {
			case o.outcome == model.Granted:
				k.levels++
			case o.Action == model.ActUnlock && (o.outcome == model.Released || o.outcome == model.StillHeld):
				k.levels = max(0, k.levels-1)
			case o.Action == model.ActUnlock && (o.outcome == model.NotHeld || o.outcome == model.Unknown || o.outcome == model.Failed):
				k.levels = max(0, k.levels-1)
				if o.outcome == model.NotHeld {
					k.levels = 0
				}
			}
			if k.levels == 0 {
				k.at = e.AtNs
				k.why = fmt.Sprintf("its %s had returned %s at %s", o.Action, o.outcome, model.At(e.AtNs))
			}
		case e.Kind == model.KindSend && e.Script == "renew" && e.AtNs < r.endNs:
			for j, l := range e.Locks {
				if l != lock || j >= len(e.Owners) {
					continue
				}
				who := e.Owners[j]
				k := of(who)
				if k.levels > 0 || k.lost || k.open != nil || told[who] {
					continue
				}
				told[who] = true
				f := Finding{Judge: model.JudgeLease, Verdict: Broken, AtNs: e.AtNs, Facts: model.Facts{Form: model.FormLateRenewal, Lock: lock, Thread: who},
					Why: fmt.Sprintf("a renewal of %s for %s was sent at %s, although %s", lock, who, model.At(e.AtNs), k.why)}
				if k.last != nil {
					f.Ops = []OpRef{k.last.ref()}
				}
				out = append(out, f)
			}
		}
	}
	return out
}
