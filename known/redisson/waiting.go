package redisson

import (
	"math"
	"slices"
	"strconv"
	"time"

	"lockstep/known/defect"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// This file finds the reasons why waiters of a free lock sleep.

// toldBy returns how long the answer to an attempt says to wait.
func toldBy(m *trace.Command) time.Duration {
	ms, _ := strconv.ParseInt(m.Reply(), 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// lastTry returns the last attempt of a thread's open call that had an answer.
func lastTry(c *defect.Case, who string) *trace.Command {
	return c.LastAttempt(who, c.AtNs, func(m *trace.Command) bool {
		return m.Executed != nil && m.DeliveredNs >= 0 && m.DeliveredNs <= c.AtNs
	})
}

// lastAsked returns the last attempt of a thread's open call.
func lastAsked(c *defect.Case, who string) *trace.Command {
	return c.LastAttempt(who, c.AtNs, func(m *trace.Command) bool { return m.AtNs <= c.AtNs })
}

// asleep reports whether the thread of an attempt still sleeps at the instant of the
// finding. The answer says how long it sleeps. The half second after that counts as sleep,
// too, since the next attempt may be under way then.
func asleep(c *defect.Case, m *trace.Command) bool { return asleepFrom(c, m, m.DeliveredNs) }

// asleepFrom is asleep for an answer that came at the instant at.
func asleepFrom(c *defect.Case, m *trace.Command, at int64) bool {
	const way = 500 * time.Millisecond
	return toldBy(m) < 0 || c.AtNs < at+int64(toldBy(m)+way)
}

// holdsUp finds the attempt for which a free lock waits. attempt returns the last attempt of
// a thread. The first of the threads whose attempt passes the test holds up the lock.
// holdsUp returns nil if the lock is held.
func holdsUp(c *defect.Case, kind defect.Kind, threads []string, attempt func(*defect.Case, string) *trace.Command, test func(string, *trace.Command) bool) *defect.Cause {
	if now := c.Now(); now.Held() {
		return nil
	}
	for _, who := range threads {
		if m := attempt(c, who); m != nil && test(who, m) {
			return defect.ByCommands(kind, m)
		}
	}
	return nil
}

// line returns the threads of the queue, followed by the thread of the case.
func line(c *defect.Case) []string { return append(slices.Clip(c.Now().Queue), c.Who) }

// front returns the first thread of the queue, or no thread if the queue is empty.
func front(c *defect.Case) []string {
	queue := c.Now().Queue
	return queue[:min(1, len(queue))]
}

// living is front without dead waiters whose deadlines have passed.
func living(c *defect.Case) []string {
	now := c.Now()
	queue := now.Queue
	for len(queue) > 0 && c.Died(queue[0]) && now.Deadlines[queue[0]]*int64(time.Millisecond) <= c.AtNs {
		queue = queue[1:]
	}
	return queue[:min(1, len(queue))]
}

// unconfirmed finds a subscription without a confirmation, during which a thread sends no
// attempt. The thread is the waiter, or the first thread in the queue of a free lock.
func unconfirmed(c *defect.Case) *defect.Cause {
	if m := unheard(c, c.Call); m != nil {
		return defect.ByCommands(defect.Unconfirmed, m)
	}
	now := c.Now()
	if now.Held() || len(now.Queue) == 0 || now.Queue[0] == c.Who {
		return nil
	}
	if m := lastAsked(c, now.Queue[0]); m != nil && m.Op > 0 {
		if s := unheard(c, c.Calls[m.Op-1]); s != nil {
			return defect.ByCommands(defect.Unconfirmed, s)
		}
	}
	return nil
}

// unheard finds a subscription of the caller's client, for the caller or for another of
// its threads, that had no confirmation for more than a second. Meanwhile the caller sent no
// attempt except its first.
func unheard(c *defect.Case, o *trace.Call) *trace.Command {
	if o == nil {
		return nil
	}
	first := slices.IndexFunc(o.Sent, func(a *trace.Command) bool { return a.Script == model.RoleAcquire })
	for _, m := range subscriptions(c, o.Process) {
		told := m.DeliveredNs
		if told < 0 {
			told = math.MaxInt64
		}
		asked := slices.ContainsFunc(o.Sent[first+1:], func(a *trace.Command) bool {
			return a.Script == model.RoleAcquire && m.AtNs < a.AtNs && a.AtNs < min(told, c.AtNs)
		})
		if told-max(m.AtNs, o.AtNs) > int64(time.Second) && !asked {
			return m
		}
	}
	return nil
}

// subscriptions returns the subscriptions to the lock that a process sent until the finding.
func subscriptions(c *defect.Case, process string) (out []*trace.Command) {
	channels := []string{c.Verdict.Lock.Channel(c.Lock, "all")}
	for _, o := range c.Calls {
		if o.Process == process {
			channels = append(channels, c.Verdict.Lock.Channel(c.Lock, o.Caller))
		}
	}
	for _, m := range c.Commands {
		if (m.Command == "SUBSCRIBE" || m.Command == "SSUBSCRIBE") && m.Process == process && m.AtNs <= c.Until() &&
			slices.ContainsFunc(m.Args, func(channel string) bool { return slices.Contains(channels, channel) }) {
			out = append(out, m)
		}
	}
	return out
}

// unsubscribedTry finds the subscription of a timed try that its client had given up when its
// confirmation came, if it came. So the try left the queue and came back as busy before its time
// was over.
func unsubscribedTry(c *defect.Case) *defect.Cause {
	o := c.Call
	if o == nil || o.Action != model.ActTryLockTimed || o.Return == nil || o.Return.Outcome != model.Busy {
		return nil
	}
	for _, m := range subscriptions(c, o.Process) {
		left := slices.IndexFunc(o.Sent, func(s *trace.Command) bool {
			return s.Script == model.RoleLeave && m.AtNs <= s.AtNs && s.AtNs < o.AtNs+o.WaitNs
		})
		if o.AtNs <= m.AtNs && left >= 0 && (m.DeliveredNs < 0 || m.DeliveredNs >= o.Sent[left].AtNs || unsubscribedAt(c, m, m.DeliveredNs)) {
			return defect.ByCommands(defect.UnsubscribedTry, m)
		}
	}
	return nil
}

// unsubscribedAt reports whether a process left the channel of its subscription m at an instant.
func unsubscribedAt(c *defect.Case, m *trace.Command, atNs int64) bool {
	return slices.ContainsFunc(c.Commands, func(u *trace.Command) bool {
		return u.Process == m.Process && u.AtNs == atNs && (u.Command == "UNSUBSCRIBE" || u.Command == "SUNSUBSCRIBE") && slices.Equal(u.Args, m.Args)
	})
}

// sleepsOn finds the answer on which the waiter of a free lock sleeps. The answer told the
// time to live of a hold that has ended. Since then the client of the waiter has sent an
// attempt for every message that it received. If it received none, no unlock has freed the
// lock.
func sleepsOn(c *defect.Case) *defect.Cause {
	return holdsUp(c, defect.SleepsOn, []string{c.Who}, lastTry, func(who string, m *trace.Command) bool {
		if !m.Before(c.Lock).Held() || !asleepFrom(c, m, m.RepliedNs) {
			return false
		}
		since := func(at int64) bool { return m.Executed.AtNs < at && at <= c.AtNs }
		woken, heard := 0, 0
		for _, other := range c.Commands {
			if other.Script == model.RoleAcquire && other.Process == m.Process && sameLock(c, other) && since(other.AtNs) {
				woken++
			}
		}
		channel := c.Verdict.Lock.Channel(c.Lock, "all")
		for _, e := range c.Record.Events {
			if e.Kind == model.KindDeliver && e.Dir == "push" && e.Process == m.Process && e.Channel == channel && since(e.AtNs) {
				heard++
			}
		}
		return heard <= woken && (heard > 0 || freed(c, m.Executed.AtNs) == nil)
	})
}

// freed returns the last unlock since an instant that freed the lock, or nil if there is
// none.
func freed(c *defect.Case, since int64) (last *trace.Command) {
	for _, m := range c.Commands {
		if (m.Script == model.RoleUnlock || m.Script == model.RoleForceUnlock) && sameLock(c, m) && m.Executed != nil &&
			since < m.Executed.AtNs && m.Executed.AtNs <= c.AtNs && m.Before(c.Lock).Held() && !m.After(c.Lock).Held() {
			last = m
		}
	}
	return last
}

// interruptedAsleep finds the last attempt of the waiter, or of a thread in the queue, whose
// sleep began anew with an interrupt. Without the interrupt the sleep would be over.
func interruptedAsleep(c *defect.Case) *defect.Cause {
	return holdsUp(c, defect.SleptAnew, line(c), lastTry, func(who string, m *trace.Command) bool {
		if asleep(c, m) {
			return false
		}
		return slices.ContainsFunc(c.Interrupts, func(e *model.Event) bool {
			return e.Text == who && m.DeliveredNs <= e.AtNs && e.AtNs <= c.AtNs && asleepFrom(c, m, e.AtNs)
		})
	})
}

// sleepsLate finds the last attempt of the waiter, or of a thread in the queue, that waits
// for the answer of the replicas or sleeps since that answer. If the sleep had begun with the
// answer of the server, it would be over.
func sleepsLate(c *defect.Case) *defect.Cause {
	return holdsUp(c, defect.SleptLate, line(c), lastAsked, func(_ string, m *trace.Command) bool {
		return m.Wait != nil && 0 <= m.RepliedNs && m.RepliedNs <= c.AtNs && !asleepFrom(c, m, m.RepliedNs) &&
			(m.DeliveredNs < 0 || c.AtNs < m.DeliveredNs || asleep(c, m))
	})
}

// frontSendsAgain finds the attempt of the thread in front that has had no answer. Its client
// waits to send it again.
func frontSendsAgain(c *defect.Case) *defect.Cause {
	return holdsUp(c, defect.SendsAgain, front(c), lastAsked, func(who string, m *trace.Command) bool {
		return !c.Died(who) && (m.DeliveredNs < 0 || c.AtNs < m.DeliveredNs)
	})
}

// sleepsUnqueued finds the attempt that queued the waiter. The waiter sleeps on the answer
// and has lost its place in the queue.
func sleepsUnqueued(c *defect.Case) *defect.Cause {
	return holdsUp(c, defect.SleepsUnqueued, []string{c.Who}, lastTry, func(who string, m *trace.Command) bool {
		return slices.Contains(m.After(c.Lock).Queue, who) && !slices.Contains(c.Now().Queue, who) && asleep(c, m)
	})
}

// frontSleeps finds the answer on which the first living thread of the queue sleeps. The
// answer must pass the test, whose arguments are the time that the answer says to wait and
// the time that the hold had left.
func frontSleeps(c *defect.Case, kind defect.Kind, test func(told, ttl time.Duration) bool) *defect.Cause {
	return holdsUp(c, kind, living(c), lastTry, func(who string, m *trace.Command) bool {
		if c.Died(who) || unheard(c, c.Calls[m.Op-1]) != nil {
			return false
		}
		var ttl time.Duration
		if m.Before(c.Lock).Held() {
			ttl = time.Duration(m.Before(c.Lock).ExpiresMs+1)*time.Millisecond - time.Duration(m.Executed.AtNs)
		}
		return asleepFrom(c, m, m.RepliedNs) && test(toldBy(m), ttl)
	})
}

// sleepsOnDeadline finds the answer that told the thread in front a longer time than the hold
// had left.
func sleepsOnDeadline(c *defect.Case) *defect.Cause {
	return frontSleeps(c, defect.SleepsOnDeadline, func(told, ttl time.Duration) bool { return told > ttl })
}

// sleepsOnOldLease finds the answer that told the thread in front the time to live of a hold
// that ended sooner. It finds nothing if a published message will wake the thread.
func sleepsOnOldLease(c *defect.Case) *defect.Cause {
	if toBeWoken(c) {
		return nil
	}
	return frontSleeps(c, defect.SleepsOn, func(told, ttl time.Duration) bool { return 0 <= told && told <= ttl })
}

// sleepsForever finds the answer that told a negative time. The answer went to the thread in
// front, to the call that was overtaken, or to a waiter that was thrown out of the queue.
func sleepsForever(c *defect.Case) *defect.Cause {
	negative := func(m *trace.Command) bool { return toldBy(m) < 0 }
	switch {
	case c.Judged(model.JudgeLinearizable):
		return evicted(c, defect.SleepsForever, func(m *trace.Command, deadline int64) bool {
			return negative(m) && !placedByUnit(c, m, deadline)
		})
	case c.Judged(model.JudgeFIFO) && c.Call != nil:
		for _, m := range c.Call.Sent {
			if m.Script == model.RoleAcquire && m.Executed != nil && negative(m) && m.DeliveredNs <= c.AtNs &&
				!placedByUnit(c, m, m.After(c.Lock).Deadlines[c.Who]*int64(time.Millisecond)) {
				return defect.ByCommands(defect.SleepsForever, m)
			}
		}
	}
	return frontSleeps(c, defect.SleepsForever, func(told, _ time.Duration) bool { return told < 0 })
}

// toBeWoken reports whether an unlock has freed the lock, and the thread that was then first
// in the queue has not received a message about it. It returns false if the lock was taken
// since, or if the message was published and no client will receive it.
func toBeWoken(c *defect.Case) bool {
	now, m := c.Now(), freed(c, -1)
	if m == nil || now.Held() || len(m.After(c.Lock).Queue) == 0 {
		return false
	}
	head := c.Verdict.Lock.Channel(c.Lock, m.After(c.Lock).Queue[0])
	published, pushed := false, false
	for _, e := range c.Record.Events {
		switch {
		case e.AtNs < m.Executed.AtNs:
		case e.Kind == model.KindState && e.Lock == c.Lock && e.State.Held() && m.Executed.AtNs < e.AtNs && e.AtNs <= c.AtNs:
			return false // the lock was taken since
		case e.Channel != head:
		case e.Dir == "push" && e.AtNs <= c.AtNs:
			return false
		case e.Dir == "push":
			pushed = true
		case e.Kind == model.KindPublish && e.AtNs == m.Executed.AtNs:
			published = true
		}
	}
	return pushed || !published
}

// toldNothing finds attempts of the waiter that were told to wait 0 ms while the lock was
// free and another thread stood in front. It looks at the second after the instant of the
// finding. It returns nil unless such attempts are more than half of the waiter's attempts.
func toldNothing(c *defect.Case) *defect.Cause {
	asked := 0
	var told []*trace.Command
	for _, m := range c.Commands {
		if m.Script != model.RoleAcquire || m.Executed == nil || m.Op == 0 || m.AtNs < c.AtNs || m.AtNs >= c.AtNs+int64(time.Second) || !slices.Contains(m.Owners, c.Who) {
			continue
		}
		asked++
		if q := m.After(c.Lock).Queue; toldBy(m) == 0 && !m.After(c.Lock).Held() && len(q) > 0 && q[0] != c.Who {
			told = append(told, m)
		}
	}
	if len(told) <= asked/2 {
		return nil
	}
	return defect.ByCommands(defect.ToldZero, told[0], told[len(told)-1])
}

// wallClock finds the step back of the caller's wall clock during the call. If there was none, it finds a clock
// that runs slowly.
func wallClock(c *defect.Case) *defect.Cause {
	o := c.Call
	if o == nil {
		return nil
	}
	for _, f := range c.Faults {
		if f.Spec.Kind == model.FaultWallClock && f.Process == o.Process && f.Spec.Step < 0 && o.AtNs <= f.FromNs && f.FromNs <= o.ReturnedNs() {
			return defect.ByFault(defect.ClockStepped, f)
		}
	}
	for _, p := range c.Verdict.Scenario.Processes {
		if p.Name == o.Process && p.WallDriftPPM < 0 {
			return defect.ByCall(defect.ClockDrifts, o)
		}
	}
	return nil
}

// toldZero finds attempts of the call that were told to wait 0 ms. It looks at the second
// after the instant of the finding. It returns nil if the call sent too many other commands,
// or if a row of such attempts took 1.1 ms or longer.
func toldZero(c *defect.Case) *defect.Cause {
	if c.Call == nil {
		return nil
	}
	inSecond := func(at int64) bool { return c.AtNs <= at && at < c.AtNs+int64(time.Second) }
	others := 0 // the other commands, less one per published message
	before := 0 // the commands since the last attempt, such as the question for the replicas
	var told []*trace.Command
	var row *trace.Command // the first attempt of the present row that was told 0 ms
	for _, m := range c.Call.Sent {
		script := m
		if m.WaitOf != nil {
			script = m.WaitOf
		}
		switch {
		case !inSecond(m.AtNs):
		case script.Script != model.RoleAcquire:
			before++
		case script.Reply() != "0":
			others += before + 1
			before, row = 0, nil
		case row == nil:
			before, row = 0, script
			told = append(told, script)
		case script.Executed.AtNs-row.Executed.AtNs >= int64(1100*time.Microsecond):
			return nil
		default:
			before = 0
			told = append(told, script)
		}
	}
	others += before
	for i := range c.Record.Events {
		if e := &c.Record.Events[i]; e.Kind == model.KindDeliver && e.Dir == "push" && e.Process == c.Call.Process && inSecond(e.AtNs) {
			others--
		}
	}
	if others > judges.TrafficMost || len(told) == 0 {
		return nil
	}
	return defect.ByCommands(defect.ToldZero, told[0], told[len(told)-1])
}
