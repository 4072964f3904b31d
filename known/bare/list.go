// Package bare lists the known defects of the bare locks. A bare lock is one string
// under one key.
package bare

import (
	"slices"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios/subject"
)

// onServer are the judges that notice when the server and the owner count differently.
var onServer = []string{model.JudgeHoldCount, model.JudgeLinearizable, model.JudgeLiveness}

// Which locks have a defect.

// among returns a function that reports whether a lock is the bare lock with one of these names.
func among(names ...string) func(*subject.Subject) bool {
	return defect.Of("bare", func(l *subject.Subject) bool { return slices.Contains(names, l.Unplanted().Name) })
}

var (
	deletesAny = among("setnx-del", "setnx-get-del")
	oneString  = among("string-reentrant")
	setNX      = among("setnx-del", "setnx-get-del", "setnx-cad")
	anyBare    = among("setnx-del", "setnx-get-del", "setnx-cad", "string-reentrant")
)

// misdeleted finds the command that caused the finding by ending another owner's hold.
func misdeleted(c *defect.Case) *defect.Cause {
	if s := c.EndedOthersHold(); s != nil {
		return defect.ByChange(defect.EndedOthersHold, s)
	}
	return nil
}

// enteredAgain finds an acquire that ran for the owner that held the lock already. The finding is
// about the hold that the owner entered again, or about a call during the time in which the owner
// counted on it.
func enteredAgain(c *defect.Case) *defect.Cause {
	m := c.CommandThat(model.RoleAcquire, func(m *trace.Command) bool {
		if m.Executed == nil || m.Executed.AtNs > c.Until() {
			return false
		}
		hold := m.Before(c.Lock)
		if hold.Owner == "" || !slices.Contains(m.Owners, hold.Owner) {
			return false
		}
		if c.Judged(model.JudgeLinearizable) {
			return c.AtNs <= c.CountedOnUntil(m.Executed.AtNs, m.After(c.Lock))
		}
		return hold.Owner == c.Who && ofLastHold(c, m)
	})
	if m == nil {
		return nil
	}
	return defect.ByCommands(defect.SecondEntry, m)
}

// ofLastHold reports whether a command ran during the hold that the thread of the case had, or
// lost, last.
func ofLastHold(c *defect.Case, m *trace.Command) bool {
	began := int64(0)
	for _, s := range c.Changes(c.Lock) {
		if loss := c.Finding.Loss; s.AtNs <= c.Until() && (loss == nil || s.AtNs < loss.AtNs) && s.Started() && s.After.Owner == c.Who {
			began = s.AtNs
		}
	}
	return began <= m.Executed.AtNs && (c.Finding.Loss == nil || m.Executed.AtNs <= c.Finding.Loss.AtNs)
}

// foundItself finds a command that met the hold that an earlier command of its call had
// taken, or the grant of a call that came back as busy.
func foundItself(c *defect.Case) *defect.Cause {
	if found := c.GrantedUnheard(); found != nil {
		return found
	}
	for _, o := range c.Calls {
		if o.Lock != c.Lock || !c.Suspects(o.Caller) {
			continue
		}
		var took *trace.Command
		for _, m := range o.Sent {
			if took != nil && m.Script == model.RoleAcquire && m.AtNs <= c.Until() && m.Executed != nil && m.Before(c.Lock).Owner == o.Caller && !m.MovedLevels(c.Lock, o.Caller) {
				return defect.ByCommands(defect.FoundItself, took, m)
			}
			if m.MovedLevels(c.Lock, o.Caller) {
				took = m
			}
		}
	}
	return nil
}

// takenAnew finds the commands of one call that took the lock more than once. It returns nil
// if a command between them found the hold of its call: its client was told that the lock is
// busy, and tried anew.
func takenAnew(c *defect.Case) *defect.Cause {
	cause := c.RanTwice(model.ActLock)
	if cause == nil {
		return nil
	}
	o := c.Calls[cause.Op-1]
	for _, m := range o.Sent {
		if m.Script == model.RoleAcquire && m.Executed != nil && cause.Msgs[0] < m.Msg && m.Msg < cause.Msgs[len(cause.Msgs)-1] &&
			m.Before(c.Lock).Owner == o.Caller && !m.MovedLevels(c.Lock, o.Caller) {
			return nil
		}
	}
	return cause
}

// Defects are the known defects. Where a record has the causes of several, the first of them
// names a finding.
var Defects = []defect.Defect{
	{
		ID:      "SETNX-misdelete",
		Title:   "a late DEL deletes the hold of another owner",
		Story:   "A holder works past its lease, another takes the key, and the holder's DEL removes the key of the other: the misdelete. Further failures of the run may follow from it. A comparison before the DEL does not help if the lease ends between GET and DEL. The lock is to blame: it must compare and delete in one script.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeMisdelete, model.JudgeLinearizable, model.JudgeWorkload},
		Applies: deletesAny,
		Cause:   misdeleted,
		Since:   5,
	},
	{
		ID:      "STRING-reentry",
		Title:   "one string cannot count a second entry",
		Story:   "A second entry overwrites the first in the one string that the key holds, and the first unlock gives up both. The form in which the lock stores its hold is to blame.",
		Judges:  []string{model.JudgeLinearizable, model.JudgeHoldCount, model.JudgeMutualExclusion},
		Applies: oneString,
		Cause:   enteredAgain,
		Since:   5,
	},
	{
		ID:      "SETNX-acquire-resend-busy",
		Title:   "a SET that the client sends again finds the key of the first SET, and its caller is told that the lock is busy",
		Story:   "The answer to SET NX is late or lost, and go-redis sends the command again, as it does up to three times by default. The second SET finds the key that the first one left and is answered nil. The caller is told that another has the lock, and nobody gives the lock up before its lease ends. The lock is to blame: it must recognize its own command by the value that it left.",
		Judges:  append([]string{model.JudgeMutualExclusion}, onServer...),
		Applies: setNX,
		Cause:   foundItself,
	},
	{
		ID:      "SETNX-acquire-resend",
		Title:   "a SET that the client sends again takes the lock anew after the first hold of the same call has ended",
		Story:   "The first SET NX takes the lock and its answer is late. A force unlock, or the end of the lease, ends that hold. Then the second SET arrives and takes the lock again. One call held the lock twice, and whoever ended the first hold finds the lock taken by a call that began before. The lock is to blame: it sends a command again that cannot be told from a new one. The caller is responsible for the force unlock.",
		Judges:  append([]string{model.JudgeMutualExclusion}, onServer...),
		Applies: anyBare,
		Cause:   takenAnew,
	},
	{
		ID:      "SETNX-unlock-resend",
		Title:   "an unlock that the client sends again finds the key gone, and its caller is told that it did not hold the lock",
		Story:   "The answer to the unlock is late or lost, and go-redis sends it again. The second command finds no key to delete. The caller, whose lock was released in order, is told that it had lost it, and may undo its work. The lock is to blame, as Redisson was (4871).",
		Judges:  append([]string{model.JudgeMutualExclusion}, onServer...),
		Applies: anyBare,
		Cause:   func(c *defect.Case) *defect.Cause { return c.RanTwice(model.ActUnlock) },
	},
	{
		ID:      "SETNX-force-unlock-resend",
		Title:   "a force_unlock that is sent again also ends the next owner's hold, or answers that there was no hold",
		Story:   "The answer to a force unlock is lost, and the executor sends it again. A thread that got the lock in between loses it. The release is to blame: a force unlock leaves no mark by which its second run could be recognized.",
		Judges:  []string{model.JudgeLinearizable},
		Applies: anyBare,
		Cause:   func(c *defect.Case) *defect.Cause { return c.RanTwice(model.ActForceUnlock) },
	},
	{
		ID:      "late-unlock",
		Title:   "an unlock of unknown outcome arrives late and takes a level of a later hold of its thread (an owner is client and thread, not one acquisition)",
		Story:   "An unlock got no answer and is still on its way. The thread locks anew, and then the unlock arrives and ends the new hold. An owner is named by client and thread and not by acquisition, in every release and in most locks of this kind. This form of name is to blame, and a caller who locks again after an unknown outcome.",
		Judges:  append([]string{model.JudgeMutualExclusion, model.JudgeLease}, onServer...),
		Applies: anyBare,
		Cause:   (*defect.Case).LateUnlock,
	},
}
