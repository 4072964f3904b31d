package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep/model"
)

// momentsMost limits the lines of the short story. The last lines are kept.
const momentsMost = 14

// moments tells the run up to the first finding in a few lines: who got the lock, how the
// hold ended, which faults struck, and which messages were lost.
func (b *builder) moments() {
	v := b.v
	var out []moment
	add := func(at int64, mark, format string, args ...any) {
		out = append(out, moment{AtNs: at, Text: Clip(fmt.Sprintf(format, args...), textMost), Mark: mark})
	}
	last, renewed := map[string]hold{}, map[string]int{}
	by := map[[2]any]*message{} // by lock and instant, the message that changed the lock
	for i := range v.Messages {
		m := &v.Messages[i]
		if m.Exec < 0 || !b.changed(m) {
			continue
		}
		for _, l := range m.Locks {
			by[[2]any{l, m.Exec}] = m
		}
	}
	for _, t := range v.Truth {
		was := last[t.Lock]
		last[t.Lock] = t
		m := by[[2]any{t.Lock, t.AtNs}]
		whose := ""
		if m != nil && m.Lane >= 0 {
			whose = fmt.Sprintf(" by %s of %s", m.Name, v.Lanes[m.Lane].Name)
		}
		switch {
		case t.Owner == was.Owner && t.Owner != "" && t.Count != was.Count:
			add(t.AtNs, "", "the server counts %d levels of %s for %s", t.Count, t.Lock, t.Owner)
		case t.Owner == was.Owner && t.Owner != "" && m != nil && t.ExpiresMs > was.ExpiresMs:
			// Only the last of consecutive renewals is shown.
			if n := len(out); renewed[t.Lock] > 0 && renewed[t.Lock] == n {
				out = out[:n-1]
			}
			add(t.AtNs, "", "the lease of %s on %s is renewed, until %s", t.Owner, t.Lock, at(t.ExpiresMs*1e6))
			renewed[t.Lock] = len(out)
		case t.Owner == was.Owner:
		case t.Owner == "" && m == nil && b.ranOut[t.AtNs]:
			add(t.AtNs, "", "%s's lease of %s runs out", was.Owner, t.Lock)
		case t.Owner == "" && m == nil:
			add(t.AtNs, "", "%s's hold of %s is gone from the server", was.Owner, t.Lock)
		case t.Owner == "":
			add(t.AtNs, "", "%s's hold of %s is ended%s", was.Owner, t.Lock, whose)
		default:
			until := "without end"
			if t.ExpiresMs >= 0 {
				until = "until " + at(t.ExpiresMs*1e6)
			}
			after := ""
			if was.Owner != "" {
				after = ", in place of " + was.Owner
			}
			add(t.AtNs, "", "the server gives %s to %s, %s%s", t.Lock, t.Owner, until, after)
		}
	}
	for _, f := range v.Faults {
		text := f.Text
		if f.ToNs > f.FromNs {
			text += ", until " + at(f.ToNs)
		}
		add(f.FromNs, "fault", "%s", text)
	}
	for i := range v.Messages {
		m := &v.Messages[i]
		who := "somebody"
		if m.Lane >= 0 {
			who = v.Lanes[m.Lane].Name
		}
		switch {
		case m.Lost >= 0 && m.Why != model.LostUnwanted && m.Push:
			add(m.Lost, "lost", "a wake-up to %s is lost (%s)", who, m.Why)
		case m.Lost >= 0 && m.Why != model.LostUnwanted && m.Dir == "reply" && m.Exec >= 0:
			add(m.Lost, "lost", "the server has done %s of %s, and its answer is lost (%s)%s", m.Name, who, m.Why, b.untilNextRenewal(m))
		case m.Lost >= 0 && m.Why != model.LostUnwanted:
			add(m.Lost, "lost", "%s of %s is lost before the server sees it (%s)%s", m.Name, who, m.Why, b.untilNextRenewal(m))
		case m.Hit != "":
			add(m.Sent, "fault", "%s of %s meets a fault: %s", m.Name, who, m.Hit)
		}
	}
	for _, o := range v.Ops {
		name := v.Lanes[max(o.Lane, 0)].Name
		switch model.Outcome(o.Outcome) {
		case model.Unknown, model.Failed:
			add(o.ToNs, "", "%s's %s of %s returns: %s", name, o.Action, o.Lock, o.Outcome)
		case model.NotHeld:
			add(o.ToNs, "", "%s is told that it does not hold %s", name, o.Lock)
		case model.Waiting:
			add(o.ToNs, "", "%s still waits for %s", name, o.Lock)
		}
	}
	for _, x := range v.Overlaps {
		add(x.FromNs, "finding", "for %s, until %s, both %s and %s believe to hold %s", length(x.ToNs-x.FromNs), at(x.ToNs), x.Who[0], x.Who[1], x.Lock)
	}
	until := v.EndNs
	if len(v.Findings) > 0 {
		f := v.Findings[0]
		until = f.AtNs
		out = append(out, moment{AtNs: f.AtNs, Text: Clip(f.Judge+": "+f.Why, 3*textMost), Mark: "finding"})
	}
	// At one instant the fault comes first, since it may have caused the rest.
	slices.SortStableFunc(out, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(rank(a), rank(b)))
	})
	end := len(out)
	for i, m := range out {
		if m.AtNs > until {
			end = min(i+2, len(out)) // keep two moments after the finding
			break
		}
	}
	out = out[:end]
	v.Moments = out[max(0, len(out)-momentsMost):]
}

func rank(m moment) int { return slices.Index([]string{"fault", "lost", "", "finding"}, m.Mark) }

// length writes a length of time with three digits.
func length(ns int64) string {
	d := time.Duration(ns)
	for unit := time.Duration(1); unit <= d; unit *= 10 {
		if d/unit < 1000 {
			return d.Round(unit).String()
		}
	}
	return d.String()
}
