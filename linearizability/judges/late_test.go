package judges

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

// A level that is given up without another end of the lease leaves the lease that its holder counts.
func TestALeaseEndsWhereItWasSet(t *testing.T) {
	lock := reentrantLock
	lock.Watched = true
	record := `
			0     a/1 takes
			10    a/1 takes -> a/1 2 30001
			25000 a/1 releases -> a/1 1 30001
			30001 a/1 told
			30002 server expire -> free
			90000 server leave`
	testJudged(t, []judged{
		{rule: "told at the end", lock: lock, record: record},
		{rule: "told at the end of a lease that the unlock set anew", lock: lock,
			record: strings.NewReplacer("-> a/1 1 30001", "-> a/1 1 55001", "30002 server", "55002 server").Replace(record),
			finds:  "lease bug: a/1 was told at 30.001s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease"},
	})
}

// A request that prolongs nothing is a renewal only if one of its form prolonged a hold.
func TestARequestOfAnotherFormIsNoRenewal(t *testing.T) {
	record := func(renews, late string) string {
		return `
			0     a/1 takes
			10    ` + renews + `
			12    a/1 releases
			20    a/1 send renew command=` + late + `
			21    a/1 exec renew
			22    a/1 deliver renew
			90000 server leave`
	}
	const finds = "lease bug: a renewal of l for a/1 was sent at 0.020s, although its unlock had returned released"
	testJudged(t, []judged{
		{rule: "one of its form prolonged a hold", lock: anybodys, record: record("a/1 renews", "EVAL"), finds: finds},
		{rule: "one of its form names the lock", lock: anybodys, record: strings.ReplaceAll(record("a/1 send renew args=l\n11 a/1 exec renew -> a/1 1 30011", "EVAL args=l"), "renews", "renew"), finds: finds},
		{rule: "which names a session of the process", lock: anybodys, record: record("a/1 send renew args=session\n11 a/1 exec renew -> a/1 1 30011", "EVAL args=session")},
		{rule: "one of another form did", lock: anybodys, record: record("a/1 renews", "WATCH")},
		{rule: "one with its program did", lock: anybodys, record: record("a/1 renews program=pexpire", "EVALSHA program=pexpire"), finds: finds},
		{rule: "one with another program did", lock: anybodys, record: record("a/1 renews program=pexpire", "EVAL program=del")},
		{rule: "none did", lock: anybodys, record: record("b/1 waits try_lock", "EVAL")},
		{rule: "where threads know holds without grants", lock: bareLock, record: record("b/1 waits try_lock", "WATCH"), finds: finds},
	})
}

// A call that cleans up after earlier ones of unknown outcome may send a request for each that returned within a
// second before it.
func TestTheTrafficOfCleanUps(t *testing.T) {
	asks := strings.Repeat("2000 b/1 send acquire\n2000 b/1 exec acquire\n2000 b/1 deliver acquire\n", 21)
	const most = "traffic bug: b/1 sent 22 commands for l in the second from 2.000s on, 22 more than it was woken; at most 20 more are allowed"
	for _, c := range []struct{ at, outcome, finds string }{
		{"1900", "unknown", ""},
		{"1900", "busy", most},
		{"900", "unknown", most},
	} {
		record := "0 a/1 takes lease=9000\n" + strings.Repeat(c.at+" b/1 invoke try_lock\n"+c.at+" b/1 return "+c.outcome+"\n", 2) + "2000 b/1 waits lock\n" + asks + "8000 server leave"
		testJudged(t, []judged{{rule: "after answers at " + c.at + " that are " + c.outcome, record: record, finds: c.finds}})
	}
}

// A request that runs when its call is over changes levels of which nobody hears.
func TestLateLevelsAreUnheard(t *testing.T) {
	const record = `
			0     a/1 takes
			10    a/1 invoke lock
			10    a/1 send acquire
			12    a/1 send acquire
			13    a/1 exec acquire -> a/1 2 30001
			14    a/1 return granted
			20    a/1 invoke unlock
			20    a/1 send unlock
			21    a/1 exec unlock -> a/1 1 30001
			22    a/1 return still_held
			30    a/1 exec acquire nth=2 -> a/1 2 30001
			30002 server expire -> free
			90000 server leave`
	lock := reentrantLock
	lock.Promises = nil
	known := lock
	known.PerGrant = false
	testJudged(t, []judged{
		{rule: "who knows holds by their grants", lock: lock, record: record},
		{rule: "who knows them by the thread", lock: known, record: record, finds: "hold-count bug: at 0.030s, after its unlock, the server counts 2 for a/1 on l, and its calls add up to 1"},
	})
}

// A thread that has given up each level of which it was told holds nothing that it knows of, although the server counts the
// level of an acquire that was not answered.
func TestALevelThatNoAnswerTold(t *testing.T) {
	const acquire = `
			10   a/1 invoke lock
			10   a/1 send acquire
			11   a/1 exec acquire -> a/1 2 30011
			12   a/1 lost acquire reply dropped
			3000 a/1 return unknown`
	const cleanUp = `
			2000 a/1 send acquire
			2001 a/1 exec acquire -> a/1 1 30011`
	const again = `
			4000 a/1 invoke lock
			4000 a/1 send acquire
			4001 a/1 exec acquire -> a/1 3 34001
			4002 a/1 deliver acquire
			4002 a/1 return granted`
	unlock := func(at, left int) string {
		return fmt.Sprintf(`
			%d a/1 invoke unlock
			%[1]d a/1 send unlock
			%[2]d a/1 exec unlock -> a/1 %d 34001
			%d a/1 return released`, at, at+1, left, at+2)
	}
	const notHeld = `
			6000 a/1 invoke unlock
			6001 a/1 return not_held`
	const end = `
			34002 server expire -> free
			90000 server leave`
	const finds = "linearizable bug: l: a/1 release (6.000s..6.001s) answered not_held, but the lock was held by a/1"
	const takes = "0 a/1 takes"
	unheard := strings.NewReplacer("10 ", "0 ", "11 ", "1 ", "12 ", "2 ", "a/1 2 30011", "a/1 1 30001").Replace(acquire)
	entered := strings.Replace(again, "a/1 3", "a/1 2", 1)
	answered := strings.NewReplacer("12   a/1 lost acquire reply dropped", "", "3000 a/1 return unknown", "12 a/1 return granted").Replace(acquire)
	testJudged(t, []judged{
		{rule: "the second of two", lock: reentrantLock, record: takes + acquire + unlock(5000, 1) + notHeld + end},
		{rule: "the second of three", lock: reentrantLock, record: takes + acquire + again + unlock(5000, 2) + unlock(5010, 1) + notHeld + end},
		{rule: "the first of two", lock: reentrantLock, record: unheard + entered + unlock(5000, 1) + notHeld + end},
		{rule: "a level that was told is left", lock: reentrantLock, record: takes + acquire + notHeld + end, finds: finds},
		{rule: "a level of two that were told is left", lock: reentrantLock, record: takes + acquire + again + unlock(5000, 2) + notHeld + end, finds: finds},
		{rule: "a level that was told is left of a hold that began without an answer", lock: reentrantLock, record: unheard + entered + notHeld + end, finds: finds},
		{rule: "the acquire has given its level back itself", lock: reentrantLock, record: takes + acquire[:strings.Index(acquire, "3000")] + cleanUp + "\n\t\t\t3000 a/1 return unknown" + notHeld + end, finds: finds},
		{rule: "each level was told", lock: reentrantLock, record: takes + answered + unlock(5000, 1) + notHeld + end, finds: finds},
	})
}

// A value in the queue whose thread is unknown may wait for any thread.
func TestAValueOfAnUnknownThreadMayWait(t *testing.T) {
	const record = `
			0     a/1 takes -> a/1 1 30001 queue=v7
			10    a/1 releases -> free queue=v7
			20    b/1 waits lock
			9000  b/1 gets -> b/1 1 39000
			9100  b/1 releases
			90000 server leave`
	fair := anybodys
	fair.Fair = true
	fair.Promises = model.Promises{model.JudgeHoldCount: {Waived: true}, model.JudgeFIFO: {Waived: true}, model.JudgeLiveness: {Waived: true}}
	named := fair
	named.PerGrant = false
	testJudged(t, []judged{
		{rule: "a value", lock: fair, record: record},
		{rule: "a thread", lock: named, record: record, finds: "tidy bug: v7 stands in the queue of l at 0.001s, and does not wait"},
	})
}

// Servers that agree on a request may refuse to answer it, and run it later: no request of the call ends the hold then.
func TestAnUnlockThatRunsWithoutAnAnswer(t *testing.T) {
	const record = `
			0    a/1 takes
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock
			1002 a/1 deliver unlock
			1005 server ends -> free
			1010 a/1 return released
			9000 server leave`
	silent := strings.NewReplacer("1000 a/1 send unlock", "", "1001 a/1 exec unlock", "", "1002 a/1 deliver unlock", "").Replace(record)
	testJudged(t, []judged{
		{rule: "after it was refused", lock: anybodys, record: record},
		{rule: "also when the lease is over for some time", lock: anybodys, record: strings.NewReplacer(
			"\t1000", "\t29990", "\t1001", "\t29991", "\t1002", "\t29992", "\t1005", "\t30100", "\t1010", "\t30110", "9000 server", "90000 server").Replace(record)},
		{rule: "but not because it ends", lock: anybodys, finds: "linearizable bug: l: a/1 release", record: strings.NewReplacer(
			"\t1000", "\t29990", "\t1001", "\t29991", "\t1002", "\t29992", "\t1005", "\t30002", "\t1010", "\t30110", "9000 server", "90000 server").Replace(record)},
		{rule: "and not without a request", lock: anybodys, record: silent, finds: "linearizable bug: l: a/1 release"},
	})
}

// A hold of a value with which nobody was granted the lock is a ghost, which keeps waiters until its lease ends.
func TestAHoldOfAnUnknownThreadKeepsWaiters(t *testing.T) {
	const record = `
			0     a/1 takes
			10    a/1 releases
			20    a/1 send acquire nobody=y
			2000  a/1 exec acquire -> v7 1 32000
			3000  b/1 waits lock
			32001 server expire -> free
			32002 b/1 gets -> b/1 1 62000
			32100 b/1 releases
			90000 server leave`
	unpromised := anybodys
	unpromised.Promises = model.Promises{model.JudgeLease: {Waived: true}, model.JudgeTidy: {Waived: true}}
	testJudged(t, []judged{
		{rule: "until then", lock: unpromised, record: record},
		{rule: "and no longer", lock: unpromised, record: strings.NewReplacer("32002", "42002", "32100", "42100", "62000", "72000").Replace(record),
			finds: "liveness bug: b/1 waited for l from 32.001s to 42.003s while nobody believed to hold it"},
	})
}

// A lock whose waiters may wait by its design for what is stale may leave a place in the queue that a request takes
// once it is given up, and no other place.
func TestARequestThatWasGivenUpMayStandInTheQueue(t *testing.T) {
	const returned = `
		0    a/1 takes lease=9000
		500  b/1 invoke try_lock_timed wait=500
		500  b/1 send acquire
		1000 b/1 return unknown
		1001 b/1 exec acquire -> a/1 1 9001 queue=b/1
		2000 a/1 releases -> free
		9900 server leave`
	const overtaken = `
		0    a/1 takes lease=9000
		500  b/1 invoke try_lock_timed wait=500
		500  b/1 send acquire
		998  b/1 send leave
		999  b/1 exec leave
		999  b/1 deliver leave
		1000 b/1 exec acquire -> a/1 1 9001 queue=b/1
		1001 b/1 return unknown
		2000 a/1 releases -> free
		9900 server leave`
	const inTime = `
		0    a/1 takes lease=9000
		500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
		1000 b/1 return unknown
		2000 a/1 releases -> free
		9900 server leave`
	stale := fairLock
	stale.Waits = 2 * time.Second
	const ghost = "tidy bug: b/1 stands in the queue"
	testJudged(t, []judged{
		{rule: "after the call", lock: stale, record: returned},
		{rule: "but not without such a wait", lock: fairLock, record: returned, finds: ghost},
		{rule: "after a later request", lock: stale, record: overtaken},
		{rule: "nor here", lock: fairLock, record: overtaken, finds: ghost},
		{rule: "a place that the call left", lock: stale, record: inTime, finds: ghost},
	})
}

// A thread cannot leave the queue if a fault met a request of its call that the server did not run.
func TestARequestThatDidNotRunExcusesAPlaceInTheQueue(t *testing.T) {
	record := func(last string) string {
		return `
			0     a/1 takes
			10    b/1 invoke lock
			10    b/1 send acquire
			11    b/1 exec acquire -> a/1 1 30001 queue=b/1
			12    b/1 deliver acquire
			20    b/1 send acquire
			21    b/1 ` + last + `
			25    b/1 return busy
			30    a/1 releases -> free queue=b/1
			90000 server leave`
	}
	lock := anybodys
	lock.Fair = true
	lock.Promises = model.Promises{model.JudgeTidy: {Unless: []model.Circumstance{model.WaiterAway}}, model.JudgeHoldCount: {Waived: true}, model.JudgeLinearizable: {Waived: true}}
	testJudged(t, []judged{
		{rule: "a fault met it", lock: lock, record: record("hit 1 acquire nth=2\n22 b/1 lost acquire nth=2 request dropped"),
			finds: "tidy limit (waiter away when its turn came)"},
		{rule: "no fault met it", lock: lock, record: record("lost acquire nth=2 request dropped"),
			finds: "tidy bug: b/1 stands in the queue of l at 0.025s, although its lock had returned busy at 0.025s"},
		{rule: "it ran", lock: lock, record: record("hit 1 acquire nth=2\n22 b/1 exec acquire nth=2\n23 b/1 deliver acquire"),
			finds: "tidy bug: b/1 stands in the queue of l at 0.025s, although its lock had returned busy at 0.025s"},
	})
}

// A hold that a failover brought back is nobody's once its owner has given it up.
func TestAHoldThatAFailoverBroughtBack(t *testing.T) {
	record := func(released string) string {
		return `
			0     a/1 takes
			100   ` + released + ` -> free
			200   server fault 1 failover that loses the last 1 writes -> a/1 1 30001
			300   a/2 invoke try_lock
			300   a/2 send acquire
			301   a/2 exec acquire -> free
			302   a/2 return unknown
			90000 server leave`
	}
	lock := anybodys
	lock.Promises = model.Promises{model.JudgeHoldCount: {Waived: true}, model.JudgeLinearizable: {Waived: true}}
	testJudged(t, []judged{
		{rule: "its owner gave it up", lock: lock, record: record("a/1 releases")},
		{rule: "its owner believes in it", lock: lock, record: record("server fault 2 delete of key l"),
			finds: "misdelete bug: acquire of a/2 (EVAL, sent at 0.300s) ended the hold of a/1 on l at 0.301s"},
	})
}

// A call whose hold a fault removed counts if a later request of the call took the lock again.
func TestACallThatTookTheLockAgain(t *testing.T) {
	const record = `
			0     a/1 invoke try_lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			2     server fault 1 delete of key l -> free
			3     a/1 send acquire
			4     a/1 exec acquire -> a/1 1 30004
			5     a/1 return unknown
			30005 server expire -> free
			90000 server leave`
	lock := reentrantLock
	lock.Promises = nil
	known := lock
	known.PerGrant = false
	testJudged(t, []judged{
		{rule: "it did", lock: lock, record: record},
		{rule: "it did, for a thread that knows its holds otherwise", lock: known, record: record,
			finds: "hold-count bug: at 0.005s, after its try_lock, the server counts 1 for a/1 on l, and its calls add up to 0"},
	})
}

// A request of an unknown thread may be what a call of unknown outcome did.
func TestALevelOfAnUnknownThread(t *testing.T) {
	record := func(who string) string {
		return `
			0     a/1 takes
			10    a/1 invoke lock
			10    ` + who + ` send acquire nobody=y
			11    ` + who + ` exec acquire -> a/1 2 30011
			12    a/1 return unknown
			30012 server expire -> free
			90000 server leave`
	}
	lock := reentrantLock
	lock.Promises = model.Promises{model.JudgeMisdelete: {Waived: true}}
	testJudged(t, []judged{
		{rule: "of the process", lock: lock, record: record("a/1")},
		{rule: "of another process", lock: lock, record: record("b/1"),
			finds: "hold-count bug: at 0.012s, after its lock, the server counts 2 for a/1 on l, and its calls add up to 1"},
	})
}

// A renewal that names a hold which another hand ended is how its client learns of the end.
func TestALateRenewalOfALostHold(t *testing.T) {
	const record = `
			0     a/1 takes -> a/1 1 30001 value=v
			100   a/1 send renew args=v
			101   a/1 exec renew -> a/1 1 30101 value=v
			102   a/1 deliver renew
			200   server fault 1 expire of key l -> free
			300   a/1 takes try_lock -> a/1 1 30301 value=w
			400   a/1 releases
			500   a/1 send renew args=v
			501   a/1 exec renew nth=2
			502   a/1 deliver renew nth=2
			90000 server leave`
	testJudged(t, []judged{
		{rule: "the thread had another hold since", lock: anybodys, record: record},
		{rule: "it had none, and knows of the loss", lock: anybodys,
			record: strings.NewReplacer("300   a/1 takes try_lock -> a/1 1 30301 value=w", "", "400   a/1 releases", "400   a/1 invoke unlock\n401   a/1 return not_held").Replace(record),
			finds:  "lease bug: a renewal of l for a/1 was sent at 0.500s, although its unlock had returned not_held at 0.401s"},
	})
}

// A fault puts off a renewal that a holder sent before it failed to give the lock up, died or closed its client.
// The lease that it leaves begins when the renewal runs.
func TestALateRenewalOfAHoldThatIsLeft(t *testing.T) {
	record := func(sent, left, gets string) string {
		return `
			0     a/1 takes
			100   b/1 waits lock
			` + sent + `  a/1 send renew
			` + sent + `  a/1 hit 1 renew delay
			` + left + `
			4000  a/1 exec renew -> a/1 1 34000
			34001 server expire -> free
			` + gets + ` b/1 gets
			90000 server leave`
	}
	const unlock = "1000 a/1 invoke unlock\n1100 a/1 return "
	const interrupted = "1000 a/1 invoke unlock\n1050 a/2 interrupts a/1\n1100 a/1 return error"
	var cases []judged
	for _, c := range []struct{ left, after string }{
		{unlock + "unknown", "a call of unknown outcome"},
		{unlock + "error", "a failed unlock"},
		{interrupted, "an interrupted call"},
		{"1100 server fault 2 crash of a", "a crash"},
		{"1100 a close", "a client that closed"},
	} {
		cases = append(cases,
			judged{rule: "a second and a lease after " + c.after, lock: ourLock, record: record("900", c.left, "34999")},
			judged{rule: "and no more after " + c.after, lock: ourLock, record: record("900", c.left, "35000"),
				finds: "liveness bug: to 35.001s while nobody believed to hold it; the bound is 3"})
	}
	testJudged(t, append(cases,
		judged{rule: "sent while the unlock is under way", lock: ourLock, record: record("1050", unlock+"unknown", "34100")},
		judged{rule: "sent after it is a bug, and no reason to wait", lock: ourLock, record: record("1101", unlock+"unknown", "34100"),
			finds: "lease bug: a renewal of l for a/1 was sent at 1.101s\n liveness bug: b/1 waited for l from 1.101s to 34.101s while nobody believed to hold it; the bound is 31s"}))
}
