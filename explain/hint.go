package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// Hint says what may have to change in the adapter or in the subject if the finding is no fault of the
// lock, or in a lock whose requests change holds that are not their own; "": nothing. run is the run of the finding.
func Hint(f judges.Finding, run *trace.Run) string {
	if hint := hintOfValue(f, run); hint != "" {
		return hint
	}
	switch d := f.Detail.(type) {
	case judges.Leftover:
		return hintOfLeftover(d)
	case judges.Traffic:
		return hintOfTraffic(d)
	case judges.Stuck:
		if d.Call == model.ActTryLockTimed {
			return "the context of this call ended when its wait was over, and the call did not return; does each of its waits and requests end with the context?"
		}
	case judges.LateReturn:
		return "the context of this call ended when its wait was over, and the call must return then; does each of its waits and requests end with the context?"
	case judges.LateRenewal:
		if run != nil && ofSession(run, f) {
			return "the client renews its session by itself, and with the session what the call has left on the server; a call that cannot remove it must end the session before it returns, so that the server removes it"
		}
		return "the renewals must have stopped when the call returns; let it stop the goroutine that sends them, and wait for its end"
	case judges.ToldLate:
		return "the channel of Lost must be closed before the lease is over that the holder knows. Count the lease from the instant before the request is sent, not from its answer, and let a timer close the channel, whatever the requests do"
	case judges.Untold:
		return hintOfTelling(f, run)
	case judges.Misled:
		if run != nil && !neverRenewed(run, f.Thread, d.HeldNs, f.AtNs) {
			return ""
		}
		return "if the renewals end with the context of the call that took the hold, let them outlive it (see locktest.Outlive)"
	case judges.Miscount:
		if d.Counted == 1 && d.Levels > 1 {
			return "State.Count must be the number of levels that the servers hold (0 counts as 1); if the lock keeps none, a second Lock of its holder must not succeed, and Reentrant is false"
		}
	case judges.Misdelete:
		if d.By.Role == model.RoleUnlock && d.Change == judges.HoldEnded {
			return hintOfFreed(d.Owner)
		}
		if d.By.Role == model.RoleRenew {
			return "a renewal changed the hold of " + d.Owner + "; it must prolong a hold only if the value on the server is that of its own hold, and compare and prolong in one request, such as a script"
		}
	case judges.Overlap:
		if e := d.Ending; e.Cause == model.LossEnded && e.By.Role == model.RoleUnlock && !slices.Contains(e.By.Threads, d.Earlier) {
			return hintOfFreed(d.Earlier)
		} else if e.Cause == model.LossExpired {
			return hintOfTelling(f, run)
		}
	case judges.Unmet:
		return hintOfTry(f, run)
	case judges.Forgotten:
		return cmp.Or(hintOfUnlock(run, f.Lock, d.ToNs), hintOfWaits(run, callOf(run, f.Ops), d))
	case judges.Unplaceable:
		if d.Reason.Refused == nil {
			return ""
		}
		call := callOf(run, f.Ops)
		switch in := d.Reason.Refused.In; {
		case in.Do == model.DoRelease && in.Answer == model.AnswerReleased:
			return hintOfReleased(run, call)
		case in.Do == model.DoRelease && in.Answer == model.AnswerNotHeld:
			return hintOfResent(call)
		case in.Do == model.DoAcquire && in.Answer == model.AnswerBusy:
			return hintOfBusy(run, call)
		}
	}
	return ""
}

// ofSession reports whether the renewal of a finding names nothing, as a ping of a client does. Such a renewal is of the client's session.
func ofSession(run *trace.Run, f judges.Finding) bool {
	return slices.ContainsFunc(run.CommandsOn(f.Lock), func(m *trace.Command) bool {
		return m.AtNs == f.AtNs && m.Script == model.RoleRenew && m.Process == model.ProcessOf(f.Thread) && len(m.Args) == 0
	})
}

// neverRenewed reports whether a renewal was due between two instants, and the process of a thread sent none.
func neverRenewed(run *trace.Run, thread string, fromNs, toNs int64) bool {
	p := run.Record.Params
	return !p.NoWatchdog && toNs-fromNs >= int64(p.RenewalPeriod) &&
		!slices.ContainsFunc(run.CommandsFrom(model.ProcessOf(thread)), func(m *trace.Command) bool {
			return m.Script == model.RoleRenew && fromNs <= m.AtNs && m.AtNs <= toNs
		})
}

// hintOfTelling is about a thread that was never told that a hold is gone, although its handle has a method Lost; "": it was.
func hintOfTelling(f judges.Finding, run *trace.Run) string {
	if run == nil || !run.Record.Params.Watched || slices.ContainsFunc(run.Told(f.Lock), func(e *model.Event) bool { return e.ThreadName() == f.Thread }) {
		return ""
	}
	return "the channel that Lost returned for the hold of " + f.Thread + " stayed open. Lost is asked once after each grant; the channel that it returns then must be closed when the handle learns that the hold is gone, " +
		"and before the lease is over that it knows"
}

// hintOfLeftover is about a goroutine that the adapter did not end.
func hintOfLeftover(d judges.Leftover) string {
	switch {
	case d.Goroutine == nil:
		return ""
	case d.Goroutine.Calls:
		return "a call of a thread did not return although its context had ended; every call must return soon after the end of its context, with the error of the context"
	case d.Goroutine.Opens != "":
		return "Open must return, with an error if its servers do not answer; give its requests a context that ends"
	case d.Goroutine.Closes != "":
		return "Client.Close must end what the client and its locks have started, and return"
	}
	return "Client.Close must end every goroutine that the client or one of its locks has started; Lockstep calls Close when a process ends in order, and also for a process that crashed"
}

// hintOfTraffic is about a waiter that asks too often, which may be meant.
func hintOfTraffic(d judges.Traffic) string {
	return fmt.Sprintf("let a waiter send at most %d commands in a second, for example by longer pauses between its tries, or let a message of the release wake it. "+
		`If the lock is meant to ask so often, say so in the Subject: Promises: locktest.Promises{NotTraffic: "the reason"}`, d.Most)
}

// hintOfValue is about a request that met another hold, since both holds have the same value. The finding is about
// such a request, or such a request caused it.
func hintOfValue(f judges.Finding, run *trace.Run) string {
	if run == nil || f.Lock == "" {
		return ""
	}
	met := func(holder string, ns int64) string {
		for _, c := range run.Changes(f.Lock) {
			if c.AtNs == ns && c.Before.Owner == holder && c.By != nil && !c.MadeFor(holder) {
				if hint := sameValue(run, c); hint != "" {
					return hint
				}
			}
		}
		return ""
	}
	switch d := f.Detail.(type) {
	case judges.Misdelete:
		if hint := met(d.Owner, f.AtNs); hint != "" {
			return hint
		}
	case judges.Overlap:
		if hint := met(d.Earlier, d.Ending.AtNs); hint != "" {
			return hint
		}
	}
	switch p, _ := judges.PartingOf(run, f); p.Kind {
	case judges.PartedByAnother:
		return met(p.Thread, p.AtNs)
	case judges.PartedByUnlock:
		return keptValue(run, f.Lock, p.Thread, p.AtNs)
	}
	return ""
}

// keptValue is about an unlock that ended a later hold of its own thread, since both have the same value; "": they have not.
func keptValue(run *trace.Run, lock, who string, endNs int64) string {
	values := map[string]int{} // the number of holds with each
	for _, h := range run.HoldsOf(lock, who, 0, endNs) {
		values[h.Value]++
		if h.ToNs() == endNs && h.Value != "" && values[h.Value] > 1 {
			return "the holds of " + who + " have the same value on the server, so a late unlock of one ends the next; each hold needs a value of its own"
		}
	}
	return ""
}

// sameValue is about a request that changed the hold of another thread, which it took for that of its own
// thread, since both threads write the same value; "": they do not.
func sameValue(run *trace.Run, changed *trace.Change) string {
	holder, value := changed.Before.Owner, changed.Before.Value
	if value == "" || changed.By == nil {
		return ""
	}
	for _, c := range run.Changes(changed.Lock) {
		if who := c.After.Owner; who != holder && c.Precedes(changed) && c.After.Value == value && changed.MadeFor(who) {
			return "the holds of " + who + " and " + holder + " have the same value on the server, so a request of " + who +
				" cannot tell them apart; each hold needs a value of its own, and a request must change a hold only if the hold has that value"
		}
	}
	return ""
}

// hintOfReleased is about an unlock that returned nil and freed nothing. Many clients tell nobody
// of that, and their Lock must.
func hintOfReleased(run *trace.Run, call *trace.Call) string {
	if call != nil {
		var sooner *trace.Change // shortened the hold of the caller
		for _, c := range call.Changes {
			switch who := c.Before.Owner; {
			case !c.Ended():
				if who == call.Caller && c.After.Count == c.Before.Count && c.After.ExpiresMs >= 0 && (c.Before.ExpiresMs < 0 || c.After.ExpiresMs < c.Before.ExpiresMs) {
					sooner = c
				}
			case who == call.Caller:
				return "" // it freed what it had on the server, and the mistake is elsewhere
			default:
				if hint := sameValue(run, c); hint != "" {
					return hint
				}
				return hintOfFreed(who)
			}
		}
		if sooner != nil {
			return "Unlock returned nil, and its request did not end the hold: by State, the hold went on until " + model.At(sooner.After.ExpiresMs*int64(time.Millisecond)) + "; the request must end the hold itself"
		}
	}
	switch why := whyUnanswered(call); {
	case why == early:
		return "Unlock returned nil, and " + waitForAnswer
	case why == "":
		return "Unlock returned nil, which says that it freed the lock; if it found nothing to free, it must return locktest.ErrNotHeld" + hintOfLeft(run, call)
	case len(call.Sent) == 0 && levelOfTheProcess(run, call):
		return "Unlock returned nil without a request, after a Lock that its thread was granted while it had the lock, as if the process counted the levels; Lockstep knows levels on the server alone. Let the second Lock of a thread return an error"
	case len(call.Sent) == 0:
		return "Unlock returned nil, although no request of it reached a server; it must return the error of the request, or locktest.ErrNotHeld if the handle holds nothing"
	default:
		return "Unlock returned nil, although " + why + "; it must return the error of the request"
	}
}

// levelOfTheProcess reports whether the last acquire of the thread before an unlock was granted without a request, while
// another grant of it had not been given up.
func levelOfTheProcess(run *trace.Run, unlock *trace.Call) bool {
	var last *trace.Call
	granted := 0
	for _, o := range run.CallsOn(unlock.Lock) {
		if o.Caller != unlock.Caller || o.AtNs >= unlock.AtNs {
			continue
		}
		switch {
		case o.Action.Acquires() && o.Outcome == model.Granted:
			last, granted = o, granted+1
		case o.Outcome == model.Released && granted > 0:
			granted--
		}
	}
	return granted > 1 && len(last.Sent) == 0
}

// hintOfLeft is about an unlock of a hold whose end had come, and with which no key ran out: the server may keep what is
// left of such a hold until somebody removes it.
func hintOfLeft(run *trace.Run, call *trace.Call) string {
	if call == nil {
		return ""
	}
	var last *trace.Change
	for _, c := range run.Changes(call.Lock) {
		if c.Ended() && c.Before.Owner == call.Caller && c.AtNs <= call.ReturnedNs() {
			last = c
		}
	}
	if last == nil || last.By != nil || last.Fault > 0 || last.Expired || last.Before.ExpiresMs < 0 {
		return ""
	}
	return "; if it found what was left of the hold, whose end by State had come at " + model.At(last.AtNs) + ", the request that frees a hold must compare the end, too"
}

// hintOfFreed is about an unlock that freed the hold of another thread.
func hintOfFreed(holder string) string {
	return "Unlock freed the hold of " + holder + "; it must free a hold only if the value on the server is that of its own hold, compare and free in one request, such as a script or a transaction, and each hold needs a value of its own"
}

// hintOfResent is about an unlock that returned ErrNotHeld although one of its requests had freed the
// lock. Clients that retry send a request again if its answer does not come.
func hintOfResent(call *trace.Call) string {
	if call == nil || call.Outcome != model.NotHeld {
		return ""
	}
	for _, c := range call.Changes {
		if c.Ended() && c.Before.Owner == call.Caller {
			freed := "the Unlock that " + call.Caller + " called at " + model.At(call.AtNs) + " returned ErrNotHeld, although its request freed the lock at " + model.At(c.AtNs)
			if last := call.Sent[len(call.Sent)-1]; last == c.By {
				return freed + "; it must return nil if the server freed the hold"
			}
			return freed +
				"; a client that retries sends the request again, and the second one finds nothing. Let the client not retry an unlock, or let Unlock return an error if it does not know which request freed the lock"
		}
	}
	return ""
}

// hintOfBusy is about an acquire that was busy, although the calls say that the lock was free.
func hintOfBusy(run *trace.Run, call *trace.Call) string {
	if call == nil {
		return ""
	}
	if heldByAnother(run, call) {
		return hintOfUnlock(run, call.Lock, call.ReturnedNs())
	}
	if run.StateAt(call.Lock, call.AtNs).Owner == call.Caller {
		return "the caller held the lock itself; if the lock does not let its holder enter again, the subject is neither Reentrant nor Idempotent"
	}
	const busy = "ErrBusy, or a TryLock that returns false and no error, says that the lock was held at some time during the call; "
	switch why := whyUnanswered(call); {
	case why == "":
		return busy + "if the call ended for another reason, it must return that error, such as that of the context; if the server keeps others out for a while after a hold, State must return Closed for that time"
	case len(call.Sent) == 0, why == early:
		return busy + "this call " + why + ", so it must return the error that ended it, such as that of the context"
	default:
		return busy + "here " + why + ", so the call must return that error"
	}
}

// hintOfTry is about a try that was granted what another thread had when it began.
func hintOfTry(f judges.Finding, run *trace.Run) string {
	if run == nil {
		return ""
	}
	for _, call := range slices.Backward(run.CallsOn(f.Lock)) {
		if call.Caller != f.Thread || call.ReturnedNs() > f.AtNs {
			continue
		}
		if had := run.StateAt(f.Lock, call.AtNs); call.Action == model.ActTryLock && call.Outcome == model.Granted && had.Held() && had.Owner != call.Caller {
			return fmt.Sprintf("this TryLock waited for the hold of %s to end, and a TryLock is an attempt that does not wait. If it waits by design, leave the method out of the handle: Lock, whose context ends with the wait, stands for tries that wait", had.Owner)
		}
		return ""
	}
	return ""
}

// hintOfUnlock is about an unlock up to an instant that returned nil and did not reach the server, so
// that the server kept the hold.
func hintOfUnlock(run *trace.Run, lock string, untilNs int64) string {
	if run == nil {
		return ""
	}
	for _, call := range slices.Backward(run.CallsOn(lock)) {
		if call.Action != model.ActUnlock || call.Outcome != model.Released || call.ReturnedNs() > untilNs {
			continue
		}
		returned := "the Unlock that " + call.Caller + " called at " + model.At(call.AtNs) + " returned nil, "
		switch why := whyUnanswered(call); {
		case why == early:
			return returned + "and " + waitForAnswer
		case why != "" && len(call.Sent) > 0:
			return returned + "although " + why + "; it must return the error of the request"
		}
		return ""
	}
	return ""
}

// hintOfWaits is about a waiter that got the lock next, without an end of a lease to wait for: from the beginning of the
// wait on, the servers kept the lock for nobody else. The lock may be made so.
func hintOfWaits(run *trace.Run, call *trace.Call, d judges.Forgotten) string {
	waited := time.Duration(d.ToNs - d.FromNs)
	if call == nil || call.Outcome != model.Granted || call.ReturnedNs() < d.ToNs || d.Own || run.Record.Params.Watchdog > 0 && waited >= run.Record.Params.Watchdog ||
		slices.ContainsFunc(run.Holds(call.Lock), func(h *trace.Hold) bool {
			return h.Owner != call.Caller && h.FromNs() < call.ReturnedNs() && d.FromNs < h.ToNs()
		}) {
		return ""
	}
	return fmt.Sprintf("the waiter got the lock %v after it could have had it; if the lock is made so, for example because its waiters ask only from time to time, or a waiter that died keeps its place for a while, "+
		"give the subject Waits, the longest such time", waited.Round(time.Millisecond))
}

// heldByAnother reports whether the server held the lock of a call for another thread at some instant
// of the call.
func heldByAnother(run *trace.Run, call *trace.Call) bool {
	other := func(s *model.LockState) bool { return s.Held() && s.Owner != call.Caller }
	return other(run.StateAt(call.Lock, call.AtNs)) || slices.ContainsFunc(run.ChangesAfter(call.Lock, call.AtNs), func(c *trace.Change) bool {
		return c.AtNs <= call.ReturnedNs() && (other(c.Before) || other(c.After))
	})
}

// early is whyUnanswered of a call that did not wait for the answer to its request, which no fault met; waitForAnswer says what an
// Unlock must do instead.
const (
	early         = "returned before the answer to its request had come"
	waitForAnswer = early + "; it must wait for the answer, and return the error of the request if none comes"
)

// whyUnanswered says why a call has no answer of a server, as a clause; "" if it has one, or if there is
// no call.
func whyUnanswered(call *trace.Call) string {
	if call == nil {
		return ""
	}
	if len(call.Sent) == 0 {
		return "sent no request"
	}
	why := ""
	for _, m := range call.Sent {
		answered := 0 <= m.DeliveredNs && m.DeliveredNs <= call.ReturnedNs()
		switch {
		case !answered && m.Lost == nil && len(m.Hits) == 0:
			why = early
		case m.UnknownScript(): // the client sends the whole script next
		case m.Executed == nil && m.Lost != nil:
			why = "its request was lost before a server had it"
		case m.Refused():
			why = "the server answered its request with an error"
		case !answered:
			why = "the answer to its request did not arrive"
		default:
			return ""
		}
	}
	return why
}

// callOf returns the call that a finding is about first; nil if there is none.
func callOf(run *trace.Run, ops []judges.OpRef) *trace.Call {
	if run == nil || len(ops) == 0 {
		return nil
	}
	i := slices.IndexFunc(run.Calls, func(c *trace.Call) bool {
		return c.Process == ops[0].Process && c.Thread == ops[0].Thread && c.AtNs == ops[0].CallNs
	})
	if i < 0 {
		return nil
	}
	return run.Calls[i]
}
