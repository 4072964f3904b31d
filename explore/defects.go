package explore

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/scenarios"
)

// defect is what a release is known to do wrong: on which locks, which judges
// see it, and the cause without which a finding is not this defect.
type defect struct {
	name   string
	locks  func(*scenarios.Lock) bool
	judges []string
	is     func(clue) bool
}

// Which locks a defect is of.

func bare(names ...string) func(*scenarios.Lock) bool {
	return func(l *scenarios.Lock) bool { return slices.Contains(names, l.Name) }
}

// setNX are the bare locks that acquire with SET NX.
var setNX = bare("setnx-del", "setnx-get-del", "setnx-cad")

// of are the locks of Redisson for which all conditions hold.
func of(conditions ...func(*scenarios.Lock) bool) func(*scenarios.Lock) bool {
	return func(l *scenarios.Lock) bool {
		return l.Release() != "" && !slices.ContainsFunc(conditions, func(c func(*scenarios.Lock) bool) bool { return !c(l) })
	}
}

func either(conditions ...func(*scenarios.Lock) bool) func(*scenarios.Lock) bool {
	return func(l *scenarios.Lock) bool {
		return slices.ContainsFunc(conditions, func(c func(*scenarios.Lock) bool) bool { return c(l) })
	}
}

func plain(l *scenarios.Lock) bool { return !l.Fair }
func fair(l *scenarios.Lock) bool  { return l.Fair }

func since(version string) func(*scenarios.Lock) bool {
	return func(l *scenarios.Lock) bool { return slices.Compare(numbers(l.Release()), numbers(version)) >= 0 }
}

func upTo(version string) func(*scenarios.Lock) bool {
	return func(l *scenarios.Lock) bool { return slices.Compare(numbers(l.Release()), numbers(version)) <= 0 }
}

func numbers(version string) (out []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			panic("not a version: " + version)
		}
		out = append(out, n)
	}
	return out
}

// onServer are the judges that see what the server counts otherwise than its
// owner; onHold those that see a hold end under its owner.
var (
	onServer = []string{model.JudgeHoldCount, model.JudgeLinearizable, model.JudgeLiveness}
	onHold   = []string{model.JudgeLease, model.JudgeMutualExclusion}
)

// knownDefects are what releases are known to do wrong on what the property
// tests draw. Numbers are issues of redisson/redisson.
var knownDefects = []defect{
	{
		"DEL takes whatever hold is there when it arrives, and what follows from it",
		bare("setnx-del", "setnx-get-del"),
		model.Judges,
		func(c clue) bool {
			return slices.ContainsFunc(c.of.Findings, func(f linearizability.Finding) bool { return f.Judge == model.JudgeMisdelete && f.AtNs <= c.until() })
		},
	},
	{
		"one string has no room to count a second entry",
		bare("string-reentrant"),
		[]string{model.JudgeLinearizable, model.JudgeHoldCount, model.JudgeMutualExclusion},
		func(c clue) bool {
			return slices.ContainsFunc(c.commands, func(m *command) bool {
				return m.Script == "acquire" && m.exec != nil && m.before.Owner != "" && slices.Contains(m.Owners, m.before.Owner) && slices.Contains(m.Locks, c.lock)
			})
		},
	},

	{
		"a SET that the client sends again finds the key that the first one left, and its caller is told that the lock is busy",
		setNX,
		append([]string{model.JudgeMutualExclusion}, onServer...),
		func(c clue) bool { return c.grantedUnheard() || c.foundItsOwn() },
	},
	{
		"a SET that the client sends again takes the lock anew when the hold that the first one took has ended unheard",
		either(setNX, bare("string-reentrant")),
		append([]string{model.JudgeMutualExclusion}, onServer...),
		func(c clue) bool { return c.ranTwice("acquire") },
	},
	{
		"an unlock that the client sends again finds the key gone that the first one deleted, and its caller is told that it did not hold the lock",
		either(setNX, bare("string-reentrant")),
		append([]string{model.JudgeMutualExclusion}, onServer...),
		func(c clue) bool { return c.ranTwice("unlock") },
	},

	// Unlock.
	{
		"a free lock can be unlocked by anyone (2018)",
		of(plain, upTo("3.10.5")),
		[]string{model.JudgeLinearizable, model.JudgeHoldCount},
		clue.unlockedNothing,
	},
	{
		"a try of the fair lock whose time is over stands in the queue until it has left, and others are refused meanwhile although the lock is free",
		of(fair),
		[]string{model.JudgeLinearizable},
		clue.refusedByLeavers,
	},
	{
		"a free fair lock can be unlocked by anyone (by design)",
		of(fair),
		[]string{model.JudgeLinearizable, model.JudgeHoldCount},
		clue.unlockedNothing,
	},
	{
		"a force_unlock that is sent again ends the next owner's hold too, or answers that there was none",
		either(of(since("3.11.0")), setNX, bare("string-reentrant")),
		[]string{model.JudgeLinearizable},
		clue.forcedTwice,
	},
	{
		"an unlock that is sent again takes two levels, or finds nothing and is an error (4871)",
		of((*scenarios.Lock).SendsAgain, upTo("3.23.5")),
		append([]string{model.JudgeLease, model.JudgeMutualExclusion, model.JudgeFIFO}, onServer...),
		func(c clue) bool { return c.ranTwice("unlock") },
	},
	{
		"an unlock that was given up as unknown arrives later and takes a level of a later hold of its thread (an owner is client and thread, not one acquisition)",
		func(l *scenarios.Lock) bool { return l.Name != "none" },
		append([]string{model.JudgeMutualExclusion, model.JudgeLease}, onServer...),
		clue.lateUnlock,
	},

	// Acquire.
	{
		"an acquire that is sent again is granted twice, and one unlock leaves a level (6025, 7367)",
		of((*scenarios.Lock).SendsAgain),
		append([]string{model.JudgeLease, model.JudgeMutualExclusion, model.JudgeFIFO}, onServer...),
		func(c clue) bool { return c.ranTwice("acquire") },
	},
	{
		"an acquire that was sent again arrives when its tryLock has answered false, and holds the lock for nobody (6025, 7367)",
		of((*scenarios.Lock).SendsAgain),
		append([]string{model.JudgeLease, model.JudgeMutualExclusion, model.JudgeFIFO}, onServer...),
		clue.grantedUnheard,
	},
	{
		"a tryLock whose answer does not come in time answers false, and its acquire may hold the lock all the same (7223, 7224)",
		of(since("4.7.0")),
		append([]string{model.JudgeLease, model.JudgeMutualExclusion, model.JudgeFIFO}, onServer...),
		func(c clue) bool { return c.grantedUnheard() || c.judges(model.JudgeFIFO) && c.gaveUpUnheard() },
	},
	{
		"a lock() that is interrupted while it waits returns as if it had the lock (1593)",
		of(upTo("3.10.5")),
		append([]string{model.JudgeMutualExclusion, model.JudgeLease, model.JudgeFIFO}, onServer...),
		clue.returnedUnlocked,
	},
	{
		"an interrupted acquire that is granted all the same is renewed for nobody (2714, 4368)",
		of(since("3.8.1")),
		[]string{model.JudgeLease, model.JudgeLiveness},
		func(c clue) bool { return !c.breaks(model.FormUnrenewed) && c.interruptedGrant() },
	},

	{
		"a try is told that the lock is held while it is for a grant that is given back, since no replica had it in time",
		of((*scenarios.Lock).Replicated, since("3.20.0")),
		[]string{model.JudgeLinearizable},
		clue.toldOfGivenBack,
	},

	// Watchdog.
	{
		"an unlock that failed leaves the renewal running (1602)",
		of(upTo("3.8.0")),
		[]string{model.JudgeLease, model.JudgeLiveness},
		func(c clue) bool {
			who := c.who
			if c.judges(model.JudgeLiveness) {
				who = c.holder()
			}
			return !c.breaks(model.FormUnrenewed) && c.ended(who, model.ActUnlock, model.Failed, model.Unknown, model.NotHeld)
		},
	},
	{
		"an unlock that is interrupted goes on, and the renewal goes on until it is answered",
		of(since("3.8.1")),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLateRenewal) && c.interruptedUnlock() },
	},
	{
		"the level that an acquire of unknown outcome leaves is renewed for ever: only the release of the last level ends the renewal",
		of(upTo("3.10.4")),
		[]string{model.JudgeLease},
		func(c clue) bool {
			return c.breaks(model.FormLateRenewal) && slices.ContainsFunc(c.calls, func(o *call) bool {
				return o.Lock == c.lock && o.who == c.who && o.ret != nil && o.ret.AtNs <= c.f.AtNs && o.ret.Outcome == model.Unknown &&
					slices.ContainsFunc(o.sent, func(m *command) bool { return m.Script == "acquire" && m.took(o.who) })
			})
		},
	},
	{
		"a level with a lease is renewed when one without was entered above it and released: only the release of the last level ends the renewal",
		of(upTo("3.10.4")),
		[]string{model.JudgeLiveness},
		clue.renewedWhatIsLeft,
	},
	{
		"a renewal under way when the unlock is answered sets the timer again",
		of(upTo("3.10.4")),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLateRenewal) && c.renewedAcrossUnlock() },
	},
	{
		"a renewal that found nothing is answered when a thread of its client has locked again, and the timer of the new hold is forgotten, which no unlock ends then",
		of(upTo("3.10.4")),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLateRenewal) && c.forgotTimer() },
	},
	{
		"an unlock that found nothing leaves the renewal running (2515)",
		of(since("3.10.5"), upTo("3.12.0")),
		[]string{model.JudgeLease},
		func(c clue) bool {
			return c.breaks(model.FormLateRenewal, model.FormLongLease) && c.ended(c.who, model.ActUnlock, model.NotHeld)
		},
	},
	{
		"an unlock that failed stops the renewal although the hold stays (since 3.8.1)",
		of(since("3.8.1")),
		onHold,
		func(c clue) bool {
			return c.aboutLease() && c.ended(c.who, model.ActUnlock, model.Failed, model.Unknown)
		},
	},
	{
		"a force_unlock ends the renewal of its client's hold before it is sent, and the hold stays when it fails",
		of(),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.forcedInVain() },
	},
	{
		"one renewal that fails ends them (5698)",
		of(upTo("3.43.0")),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.lastRenewalFailed() },
	},
	{
		"no renewal is sent before the one before has its answer, so that a lost one costs the response timeout, which a short watchdog timeout does not outlast",
		of(),
		onHold,
		func(c clue) bool {
			if !c.leaseEnded() {
				return false
			}
			process := model.ProcessOf(c.who)
			ended := c.holdEnded()
			batches := since("3.44.0")(c.of.Lock) // one task renews all locks of a client
			var last *command
			for _, m := range c.commands {
				if m.Script == "renew" && m.Process == process && m.AtNs <= ended && (batches || slices.Contains(m.Owners, c.who) && slices.Contains(m.Locks, c.lock)) {
					last = m
				}
			}
			return last != nil && (last.delivered < 0 || last.delivered > ended)
		},
	},
	{
		"an unlock that is answered when another thread of its client has got the lock ends the renewal of that hold: a client has one timer a lock",
		of(upTo("3.10.4")),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.stoppedByAnother() },
	},
	{
		"a renewal that fails or finds nothing leaves the entry behind, and no later hold is renewed (3194, 3712)",
		of(since("3.10.7"), upTo("3.16.0")),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.neverRenewed() },
	},
	{
		"an attempt on a lock object, a failed one too, changes the lease and the period of the renewals of the hold that it waits for (up to 3.12.4)",
		of(upTo("3.12.4")),
		append([]string{model.JudgeTraffic}, onHold...),
		clue.renewedOtherwise,
	},
	{
		"a re-entered hold leaves its thread in the watchdog's queue after the last unlock (3.37.0 to 3.43.0)",
		of(since("3.37.0"), upTo("3.43.0")),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLateRenewal, model.FormLongLease) && c.reentered() },
	},
	{
		"a renewal that was lost, late or could not leave, or had to ask for replicas first, is sent, or arrives, when the lock was unlocked meanwhile",
		of(),
		[]string{model.JudgeLease, model.JudgeLiveness},
		func(c clue) bool {
			if c.judges(model.JudgeLiveness) {
				c.who = c.holder()
			}
			return !c.breaks(model.FormUnrenewed) && c.renewalUnderWay()
		},
	},
	{
		"a hold without lease starts with the lease that its lock object was last given, and may end before the first renewal (4818)",
		of(since("3.15.0")),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.startedShort() },
	},
	{
		"entering again with a lease gives the whole hold that lease, and a level without lease ends with it",
		of(),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.shortenedItself() },
	},
	{
		"a partial unlock after another gives the hold the watchdog's lease (5623)",
		of(since("3.15.2"), upTo("3.23.5")),
		[]string{model.JudgeLease},
		func(c clue) bool {
			return c.breaks(model.FormLongLease) && c.ended(c.who, model.ActUnlock, model.StillHeld, model.Released)
		},
	},
	{
		"an unlock that leaves levels gives the hold the lease that its lock object keeps: the watchdog's, where the object is another one or was released meanwhile",
		of(),
		[]string{model.JudgeLease, model.JudgeLiveness, model.JudgeMutualExclusion},
		clue.stretchedByUnlock,
	},
	{
		"an unlock that found nothing takes one level off the watchdog, which goes on renewing what was entered more than once",
		of(since("3.12.1")),
		[]string{model.JudgeLease},
		func(c clue) bool {
			return c.breaks(model.FormLateRenewal) && (c.ended(c.who, model.ActUnlock, model.NotHeld) || slices.ContainsFunc(c.calls, func(o *call) bool {
				return o.who == c.who && o.Lock == c.lock && o.AtNs <= c.f.AtNs && o.foundFree()
			}))
		},
	},
	{
		"a hold that others ended leaves its levels with the watchdog, which renews the thread's next hold, whatever its lease, and when it is given up",
		of(since("3.10.5")),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLateRenewal, model.FormLongLease) && c.lostLevels() },
	},
	{
		"a hold that others ended leaves its timer, which renews the thread's next hold, whatever its lease",
		of(upTo("3.10.4")),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLongLease) && c.lostLevels() },
	},
	{
		"the watchdog asks for the first thread of a client only: one whose hold others had ended keeps it from renewing the next",
		of(),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.askedForAnother() },
	},
	{
		"a renewal that found nothing is answered when the thread has locked again, and ends the renewal of the new hold",
		of(),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.toldOfLastHold() },
	},
	{
		"an unlock of a level with a lease takes a level off the watchdog, which renews the levels without one no longer",
		of(since("3.10.5")),
		onHold,
		func(c clue) bool { return c.aboutLease() && c.countedOut() },
	},
	{
		"an attempt without a lease takes the one that its lock object was last given, also a longer one than the watchdog's (4818)",
		of(),
		[]string{model.JudgeLease},
		func(c clue) bool { return c.breaks(model.FormLongLease) && c.startedLong() },
	},

	// Waiting.
	{
		"a waiter asks for nothing until its subscription is confirmed, however free the lock is",
		of(),
		[]string{model.JudgeLiveness},
		clue.unconfirmed,
	},
	{
		"an interrupt of a lock() that takes none makes it sleep its whole time anew, past the end of the hold",
		of(since("3.10.6")),
		[]string{model.JudgeLiveness},
		clue.interruptedAsleep,
	},
	{
		"a waiter hears how long to wait when replicas have answered, up to a second later, and sleeps so long from then on",
		of((*scenarios.Lock).Replicated, since("3.13.0")),
		[]string{model.JudgeLiveness},
		clue.sleepsLate,
	},
	{
		"a waiter sleeps on the time to live that it was told, although that hold was given up or its lease cut short: an unlock wakes one thread of a client, and the end of a lease nobody",
		of(plain),
		[]string{model.JudgeLiveness},
		clue.sleepsOn,
	},

	// The fair queue.
	{
		"a grant that no replica had in time is given back, and its caller has no place in the queue until it asks again",
		of(fair, (*scenarios.Lock).Replicated, since("3.20.0")),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		clue.gaveBack,
	},
	{
		"lock() that ends with an error keeps its place in the queue, and its thread comes back to it (acquireFailed is not called)",
		of(fair),
		[]string{model.JudgeFIFO, model.JudgeLinearizable, model.JudgeLiveness, model.JudgeTidy},
		clue.keptItsPlace,
	},
	{
		"an acquire arrives when its call is over, and queues for nobody",
		of(fair),
		[]string{model.JudgeFIFO, model.JudgeLinearizable, model.JudgeLiveness, model.JudgeTidy},
		clue.queuedLate,
	},
	{
		"an acquire that arrives when its lock() has ended with an error takes the turn of its thread, and the place of the call that waits by then",
		of(fair),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		clue.tookItsOwnTurn,
	},
	{
		"who stands in the queue without a score is never thrown out of it (4153, 5989)",
		of(fair, since("3.31.0")),
		[]string{model.JudgeLiveness, model.JudgeTidy},
		clue.unscored,
	},
	{
		"who has a deadline and no place in the queue is not queued again, and no unlock wakes it",
		of(fair),
		[]string{model.JudgeLiveness},
		clue.unplaced,
	},
	{
		"no acquire takes its wait off the deadlines behind it, so that a dead waiter stands in the way for the waits of those before it too (2099)",
		of(fair, upTo("3.11.0")),
		[]string{model.JudgeLiveness},
		clue.headIsDead,
	},
	{
		"a dead waiter's place is kept for the time to live that the hold had when it came, however soon that was given up, and for its wait besides",
		of(fair, since("3.11.1")),
		[]string{model.JudgeLiveness},
		clue.headIsDead,
	},
	{
		"the head sleeps until its own deadline, past the end of the hold (4705)",
		of(fair, upTo("3.31.0")),
		[]string{model.JudgeLiveness},
		func(c clue) bool { return c.headSleeps(func(told, ttl time.Duration) bool { return told > ttl }) },
	},
	{
		"a waiter that was thrown out of the queue and queues again is told the deadline of the one before it, and sleeps so long, past the end of the hold",
		of(fair, since("3.31.1")),
		[]string{model.JudgeLiveness},
		func(c clue) bool { return c.headSleeps(func(told, ttl time.Duration) bool { return told > ttl }) },
	},
	{
		"a tryLock in seconds without a lease is queued for as many milliseconds (4743)",
		of(fair, since("3.21.3")),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		clue.evictedForUnit,
	},
	{
		"a waiter whose deadline is nearer than its wait is told a negative time and sleeps without bound",
		of(fair, since("3.11.1"), upTo("3.31.0")),
		[]string{model.JudgeLiveness, model.JudgeFIFO, model.JudgeLinearizable},
		func(c clue) bool {
			switch c.f.Judge {
			case model.JudgeLinearizable:
				return c.evicted(func(m *command, _ int64) bool { return m.told() < 0 })
			case model.JudgeFIFO:
				if c.toldNegative() {
					return true
				}
			}
			return c.headSleeps(func(told, _ time.Duration) bool { return told < 0 })
		},
	},
	{
		"a waiter sleeps on what it was told before others acquired, which took their waits off its deadline, and is thrown out of the queue",
		of(fair, since("3.11.1"), upTo("3.31.0")),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		clue.evictedAsleep,
	},
	{
		"each head that leaves takes its wait off all deadlines behind it, which are one wait apart at most: a waiter is thrown out while it sleeps on what it was told (1104, 2099)",
		of(fair, since("3.5.5"), upTo("3.11.0")),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		clue.evictedAsleep,
	},
	{
		"a waiter sleeps on what it was told past its own deadline, where a hold outlasts the wait of its place, and is thrown out of the queue",
		of(fair, since("3.31.1")),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		clue.evictedAsleep,
	},
	{
		"a waiter is thrown out of the queue while its client waits to send again what it had no answer to in time",
		of(fair, (*scenarios.Lock).SendsAgain),
		[]string{model.JudgeFIFO, model.JudgeLinearizable},
		func(c clue) bool { return c.evicted(func(m *command, _ int64) bool { return m.delivered < 0 }) },
	},
	{
		"who stands first in the queue waits to send again what its client had no answer to in time, and holds up those behind it",
		of(fair, (*scenarios.Lock).SendsAgain),
		[]string{model.JudgeLiveness},
		clue.headSendsAgain,
	},
	{
		"a waiter that was thrown out of the queue while it slept is woken by no unlock, and sleeps on what it was told",
		of(fair),
		[]string{model.JudgeLiveness},
		clue.sleepsUnqueued,
	},
	{
		"behind a dead waiter of a free lock the next one is told to wait 0 ms, and asks again at once, until that one's deadline (since 3.32.0)",
		of(fair, since("3.32.0")),
		[]string{model.JudgeTraffic},
		clue.toldNothing,
	},
	{
		"a waiter that asks in the last millisecond of what it waits for is told 0 ms, and asks again at once until that millisecond is over",
		of(),
		[]string{model.JudgeTraffic},
		clue.toldZero,
	},
	{
		"a waiter sleeps on the time to live of a hold that was given up (scenario fair-sleeps-on-an-old-lease)",
		of(fair),
		[]string{model.JudgeLiveness},
		func(c clue) bool {
			return !c.unlockedUnheard() && c.headSleeps(func(told, ttl time.Duration) bool { return 0 <= told && told <= ttl })
		},
	},
	{
		"a timer that was set while the lock object kept a longer lease fires past the end of the hold (up to 3.12.4)",
		of(upTo("3.12.4")),
		onHold,
		func(c clue) bool {
			return c.leaseEnded() && c.timerTooLong()
		},
	},
}
