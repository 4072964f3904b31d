package redisson

import (
	"slices"
	"time"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// Commands that give a hold another lease than its caller meant.

// leaseOf returns the lease, in nanoseconds, that the call of a command asked for; 0: none.
func leaseOf(c *defect.Case, m *trace.Command) int64 {
	if m.Op == 0 {
		return 0
	}
	return c.Calls[m.Op-1].LeaseNs
}

// leaseLeft returns the time to live of the hold after a command.
func leaseLeft(c *defect.Case, m *trace.Command) time.Duration {
	return time.Duration(m.After(c.Lock).ExpiresMs-m.Executed.AtNs/int64(time.Millisecond)) * time.Millisecond
}

// entered finds a grant of the thread that passes the test.
func entered(c *defect.Case, kind defect.Kind, test func(*trace.Call, *trace.Command) bool) *defect.Cause {
	m := c.SentThat(model.RoleAcquire, func(o *trace.Call, m *trace.Command) bool {
		return o.Caller == c.Who && m.MovedLevels(c.Lock, o.Caller) && m.Executed.AtNs <= c.AtNs && test(o, m)
	})
	if m == nil {
		return nil
	}
	return defect.ByCommands(kind, m)
}

// startedShort finds a grant of the thread that asked for no lease and got a lease shorter than the
// watchdog's, with which the hold ended. Or it finds a later unlock that left levels and set such a
// lease.
func startedShort(c *defect.Case) *defect.Cause {
	last := c.StateAt(c.Lock, c.HoldEnded()-1)
	return fieldsLease(c, defect.ShortLease, func(m *trace.Command, lease time.Duration) (other, found bool) {
		return lease < c.Watchdog()-time.Millisecond, m.After(c.Lock).ExpiresMs == last.ExpiresMs
	})
}

// startedLong finds a grant of the thread, at the instant of the finding, that asked for no lease
// and got a lease longer than the watchdog's. Or it finds a later unlock that left levels and set
// such a lease.
func startedLong(c *defect.Case) *defect.Cause {
	return fieldsLease(c, defect.LongLease, func(m *trace.Command, lease time.Duration) (other, found bool) {
		return lease > c.Watchdog(), m.Executed.AtNs == c.AtNs
	})
}

// fieldsLease finds a grant of the thread that asked for no lease and got another lease than the
// watchdog's. If the finding is not about that grant, it is about an unlock of the same hold that
// left levels, and got such a lease too. test reports whether the lease that a command gave differs
// from the watchdog's, and whether the finding is about the command.
func fieldsLease(c *defect.Case, kind defect.Kind, test func(*trace.Command, time.Duration) (other, found bool)) *defect.Cause {
	leased := func(m *trace.Command) (other, found bool) {
		return test(m, time.Duration(m.After(c.Lock).ExpiresMs)*time.Millisecond-time.Duration(m.Executed.AtNs))
	}
	granted := entered(c, kind, func(o *trace.Call, m *trace.Command) bool {
		other, found := leased(m)
		return o.LeaseNs == 0 && other && found
	})
	if granted != nil {
		return granted
	}
	unlock := c.SentThat(model.RoleUnlock, func(o *trace.Call, m *trace.Command) bool {
		if o.Caller != c.Who || !m.MovedLevels(c.Lock, c.Who) || m.Executed.AtNs > c.AtNs || m.After(c.Lock).Owner != c.Who {
			return false
		}
		other, found := leased(m)
		return other && found
	})
	if unlock == nil {
		return nil
	}
	return entered(c, kind, func(o *trace.Call, m *trace.Command) bool {
		other, _ := leased(m)
		return o.LeaseNs == 0 && other && c.HoldBegan() <= m.Executed.AtNs && m.Executed.AtNs < unlock.Executed.AtNs
	})
}

// shortenedItself finds a grant with a lease to the thread that held the lock already,
// and had more time before.
func shortenedItself(c *defect.Case) *defect.Cause {
	return entered(c, defect.LeaseCut, func(o *trace.Call, m *trace.Command) bool {
		return o.LeaseNs > 0 && m.Before(c.Lock).Owner == o.Caller && m.After(c.Lock).ExpiresMs < m.Before(c.Lock).ExpiresMs
	})
}

// stretchedByUnlock finds an unlock that left levels and made the lease of the hold
// longer. The hold is that of the finding, or the one that the waiter waits for. For a
// hold that is over, it finds an unlock that made the lease shorter.
func stretchedByUnlock(c *defect.Case) *defect.Cause {
	over, waits := c.Judged(model.JudgeMutualExclusion), c.Judged(model.JudgeLiveness)
	if over && !c.Overlapped() {
		return nil
	}
	began, who := c.HoldBegan(), c.AboutHolder().Who
	m := c.SentThat(model.RoleUnlock, func(o *trace.Call, m *trace.Command) bool {
		switch {
		case o.Caller != who || o.Action != model.ActUnlock || m.Executed == nil || m.Executed.AtNs > c.Until() || !m.MovedLevels(c.Lock, who) || m.After(c.Lock).Owner != who:
			return false
		case !waits && leaseLeft(c, m) != c.Watchdog().Truncate(time.Millisecond):
			return false
		case over:
			return began <= m.Executed.AtNs && m.After(c.Lock).ExpiresMs < m.Before(c.Lock).ExpiresMs
		case waits && m.After(c.Lock).ExpiresMs != c.Now().ExpiresMs:
			return false
		}
		return (waits || m.Executed.AtNs == c.AtNs) && m.After(c.Lock).ExpiresMs > m.Before(c.Lock).ExpiresMs
	})
	if m == nil {
		return nil
	}
	return defect.ByCommands(defect.LeaseStretched, m)
}

// renewedOtherwise finds the command that gave the hold another lease than the watchdog's, if it
// was the last renewal or unlock of the hold that ran. Else it finds an attempt of another thread
// of the client for a longer lease, after which no renewal came. For the judge of traffic it finds
// a renewal in the second that begins at the finding.
func renewedOtherwise(c *defect.Case) *defect.Cause {
	otherwise := func(m *trace.Command) bool { return leaseLeft(c, m) != c.Watchdog().Truncate(time.Millisecond) }
	if c.Judged(model.JudgeTraffic) {
		m := c.CommandThat(model.RoleRenew, func(m *trace.Command) bool {
			return m.Executed != nil && c.For(m, m.After(c.Lock).Owner) && c.AtNs <= m.Executed.AtNs && m.Executed.AtNs < c.AtNs+int64(time.Second) && otherwise(m)
		})
		if m == nil {
			return nil
		}
		return defect.ByCommands(defect.OtherLease, m)
	}
	if !c.AboutLease() {
		return nil
	}
	began := c.HoldBegan()
	var last *trace.Command
	for _, m := range c.Commands {
		if (m.Script == model.RoleRenew || m.Script == model.RoleUnlock) && c.For(m, c.Who) &&
			m.Executed != nil && began <= m.Executed.AtNs && m.Executed.AtNs <= c.AtNs && m.After(c.Lock).Owner == c.Who {
			last = m
		}
	}
	if last != nil && otherwise(last) {
		return defect.ByCommands(defect.OtherLease, last)
	}
	if !c.LeaseEnded() {
		return nil
	}
	if asked, set := longTimer(c); set != nil && ofAnother(c, asked) {
		return defect.ByCommands(defect.OtherLease, asked, set)
	}
	return nil
}

// timerTooLong finds the answer on which the thread's client set too long a timer, since an
// attempt of the thread itself, or of another thread before this hold, had asked for a longer
// lease.
func timerTooLong(c *defect.Case) *defect.Cause {
	if asked, set := longTimer(c); set != nil && !ofAnother(c, asked) {
		return defect.ByCommands(defect.LongTimer, asked, set)
	}
	return nil
}

// ofAnother reports whether another thread of the client sent an attempt that was under way
// during the hold.
func ofAnother(c *defect.Case, asked *trace.Command) bool {
	began := c.HoldBegan()
	return !slices.Contains(asked.Owners, c.Who) && (asked.AtNs >= began || asked.DeliveredNs >= began)
}

// longTimer returns the answer on which the thread's client set too long a timer. Its
// last attempt had asked for a longer lease than the watchdog's. The timer runs for a
// third of that lease, past the end of the hold. Later holds use the same timer. The attempt
// comes first, then the command that was answered; both are nil if there is none.
func longTimer(c *defect.Case) (asked, set *trace.Command) {
	process := c.Process()
	for _, set = range c.Commands {
		if set.Process != process || set.AtNs > c.AtNs || set.DeliveredNs < 0 {
			continue
		}
		if !(set.Script == model.RoleRenew && set.Reply() == "1" || set.Script == model.RoleAcquire && set.Reply() == "nil" && leaseOf(c, set) == 0) {
			continue
		}
		renewed, lease := false, int64(0)
		asked = set // the last attempt before the answer
		for _, m := range c.Commands {
			switch {
			case m.Process != process || !sameLock(c, m) || m.AtNs > c.AtNs:
			case m.Script == model.RoleAcquire && m.AtNs <= set.DeliveredNs:
				asked, lease = m, leaseOf(c, m)
			case m.Script == model.RoleRenew && m.AtNs > set.DeliveredNs:
				renewed = true
			}
		}
		if sameLock(c, set) && !renewed && time.Duration(lease) > c.Watchdog() && set.DeliveredNs+lease/3 > c.AtNs {
			return asked, set
		}
	}
	return nil, nil
}
