package redisson

import (
	"slices"
	"time"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// The causes in this file are renewals that failed, were late, or were for another hold.

// resending is how long a client may go on sending a renewal.
const resending = int64(25 * time.Second)

// paused returns how long a process was paused between two instants, in nanoseconds.
func paused(c *defect.Case, process string, from, to int64) (sum int64) {
	for _, f := range c.FaultsOn(process, model.FaultPause) {
		sum += max(0, min(to, f.ToNs)-max(from, f.FromNs))
	}
	return sum
}

// sameLock reports whether a command is about the lock of the case.
func sameLock(c *defect.Case, m *trace.Command) bool { return slices.Contains(m.Locks, c.Lock) }

// renewals returns the renewals of the thread's hold that were sent by an instant.
func renewals(c *defect.Case, by int64) (out []*trace.Command) {
	for _, m := range c.Commands {
		if m.Script == model.RoleRenew && m.AtNs <= by && c.For(m, c.Who) {
			out = append(out, m)
		}
	}
	return out
}

// renewal finds a renewal by the thread's client that passes the test.
func renewal(c *defect.Case, kind defect.Kind, test func(*trace.Command) bool) *defect.Cause {
	process := c.Process()
	m := c.CommandThat(model.RoleRenew, func(m *trace.Command) bool { return m.Process == process && test(m) })
	if m == nil {
		return nil
	}
	return defect.ByCommands(kind, m)
}

// unlockedLast returns the instant at which the thread's last unlock returned; -1: none.
// A force_unlock of its client counts too, since it ends the renewal.
func unlockedLast(c *defect.Case) int64 {
	var at int64 = -1
	for _, o := range c.Calls {
		ends := o.Caller == c.Who && o.Action == model.ActUnlock || o.Process == c.Process() && o.Action == model.ActForceUnlock
		if ends && o.Lock == c.Lock && o.Return != nil && o.Return.AtNs <= c.AtNs {
			at = o.Return.AtNs
		}
	}
	return at
}

// renewedAcrossUnlock finds a renewal that found the hold. It was sent before an unlock of the
// thread returned. Its answer came after that; for the last unlock, it came after the unlock had
// run.
func renewedAcrossUnlock(c *defect.Case) *defect.Cause {
	last := unlockedLast(c)
	return renewal(c, defect.RenewalAcross, func(m *trace.Command) bool {
		if m.Reply() != "1" || m.AtNs > c.AtNs || !c.For(m, c.Who) {
			return false
		}
		return m.AtNs < last && last-int64(100*time.Millisecond) < m.DeliveredNs || c.CallThat(func(o *trace.Call) bool {
			return o.Caller == c.Who && o.Action == model.ActUnlock && o.Return != nil && m.AtNs < o.Return.AtNs && o.Return.AtNs < m.DeliveredNs
		}) != nil
	})
}

// renewalUnderWay finds what kept a renewal from its answer at the last unlock: the renewal itself
// was under way, or had failed and was sent again; the client waited for the number of replicas, or
// for its script to be loaded; or a fault kept its messages from leaving.
func renewalUnderWay(c *defect.Case) *defect.Cause {
	c = c.AboutHolder()
	at, process := unlockedLast(c), c.Process()
	for _, m := range c.Commands {
		if m.AtNs > at || at-m.AtNs-paused(c, process, m.AtNs, at) > resending {
			continue
		}
		renews := m.Script == model.RoleRenew && m.AtNs <= c.AtNs && c.For(m, c.Who) && (m.Failed() || at < m.DeliveredNs)
		asks := m.Process == process && (m.Command == "INFO" || m.Command == "SCRIPT") && m.Op == 0 && (m.DeliveredNs < 0 || at <= m.DeliveredNs)
		if renews || asks {
			return defect.ByCommands(defect.RenewalUnderWay, m)
		}
	}
	for _, f := range c.Faults {
		if f.FromNs <= at && at-resending <= f.ToNs && (f.Spec.Kind == model.FaultPartition && f.Spec.Names(process) || f.Spec.EndsConnections()) {
			return defect.ByFault(defect.RenewalUnderWay, f)
		}
	}
	return nil
}

// renewalFailed finds the last renewal of the hold if it had no answer or an error. Or it finds the
// partition that kept the renewal from leaving.
func renewalFailed(c *defect.Case) *defect.Cause {
	all := renewals(c, c.HoldEnded())
	if n := len(all); n > 0 && all[n-1].Failed() {
		return defect.ByCommands(defect.RenewalFailed, all[n-1])
	}
	for _, f := range c.Partitions(c.Process()) {
		if f.FromNs <= c.AtNs && c.HoldBegan() <= f.ToNs {
			return defect.ByFault(defect.RenewalFailed, f)
		}
	}
	return nil
}

// renewalPending finds the last renewal that was sent before the hold ended, when it had no answer
// by then. Since 3.44.0 one task renews all locks of a client, so that the renewal of another lock
// holds up this one's. It does so even after its answer, if the answer came only after a resend,
// and less than a period before the hold ended. The task waits for a period after such an answer.
func renewalPending(c *defect.Case) *defect.Cause {
	batches := since("3.44.0")(c.Verdict.Lock)
	ended := c.HoldEnded()
	var before, last *trace.Command
	for _, m := range c.Commands {
		if m.Script == model.RoleRenew && m.Process == c.Process() && m.AtNs <= ended && (batches || c.For(m, c.Who)) {
			before, last = last, m
		}
	}
	switch {
	case last == nil:
		return nil
	case last.DeliveredNs < 0 || last.DeliveredNs > ended:
		return defect.ByCommands(defect.RenewalPending, last)
	case batches && before != nil && before.DeliveredNs < 0 && !slices.Contains(last.Locks, c.Lock) && ended-last.DeliveredNs < int64(c.Watchdog()/3):
		return defect.ByCommands(defect.RenewalFailed, before)
	}
	return nil
}

// neverRenewed finds an earlier renewal of the lock by the client that failed or found
// nothing, when this hold had none.
func neverRenewed(c *defect.Case) *defect.Cause {
	began := c.HoldBegan()
	if renewal(c, "", func(m *trace.Command) bool { return began <= m.AtNs && m.AtNs <= c.AtNs }) != nil {
		return nil
	}
	return renewal(c, defect.RenewalFailed, func(m *trace.Command) bool {
		return m.AtNs < began && (m.Reply() == "0" || m.Failed())
	})
}

// renewedForAnother finds a renewal that the client sent for another thread while this
// one held the lock, and that found no hold of that thread or had no answer.
func renewedForAnother(c *defect.Case) *defect.Cause {
	began := c.HoldBegan()
	return renewal(c, defect.RenewalOfOther, func(m *trace.Command) bool {
		return m.Owners[slices.Index(m.Locks, c.Lock)] != c.Who && m.Reply() != "1" && m.AtNs <= c.AtNs && (m.DeliveredNs < 0 || began <= m.DeliveredNs)
	})
}

// toldOfLastHold finds a renewal of the thread that ran before its hold began and found
// nothing, and was answered later.
func toldOfLastHold(c *defect.Case) *defect.Cause {
	began := c.HoldBegan()
	return renewal(c, defect.RenewalOfLast, func(m *trace.Command) bool {
		return c.For(m, c.Who) && m.Executed != nil && m.Executed.AtNs < began && began <= m.DeliveredNs && m.DeliveredNs <= c.AtNs && m.Before(c.Lock).Owner != c.Who
	})
}

// forgotTimer finds a renewal by the client, of an earlier hold or of another thread,
// that failed, or found nothing and was answered between the beginning of a hold of the
// thread and the beginning of the next one.
func forgotTimer(c *defect.Case) *defect.Cause {
	began := c.HoldsBegan()
	return renewal(c, defect.RenewalOfLast, func(m *trace.Command) bool {
		next := c.AtNs
		for _, at := range slices.Backward(began) {
			if m.Failed() && m.AtNs < at && at < m.AtNs+resending ||
				m.Reply() == "0" && at <= m.DeliveredNs && m.DeliveredNs <= next && (m.Executed.AtNs < at || !slices.Contains(m.Owners, c.Who)) {
				return true
			}
			next = at
		}
		return false
	})
}

// renewedRest finds a renewal of the holder after an unlock of it had left levels.
func renewedRest(c *defect.Case) *defect.Cause {
	who := c.Holder()
	var left *trace.Call
	m := c.CommandThat(model.RoleRenew, func(m *trace.Command) bool {
		if !slices.Contains(m.Owners, who) || m.Reply() != "1" || m.Executed.AtNs > c.Until() {
			return false
		}
		left = c.CallThat(func(o *trace.Call) bool {
			return o.Caller == who && o.Return != nil && o.Return.Outcome == model.StillHeld && o.Return.AtNs < m.AtNs
		})
		return left != nil
	})
	if m == nil {
		return nil
	}
	return defect.ByCommands(defect.RenewalOfRest, m)
}

// stoppedByAnother finds an unlock of another thread of the client that ran before the
// hold began and was answered after that.
func stoppedByAnother(c *defect.Case) *defect.Cause {
	began := c.HoldBegan()
	m := c.SentThat(model.RoleUnlock, func(o *trace.Call, m *trace.Command) bool {
		return o.Process == c.Process() && o.Caller != c.Who && o.Action == model.ActUnlock &&
			m.Reply() == "1" && m.Executed.AtNs < began && began <= m.DeliveredNs && m.DeliveredNs <= c.AtNs
	})
	if m == nil {
		return nil
	}
	return defect.ByCommands(defect.StoppedByOther, m)
}

// level counts the levels without a lease that a thread believes to hold, by the returns
// of its calls.
type level struct {
	now, most int
	again     *trace.Call // the first call that entered above another level
}

func levels(c *defect.Case) level {
	var l level
	for i := range c.Record.Events {
		e := &c.Record.Events[i]
		if e.Kind != model.KindReturn || e.Lock != c.Lock || e.ThreadName() != c.Who || e.AtNs > c.AtNs {
			continue
		}
		switch o := c.Calls[e.Op-1]; {
		case e.Action == model.ActUnlock:
			l.now = max(0, l.now-1)
		case e.Outcome == model.Granted && o.LeaseNs == 0:
			l.now++
			l.most = max(l.most, l.now)
			if l.now > 1 && l.again == nil {
				l.again = o
			}
		}
	}
	return l
}

// reentered finds a call with which the thread, holding the lock without a lease,
// entered again without one.
func reentered(c *defect.Case) *defect.Cause {
	if o := levels(c).again; o != nil {
		return defect.ByCall(defect.EnteredAgain, o)
	}
	return nil
}

// reenteredLeft finds the call with which the thread entered again, if the watchdog renewed
// the hold after the thread's last unlock. For a waiter, it looks at the holder, and the
// hold must last by such a renewal.
func reenteredLeft(c *defect.Case) *defect.Cause {
	if !c.Judged(model.JudgeLiveness) {
		return only(renewedTooLong, reentered)(c)
	}
	holder, ends := c.AboutHolder(), c.Now().ExpiresMs
	if holder.Who == "" || unlockedLast(holder) < 0 || renewal(holder, "", func(m *trace.Command) bool {
		return c.For(m, holder.Who) && m.Executed != nil && unlockedLast(holder) < m.AtNs && m.After(c.Lock).ExpiresMs == ends
	}) == nil {
		return nil
	}
	return reentered(holder)
}

// lostLevels finds the end of a hold that the thread did not cause, if the thread has since given
// up fewer levels than it was granted without a lease.
func lostLevels(c *defect.Case) *defect.Cause {
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs > c.AtNs || s.Before.Owner != c.Who || s.After.Owner == c.Who {
			continue
		}
		if (s.By == nil || !slices.Contains(s.By.Owners, c.Who)) && levels(c).now > 0 {
			return defect.ByChange(defect.LevelsLost, s)
		}
	}
	return nil
}

// countedOut finds an unlock in the lost hold. With it the thread had given up as many levels as it
// had entered without a lease, although it had also entered a level with a lease.
func countedOut(c *defect.Case) *defect.Cause {
	began := c.HoldBegan()
	leased, without, given := 0, 0, 0
	var last *trace.Call
	for _, o := range c.Calls {
		if o.Caller != c.Who || o.Lock != c.Lock || o.Return == nil || o.Return.AtNs < began || o.Return.AtNs > c.AtNs {
			continue
		}
		switch {
		case o.Return.Outcome == model.Granted && o.LeaseNs > 0:
			leased++
		case o.Return.Outcome == model.Granted:
			without++
		case o.Return.Outcome == model.StillHeld:
			given++
			last = o
		}
	}
	if leased == 0 || without == 0 || given < without {
		return nil
	}
	return defect.ByCall(defect.LevelsMiscount, last)
}
