package known

import (
	"slices"
	"time"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// The kinds of causes that the locks of this module add.
var (
	endedEarly     = defect.NewKind("ended-early", "the server ended the hold before its lease was over")
	revisionAgain  = defect.NewKind("revision-again", "the command named a revision that the server had given away again after a loss of its data")
	markEnded      = defect.NewKind("mark-ended", "the mark of a deletion ended during the attempt, which told its caller that the lock is taken")
	toldTaken      = defect.NewKind("told-taken", "the attempt found the lock free, had no answer to its next request, and told its caller that the lock is taken")
	freeDelete     = defect.NewKind("free-delete", "the unlock found no hold of its thread and was answered as if there had been one")
	keptTooLong    = defect.NewKind("kept-too-long", "the renewal found the key although its time to live was over")
	tookTheTTL     = defect.NewKind("took-the-ttl", "the renewal left the hold without an end")
	oldCleanUp     = defect.NewKind("old-clean-up", "the call ended its own hold with the clean-up of an earlier try")
	cleansUp       = defect.NewKind("cleans-up", "the call sent a second command after each try")
	setAnew        = defect.NewKind("set-anew", "the extension was done for a caller that did not have the hold")
	leftKeys       = defect.NewKind("left-keys", "the call ended and left the keys that its try had set")
	unconnected    = defect.NewKind("unconnected", "the call had no connection in time, so that its try was given up, and nothing was to wake it")
	gaveUpTry      = defect.NewKind("gave-up-try", "the try was given up, and nothing was to wake its call")
	oneKeyTaken    = defect.NewKind("one-key-taken", "the attempt ended at the key that the first command had set, although no majority was taken")
	unasked        = defect.NewKind("unasked-unlock", "the unlock sent nothing, and the server held the lock for its thread")
	deletedFirst   = defect.NewKind("deleted-first", "the client deleted the keys before it told the holder")
	toldAfterLease = defect.NewKind("told-after-lease", "the lease ended, and the client had not told the holder")
	connectedAnew  = defect.NewKind("connected-anew", "the call had to make a connection")
	endsUnheard    = defect.NewKind("ends-unheard", "the client refused a session that it had, since the server knew less than the client")
	otherSession   = defect.NewKind("other-session", "the unlock asked a session that did not have the lock")
	placeGone      = defect.NewKind("place-gone", "another hand removed the place of the thread, whose call was granted all the same")
	sessionOfOther = defect.NewKind("session-of-other", "the command ran in the session of the holder, for another thread")
)

// misdeleted finds the command that ended another owner's hold.
func misdeleted(c *defect.Case) *defect.Cause {
	if s := c.EndedOthersHold(); s != nil && s.By.Script != model.RoleRenew {
		return defect.ByChange(defect.EndedOthersHold, s)
	}
	return nil
}

// cameAgain finds a command with a revision that the server has given out twice, since it lost data in
// between. The command ended the hold of another owner, or it is a renewal that began a hold, or an unlock of a
// key that was deleted before. If renewals is set, cameAgain finds only renewals.
func cameAgain(renewals bool) func(*defect.Case) *defect.Cause {
	return func(c *defect.Case) *defect.Cause {
		if s := c.EndedOthersHold(); s != nil && (!renewals || s.By.Script == model.RoleRenew) {
			for _, who := range s.By.Threads {
				if lostSince(c, s.Lock, who, s.AtNs) {
					return defect.ByChange(revisionAgain, s)
				}
			}
		}
		if c.Call == nil || !c.Judged(model.JudgeLinearizable) {
			return nil
		}
		if s := began(c); s != nil && s.By != nil && s.By.Script == model.RoleRenew && lostSince(c, c.Lock, c.Who, s.AtNs) {
			return defect.ByChange(revisionAgain, s)
		}
		if renewals || !lostSince(c, c.Lock, c.Who, c.Until()) {
			return nil
		}
		if ran := foundNoHold(c.Call); ran != nil {
			return defect.ByCommands(revisionAgain, ran...)
		}
		return nil
	}
}

// began returns the change that began the hold which the thread of the finding has when its call begins;
// nil: it has none.
func began(c *defect.Case) *trace.Change {
	starts := c.StartsUpTo(c.Lock, c.AtNs)
	if len(starts) == 0 || c.StateAt(c.Lock, c.AtNs).Owner != c.Who {
		return nil
	}
	return starts[len(starts)-1]
}

// lostSince reports whether the server lost its data after a thread last had a lock, and gave the
// lock to another thread between the loss and an instant.
func lostSince(c *defect.Case, lock, who string, atNs int64) bool {
	var had, given int64 = -1, -1 // the end of the thread's last hold, and the beginning of another's
	for _, s := range c.ChangesUpTo(lock, atNs) {
		switch {
		case s.Ended() && s.Before.Owner == who:
			had = s.AtNs
		case s.Started() && s.After.Owner != who:
			given = s.AtNs
		}
	}
	return had >= 0 && slices.ContainsFunc(c.Faults, func(f trace.Fault) bool { return f.Spec.LosesData() && had <= f.FromNs && f.FromNs < given })
}

// endedBeforeLease finds the hold whose end led to the finding. Its lease began when the server gave it, and
// the server ended it before the lease was over.
func endedBeforeLease(c *defect.Case) *defect.Cause {
	loss := c.Finding.Loss
	if !loss.Expired() {
		return nil
	}
	var began, ended *trace.Change
	for _, s := range c.Changes(loss.Lock) {
		switch {
		case s.AtNs > loss.AtNs:
		case s.Started() && s.After.Owner == loss.Thread:
			began, ended = s, nil
		case s.Ended() && s.Before.Owner == loss.Thread:
			ended = s
		}
	}
	if began == nil || ended == nil || ended.By != nil || ended.Fault > 0 || ended.AtNs-began.AtNs >= int64(c.Watchdog()) {
		return nil
	}
	return defect.ByChange(endedEarly, ended)
}

// foundDeleted finds a try that was told that the lock is taken, although none of its requests found
// it taken. The finding is about this try, or about a call that has no place beside its answer.
func foundDeleted(c *defect.Case) *defect.Cause {
	if cause := misled(c, c.Call); cause != nil {
		return cause
	}
	for _, o := range c.CallsOn(c.Lock) {
		if o == c.Call || o.AtNs > c.Until() {
			continue
		}
		if cause := misled(c, o); cause != nil && c.DueToAnswer(o) {
			return cause
		}
	}
	return nil
}

// misled finds the last request of a try that was told that the lock is taken, although no request of the
// try found it taken before the try returned. There are two cases. The last request had no answer when
// the try returned. Or the first request still found the mark that the end of an earlier hold had left, and the
// mark had ended when the last request came.
func misled(c *defect.Case, o *trace.Call) *defect.Cause {
	if o == nil || !o.Action.Acquires() || o.Return == nil || o.Return.Outcome != model.Busy {
		return nil
	}
	var deleted *trace.Change
	for _, s := range c.ChangesUpTo(c.Lock, o.AtNs) {
		if s.Ended() {
			deleted = s
		}
	}
	var asked []*trace.Command
	for _, m := range o.Sent {
		if m.Script != model.RoleAcquire {
			continue
		}
		if m.Executed != nil && m.Executed.AtNs <= o.Return.AtNs && m.Before(c.Lock).Held() {
			return nil
		}
		asked = append(asked, m)
	}
	if deleted == nil || len(asked) < 2 {
		return nil
	}
	first, last := asked[0].Executed, asked[len(asked)-1]
	over := deleted.AtNs + int64(c.Watchdog())
	switch {
	case last.RepliedNs < 0 || last.RepliedNs > o.Return.AtNs:
		return defect.ByCommands(toldTaken, last)
	case first != nil && first.AtNs < over+int64(time.Second) && over <= last.Executed.AtNs:
		return defect.ByCommands(markEnded, last)
	}
	return nil
}

// renewedLate finds the renewal that last prolonged the present hold, if the time to live of the key was
// over when it ran.
func renewedLate(c *defect.Case) *defect.Cause {
	var last *trace.Command
	for _, s := range c.ChangesUpTo(c.Lock, c.AtNs) {
		if last = nil; s.After.Held() && s.By != nil && s.By.Script == model.RoleRenew && s.Before.Owner == s.After.Owner {
			last = s.By
		}
	}
	if last == nil || last.Executed == nil || !overdue(last.Before(c.Lock), last.Executed.AtNs) {
		return nil
	}
	return defect.ByCommands(keptTooLong, last)
}

// overdue reports whether a hold should have ended by an instant.
func overdue(s *model.LockState, atNs int64) bool {
	return s.Held() && s.ExpiresMs >= 0 && s.ExpiresMs*int64(time.Millisecond) < atNs
}

// deletedNothing finds an unlock that was answered as done. None of its commands ended a hold of its
// thread.
func deletedNothing(c *defect.Case) *defect.Cause {
	if ran := foundNoHold(c.Call); ran != nil {
		return defect.ByCommands(freeDelete, ran...)
	}
	return nil
}

// foundNoHold returns the commands of an unlock that was answered as done. It returns nil if one of
// them found a hold of the thread.
func foundNoHold(o *trace.Call) (ran []*trace.Command) {
	if o == nil || o.Action != model.ActUnlock || o.Return == nil || o.Return.Outcome != model.Released {
		return nil
	}
	for _, m := range o.Sent {
		switch {
		case m.Script != model.RoleUnlock || m.Executed == nil:
		case m.Before(o.Lock).Owner == o.Caller:
			return nil
		default:
			ran = append(ran, m)
		}
	}
	return ran
}

// unaskedUnlock finds the unlock of the thread for which the server still holds the lock. The unlock
// was told that the thread does not hold it, and sent nothing. A hold that a late renewal prolonged is
// another defect.
func unaskedUnlock(c *defect.Case) *defect.Cause {
	if renewedLate(c) != nil {
		return nil
	}
	holder := c.Now().Owner
	for _, o := range slices.Backward(c.CallsOn(c.Lock)) {
		if o.Caller == holder && o.AtNs <= c.AtNs {
			if o.Action == model.ActUnlock && defect.Ended(o, c.AtNs, model.NotHeld) && len(o.Sent) == 0 {
				return defect.ByCall(unasked, o)
			}
			return nil
		}
	}
	return nil
}

// endless finds the renewal after which the present hold has no end. A finding about the keys that
// were left at the end of the run names no lock.
func endless(c *defect.Case) *defect.Cause {
	if c.Breaks(model.FormLeftover) {
		for _, lock := range c.Locks {
			if cause := endlessOf(c, lock); cause != nil {
				return cause
			}
		}
		return nil
	}
	return endlessOf(c, c.Lock)
}

func endlessOf(c *defect.Case, lock string) *defect.Cause {
	var took *trace.Command
	for _, s := range c.ChangesUpTo(lock, c.Until()) {
		switch {
		case s.Before.Held() && s.After.Held() && s.Before.ExpiresMs >= 0 && s.After.ExpiresMs < 0 && s.By != nil && s.MadeFor(s.After.Owner):
			took = s.By
		case !s.After.Held() || s.After.ExpiresMs >= 0:
			took = nil
		}
	}
	if took == nil {
		return nil
	}
	return defect.ByCommands(tookTheTTL, took)
}

// cleanedUpLate finds the command that ended a hold of the same call that took it. The command was
// sent before the one that took the hold, to clean up after another try.
func cleanedUpLate(c *defect.Case) *defect.Cause {
	var took *trace.Change
	for _, s := range c.Changes(c.Lock) {
		switch {
		case s.Started():
			took = s
		case s.Ended() && took != nil && s.Call() != nil && s.Call() == took.Call() && s.By.AtNs < took.By.AtNs:
			if c.Judged(model.JudgeLease) && c.Who == s.Before.Owner && c.Call == s.Call() || !c.Judged(model.JudgeLease) && c.HarmedBy(s) {
				return defect.ByChange(oldCleanUp, s)
			}
		}
	}
	return nil
}

// asksAgain finds the call whose commands were too many in a second: for each try that failed there is
// a command that cleaned up after it. The clean-up of the last try may come when the second is over.
func asksAgain(c *defect.Case) *defect.Cause {
	o := c.CallThat(func(o *trace.Call) bool { return o.Caller == c.Who && o.AtNs <= c.AtNs && c.AtNs <= o.ReturnedNs() })
	if o == nil {
		return nil
	}
	tries, others := 0, 0
	last := 0 // the tries since the last clean-up
	over, cleaned := c.AtNs+int64(time.Second), false
	for _, m := range o.Sent {
		try := m.Command == "SET"
		if m.AtNs >= over && try && cleaned {
			last = 0
			break // the next try
		}
		switch {
		case m.AtNs < c.AtNs || !slices.Contains(m.Locks, c.Lock) || try && m.AtNs >= over:
		case try:
			tries++
			last++
		default:
			others++
			last, cleaned = 0, m.AtNs >= over
		}
	}
	if o.Outcome == model.Granted {
		tries -= last // the last try did not fail
	}
	if tries == 0 || others < tries {
		return nil
	}
	return defect.ByCall(cleansUp, o)
}

// interruptedTry finds a call that ended without the lock. Its last try had set keys, and the call
// sent nothing after that to delete them.
func interruptedTry(c *defect.Case) *defect.Cause {
	for _, o := range c.CallsOn(c.Lock) {
		if !o.Action.Acquires() || o.Return == nil || o.AtNs > c.Until() || o.Outcome == model.Granted {
			continue
		}
		var set []*trace.Command
		for _, m := range o.Sent {
			switch {
			case m.Command != "SET":
				set = nil
			case m.Executed != nil && m.Reply() == "OK":
				set = append(set, m)
			}
		}
		if len(set) > 0 {
			return defect.ByCommands(leftKeys, set...)
		}
	}
	return nil
}

// extendsLost finds an extension that set keys although the server did not hold the lock for its caller.
// It succeeded, or its caller had no answer and the lease of the keys is not over.
func extendsLost(c *defect.Case) *defect.Cause {
	for _, o := range c.CallsOn(c.Lock) {
		if o.Action != model.ActExtend || o.AtNs > c.Until() {
			continue
		}
		unheard := o.Return == nil || o.Outcome == model.Unknown
		for _, m := range o.Sent {
			switch {
			case m.Executed == nil || m.Before(c.Lock).Owner == o.Caller:
			case o.Outcome == model.Extended, unheard && m.Reply() == "1" && m.Executed.AtNs <= c.Until() && c.Until() < m.Executed.AtNs+int64(c.Watchdog()):
				return defect.ByCall(setAnew, o)
			}
		}
	}
	return nil
}

// toldLate finds the end of the lease that led to the finding, if the holder was not told of it by then.
func toldLate(c *defect.Case) *defect.Cause {
	loss := c.Finding.Loss
	if !loss.Expired() {
		return nil
	}
	changes := c.Changes(loss.Lock)
	ended := slices.IndexFunc(changes, func(s *trace.Change) bool {
		return s.Ended() && s.AtNs == loss.AtNs && s.By == nil && s.Fault == 0 && s.Before.Owner == loss.Thread
	})
	if ended < 0 {
		return nil
	}
	began := int64(0)
	for _, s := range changes[:ended] {
		if s.Started() && s.After.Owner == loss.Thread {
			began = s.AtNs
		}
	}
	for _, e := range c.Told(loss.Lock) {
		if e.ThreadName() == loss.Thread && began <= e.AtNs && e.AtNs <= loss.AtNs {
			return nil
		}
	}
	return defect.ByChange(toldAfterLease, changes[ended])
}
