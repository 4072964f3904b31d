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
		why := ""
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
			at = r.endNs
			why = fmt.Sprintf("%s ended at %d, not at %d", res.Name, left, *res.End)
		}
		if why == "" {
			continue
		}
		f := Finding{Judge: model.JudgeWorkload, Verdict: Broken, AtNs: at}
		var together string
		together, f.Excuses = r.usedTogether(res.Name, at)
		f.Why = why + together
		out = append(out, f)
	}
	return out
}

// stranded: a process died, so that what it meant to do is undone.
func (r *run) stranded() bool { return len(r.dead) > 0 }

// use is a time in which a thread worked on a resource.
type use struct {
	who      string
	from, to int64
}

// usedTogether names two threads that worked on a resource at one time up to
// the instant at, and what excuses it.
func (r *run) usedTogether(resource string, at int64) (string, []model.Excuse) {
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
			if a.who != b.who && b.from < a.to && b.from <= at {
				how, excuses := r.howOverrun(a, b)
				return fmt.Sprintf("; %s worked from %s to %s, %s from %s%s", a.who, model.At(a.from), model.At(a.to), b.who, model.At(b.from), how), excuses
			}
		}
	}
	return "", nil
}

// howOverrun says how a came to work still when b began.
func (r *run) howOverrun(a, b use) (string, []model.Excuse) {
	for _, lock := range r.locks {
		for _, h := range r.beliefs(lock) {
			if h.who != a.who || h.from > a.from || h.paused == nil && h.to < a.from {
				continue
			}
			if h.lease > 0 && h.to <= b.from {
				return fmt.Sprintf(": the lease that %s asked for had ended", a.who),
					[]model.Excuse{{Circumstance: model.Overstayed, Why: fmt.Sprintf("%s worked past its lease of %v", a.who, time.Duration(h.lease))}}
			}
			if h.to >= b.from {
				return r.howLost(lock, h, b.from)
			}
		}
	}
	return "", nil
}
