package known

import (
	"slices"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// leftBehind finds a call that ended without a grant. One of its commands gave the thread the lock
// or a place in the queue, and the thread still has it at the instant of the harm.
func leftBehind(c *defect.Case) *defect.Cause {
	return stays(c, defect.KeptPlace, func(o *trace.Call) bool {
		return o.Action.Acquires() && slices.ContainsFunc(o.Changes, func(s *trace.Change) bool {
			return has(s.After, o.Caller) && !has(s.Before, o.Caller) || queued(s, o.Caller)
		})
	})
}

// unlockedInVain finds an unlock that failed or had no answer. Its thread still has the lock, or a
// place in the queue, at the instant of the harm.
func unlockedInVain(c *defect.Case) *defect.Cause {
	return stays(c, defect.UnlockFailed, func(o *trace.Call) bool { return o.Action == model.ActUnlock })
}

// stays finds the last call that passes the test and failed before or at the instant of the harm.
// Its thread has the lock, or a place in the queue, at that instant.
func stays(c *defect.Case, kind defect.Kind, test func(*trace.Call) bool) *defect.Cause {
	var last *trace.Call
	for _, o := range c.CallsOn(c.Lock) {
		if o.AtNs > c.Until() || o.Return == nil || o.Return.AtNs > c.Until() || !test(o) {
			continue
		}
		switch o.Return.Outcome {
		case model.Unknown, model.Failed, model.Busy:
			if has(c.StateAt(c.Lock, c.AtNs), o.Caller) || has(c.StateAt(c.Lock, c.Until()), o.Caller) {
				last = o
			}
		}
	}
	if last == nil {
		return nil
	}
	return defect.ByCall(kind, last)
}

// has reports whether a thread holds a lock or stands in its queue.
func has(s *model.LockState, who string) bool {
	return s.Held() && s.Owner == who || slices.Contains(s.Queue, who)
}

// queued reports whether a change gave a thread one more place in the queue.
func queued(s *trace.Change, who string) bool {
	places := func(queue []string) (n int) {
		for _, w := range queue {
			if w == who {
				n++
			}
		}
		return n
	}
	return places(s.After.Queue) > places(s.Before.Queue)
}

// newerThanServer finds the restart of a server without its data, after which the client of the
// waiter, or of the holder, has sent only requests to connect. A client may have a session for each of
// its calls: if the waiting call has sent any request since, only its own requests count.
func newerThanServer(c *defect.Case) *defect.Cause {
	for _, f := range c.Faults {
		if !f.Spec.LosesData() || f.FromNs > c.AtNs {
			continue
		}
		since := func(m *trace.Command) bool { return f.FromNs < m.AtNs && m.AtNs <= c.AtNs }
		asked := c.CommandsFrom(c.Process())
		if c.Call != nil && c.Call.Outcome == model.Waiting && slices.ContainsFunc(c.Call.Sent, since) {
			asked = c.Call.Sent
		}
		connects := 0
		for _, m := range asked {
			if !since(m) {
				continue
			}
			if m.Command != "CONNECT" {
				connects = 0
				break
			}
			connects++
		}
		if connects > 1 {
			return defect.ByFault(endsUnheard, f)
		}
	}
	return nil
}

// grantedWithoutPlace finds the change in which another hand removed the hold or the place of a call, which
// was granted all the same: nothing gave it another one. The finding names the call, or is due to its answer.
func grantedWithoutPlace(c *defect.Case) *defect.Cause {
	for _, o := range c.CallsOn(c.Lock) {
		if !o.Action.Acquires() || o.Outcome != model.Granted || o.AtNs > c.Until() {
			continue
		}
		var removed *trace.Change
		for _, s := range c.ChangesWithin(c.Lock, o.AtNs, o.ReturnedNs()) {
			switch {
			case has(s.After, o.Caller):
				removed = nil
			case has(s.Before, o.Caller) && !s.MadeFor(o.Caller):
				removed = s
			}
		}
		if removed != nil && (names(c, o) || c.DueToAnswer(o)) {
			return defect.ByChange(placeGone, removed)
		}
	}
	return nil
}

// names reports whether a finding names a call.
func names(c *defect.Case, o *trace.Call) bool {
	for _, r := range c.Finding.Ops {
		if model.ThreadName(r.Process, r.Thread) == o.Caller && r.CallNs == o.AtNs {
			return true
		}
	}
	return false
}

// unlockedElsewhere finds an unlock that was told that the lock is not held. The server held it for
// the thread of the unlock.
func unlockedElsewhere(c *defect.Case) *defect.Cause {
	for _, o := range c.CallsOn(c.Lock) {
		if o.Action != model.ActUnlock || o.Return == nil || o.Return.Outcome != model.NotHeld || o.AtNs > c.Until() {
			continue
		}
		for _, m := range o.Sent {
			if m.Executed != nil && m.Script == model.RoleUnlock && m.Before(c.Lock).Owner == o.Caller && m.After(c.Lock).Owner == o.Caller {
				return defect.ByCommands(otherSession, m)
			}
		}
	}
	return nil
}

// sharedSession finds an attempt that was granted, and changed nothing, while the server held the lock
// for another thread of the process. Or it finds an unlock that ended the hold of such a thread.
func sharedSession(c *defect.Case) *defect.Cause {
	if s := c.EndedOthersHold(); s != nil && s.By.Process == model.ProcessOf(s.Before.Owner) {
		return defect.ByChange(sessionOfOther, s)
	}
	for _, o := range c.CallsOn(c.Lock) {
		if !o.Action.Acquires() || o.Outcome != model.Granted || o.AtNs > c.Until() || len(o.Changes) > 0 {
			continue
		}
		for _, m := range o.Sent {
			if m.Executed == nil || m.Script != model.RoleAcquire {
				continue
			}
			if owner := m.Before(c.Lock).Owner; owner != "" && owner != o.Caller && model.ProcessOf(owner) == o.Process {
				return defect.ByCommands(sessionOfOther, m)
			}
		}
	}
	return nil
}

// sharedPlace is sharedSession for a lock with a queue. It also finds a call that was granted without a hold of
// its own, by its last attempt, if the server held the lock for another thread of the process when it returned.
// The two had one place in the queue.
func sharedPlace(c *defect.Case) *defect.Cause {
	if cause := sharedSession(c); cause != nil {
		return cause
	}
	for _, o := range c.CallsOn(c.Lock) {
		if !o.Action.Acquires() || o.Outcome != model.Granted || o.ReturnedNs() > c.Until() {
			continue
		}
		if slices.ContainsFunc(o.Changes, func(s *trace.Change) bool { return s.After.Owner == o.Caller }) {
			continue
		}
		owner := c.StateAt(c.Lock, o.ReturnedNs()).Owner
		if owner == "" || owner == o.Caller || model.ProcessOf(owner) != o.Process {
			continue
		}
		for _, m := range slices.Backward(o.Sent) {
			if m.Executed != nil && m.Script == model.RoleAcquire {
				return defect.ByCommands(sessionOfOther, m)
			}
		}
	}
	return nil
}
