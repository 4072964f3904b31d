package judges

import (
	"time"

	"lockstep/model"
)

// workloadJudge finds resources whose own rule is broken, because two owners lost an
// update.
type workloadJudge struct {
	*run
	resources []Resource
}

func (r workloadJudge) judge() []Finding {
	var out []Finding
	for _, res := range r.resources {
		d := WrongResource{Name: res.Name, Left: res.Start, Start: res.Start}
		left, taken := res.Start, int64(0)
		f := Finding{Judge: model.JudgeWorkload, Verdict: Broken}
		found := false
		for _, e := range r.Resources {
			if e.Key != res.Name || e.Phase != "write" {
				continue
			}
			taken += e.Count
			left = e.Value
			if !found && (left != res.Start-taken || res.NeverBelow != nil && left < *res.NeverBelow) {
				found = true
				f.AtNs = e.AtNs
				f.Facts = model.Facts{Form: model.FormLostUpdate, Thread: e.ThreadName(), Threads: []string{e.ThreadName()}}
				d.Writer, d.Left, d.Taken = e.ThreadName(), left, taken
			}
		}
		if !found && res.End != nil && left != *res.End && !r.stranded() {
			found = true
			f.AtNs = r.LeaveNs
			d.Left, d.End = left, *res.End
			f.Facts, d.WaitsNs = r.undone()
			if f.Form != model.FormWaitedToTheEnd {
				f.Excuses = r.refused(res.Name, &f.Facts, &d)
			}
		}
		if !found {
			continue
		}
		if f.Form != model.FormWaitedToTheEnd && d.Refused == "" {
			d.Together, f.Excuses = r.usedTogether(res.Name, f.AtNs, &f.Facts)
		}
		f.Detail = d
		out = append(out, f)
	}
	return out
}

// stranded reports whether a process died, so that its work may be undone.
func (r workloadJudge) stranded() bool { return len(r.Dead()) > 0 }

// undone returns the first thread that still waited for a lock when the run ended, and since when:
// its work under the lock is not done.
func (r workloadJudge) undone() (facts model.Facts, sinceNs int64) {
	for _, o := range r.Calls {
		if o.Action.Acquires() && o.Outcome == model.Waiting {
			return model.Facts{Form: model.FormWaitedToTheEnd, Lock: o.Lock, Thread: o.Caller}, o.AtNs
		}
	}
	return model.Facts{Form: model.FormLostUpdate}, 0
}

// refused looks for a thread that a resource refused because of a token that the judge of fencing finds
// wrong, so that the work of the thread is not done. It returns the excuses of that finding.
func (r workloadJudge) refused(resource string, facts *model.Facts, d *WrongResource) []model.Excuse {
	var wrong []Finding
	for _, e := range r.Resources {
		if e.Key != resource || e.Phase != "refused" {
			continue
		}
		if wrong == nil {
			wrong = fencingJudge{r.run}.judge()
		}
		for _, f := range wrong {
			if f.Thread == e.ThreadName() && f.token() == e.Value {
				facts.Lock, facts.Thread, facts.Threads = f.Lock, f.Thread, []string{f.Thread}
				d.Refused, d.RefusedNs = f.Thread, e.AtNs
				return f.Excuses
			}
		}
	}
	return nil
}

// use is a time in which a thread worked on a resource.
type use struct {
	who      string
	from, to int64
}

// usedTogether returns two threads that worked on a resource at the same time up to the instant at,
// with the excuses for it. It prefers two threads that both believed to hold a lock. It adds both
// threads, and the end of one thread's hold, to the facts. It returns nil if no two threads worked
// at the same time.
func (r workloadJudge) usedTogether(resource string, at int64, facts *model.Facts) (found *Together, excuses []model.Excuse) {
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
			loss, how, excused := r.howTogether(a, b)
			if how.Ending != nil || found == nil {
				facts.Threads, facts.Loss = append(facts.Threads[:min(len(facts.Threads), 1)], a.who, b.who), loss
				found, excuses = &how, excused
			}
			if how.Ending != nil {
				return found, excuses
			}
		}
	}
	return found, excuses
}

// howTogether returns the reason why a still worked when b began: both believed to hold the same
// lock, or one of them continued without the lock, by its own decision.
func (r workloadJudge) howTogether(a, b use) (loss *model.Loss, how Together, excuses []model.Excuse) {
	how = Together{Earlier: a.who, FromNs: a.from, ToNs: a.to, Later: b.who, LaterNs: b.from}
	for _, lock := range r.Locks {
		beliefs := r.beliefs(lock)
		x, y := believer(beliefs, a.who, b.from), believer(beliefs, b.who, b.from)
		if x != nil && y != nil {
			exclusion := exclusionJudge{r.run}
			loss, e, excuses := exclusion.howLost(lock, exclusion.withoutHold(lock, *x, *y, b.from), b.from)
			how.Ending = &e
			return loss, how, excuses
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
				how.Overstayed = u.who
				return nil, how, []model.Excuse{{Circumstance: model.Overstayed,
					Cause: model.Cause{Kind: model.CauseOverstayed, Thread: u.who, Lease: time.Duration(last.lease)}}}
			}
		}
	}
	return nil, how, []model.Excuse{{Circumstance: model.Unguarded, Cause: model.Cause{Kind: model.CauseNoLock, Thread: a.who, Other: b.who}}}
}
