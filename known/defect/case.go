package defect

import (
	"slices"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios/play"
)

// A Case is a finding with the record in which it was made.
type Case struct {
	*trace.Run
	Verdict play.Verdict
	Finding judges.Finding
	Lock    string      // the lock that the finding is about
	Who     string      // the thread that the finding is about, as process/thread
	Call    *trace.Call // the call that the finding is about; nil: none
	AtNs    int64       // when the harm was done

	hidden *[]*Case // what Hidden returns; nil until somebody asks
}

// NewCase returns the case of a finding of a run.
func NewCase(v play.Verdict, t *trace.Run, f judges.Finding) *Case {
	c := &Case{Run: t, Verdict: v, Finding: f, Lock: f.Lock, Who: f.Thread, AtNs: f.AtNs}
	for _, op := range f.Ops {
		if model.ThreadName(op.Process, op.Thread) != c.Who {
			continue
		}
		for _, o := range t.CallsOn(c.Lock) {
			if o.Caller == c.Who && o.AtNs == op.CallNs {
				c.Call = o
			}
		}
		// If the lease ended the hold, the cause comes before the end of the lease, even if
		// another thread believed to hold the lock only later.
		if c.Overlapped() && op == f.Ops[0] && op.CallNs <= f.Loss.AtNs {
			c.AtNs = f.Loss.AtNs
		}
		break
	}
	return c
}

// Judged reports whether one of these judges made the finding.
func (c *Case) Judged(judges ...string) bool { return slices.Contains(judges, c.Finding.Judge) }

// Breaks reports whether the finding breaks one of these rules of its judge.
func (c *Case) Breaks(forms ...model.Form) bool { return slices.Contains(forms, c.Finding.Form) }

// Overlapped reports whether two threads believed to hold the lock, and the lease of
// one had ended.
func (c *Case) Overlapped() bool {
	return c.Judged(model.JudgeMutualExclusion) && c.Finding.Loss.Expired()
}

// LeaseEnded reports whether the finding rests on a hold whose lease ran out.
func (c *Case) LeaseEnded() bool { return c.Breaks(model.FormUnrenewed) || c.Overlapped() }

// AboutLease reports whether the finding is about the length or the end of a lease.
func (c *Case) AboutLease() bool { return c.LeaseEnded() || c.Breaks(model.FormLongLease) }

// WhileHeld returns a copy of the case of a liveness finding, at the last instant at which the lock
// was held. It returns nil if the lock is held now, or was not held within the last second. A
// waiter may wait at least a second for a free lock, so the wait began during that hold.
func (c *Case) WhileHeld() *Case {
	if now := c.Now(); !c.Judged(model.JudgeLiveness) || now.Held() {
		return nil
	}
	var earlier *Case
	for _, s := range c.Changes(c.Lock) {
		if c.AtNs-int64(time.Second) < s.AtNs && s.AtNs <= c.AtNs && s.Before.Held() && !s.After.Held() {
			copied := *c
			copied.AtNs = s.AtNs - 1
			earlier = &copied
		}
	}
	return earlier
}

// AboutHolder returns the case itself, unless the finding is about a waiter. Then it
// returns a copy about the thread that holds the lock on the server.
func (c *Case) AboutHolder() *Case {
	if !c.Judged(model.JudgeLiveness) {
		return c
	}
	copied := *c
	copied.Who = c.Holder()
	return &copied
}

// Until returns the last instant that may matter to the finding. For the judge of
// linearizability, that is the return of the call that the finding names. If the outcome of
// the call is unknown, a command of the call may run after the return. Then it is the
// instant of the last such run.
func (c *Case) Until() int64 {
	switch {
	case !c.Judged(model.JudgeLinearizable):
	case c.Call != nil && c.Call.Return != nil:
		at := c.Call.Return.AtNs
		for _, m := range c.Call.Sent {
			if c.Call.Return.Outcome == model.Unknown && m.Executed != nil {
				at = max(at, m.Executed.AtNs)
			}
		}
		return at
	case c.Call == nil: // a renewal belongs to no call
		for _, m := range c.Commands {
			if m.AtNs == c.AtNs && m.Executed != nil {
				return max(m.Executed.AtNs, m.DeliveredNs)
			}
		}
	}
	return c.AtNs
}

// Now returns the server's state of the lock at the instant of the harm.
func (c *Case) Now() *model.LockState { return c.StateAt(c.Lock, c.AtNs) }

// Process returns the process of the thread that the finding is about.
func (c *Case) Process() string { return model.ProcessOf(c.Who) }

// Watchdog returns the lease that the watchdog gives.
func (c *Case) Watchdog() time.Duration { return c.Record.Params.Watchdog }

// Holder returns the thread that holds the lock on the server, or "" if none does.
func (c *Case) Holder() string {
	if s := c.StateAt(c.Lock, c.Until()); s.Held() {
		return s.Owner
	}
	return ""
}

// lastHolder returns the thread that holds the lock on the server, or held it last.
func (c *Case) lastHolder() string {
	last, until := "", c.Until()
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs <= until && s.After.Held() {
			last = s.After.Owner
		}
	}
	return last
}

// Suspects reports whether the finding may be due to a thread. It may be due to the thread
// that the finding names, and to the thread that held the lock last. A finding of
// linearizability may be due to any thread.
func (c *Case) Suspects(who string) bool {
	return who == c.Who || who == c.lastHolder() || c.Judged(model.JudgeLinearizable)
}

// CallThat returns the first call on the lock that passes the test; nil: none.
func (c *Case) CallThat(test func(*trace.Call) bool) *trace.Call {
	for _, o := range c.CallsOn(c.Lock) {
		if test(o) {
			return o
		}
	}
	return nil
}

// CommandThat returns the first command of the script on the lock that passes the test;
// nil: none.
func (c *Case) CommandThat(script model.Role, test func(*trace.Command) bool) *trace.Command {
	for _, m := range c.CommandsOn(c.Lock) {
		if m.Script == script && test(m) {
			return m
		}
	}
	return nil
}

// SentThat returns the first command of the script of a call on the lock that passes
// the test; nil: none.
func (c *Case) SentThat(script model.Role, test func(*trace.Call, *trace.Command) bool) *trace.Command {
	for _, o := range c.CallsOn(c.Lock) {
		for _, m := range o.Sent {
			if m.Script == script && test(o, m) {
				return m
			}
		}
	}
	return nil
}

// For reports whether a command is about the lock and speaks for a thread.
func (c *Case) For(m *trace.Command, who string) bool {
	return slices.Contains(m.Locks, c.Lock) && slices.Contains(m.Owners, who)
}

// Ended reports whether a call had returned with one of the outcomes by an instant.
func Ended(o *trace.Call, by int64, outcomes ...model.Outcome) bool {
	return o.Return != nil && o.Return.AtNs <= by && slices.Contains(outcomes, o.Return.Outcome)
}

// HoldsBegan returns the instants at which holds of the thread began on the server.
func (c *Case) HoldsBegan() (out []int64) {
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs <= c.AtNs && s.Before.Owner != c.Who && s.After.Owner == c.Who {
			out = append(out, s.AtNs)
		}
	}
	return out
}

// HoldBegan returns the instant at which the thread's last hold began on the server, or
// 0 if it had none.
func (c *Case) HoldBegan() int64 {
	began := c.HoldsBegan()
	if len(began) == 0 {
		return 0
	}
	return began[len(began)-1]
}

// HoldEnded returns the instant at which the thread's last hold ended on the server, or
// the instant of the finding if it did not end.
func (c *Case) HoldEnded() int64 {
	at := c.AtNs
	for _, s := range c.Changes(c.Lock) {
		if s.AtNs <= c.AtNs && s.Before.Owner == c.Who && s.After.Owner != c.Who {
			at = s.AtNs
		}
	}
	return at
}

// Crash returns the crash of the process of a thread. ok is false if there is none.
func (c *Case) Crash(who string) (crash trace.Fault, ok bool) {
	all := c.FaultsOn(model.ProcessOf(who), model.FaultCrash)
	if len(all) == 0 {
		return trace.Fault{}, false
	}
	return all[0], true
}

// Died reports whether the process of a thread had crashed when the harm was done.
func (c *Case) Died(who string) bool {
	crash, ok := c.Crash(who)
	return ok && crash.FromNs <= c.AtNs
}

// LastAttempt returns the last attempt that passes the test, of the call of the thread that
// is open at the instant at; nil: none.
func (c *Case) LastAttempt(who string, at int64, test func(*trace.Command) bool) *trace.Command {
	var last *trace.Command
	for _, o := range c.CallsOn(c.Lock) {
		if o.Caller != who || o.AtNs > at || o.Return != nil && o.Return.AtNs <= at {
			continue
		}
		for _, m := range o.Sent {
			if m.Script == model.RoleAcquire && test(m) {
				last = m
			}
		}
	}
	return last
}
