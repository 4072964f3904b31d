package linearizability

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/model"
)

// anybodys is a lock of which the judges know only the lease. A thread knows a hold only by
// the value that its grant returned.
var anybodys = model.Params{Lock: "anybody's", Traits: model.Traits{NoWatchdog: true, Uncounted: true, PerGrant: true}, Timing: timing(0),
	Promises: model.Promises{model.JudgeHoldCount: {Waived: true}}}

// onSeveral is such a lock on five servers.
var onSeveral = func() model.Params {
	p := anybodys
	p.Servers = 5
	return p
}()

func TestAHoldIsKnownByItsGrant(t *testing.T) {
	const unheard = `
			0    a/1 invoke lock
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 30001
			2    a/1 lost acquire reply dropped
			3000 a/1 return unknown
			4000 a/1 invoke unlock
			4001 a/1 return not_held
			30002 server expire -> free
			40000 server leave`
	const heard = `
			0    a/1 takes
			4000 a/1 invoke unlock
			4001 a/1 return not_held
			30002 server expire -> free
			40000 server leave`
	const two = `
			0    a/1 takes
			4000 a/1 invoke unlock
			4000 a/1 send unlock
			4001 a/1 exec unlock -> a/1 1 29001
			4002 a/1 exec unlock -> free
			4003 a/1 lost unlock reply dropped
			7000 a/1 return unknown
			40000 server leave`
	testJudged(t, []judged{
		{rule: "a thread does not know a hold whose grant it did not hear", lock: anybodys, record: unheard},
		{rule: "another lock does", lock: bareLock, record: unheard,
			finds: "linearizable bug: l: a/1 release (4.000s..4.001s) answered not_held, but the lock was held by a/1"},
		{rule: "a thread knows the hold whose grant it heard", lock: anybodys, record: heard,
			finds: "linearizable bug: l: a/1 release (4.000s..4.001s) answered not_held, but the lock was held by a/1"},
		{rule: "an unlock of unknown outcome takes effect when the last part is gone", lock: onSeveral, record: two},
	})
}

func TestOneOfSeveralServersMayForgetItsPart(t *testing.T) {
	// The part that a server forgets at 1 s was part of a majority only for the client
	// that counted it.
	const forgotten = `
			0    a/1 invoke lock
			0    a/1 send acquire
			1000 server fault 1 delete of key l
			1001 a/1 exec acquire
			1002 a/1 deliver acquire
			1002 a/1 return granted
			2000 b/1 takes
			3000 b/1 releases
			3100 a/1 invoke unlock
			3101 a/1 return unknown
			40000 server leave`
	testJudged(t, []judged{
		{rule: "of several", lock: onSeveral, record: forgotten,
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 2.002s while a/1 believed to hold it since 1.002s"},
		{rule: "with one server it is nobody's excuse", lock: anybodys, record: forgotten,
			finds: "mutual-exclusion bug: b/1 was granted l at 2.002s while a/1 believed to hold it since 1.002s\n" +
				"linearizable bug: answered granted"},
	})
}

func TestAnAcquireMayCleanUpAfterItself(t *testing.T) {
	testJudged(t, []judged{
		{rule: "a failed try is cleaned up, and a later one is granted", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			3     b/1 send acquire
			4     b/1 exec acquire -> free
			5     b/1 send acquire
			6     b/1 exec acquire -> b/1 1 30006
			7     b/1 return granted
			10    b/1 releases
			40000 server leave`},
		{rule: "between the two somebody else may hold the lock", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			3     b/1 send acquire
			4     b/1 exec acquire -> free
			5     a/1 takes
			10    a/1 releases
			15    b/1 send acquire
			16    b/1 exec acquire -> b/1 1 30016
			17    b/1 return granted
			20    b/1 releases
			40000 server leave`},
		{rule: "while the first one stands, nobody else may", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			3     a/1 invoke lock
			4     a/1 return granted
			5     b/1 send acquire
			6     b/1 exec acquire -> free
			7     b/1 return busy
			40000 server leave`, finds: "linearizable bug: l: a/1 acquire (0.003s..0.004s) answered granted"},
		{rule: "a try that was cleaned up has no lease any more", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			30003 server expire -> free
			30010 b/1 send acquire
			30011 b/1 exec acquire -> b/1 1 60011
			30012 b/1 send acquire
			30013 b/1 exec acquire -> free
			30014 b/1 send acquire
			30015 b/1 exec acquire -> b/1 1 60015
			30016 b/1 return granted
			30020 b/1 releases
			40000 server leave`},
		{rule: "the clean-up of one try must not end the hold of the next", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 send acquire
			3     b/1 send acquire
			4     b/1 exec acquire nth=3 -> b/1 1 30004
			5     b/1 return granted
			6     b/1 exec acquire nth=2 -> free
			10    b/1 invoke unlock
			11    b/1 return not_held
			40000 server leave`,
			finds: "lease bug: b/1 was granted l at 0.004s, and the same call ended that hold at 0.006s with a command that it had sent at 0.002s"},
		{rule: "nor before the call returns with it", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 send acquire
			3     b/1 exec acquire nth=2 -> b/1 1 30003
			4     b/1 exec acquire nth=1 -> free
			5     b/1 return granted
			40000 server leave`, finds: "lease bug: b/1 was granted l at 0.003s, and the same call ended that hold at 0.004s"},
	})
}

func TestAHoldOnSeveralServersFillsUp(t *testing.T) {
	// The fourth server moves the end of the lease of the majority.
	const fills = `
			0     b/1 invoke lock
			1     b/1 send acquire
			1     b/1 send acquire
			2     b/1 exec acquire nth=1 -> b/1 1 12002
			3     b/1 exec acquire nth=2 -> b/1 1 30003
			4     b/1 return granted
			20000 b/1 releases
			40000 server leave`
	const not = `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 12002
			4     b/1 return granted
			12003 server expire -> free
			20000 b/1 invoke unlock
			20001 b/1 return released
			40000 server leave`
	testJudged(t, []judged{
		{rule: "its lease is that of all servers", lock: onSeveral, record: fills},
		{rule: "one that does not fill up ends with the majority", lock: onSeveral, record: not,
			finds: "linearizable bug: l: b/1 release (20.000s..20.001s) answered released, but the lock was free"},
	})
}

func TestTwoMaySplitTheServers(t *testing.T) {
	const alone = "0 a/1 invoke try_lock\n1 a/1 send acquire\n2 a/1 exec acquire\n3 a/1 return busy\n"
	const split = "0 b/1 invoke try_lock\n1 b/1 send acquire\n2 b/1 exec acquire\n3 b/1 return busy\n" + alone + "40000 server leave"
	testJudged(t, []judged{
		{rule: "and both be refused", lock: onSeveral, record: split},
		{rule: "of one server one of them gets the lock", lock: anybodys, record: split,
			finds: "linearizable bug: l: b/1 acquire (0.000s..0.003s) answered busy, but the lock was free"},
		{rule: "one alone gets it on several, too", lock: onSeveral, record: alone + "40000 server leave",
			finds: "linearizable bug: l: a/1 acquire (0.000s..0.003s) answered busy, but the lock was free"},
	})
}

func TestALateRequestLeavesAHoldOfWhichNobodyKnows(t *testing.T) {
	// The request that comes at 1 s was sent again long before, and the lock given up.
	late := func(gets, releases int) string {
		return `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 send acquire
			3     b/1 exec acquire nth=2 -> b/1 1 30003
			4     b/1 deliver acquire nth=2
			4     b/1 return granted
			10    b/1 releases
			1000  b/1 exec acquire nth=1 -> b/1 1 31000
			1001  b/1 lost acquire nth=1 reply nobody waits for it
			2000  a/1 invoke lock
			2000  a/1 send acquire
			2001  a/1 exec acquire
			2002  a/1 deliver acquire
			31001 server expire -> free
` + fmt.Sprintf("%d a/1 gets\n%d a/1 releases\n90000 server leave", gets, releases)
	}
	testJudged(t, []judged{
		{rule: "a waiter may wait for its lease", lock: anybodys, record: late(31500, 32000)},
		{rule: "and not for longer", lock: anybodys, record: late(64000, 65000), finds: "liveness bug: a/1 waited for l"},
	})
}

func TestTrafficIsCountedPerServer(t *testing.T) {
	asks := func(n int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "0 a/1 takes\n10 b/1 invoke lock\n")
		for i := range n {
			at := 20 + i*900/n
			fmt.Fprintf(&b, "%d b/1 send acquire\n%d b/1 exec acquire\n%d b/1 deliver acquire\n", at, at, at)
		}
		b.WriteString("5000 a/1 releases\n5010 b/1 gets\n6000 b/1 releases\n40000 server leave\n")
		return b.String()
	}
	testJudged(t, []judged{
		{rule: "as many as one server may be asked", lock: anybodys, record: asks(20)},
		{rule: "one more", lock: anybodys, record: asks(21), finds: "traffic bug: b/1 sent 21 commands for l"},
		{rule: "as many for each of five", lock: onSeveral, record: asks(100)},
		{rule: "one more than five may be asked", lock: onSeveral, record: asks(101), finds: "traffic bug: b/1 sent 101 commands for l"},
	})
}
