// Package sentence writes findings for people. Judges return facts; this package makes every
// sentence about them, when it is shown. No program reads what this package writes.
package sentence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/play"
)

// at writes an instant of a run.
var at = model.At

// Finding writes what a judge found, as one sentence without a full stop.
func Finding(f judges.Finding) string { return foreign.Line(finding(f)) }

func finding(f judges.Finding) string {
	text := detail(f)
	if names := removable(f.Excuses); f.Convicted && names != "" {
		text += "; it happens without " + names + ", too"
	}
	if f.Control.Word == judges.ControlKept {
		text += "; " + Control(f.Control)
	}
	switch {
	case f.Doubt.Uncertainty > 0:
		text = fmt.Sprintf("within the uncertainty of %v: %s", Uncertainty(f.Doubt.Uncertainty), text)
	case f.Doubt.StoodStill > 0:
		text = StoodStill(f.Doubt.StoodStill) + ": " + text
	}
	return text
}

// StoodStill says that the machine of a live run stood still.
func StoodStill(d time.Duration) string {
	return fmt.Sprintf("the machine stood still for %v", d.Round(time.Millisecond))
}

// Uncertainty returns the uncertainty of a live run's instants in whole milliseconds, rounded up, so
// that it stays a bound.
func Uncertainty(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// Verdict says what an undecided or nondeterministic run lacks, or why a scenario does not
// apply. It returns "" for other verdicts.
func Verdict(v play.Verdict) string {
	if f, ok := v.Doubtful(); ok {
		return f.Judge + ": " + Finding(f)
	}
	if v.Word == play.VerdictUndecided && v.Why == "" {
		if len(v.Unsimulated) > 0 {
			return Unsimulated(v.Unsimulated)
		}
		return Denied(v.Service)
	}
	return foreign.Line(v.Why)
}

// Unsimulated says what the servers of a world met and do not simulate.
func Unsimulated(met []string) string {
	return foreign.Line(fmt.Sprintf("a server of the world met %s, which it does not simulate and the real one has", strings.Join(met, ", ")))
}

// Denied says what a lock did not do for its callers, with the first error of each kind of call; "" if it
// did it.
func Denied(s play.Service) string {
	text := ""
	switch {
	case !s.Denied():
		return ""
	case s.Granted == 0:
		text = fmt.Sprintf("no call was ever granted the lock: none of %s that ended before a fault was", counted.Of(s.Asked, string(model.RoleAcquire)))
	default:
		text = fmt.Sprintf("nobody ever got the lock after the hold of another was over: none of %s did before a fault", counted.Of(s.Followers, string(model.RoleAcquire)))
	}
	for i, e := range s.Errors {
		of := ", "
		if i == 0 {
			of = "; the first error of "
		}
		text += fmt.Sprintf("%s%s is %q", of, e.Action, e.Text)
	}
	return text
}

// Useless says that no call of a kind ever worked.
func Useless(k play.CallKind) string {
	text := fmt.Sprintf("no %s ever worked: none of %d that ended before a fault did", k.Action, k.Asked)
	if k.Text != "" {
		text += fmt.Sprintf("; the first error is %q", k.Text)
	}
	return text
}

// detail writes a finding without the additions of a replay and of a doubt.
func detail(f judges.Finding) string {
	who, lock, when := f.Thread, f.Lock, at(f.AtNs)
	switch d := f.Detail.(type) {
	case judges.Overlap:
		return overlap(f, d)
	case judges.Misdelete:
		return misdelete(f, d)
	case judges.Unplaceable:
		return unplaceable(f, d)
	case judges.Miscount:
		return fmt.Sprintf("at %s, after its %s, the server counts %d for %s on %s, and its calls add up to %d", when, d.After, d.Counted, who, lock, d.Levels)
	case judges.Overtaken:
		return fmt.Sprintf("%s was granted %s at %s before %s, which had first tried at %s and still waited%s",
			d.By, lock, when, who, at(d.FirstNs), ifAt("; it had lost its place in the queue at ", d.EvictedNs))
	case judges.Endless:
		return fmt.Sprintf("the hold of %s on %s has no time to live since %s", who, lock, when)
	case judges.LongLease:
		return fmt.Sprintf("at %s the hold of %s on %s got a lease of %v, and asked for %v at most", when, who, lock, rounded(d.Got), rounded(d.Most))
	case judges.OutlivesOwner:
		return fmt.Sprintf("the hold of %s on %s was prolonged at %s, although it had died at %s", who, lock, when, at(d.DiedNs))
	case judges.Unrenewed:
		return unrenewed(f, d)
	case judges.UndoneGrant:
		by := "the same call"
		if d.ClosedNs > 0 {
			by = "its client, which was closed at " + at(d.ClosedNs) + ","
		}
		return fmt.Sprintf("%s was granted %s at %s, and %s ended that hold at %s with a command that it had sent at %s",
			who, lock, at(d.GrantNs), by, at(d.EndNs), at(d.SentNs))
	case judges.ShortExtension:
		return fmt.Sprintf("%s extended its hold on %s from %s on, and the hold ends at %s; a lease is %v", who, lock, at(d.SentNs), at(d.EndNs), rounded(d.Lease))
	case judges.Untold:
		return fmt.Sprintf("%s believed to hold %s until %s, and was not told that the hold was gone, although nothing disturbed it from %s on; the bound is %v",
			who, lock, at(d.BelievedNs), at(d.CalmNs), rounded(d.Bound))
	case judges.ToldLate:
		return fmt.Sprintf("%s believed to hold %s until %s; the hold had ended at %s%s", who, lock, at(d.BelievedNs), at(d.EndedNs),
			ifAt(fmt.Sprintf(", and the lease that %s knew of, counted from the request that it sent at %s, at ", who, at(d.SentNs)), d.LeaseNs))
	case judges.Misled:
		return fmt.Sprintf("%s was told at %s that its hold on %s is gone, and the server held it since %s, and nothing had disturbed it for a lease%s",
			who, when, lock, at(d.HeldNs), ifAt("; the lease that it knows of lasts until ", d.LeaseNs))
	case judges.LateRenewal:
		return lateRenewal(f, d)
	case judges.Stuck:
		return fmt.Sprintf("%s of %s by %s, called at %s, had not returned at %s, although every fault was over at %s",
			d.Call, lock, who, at(d.CallNs), at(d.LeftNs), at(d.CalmNs))
	case judges.Forgotten:
		return forgotten(f, d)
	case judges.LateReturn:
		return fmt.Sprintf("%s tried for %s from %s on, for %v, and returned at %s, which is %v later than its wait and %s of at most %v",
			who, lock, at(d.CallNs), rounded(d.Wait), when, rounded(d.Late), counted.Of(d.Trips, "round trip"), rounded(d.Trip))
	case judges.RepeatedToken:
		return fmt.Sprintf("the hold of %s on %s since %s has the token %d, and there was a token %d before", who, lock, when, d.Token, d.Greatest)
	case judges.StaleToken:
		return fmt.Sprintf("%s was told the token %d with the grant of %s at %s, and %s had been told %d with the grant of an earlier hold", who, d.Token, lock, when, d.Before, d.BeforeToken)
	case judges.Traffic:
		return traffic(f, d)
	case judges.Leftover:
		return leftover(f, d)
	case judges.Ghost:
		return ghost(f, d)
	case judges.Unasked:
		return fmt.Sprintf("%s took %s at %s with a request (%s) that it sent at %s, although its last call had returned at %s", d.Process, lock, when, d.Command, at(d.SentNs), at(d.OverNs))
	case judges.Abandoned:
		return fmt.Sprintf("%s stands in the queue of %s to the end; it was gone at %s", who, lock, at(d.GoneNs))
	case judges.TornQueue:
		return fmt.Sprintf("at %s the queue of %s has %v and its deadlines %v", when, lock, d.Queue, d.Deadlines)
	case judges.Unmet:
		return fmt.Sprintf("%s at %s: %s", who, when, d.Text)
	case judges.Defect:
		return d.Text
	case judges.Unended:
		return unended(f, d)
	case judges.WrongResource:
		return wrongResource(f, d)
	}
	panic(fmt.Sprintf("sentence: there is no sentence about a %T", f.Detail))
}

func overlap(f judges.Finding, d judges.Overlap) string {
	who, over := f.Thread, ""
	if who == d.Later && d.Ending.Cause != "" {
		over = "; the hold of " + who + " was over by then"
	}
	return fmt.Sprintf("%s %s %s at %s while %s believed to hold it since %s%s%s", d.Later, answers[d.Answer], f.Lock, at(f.AtNs), d.Earlier, at(d.EarlierNs), over, ending(d.Ending, who))
}

func misdelete(f judges.Finding, d judges.Misdelete) string {
	did := string(d.Change)
	if d.Change == judges.HoldCounted {
		did = "changed to " + counted.Of(d.Levels, "level")
	}
	sent := "sent at " + at(d.SentNs)
	if len(d.By.Threads) > 0 {
		sent = cmp.Or(d.By.Says, d.By.Command) + ", " + sent
	}
	return fmt.Sprintf("%s (%s) %s the hold of %s on %s at %s", sender(d.By), sent, did, d.Owner, f.Lock, at(f.AtNs))
}

func unplaceable(f judges.Finding, d judges.Unplaceable) string {
	if d.Closed {
		return d.Lock + ": " + d.Reason.Refused.Op.Text(at) + ", but the lock was closed"
	}
	return d.Lock + ": " + History(d.Reason, at)
}

func unrenewed(f judges.Finding, d judges.Unrenewed) string {
	who, why := f.Thread, "no fault met its messages"
	switch {
	case d.Shortened:
		why = d.Fault + " had shortened it at " + at(d.FaultNs)
	case d.Fault != "":
		why = "the last fault that met its messages was " + d.Fault + " at " + at(d.FaultNs)
	}
	return fmt.Sprintf("the hold of %s on %s ended with its lease at %s while %s believed to hold it and its watchdog should have renewed it; %s", who, f.Lock, at(f.AtNs), who, why)
}

func lateRenewal(f judges.Finding, d judges.LateRenewal) string {
	why := "it never held it"
	if d.Call != "" {
		why = returned(d.Call, d.Outcome, d.ReturnNs)
	}
	return fmt.Sprintf("a renewal of %s for %s was sent at %s, although %s", f.Lock, f.Thread, at(f.AtNs), why)
}

func forgotten(f judges.Finding, d judges.Forgotten) string {
	who, holder := f.Thread, "nobody believed to hold it"
	if d.Own {
		holder = "the servers held it for " + who
	}
	return fmt.Sprintf("%s waited for %s from %s to %s while %s; the bound is %v%s",
		who, f.Lock, at(d.FromNs), at(d.ToNs), holder, rounded(time.Duration(d.Bound.Ns)), bound(d.Bound))
}

func traffic(f judges.Finding, d judges.Traffic) string {
	text := fmt.Sprintf("%s sent %s for %s in the second from %s on, %d more than it was woken", f.Thread, counted.Of(d.Sent, "command"), f.Lock, at(f.AtNs), d.Sent-d.Woken)
	if d.Most > 0 { // an older recording does not say it
		text += fmt.Sprintf("; at most %d more are allowed", d.Most)
	}
	return text
}

func leftover(f judges.Finding, d judges.Leftover) string {
	still := "there still was " + d.Text
	switch {
	case d.Key != "":
		still = "there still was key " + d.Key
	case d.Channel != "":
		still = "there still was channel " + d.Channel
	case d.Goroutine != nil && d.Goroutine.Closes+d.Goroutine.Opens != "":
		still = Goroutine(d.Goroutine)
	case d.Goroutine != nil:
		still = "there still was " + Goroutine(d.Goroutine)
	}
	return fmt.Sprintf("at %s, when everybody had left and every lease was over, %s", at(f.AtNs), still)
}

func ghost(f judges.Finding, d judges.Ghost) string {
	text := fmt.Sprintf("%s stands in the queue of %s at %s, ", f.Thread, f.Lock, at(f.AtNs))
	if d.Call == "" {
		return text + "and does not wait"
	}
	return text + "although " + returned(d.Call, d.Outcome, d.ReturnNs)
}

// Limit says which limit ended a run at an instant: that of its events, or that of its time.
func Limit(events int, atNs int64) string {
	if atNs >= int64(model.LongestRun) {
		return "200 years"
	}
	return counted.Of(events, "event")
}

func unended(f judges.Finding, d judges.Unended) string {
	who, lock := f.Thread, f.Lock
	text := fmt.Sprintf("the run was ended at %s, after %s, and the scenario was not over", at(f.AtNs), Limit(d.Events, f.AtNs))
	switch {
	case who == "":
	case d.Owner == "":
		text += fmt.Sprintf("; %s had waited for %s since %s", who, lock, at(d.FromNs))
	default:
		text += fmt.Sprintf("; %s had waited since %s for %s, which %s held with a lease until %s", who, at(d.FromNs), lock, d.Owner, at(d.UntilNs))
	}
	return text
}

func wrongResource(f judges.Finding, d judges.WrongResource) string {
	text := fmt.Sprintf("%s ended at %d, not at %d", d.Name, d.Left, d.End)
	if d.Writer != "" {
		text = fmt.Sprintf("%s wrote %d to %s at %s, although %d of %d were taken", d.Writer, d.Left, d.Name, at(f.AtNs), d.Taken, d.Start)
	}
	if f.Form == model.FormWaitedToTheEnd {
		return text + fmt.Sprintf("; %s waited for %s from %s to the end", f.Thread, f.Lock, at(d.WaitsNs))
	}
	if d.Refused != "" {
		return text + fmt.Sprintf("; at %s it had refused %s, whose token was smaller than an earlier one", at(d.RefusedNs), d.Refused)
	}
	return text + together(d.Together)
}

// answers say how a thread came to believe that it holds a lock, by the answer of its call.
var answers = map[model.Outcome]string{
	model.Granted:   "was granted",
	model.Extended:  "extended its hold on",
	model.StillHeld: "kept a level of",
	model.Released:  "kept a level of",
	model.Failed:    "failed to give up",
}

// Goroutine describes a goroutine that is left over: a noun with its place, or a clause about a Close or an Open
// that has not returned.
func Goroutine(g *model.Goroutine) string {
	unreturned := ""
	switch {
	case g.Closes != "":
		unreturned = "Close of the client of process " + g.Closes + " had not returned"
	case g.Opens != "":
		unreturned = "Open of process " + g.Opens + " had not returned"
	}
	switch {
	case unreturned != "" && g.Stands != "":
		return unreturned + "; it stood in " + g.Stands
	case unreturned != "":
		return unreturned
	case g.Stands != "":
		return "a goroutine, which stood in " + g.Stands + " and had been started by " + g.Started
	}
	return "a goroutine, which had been started by " + g.Started
}

// ifAt writes a clause that ends with an instant; "" if there was no such instant.
func ifAt(clause string, ns int64) string {
	if ns < 0 {
		return ""
	}
	return clause + at(ns)
}

// returned says how a call had returned.
func returned(call model.Action, outcome model.Outcome, ns int64) string {
	return fmt.Sprintf("its %s had returned %s at %s", call, outcome, at(ns))
}

// sender names a command by its role and its threads, or by its text and its process if its threads are unknown.
func sender(s judges.Sender) string {
	if len(s.Threads) == 0 {
		return cmp.Or(s.Says, s.Command) + " of " + s.Process
	}
	return cmp.Or(string(s.Role), s.Command) + " of " + strings.Join(s.Threads, ", ")
}

// ending writes how the hold of somebody had ended, as a clause.
func ending(e judges.Ending, whose string) string {
	when := at(e.AtNs)
	switch e.Cause {
	case model.LossShortened:
		return ": " + e.Fault + " had taken from it at " + when
	case model.LossRemoved:
		return ": " + e.Fault + " had removed it at " + when
	case model.LossForced:
		return ": " + e.Thread + " had forced it open at " + when
	case model.LossEnded:
		return fmt.Sprintf(": %s had ended it at %s", sender(e.By), when)
	case model.LossExpired:
		what := "lease"
		if e.Unleased {
			what = "session"
		}
		text := fmt.Sprintf(": its %s had ended at %s", what, when)
		for _, h := range e.Before {
			switch h.Kind {
			case judges.HarmShortened:
				text += ", which " + h.Fault + " had shortened at " + at(h.AtNs)
			case judges.HarmUnseen:
				text += ", and " + h.Fault + " had shortened it at " + at(h.AtNs)
			case judges.HarmRemoved:
				text += ", and " + h.Fault + " had removed it at " + at(h.AtNs)
			}
		}
		return text
	}
	return ": the server never knew of the hold of " + whose
}

// together writes that two threads worked at the same time, as a clause.
func together(t *judges.Together) string {
	if t == nil {
		return ""
	}
	text := fmt.Sprintf("; %s worked from %s to %s, %s from %s", t.Earlier, at(t.FromNs), at(t.ToNs), t.Later, at(t.LaterNs))
	switch {
	case t.Ending != nil:
		return text + ending(*t.Ending, "one of them")
	case t.Overstayed != "":
		return text + ": the lease that " + t.Overstayed + " asked for had ended"
	}
	return text + ": they held no lock in common"
}

// rounded returns a length of time as people read it: in milliseconds, or in microseconds if it is
// shorter than 100 ms.
func rounded(d time.Duration) time.Duration {
	if d.Abs() < 100*time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// bound writes why a waiter may wait for so long, as a clause.
func bound(b judges.Bound) string {
	design := ""
	if b.Waits > 0 {
		design = fmt.Sprintf(", and %v by the lock's design", rounded(b.Waits))
	}
	switch {
	case b.RoundTrip > 0:
		return fmt.Sprintf(" (%d round trips of %v%s)", judges.RoundTrips, rounded(b.RoundTrip), design)
	case b.After.Kind != "":
		return fmt.Sprintf(" (a second and %v, after %s%s)", rounded(b.Cost), disturbance(b.After), design)
	case b.DeadWaiters:
		return fmt.Sprintf(" (two waits of this lock and a second, with dead waiters in front%s)", design)
	case design != "":
		return fmt.Sprintf(" (a second%s)", design)
	}
	return ""
}

func disturbance(d judges.Disturbance) string {
	if d.Kind == judges.DisturbedByFault {
		return d.Fault
	}
	return disturbances[d.Kind]
}

var disturbances = map[judges.DisturbanceKind]string{
	judges.DisturbedByCrash:     "a crash",
	judges.DisturbedInterrupted: "an interrupted call",
	judges.DisturbedUnknown:     "a call of unknown outcome",
	judges.DisturbedRelease:     "a release that failed",
	judges.DisturbedLateRequest: "a hold that no client knows of, since its request came when its call was over",
	judges.DisturbedClose:       "a client that closed",
	judges.DisturbedRemoval:     "a hold that a fault removed, which wakes nobody",
	judges.DisturbedClock:       "a step of the server's clock, which moved the end of a lease",
	judges.DisturbedFailover:    "a hold that a failover brought back, and that no client knows of",
	judges.DisturbedOutlasting:  "a hold that its owner knows to be gone, and its servers do not",
	judges.DisturbedLateWakeUp:  "a late wake-up",
	judges.DisturbedLostWakeUp:  "a lost wake-up",
	judges.DisturbedGivenBack:   "a grant that no replica had",
}

// removable names the excuses that a replay can leave out; "" if there are none.
func removable(excuses []model.Excuse) string {
	var names []string
	for _, e := range excuses {
		if e.Removable() {
			names = append(names, Excuse(e))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " and ")
}

// NotPromised says why a limit is no bug: its first excuse, and what the controls show. It returns "" for any
// other finding.
func NotPromised(f judges.Finding) string {
	if f.Class != judges.ClassLimit || len(f.Excuses) == 0 {
		return ""
	}
	return Join(Excuse(f.Excuses[0]), Control(f.Control))
}

// Join joins an excuse and what the controls show about it, which may be "".
func Join(excuse, shown string) string {
	if shown == "" {
		return excuse
	}
	return excuse + "; " + shown
}

// Control says what the controls of a lock show about a limit. It returns "" if none was played.
func Control(c judges.Control) string {
	run := fmt.Sprintf("(seed %d, watchdog timeout %v)", c.Seed, c.Watchdog)
	switch c.Word {
	case judges.ControlBroke:
		return fmt.Sprintf("shown: %s breaks it, too %s", c.Lock, run)
	case judges.ControlKept:
		return fmt.Sprintf("%s keeps it under the same faults %s", c.Lock, run)
	case judges.ControlUnmet:
		return "not shown: too few runs of the controls met the same circumstance"
	case judges.ControlMissing:
		return "not shown: there is no control of this kind"
	}
	return ""
}

// Excuse writes the fault that excuses a finding, with its time.
func Excuse(e model.Excuse) string { return foreign.Line(excuse(e)) }

func excuse(e model.Excuse) string {
	switch c := e.Cause; c.Kind {
	case model.CauseFault:
		return c.Fault
	case model.CauseFaultAt:
		return c.Fault + " at " + at(c.AtNs)
	case model.CauseFaultFrom:
		return c.Fault + " from " + at(c.AtNs) + " to " + at(c.ToNs)
	case model.CauseFaultLast:
		return c.Fault + ", last at " + at(c.ToNs)
	case model.CauseForced:
		return c.Thread + " forced it open at " + at(c.AtNs)
	case model.CauseClocks:
		return "wall clocks that differ"
	case model.CauseClosed:
		return "the client of " + c.Thread + " closed at " + at(c.AtNs)
	case model.CauseOwnClosed:
		return "its client closed at " + at(c.AtNs)
	case model.CauseInterrupt:
		return "an interrupt of " + c.Thread + " at " + at(c.AtNs)
	case model.CauseOverstayed:
		return fmt.Sprintf("%s worked past its lease of %v", c.Thread, c.Lease)
	case model.CauseNoLock:
		return c.Thread + " and " + c.Other + " held no lock in common"
	}
	panic("sentence: there is no sentence about the cause " + string(e.Cause.Kind))
}
