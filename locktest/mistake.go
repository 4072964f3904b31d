package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// mistake returns what the run of a finding shows of the subject that may be wrong in it, with what the subject
// says and what the run shows; "": nothing.
func (s Subject) mistake(f judges.Finding, run *trace.Run) string {
	if run == nil || f.Lock == "" || f.Judge == model.JudgeTraffic || f.Judge == model.JudgeWaitBound {
		return ""
	}
	if text := s.otherOwner(f.Lock, run); text != "" {
		return text
	}
	if _, counted := f.Detail.(judges.Miscount); !counted { // which has a hint of its own
		if text := s.oneLevel(f.Lock, run); text != "" {
			return text
		}
	}
	if s.endedEarly(f, run) {
		mend := "the holder relied on all of it; let a method Lost tell the holder so much earlier"
		if run.Record.Params.Watched {
			mend = "the channel of Lost was still open; close it so much earlier"
		}
		return fmt.Sprintf("the servers end a hold up to %v before its Lease of %v is over, and %s", run.Record.Params.Tick, s.Lease, mend)
	}
	if s.addedUp(f, run) {
		return fmt.Sprintf("Extend must end the hold one Lease of %v after it is sent, and this one added that to what was left", s.Lease)
	}
	if text := s.otherLease(run, s.slack(f)); text != "" {
		return text
	}
	if _, endless := f.Detail.(judges.Endless); endless {
		return endsByItself(run)
	}
	if _, unasked := f.Detail.(judges.Unasked); unasked {
		return sameKey(f, run)
	}
	_, unrenewed := f.Detail.(judges.Unrenewed)
	d, misled := f.Detail.(judges.Misled)
	misled = misled && f.AtNs-d.HeldNs >= int64(s.renewEvery()) // a renewal was due
	if unrenewed && !renews(run) && !renewalMet(run) || s.Renewed && (misled || leaseEnded(f)) && !triesToRenew(run) {
		return fmt.Sprintf("the subject is Renewed, and in this run nothing renewed a hold, each of which lasts for %v; a goroutine that renews with the context of Lock ends when Lock has returned, and needs one that lasts, such as of context.WithoutCancel; if the lock leaves the renewals to its holder, take Renewed away", longestHold(run.Record).Round(time.Millisecond))
	}
	switch late := s.laterRenewal(f.Lock, run); {
	case f.Judge == model.JudgeWant && late != "":
		return late
	case late == "" && (f.Judge == model.JudgeWant || unrenewed || leaseEnded(f)):
		return s.waitForLost(f.Lock, run)
	}
	return ""
}

// oneLevel says that a thread was granted a lock that it held, by a request that ran, and that no state of the run has more than one
// level; "": that is not so, or the lock does not promise levels.
func (s Subject) oneLevel(lock string, run *trace.Run) string {
	if !s.Reentrant || slices.ContainsFunc(run.Changes(lock), func(c *trace.Change) bool { return c.After.Count > 1 }) {
		return ""
	}
	for _, call := range run.CallsOn(lock) {
		if !call.Action.Acquires() || call.Outcome != model.Granted {
			continue
		}
		held := run.StateAt(lock, call.AtNs).Owner == call.Caller && run.StateAt(lock, call.ReturnedNs()).Owner == call.Caller
		ran := slices.ContainsFunc(call.Sent, func(m *trace.Command) bool { return m.Executed != nil })
		first := slices.ContainsFunc(run.CallsOn(lock), func(o *trace.Call) bool {
			return o.Caller == call.Caller && o.Action.Acquires() && o.Outcome == model.Granted && o.ReturnedNs() <= call.AtNs
		})
		if held && ran && first && !slices.ContainsFunc(call.Changes, (*trace.Change).Started) {
			return fmt.Sprintf("State shows one level after %s was granted the lock at %s, while it held it; if the lock counts levels, State must return them in Count", call.Caller, model.At(call.ReturnedNs()))
		}
	}
	return ""
}

// endsByItself says that State shows holds without an end, and that a key of one ran out, or that it shows no hold with an
// end; "": neither.
func endsByItself(run *trace.Run) string {
	some := false // a hold has an end
	for _, lock := range run.Locks {
		for _, c := range run.Changes(lock) {
			if c.Expired && c.Ended() && c.Before.ExpiresMs < 0 {
				return fmt.Sprintf("State shows holds without an end, and the server ended one at %s when its key ran out; State must return the end of the hold in Expires", model.At(c.AtNs))
			}
			some = some || c.After.Held() && c.After.ExpiresMs >= 0
		}
	}
	if some {
		return ""
	}
	return "State shows no hold of this run with an end; if the server ends one by itself, State must return the end in Expires, and if the lock asks for no lease, the subject has no Lease"
}

// sameKey says that the request that began the hold of a finding began one of another lock, too.
func sameKey(f judges.Finding, run *trace.Run) string {
	for _, c := range run.Changes(f.Lock) {
		if c.AtNs != f.AtNs || !c.Started() || c.By == nil {
			continue
		}
		for _, other := range c.By.Changes {
			if other.Lock != c.Lock && other.Started() {
				return fmt.Sprintf("by State, one request (%s) took %s and %s; does the lock use one key for both names, or does State read one?", c.By.Command, other.Lock, c.Lock)
			}
		}
	}
	return ""
}

// waitForLost says that a renewal of a hold was lost, and the next one of that hold came later than it is due, although the
// process neither stood still nor was cut off.
func (s Subject) waitForLost(lock string, run *trace.Run) string {
	if !s.Renewed {
		return ""
	}
	for _, h := range run.Holds(lock) {
		process := model.ProcessOf(h.Owner)
		excused := func(from, to int64) bool {
			return slices.ContainsFunc(slices.Concat(run.Pauses(process), run.Partitions(process)), func(f trace.Fault) bool { return f.FromNs <= to && from <= f.ToNs }) ||
				slices.ContainsFunc(run.Holds(lock), func(other *trace.Hold) bool {
					return other.Owner == h.Owner && from < other.FromNs() && other.FromNs() <= to
				})
		}
		var lost *trace.Command
		for _, m := range run.CommandsFrom(process) {
			if m.Script != model.RoleRenew || m.Call != nil || m.AtNs < h.FromNs() || !slices.Contains(m.Threads, h.Owner) {
				continue
			}
			if lost != nil {
				late := time.Duration(m.AtNs - lost.AtNs)
				if late > s.renewEvery()*3/2 && !excused(lost.AtNs, m.AtNs) {
					return fmt.Sprintf("the renewal sent at %.3fs was lost, and the next was sent only %v later, as if the client had waited for the answer; give the client a shorter time limit, such as the ReadTimeout of go-redis, or each renewal a context with a deadline (docs/locktest.md, Client options)",
						time.Duration(lost.AtNs).Seconds(), late.Round(10*time.Millisecond))
				}
			}
			if lost = nil; m.Lost != nil {
				lost = m
			}
		}
	}
	return ""
}

// laterRenewal says that the first renewal of a hold was sent later than RenewEvery has it, by more than half of that time.
func (s Subject) laterRenewal(lock string, run *trace.Run) string {
	if !s.Renewed {
		return ""
	}
	for _, h := range run.Holds(lock) {
		for _, m := range run.CommandsFrom(model.ProcessOf(h.Owner)) {
			if m.Script != model.RoleRenew || m.AtNs < h.FromNs() {
				continue
			}
			if after := time.Duration(m.AtNs - h.FromNs()); after > s.renewEvery()*3/2 {
				return fmt.Sprintf("the first renewal was sent %v after the hold began, and by RenewEvery one is due each %v; a lock that renews at least twice in its lease of %v can lose one and keep its hold",
					after.Round(10*time.Millisecond), s.renewEvery().Round(10*time.Millisecond), s.Lease)
			}
			break
		}
	}
	return ""
}

// composed is the least length of a word of a request by which a longer owner is known as a value that a script made out of it.
const composed = 8

// otherOwner says that State names an owner that no request carried, although the record has all that each carried.
func (s Subject) otherOwner(lock string, run *trace.Run) string {
	for _, c := range run.Changes(lock) {
		value := c.After.Value
		if !c.Started() || value == "" || c.By == nil || c.By.Executed == nil || c.By.Abridged {
			continue
		}
		script := strings.HasPrefix(c.By.Command, "EVAL") || strings.HasPrefix(c.By.Command, "FCALL")
		if slices.ContainsFunc(c.By.Args, func(arg string) bool {
			return len(arg) > len(lock)+1 && strings.HasPrefix(value, arg) || script && len(arg) >= composed && !strings.Contains(arg, lock) && strings.Contains(value, arg)
		}) {
			return "" // the server has made the value longer than what the request carried
		}
		carried := slices.ContainsFunc(run.Commands, func(m *trace.Command) bool {
			return m.Abridged || slices.ContainsFunc(m.Args, func(arg string) bool {
				return strings.Contains(arg, value)
			})
		})
		if carried {
			return ""
		}
		return fmt.Sprintf("State names the owner %q, which no request of this run carried; the request that took the lock was %s. If the lock writes a value for its holder, Owner must be that value",
			value, strings.Join(append([]string{c.By.Command}, c.By.Args...), " "))
	}
	return ""
}

// slack returns the time by which holds may last longer or shorter than the Lease without a hint: what a clock in
// milliseconds may add or take, where a finding is about the end of a lease, and else what a server may that counts
// time in ticks.
func (s Subject) slack(f judges.Finding) time.Duration {
	if _, long := f.Detail.(judges.LongLease); long || leaseEnded(f) {
		return 5 * time.Millisecond
	}
	return s.Lease/20 + 100*time.Millisecond
}

// leaseEnded reports whether a finding is about two holders, since the lease of one had ended.
func leaseEnded(f judges.Finding) bool {
	d, ok := f.Detail.(judges.Overlap)
	return ok && d.Ending.Cause == model.LossExpired && len(d.Ending.Before) == 0
}

// endedEarly reports whether a finding is about the end of a hold that servers with ticks ended before its Lease was over.
func (s Subject) endedEarly(f judges.Finding, run *trace.Run) bool {
	return run.Record.Params.Tick > 0 && leaseEnded(f) && slices.ContainsFunc(run.Holds(f.Lock), func(h *trace.Hold) bool {
		return h.ToNs() == f.Detail.(judges.Overlap).Ending.AtNs && time.Duration(h.ToNs()-h.FromNs()) < s.Lease
	})
}

// addedUp reports whether an extension that gave too long a lease moved the end of the hold by a Lease.
func (s Subject) addedUp(f judges.Finding, run *trace.Run) bool {
	_, long := f.Detail.(judges.LongLease)
	return long && slices.ContainsFunc(run.Changes(f.Lock), func(c *trace.Change) bool {
		by := c.Call()
		return c.AtNs == f.AtNs && by != nil && by.Action == model.ActExtend &&
			(time.Duration(c.After.ExpiresMs-c.Before.ExpiresMs)*time.Millisecond-s.Lease).Abs() <= 5*time.Millisecond
	})
}

// otherLease says that holds last for another time than the Lease, by more than the slack. If they last for
// different times, such as by a clock that steps, nobody knows for which the lock asks; nor if the clocks of the
// processes differ, by which it may count. A lock may count from the sending of its request.
func (s Subject) otherLease(run *trace.Run, slack time.Duration) string {
	longest := longestHold(run.Record)
	if s.Lease == 0 || longest == 0 || (longest-s.Lease).Abs() <= slack {
		return ""
	}
	if slices.ContainsFunc(run.Record.Params.Processes, func(p model.ProcessParams) bool { return p.Skew >= time.Millisecond }) {
		return ""
	}
	whole := true // each hold ends at a whole second
	for _, lock := range run.Locks {
		for _, c := range run.Changes(lock) {
			if !c.Started() || c.After.ExpiresMs < 0 {
				continue
			}
			ends := time.Duration(c.After.ExpiresMs) * time.Millisecond
			sent := c.By != nil && (ends-time.Duration(c.By.AtNs)-s.Lease).Abs() <= 5*time.Millisecond
			if sent || longest-(ends-time.Duration(c.AtNs)) > time.Second {
				return ""
			}
			whole = whole && ends%time.Second == 0
		}
	}
	if whole && longest < s.Lease && s.Lease-longest < time.Second {
		return fmt.Sprintf("State shows a hold that ends at a whole second, %v after it began; a lock or a server that counts whole seconds ends a hold up to a second before its Lease of %v, so the holder may rely on a second less",
			longest.Round(10*time.Millisecond), s.Lease)
	}
	return fmt.Sprintf("the subject's Lease is %v, and State shows holds that last for %v; if the lock asks for that, give the subject this Lease", s.Lease, longest.Round(10*time.Millisecond))
}

// longestHold returns the longest time for which State showed that a hold would last; 0: none ends.
func longestHold(rec *model.Record) (longest time.Duration) {
	for _, e := range rec.Events {
		if e.Kind == model.KindState && e.State.Held() && e.State.ExpiresMs >= 0 {
			longest = max(longest, time.Duration(e.State.ExpiresMs)*time.Millisecond-time.Duration(e.AtNs))
		}
	}
	return longest
}

// triesToRenew reports whether a request was sent to renew a hold.
func triesToRenew(run *trace.Run) bool {
	return slices.ContainsFunc(run.Commands, func(m *trace.Command) bool { return m.Script == model.RoleRenew })
}

// renewalMet reports whether a fault met a request that was sent to renew a hold.
func renewalMet(run *trace.Run) bool {
	return slices.ContainsFunc(run.Commands, func(m *trace.Command) bool { return m.Script == model.RoleRenew && len(m.Hits) > 0 })
}

// renews reports whether a request that belongs to no call prolonged a hold.
func renews(run *trace.Run) bool {
	for _, lock := range run.Locks {
		for _, c := range run.Changes(lock) {
			if c.By != nil && c.By.Call == nil && c.Before.Held() && c.After.Owner == c.Before.Owner && c.After.ExpiresMs > c.Before.ExpiresMs {
				return true
			}
		}
	}
	return false
}
