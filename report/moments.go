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
	out := slices.Concat(b.holdMoments(), v.faultMoments(), b.messageMoments(), v.callMoments())
	for _, x := range v.Overlaps {
		out = append(out, momentOf(x.FromNs, "finding", "for %s, until %s, both %s and %s believe to hold %s", length(x.ToNs-x.FromNs), at(x.ToNs), x.Who[0], x.Who[1], x.Lock))
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
	if end := slices.IndexFunc(out, func(m moment) bool { return m.AtNs > until }); end >= 0 {
		out = out[:min(end+2, len(out))] // keep two moments after the finding
	}
	v.Moments = out[max(0, len(out)-momentsMost):]
}

func momentOf(at int64, mark, format string, args ...any) moment {
	return moment{AtNs: at, Text: Clip(fmt.Sprintf(format, args...), textMost), Mark: mark}
}

// holdMoments tells what happened to the holds on the server.
func (b *builder) holdMoments() (out []moment) {
	v := b.v
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
	last, renewed := map[string]hold{}, map[string]int{}
	for _, t := range v.Truth {
		was, m := last[t.Lock], by[[2]any{t.Lock, t.AtNs}]
		last[t.Lock] = t
		add := func(format string, args ...any) { out = append(out, momentOf(t.AtNs, "", format, args...)) }
		switch {
		case t.Owner == was.Owner && t.Owner != "" && t.Count != was.Count:
			add("the server counts %d levels of %s for %s", t.Count, t.Lock, t.Owner)
		case t.Owner == was.Owner && t.Owner != "" && m != nil && t.ExpiresMs > was.ExpiresMs:
			// Only the last of consecutive renewals is shown.
			if n := len(out); renewed[t.Lock] > 0 && renewed[t.Lock] == n {
				out = out[:n-1]
			}
			add("the lease of %s on %s is renewed, until %s", t.Owner, t.Lock, at(t.ExpiresMs*1e6))
			renewed[t.Lock] = len(out)
		case t.Owner == was.Owner:
		case t.Owner == "" && m == nil && b.ranOut[t.AtNs]:
			add("%s's lease of %s runs out", was.Owner, t.Lock)
		case t.Owner == "" && m == nil:
			add("%s's hold of %s is gone from the server", was.Owner, t.Lock)
		case t.Owner == "" && m.Lane < 0:
			add("%s's hold of %s is ended", was.Owner, t.Lock)
		case t.Owner == "":
			add("%s's hold of %s is ended by %s of %s", was.Owner, t.Lock, m.Name, v.Lanes[m.Lane].Name)
		default:
			until, after := "without end", ""
			if t.ExpiresMs >= 0 {
				until = "until " + at(t.ExpiresMs*1e6)
			}
			if was.Owner != "" {
				after = ", in place of " + was.Owner
			}
			add("the server gives %s to %s, %s%s", t.Lock, t.Owner, until, after)
		}
	}
	return out
}

func (v *view) faultMoments() (out []moment) {
	for _, f := range v.Faults {
		text := f.Text
		if f.ToNs > f.FromNs {
			text += ", until " + at(f.ToNs)
		}
		out = append(out, momentOf(f.FromNs, "fault", "%s", text))
	}
	return out
}

// messageMoments tells which messages were lost or met a fault.
func (b *builder) messageMoments() (out []moment) {
	for i := range b.v.Messages {
		m, who := &b.v.Messages[i], "somebody"
		if m.Lane >= 0 {
			who = b.v.Lanes[m.Lane].Name
		}
		lost := m.Lost >= 0 && m.Why != model.LostUnwanted
		switch {
		case lost && m.Push:
			out = append(out, momentOf(m.Lost, "lost", "a wake-up to %s is lost (%s)", who, m.Why))
		case lost && m.Dir == "reply" && m.Exec >= 0:
			out = append(out, momentOf(m.Lost, "lost", "the server has done %s of %s, and its answer is lost (%s)%s", m.Name, who, m.Why, b.untilNextRenewal(m)))
		case lost:
			out = append(out, momentOf(m.Lost, "lost", "%s of %s is lost before the server sees it (%s)%s", m.Name, who, m.Why, b.untilNextRenewal(m)))
		case m.Hit != "":
			out = append(out, momentOf(m.Sent, "fault", "%s of %s meets a fault: %s", m.Name, who, m.Hit))
		}
	}
	return out
}

// callMoments tells which calls neither were granted the lock nor gave it up.
func (v *view) callMoments() (out []moment) {
	for _, o := range v.Ops {
		name := v.Lanes[max(o.Lane, 0)].Name
		switch model.Outcome(o.Outcome) {
		case model.Unknown, model.Failed:
			out = append(out, momentOf(o.ToNs, "", "%s's %s of %s returns: %s", name, o.Action, o.Lock, o.Outcome))
		case model.NotHeld:
			out = append(out, momentOf(o.ToNs, "", "%s is told that it does not hold %s", name, o.Lock))
		case model.Waiting:
			out = append(out, momentOf(o.ToNs, "", "%s still waits for %s", name, o.Lock))
		}
	}
	return out
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
