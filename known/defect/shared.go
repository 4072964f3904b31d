package defect

import (
	"slices"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// The causes in this file are common to libraries.

// RanTwice finds a call that ran several commands. Of an acquire, the commands that were granted
// count, less the grants that were given back. Of an unlock, all commands count if one of them had an
// effect. Of a force_unlock, the commands count from the first one that had an effect. The action
// stands for all actions that acquire, that unlock, or that force_unlock.
func (c *Case) RanTwice(action model.Action) *Cause {
	script := map[model.Action]model.Role{model.ActLock: model.RoleAcquire, model.ActUnlock: model.RoleUnlock, model.ActForceUnlock: model.RoleForceUnlock}[action]
	forced := action == model.ActForceUnlock
	for _, o := range c.Calls {
		switch {
		case o.Lock != c.Lock || o.AtNs > c.Until() || o.Action.Acquires() != action.Acquires():
			continue
		case forced && o.Action != action || !forced && !c.Suspects(o.Caller):
			continue
		}
		back, effects := 0, false // grants that were given back; whether any command had an effect
		var ran []*trace.Command
		for _, m := range o.Sent {
			if action.Acquires() && m.Script == model.RoleUnlock && m.MovedLevels(c.Lock, o.Caller) {
				back++
			}
			if m.Executed == nil || !forced && m.Script != script || m.Executed.AtNs > c.Until() && !c.Judged(model.JudgeLinearizable) {
				continue
			}
			effect := m.MovedLevels(c.Lock, o.Caller) || forced && m.Before(c.Lock).Held()
			effects = effects || effect
			if effect || !action.Acquires() && (!forced || effects) {
				ran = append(ran, m)
			}
		}
		if effects && len(ran)-back > 1 {
			return ByCommands(RanTwice, ran...)
		}
	}
	return nil
}

// GrantedUnheard finds a call that returned busy or an error, although one of its commands
// was granted.
func (c *Case) GrantedUnheard() *Cause {
	m := c.SentThat(model.RoleAcquire, func(o *trace.Call, m *trace.Command) bool {
		return c.Suspects(o.Caller) && o.Return != nil && (o.Return.Outcome == model.Busy || o.Return.Outcome == model.Failed) &&
			m.MovedLevels(c.Lock, o.Caller) && m.Executed.AtNs <= c.Until()
	})
	if m == nil {
		return nil
	}
	return ByCommands(GrantedUnheard, m)
}

// LateUnlock finds an unlock that ran and took a level after its call had returned without
// an answer.
func (c *Case) LateUnlock() *Cause {
	m := c.SentThat(model.RoleUnlock, func(o *trace.Call, m *trace.Command) bool {
		return c.Suspects(o.Caller) && o.Action == model.ActUnlock && o.Return != nil && o.Return.Outcome == model.Unknown &&
			m.Executed != nil && o.Return.AtNs < m.Executed.AtNs && m.Executed.AtNs <= c.Until() && m.MovedLevels(c.Lock, o.Caller)
	})
	if m == nil {
		return nil
	}
	return ByCommands(LateUnlock, m)
}

// FreeUnlock finds an unlock that found the lock free and was answered as if its thread had held
// the lock. A finding of linearizability is due to such unlocks, earlier and later ones, if it
// disappears when they are refused. Any other finding must be about the unlock itself.
func (c *Case) FreeUnlock() *Cause {
	if c.Judged(model.JudgeLinearizable) && len(c.Hidden()) > 0 {
		return nil
	}
	for _, o := range c.CallsOn(c.Lock) {
		if c.Judged(model.JudgeLinearizable) || o == c.Call {
			if m := FoundFree(o); m != nil {
				return ByCommands(FreeUnlock, m)
			}
		}
	}
	return nil
}

// FoundFree returns the command of an unlock that found the lock free and was answered 1. It
// returns nil if there is none, or if another command of the unlock took a level.
func FoundFree(o *trace.Call) *trace.Command {
	if o.Action != model.ActUnlock || o.Return == nil || o.Return.Outcome != model.Released {
		return nil
	}
	var found *trace.Command
	for _, m := range o.Sent {
		switch {
		case m.Script != model.RoleUnlock:
		case m.MovedLevels(o.Lock, o.Caller):
			return nil
		case found == nil && m.Reply() == "1" && !m.Before(o.Lock).Held():
			found = m
		}
	}
	return found
}

// Hidden judges linearizability again as if each unlock of a free lock had been refused. It
// returns the cases that it finds. Such unlocks can hide other findings. It returns nil if the
// lock has no such unlock.
func (c *Case) Hidden() []*Case {
	if c.hidden != nil {
		return *c.hidden
	}
	out := c.judgedRefused()
	c.hidden = &out
	return out
}

func (c *Case) judgedRefused() []*Case {
	if !slices.ContainsFunc(c.CallsOn(c.Lock), func(o *trace.Call) bool { return FoundFree(o) != nil }) {
		return nil
	}
	return c.judgedAs(model.NotHeld, func(o *trace.Call) bool { return FoundFree(o) != nil })
}

// judgedAs judges linearizability again as if the calls that pass the test had another outcome. It
// returns the cases that it finds about the lock.
func (c *Case) judgedAs(outcome model.Outcome, test func(*trace.Call) bool) (out []*Case) {
	changed := &model.Record{Params: c.Record.Params, Events: slices.Clone(c.Record.Events)}
	for i := range changed.Events {
		if e := &changed.Events[i]; e.Kind == model.KindReturn && test(c.Calls[e.Op-1]) {
			e.Outcome = outcome
		}
	}
	run := trace.New(changed)
	for _, f := range judges.JudgeLinearizable(run) {
		if f.Class == judges.ClassBug && f.Lock == c.Lock {
			out = append(out, NewCase(c.Verdict, run, f))
		}
	}
	return out
}

// DueToAnswer reports whether a finding of linearizability is due to the answer of a call: it
// disappears if the call failed and did nothing. The finding may name another call, which has no
// place beside that answer.
func (c *Case) DueToAnswer(o *trace.Call) bool {
	return c.Judged(model.JudgeLinearizable) &&
		!slices.ContainsFunc(c.judgedAs(model.Failed, func(x *trace.Call) bool { return x == o }), func(other *Case) bool { return other.AtNs <= c.AtNs })
}

// EndedOthersHold returns the change in which a command caused the finding by ending another
// owner's hold; nil: none. The judge of misdelete has reported this command.
func (c *Case) EndedOthersHold() *trace.Change {
	for _, f := range c.Verdict.Findings {
		if f.Judge != model.JudgeMisdelete {
			continue
		}
		for _, s := range c.Changes(f.Lock) {
			if s.AtNs == f.AtNs && s.Ended() && s.MadeFor(f.Thread) && c.harmed(s) {
				return s
			}
		}
	}
	return nil
}

// harmed reports whether the command that ended a hold caused the finding. A finding of misdelete
// must be about this command. For any other finding, HarmedBy decides.
func (c *Case) harmed(s *trace.Change) bool {
	if c.Judged(model.JudgeMisdelete) {
		return s.Lock == c.Lock && s.AtNs == c.AtNs && s.MadeFor(c.Who)
	}
	return c.HarmedBy(s)
}

// HarmedBy reports whether the command that ended a hold caused the finding: the finding is about
// this loss, or about a call during the time in which the owner still counted on the hold.
func (c *Case) HarmedBy(s *trace.Change) bool {
	if c.Judged(model.JudgeLinearizable) {
		return s.Lock == c.Lock && s.AtNs <= c.Until() && c.AtNs <= c.CountedOnUntil(s.AtNs, s.Before)
	}
	loss := c.Finding.Loss
	return loss != nil && loss.Cause == model.LossEnded && loss.Lock == s.Lock && loss.Msg == s.By.Msg
}

// CountedOnUntil returns the instant until which the calls of the owner say that it has the hold
// that the server held at an instant. That is the return of the unlock of its last level, or the
// end of a lease that the owner asked for. If each grant is a hold of its own, an unlock that is told
// that there is no hold says nothing about one whose acquire had no answer.
func (c *Case) CountedOnUntil(at int64, hold *model.LockState) int64 {
	until, levels := trace.Never, 0
	unheard := false // whether the last acquire had no answer
	for _, o := range c.CallsOn(c.Lock) {
		switch {
		case o.Caller != hold.Owner:
		case o.Action.Acquires() && (o.Outcome == model.Granted || o.Outcome == model.Unknown):
			levels++
			unheard = c.Record.Params.PerGrant && o.Outcome == model.Unknown
			switch {
			case o.AtNs > at:
			case o.LeaseNs > 0 && hold.ExpiresMs >= 0:
				until = (hold.ExpiresMs + 1) * int64(time.Millisecond)
			default:
				until = trace.Never
			}
		case unheard && o.Action == model.ActUnlock && o.Outcome == model.NotHeld:
		case o.Action == model.ActUnlock && (o.Outcome == model.Released || o.Outcome == model.StillHeld || o.Outcome == model.NotHeld):
			if levels = max(0, levels-1); levels == 0 && o.ReturnedNs() >= at {
				return min(until, o.ReturnedNs())
			}
		}
	}
	return until
}
