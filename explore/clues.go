package explore

import (
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/linearizability"
	"lockstep/model"
	index "lockstep/model/trace"
	"lockstep/scenarios"
)

// clue is a finding with the record in which it was made.
type clue struct {
	*trace
	of   scenarios.Verdict // of the run
	f    linearizability.Finding
	lock string // that the finding is about
	who  string // the thread, the first where it names several
	call *call  // the call, nil where it names none
}

func newClue(v scenarios.Verdict, t *trace, f linearizability.Finding) clue {
	c := clue{trace: t, of: v, f: f, lock: f.Lock, who: f.Thread}
	for _, op := range f.Ops {
		if model.ThreadName(op.Process, op.Thread) != c.who {
			continue
		}
		for _, o := range t.calls {
			if o.who == c.who && o.AtNs == op.CallNs && o.Lock == c.lock {
				c.call = o
			}
		}
		// The cause of a hold that its lease ended is earlier than the end, whenever
		// another thread came to believe that it has the lock.
		if c.judges(model.JudgeMutualExclusion) && f.Loss.Expired() && op == f.Ops[0] && op.CallNs <= f.Loss.AtNs {
			c.f.AtNs = f.Loss.AtNs
		}
		break
	}
	return c
}

// breaks reports whether the finding breaks one of these rules of its judge.
func (c clue) breaks(forms ...model.Form) bool { return slices.Contains(forms, c.f.Form) }

// leaseEnded reports whether the finding rests on a hold that its lease ended.
func (c clue) leaseEnded() bool { return c.breaks(model.FormUnrenewed) || c.overlapped() }

// overlapped reports whether two threads believed to hold the lock, and the lease of
// one had ended.
func (c clue) overlapped() bool { return c.judges(model.JudgeMutualExclusion) && c.f.Loss.Expired() }

// aboutLease reports whether the finding is about the length or the end of a lease.
func (c clue) aboutLease() bool { return c.leaseEnded() || c.breaks(model.FormLongLease) }

func (c clue) judges(judge string) bool { return c.f.Judge == judge }

// whileHeld is the clue as it was when the lock was held last, where that is less than
// a second ago, the least that a waiter must not wait for nobody: it had waited too
// long for that hold.
func (c clue) whileHeld() clue {
	if now := c.stateAt(c.lock, c.f.AtNs); !c.judges(model.JudgeLiveness) || now.Held() {
		return c
	}
	at := c.f.AtNs
	for _, s := range c.states[c.lock] {
		if at-int64(time.Second) < s.AtNs && s.AtNs <= at && s.before.Held() && !s.State.Held() {
			c.f.AtNs = s.AtNs - 1
		}
	}
	return c
}

// until is the last instant that can have to do with the finding: the judge of
// linearizability names a call, which is wrong at its end, or when its commands
// ran that nobody heard of.
func (c clue) until() int64 {
	switch {
	case !c.judges(model.JudgeLinearizable):
	case c.call != nil && c.call.ret != nil:
		at := c.call.ret.AtNs
		for _, m := range c.call.sent {
			if c.call.ret.Outcome == model.Unknown && m.exec != nil {
				at = max(at, m.exec.AtNs)
			}
		}
		return at
	case c.call == nil: // a renewal, which is no call
		for _, m := range c.commands {
			if m.AtNs == c.f.AtNs && m.exec != nil {
				return max(m.exec.AtNs, m.delivered)
			}
		}
	}
	return c.f.AtNs
}

// holder is who held the lock on the server then, "" when nobody did.
func (c clue) holder() string {
	if s := c.stateAt(c.lock, c.until()); s.Held() {
		return s.Owner
	}
	return ""
}

// suspect says whether a finding may be owed to a thread: the one that it names,
// who held the lock last, and for the order of all calls anybody.
func (c clue) suspect(who string) bool {
	return who == c.who || who == c.lastHolder() || c.judges(model.JudgeLinearizable)
}

// lastHolder is who held the lock on the server then, or last before.
func (c clue) lastHolder() string {
	last, until := "", c.until()
	for _, s := range c.states[c.lock] {
		if s.AtNs <= until && s.State.Held() {
			last = s.State.Owner
		}
	}
	return last
}

// ended: a call of the thread on the lock had ended so.
func (c clue) ended(who string, action model.Action, outcomes ...model.Outcome) bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.who == who && o.Lock == c.lock && o.Action == action && o.ret != nil && o.ret.AtNs <= c.until() &&
			slices.Contains(outcomes, o.ret.Outcome)
	})
}

// unlockedNothing: unlocks found the lock free and were answered 1; of the thread
// whose levels are counted, where they are. What has no place in the order of all
// calls may be an earlier one: see hidden.
func (c clue) unlockedNothing() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && (c.judges(model.JudgeLinearizable) || o.AtNs <= c.until() && o.who == c.who) && o.foundFree()
	})
}

// hidden are the bugs in the order of all calls that there would be, had the unlocks
// that found the lock free been refused.
func (c clue) hidden() []clue {
	refused := &model.Record{Params: c.rec.Params, Events: slices.Clone(c.rec.Events)}
	for i := range refused.Events {
		if e := &refused.Events[i]; e.Kind == model.KindReturn && c.calls[e.Op-1].foundFree() {
			e.Outcome = model.NotHeld
		}
	}
	var out []clue
	for _, f := range linearizability.JudgeLinearizable(index.New(refused)) {
		if f.Class == linearizability.ClassBug && f.Lock == c.lock {
			out = append(out, newClue(c.of, traceOf(refused), f))
		}
	}
	return out
}

// foundFree: it is an unlock that was answered 1, took no level when it ran, and
// found the lock free.
func (o *call) foundFree() bool {
	if o.Action != model.ActUnlock || o.ret == nil || o.ret.Outcome != model.Released {
		return false
	}
	found := false
	for _, m := range o.sent {
		if m.Script == "unlock" && m.took(o.who) {
			return false
		}
		found = found || m.Script == "unlock" && m.reply() == "1" && !m.before.Held()
	}
	return found
}

// forcedInVain: a force_unlock by the thread's client that ended nothing was
// called during the hold.
func (c clue) forcedInVain() bool {
	process := model.ProcessOf(c.who)
	began := c.holdBegan()
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Action == model.ActForceUnlock && o.Lock == c.lock && o.Process == process && began <= o.AtNs && o.AtNs <= c.f.AtNs &&
			!slices.ContainsFunc(o.sent, func(m *command) bool { return m.took(c.who) })
	})
}

// forcedTwice: two commands of one force_unlock ran, and the first found the
// lock held.
func (c clue) forcedTwice() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		if o.Lock != c.lock || o.Action != model.ActForceUnlock || o.AtNs > c.until() {
			return false
		}
		ran := 0
		for _, m := range o.sent {
			if m.exec != nil && (ran > 0 || m.before.Held()) {
				ran++
			}
		}
		return ran > 1
	})
}

// ranTwice: two commands of one call each changed something, or the second
// found that the first had; not counting a grant that was given back, nor what
// gave it back.
func (c clue) ranTwice(script string) bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		if o.Lock != c.lock || !c.suspect(o.who) || o.AtNs > c.until() || o.Action.Acquires() != (script == "acquire") {
			return false
		}
		changed, ran := 0, 0
		for _, m := range o.sent {
			if script == "acquire" && m.Script == "unlock" && m.took(o.who) {
				changed--
			}
			if m.Script != script || m.exec == nil || m.exec.AtNs > c.until() && !c.judges(model.JudgeLinearizable) {
				continue
			}
			ran++
			if m.took(o.who) {
				changed++
			}
		}
		return changed > 1 || script == "unlock" && changed > 0 && ran > 1
	})
}

// lateUnlock: an unlock ran after its call had returned, and took a level.
func (c clue) lateUnlock() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && c.suspect(o.who) && o.Action == model.ActUnlock && o.ret != nil && o.ret.Outcome == model.Unknown &&
			slices.ContainsFunc(o.sent, func(m *command) bool {
				return m.exec != nil && o.ret.AtNs < m.exec.AtNs && m.exec.AtNs <= c.until() && m.took(o.who)
			})
	})
}

// grantedUnheard: a call came back as busy, or with an error, and a command of it was
// granted.
func (c clue) grantedUnheard() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && c.suspect(o.who) && o.ret != nil && (o.ret.Outcome == model.Busy || o.ret.Outcome == model.Failed) && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.Script == "acquire" && m.took(o.who) && m.exec.AtNs <= c.until()
		})
	})
}

// foundItsOwn: a command of a call took the lock, and one that it sent again found it
// taken.
func (c clue) foundItsOwn() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		took := false
		return o.Lock == c.lock && c.suspect(o.who) && slices.ContainsFunc(o.sent, func(m *command) bool {
			again := took && m.exec != nil && m.before.Owner == o.who && !m.took(o.who)
			took = took || m.took(o.who)
			return m.Script == "acquire" && m.AtNs <= c.until() && again
		})
	})
}

// gaveUpUnheard: the call came back as busy before its time was over, and an attempt
// of it had no answer.
func (c clue) gaveUpUnheard() bool {
	return c.call != nil && c.call.Action == model.ActTryLockTimed && c.call.ret != nil && c.call.ret.Outcome == model.Busy &&
		c.call.ret.AtNs < c.call.AtNs+c.call.WaitNs &&
		slices.ContainsFunc(c.call.sent, func(m *command) bool { return m.Script == "acquire" && m.delivered < 0 })
}

// returnedUnlocked: a lock() of a thread that the finding may be owed to was
// answered with a grant, and none of its commands took the lock.
func (c clue) returnedUnlocked() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.Action == model.ActLock && c.suspect(o.who) && o.ret != nil && o.ret.Outcome == model.Granted && o.ret.AtNs <= c.until() &&
			!slices.ContainsFunc(o.sent, func(m *command) bool { return m.took(o.who) })
	})
}

// interruptedGrant: a call of the thread, or of who holds the lock, was
// interrupted before it was answered, and took a level.
func (c clue) interruptedGrant() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && c.suspect(o.who) && o.Action.Acquires() && o.ret != nil && o.ret.Outcome == model.Unknown &&
			slices.ContainsFunc(c.rec.Events, func(e model.Event) bool {
				return e.Kind == model.KindUse && e.Phase == "interrupt" && e.Met && e.Text == o.who && o.AtNs <= e.AtNs && e.AtNs <= o.ret.AtNs
			}) &&
			slices.ContainsFunc(o.sent, func(m *command) bool {
				return m.Script == "acquire" && m.exec != nil && m.exec.AtNs <= c.until() && m.took(o.who)
			})
	})
}

// interruptedUnlock: the thread's unlock came back from an interrupt, and was not
// answered before.
func (c clue) interruptedUnlock() bool {
	return c.call != nil && c.call.Action == model.ActUnlock && c.call.ret != nil && c.call.ret.Outcome == model.Unknown &&
		slices.ContainsFunc(c.rec.Events, func(e model.Event) bool {
			return e.Kind == model.KindUse && e.Phase == "interrupt" && e.Met && e.Text == c.who && c.call.AtNs <= e.AtNs && e.AtNs <= c.call.ret.AtNs
		}) && !slices.ContainsFunc(c.call.sent, func(m *command) bool {
		return m.Script == "unlock" && 0 <= m.delivered && m.delivered <= c.f.AtNs
	})
}

// refusedByLeavers: the call asked when the lock was free, and was refused since
// another stood first, whose own call was refused in the end, or had no answer to its
// leaving.
func (c clue) refusedByLeavers() bool {
	return c.call != nil && c.call.ret != nil && c.call.ret.Outcome == model.Busy && slices.ContainsFunc(c.call.sent, func(m *command) bool {
		return m.Script == "acquire" && m.exec != nil && !m.before.Held() && len(m.before.Queue) > 0 && slices.ContainsFunc(c.calls, func(o *call) bool {
			return o.Lock == c.lock && o.who == m.before.Queue[0] && o.who != c.who && o.AtNs <= m.exec.AtNs &&
				o.ret != nil && m.exec.AtNs <= o.ret.AtNs && (o.ret.Outcome == model.Busy || o.ret.Outcome == model.Unknown)
		})
	})
}

// renewals are those for the thread and the lock that were sent before.
func (c clue) renewals() []*command {
	var out []*command
	for _, m := range c.commands {
		if m.Script == "renew" && m.AtNs <= c.f.AtNs && slices.Contains(m.Locks, c.lock) && slices.Contains(m.Owners, c.who) {
			out = append(out, m)
		}
	}
	return out
}

// holdEnded is when the thread's hold did that was the last on the server; the
// instant of the finding where it did not.
func (c clue) holdEnded() int64 {
	at := c.f.AtNs
	for _, s := range c.states[c.lock] {
		if s.AtNs <= c.f.AtNs && s.before.Owner == c.who && s.State.Owner != c.who {
			at = s.AtNs
		}
	}
	return at
}

// renewalsUntilLost are those that were sent before the hold ended.
func (c clue) renewalsUntilLost() []*command {
	ended := c.holdEnded()
	return slices.DeleteFunc(c.renewals(), func(m *command) bool { return m.AtNs > ended })
}

// lastUnlock is when the thread's last unlock returned, or a force_unlock of its
// client, which ends the renewal too.
func (c clue) lastUnlock() int64 {
	process := model.ProcessOf(c.who)
	var at int64 = -1
	for _, o := range c.calls {
		ends := o.who == c.who && o.Action == model.ActUnlock || o.Process == process && o.Action == model.ActForceUnlock
		if ends && o.Lock == c.lock && o.ret != nil && o.ret.AtNs <= c.f.AtNs {
			at = o.ret.AtNs
		}
	}
	return at
}

// renewedAcrossUnlock: a renewal that was sent before an unlock of the thread
// returned was answered 1 after that, or, at the last, when the unlock had run.
func (c clue) renewedAcrossUnlock() bool {
	last := c.lastUnlock()
	return slices.ContainsFunc(c.renewals(), func(m *command) bool {
		if m.exec == nil || m.exec.Reply != "1" {
			return false
		}
		return m.AtNs < last && last-int64(100*time.Millisecond) < m.delivered || slices.ContainsFunc(c.calls, func(o *call) bool {
			return o.who == c.who && o.Lock == c.lock && o.Action == model.ActUnlock && o.ret != nil && m.AtNs < o.ret.AtNs && o.ret.AtNs < m.delivered
		})
	})
}

// resending is how long a client may go on sending a renewal.
const resending = int64(25 * time.Second)

// renewalUnderWay: at the last unlock a renewal was under way, of which the
// client had no answer, or one that had been refused was sent again, or could not
// leave, or waited to be told of replicas, or for its script to be loaded.
func (c clue) renewalUnderWay() bool {
	at := c.lastUnlock()
	process := model.ProcessOf(c.who)
	return slices.ContainsFunc(c.renewals(), func(m *command) bool {
		return at-resending <= m.AtNs && m.AtNs <= at && (m.failed() || at < m.delivered)
	}) || slices.ContainsFunc(c.commands, func(m *command) bool {
		return m.Process == process && (m.Command == "INFO" || m.Command == "SCRIPT") && m.Op == 0 &&
			at-resending <= m.AtNs && m.AtNs <= at && (m.delivered < 0 || at <= m.delivered)
	}) || slices.ContainsFunc(c.rec.Events, func(e model.Event) bool {
		return e.AtNs <= at && (c.struck(e, process, model.FaultPartition) || e.Kind == model.KindFault && c.rec.Params.Fault(e.Fault).EndsConnections())
	})
}

// lastRenewalFailed: the last renewal of the hold was answered with an error,
// or not at all, or could not leave.
func (c clue) lastRenewalFailed() bool {
	process := model.ProcessOf(c.who)
	all := c.renewalsUntilLost()
	if n := len(all); n > 0 && all[n-1].failed() {
		return true
	}
	return slices.ContainsFunc(c.rec.Events, func(e model.Event) bool {
		return e.AtNs <= c.f.AtNs && c.struck(e, process, model.FaultPartition)
	})
}

// renewedOtherwise: the last renewal of the hold, or unlock that left levels, gave it
// another lease than the watchdog's, or no renewal came after a call of its client that
// asked for a longer one. Of traffic: a renewal did in the second that begins then.
func (c clue) renewedOtherwise() bool {
	otherwise := func(m *command) bool {
		return m.after.ExpiresMs-m.exec.AtNs/int64(time.Millisecond) != c.rec.Params.Watchdog.Milliseconds()
	}
	if c.judges(model.JudgeTraffic) {
		return slices.ContainsFunc(c.commands, func(m *command) bool {
			return m.Script == "renew" && slices.Contains(m.Locks, c.lock) && m.exec != nil && slices.Contains(m.Owners, m.after.Owner) &&
				c.f.AtNs <= m.exec.AtNs && m.exec.AtNs < c.f.AtNs+int64(time.Second) && otherwise(m)
		})
	}
	if !c.aboutLease() {
		return false
	}
	began := c.holdBegan()
	var last *command
	for _, m := range c.commands {
		if (m.Script == "renew" || m.Script == "unlock") && slices.Contains(m.Locks, c.lock) && slices.Contains(m.Owners, c.who) &&
			m.exec != nil && began <= m.exec.AtNs && m.exec.AtNs <= c.f.AtNs && m.after.Owner == c.who {
			last = m
		}
	}
	if last != nil && otherwise(last) {
		return true
	}
	process := model.ProcessOf(c.who)
	return c.leaseEnded() && slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.Process == process && o.who != c.who && time.Duration(o.LeaseNs) > c.rec.Params.Watchdog &&
			slices.ContainsFunc(o.sent, func(m *command) bool {
				return m.Script == "acquire" && m.AtNs <= c.f.AtNs && (m.AtNs >= began || m.delivered >= began)
			})
	})
}

// timerTooLong: the thread's client set a timer, which holds entered later use too, when
// its last attempt had asked for a longer lease than the watchdog's, and the timer ran
// for a third of that, past the end of the hold.
func (c clue) timerTooLong() bool {
	process := model.ProcessOf(c.who)
	ours := slices.DeleteFunc(slices.Clone(c.commands), func(m *command) bool {
		return m.Process != process || !slices.Contains(m.Locks, c.lock) || m.AtNs > c.f.AtNs
	})
	return slices.ContainsFunc(ours, func(set *command) bool {
		begins := set.Script == "renew" && set.reply() == "1" || set.Script == "acquire" && set.reply() == "nil" && c.leaseOf(set) == 0
		if !begins || set.delivered < 0 {
			return false
		}
		var asked int64 // of the lease
		for _, m := range ours {
			switch {
			case m.Script == "acquire" && m.AtNs <= set.delivered:
				asked = c.leaseOf(m)
			case m.Script == "renew" && m.AtNs > set.delivered:
				return false
			}
		}
		return time.Duration(asked) > c.rec.Params.Watchdog && set.delivered+asked/3 > c.f.AtNs
	})
}

// leaseOf is the lease, in nanoseconds, that the call of a command asked for; 0: none.
func (c clue) leaseOf(m *command) int64 {
	if m.Op == 0 {
		return 0
	}
	return c.calls[m.Op-1].LeaseNs
}

// neverRenewed: an earlier renewal of the lock by this process failed or found
// nothing, and this hold had none.
func (c clue) neverRenewed() bool {
	process := model.ProcessOf(c.who)
	began := c.holdBegan()
	left := false
	for _, m := range c.commands {
		if m.Script == "renew" && m.Process == process && slices.Contains(m.Locks, c.lock) && m.AtNs <= c.f.AtNs {
			if m.AtNs >= began {
				return false
			}
			left = left || m.reply() == "0" || m.failed()
		}
	}
	return left
}

// levels are those without a lease that the thread believed to hold, and the most of
// them that it did at one time.
func (c clue) levels() (now, most int) {
	for i := range c.rec.Events {
		e := &c.rec.Events[i]
		if e.Kind != model.KindReturn || e.Lock != c.lock || e.ThreadName() != c.who || e.AtNs > c.f.AtNs {
			continue
		}
		switch {
		case e.Action == model.ActUnlock:
			now = max(0, now-1)
		case e.Outcome == model.Granted && c.calls[e.Op-1].LeaseNs == 0:
			now++
			most = max(most, now)
		}
	}
	return now, most
}

// reentered: the thread had been granted the lock, without a lease, when it
// believed to hold it so already.
func (c clue) reentered() bool {
	_, most := c.levels()
	return most > 1
}

// startedShort: the thread asked for no lease and was given one shorter than
// the watchdog's.
func (c clue) startedShort() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.who == c.who && o.LeaseNs == 0 && o.AtNs <= c.f.AtNs && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.Script == "acquire" && m.took(o.who) &&
				time.Duration(m.after.ExpiresMs)*time.Millisecond-time.Duration(m.exec.AtNs) < c.rec.Params.Watchdog-time.Millisecond
		})
	})
}

// startedLong: an acquire without a lease got more than the watchdog's, at the
// instant of the finding.
func (c clue) startedLong() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.who == c.who && o.LeaseNs == 0 && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.Script == "acquire" && m.took(o.who) && m.exec.AtNs == c.f.AtNs &&
				time.Duration(m.after.ExpiresMs)*time.Millisecond-time.Duration(m.exec.AtNs) > c.rec.Params.Watchdog
		})
	})
}

// stretchedByUnlock: a partial unlock made the lease of the hold longer; of the
// hold that the finding is about, or that the waiter waits for. Or shorter, of a
// hold that is over.
func (c clue) stretchedByUnlock() bool {
	who, over := c.who, c.judges(model.JudgeMutualExclusion)
	if c.judges(model.JudgeLiveness) {
		who = c.holder()
	}
	if over && !c.overlapped() {
		return false
	}
	began := c.holdBegan()
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.who == who && o.Action == model.ActUnlock && slices.ContainsFunc(o.sent, func(m *command) bool {
			switch {
			case m.exec == nil || m.exec.AtNs > c.until() || !m.took(who) || m.after.Owner != who:
				return false
			case over:
				return began <= m.exec.AtNs && m.after.ExpiresMs < m.before.ExpiresMs
			}
			return (c.judges(model.JudgeLiveness) || m.exec.AtNs == c.f.AtNs) && m.after.ExpiresMs > m.before.ExpiresMs
		})
	})
}

// shortenedItself: the thread, holding the lock, entered again with a lease and
// had less time than before.
func (c clue) shortenedItself() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.who == c.who && o.LeaseNs > 0 && o.AtNs <= c.f.AtNs && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.Script == "acquire" && m.took(o.who) && m.before.Owner == o.who && m.after.ExpiresMs < m.before.ExpiresMs
		})
	})
}

// countedOut: in the hold that was lost, the thread had given up as many levels
// as it had entered without a lease, and one that it had entered with one.
func (c clue) countedOut() bool {
	began := c.holdBegan()
	leased, without, given := 0, 0, 0
	for _, o := range c.calls {
		if o.who != c.who || o.Lock != c.lock || o.ret == nil || o.ret.AtNs < began || o.ret.AtNs > c.f.AtNs {
			continue
		}
		switch {
		case o.ret.Outcome == model.Granted && o.LeaseNs > 0:
			leased++
		case o.ret.Outcome == model.Granted:
			without++
		case o.ret.Outcome == model.StillHeld:
			given++
		}
	}
	return leased > 0 && without > 0 && given >= without
}

// lostLevels: a hold of the thread ended by another's hand or with its lease, and
// it has given up fewer levels since it first locked than it was granted without
// a lease.
func (c clue) lostLevels() bool {
	lost := slices.ContainsFunc(c.states[c.lock], func(s change) bool {
		return s.AtNs <= c.f.AtNs && s.before.Owner == c.who && s.State.Owner != c.who && !slices.Contains(c.ownersOf(s.Msg), c.who)
	})
	levels, _ := c.levels()
	return lost && levels > 0
}

// renewedWhatIsLeft: who holds the lock was renewed when its unlock had left levels.
func (c clue) renewedWhatIsLeft() bool {
	who := c.holder()
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.who == who && o.ret != nil && o.ret.Outcome == model.StillHeld && slices.ContainsFunc(c.commands, func(m *command) bool {
			return m.Script == "renew" && slices.Contains(m.Locks, c.lock) && slices.Contains(m.Owners, who) && m.reply() == "1" &&
				o.ret.AtNs < m.AtNs && m.exec.AtNs <= c.until()
		})
	})
}

// ownersOf are the threads for whom a command speaks.
func (c clue) ownersOf(msg int) []string {
	for _, m := range c.commands {
		if m.Msg == msg {
			return m.Owners
		}
	}
	return nil
}

// askedForAnother: while the thread held the lock, its client asked for another
// thread, which did not hold it.
func (c clue) askedForAnother() bool {
	process := model.ProcessOf(c.who)
	began := c.holdBegan()
	return slices.ContainsFunc(c.commands, func(m *command) bool {
		i := slices.Index(m.Locks, c.lock)
		return m.Script == "renew" && m.Process == process && i >= 0 && m.Owners[i] != c.who && m.AtNs <= c.f.AtNs && (m.delivered < 0 || began <= m.delivered)
	})
}

// stoppedByAnother: an unlock by another thread of the client ran before the hold
// began and was answered 1 after that, of its own hold or of a lock that was free.
func (c clue) stoppedByAnother() bool {
	process := model.ProcessOf(c.who)
	began := c.holdBegan()
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.Process == process && o.who != c.who && o.Action == model.ActUnlock && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.Script == "unlock" && m.exec != nil && m.reply() == "1" && m.exec.AtNs < began && began <= m.delivered && m.delivered <= c.f.AtNs
		})
	})
}

// toldOfLastHold: a renewal of the thread that ran before its hold began, and
// found nothing, was answered later.
func (c clue) toldOfLastHold() bool {
	began := c.holdBegan()
	return slices.ContainsFunc(c.renewals(), func(m *command) bool {
		return m.exec != nil && m.exec.AtNs < began && began <= m.delivered && m.delivered <= c.f.AtNs && m.before.Owner != c.who
	})
}

// forgotTimer: a renewal of the thread's client, of a hold before or of another
// thread, failed, or found nothing and was answered when a hold of the thread had
// begun, and the next one had not.
func (c clue) forgotTimer() bool {
	process := model.ProcessOf(c.who)
	began := c.holdsBegan()
	return slices.ContainsFunc(c.commands, func(m *command) bool {
		if m.Script != "renew" || m.Process != process || !slices.Contains(m.Locks, c.lock) {
			return false
		}
		next := c.f.AtNs
		for _, at := range slices.Backward(began) {
			if m.failed() && m.AtNs < at && at < m.AtNs+resending ||
				m.reply() == "0" && at <= m.delivered && m.delivered <= next && (m.exec.AtNs < at || !slices.Contains(m.Owners, c.who)) {
				return true
			}
			next = at
		}
		return false
	})
}

// holdsBegan is when the thread's holds did on the server.
func (c clue) holdsBegan() (out []int64) {
	for _, s := range c.states[c.lock] {
		if s.AtNs <= c.f.AtNs && s.before.Owner != c.who && s.State.Owner == c.who {
			out = append(out, s.AtNs)
		}
	}
	return out
}

// holdBegan is when the hold did that is, or was the last; 0 when there was none.
func (c clue) holdBegan() int64 {
	began := c.holdsBegan()
	if len(began) == 0 {
		return 0
	}
	return began[len(began)-1]
}

// unconfirmed: the waiter, or who stands before it in the queue of a free lock, asks
// for nothing until its subscription is confirmed.
func (c clue) unconfirmed() bool {
	if c.unheard(c.call) {
		return true
	}
	now := c.stateAt(c.lock, c.f.AtNs)
	if now.Held() || len(now.Queue) == 0 || now.Queue[0] == c.who {
		return false
	}
	m := c.lastAsked(now.Queue[0], c.f.AtNs)
	return m != nil && m.Op > 0 && c.unheard(c.calls[m.Op-1])
}

// unheard: the caller's client had subscribed, for it or for another thread, was not
// told so for more than a second, and the caller asked for nothing meanwhile, but
// once when it was called.
func (c clue) unheard(o *call) bool {
	if o == nil {
		return false
	}
	first := slices.IndexFunc(o.sent, func(a *command) bool { return a.Script == "acquire" })
	return slices.ContainsFunc(c.commands, func(m *command) bool {
		told := m.delivered
		if told < 0 {
			told = math.MaxInt64
		}
		return (m.Command == "SUBSCRIBE" || m.Command == "SSUBSCRIBE") && m.Process == o.Process && m.AtNs <= c.until() &&
			slices.ContainsFunc(m.Args, func(channel string) bool { return strings.Contains(channel, c.lock) }) &&
			told-max(m.AtNs, o.AtNs) > int64(time.Second) &&
			!slices.ContainsFunc(o.sent[first+1:], func(a *command) bool {
				return a.Script == "acquire" && m.AtNs < a.AtNs && a.AtNs < min(told, c.f.AtNs)
			})
	})
}

// sleepsOn: the lock is free, and the waiter sleeps on the time to live of a hold
// that has ended; all messages since have woken others of its client, or just now it.
func (c clue) sleepsOn() bool {
	m, now := c.lastTry(c.who, c.f.AtNs), c.stateAt(c.lock, c.f.AtNs)
	if m == nil || !m.before.Held() || now.Held() || !c.asleep(m) {
		return false
	}
	woken := 0
	for _, other := range c.commands {
		if other.Script == "acquire" && other.Process == m.Process && slices.Contains(other.Locks, c.lock) &&
			m.exec.AtNs < other.AtNs && other.AtNs <= c.f.AtNs {
			woken++
		}
	}
	heard := 0
	for _, e := range c.rec.Events {
		if e.Kind == model.KindDeliver && e.Dir == "push" && e.Process == m.Process && strings.HasSuffix(strings.Trim(e.Channel, "}"), strings.Trim(c.lock, "}")) &&
			m.exec.AtNs < e.AtNs && e.AtNs <= c.f.AtNs {
			heard++
		}
	}
	return heard <= woken && (heard > 0 || c.unlocked(m.exec.AtNs) == nil)
}

// unlocked is the last command since then that freed the lock, nil for none.
func (c clue) unlocked(since int64) (last *command) {
	for _, m := range c.commands {
		if (m.Script == "unlock" || m.Script == "force_unlock") && slices.Contains(m.Locks, c.lock) && m.exec != nil &&
			since < m.exec.AtNs && m.exec.AtNs <= c.f.AtNs && m.before.Held() && !m.after.Held() {
			last = m
		}
	}
	return last
}

// unlockedUnheard: the lock is free since an unlock, and who stood first in its
// queue then was told nothing, or has yet to hear it. One that listens no longer is
// not waited for.
func (c clue) unlockedUnheard() bool {
	s := c.stateAt(c.lock, c.f.AtNs)
	m := c.unlocked(-1)
	if m == nil || s.Held() || len(m.after.Queue) == 0 {
		return false
	}
	head := ":" + strings.Replace(m.after.Queue[0], "/", ":", 1)
	published, pushed := false, false
	for _, e := range c.rec.Events {
		switch {
		case e.AtNs < m.exec.AtNs:
		case e.Kind == model.KindState && e.Lock == c.lock && e.State.Held() && m.exec.AtNs < e.AtNs && e.AtNs <= c.f.AtNs:
			return false // it was taken since
		case !strings.HasSuffix(e.Channel, head):
		case e.Dir == "push" && e.AtNs <= c.f.AtNs:
			return false
		case e.Dir == "push":
			pushed = true
		case e.Kind == model.KindPublish && e.AtNs == m.exec.AtNs:
			published = true
		}
	}
	return pushed || !published
}

// keptItsPlace: a thread stood in the queue although its call had ended without
// a grant, or came to its turn from there.
func (c clue) keptItsPlace() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.Action.Acquires() && o.ret != nil && o.ret.AtNs <= c.until() &&
			(o.ret.Outcome == model.Failed || o.ret.Outcome == model.Unknown) &&
			slices.Contains(c.stateAt(c.lock, o.ret.AtNs).Queue, o.who)
	})
}

// gaveBack: the call that was overtaken had been granted the lock and had given
// it back; of the order of all calls any.
func (c clue) gaveBack() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		at := o.gaveBack()
		return o.Lock == c.lock && (o == c.call || c.judges(model.JudgeLinearizable)) && 0 <= at && at <= c.until()
	})
}

// gaveBack is when the call gave up a hold that no replica had in time; -1: it
// did not.
func (o *call) gaveBack() int64 {
	for _, m := range o.sent {
		if o.Action.Acquires() && m.Script == "unlock" && m.exec != nil && m.before.Owner == o.who && m.after.Owner != o.who {
			return m.exec.AtNs
		}
	}
	return -1
}

// toldOfGivenBack: the call asked while the lock was held for another call, which
// gave it back later.
func (c clue) toldOfGivenBack() bool {
	return c.call != nil && slices.ContainsFunc(c.call.sent, func(m *command) bool {
		return m.Script == "acquire" && m.exec != nil && slices.ContainsFunc(c.calls, func(o *call) bool {
			return o.Lock == c.lock && o.who != c.who && o.who == m.before.Owner && o.AtNs < m.exec.AtNs && m.exec.AtNs < o.gaveBack()
		})
	})
}

// unscored: the lock is free and who stands first has no deadline; of what is
// left behind, somebody in the queue has none, or stands in it twice, which is
// how who had none was queued again.
func (c clue) unscored() bool {
	now := c.stateAt(c.lock, c.f.AtNs)
	if c.judges(model.JudgeLiveness) {
		return !now.Held() && len(now.Queue) > 0 && !scored(now, now.Queue[0])
	}
	stood := map[string]int{}
	for _, s := range c.states[c.lock] {
		if s.AtNs > c.f.AtNs {
			break
		}
		clear(stood)
		for _, who := range s.State.Queue {
			if stood[who]++; stood[who] > 1 {
				return true
			}
		}
	}
	return slices.ContainsFunc(now.Queue, func(who string) bool { return !scored(now, who) })
}

func scored(s model.LockState, who string) bool {
	_, ok := s.Deadlines[who]
	return ok
}

// unplaced: the lock is free, and the waiter has a deadline and no place.
func (c clue) unplaced() bool {
	now := c.stateAt(c.lock, c.f.AtNs)
	return !now.Held() && scored(now, c.who) && !slices.Contains(now.Queue, c.who)
}

// queuedLate: a command put its thread into the queue when its call was over.
func (c clue) queuedLate() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.ret != nil && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.exec != nil && o.ret.AtNs < m.exec.AtNs && m.exec.AtNs <= c.until() &&
				!slices.Contains(m.before.Queue, o.who) && slices.Contains(m.after.Queue, o.who)
		})
	})
}

// tookItsOwnTurn: a command of a call that was over took the lock for the thread
// that was overtaken, and with it the thread's place in the queue.
func (c clue) tookItsOwnTurn() bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool {
		return o.Lock == c.lock && o.who == c.who && o.Action.Acquires() && o.ret != nil && slices.ContainsFunc(o.sent, func(m *command) bool {
			return m.Script == "acquire" && m.took(o.who) && o.ret.AtNs < m.exec.AtNs && m.exec.AtNs <= c.until() &&
				slices.Contains(m.before.Queue, o.who) && !slices.Contains(m.after.Queue, o.who)
		})
	})
}

// headIsDead: the lock is free, and a dead waiter stands first, its deadline
// still to come.
func (c clue) headIsDead() bool {
	s := c.stateAt(c.lock, c.f.AtNs)
	return !s.Held() && len(s.Queue) > 0 && c.died(s.Queue[0]) <= c.f.AtNs && c.f.AtNs < s.Deadlines[s.Queue[0]]*int64(time.Millisecond)
}

// headSleeps: the lock is free, and who stands first in its queue, not counting
// the dead whose deadlines have passed, sleeps on what it was told: how long to
// wait, when the hold had ttl to live.
func (c clue) headSleeps(is func(told, ttl time.Duration) bool) bool {
	s := c.stateAt(c.lock, c.f.AtNs)
	if s.Held() {
		return false
	}
	queue := s.Queue
	for len(queue) > 0 && c.died(queue[0]) <= c.f.AtNs && s.Deadlines[queue[0]]*int64(time.Millisecond) <= c.f.AtNs {
		queue = queue[1:]
	}
	if len(queue) == 0 {
		return false
	}
	m := c.lastTry(queue[0], c.f.AtNs)
	if m == nil || !c.asleep(m) {
		return false
	}
	var ttl time.Duration
	if m.before.Held() {
		ttl = time.Duration(m.before.ExpiresMs+1)*time.Millisecond - time.Duration(m.exec.AtNs)
	}
	return is(m.told(), ttl)
}

// toldNothing: of the commands of that second most were answered 0 while the
// lock was free and another stood in front.
func (c clue) toldNothing() bool {
	asked, told := 0, 0
	for _, m := range c.commands {
		if m.Script != "acquire" || m.exec == nil || m.Op == 0 || m.AtNs < c.f.AtNs || m.AtNs >= c.f.AtNs+int64(time.Second) || !slices.Contains(m.Owners, c.who) {
			continue
		}
		asked++
		if q := m.after.Queue; m.told() == 0 && !m.after.Held() && len(q) > 0 && q[0] != c.who {
			told++
		}
	}
	return told > asked/2
}

// toldZero: without the acquires of that second that were answered 0 it would not
// have been too often, and as long as all were answered so took little more than a
// millisecond.
func (c clue) toldZero() bool {
	if c.call == nil {
		return false
	}
	inSecond := func(at int64) bool { return c.f.AtNs <= at && at < c.f.AtNs+int64(time.Second) }
	others := 0        // beside those with which it answered to being woken
	before := 0        // of them, those that an attempt sends first: it asks for the replicas
	since := int64(-1) // when the first was answered 0 of those after which none was answered otherwise
	for _, m := range c.call.sent {
		script := m
		if m.script != nil {
			script = m.script // whose WAIT it is
		}
		switch {
		case !inSecond(m.AtNs):
		case script.Script != "acquire":
			before++
		case script.reply() != "0":
			others += before + 1
			before, since = 0, -1
		case since < 0:
			before, since = 0, script.exec.AtNs
		case script.exec.AtNs-since >= int64(1100*time.Microsecond):
			return false
		default:
			before = 0
		}
	}
	others += before
	for i := range c.rec.Events {
		if e := &c.rec.Events[i]; e.Kind == model.KindDeliver && e.Dir == "push" && e.Process == c.call.Process && inSecond(e.AtNs) {
			others--
		}
	}
	return others <= linearizability.TrafficMost
}

// sleepsUnqueued: the lock is free, and the waiter, which had queued, sleeps and
// stands in the queue no longer.
func (c clue) sleepsUnqueued() bool {
	m, now := c.lastTry(c.who, c.f.AtNs), c.stateAt(c.lock, c.f.AtNs)
	return m != nil && !now.Held() && slices.Contains(m.after.Queue, c.who) && !slices.Contains(now.Queue, c.who) &&
		c.asleep(m)
}

// asleep: the answer to an attempt has its thread sleep until the finding, or
// until what it sends then is under way.
func (c clue) asleep(m *command) bool { return c.asleepFrom(m, m.delivered) }

// asleepFrom: the same, had the answer come at that instant.
func (c clue) asleepFrom(m *command, at int64) bool {
	const way = 500 * time.Millisecond
	return m.told() < 0 || c.f.AtNs < at+int64(m.told()+way)
}

// sleepsLate: the waiter, or one who stands before it, waits for replicas to
// answer, or sleeps on what it was told since they did, and would not had it
// slept since the server did.
func (c clue) sleepsLate() bool {
	now := c.stateAt(c.lock, c.f.AtNs)
	return !now.Held() && slices.ContainsFunc(append(slices.Clip(now.Queue), c.who), func(who string) bool {
		m := c.lastAsked(who, c.f.AtNs)
		return m != nil && m.wait != nil && 0 <= m.replied && m.replied <= c.f.AtNs && !c.asleepFrom(m, m.replied) &&
			(m.delivered < 0 || c.f.AtNs < m.delivered || c.asleep(m))
	})
}

// interruptedAsleep: the waiter, or one who stands before it, was interrupted in
// its sleep, and sleeps what it was told from then on.
func (c clue) interruptedAsleep() bool {
	now := c.stateAt(c.lock, c.f.AtNs)
	return !now.Held() && slices.ContainsFunc(append(slices.Clip(now.Queue), c.who), func(who string) bool {
		m := c.lastTry(who, c.f.AtNs)
		return m != nil && !c.asleep(m) && slices.ContainsFunc(c.rec.Events, func(e model.Event) bool {
			return e.Kind == model.KindUse && e.Phase == "interrupt" && e.Met && e.Text == who && m.delivered <= e.AtNs && e.AtNs <= c.f.AtNs && c.asleepFrom(m, e.AtNs)
		})
	})
}

// headSendsAgain: the lock is free, and the call of who stands first in its queue
// will send again what its client had no answer to in time.
func (c clue) headSendsAgain() bool {
	now := c.stateAt(c.lock, c.f.AtNs)
	if now.Held() || len(now.Queue) == 0 {
		return false
	}
	m := c.lastAsked(now.Queue[0], c.f.AtNs)
	return m != nil && (m.delivered < 0 || c.f.AtNs < m.delivered)
}

// evictedAsleep: a waiter was taken out of the queue while it slept on an answer
// that lasted beyond its deadline, or had yet to hear it, or had slept so long that
// its next attempt was under way at its deadline.
func (c clue) evictedAsleep() bool {
	return c.evicted(func(m *command, deadline int64) bool {
		wakes := m.delivered + int64(m.told())
		return m.delivered >= 0 && (deadline < wakes || slices.ContainsFunc(c.calls[m.Op-1].sent, func(next *command) bool {
			return next.Script == "acquire" && wakes <= next.AtNs && next.AtNs <= deadline && next.exec != nil && deadline < next.exec.AtNs
		}))
	})
}

// evictedForUnit: a waiter was taken out of the queue before the time was over
// that its tryLock had given in seconds, and without a lease.
func (c clue) evictedForUnit() bool {
	return c.evicted(func(m *command, deadline int64) bool {
		o := c.calls[m.Op-1]
		return o.LeaseNs == 0 && deadline < o.AtNs+o.WaitNs && c.inSeconds(o)
	})
}

// inSeconds: the thread has a tryLock of such a wait that is given in seconds.
func (c clue) inSeconds(o *call) bool {
	for t, s := range c.of.Scenario.All() {
		if model.ThreadName(t.Process, t.Thread) == o.who && s.UnitSeconds && s.Wait != nil && int64(*s.Wait) == o.WaitNs {
			return true
		}
	}
	return false
}

// evicted: a waiter lost its place in the queue, or came back behind one who stood
// behind it, whose last attempt before and deadline, in nanoseconds, are so.
func (c clue) evicted(is func(m *command, deadline int64) bool) bool {
	until := c.until()
	return slices.ContainsFunc(c.states[c.lock], func(s change) bool {
		return s.AtNs <= until && slices.ContainsFunc(s.before.Queue, func(who string) bool {
			m := c.last(who, s.AtNs, func(m *command) bool { return m.exec != nil && m.exec.AtNs < s.AtNs })
			behind := s.before.Queue[slices.Index(s.before.Queue, who)+1:]
			place := slices.Index(s.State.Queue, who)
			gone := place < 0 && s.State.Owner != who ||
				place >= 0 && slices.ContainsFunc(s.State.Queue[:place], func(ahead string) bool { return slices.Contains(behind, ahead) })
			return m != nil && gone && is(m, s.before.Deadlines[who]*int64(time.Millisecond))
		})
	})
}

// struck reports whether the event is the beginning of a fault of that kind that
// strikes the process.
func (c clue) struck(e model.Event, process string, kind model.FaultKind) bool {
	f := c.rec.Params.Fault(e.Fault)
	return e.Kind == model.KindFault && f.Kind == kind && f.Names(process)
}

// died is when the thread's process crashed; never: the end of time.
func (c clue) died(who string) int64 {
	process := model.ProcessOf(who)
	for _, e := range c.rec.Events {
		if c.struck(e, process, model.FaultCrash) {
			return e.AtNs
		}
	}
	return math.MaxInt64
}

// lastTry is the last attempt of the thread's open call that was answered.
func (c clue) lastTry(who string, at int64) *command {
	return c.last(who, at, func(m *command) bool { return m.exec != nil && m.delivered >= 0 && m.delivered <= at })
}

// lastAsked is the last attempt of the thread's open call.
func (c clue) lastAsked(who string, at int64) *command {
	return c.last(who, at, func(m *command) bool { return m.AtNs <= at })
}

// last is the last attempt of the thread's open call of which something holds.
func (c clue) last(who string, at int64, is func(*command) bool) *command {
	var last *command
	for _, o := range c.calls {
		if o.who != who || o.Lock != c.lock || o.AtNs > at || o.ret != nil && o.ret.AtNs <= at {
			continue
		}
		for _, m := range o.sent {
			if m.Script == "acquire" && is(m) {
				last = m
			}
		}
	}
	return last
}

// toldNegative: the call was told a negative time.
func (c clue) toldNegative() bool {
	return c.call != nil && slices.ContainsFunc(c.call.sent, func(m *command) bool {
		return m.Script == "acquire" && m.exec != nil && m.told() < 0 && m.delivered <= c.f.AtNs
	})
}
