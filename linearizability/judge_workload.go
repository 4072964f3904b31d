package linearizability

import (
	"fmt"
	"time"

	"lockstep/model"
)

// judgeWorkload: a resource's own rule is broken, because two owners lost an
// update.
func judgeWorkload(r *run, resources []Resource) []Finding {
	var out []Finding
	for _, res := range resources {
		left, taken := res.Start, int64(0)
		var at int64
		why, how := "", ""
		for _, e := range r.rec.Events {
			if e.Kind != model.KindResource || e.Key != res.Name || e.Phase != "write" {
				continue
			}
			taken += e.Count
			left = e.Value
			if why == "" && (left != res.Start-taken || res.NeverBelow != nil && left < *res.NeverBelow) {
				at = e.AtNs
				why = fmt.Sprintf("%s wrote %d to %s at %s, although %d of %d were taken", e.ThreadName(), left, res.Name, model.At(at), taken, res.Start)
			}
		}
		if why == "" && res.End != nil && left != *res.End && !r.stranded() {
			at, how = r.endNs, r.undone()
			why = fmt.Sprintf("%s ended at %d, not at %d", res.Name, left, *res.End)
		}
		if why == "" {
			continue
		}
		f := Finding{Judge: model.JudgeWorkload, Verdict: Broken, AtNs: at}
		if how == "" {
			how, f.Excuses = r.usedTogether(res.Name, at)
		}
		f.Why = why + how
		out = append(out, f)
	}
	return out
}

// stranded: a process died, so that what it meant to do is undone.
func (r *run) stranded() bool { return len(r.dead) > 0 }

// WaitedToTheEnd, after the names of a thread and a lock and when it asked, is in the
// text of a finding about what it did not come to do.
const WaitedToTheEnd = " to the end"

// undone names the first of those who waited for a lock when the run ended: what
// they meant to do under it is not done.
func (r *run) undone() string {
	for _, o := range r.ops {
		if o.Action.Acquires() && o.outcome == model.Waiting {
			return fmt.Sprintf("; %s waited for %s from %s%s", o.who, o.Lock, model.At(o.AtNs), WaitedToTheEnd)
		}
	}
	return ""
}

// use is a time in which a thread worked on a resource.
type use struct {
	who      string
	from, to int64
}

// usedTogether names two threads that worked on a resource at one time up to
// the instant at, and what excuses it: two that both believed to hold a lock
// before those of whom one knew better.
func (r *run) usedTogether(resource string, at int64) (why string, excuses []model.Excuse) {
	var uses []use
	open := map[string]int{}
	for _, e := range r.rec.Events {
		if e.Key != resource || e.Kind != model.KindResource {
			continue
		}
		who := e.ThreadName()
		if e.Phase == "read" {
			open[who] = len(uses)
			uses = append(uses, use{who, e.AtNs, r.endNs})
		} else if i, ok := open[who]; ok {
			uses[i].to = e.AtNs
		}
	}
	for i, b := range uses {
		for _, a := range uses[:i] {
			if a.who == b.who || b.from >= a.to || b.from > at {
				continue
			}
			how, excused, believed := r.howTogether(a, b)
			if believed || why == "" {
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
func (r *run) howTogether(a, b use) (how string, excuses []model.Excuse, believed bool) {
	for _, lock := range r.locks {
		beliefs := r.beliefs(lock)
		x, y := believer(beliefs, a.who, b.from), believer(beliefs, b.who, b.from)
		if x != nil && y != nil {
			how, excuses = r.howLost(lock, r.without(lock, *x, *y, b.from), b.from)
			return how, excuses, true
		}
	}
	for _, u := range []use{a, b} {
		for _, lock := range r.locks {
			var last *belief
			for _, h := range r.beliefs(lock) {
				if h.who == u.who && h.from <= u.from {
					last = &h
				}
			}
			if last != nil && last.lease > 0 && last.end == nil && last.to <= b.from {
				return fmt.Sprintf(": the lease that %s asked for had ended", u.who), []model.Excuse{{Circumstance: model.Overstayed,
					Why: fmt.Sprintf("%s worked past its lease of %v", u.who, time.Duration(last.lease))}}, false
			}
		}
	}
	return ": they held no lock in common", []model.Excuse{{Circumstance: model.Unguarded,
		Why: fmt.Sprintf("%s and %s held no lock in common", a.who, b.who)}}, false
}
