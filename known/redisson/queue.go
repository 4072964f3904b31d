package redisson

import (
	"maps"
	"slices"
	"time"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// The queue of the fair lock, and places that are lost, kept or taken.

// refusedByLeaver finds the attempt of the call that found the lock free and another thread in
// front. The call of that thread was not to wait, or it was refused in the end, or its leave command had no answer.
func refusedByLeaver(c *defect.Case) *defect.Cause {
	if c.Call == nil || c.Call.Return == nil || c.Call.Return.Outcome != model.Busy {
		return nil
	}
	for _, m := range c.Call.Sent {
		if m.Script != model.RoleAcquire || m.Executed == nil || m.Before(c.Lock).Held() || len(m.Before(c.Lock).Queue) == 0 {
			continue
		}
		o := c.CallThat(func(o *trace.Call) bool {
			if o.Caller != m.Before(c.Lock).Queue[0] || o.Caller == c.Who || o.AtNs > m.Executed.AtNs || o.Return != nil && o.Return.AtNs < m.Executed.AtNs {
				return false
			}
			return o.Action == model.ActTryLockTimed && o.WaitNs == 0 || o.Return != nil && (o.Return.Outcome == model.Busy || o.Return.Outcome == model.Unknown)
		})
		if o != nil {
			return defect.ByCommands(defect.RefusedByLeaver, m)
		}
	}
	return nil
}

// keptPlace finds a call that ended without a grant, and whose thread stood in the queue
// then.
func keptPlace(c *defect.Case) *defect.Cause {
	o := c.CallThat(func(o *trace.Call) bool {
		return o.Action.Acquires() && defect.Ended(o, c.Until(), model.Failed, model.Unknown) &&
			slices.Contains(c.StateAt(c.Lock, o.Return.AtNs).Queue, o.Caller)
	})
	if o == nil {
		return nil
	}
	return defect.ByCall(defect.KeptPlace, o)
}

// late finds a command that ran when its call had returned and passes the test.
func late(c *defect.Case, kind defect.Kind, test func(*trace.Call, *trace.Command) bool) *defect.Cause {
	for _, o := range c.Calls {
		if o.Lock != c.Lock || o.Return == nil {
			continue
		}
		for _, m := range o.Sent {
			if m.Executed != nil && o.Return.AtNs < m.Executed.AtNs && m.Executed.AtNs <= c.Until() && test(o, m) {
				return defect.ByCommands(kind, m)
			}
		}
	}
	return nil
}

// queuedLate finds a command that put its thread into the queue when its call was over.
func queuedLate(c *defect.Case) *defect.Cause {
	return late(c, defect.LateQueueing, func(o *trace.Call, m *trace.Command) bool {
		return !slices.Contains(m.Before(c.Lock).Queue, o.Caller) && slices.Contains(m.After(c.Lock).Queue, o.Caller)
	})
}

// tookItsOwnTurn finds a command of a call that was over. It took the lock for the thread
// that was overtaken, and the thread's place in the queue.
func tookItsOwnTurn(c *defect.Case) *defect.Cause {
	return late(c, defect.LateTurn, func(o *trace.Call, m *trace.Command) bool {
		return o.Caller == c.Who && o.Action.Acquires() && m.Script == model.RoleAcquire && m.MovedLevels(c.Lock, o.Caller) &&
			slices.Contains(m.Before(c.Lock).Queue, o.Caller) && !slices.Contains(m.After(c.Lock).Queue, o.Caller)
	})
}

// unscored finds how a thread in the queue lost its deadline. For a finding of liveness,
// it looks at the thread in front of the free lock. Otherwise it looks at any thread that
// has no deadline, or that stands in the queue twice for lack of one.
func unscored(c *defect.Case) *defect.Cause {
	now := c.Now()
	if c.Judged(model.JudgeLiveness) {
		if now.Held() || len(now.Queue) == 0 || scored(now, now.Queue[0]) {
			return nil
		}
		return parted(c, defect.NoDeadline, func(s *model.LockState) bool {
			return slices.Contains(s.Queue, now.Queue[0]) && !scored(s, now.Queue[0])
		})
	}
	if c.Judged(model.JudgeFIFO, model.JudgeLinearizable) {
		if c.Judged(model.JudgeLinearizable) && c.FreeUnlock() != nil {
			return nil // that is a defect of its own
		}
		return leftOver(c)
	}
	return parted(c, defect.NoDeadline, func(s *model.LockState) bool {
		return twice(s) || slices.ContainsFunc(s.Queue, func(who string) bool {
			return slices.Contains(now.Queue, who) && !scored(s, who) && !scored(now, who)
		})
	})
}

// twice reports whether a thread stands in the queue twice, or more often.
func twice(s *model.LockState) bool {
	queue := slices.Sorted(slices.Values(s.Queue))
	return len(slices.Compact(queue)) < len(s.Queue)
}

// leftOver finds how a thread came to stand in the queue twice. Its second place takes a turn,
// or blocks a free lock, for as long as the queue is not empty.
func leftOver(c *defect.Case) (cause *defect.Cause) {
	for _, s := range c.Changes(c.Lock) {
		switch {
		case s.AtNs > c.Until():
			return cause
		case len(s.Before.Queue) == 0:
			cause = nil
		}
		if cause == nil && twice(s.After) {
			cause = defect.ByChange(defect.TwoPlaces, s)
		}
	}
	return cause
}

// unplaced finds how the waiter of a free lock, which has a deadline, lost its place.
func unplaced(c *defect.Case) *defect.Cause {
	torn := func(s *model.LockState) bool { return scored(s, c.Who) && !slices.Contains(s.Queue, c.Who) }
	if now := c.Now(); now.Held() || !torn(now) {
		return nil
	}
	return parted(c, defect.NoPlace, torn)
}

// parted finds the change since which the queue and the deadlines differ.
func parted(c *defect.Case, kind defect.Kind, differ func(*model.LockState) bool) *defect.Cause {
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs <= c.AtNs && differ(s.After) {
			return defect.ByChange(kind, s)
		}
	}
	return nil
}

func scored(s *model.LockState, who string) bool {
	_, ok := s.Deadlines[who]
	return ok
}

// deadHead finds the crash of the thread in front of the free lock, whose deadline is
// still to come.
func deadHead(c *defect.Case) *defect.Cause {
	s := c.Now()
	if s.Held() || len(s.Queue) == 0 || !c.Died(s.Queue[0]) || c.AtNs >= s.Deadlines[s.Queue[0]]*int64(time.Millisecond) {
		return nil
	}
	crash, _ := c.Crash(s.Queue[0])
	return defect.ByFault(defect.DeadHead, crash)
}

// A drift is the part of a waiter's deadline that no wait in front of it explains.
type drift struct {
	ns int64
	by *trace.Command // the last command that added to it
}

// drifts returns the drift of each waiter's deadline at an instant. A deadline is counted from the
// deadline of the head. When the head gives up and leaves, each deadline behind it that was counted
// from the head's own is one wait too late, unless the wait is taken off. A waiter that is queued
// behind a new head inherits the drift of the head's deadline.
func drifts(c *defect.Case, atNs int64) map[string]drift {
	const ms = int64(time.Millisecond)
	all := map[string]drift{}
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs > atNs {
			break
		}
		for _, who := range s.After.Queue {
			before, stood := s.Before.Deadlines[who]
			after := s.After.Deadlines[who]
			switch head := s.After.Queue[0]; {
			case s.By != nil && s.By.Script == model.RoleLeave && stood && left(s):
				leaver := s.Before.Deadlines[s.Before.Queue[0]]
				kept := min(int64(c.Record.Params.FairWait), (before-leaver)*ms) - (before-after)*ms
				if kept > 0 {
					all[who] = drift{all[who].ns + kept, s.By}
				}
			case stood && before == after:
			case who == head:
				delete(all, who)
			default:
				all[who] = all[head]
			}
		}
		maps.DeleteFunc(all, func(who string, _ drift) bool { return !slices.Contains(s.After.Queue, who) })
	}
	return all
}

// left reports whether the head of the queue is gone after a change.
func left(s *trace.Change) bool {
	return len(s.Before.Queue) > 0 && !slices.Contains(s.After.Queue, s.Before.Queue[0])
}

// drifted finds the last command that added drift to the deadline for which a free lock waits: the
// deadline of a dead head, or the deadline until which the thread in front sleeps. Most of the
// waiting time must be drift.
func drifted(c *defect.Case) *defect.Cause {
	if deadHead(c) != nil {
		head := c.Now().Queue[0]
		d, m := drifts(c, c.AtNs)[head], lastQueued(c, head)
		if d.by == nil || m == nil || 2*d.ns <= c.Now().Deadlines[head]*int64(time.Millisecond)-m.Executed.AtNs {
			return nil
		}
		return defect.ByCommands(defect.Drift, d.by)
	}
	if sleepsOnDeadline(c) == nil {
		return nil
	}
	for _, who := range living(c) {
		m := lastTry(c, who)
		before := m.Before(c.Lock).Queue
		if len(before) == 0 {
			return nil
		}
		d := drifts(c, m.Executed.AtNs-1)[before[0]]
		if d.by != nil && 2*d.ns > int64(toldBy(m)) {
			return defect.ByCommands(defect.Drift, d.by)
		}
	}
	return nil
}

// drifting reports whether the lock is free and waits for a drifted deadline, in a release in which
// that is a defect of its own.
func drifting(c *defect.Case) bool { return upTo("3.5.4")(c.Verdict.Lock) && drifted(c) != nil }

// lastQueued returns the last command before the finding that gave a thread its deadline.
func lastQueued(c *defect.Case, who string) (last *trace.Command) {
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs <= c.AtNs && s.By != nil && s.By.Script == model.RoleAcquire && s.By.Executed != nil &&
			slices.Contains(s.By.Owners, who) && s.Before.Deadlines[who] != s.After.Deadlines[who] {
			last = s.By
		}
	}
	return last
}

// evicted finds a waiter that lost its place in the queue, or came back behind a thread
// that stood behind it. The test gets its last attempt before that, and its deadline in
// nanoseconds. The cause is that attempt, and the command that threw it out.
func evicted(c *defect.Case, kind defect.Kind, test func(m *trace.Command, deadline int64) bool) *defect.Cause {
	until := c.Until()
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs > until {
			break
		}
		if s.By == nil {
			continue
		}
		for _, who := range s.Before.Queue {
			m := c.LastAttempt(who, s.AtNs, func(m *trace.Command) bool { return m.Executed != nil && m.Executed.AtNs < s.AtNs })
			behind, place := s.Before.Queue[slices.Index(s.Before.Queue, who)+1:], slices.Index(s.After.Queue, who)
			gone := place < 0 && s.After.Owner != who ||
				place >= 0 && slices.ContainsFunc(s.After.Queue[:place], func(ahead string) bool { return slices.Contains(behind, ahead) })
			left := s.By.Script == model.RoleLeave && slices.Contains(s.By.Owners, who)
			if m != nil && gone && !left && !c.Died(who) && test(m, s.Before.Deadlines[who]*int64(time.Millisecond)) {
				return defect.ByChange(kind, s).With(m)
			}
		}
	}
	return nil
}

// evictedAsleep finds a waiter that was thrown out while it slept on an answer that
// lasted beyond its deadline, or when it had slept so long that its next attempt was
// under way at its deadline.
func evictedAsleep(c *defect.Case) *defect.Cause {
	return evicted(c, defect.ThrownAsleep, func(m *trace.Command, deadline int64) bool {
		if placedByUnit(c, m, deadline) {
			return false
		}
		wakes := m.DeliveredNs + int64(toldBy(m))
		return m.DeliveredNs >= 0 && (deadline < wakes || slices.ContainsFunc(c.Calls[m.Op-1].Sent, func(next *trace.Command) bool {
			return next.Script == model.RoleAcquire && wakes <= next.AtNs && next.AtNs <= deadline && next.Executed != nil && deadline < next.Executed.AtNs
		}))
	})
}

// evictedUnanswered finds a waiter that was thrown out when its last attempt had no
// answer in time.
func evictedUnanswered(c *defect.Case) *defect.Cause {
	return evicted(c, defect.ThrownUnsent, func(m *trace.Command, _ int64) bool { return m.DeliveredNs < 0 })
}

// evictedByUnit finds a waiter that was thrown out before the wait of its tryLock was over. The
// tryLock gave the wait in seconds, and no lease.
func evictedByUnit(c *defect.Case) *defect.Cause {
	return evicted(c, defect.ThrownByUnit, func(m *trace.Command, deadline int64) bool {
		return placedByUnit(c, m, deadline)
	})
}

// placedByUnit reports whether the place of an attempt ends before the wait of its tryLock is over.
// The tryLock gave the wait in seconds, and no lease. Releases since 3.21.3 read the number as
// milliseconds.
func placedByUnit(c *defect.Case, m *trace.Command, deadline int64) bool {
	o := c.Calls[m.Op-1]
	return since("3.21.3")(c.Verdict.Lock) && o.LeaseNs == 0 && deadline < o.AtNs+o.WaitNs && inSeconds(c, o)
}

// inSeconds reports whether the thread of a call has a tryLock step with the same wait, given in
// seconds.
func inSeconds(c *defect.Case, o *trace.Call) bool {
	for t, s := range c.Verdict.Scenario.All() {
		if model.ThreadName(t.Process, t.Thread) == o.Caller && s.UnitSeconds && s.Wait != nil && int64(*s.Wait) == o.WaitNs {
			return true
		}
	}
	return false
}
