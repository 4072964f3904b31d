package redisson

import (
	"slices"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// Acquires, unlocks and grants that are given back.

// gaveUpUnheard finds the attempt without an answer of a timed try that came back as
// busy before its time was over.
func gaveUpUnheard(c *defect.Case) *defect.Cause {
	o := c.Call
	if o == nil || o.Action != model.ActTryLockTimed || o.Return == nil || o.Return.Outcome != model.Busy || gaveUpAt(o) >= o.AtNs+o.WaitNs {
		return nil
	}
	for _, m := range o.Sent {
		if m.Script == model.RoleAcquire && m.DeliveredNs < 0 {
			return defect.ByCommands(defect.UnansweredTry, m)
		}
	}
	return nil
}

// gaveUpAt returns when a call gave up: when it first left the queue, or returned.
func gaveUpAt(o *trace.Call) int64 {
	if left := o.First(model.RoleLeave); left != nil {
		return left.AtNs
	}
	return o.Return.AtNs
}

// returnedUnlocked finds a lock() that returned as granted although none of its
// commands took the lock.
func returnedUnlocked(c *defect.Case) *defect.Cause {
	o := c.CallThat(func(o *trace.Call) bool {
		return o.Action == model.ActLock && c.Suspects(o.Caller) && defect.Ended(o, c.Until(), model.Granted) &&
			!slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return m.MovedLevels(c.Lock, o.Caller) })
	})
	if o == nil {
		return nil
	}
	return defect.ByCall(defect.ReturnedUnlocked, o)
}

// unknownGrant finds a command that took a level for a call whose outcome stayed
// unknown. Only the calls that pass the test count.
func unknownGrant(c *defect.Case, kind defect.Kind, test func(*trace.Call) bool) *defect.Cause {
	m := c.SentThat(model.RoleAcquire, func(o *trace.Call, m *trace.Command) bool {
		return o.Return != nil && o.Return.Outcome == model.Unknown && test(o) && m.MovedLevels(c.Lock, o.Caller) && m.Executed.AtNs <= c.Until()
	})
	if m == nil {
		return nil
	}
	return defect.ByCommands(kind, m)
}

// interruptedGrant finds the grant of a call that was interrupted before its answer.
func interruptedGrant(c *defect.Case) *defect.Cause {
	return unknownGrant(c, defect.InterruptedGrant, func(o *trace.Call) bool {
		return c.Suspects(o.Caller) && o.Action.Acquires() && c.Interrupted(o.Caller, o.AtNs, o.Return.AtNs)
	})
}

// unlocked returns a cause that finds an unlock with one of the outcomes. The unlock is by
// the thread of the case, or by the thread that a waiter waits for.
func unlocked(kind defect.Kind, outcomes ...model.Outcome) cause {
	return func(c *defect.Case) *defect.Cause {
		who := c.AboutHolder().Who
		o := c.CallThat(func(o *trace.Call) bool {
			return o.Caller == who && o.Action == model.ActUnlock && defect.Ended(o, c.Until(), outcomes...)
		})
		if o == nil {
			return nil
		}
		return defect.ByCall(kind, o)
	}
}

// stoppedByFailedUnlock finds an unlock of the thread during the hold that ended. The unlock
// failed, or its outcome stayed unknown, and it took no level. No renewal of the hold was sent
// after the unlock had returned.
func stoppedByFailedUnlock(c *defect.Case) *defect.Cause {
	began, ended := c.HoldBegan(), c.HoldEnded()
	o := c.CallThat(func(o *trace.Call) bool {
		return o.Caller == c.Who && o.Action == model.ActUnlock && defect.Ended(o, ended, model.Failed, model.Unknown) && began <= o.Return.AtNs &&
			!slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return m.MovedLevels(c.Lock, c.Who) }) &&
			!slices.ContainsFunc(renewals(c, ended), func(m *trace.Command) bool { return o.Return.AtNs < m.AtNs })
	})
	if o == nil {
		return nil
	}
	return defect.ByCall(defect.UnlockFailed, o)
}

// endlessUnlock finds the unlock of the case if it returned after an interrupt and its command had
// no answer by then.
func endlessUnlock(c *defect.Case) *defect.Cause {
	o := c.Call
	if o == nil || o.Action != model.ActUnlock || o.Return == nil || o.Return.Outcome != model.Unknown || !c.Interrupted(c.Who, o.AtNs, o.Return.AtNs) ||
		slices.ContainsFunc(o.Sent, func(m *trace.Command) bool {
			return m.Script == model.RoleUnlock && 0 <= m.DeliveredNs && m.DeliveredNs <= c.AtNs
		}) {
		return nil
	}
	return defect.ByCall(defect.EndlessUnlock, o)
}

// forcedInVain finds a force_unlock of the thread's client that ended nothing and was
// called during the hold.
func forcedInVain(c *defect.Case) *defect.Cause {
	began := c.HoldBegan()
	o := c.CallThat(func(o *trace.Call) bool {
		return o.Action == model.ActForceUnlock && o.Process == c.Process() && began <= o.AtNs && o.AtNs <= c.AtNs &&
			!slices.ContainsFunc(o.Sent, func(m *trace.Command) bool { return m.MovedLevels(c.Lock, c.Who) })
	})
	if o == nil {
		return nil
	}
	return defect.ByCall(defect.ForcedInVain, o)
}

// giveBack returns the command with which the call gave up a hold that no replica had
// in time; nil: none.
func giveBack(o *trace.Call) *trace.Command {
	for _, m := range o.Sent {
		if o.Action.Acquires() && m.Script == model.RoleUnlock && m.Executed != nil && m.Before(o.Lock).Owner == o.Caller && m.After(o.Lock).Owner != o.Caller {
			return m
		}
	}
	return nil
}

// gaveBack finds the grant that the call of the case gave back. For a finding of
// linearizability, any call on the lock will do.
func gaveBack(c *defect.Case) *defect.Cause {
	for _, o := range c.Calls {
		if o.Lock != c.Lock || o != c.Call && !c.Judged(model.JudgeLinearizable) {
			continue
		}
		if m := giveBack(o); m != nil && m.Executed.AtNs <= c.Until() {
			return defect.ByCommands(defect.GivenBack, m)
		}
	}
	return nil
}

// unansweredTry finds a try that came back as busy when its attempt had no answer. The attempt must
// have been granted, except if the finding is about a waiter that was overtaken.
func unansweredTry(c *defect.Case) *defect.Cause {
	if found := c.GrantedUnheard(); found != nil || !c.Judged(model.JudgeFIFO) {
		return found
	}
	return gaveUpUnheard(c)
}

// foundNone finds an unlock of the thread that was told that it did not hold the lock, or
// that found the lock free and was not refused.
func foundNone(c *defect.Case) *defect.Cause {
	if found := unlocked(defect.UnlockFoundNone, model.NotHeld)(c); found != nil {
		return found
	}
	for _, o := range c.Calls {
		if o.Caller == c.Who && o.Lock == c.Lock && o.AtNs <= c.AtNs {
			if m := defect.FoundFree(o); m != nil {
				return defect.ByCommands(defect.FreeUnlock, m)
			}
		}
	}
	return nil
}

// unknownLevel finds the level of the thread that a call of unknown outcome took.
func unknownLevel(c *defect.Case) *defect.Cause {
	return unknownGrant(c, defect.UnknownLevel, func(o *trace.Call) bool { return o.Caller == c.Who && o.Return.AtNs <= c.AtNs })
}
