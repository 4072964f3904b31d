package judges

import (
	"fmt"
	"time"

	"lockstep/model"
)

// judgeWorkload finds resources whose own rule is broken, because two owners lost an
// update.
func judgeWorkload(r *run, resources []Resource) []Finding {
	var out []Finding
	for _, res := range resources {
		left, taken := res.Start, int64(0)
		var at int64
		var facts model.Facts
		why, how := "", ""
		for _, e := range r.Resources {
			if e.Key != res.Name || e.Phase != "write" {
				continue
			}
			taken += e.Count
			left = e.Value
			if why == "" && (left != res.Start-taken || res.NeverBelow != nil && left < *res.NeverBelow) {
				at = e.AtNs
				facts = model.Facts{Form: model.FormLostUpdate, Thread: e.ThreadName(), Threads: []string{e.ThreadName()}}
				why = fmt.Sprintf("%s wrote %d to %s at %s, although %d of %d were taken", e.ThreadName(), left, res.Name, model.At(at), taken, res.Start)
			}
		}
		if why == "" && res.End != nil && left != *res.End && !r.stranded() {
			at = r.LeaveNs
			facts, how = r.undone()
			why = fmt.Sprintf("%s ended at %d, not at %d", res.Name, left, *res.End)
		}
		if why == "" {
			continue
		}
		f := Finding{Judge: model.JudgeWorkload, Verdict: Broken, AtNs: at, Facts: facts}
		if how == "" {
			how, f.Excuses = r.usedTogether(res.Name, at, &f.Facts)
		}
		f.Why = why + how
		out = append(out, f)
	}
	return out
}

// stranded reports whether a process died, so that its work may be undone.
func (r *run) stranded() bool { return len(r.Dead()) > 0 }

// undone names the first thread that waited for a lock when the run ended: its work
// under the lock is not done.
func (r *run) undone() (facts model.Facts, how string) {
	for _, o := range r.Calls {
		if o.Action.Acquires() && o.Outcome == model.Waiting {
			return model.Facts{Form: model.FormWaitedToTheEnd, Lock: o.Lock, Thread: o.Caller},
				fmt.Sprintf("; %s waited for %s from %s to the end", o.Caller, o.Lock, model.At(o.AtNs))
		}
	}
	return model.Facts{Form: model.FormLostUpdate}, ""
}

// use is a time in which a thread worked on a resource.
type use struct {
	who      string
	from, to int64
}

// usedTogether names two threads that worked on a resource at one time up to
// the instant at, and what excuses it. Two threads that both believed to hold a lock
// come before a pair of which one knew better. It adds both, and how the hold of one
// had ended, to the facts.
func (r *run) usedTogether(resource string, at int64, facts *model.Facts) (why string, excuses []model.Excuse) {
	var uses []use
	open := map[string]int{}
	for _, e := range r.Resources {
		if e.Key != resource {
			continue
		}
		who := e.ThreadName()
		if e.Phase == "read" {
			open[who] = len(uses)
			uses = append(uses, use{who, e.AtNs, r.LeaveNs})
		} else if i, ok := open[who]; ok {
			uses[i].to = e.AtNs
		}
	}
	for i, b := range uses {
		for _, a := range uses[:i] {
			if a.who == b.who || b.from >= a.to || b.from > at {
				continue
			}
			loss, how, excused, believed := r.howTogether(a, b)
			if believed || why == "" {
				facts.Threads, facts.Loss = append(facts.Threads[:min(len(facts.Threads), 1)], a.who, b.who), loss
				why = fmt.Sprintf("; %s worked from %s to %s, %s from %s%s", a.who, model.At(a.from), model.At(a.to), b.who, model.At(b.from), how)
				excuses = excused
			}
			if believed {
				return why, excuses
			}
		}
	}
	return why, excuses
}

// howTogether says how a came to work still when b began: both believed to hold
// the same lock then, or one of them worked on without it, which is its own doing.
func (r *run) howTogether(a, b use) (loss *model.Loss, how string, excuses []model.Excuse, believed bool) {
	for _, lock := range r.Locks {
		beliefs := r.beliefs(lock)
		x, y := believer(beliefs, a.who, b.from), believer(beliefs, b.who, b.from)
		if x != nil && y != nil {
			loss, how, excuses = r.howLost(lock, r.withoutHold(lock, *x, *y, b.from), b.from)
			return loss, how, excuses, true
		}
	}
	for _, u := range []use{a, b} {
		for _, lock := range r.Locks {
			var last *belief
			for _, h := range r.beliefs(lock) {
				if h.who == u.who && h.from <= u.from {
					last = &h
				}
			}
			if last != nil && last.lease > 0 && last.end == nil && !last.doubted && last.to <= b.from {
				return nil, fmt.Sprintf(": the lease that %s asked for had ended", u.who), []model.Excuse{{Circumstance: model.Overstayed,
					Why: fmt.Sprintf("%s worked past its lease of %v", u.who, time.Duration(last.lease))}}, false
			}
		}
	}
	return nil, ": they held no lock in common", []model.Excuse{{Circumstance: model.Unguarded,
		Why: fmt.Sprintf("%s and %s held no lock in common", a.who, b.who)}}, false
}
