package judges

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// anybodys is a lock whose lease is all that the judges know. A thread knows a hold only by the
// value that its grant returned.
var anybodys = model.Params{Lock: "anybody's", Traits: model.Traits{NoWatchdog: true, Uncounted: true, PerGrant: true}, Timing: timing(0),
	Promises: model.Promises{model.JudgeHoldCount: {Waived: true}}}

// reentrantLock is such a lock, but its holder may enter it again.
var reentrantLock = func() model.Params {
	p := anybodys
	p.Uncounted = false
	return p
}()

// onSeveral is such a lock on five servers.
var onSeveral = func() model.Params {
	p := anybodys
	p.Parts = 5
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
	const overtaken = `
			0    a/1 invoke lock
			0    a/1 send acquire
			100  a/1 send acquire
			101  a/1 exec acquire nth=2 -> a/1 1 30101
			102  a/1 deliver acquire nth=2
			102  a/1 return granted
			1000 a/1 releases
			3000 a/1 exec acquire nth=1 -> a/1 1 33000
			4000 a/1 invoke unlock
			4001 a/1 return not_held
			33001 server expire -> free
			40000 server leave`
	const thrice = `
			0    a/1 takes
			4000 a/1 invoke unlock
			4001 a/1 return unknown
			4002 a/1 invoke unlock
			4003 a/1 return not_held
			4004 a/1 invoke unlock
			4005 a/1 return not_held
			30002 server expire -> free
			40000 server leave`
	testJudged(t, []judged{
		{rule: "an unlock of unknown outcome gives the hold up for all that follow", lock: anybodys, record: thrice},
		{rule: "a thread does not know a hold whose grant it did not hear", lock: anybodys, record: unheard},
		{rule: "nor one that began with a request that its call had given up", lock: anybodys, record: overtaken},
		{rule: "it knows the one that it returned with", lock: anybodys, record: strings.Replace(overtaken, "1000 a/1 releases\n", "", 1),
			finds: "linearizable bug: l: a/1 release (4.000s..4.001s) answered not_held, but the lock was held by a/1"},
		{rule: "another lock does", lock: bareLock, record: unheard,
			finds: "linearizable bug: l: a/1 release (4.000s..4.001s) answered not_held, but the lock was held by a/1"},
		{rule: "a thread knows the hold whose grant it heard", lock: anybodys, record: heard,
			finds: "linearizable bug: l: a/1 release (4.000s..4.001s) answered not_held, but the lock was held by a/1"},
		{rule: "an unlock of unknown outcome takes effect when the last part is gone", lock: onSeveral, record: two},
	})
}

// A fault that keeps a client from taking back one of two parts keeps others waiting for as long as a lease.
func TestAPartThatIsLeft(t *testing.T) {
	left := func(ends string) string {
		return `
			0     a/1 invoke try_lock_timed wait=100
			0     a/1 send acquire
			1     a/1 exec acquire
			2     a/1 deliver acquire` + ends + `
			200   b/1 invoke try_lock_timed wait=9000
			200   b/1 send acquire
			201   b/1 exec acquire
			202   b/1 deliver acquire
			9200  b/1 return busy
			40000 server leave`
	}
	const (
		takenBack = `
			50    a/1 send unlock
			51    a/1 hit 2 unlock
			100   a/1 return failed`
		sentAgain = `
			50    a/1 send acquire
			51    a/1 hit 2 acquire
			100   a/1 return failed`
	)
	onTwo, onThree := onSeveral, onSeveral
	onTwo.Parts, onThree.Parts = 2, 3
	tooLate := strings.Replace(left("\n3 a/1 return failed"), "1     a/1 exec acquire\n			2     a/1 deliver acquire", "", 1) + "\n"
	const forgotten = "linearizable bug: l: b/1 acquire\nliveness bug: b/1 waited for l"
	testJudged(t, []judged{
		{rule: "what takes it back is held up", lock: onTwo, record: left(takenBack)},
		{rule: "without a fault there is none", lock: onTwo, record: left(strings.Replace(takenBack, "hit 2", "exec", 1)), finds: forgotten},
		{rule: "a request that is sent once more takes nothing back", lock: onTwo, record: left(sentAgain), finds: forgotten},
		{rule: "the request of an unlock takes one back", lock: onTwo, record: `
			0     b/1 takes
			1000  b/1 invoke unlock
			1000  b/1 send unlock
			1001  b/1 hit 2 unlock
			1001  b/1 send unlock
			1002  b/1 exec unlock -> free
			1003  b/1 deliver unlock
			1100  b/1 return unknown
			1200  b/1 invoke try_lock
			1200  b/1 send acquire
			1201  b/1 exec acquire
			1202  b/1 deliver acquire
			1203  b/1 return busy
			40000 server leave`},
		{rule: "a request may come when its call is over", lock: onTwo, record: strings.Replace(left("\n3 a/1 return failed"), "1     a/1 exec acquire\n			2     a/1 deliver acquire", "1     a/1 hit 2 acquire", 1) + "\n			50 a/1 exec acquire"},
		{rule: "a server that stalls may hold a request until its call is over", lock: onTwo, record: tooLate + "1 server fault 1 server stall for 49ms\n50 a/1 exec acquire"},
		{rule: "the network alone leaves no part", lock: onTwo, record: tooLate + "50 a/1 exec acquire", finds: forgotten},
		{rule: "nor does a stall after the request", lock: onTwo, record: tooLate + "50 a/1 exec acquire\n51 server fault 1 server stall for 49ms", finds: forgotten},
		{rule: "one of three parts keeps nobody waiting", lock: onThree, record: left(takenBack), finds: forgotten},
		{rule: "two of three do", lock: onThree, record: left(strings.Replace(takenBack, "100   a/1", "52    a/1 send unlock\n53    a/1 hit 2 unlock\n100   a/1", 1))},
		{rule: "a crash leaves one, too", lock: onTwo, record: left("\n2 server fault 1 crash of a")},
		{rule: "but not one of three", lock: onThree, record: left("\n2 server fault 1 crash of a"), finds: "liveness bug: b/1 waited for l"},
	})
}

// A lock with a key for each part grants by the answers that it got. Where the server lost
// one of the keys meanwhile, a later command makes the hold whole.
func TestAHoldThatIsWholeAfterItsGrant(t *testing.T) {
	const unlocked = `
			20   a/1 invoke unlock
			20   a/1 send unlock
			22   a/1 exec unlock -> free
			23   a/1 lost unlock reply dropped
			24   a/1 return unknown
			100  b/1 takes
			200  b/1 releases
			40000 server leave`
	const late = `
			0    a/1 invoke lock
			0    a/1 send acquire
			18   a/1 return granted
			19   a/1 exec acquire -> a/1 1 30019`
	const again = `
			0    a/1 invoke lock
			0    a/1 send acquire
			9    a/1 exec acquire -> a/1 1 30009
			10   server fault 1 delete of key l -> free
			10   a/1 lost acquire reply dropped
			12   a/1 send acquire
			18   a/1 return granted
			19   a/1 exec acquire -> a/1 1 30019`
	const outside = `
			0    a/1 takes
			10   server fault 1 delete of key l -> free
			12   a/1 send renew
			13   a/1 exec renew -> a/1 1 30013
			14   a/1 deliver renew
			15   a/1 send renew
			16   a/1 exec renew -> a/1 1 30016
			17   a/1 deliver renew`
	const unheard = `
			0    a/1 takes
			12   a/1 send renew
			13   a/1 exec renew -> free
			14   a/1 deliver renew
			15   a/1 send renew
			16   a/1 exec renew -> a/1 1 30016
			17   a/1 deliver renew`
	testJudged(t, []judged{
		{rule: "by a command of its call", lock: watchedLock, record: late + unlocked},
		{rule: "by such a command, after the server had lost the whole", lock: watchedLock, record: again + unlocked},
		{rule: "by a command outside of calls", lock: watchedLock, record: outside + unlocked},
		{rule: "by such a command, after its client had ended the hold unheard", lock: watchedLock, record: unheard + unlocked},
	})
}

// watchedLock is such a lock, but it renews its holds and reports their end.
var watchedLock = func() model.Params {
	p := anybodys
	p.Traits = model.Traits{Uncounted: true, PerGrant: true, Watched: true}
	return p
}()

func TestAThreadIsNotToldOfAnEndThatIsNone(t *testing.T) {
	const renewed = `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew -> a/1 1 40001
			10002 a/1 deliver renew`
	const rest = `
			40001 server expire -> free
			90000 server leave`
	const without = "lease bug: a/1 was told at 29.999s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease; the lease that it knows of lasts until 40.000s"
	disturbed := strings.Replace(renewed, "10000", "1000  server fault 1 partition of a for 1s\n\t\t\t2000  server heal 1\n\t\t\t10000", 1) + `
			20000 a/1 send renew
			20001 a/1 exec renew -> a/1 1 50001
			20002 a/1 deliver renew`
	granted := func(askedAgain string) string {
		return `
			0     a/1 invoke lock lease=30000
			0     a/1 send look
			200   a/1 exec look
			400   a/1 deliver look
			` + askedAgain + ` a/1 send acquire
			403   a/1 exec acquire -> a/1 1 30403
			404   a/1 deliver acquire
			404   a/1 return granted
			20200 a/1 told
			30403 server expire -> free
			90000 server leave`
	}
	const greeted = `
			0     a greeting hit hold
			0     a/1 invoke lock
			30000 a greeting comes
			30000 a/1 send acquire
			30001 a/1 exec acquire -> a/1 1 60001
			30002 a/1 deliver acquire
			30002 a/1 return granted
			30100 a/1 told
			60001 server expire -> free
			90000 server leave`
	longAgo := strings.NewReplacer("30100 a/1 told", "50000 a/1 renews\n\t\t\t60001 a/1 told", "60001 server", "80001 server").Replace(greeted)
	counted := watchedLock
	counted.Traits.Uncounted = false
	endless := watchedLock
	endless.Traits.Endless, endless.Traits.NoWatchdog = true, true
	testJudged(t, []judged{
		{rule: "without a cause", lock: watchedLock, record: renewed + `
			29999 a/1 told` + rest, finds: without},
		{rule: "in the last third of a lease that its caller asked for", lock: watchedLock, record: strings.Replace(renewed, "takes", "takes lease=30000", 1) + `
			30000 a/1 told` + rest},
		{rule: "in the last third of a lease that the lock renews", lock: watchedLock, record: renewed + `
			30000 a/1 told` + rest, finds: "lease bug: a/1 was told at 30.000s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease; the lease that it knows of lasts until 40.000s"},
		{rule: "in the last third of a lease, in a hold that was disturbed since its last renewal", lock: watchedLock, record: disturbed + `
			21000 server fault 2 partition of a for 1s
			22000 server heal 2
			40000 a/1 told
			50001 server expire -> free
			90000 server leave`},
		{rule: "but not before", lock: watchedLock, record: disturbed + `
			40000 a/1 told
			50001 server expire -> free
			90000 server leave`, finds: "lease bug: a/1 was told at 40.000s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease; the lease that it knows of lasts until 50.000s"},
		{rule: "before, in a hold that was disturbed", lock: watchedLock, record: disturbed + `
			39999 a/1 told
			50001 server expire -> free
			90000 server leave`, finds: "lease bug: a/1 was told at 39.999s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease; the lease that it knows of lasts until 50.000s"},
		{rule: "while a renewal is under way", lock: watchedLock, record: renewed + `
			20000 a/1 send renew
			30000 a/1 told
			30001 a/1 exec renew -> a/1 1 60001
			30002 a/1 deliver renew
			60001 server expire -> free
			90000 server leave`},
		{rule: "a renewal whose answer is under way is not known of", lock: watchedLock, record: `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew -> a/1 1 40001
			20000 a/1 told
			20001 a/1 deliver renew` + rest},
		{rule: "a renewal got no answer", lock: watchedLock, record: `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew -> a/1 1 40001
			10002 a/1 lost renew reply dropped
			15000 a/1 told` + rest},
		{rule: "within a lease of a partition", lock: watchedLock, record: `
			0     a/1 takes
			1000  server fault 1 partition of a for 1s
			2000  server heal 1` + renewed[len("\n\t\t\t0     a/1 takes"):] + `
			29999 a/1 told` + rest},
		{rule: "the hold is gone", lock: watchedLock, record: `
			0     a/1 takes
			5000  b/1 invoke unlock
			5000  b/1 send unlock
			5001  b/1 exec unlock -> free
			5002  b/1 return not_held
			5001  a/1 told
			90000 server leave`, finds: "misdelete bug: unlock of b/1"},
		{rule: "its own client ends the hold, and then tells", lock: watchedLock, record: renewed + `
			20000 a/1 send renew
			20001 a/1 exec renew -> free
			20002 a/1 told
			90000 server leave`},
		{rule: "its own client tells, and then ends the hold", lock: watchedLock, record: renewed + `
			20000 a/1 told
			20000 a/1 send renew
			20001 a/1 exec renew -> free
			90000 server leave`, finds: "lease bug: a/1 was told at 20.000s that its hold on l is gone"},
		{rule: "after its thread has called unlock", lock: watchedLock, record: renewed + `
			20000 a/1 invoke unlock
			20000 a/1 told
			20000 a/1 send unlock
			20001 a/1 exec unlock -> free
			20002 a/1 return released
			90000 server leave`},
		{rule: "the attempt began with another command", lock: watchedLock, record: granted("400")},
		{rule: "which was over before the attempt began", lock: watchedLock, record: granted("401"), finds: "lease bug: a/1 was told at 20.200s that its hold on l is gone"},
		{rule: "the greeting of a server was late, and the client counts the lease from before", lock: watchedLock, record: greeted},
		{rule: "it was late, and that is long ago", lock: watchedLock, record: longAgo, finds: "lease bug: a/1 was told at 60.001s that its hold on l is gone"},
		{rule: "a message on a channel was late", lock: watchedLock, record: strings.NewReplacer("greeting hit", "push hit", "greeting comes", "woken").Replace(greeted),
			finds: "lease bug: a/1 was told at 30.100s that its hold on l is gone"},
		{rule: "the unlock of an inner level shortened the hold", lock: counted, record: `
			0     a/1 takes lease=30000
			5000  a/1 invoke lock lease=30000
			5000  a/1 send acquire
			5001  a/1 exec acquire -> a/1 2 35001
			5002  a/1 deliver acquire
			5002  a/1 return granted
			15000 a/1 invoke unlock
			15000 a/1 send unlock
			15001 a/1 exec unlock -> a/1 1 30001
			15002 a/1 deliver unlock
			15002 a/1 return still_held
			20000 a/1 told
			30001 server expire -> free
			90000 server leave`},
		{rule: "of a lock without leases", lock: endless, record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 -1
			2     a/1 return granted
			50000 a/1 told
			90000 server leave`,
			finds: "lease bug: a/1 was told at 50.000s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease"},
	})
}

func TestAThreadIsToldOfTheEndOfItsHold(t *testing.T) {
	// refused is a renewal that the server refuses, after which the client gives the hold
	// up. b/1 is granted the lock at 12.004 s.
	refused := func(told string) string {
		return `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew (error) out of memory
			10002 a/1 deliver renew
			10002 a/1 send renew
			10003 a/1 exec renew -> free
			10004 a/1 deliver renew
			` + told + `
			12002 b/1 takes
			13000 b/1 releases
			40000 server leave`
	}
	const gone = `
			0     a/1 takes
			1000  server fault 1 delete of key l -> free`
	testJudged(t, []judged{
		{rule: "nobody believes in a hold that its client gave up", lock: watchedLock, record: refused("10004 a/1 told")},
		{rule: "told at the very instant at which the next is granted", lock: watchedLock, record: refused("12004 a/1 told")},
		{rule: "told too late", lock: watchedLock, record: refused("12005 a/1 told"),
			finds: "mutual-exclusion bug: b/1 was granted l at 12.004s while a/1 believed to hold it since 0.002s: renew of a/1 had ended it at 10.003s"},
		{rule: "never told", lock: watchedLock, record: refused(""),
			finds: "mutual-exclusion bug: b/1 was granted l at 12.004s while a/1 believed to hold it since 0.002s: renew of a/1 had ended it at 10.003s\n" +
				"lease bug: a/1 believed to hold l until 40.000s; the hold had ended at 10.003s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s"},
		{rule: "told of another lock", lock: watchedLock, record: refused("10004 a/1 told lock=k"),
			finds: "mutual-exclusion bug: b/1 was granted l\n" +
				"lease bug: a/1 believed to hold l until 40.000s; the hold had ended at 10.003s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s"},
		{rule: "another thread is told", lock: watchedLock, record: refused("10004 a/2 told"),
			finds: "mutual-exclusion bug: b/1 was granted l\n" +
				"lease bug: a/1 believed to hold l until 40.000s; the hold had ended at 10.003s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s"},
		{rule: "told of the hold before", lock: watchedLock, record: `
			0     a/1 takes
			1000  a/1 told
			1000  server fault 1 delete of key l -> free
			2000  a/1 takes
			3000  server fault 2 delete of key l -> free
			4000  b/1 takes
			5000  b/1 releases
			6000  server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 4.002s while a/1 believed to hold it since 2.002s"},
		{rule: "an unlock may say not_held once its thread is told", lock: watchedLock, record: `
			0     a/1 takes
			500   server fault 1 partition of a for 400ms
			900   server heal 1
			1000  a/1 told
			2000  a/1 invoke unlock
			2001  a/1 return not_held
			30002 server expire -> free
			40000 server leave`},
		{rule: "an unlock may say not_held while a close gives the hold up", lock: watchedLock, record: `
			0     a/1 takes
			2000  a/1 invoke unlock
			2000  a/1 send renew
			2001  a/1 exec renew -> free
			2002  a/1 deliver renew
			2002  a/1 return not_held
			40000 server leave`},
		{rule: "and not before", lock: watchedLock, record: `
			0     a/1 takes
			2000  a/1 invoke unlock
			2001  a/1 return not_held
			3000  a/1 told
			30002 server expire -> free
			40000 server leave`,
			finds: "linearizable bug: l: a/1 release (2.000s..2.001s) answered not_held, but the lock was held by a/1"},
		{rule: "a hold of which its thread is told need not be renewed", lock: watchedLock, record: `
			0     a/1 takes
			11000 server fault 1 partition of a for 400ms
			11400 server heal 1
			12000 a/1 told
			30002 server expire -> free
			40000 server leave`},
		{rule: "a renewal sent again names the same end, and another thread may be granted the lock then", lock: watchedLock, record: `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew
			10002 a/1 deliver renew
			20000 server fault 1 crash of a
			30002 server expire -> free
			31000 b/1 takes
			32000 b/1 releases
			40000 server leave`},
		{rule: "a pause puts off what a thread learns", lock: watchedLock, record: `
			0     a/1 takes
			1000  server fault 1 pause of a for 39s
			30002 server expire -> free
			31000 b/1 takes
			32000 b/1 releases
			40000 server heal 1
			40000 a/1 told
			50000 server leave`,
			finds: "mutual-exclusion limit (holder paused past its lease) (holder cut off until its lease ended): b/1 was granted l at 31.002s"},
		{rule: "a thread is told within a lease and the time of a lost command", lock: watchedLock, record: gone + `
			39499 a/1 told
			90000 server leave`},
		{rule: "one that is told later", lock: watchedLock, record: gone + `
			39501 a/1 told
			90000 server leave`,
			finds: "lease bug: a/1 believed to hold l until 39.501s, and was not told that the hold was gone, although nothing disturbed it from 1.000s on; the bound is 38.5s"},
		{rule: "one that is never told", lock: watchedLock, record: gone + `
			90000 server leave`,
			finds: "lease bug: a/1 believed to hold l until 90.000s, and was not told that the hold was gone, although nothing disturbed it from 1.000s on; the bound is 38.5s"},
		{rule: "an unlock comes in time", lock: watchedLock, record: gone + `
			39000 a/1 invoke unlock
			39001 a/1 return not_held
			90000 server leave`},
		{rule: "a partition begins the time anew", lock: watchedLock, record: gone + `
			30000 server fault 2 partition of a for 10s
			40000 server heal 2
			78000 a/1 invoke unlock
			78001 a/1 return not_held
			90000 server leave`},
		{rule: "once", lock: watchedLock, record: gone + `
			30000 server fault 2 partition of a for 10s
			40000 server heal 2
			90000 server leave`,
			finds: "lease bug: a/1 believed to hold l until 90.000s, and was not told that the hold was gone, although nothing disturbed it from 40.000s on"},
		{rule: "a lock that tells nothing promises nothing", lock: func() model.Params {
			p := watchedLock
			p.Watched = false
			return p
		}(), record: gone + `
			90000 server leave`},
		{rule: "a dead thread need not be told", lock: watchedLock, record: gone + `
			2000 server fault 2 crash of a
			90000 server leave`},
	})
}

// A lock that tells of the end of its holds tells before the lease ends that it knows.
func TestAThreadIsToldBeforeItsLeaseEnds(t *testing.T) {
	fixed := watchedLock
	fixed.NoWatchdog, fixed.RenewalPeriod = true, 0
	blind := fixed
	blind.Watched = false
	silent := watchedLock
	silent.Promises = model.Promises{model.JudgeLease: {Waived: true}, model.JudgeMutualExclusion: {Waived: true}}
	// cutOff is a lock whose last renewal was sent at 10 s, whose answer came at 12 s, and whose next renewals are lost.
	cutOff := func(told string) string {
		return `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew -> a/1 1 40001
			12000 a/1 deliver renew
			20000 a/1 send renew
			20000 server fault 1 partition of a for 30s
			20001 a/1 lost renew request partition
			` + told + `
			50000 server heal 1
			60000 server leave`
	}
	// slow is a lock whose grant took 3 s to arrive.
	slow := func(told string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			3000  a/1 deliver acquire
			3000  a/1 return granted
			` + told + `
			60000 server leave`
	}
	const ended = "\n\t\t\t40002 server expire -> free\n\t\t\t"
	testJudged(t, []judged{
		{rule: "it counts from the sending", lock: watchedLock, record: cutOff("40000 a/1 told" + ended)},
		{rule: "it counts from the answer", lock: watchedLock, record: cutOff(ended + "42000 a/1 told"),
			finds: "lease bug: a/1 believed to hold l until 42.000s; the hold had ended at 40.002s, and the lease that a/1 knew of, counted from the request that it sent at 10.000s, at 40.000s"},
		{rule: "nobody is told", lock: watchedLock, record: cutOff(ended), finds: "lease bug: a/1 believed to hold l until 60.000s; the hold had ended at 40.002s"},
		{rule: "the thread gives the hold up before", lock: watchedLock, record: cutOff("40001 a/1 invoke unlock" + ended + "41000 a/1 return unknown")},
		{rule: "a pause across the end", lock: watchedLock, record: cutOff("30000 server fault 2 pause of a for 15s" + ended + "45000 server heal 2\n\t\t\t45000 a/1 told")},
		{rule: "a pause before the end puts off a request that waits", lock: watchedLock,
			record: cutOff("30000 server fault 2 pause of a for 5s\n\t\t\t35000 server heal 2" + ended + "45000 a/1 told")},
		{rule: "by its own length", lock: watchedLock, record: cutOff("30000 server fault 2 pause of a for 5s\n\t\t\t35000 server heal 2" + ended + "45005 a/1 told"),
			finds: "lease bug: a/1 believed to hold l until 45.005s"},
		{rule: "a renewal without an answer prolongs no lease that is known", lock: watchedLock, record: strings.Replace(cutOff(ended+"42000 a/1 told"), "12000 a/1 deliver renew", "10002 a/1 lost renew reply dropped", 1),
			finds: "lease bug: a/1 believed to hold l until 42.000s; the hold had ended at 40.002s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s"},
		{rule: "a server that ends holds late harms nobody", lock: watchedLock, record: cutOff("41000 a/1 told\n\t\t\t41500 server expire -> free")},
		{rule: "a fixed lease", lock: fixed, record: slow("30000 a/1 told\n\t\t\t30002 server expire -> free\n\t\t\t31000 b/1 takes\n\t\t\t32000 b/1 releases")},
		{rule: "a fixed lease that counts from the answer", lock: fixed, record: slow("30002 server expire -> free\n\t\t\t31000 b/1 takes\n\t\t\t32000 b/1 releases\n\t\t\t33000 a/1 told"),
			finds: "mutual-exclusion bug: b/1 was granted l at 31.002s while a/1 believed to hold it since 3.000s: its lease had ended at 30.002s\n" +
				"lease bug: a/1 believed to hold l until 33.000s; the hold had ended at 30.002s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s"},
		{rule: "a fixed lease of a lock that tells nothing", lock: blind, record: slow("30002 server expire -> free\n\t\t\t31000 b/1 takes\n\t\t\t32000 b/1 releases")},
		{rule: "a lock that promises neither", lock: silent, record: cutOff(ended)},
	})
}

// A call on several servers may make several attempts. The hold of one that the call gave up is not the hold with which it returned.
func TestAThreadIsToldOfTheAttemptThatWasGranted(t *testing.T) {
	fixed := watchedLock
	fixed.NoWatchdog, fixed.RenewalPeriod, fixed.Parts = true, 0, 3
	const tookBack = `
			0     b/1 invoke lock
			1000  b/1 send acquire
			1001  b/1 exec acquire -> b/1 1 31001
			1002  b/1 lost acquire reply dropped
			30500 b/1 send acquire
			30501 b/1 exec acquire -> free
			30501 b/1 deliver acquire`
	const ranOut = `
			0     b/1 invoke lock
			0     b/1 send acquire
			1     b/1 exec acquire -> b/1 1 30001
			1     b/1 lost acquire reply dropped
			30002 server expire -> free`
	const first = `
			31000 b/1 send acquire
			31001 b/1 exec acquire
			31002 b/1 deliver acquire`
	const second = `
			31020 b/1 send acquire
			31021 b/1 exec acquire
			31022 b/1 deliver acquire
			31022 b/1 return granted`
	const deleted = "\n\t\t\t31010 server fault 1 delete of key l"
	const unheard = `
			31020 b/1 send acquire
			31021 b/1 exec acquire -> b/1 1 61021
			31022 b/1 lost acquire reply dropped
			31022 b/1 return granted
			61022 server expire -> free`
	whole := strings.Replace(unheard, "lost acquire reply dropped", "deliver acquire", 1)
	told := func(at int) string { return fmt.Sprintf("\n%d b/1 told\n99000 server leave", at) }
	extends := func(answer string) string {
		return `
			0     b/1 takes
			30000 b/1 invoke extend lease=30000
			30000 b/1 send renew
			30000 b/1 send renew
			30001 b/1 exec renew nth=1 -> b/1 1 60001
			30002 b/1 deliver renew nth=1
			30003 b/1 exec renew nth=2
			` + answer + `
			30010 b/1 told
			30020 b/1 return renewed
			60002 server expire -> free
			99000 server leave`
	}
	const late = "lease bug: b/1 believed to hold l until 63.000s; the hold had ended at 61.022s"
	testJudged(t, []judged{
		{rule: "a part is lost behind an attempt that was taken back", lock: fixed, record: tookBack + first + deleted + second + told(61000)},
		{rule: "a part is lost behind an attempt that ran out", lock: fixed, record: ranOut + first + deleted + second + told(61000)},
		{rule: "within a bound", lock: fixed, record: tookBack + first + deleted + second + told(98000),
			finds: "lease bug: b/1 believed to hold l until 98.000s, and was not told that the hold was gone, although nothing disturbed it from 31.022s on"},
		{rule: "the hold is whole", lock: fixed, record: tookBack + first + whole + told(61000)},
		{rule: "the hold is whole, and its end told late", lock: fixed, record: tookBack + first + whole + told(63000),
			finds: late + ", and the lease that b/1 knew of, counted from the request that it sent at 31.020s, at 61.020s"},
		{rule: "the request that made it whole had no answer", lock: fixed, record: tookBack + first + unheard + told(63000), finds: late},
		{rule: "an extension that waits for one of the servers", lock: fixed, record: extends("")},
		{rule: "one that has all answers", lock: fixed, record: extends("30005 b/1 deliver renew nth=2\n"),
			finds: "lease bug: b/1 was told at 30.010s that its hold on l is gone, and the server held it since 0.001s, and nothing had disturbed it for a lease; the lease that it knows of lasts until 60.000s"},
	})
}

func TestTheTokenOfAHandle(t *testing.T) {
	fenced := anybodys
	fenced.Fenced = true
	counted := fenced
	counted.Uncounted = false
	idempotent := fenced
	idempotent.Idempotent = true
	// late is a grant at 1 ms that a/1 receives when b/1 already has the lock.
	late := func(first, second string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			30002 server expire -> free
			31000 b/1 takes token=` + second + `
			32000 a/1 deliver acquire
			32000 a/1 return granted token=` + first + `
			33000 b/1 releases
			40000 server leave`
	}
	testJudged(t, []judged{
		{rule: "it grows", lock: fenced, record: `
			0    a/1 takes token=1
			1000 a/1 releases
			2000 b/1 takes token=9223372036854775807
			3000 b/1 releases
			4000 server leave`},
		{rule: "it stays", lock: fenced, record: `
			0    a/1 takes token=7
			1000 a/1 releases
			2000 b/1 takes token=7
			3000 b/1 releases
			4000 server leave`,
			finds: "fencing bug: b/1 was told the token 7 with the grant of l at 2.002s, and a/1 had been told 7 with the grant of an earlier hold"},
		{rule: "a lock without tokens has none to compare", lock: anybodys, record: `
			0    a/1 takes token=7
			1000 a/1 releases
			2000 b/1 takes token=7
			3000 b/1 releases
			4000 server leave`},
		{rule: "a hold without a token is not compared", lock: fenced, record: `
			0    a/1 takes token=7
			1000 a/1 releases
			2000 b/1 takes
			3000 b/1 releases
			4000 server leave`},
		{rule: "who hears of its grant late may have the lesser token", lock: fenced, record: late("1", "2")},
		{rule: "and not the greater one", lock: fenced, record: late("2", "1"),
			finds: "fencing bug: b/1 was told the token 1 with the grant of l at 31.002s, and a/1 had been told 2 with the grant of an earlier hold"},
		{rule: "a re-entry needs none of its own", lock: counted, record: `
			0    a/1 takes token=7
			500  a/1 takes token=7 -> a/1 2 30501
			4000 server leave`},
		{rule: "nor does a holder who is granted at once what it has", lock: idempotent, record: `
			0    a/1 takes token=7
			500  a/1 takes token=7 -> a/1 1 30501
			4000 server leave`},
		{rule: "but its next hold does", lock: idempotent, record: `
			0    a/1 takes token=7
			500  a/1 releases
			1000 a/1 takes token=7
			4000 server leave`,
			finds: "fencing bug: a/1 was told the token 7 with the grant of l at 1.002s, and a/1 had been told 7 with the grant of an earlier hold"},
		{rule: "nor where nobody knows what the server holds", lock: stateless(counted), record: `
			0    a/1 invoke lock
			2    a/1 return granted token=7
			500  a/1 invoke lock
			502  a/1 return granted token=7
			4000 server leave`},
		{rule: "without the server's state, calls that follow one another are compared", lock: stateless(fenced), record: `
			0    a/1 invoke lock
			2    a/1 return granted token=7
			10   a/1 invoke unlock
			12   a/1 return released
			500  b/1 invoke lock
			502  b/1 return granted token=6
			4000 server leave`, finds: "fencing bug: b/1 was told the token 6 with the grant of l at 0.502s, and a/1 had been told 7"},
		{rule: "and calls that overlap are not", lock: stateless(fenced), record: `
			0    a/1 invoke lock
			1    b/1 invoke lock
			2    a/1 return granted token=7
			10   a/1 invoke unlock
			12   a/1 return released
			502  b/1 return granted token=6
			4000 server leave`},
		{rule: "a count that another hand took away is a limit", lock: fenced, record: `
			0    a/1 takes token=7
			1000 a/1 releases
			1500 server fault 1 delete of key counter
			2000 b/1 takes token=1
			3000 b/1 releases
			4000 server leave`,
			finds: "fencing limit (hold removed by another hand): b/1 was told the token 1"},
	})
}

func TestAGrantThatGrows(t *testing.T) {
	// A third server has the value until 19 s. The lease of the majority grows when two more
	// have it.
	grows := func(returns string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send acquire
			0     a/1 send acquire
			1     a/1 exec acquire nth=1 -> a/1 1 19000
			5     a/1 exec acquire nth=2 -> a/1 1 30005
			` + returns + ` a/1 return granted
			20000 a/1 releases
			40000 server leave`
	}
	testJudged(t, []judged{
		{rule: "before the call returns", lock: onSeveral, record: grows("6")},
		{rule: "and later", lock: onSeveral, record: grows("4")},
	})
}

// A client may give back what is left of a hold of which its owner knows that it is gone.
func TestLevelsAreGoneWithTheHold(t *testing.T) {
	counted := anybodys
	counted.Watched, counted.Uncounted, counted.Promises = true, false, nil
	const record = `
			0     a/1 takes
			29000 a/1 told
			29100 a/1 send renew call=n for=a/1
			29101 a/1 exec renew -> free
			60000 server leave`
	twice := func(then string) string {
		return `
			0     a/1 takes
			100   a/1 takes -> a/1 2 30101
			` + then + `
			29100 a/1 releases -> free
			60000 server leave`
	}
	within := func(answer string) string {
		return `
			0     a/1 takes
			100   a/1 takes -> a/1 2 30101
			29000 a/1 invoke unlock
			29100 a/1 send renew call=n for=a/1
			29101 a/1 exec renew -> free
			29102 a/1 return ` + answer + `
			60000 server leave`
	}
	testJudged(t, []judged{
		{rule: "given back", lock: counted, record: record},
		{rule: "and nobody was told", lock: counted, record: strings.Replace(record, "29000 a/1 told", "", 1),
			finds: "hold-count bug: at 29.101s, after its lock, the server counts 0 for a/1 on l, and its calls add up to 1\nlease bug: a/1 believed to hold l until 60.000s"},
		{rule: "by an unlock of the thread", lock: counted, record: twice("29000 a/1 told")},
		{rule: "which could not extend it", lock: counted, record: twice("29000 a/1 invoke extend\n29001 a/1 return unknown")},
		{rule: "while an unlock waits that then finds nothing", lock: counted, record: within("not_held")},
		{rule: "but not if the unlock says that it left a level", lock: counted, record: within("still_held"),
			finds: "hold-count bug: at 29.102s, after its unlock, the server counts 0 for a/1 on l, and its calls add up to 1\nlease bug: a/1 believed to hold l until 60.000s"},
		{rule: "nor of one that extended it", lock: counted, record: twice("29000 a/1 invoke extend\n29001 a/1 send renew\n29002 a/1 exec renew -> a/1 2 59002\n29003 a/1 return extended"),
			finds: "hold-count bug: at 29.102s, after its unlock, the server counts 0 for a/1 on l, and its calls add up to 1\nlease bug: a/1 believed to hold l until 60.000s"},
	})
}

// An unlock that gives up one of several levels tells its thread nothing of the end of the hold, and the thread renews what it has.
func TestAnUnlockOfOneLevelTellsOfNoLoss(t *testing.T) {
	call := func(action model.Action, outcome model.Outcome) *trace.Call {
		return &trace.Call{Event: &model.Event{Action: action}, Outcome: outcome}
	}
	for _, c := range []struct {
		levels  int
		outcome model.Outcome
		lost    bool
	}{{2, model.Released, true}, {2, model.StillHeld, true}, {2, model.NotHeld, false}, {1, model.Released, false}} {
		k := &renewed{}
		for range c.levels {
			k.answer(call(model.ActLock, model.Granted))
		}
		k.levels, k.lost = 0, true
		if k.answer(call(model.ActUnlock, c.outcome)); k.lost != c.lost {
			t.Errorf("%+v: the thread takes the hold for lost: %v", c, k.lost)
		}
	}
}

// The levels of a holder are doubtful after a call of unknown outcome, a fault, or a request that came late.
func TestLevelsThatAreInDoubt(t *testing.T) {
	counted := anybodys
	counted.Uncounted, counted.Promises = false, nil
	// undone is a failover that undoes an unlock and a lock whose answer is lost, before another lock, which writes the number of levels.
	undone := func(answer, levels string) string {
		return `
			0     a/1 takes
			10    a/1 takes -> a/1 2 30011
			1000  a/1 invoke unlock
			1000  a/1 send unlock
			1001  a/1 exec unlock -> a/1 1 30011
			1002  a/1 deliver unlock
			1002  a/1 return released
			1010  a/1 invoke lock
			1010  a/1 send acquire
			1011  a/1 exec acquire nth=3 -> a/1 2 31011
			1012  server fault 1 failover that loses the last 2 writes -> a/1 2 30011
			1013  a/1 return ` + answer + `
			1020  a/1 invoke lock
			1020  a/1 send acquire
			1021  a/1 exec acquire nth=4 -> a/1 ` + levels + ` 31021
			1022  a/1 deliver acquire nth=4
			1022  a/1 return granted
			9000  server leave`
	}
	// removed is a hold that the request of an unknown thread began, and that ends before its call returns.
	removed := func(by string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send EVAL nobody=y args=v
			1     a/1 exec EVAL -> a/1 1 30001 value=v
			2     ` + by + `
			3     a/1 return granted
			9000  server leave`
	}
	// second is an acquire of a lock that its thread has, by the request of an unknown thread.
	second := func(levels, then string) string {
		return `
			0     a/1 takes -> a/1 1 30001
			10    a/1 invoke lock
			10    a/1 send EVAL nobody=y
			11    a/1 exec EVAL -> a/1 ` + levels + ` 30011
			12    ` + then + `
			13    a/1 return granted
			9000  server leave`
	}
	// late is an acquire that is sent twice, and whose second request runs during the unlock.
	late := func(exec, unlock string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send acquire
			0     a/1 send acquire
			1     a/1 exec acquire nth=1 -> a/1 1 30001
			2     a/1 deliver acquire nth=1
			2     a/1 return granted
			10    a/1 invoke unlock
			10    a/1 send unlock
			` + unlock + `  a/1 exec unlock -> ` + exec + `
			12    a/1 exec acquire nth=2 -> a/1 1 30012
			13    a/1 deliver unlock
			13    a/1 return released
			30013 server expire -> free
			60000 server leave`
	}
	testJudged(t, []judged{
		{rule: "an unlock without an answer that a failover undid", lock: counted, record: `
			0     a/1 takes
			10    a/1 invoke unlock
			10    a/1 send EVAL nobody=y
			11    a/1 exec EVAL -> free
			12    server fault 1 failover that loses the last 1 writes -> a/1 1 30001
			12    a/1 return unknown
			30002 server expire -> free
			60000 server leave`},
		{rule: "after a lock without an answer that a failover undid", lock: counted, record: undone("unknown", "2")},
		{rule: "which may have been granted", lock: counted, record: undone("unknown", "3")},
		{rule: "but it gained one level at most", lock: counted, record: undone("unknown", "4"), finds: "hold-count bug: at 1.022s, after its lock, the server counts 4 for a/1 on l, and its calls add up to 3"},
		{rule: "a fault took the hold before its call returned", lock: counted, record: removed("server fault 1 delete of key l -> free")},
		{rule: "or that of a second level", lock: counted, record: second("2", "server fault 1 delete of key l -> free")},
		{rule: "which is not counted", lock: counted, record: second("1", "a/1 deliver EVAL"), finds: "hold-count bug: at 0.013s, after its lock, the server counts 1 for a/1 on l, and its calls add up to 2"},
		{rule: "a request of the acquire came during the unlock", lock: counted, record: late("free", "11")},
	})
}

// A holder counts on a second less than its lease if the lock writes its ends in whole seconds.
func TestAHoldThatEndsAtAWholeSecond(t *testing.T) {
	ticking := anybodys
	ticking.Tick = time.Second
	ends := func(beganMs, endMs int) string {
		return fmt.Sprintf(`
			%d    a/1 invoke lock
			%[1]d a/1 send acquire
			%[1]d a/1 exec acquire -> a/1 1 %d
			%[1]d a/1 deliver acquire
			%[1]d a/1 return granted
			%[2]d server expire -> free
			%[2]d b/1 invoke lock
			%[2]d b/1 send acquire
			%[2]d b/1 exec acquire -> b/1 1 %[3]d
			%[2]d b/1 deliver acquire
			%[2]d b/1 return granted
			%[4]d b/1 releases
			90000 server leave`, beganMs, endMs, endMs/1000*1000+30000+endMs%1000, endMs+1500)
	}
	const early = "mutual-exclusion bug: b/1 was granted l at %s while a/1 believed to hold it since 0.200s: its lease had ended at %[1]s"
	testJudged(t, []judged{
		{rule: "as it is written", lock: anybodys, record: ends(200, 30000)},
		{rule: "but not by more", lock: anybodys, record: ends(200, 29000), finds: fmt.Sprintf(early, "29.000s")},
		{rule: "of no other lock", lock: anybodys, record: ends(200, 29300), finds: fmt.Sprintf(early, "29.300s")},
		{rule: "nor of one that must know of the ticks of its server", lock: ticking, record: ends(200, 30000), finds: fmt.Sprintf(early, "30.000s")},
	})
}

func TestAHolderExtendsItsHold(t *testing.T) {
	extendable := anybodys
	extendable.Extends = true
	ticking := extendable
	ticking.Tick = time.Second
	// The command runs at 20.001 s, and gives the hold a lease up to 50.001 s.
	extends := func(answer string) string {
		return `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 send renew
			20001 a/1 exec renew -> a/1 1 50001
			20002 a/1 deliver renew
			20002 a/1 return ` + answer + "\n"
	}
	const extendsLate = `
			31000 a/1 invoke extend
			31000 a/1 send renew
			31001 a/1 exec renew `
	const told = `
			31002 a/1 deliver renew
			31002 a/1 return extended`
	// A renewal in no call prolongs the hold until 50.001 s, and the extension then looks.
	const looks = `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 send renew call=n
			20001 a/1 exec renew -> a/1 1 50001
			20002 a/1 deliver renew
			20005 a/1 send renew call=y
			20006 a/1 exec renew nth=2
			20007 a/1 deliver renew nth=2
			20007 a/1 return extended
			45000 a/1 releases
			60000 server leave`
	// The extension has a lease granted at 20.001 s, and gives it to the hold at 20.008 s.
	granted := func(end string) string {
		return `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 send grant
			20001 a/1 exec grant
			20002 a/1 deliver grant
			20007 a/1 send renew
			20008 a/1 exec renew -> a/1 1 ` + end + `
			20009 a/1 deliver renew
			20009 a/1 return extended
			45000 a/1 releases
			60000 server leave`
	}
	sentAgain := func(end string) string {
		return `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 send renew
			20001 a/1 exec renew (error) NOSCRIPT
			20002 a/1 deliver renew
			20004 a/1 send renew
			20005 a/1 exec renew nth=2 -> a/1 1 ` + end + `
			20006 a/1 deliver renew nth=2
			20006 a/1 return extended
			45000 a/1 releases
			60000 server leave`
	}
	const refused = `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 send renew
			20001 a/1 exec renew
			20002 a/1 deliver renew
			20002 a/1 return `
	testJudged(t, []judged{
		{rule: "an extended hold is given up later", lock: extendable, record: extends("extended") + `
			45000 a/1 releases
			60000 server leave`},
		{rule: "its owner believes in it for a lease from the sending", lock: extendable, record: extends("extended") + `
			49996 server fault 1 delete of key l -> free
			49997 b/1 takes
			60000 b/1 releases
			90000 server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 49.999s while a/1 believed to hold it since 0.002s"},
		{rule: "a failover may take the extension before its answer comes", lock: extendable, record: `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 return unknown
			20000 a/1 invoke extend
			20000 a/1 send renew
			20001 a/1 exec renew -> a/1 1 50001
			21000 server fault 1 failover that loses the last 1 writes -> a/1 1 30002
			22000 a/1 deliver renew
			22000 a/1 return extended
			30002 server expire -> free
			31000 b/1 takes
			60000 b/1 releases
			90000 server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): its lease had ended at 30.002s, which failover that loses the last 1 writes had shortened at 21.000s"},
		{rule: "and the hold, before the extension is sent", lock: extendable, record: `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 return unknown
			20500 server fault 1 failover that loses the last 1 writes -> free
			21000 a/1 invoke extend
			21000 a/1 send renew
			21001 a/1 exec renew
			21002 a/1 deliver renew
			21002 a/1 return extended
			31000 b/1 takes
			60000 b/1 releases
			90000 server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): failover that loses the last 1 writes had removed it at 20.500s\nlinearizable bug: l: a/1 renew"},
		{rule: "and no longer", lock: extendable, record: extends("extended") + `
			49996 server fault 1 delete of key l -> free
			49998 b/1 takes
			60000 b/1 releases
			90000 server leave`},
		{rule: "an extension that says more than is true", lock: extendable, record: refused + `extended
			30002 server expire -> free
			31000 b/1 takes
			32000 b/1 releases
			60000 server leave`,
			finds: "mutual-exclusion bug: b/1 was granted l at 31.002s while a/1 believed to hold it since 0.002s: its lease had ended at 30.002s\n" +
				"lease bug: a/1 extended its hold on l from 20.000s on, and the hold ends at 30.001s; a lease is 30s"},
		{rule: "one that ends the hold a tick early", lock: ticking, record: strings.Replace(extends("extended"), "50001", "49000", 1) + `
			45000 a/1 releases
			60000 server leave`},
		{rule: "on a server without ticks", lock: extendable, finds: "lease bug: a/1 extended its hold on l from 20.000s on, and the hold ends at 49.000s; a lease is 30s",
			record: strings.Replace(extends("extended"), "50001", "49000", 1) + `
			45000 a/1 releases
			60000 server leave`},
		{rule: "one that ends it earlier", lock: ticking, record: strings.Replace(extends("extended"), "50001", "48998", 1) + `
			45000 a/1 releases
			60000 server leave`, finds: "lease bug: a/1 extended its hold on l from 20.000s on, and the hold ends at 48.998s; a lease is 30s"},
		{rule: "one of a lock that writes whole seconds", lock: extendable, record: strings.NewReplacer("0     a/1 takes", "999 a/1 takes", "50001", "49000").Replace(extends("extended")) + `
			45000 a/1 releases
			60000 server leave`},
		{rule: "and that is a second short", lock: extendable, record: strings.NewReplacer("0     a/1 takes", "999 a/1 takes", "50001", "48000").Replace(extends("extended")) + `
			45000 a/1 releases
			60000 server leave`, finds: "lease bug: a/1 extended its hold on l from 20.000s on, and the hold ends at 48.000s; a lease is 30s"},
		{rule: "its lease counts from the request that began it", lock: extendable, record: granted("50001")},
		{rule: "and not from between two requests", lock: extendable, record: granted("50004"),
			finds: "lease bug: a/1 extended its hold on l from 20.007s on, and the hold ends at 50.004s; a lease is 30s"},
		{rule: "an unlock of what was not extended may say that there is no hold", lock: extendable, record: refused + `unknown
			20100 a/1 invoke unlock
			20100 a/1 return not_held
			30002 server expire -> free
			60000 server leave`},
		{rule: "but not by the answer of a server", lock: extendable, record: refused + `unknown
			20100 a/1 invoke unlock
			20100 a/1 send unlock
			20101 a/1 exec unlock
			20102 a/1 deliver unlock
			20102 a/1 return not_held
			30002 server expire -> free
			60000 server leave`, finds: "linearizable bug: l: a/1 release (20.100s..20.102s) answered not_held, but the lock was held by a/1"},
		{rule: "and of what was extended it may not", lock: extendable, record: extends("extended") + `
			20100 a/1 invoke unlock
			20100 a/1 return not_held
			50002 server expire -> free
			60000 server leave`, finds: "linearizable bug: l: a/1 release (20.100s..20.100s) answered not_held, but the lock was held by a/1"},
		{rule: "its lease counts from the renewal that ran for it in no call", lock: extendable, record: looks},
		{rule: "but not from one that was sent before it", lock: extendable, record: strings.NewReplacer("20000 a/1 invoke extend", "", "20005 a/1", "20005 a/1 invoke extend\n20005 a/1").Replace(looks),
			finds: "lease bug: a/1 extended its hold on l from 20.005s on, and the hold ends at 50.001s; a lease is 30s"},
		{rule: "from the first request also if the server did not know its script", lock: extendable, record: sentAgain("50000")},
		{rule: "and not from an earlier instant", lock: extendable, record: sentAgain("49998"),
			finds: "lease bug: a/1 extended its hold on l from 20.000s on, and the hold ends at 49.998s; a lease is 30s"},
		{rule: "an extension of a hold that is gone", lock: extendable, record: `
			0     a/1 takes
			30002 server expire -> free
			31000 a/1 invoke extend
			31002 a/1 return extended
			60000 server leave`,
			finds: "linearizable bug: l: a/1 renew (31.000s..31.002s) answered renewed, but the lock was free"},
		{rule: "and goes on with the hold, which nobody else had meanwhile", lock: extendable, record: `
			0     a/1 takes
			30002 server expire -> free
			` + extendsLate + `-> a/1 1 61001` + told + `
			32000 a/1 releases
			60000 server leave`},
		{rule: "another had the lock meanwhile", lock: extendable, record: `
			0     a/1 takes
			30002 server expire -> free
			30100 b/1 takes
			30200 b/1 releases
			` + extendsLate + `-> a/1 1 61001` + told + `
			32000 a/1 releases
			60000 server leave`,
			finds: "linearizable bug: l: a/1 renew (31.000s..31.002s) answered renewed, but the lock was free"},
		{rule: "its owner had given the hold up", lock: extendable, record: `
			0     a/1 takes
			20000 a/1 releases
			` + extendsLate + `-> a/1 1 61001` + told + `
			32000 a/1 releases
			60000 server leave`,
			finds: "linearizable bug: l: a/1 renew (31.000s..31.002s) answered renewed, but the lock was free"},
		{rule: "the owner's hold is another one", lock: extendable, record: `
			0     a/1 takes
			30002 server expire -> free
			` + extendsLate + `-> a/1 1 61001 value=another` + told + `
			32000 a/1 releases
			60000 server leave`,
			finds: "linearizable bug: l: a/1 renew (31.000s..31.002s) answered renewed, but the lock was free"},
		{rule: "an extension that was refused, although the hold is there", lock: extendable, record: refused + `not_held
			30002 server expire -> free
			60000 server leave`,
			finds: "linearizable bug: l: a/1 renew (20.000s..20.002s) answered not_held, but the lock was held by a/1"},
		{rule: "of a hold whose grant nobody heard", lock: extendable, record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			2     a/1 lost acquire reply dropped
			3000  a/1 return unknown
			4000  a/1 invoke extend
			4001  a/1 return not_held
			30002 server expire -> free
			60000 server leave`},
		{rule: "an extension of unknown outcome ran, and its owner does not rely on it", lock: extendable, record: extends("unknown") + `
			29000 server fault 1 delete of key l -> free
			29500 b/1 takes
			29600 b/1 releases
			60000 server leave`},
		{rule: "it prolongs the hold all the same", lock: extendable, record: extends("unknown") + `
			31000 b/1 invoke try_lock
			31000 b/1 send acquire
			31001 b/1 exec acquire
			31002 b/1 deliver acquire
			31002 b/1 return busy
			45000 a/1 releases
			60000 server leave`},
		{rule: "a late answer tells of a hold whose first lease is over", lock: extendable, record: `
			0     a/1 takes
			29900 a/1 invoke extend
			29900 a/1 send renew
			29901 a/1 exec renew -> a/1 1 59901
			31000 a/1 deliver renew
			31000 a/1 return extended
			40000 server fault 1 delete of key l -> free
			41000 b/1 takes
			42000 b/1 releases
			60000 server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 41.002s while a/1 believed to hold it since 31.000s"},
		{rule: "an extension that ends the hold", lock: extendable, record: `
			0     a/1 takes
			20000 a/1 invoke extend
			20000 a/1 send renew
			20001 a/1 exec renew -> free
			20002 a/1 deliver renew
			20002 a/1 return extended
			21000 b/1 takes
			22000 b/1 releases
			60000 server leave`,
			finds: "mutual-exclusion bug: b/1 was granted l at 21.002s while a/1 believed to hold it since 0.002s: renew of a/1 had ended it at 20.001s"},
		{rule: "an extension that does not return", lock: extendable, record: `
			0     a/1 takes
			20000 a/1 invoke extend
			20100 server calm
			30002 server expire -> free
			90000 server leave`,
			finds: "liveness bug: extend of l by a/1, called at 20.000s, had not returned"},
	})
}

func TestAHoldWithoutALease(t *testing.T) {
	endless, nineSeconds := anybodys, anybodys
	endless.Endless = true
	nineSeconds.Watchdog = 9 * time.Second
	// waits is a wait of b/1 to the end, behind a hold of a/1.
	const waits = `
			3000  b/1 invoke lock
			3000  b/1 send acquire
			3001  b/1 exec acquire
			3002  b/1 deliver acquire
			90000 server leave`
	testJudged(t, []judged{
		{rule: "it may last", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			80000 a/1 releases
			90000 server leave`},
		{rule: "its owner believes in it as long", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			79000 server fault 1 delete of key l -> free
			79500 b/1 takes -> b/1 1 endless
			79600 b/1 releases
			90000 server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 79.502s while a/1 believed to hold it since 0.002s"},
		{rule: "another lock has an end", lock: anybodys, record: `
			0     a/1 takes -> a/1 1 endless
			80000 a/1 releases
			90000 server leave`,
			finds: "lease bug: the hold of a/1 on l has no time to live"},
		{rule: "who waits for a dead holder waits for ever", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 crash of a` + waits + `
			99000 server left key l`,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "a hold of which nobody heard is lost, too", lock: endless, record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 endless
			1     a/1 hit 1 acquire
			2     a/1 lost acquire reply dropped
			2000  a/1 return unknown` + waits,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "or whose unlock found its connection dead", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 failover
			2000  a/1 invoke unlock
			2001  a/1 return unknown` + waits,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "unless it had a new one", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 failover
			1500  a/1 invoke try_lock
			1500  a/1 send acquire
			1501  a/1 exec acquire
			1502  a/1 deliver acquire
			1502  a/1 return busy
			2000  a/1 invoke unlock
			2001  a/1 return unknown` + waits,
			finds: "liveness bug: b/1 waited for l"},
		{rule: "unless no fault is behind it", lock: endless, record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 endless
			2     a/1 deliver acquire
			2     a/1 return unknown` + waits,
			finds: "liveness bug: b/1 waited for l"},
		{rule: "also one that is granted while somebody waits", lock: endless, record: `
			0     b/1 invoke lock
			1     a/1 takes -> a/1 1 endless
			1000  server fault 1 crash of a
			90000 server leave`,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "or by a request that came late", lock: endless, record: `
			0     a/1 invoke try_lock
			0     a/1 send acquire
			1     a/1 hit 1 acquire
			2     a/1 return busy
			1000  a/1 exec acquire -> a/1 1 endless` + waits,
			finds: "linearizable bug: l: a/1 acquire (0.000s..0.002s) answered busy, but the lock was free\n" +
				"liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "a failover may bring back an earlier hold of the same thread", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  a/1 releases
			2000  a/1 takes -> a/1 1 endless
			3000  server fault 1 failover
			4000  a/1 invoke unlock
			4001  a/1 return not_held
			90000 server leave`},
		{rule: "a failover may bring back a place in the queue, to which the hold passes", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 failover -> a/1 1 endless queue=c/1
			2000  a/1 releases -> c/1 1 endless` + waits,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "but not one that was taken since", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 failover
			1500  c/1 invoke try_lock
			1500  c/1 send acquire
			1501  c/1 exec acquire -> a/1 1 endless queue=c/1
			1502  c/1 deliver acquire
			1502  c/1 return busy
			2000  a/1 releases -> c/1 1 endless` + waits,
			finds: "liveness bug: b/1 waited for l\ntidy bug: c/1 stands in the queue of l at 1.502s"},
		{rule: "or the value of an earlier hold", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless value=second
			1000  server fault 1 failover -> a/1 1 endless value=first
			2000  a/1 invoke unlock
			2001  a/1 return unknown` + waits,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "an earlier hold that looks the same, when the failover removed what the call had written", lock: endless, record: `
			0     a/1 invoke lock
			0     a/1 send acquire args=l,v
			1     a/1 exec acquire -> a/1 1 endless
			2     a/1 deliver acquire
			2     a/1 return granted
			1000  server fault 1 failover removed=v
			2000  a/1 invoke unlock
			2000  a/1 send unlock
			2001  a/1 exec unlock
			2002  a/1 deliver unlock
			2002  a/1 return not_held` + waits,
			finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l"},
		{rule: "but not what another had written", lock: endless, record: `
			0     a/1 invoke lock
			0     a/1 send acquire args=l,v
			1     a/1 exec acquire -> a/1 1 endless
			2     a/1 deliver acquire
			2     a/1 return granted
			1000  server fault 1 failover removed=w
			2000  a/1 invoke unlock
			2000  a/1 send unlock
			2001  a/1 exec unlock
			2002  a/1 deliver unlock
			2002  a/1 return not_held` + waits,
			finds: "liveness bug: b/1 waited for l"},
		{rule: "not the value of this one", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless value=second
			1000  server fault 1 failover -> a/1 1 endless value=second queue=c/1
			1500  a/1 invoke try_lock
			1500  a/1 send acquire
			1501  a/1 exec acquire
			1502  a/1 deliver acquire
			1502  a/1 return busy
			2000  a/1 invoke unlock
			2001  a/1 return unknown` + waits,
			finds: "liveness bug: b/1 waited for l"},
		{rule: "a place that a failover brings back lasts for a lease", lock: nineSeconds, record: `
			0     a/1 takes -> a/1 1 9000
			500   c/1 invoke try_lock
			500   c/1 send acquire
			501   c/1 exec acquire
			502   c/1 deliver acquire
			502   c/1 return busy
			510   d/1 invoke try_lock
			510   d/1 send acquire
			511   d/1 exec acquire
			512   d/1 deliver acquire
			512   d/1 return busy
			1000  server fault 1 failover -> a/1 1 9000 queue=c/1,d/1
			2000  a/1 releases -> c/1 1 11000 queue=d/1
			2100  b/1 invoke try_lock_timed wait=18000
			2100  b/1 send acquire
			2101  b/1 exec acquire
			2102  b/1 deliver acquire
			11001 server expire -> d/1 1 20000
			20001 server expire -> free
			20100 b/1 return busy
			60000 server leave`,
			finds: "tidy limit (hold removed by another hand): c/1 stands in the queue of l at 1.000s\n" +
				"tidy limit (hold removed by another hand): d/1 stands in the queue of l at 1.000s"},
		{rule: "and not one that a call left behind", lock: nineSeconds, record: `
			0     a/1 takes -> a/1 1 9000
			500   c/1 invoke try_lock
			500   c/1 send acquire
			501   c/1 exec acquire -> a/1 1 9000 queue=c/1
			502   c/1 deliver acquire
			502   c/1 return busy
			510   d/1 invoke try_lock
			510   d/1 send acquire
			511   d/1 exec acquire -> a/1 1 9000 queue=c/1,d/1
			512   d/1 deliver acquire
			512   d/1 return busy
			1000  server fault 1 failover
			2000  a/1 releases -> c/1 1 11000 queue=d/1
			2100  b/1 invoke try_lock_timed wait=18000
			2100  b/1 send acquire
			2101  b/1 exec acquire
			2102  b/1 deliver acquire
			11001 server expire -> d/1 1 20000
			20001 server expire -> free
			20100 b/1 return busy
			60000 server leave`,
			finds: "liveness bug: b/1 waited for l\ntidy bug: c/1 stands in the queue of l at 0.502s\ntidy bug: d/1 stands in the queue of l at 0.512s"},
		{rule: "an unlock that leaves the hold is a bug", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  a/1 invoke unlock
			1002  a/1 return released` + waits,
			finds: "linearizable bug: l: a/1 release (1.000s..1.002s) answered released, but the lock was held by a/1\nliveness bug: b/1 waited for l"},
		{rule: "what is left of a lock that is free is judged", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  a/1 releases
			90000 server leave
			99000 server left key l:queue`,
			finds: "tidy bug: at 99.000s, when everybody had left and every lease was over, there still was key l:queue"},
	})
}

// A hold without a lease may end with the session of its owner. The server notices, and
// nobody sends a command for it.
func TestAnUnlockThatShortensItsLease(t *testing.T) {
	const rest = `
			0     a/1 takes -> a/1 1 301
			100   a/1 invoke unlock
			100   a/1 send unlock
			101   a/1 exec unlock
			302   server expire -> free
			350   a/1 return released
			9000  server leave`
	const record = `
			0     a/1 takes lease=8000 -> a/1 1 8001
			100   a/1 invoke unlock
			100   a/1 send unlock
			101   a/1 exec unlock -> a/1 1 301
			302   server expire -> free
			310   b/1 takes lease=8000 -> b/1 1 8311
			350   a/1 return released
			400   b/1 releases
			9000  server leave`
	const inItsMillisecond = `
			0     a/1 takes lease=8000 -> a/1 1 8001
			100   a/1 invoke unlock
			100   a/1 send unlock
			299   a/1 exec unlock -> a/1 1 301
			300   a/1 return released
			302   server expire -> free
			400   b/1 takes lease=8000 -> b/1 1 8401
			500   b/1 releases
			9000  server leave`
	const found = `300   a/1 invoke unlock
			300   a/1 send unlock
			301   a/1 exec unlock
			301   a/1 deliver unlock
			301   a/1 return not_held
			`
	testJudged(t, []judged{
		{rule: "the hold ends while it is under way", lock: anybodys, record: record},
		{rule: "or in the millisecond of the answer", lock: anybodys, record: inItsMillisecond},
		{rule: "in which the next call need not find it", lock: anybodys, record: strings.Replace(inItsMillisecond, "302   server expire", found+"302   server expire", 1)},
		{rule: "but not later", lock: anybodys, record: strings.Replace(inItsMillisecond, "-> a/1 1 301", "-> a/1 1 303", 1),
			finds: "linearizable bug: l: a/1 release (0.100s..0.300s) answered released, but the lock was held by a/1"},
		{rule: "nor one that takes its end away", lock: anybodys, record: strings.Replace(inItsMillisecond, "-> a/1 1 301", "-> a/1 1 -1", 1),
			finds: "linearizable bug: l: a/1 release (0.100s..0.300s) answered released, but the lock was held by a/1\nlease bug"},
		{rule: "and not by an extension", lock: anybodys, record: strings.NewReplacer("unlock", "extend", "return released", "return unknown").Replace(strings.Replace(inItsMillisecond, "302   server expire", found+"302   server expire", 1)),
			finds: "linearizable bug: l: a/1 renew (0.300s..0.301s) answered not_held, but the lock was held by a/1"},
		{rule: "the last parts of a hold end by themselves, after the call removed one", lock: onSeveral, record: rest},
		{rule: "a hold in one part does", lock: anybodys, record: rest, finds: "linearizable bug: l: a/1 release (0.100s..0.350s) answered released, but the lock was held by a/1"},
		{rule: "it says that it found none", lock: anybodys, record: strings.NewReplacer("101   a/1 exec unlock -> a/1 1 301", "101   a/1 exec unlock", "a/1 1 8001", "a/1 1 301", "return released", "return not_held").Replace(record)},
		{rule: "the lease ends by itself", lock: anybodys, record: strings.NewReplacer("a/1 1 8001", "a/1 1 301", "101   a/1 exec unlock -> a/1 1 301", "101   a/1 exec unlock").Replace(record),
			finds: "linearizable bug: l: a/1 release (0.100s..0.350s) answered released, but the lock was held by a/1"},
	})
}

func TestAHoldThatEndsWithASession(t *testing.T) {
	endless := anybodys
	endless.Endless = true
	const crash = `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 crash of a
			1001  server ends -> free
			2000  b/1 takes -> b/1 1 endless
			2100  b/1 releases
			90000 server leave`
	testJudged(t, []judged{
		{rule: "the next may have the lock", lock: endless, record: crash},
		{rule: "a command that ends the hold of another is found", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1000  server fault 1 crash of a
			1001  b/1 invoke unlock
			1001  b/1 send unlock
			1002  b/1 exec unlock -> free
			1003  b/1 deliver unlock
			1003  b/1 return not_held
			2000  b/1 takes -> b/1 1 endless
			2100  b/1 releases
			90000 server leave`,
			finds: "misdelete bug: unlock of b/1 (EVAL, sent at 1.001s) ended the hold of a/1 on l at 1.002s"},
		{rule: "an owner that works on is found beside the next", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1001  server ends -> free
			2000  b/1 takes -> b/1 1 endless
			2100  b/1 releases
			90000 server leave`,
			finds: "mutual-exclusion bug: b/1 was granted l at 2.002s while a/1 believed to hold it since 0.002s: its session had ended at 1.001s"},
		{rule: "a key that ran out had a lease", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1001  server expire -> free
			2000  b/1 takes -> b/1 1 endless
			2100  b/1 releases
			90000 server leave`,
			finds: "mutual-exclusion bug: b/1 was granted l at 2.002s while a/1 believed to hold it since 0.002s: its lease had ended at 1.001s"},
		{rule: "an unlock finds no hold", lock: endless, record: `
			0     a/1 takes -> a/1 1 endless
			1001  server ends -> free
			3000  a/1 invoke unlock
			3001  a/1 return released
			90000 server leave`,
			finds: "linearizable bug: l: a/1 release (3.000s..3.001s) answered released, but the lock was free"},
	})
}

func TestAnEarlierHoldExplainsNothing(t *testing.T) {
	// The lock of c/1 was a majority for c/1 alone. Its earlier parts mean nothing.
	testJudged(t, []judged{
		{rule: "of several servers", lock: onSeveral, record: `
			0    c/1 takes
			100  c/1 releases
			700  c/1 invoke lock
			700  c/1 send acquire
			750  server fault 1 delete of key l
			751  c/1 exec acquire
			752  c/1 deliver acquire
			752  c/1 return granted
			760  a/1 takes
			800  a/1 releases
			900  c/1 invoke unlock
			901  c/1 return unknown
			4000 server leave`,
			finds: "mutual-exclusion limit (hold removed by another hand): a/1 was granted l at 0.762s while c/1 believed to hold it since 0.752s: the server never knew of the hold of c/1"},
	})
}

func TestAHoldThatStaysWhenItsThreadIsToldOfItsEnd(t *testing.T) {
	rec := recordOf(t, watchedLock, `
			0     a/1 takes
			1000  a/1 told
			2000  b/1 invoke lock
			2000  b/1 send acquire
			2001  b/1 exec acquire
			2002  b/1 deliver acquire
			30002 server expire -> free
			90000 server leave`)
	j := judgeRecord(rec, nil)
	expect(t, "lease bug: a/1 was told at 1.000s that its hold on l is gone, and the server held it\n"+"liveness bug: b/1 waited for l from", j)
	got, ok := PartingOf(trace.New(rec), Finding{Judge: model.JudgeLiveness, AtNs: 20_000e6, Facts: model.Facts{Lock: "l", Thread: "b/1"}})
	if !ok || got.Kind != PartedTold || got.AtNs != 1000e6 || got.Thread != "a/1" {
		t.Errorf("they part by %+v (%v)", got, ok)
	}
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
				"linearizable bug: l: a/1 acquire (0.000s..1.002s) answered granted, but the lock was free"},
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
			2     b/1 hit 1 acquire reply
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
		{rule: "nor that of a client that is closed before the call returns", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			3     b close
			4     b/1 send acquire
			5     b/1 exec acquire -> free
			6     b/1 return granted
			40000 server leave`, finds: "lease bug: b/1 was granted l at 0.002s, and its client, which was closed at 0.003s, ended that hold at 0.005s with a command that it had sent at 0.004s"},
		{rule: "nor that of a call after which the client is closed", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			4     b/1 send acquire
			5     b/1 exec acquire -> free
			5     b close
			6     b/1 return granted
			40000 server leave`, finds: "lease bug: b/1 was granted l at 0.002s, and the same call ended that hold at 0.005s with a command that it had sent at 0.004s"},
		{rule: "nor before the call returns with it", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 send acquire
			3     b/1 exec acquire nth=2 -> b/1 1 30003
			4     b/1 exec acquire nth=1 -> free
			5     b/1 return granted
			40000 server leave`, finds: "lease bug: b/1 was granted l at 0.003s, and the same call ended that hold at 0.004s"},
		{rule: "of a hold that it took back before it asked again it does not tell", lock: anybodys, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			2     b/1 exec acquire -> b/1 1 30002
			2     b/1 hit 1 acquire reply
			10    b/1 send acquire
			11    b/1 exec acquire nth=2 -> free
			20    b/1 send acquire
			21    b/1 exec acquire nth=3
			22    b/1 deliver acquire nth=3
			22    b/1 return granted
			40000 server leave`, finds: "linearizable bug: l: b/1 acquire (0.000s..0.022s) answered granted, but the lock was free"},
	})
}

func TestAnUnlockMayTellNothing(t *testing.T) {
	// The client leaves the deletion to a goroutine that is in no call.
	const outside = `
			0     a/1 takes
			1000  a/1 invoke unlock
			1000  a/1 send renew
			1001  a/1 return unknown
			1002  a/1 exec renew -> free
			2000  b/1 takes
			3000  b/1 releases
			40000 server leave`
	const lost = `
			0     a/1 takes
			1000  a/1 invoke unlock
			1001  a/1 return unknown
			2000  a/1 invoke unlock
			2001  a/1 return not_held
			30002 server expire -> free
			40000 server leave`
	testJudged(t, []judged{
		{rule: "and its client end the hold in no call", lock: anybodys, record: outside},
		{rule: "a hold that an unlock gave up is not known any more", lock: anybodys, record: lost},
		{rule: "nor is it extended", lock: anybodys, record: `
			0     a/1 takes
			1000  a/1 invoke unlock
			1001  a/1 return unknown
			2000  a/1 invoke extend
			2001  a/1 return not_held
			30002 server expire -> free
			40000 server leave`},
		{rule: "an unlock that failed gives nothing up", lock: anybodys, record: `
			0     a/1 takes
			1000  a/1 invoke unlock
			1001  a/1 return error
			2000  a/1 invoke unlock
			2001  a/1 return not_held
			30002 server expire -> free
			40000 server leave`,
			finds: "linearizable bug: l: a/1 release (2.000s..2.001s) answered not_held, but the lock was held by a/1"},
		{rule: "nor does one of several levels", lock: reentrantLock, record: `
			0     a/1 takes
			10    a/1 takes -> a/1 2 30011
			1000  a/1 invoke unlock
			1001  a/1 return unknown
			2000  a/1 invoke unlock
			2001  a/1 return not_held
			30012 server expire -> free
			40000 server leave`,
			finds: "linearizable bug: l: a/1 release (2.000s..2.001s) answered not_held, but the lock was held by a/1"},
		{rule: "the next one is", lock: anybodys, record: `
			0     a/1 takes
			1000  a/1 invoke unlock
			1001  a/1 return unknown
			30002 server expire -> free
			31000 a/1 takes
			32000 a/1 invoke unlock
			32001 a/1 return not_held
			61002 server expire -> free
			70000 server leave`,
			finds: "linearizable bug: l: a/1 release (32.000s..32.001s) answered not_held, but the lock was held by a/1"},
		{rule: "an unlock ends no later hold", lock: anybodys, record: `
			0     a/1 invoke unlock
			1     a/1 return unknown
			1000  a/1 takes
			2000  a/1 releases
			40000 server leave`},
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
		{rule: "also when the last server is late", lock: onSeveral, record: `
			0     b/1 invoke lock
			1     b/1 send acquire
			1     b/1 send acquire
			2     b/1 exec acquire nth=1 -> b/1 1 12002
			4     b/1 return granted
			6000  b/1 exec acquire nth=2 -> b/1 1 36000
			35000 b/1 releases
			40000 server leave`},
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
	// The request that arrives at 1 s was sent again long before, and the lock was given up.
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

// TestAServerHandsTheLockOver has a server whose queue is the lock: the release of one owner
// makes the next one the owner. Nobody answers the acquire of that one.
func TestAServerHandsTheLockOver(t *testing.T) {
	renewed := anybodys
	renewed.NoWatchdog, renewed.Fair, renewed.Timing = false, true, timing(10*time.Second)
	const handedOver = `
		0    a/1 takes -> a/1 1 30001
		100  b/1 waits lock -> a/1 1 30001 queue=b/1
		2000 a/1 releases -> b/1 1 30101
		2500 b/1 renews -> b/1 1 32501
		9000 server leave`
	const late = `
		0    a/1 takes -> a/1 1 30001
		100  b/1 waits lock -> a/1 1 30001 queue=b/1
		1000 b/1 return unknown
		2000 a/1 releases -> b/1 1 30101
		2500 b/1 invoke unlock
		2500 b/1 return not_held
		9000 server leave`
	// The first place of b/1 becomes a hold at 2 s, of which it does not know. The second one becomes its
	// next hold when the first hold runs out.
	const twoPlaces = `
		0     a/1 takes -> a/1 1 30001
		100   b/1 waits lock -> a/1 1 30001 queue=b/1
		200   b/1 return unknown
		300   b/1 waits lock -> a/1 1 30001 queue=b/1,b/1
		2000  a/1 releases -> b/1 1 30101 queue=b/1
		30102 server ends -> b/1 1 40301
		30103 b/1 return granted
		34000 b/1 renews -> b/1 1 64001
		42000 b/1 releases
		90000 server leave`
	testJudged(t, []judged{
		{rule: "an acquire that waits is granted when the server hands the lock to it", lock: renewed, record: handedOver + "\n2002 b/1 return granted"},
		{rule: "and must be told soon", lock: renewed, finds: "liveness bug: b/1 waited for l from 2.002s to 9.000s while the servers held it for b/1; the bound is 1s", record: handedOver},
		{rule: "but only an acquire that stands in the queue", lock: renewed, finds: "liveness bug: b/1 waited for l",
			record: strings.Replace(handedOver, " -> a/1 1 30001 queue=b/1", "", 1)},
		{rule: "the place of an acquire that failed and the one of the next are one hold", lock: renewed, finds: "tidy bug: b/1 stands in the queue", record: `
			0    a/1 takes -> a/1 1 30001
			100  b/1 waits lock -> a/1 1 30001 queue=b/1
			200  b/1 return unknown
			300  b/1 waits lock -> a/1 1 30001 queue=b/1,b/1
			2000 a/1 releases -> b/1 1 30301
			2002 b/1 return granted
			2500 b/1 releases
			9000 server leave`},
		{rule: "of two places the older one is the hold first, and the other one the next", lock: renewed, finds: "tidy bug: b/1 stands in the queue", record: twoPlaces},
		{rule: "whose lease ends like any other", lock: renewed,
			finds:  "tidy bug: b/1 stands in the queue",
			record: strings.ReplaceAll(twoPlaces, "34000 b/1 renews -> b/1 1 64001\n", "")},
		{rule: "a thread does not know of a hold that is handed to an acquire which failed", lock: renewed, finds: "tidy bug: b/1 stands in the queue", record: late},
		{rule: "but of one with which its acquire returned", lock: renewed, finds: "linearizable bug: l: b/1 release", record: strings.NewReplacer(
			"1000 b/1 return unknown\n", "", "2500 b/1 invoke unlock", "2002 b/1 return granted\n2500 b/1 invoke unlock").Replace(late)},
	})
}

// TestAThreadWaitsBehindItself has a thread whose unlock is lost, and which asks again. The first
// hold ends, and the place of the thread in the queue becomes its next one.
func TestAThreadWaitsBehindItself(t *testing.T) {
	renewed := anybodys
	renewed.NoWatchdog, renewed.Fair, renewed.Timing = false, true, timing(10*time.Second)
	const again = `
		0    a/1 takes -> a/1 1 5001
		1000 a/1 invoke unlock
		1001 a/1 send unlock
		1100 a/1 return unknown
		2000 a/1 waits lock -> a/1 1 5001 queue=a/1`
	const granted = `
		5001 a/1 send acquire
		5001 a/1 exec acquire nth=2 -> a/1 1 35001
		5001 a/1 return granted
		6000 a/1 releases
		9000 server leave`
	testJudged(t, []judged{
		{rule: "the first hold runs out", lock: renewed, record: again + `
			5001 server expire -> a/1 1 35000` + granted},
		{rule: "the unlock of the first hold is late", lock: renewed, record: again + `
			3000 a/1 exec unlock -> a/1 1 33000` + granted},
	})
}

// TestAServerEndsAHoldLate has a server that ends a hold half a second after its lease, at 5.501 s.
func TestAServerEndsAHoldLate(t *testing.T) {
	late := func(during, ends string) string {
		return `
			0    a/1 takes lease=5000
			` + during + `
			5501 server ` + ends + ` -> free
			9000 server leave`
	}
	const (
		try    = "5300 b/1 waits try_lock\n5302 b/1 return busy"
		unlock = "5300 a/1 releases"
	)
	testJudged(t, []judged{
		{rule: "nobody has the lock until then", lock: anybodys, record: late(try, "ends")},
		{rule: "and its owner may give it up", lock: anybodys, record: strings.Replace(late(unlock, "ends"), "5501 server ends -> free", "", 1)},
	})
}

// TestAServerEndsAHoldWithinItsLastMillisecond has a server whose clock shows shorter times than a
// millisecond. It gives the lock away in the millisecond in which the hold ends, to a call that has
// given up.
func TestAServerEndsAHoldWithinItsLastMillisecond(t *testing.T) {
	const record = `
		0    a/1 takes lease=5000
		4999 b/1 invoke lock
		4999 b/1 send acquire
		5000 b/1 return unknown
		5001 server ends -> free
		5001 b/1 exec acquire -> b/1 1 10001
		90000 server leave`
	testJudged(t, []judged{
		{rule: "then the hold is over", lock: anybodys, record: record},
	})
}

// TestARenewalUnderAnotherName has clients that renew holds by commands which the record does not name
// as renewals of the lock. Another try at 40 s shows whether the hold lasted.
func TestARenewalUnderAnotherName(t *testing.T) {
	renewed := anybodys
	renewed.NoWatchdog, renewed.Timing = false, timing(0)
	again := func(call, renewal string) string {
		return `
			0     a/1 takes
			` + call + `
			20000 ` + renewal + `
			40000 b/1 waits try_lock
			40002 b/1 return busy
			45000 a/1 return busy
			46000 a/1 releases
			90000 server leave`
	}
	const sameLock, otherLock, otherThread = "1000 a/1 waits try_lock_timed wait=44000", "500 c/1 takes lock=k\n25000 c/1 renews lock=k\n47000 c/1 releases lock=k\n1000 a/1 waits try_lock_timed lock=k wait=44000", "1000 a/2 waits try_lock_timed wait=44000"
	const early = `
		0     a/1 invoke lock
		100   a/1 send renew lock=k
		500   a/1 send acquire
		501   a/1 exec acquire -> a/1 1 10000
		501   a/1 exec renew -> a/1 1 30501
		502   a/1 return granted
		20000 a/1 releases
		90000 server leave`
	testJudged(t, []judged{
		{rule: "in an acquire of the same lock", lock: renewed, record: again(sameLock, "a/1 send acquire\n20001 a/1 exec acquire nth=3 -> a/1 1 50001")},
		{rule: "in an acquire of another lock", lock: renewed, record: again(otherLock, "a/1 send acquire lock=k\n20001 a/1 exec acquire nth=3 -> a/1 1 50001")},
		{rule: "not in an acquire of another thread", lock: renewed, record: strings.Replace(again(otherThread, "a/2 send acquire\n20001 a/2 exec acquire nth=2 -> a/1 1 50001"), "45000 a/1", "45000 a/2", 1),
			finds: "misdelete bug: acquire of a/2"},
		{rule: "which names the lock", lock: renewed, record: strings.Replace(again(otherThread, "a/2 send acquire args=key:l,30000\n20001 a/2 exec acquire nth=2 -> a/1 1 50001"), "45000 a/1", "45000 a/2", 1),
			finds: "misdelete bug: acquire of a/2"},
		{rule: "unless it names a session that the process has", lock: renewed, record: strings.Replace(again(otherThread, "a/2 send acquire args=session:1,30000\n20001 a/2 exec acquire nth=2 -> a/1 1 50001"), "45000 a/1", "45000 a/2", 1)},
		{rule: "which another process has not", lock: renewed, record: strings.NewReplacer("a/2", "c/1", "45000 a/1", "45000 c/1").Replace(again(otherThread, "a/2 send acquire args=session:1,30000\n20001 a/2 exec acquire nth=2 -> a/1 1 50001")),
			finds: "misdelete bug: acquire of c/1"},
		{rule: "before the hold begins", lock: renewed, record: early},
	})
}

// TestOneConnection has a client whose renewals of another hold are lost while it waits, one every 900 ms.
func TestOneConnection(t *testing.T) {
	one := anybodys
	one.NoWatchdog, one.Timing = false, timing(0)
	several := one
	one.Reconnect = 2 * time.Minute
	var lost strings.Builder
	for at := 1000; at < 8000; at += 900 {
		fmt.Fprintf(&lost, "%d b/2 send renew lock=k\n%d b/2 hit 1 renew\n%d b/2 lost renew reply dropped\n", at, at, at)
	}
	record := "0 b/2 takes lock=k\n900 b/1 invoke lock\n" + lost.String() + "8000 b/1 gets\n9000 b/1 releases\n9000 b/2 releases lock=k\n20000 server leave"
	testJudged(t, []judged{
		{rule: "each loss ends it", lock: one, record: record},
		{rule: "a client with several has others", lock: several, record: record, finds: "liveness bug: b/1 waited for l"},
	})
}

// TestTheHoldOfATry has a try that gets the lock, renews it, gives it up and answers busy.
func TestTheHoldOfATry(t *testing.T) {
	renewed := anybodys
	renewed.NoWatchdog, renewed.Fair, renewed.Timing = false, true, timing(10*time.Second)
	testJudged(t, []judged{
		{rule: "there is no grant to renew", lock: renewed, record: `
			0    a/1 takes -> a/1 1 30001
			100  b/1 invoke try_lock
			100  b/1 send renew lock=k
			110  b/1 send acquire
			111  b/1 exec acquire -> a/1 1 30001 queue=b/1
			120  a/1 releases -> b/1 1 30101
			125  b/1 exec renew -> b/1 1 30125
			130  b/1 send acquire
			131  b/1 exec acquire nth=2 -> free
			132  b/1 return busy
			9000 server leave`},
	})
}

// TestAHoldThatAFailedCallGivesBack has a call that is interrupted before it learns that the release of
// another owner handed the lock over.
func TestAHoldThatAFailedCallGivesBack(t *testing.T) {
	renewed := anybodys
	renewed.NoWatchdog, renewed.Fair, renewed.Timing = false, true, timing(10*time.Second)
	record := `
		0    a/1 takes -> a/1 1 30001
		100  b/1 waits lock -> a/1 1 30001 queue=b/1
		120  a/1 releases -> b/1 1 30101
		140  c/1 invoke try_lock
		140  c/1 send acquire
		141  c/1 exec acquire
		142  c/1 deliver acquire
		142  c/1 return busy
		150  b/1 renews -> b/1 1 30151
		1000 b/1 send acquire
		1001 b/1 exec acquire nth=2 -> free
		1002 b/1 return error
		9000 server leave`
	testJudged(t, []judged{
		{rule: "a renewal keeps it, and another finds it", lock: renewed, record: record},
		{rule: "but only as long as the call has it", lock: renewed, record: strings.NewReplacer("140  c/1", "2140 c/1", "141  c/1", "2141 c/1", "142  c/1", "2142 c/1").Replace(record),
			finds: "linearizable bug: l: c/1 acquire"},
	})
}

// TestAnAnswerEndsAWait has a server whose answer to an acquire ends its call with an error.
func TestAnAnswerEndsAWait(t *testing.T) {
	fair := anybodys
	fair.Fair = true
	record := `
		0    a/1 invoke lock
		0    a/1 send acquire
		10   a/1 exec acquire
		12   b/1 invoke lock
		12   b/1 send acquire
		14   b/1 exec acquire -> b/1 1 30014
		20   a/1 deliver acquire
		20   a/1 return unknown
		24   b/1 deliver acquire
		24   b/1 return granted
		1000 b/1 releases
		9000 server leave`
	testJudged(t, []judged{
		{rule: "nobody is overtaken after that", lock: fair, record: record},
		{rule: "a call that has its answer and goes on is", lock: fair, record: strings.Replace(record, "20   a/1 return unknown", "900  a/1 return unknown", 1),
			finds: "fifo bug: b/1 was granted l at 0.014s before a/1"},
	})
}

// TestAClientIsClosedInAWait has a client that gives up its hold while the owner asks for the lock again.
func TestAClientIsClosedInAWait(t *testing.T) {
	renewed := anybodys
	renewed.NoWatchdog, renewed.Timing = false, timing(0)
	record := func(closed string) string {
		return `
			0    a/1 takes
			1000 a/1 waits lock
			` + closed + `
			2001 a/1 send acquire
			2002 a/1 exec acquire nth=3 -> free
			2002 b/1 takes
			3000 b/1 releases
			9000 server leave`
	}
	testJudged(t, []judged{
		{rule: "its hold is over", lock: renewed, record: record("2000 a close")},
	})
}

// A closed client may go on, such as one that connects for each call.
func TestAGrantOfAClosedClient(t *testing.T) {
	const holds = `
		0     a close
		10    a/1 takes
		20    b/1 invoke lock
		30010 server expire -> free
		30011 a/1 takes
		60011 server expire -> free`
	testJudged(t, []judged{
		{rule: "its holds keep others waiting", lock: anybodys, record: holds + `
			60020 b/1 gets
			60030 server leave`},
		{rule: "for their leases, and no longer", lock: anybodys, record: holds + `
			95000 server leave`,
			finds: "liveness bug: b/1 waited for l from 60.011s to 95.000s"},
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
		{rule: "one more than five may be asked", lock: onSeveral, record: asks(101), finds: "traffic bug: b/1 sent 101 commands for l in the second from 0.020s on, 101 more than it was woken; at most 100 more are allowed"},
	})
}

// stateless returns the parameters of a lock of which nobody knows what the servers hold.
func stateless(p model.Params) model.Params {
	p.Promises = maps.Clone(p.Promises)
	p.Promises[model.JudgeLinearizable] = model.Promise{Waived: true, Unjudged: true, Source: "it has no state"}
	return p
}

// A sentence about an answer names the hold that the call met, as the column of the server shows it.
func TestAnAnswerIsAboutTheHoldThatTheCallMet(t *testing.T) {
	testJudged(t, []judged{
		{rule: "an unlock that is sent again meets the hold of its caller first", lock: anybodys,
			finds: "linearizable bug: l: a/1 release (1.000s..1.020s) answered not_held, but the lock was held by a/1", record: `
			0    a/1 takes
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> free
			1002 a/1 lost unlock reply dropped
			1005 b/1 takes -> b/1 1 31006
			1010 a/1 send unlock
			1011 a/1 exec unlock
			1012 a/1 deliver unlock
			1020 a/1 return not_held
			2000 b/1 releases
			9000 server leave`},
		{rule: "an unlock that ends the hold of another meets that hold", lock: anybodys,
			finds: "misdelete bug: unlock of a/1\nlinearizable bug: l: a/1 release (3.000s..3.002s) answered released, but the lock was held by b/1", record: `
			0    a/1 takes lease=1000 -> a/1 1 1001
			1002 server expire -> free
			2000 b/1 takes
			3000 a/1 invoke unlock
			3000 a/1 send unlock
			3001 a/1 exec unlock -> free
			3002 a/1 deliver unlock
			3002 a/1 return released
			3500 b/1 invoke unlock
			3501 b/1 return not_held
			9000 server leave`},
	})
}

// Whoever holds a lock that can be entered again need not wait for itself.
func TestAHolderThatAsksAgain(t *testing.T) {
	again, plain := anybodys, anybodys
	again.Idempotent = true
	const waits = `
		0    a/1 takes lease=8000
		100  a/1 invoke lock lease=8000
		8001 server expire -> free
		8100 a/1 gets -> a/1 1 16101
		8102 a/1 releases
		9000 server leave`
	var asks []string
	for i := range 15 {
		asks = append(asks, fmt.Sprintf("%d a/1 send acquire nth=%d\n%d a/1 exec acquire nth=%d\n%d a/1 deliver acquire nth=%d", 100+500*i, i+1, 100+500*i, i+1, 100+500*i, i+1))
	}
	testJudged(t, []judged{
		{rule: "a holder waits for its own lease", lock: again, record: waits, finds: "liveness bug: a/1 waited for l from 0.100s to 8.101s while the servers held it for a/1; the bound is 1s"},
		{rule: "and asks for it all the time", lock: again, record: strings.Replace(waits, "		8001 server", strings.Join(asks, "\n")+"\n		8001 server", 1),
			finds: "liveness bug: a/1 waited for l from 4.100s to 8.101s while the servers held it for a/1; the bound is 1s"},
		{rule: "who knows nothing of its hold may ask for its whole lease", lock: again, record: "0 a/1 invoke lock lease=8000\n1 a/1 send acquire\n1 a/1 exec acquire -> a/1 1 8001\n1 a/1 deliver acquire\n" +
			strings.Join(asks, "\n") + "\n8001 server expire -> free\n8002 a/1 return busy\n9000 server leave"},
		{rule: "a lock need not let its holder enter again", lock: plain, record: waits},
	})
}

// A client that is closed leaves behind what it waits for.
func TestAWaitAtTheServerToTheEnd(t *testing.T) {
	const waits = `
		0    a/1 takes
		100  b/1 invoke lock
		110  b/1 send acquire
		120  b/1 exec acquire
		130  b/1 deliver acquire
		1000 a/1 releases
		1010 b/1 send acquire nth=2
		9000 server leave
		9001 b/1 lost acquire nth=2 request connection closed`
	testJudged(t, []judged{
		{rule: "nobody forgets it for its end", lock: anybodys, record: waits, finds: "liveness bug: b/1 waited for l from 1.002s to 9.000s"},
		{rule: "a message that is lost before is an excuse", lock: anybodys, record: strings.Replace(waits, "9001 b/1", "8999 b/1", 1)},
	})
}

// A thread that ends the session of its process ends the holds of others.
func TestTheEndOfASession(t *testing.T) {
	const record = `
		0    a/2 invoke lock lease=8000
		0    a/2 send acquire command=SEGMENT
		1    a/2 exec acquire -> a/2 1 8001
		2    a/2 return unknown
		5    a/1 invoke lock
		6    a/1 send acquire command=SEGMENT
		7    a/1 exec acquire -> free
		8    a/1 return unknown
		9000 server leave`
	const finds = "misdelete bug: acquire of a/1 (SEGMENT, sent at 0.006s) ended the hold of a/2 on l at 0.007s"
	testJudged(t, []judged{
		{rule: "in which nobody believes", lock: anybodys, record: record},
		{rule: "in which one believes", lock: anybodys, record: strings.Replace(record, "a/2 return unknown", "a/2 return granted", 1), finds: finds},
		{rule: "which is on its way to one", lock: anybodys, record: strings.Replace(record, "2    a/2 return unknown", "8    a/2 return granted", 1),
			finds: finds},
		{rule: "or to none", lock: anybodys, record: strings.Replace(record, "2    a/2 return unknown", "8    a/2 return unknown", 1)},
		{rule: "of another process", lock: anybodys, record: strings.ReplaceAll(record, "a/1", "b/1"), finds: strings.ReplaceAll(finds, "a/1", "b/1")},
		{rule: "by a request that names the lock", lock: anybodys, record: strings.ReplaceAll(record, " command=SEGMENT", " args=l"), finds: strings.Replace(finds, "SEGMENT", "EVAL", 1)},
		{rule: "by one that does not", lock: anybodys, record: strings.ReplaceAll(record, " command=SEGMENT", " args=session")},
	})
}

// A lock that leaves a mark for a request that is sent again cannot answer it alike when a fault has removed the mark.
func TestAMarkThatIsLost(t *testing.T) {
	const record = `
		0    a/1 takes lease=8000
		200  a/1 invoke unlock
		200  a/1 send unlock
		201  a/1 exec unlock -> free
		202  server fault 1 failover that loses the last 1 writes
		220  a/1 send unlock
		221  a/1 exec unlock nth=2
		222  a/1 return not_held
		9000 server leave`
	const finds = "linearizable %s: l: a/1 release (0.200s..0.222s) answered not_held, but the lock was held by a/1"
	testJudged(t, []judged{
		{rule: "by a loss of data", lock: anybodys, record: record, finds: fmt.Sprintf(finds, "limit (memory of a call removed by another hand)")},
		{rule: "by nobody", lock: anybodys, record: strings.Replace(record, "202  server fault 1 failover that loses the last 1 writes\n", "", 1), finds: fmt.Sprintf(finds, "bug")},
		{rule: "before the call", lock: anybodys, record: strings.Replace(record, "202  server fault", "100  server fault", 1), finds: fmt.Sprintf(finds, "bug")},
		{rule: "which nobody needs to say that a hold was given up", lock: anybodys, record: strings.NewReplacer("exec unlock -> free", "exec unlock", "return not_held", "return released").Replace(record),
			finds: "linearizable bug: l: a/1 release (0.200s..0.222s) answered released, but the lock was held by a/1"},
	})
}

// A fault that removes a key of a hold which a call takes key by key takes the hold with it. No state shows that.
func TestAKeyOfAHoldThatIsBeingTakenIsRemoved(t *testing.T) {
	const record = `
		0    a/1 invoke try_lock
		0    a/1 send acquire args=l:1,v
		1    a/1 exec acquire
		2    a/1 deliver acquire
		3    server fault 1 delete of key l removed=v
		4    a/1 send acquire args=l:2,v
		5    a/1 exec acquire
		6    a/1 deliver acquire
		6    a/1 return granted
		100  a/1 releases
		9000 server leave`
	const finds = "linearizable %s: l: a/1 acquire (0.000s..0.006s) answered granted, but the lock was free"
	const both = "20   b/1 takes lease=3000\n90   b/1 releases\n100"
	testJudged(t, []judged{
		{rule: "by an operator", lock: anybodys, record: record, finds: fmt.Sprintf(finds, "limit (memory of a call removed by another hand)")},
		{rule: "so that another is granted the lock, too", lock: anybodys, record: strings.Replace(record, "100", both, 1),
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 0.022s while a/1 believed to hold it since 0.006s\n" + fmt.Sprintf(finds, "limit (memory of a call removed by another hand)")},
		{rule: "by nobody", lock: anybodys, record: strings.NewReplacer("3    server fault 1 delete of key l removed=v\n", "", "100", both).Replace(record),
			finds: "mutual-exclusion bug: b/1 was granted l at 0.022s while a/1 believed to hold it since 0.006s\n" + fmt.Sprintf(finds, "bug")},
		{rule: "not if it is one of another", lock: anybodys, record: strings.Replace(record, "removed=v", "removed=w", 1), finds: fmt.Sprintf(finds, "bug")},
		{rule: "nor if it is its place in the queue", lock: anybodys, record: strings.NewReplacer("1    a/1 exec acquire", "1    a/1 exec acquire -> c/1 1 3 queue=a/1 deadlines=none",
			"removed=v", "removed=v -> c/1 1 3", "4    a/1 send", "4    server expire -> free\n4    a/1 send").Replace(record),
			finds: fmt.Sprintf(finds, "bug")},
		{rule: "nor if the call wrote it later", lock: anybodys, record: strings.NewReplacer("1    a/1 exec", "4    a/1 exec", "2    a/1 deliver", "4    a/1 deliver").Replace(record), finds: fmt.Sprintf(finds, "bug")},
		{rule: "nor after the call", lock: anybodys, record: strings.Replace(record, "3    server", "50   server", 1), finds: fmt.Sprintf(finds, "bug")},
	})
}

// A fault may remove a part of a hold that its State does not read, and with it what keeps others away.
func TestAPartOfAHoldThatItsStateDoesNotReadIsRemoved(t *testing.T) {
	const record = `
		0    a/1 invoke try_lock lease=8000
		0    a/1 send acquire args=l,v
		1    a/1 exec acquire -> a/1 1 8001
		2    a/1 deliver acquire
		2    a/1 return granted
		1000 server fault 1 delete of key k removed=v
		2000 b/1 takes lease=8000 args=l,w
		3000 b/1 releases
		9000 server leave`
	const finds = "mutual-exclusion %s: b/1 was granted l at 2.002s while a/1 believed to hold it since 0.002s: acquire of b/1 had ended it"
	bug := fmt.Sprintf(finds, "bug") + "\nmisdelete bug: acquire of b/1"
	testJudged(t, []judged{
		{rule: "by an operator", lock: anybodys, record: record, finds: fmt.Sprintf(finds, "limit (hold removed by another hand)")},
		{rule: "by nobody", lock: anybodys, record: strings.Replace(record, "1000 server fault 1 delete of key k removed=v\n", "", 1), finds: bug},
		{rule: "not if it is a part of another", lock: anybodys, record: strings.Replace(record, "removed=v", "removed=w", 1), finds: bug},
		{rule: "nor after another has it", lock: anybodys, record: strings.Replace(record, "1000 server", "2500 server", 1), finds: bug},
	})
}

// A process that holds a lock may refuse its other threads without asking a server.
func TestAProcessRefusesItsOwnThreads(t *testing.T) {
	const record = `
		0    a/1 takes lease=8000
		200  a/1 invoke unlock
		200  a/1 send unlock
		201  a/1 exec unlock -> free
		205  a/2 invoke try_lock
		205  a/2 return busy
		210  a/1 return released
		9000 server leave`
	const finds = "linearizable bug: l: a/2 acquire (0.205s..0.205s) answered busy, but the lock was free"
	testJudged(t, []judged{
		{rule: "until its unlock has returned", lock: anybodys, record: record},
		{rule: "and not then", lock: anybodys, record: strings.Replace(record, "210  a/1 return", "204  a/1 return", 1), finds: finds},
		{rule: "nor after it has asked", lock: anybodys, record: strings.Replace(record, "205  a/2 return", "205 a/2 send acquire\n206 a/2 exec acquire\n207 a/2 deliver acquire\n207 a/2 return", 1),
			finds: "linearizable bug: l: a/2 acquire (0.205s..0.207s) answered busy, but the lock was free"},
		{rule: "nor another process", lock: anybodys, record: strings.ReplaceAll(record, "a/2", "b/1"), finds: strings.ReplaceAll(finds, "a/2", "b/1")},
		{rule: "while it believes in a hold that is gone", lock: anybodys, record: strings.Replace(record, "201  a/1 exec", "100 server fault 1 delete of key l -> free\n150 a/2 invoke try_lock\n150 a/2 return busy\n201  a/1 exec", 1),
			finds: "linearizable bug: l: a/1 release (0.200s..0.210s) answered released, but the lock was free"},
	})
}

// A try of a fair lock may be refused behind a place in the queue that a late request took for nobody.
func TestATryBehindAGhost(t *testing.T) {
	fair := anybodys
	fair.Fair, fair.Waits = true, 2*time.Second
	const record = `
		0    a/1 takes lease=8000 -> a/1 1 8001
		100  c/1 invoke lock
		100  c/1 send acquire
		101  c/1 exec acquire
		102  c/1 deliver acquire
		110  c/1 send acquire
		111  c/1 hit 1 acquire request delay
		150  c/1 return unknown
		200  c/1 exec acquire nth=2 -> a/1 1 8001 queue=c/1
		300  a/1 releases -> free queue=c/1
		400  b/1 invoke try_lock
		400  b/1 send acquire
		401  b/1 exec acquire
		402  b/1 deliver acquire
		402  b/1 return busy
		9000 server leave`
	testJudged(t, []judged{
		{rule: "it stands there", lock: fair, record: record},
		{rule: "it has gone", lock: fair, record: strings.Replace(record, "free queue=c/1", "free", 1), finds: "linearizable bug: l: b/1 acquire (0.400s..0.402s) answered busy"},
	})
}

// The turn of a waiter is that of its place in the queue, where State shows one.
func TestATurnBeginsInTheQueue(t *testing.T) {
	fair := anybodys
	fair.Fair = true
	record := func(queue string) string {
		return `
		0    a/1 takes lease=8000 -> a/1 1 8001
		100  b/1 invoke lock
		100  b/1 send acquire
		101  b/1 exec acquire
		102  b/1 deliver acquire
		200  c/1 waits lock -> a/1 1 8001` + queue + `
		300  b/1 send acquire
		301  b/1 exec acquire nth=2 -> a/1 1 8001` + queue + `,b/1
		302  b/1 deliver acquire nth=2
		400  a/1 releases -> c/1 1 8401` + strings.Replace(queue, "c/1", "b/1", 1) + `
		403  c/1 return granted
		500  c/1 releases -> b/1 1 8501
		503  b/1 return granted
		600  b/1 releases
		9000 server leave`
	}
	const earlier = `
		0    a/1 takes lease=8000 -> a/1 1 8001
		150  c/1 invoke lock
		150  c/1 send acquire
		151  c/1 exec acquire -> a/1 1 8001 queue=c/1
		160  c/1 return unknown
		300  b/1 waits lock -> a/1 1 8001 queue=c/1,b/1
		320  c/1 invoke lock
		320  c/1 send acquire
		321  c/1 exec acquire nth=2
		400  a/1 releases -> c/1 1 8401 queue=b/1
		403  c/1 return granted
		500  c/1 releases -> b/1 1 8501
		503  b/1 return granted
		600  b/1 releases
		9000 server leave`
	unseen := strings.NewReplacer(" queue=c/1,b/1", "", " queue=c/1", "", " queue=b/1", "").Replace(record(" queue=c/1"))
	// Both get their places in one millisecond, b/1 first.
	const tie = `
		0    a/1 takes lease=8000 -> a/1 1 8001
		100  b/1 invoke lock
		100  b/1 send acquire
		100  c/1 invoke lock
		100  c/1 send acquire
		101  b/1 exec acquire -> a/1 1 8001 queue=b/1
		101  c/1 exec acquire -> a/1 1 8001 queue=c/1,b/1
		400  a/1 releases -> c/1 1 8401 queue=b/1
		403  c/1 return granted
		500  c/1 releases -> b/1 1 8501
		503  b/1 return granted
		600  b/1 releases
		9000 server leave`
	const back = `
		0    a/1 invoke lock
		0    a/1 send acquire
		1    a/1 exec acquire -> a/1 1 8001
		500  a/1 send acquire
		501  a/1 exec acquire nth=2 -> free
		502  b/1 takes lease=9000
		600  a/1 return unknown
		700  b/1 releases
		9000 server leave`
	// Two threads get their places, and b/1 gets the lock first.
	unnamed := func(first, its, second, both string) string {
		return `
		0    a/1 takes lease=8000 -> a/1 1 8001
		100  ` + first + ` waits lock -> a/1 1 8001 queue=` + its + `
		200  ` + second + ` waits lock -> a/1 1 8001 queue=` + both + `
		400  a/1 releases -> b/1 1 8401 queue=c/1
		403  b/1 return granted
		500  b/1 releases -> c/1 1 8501
		503  c/1 return granted
		600  c/1 releases
		9000 server leave`
	}
	// a/1 asks again before State shows that its lease is over.
	owner := func(first, second string) string {
		return `
		0    a/1 takes lease=1000 -> a/1 1 1001
		800  a/1 invoke lock
		810  d/1 waits lock -> a/1 1 1001 queue=d/1
		820  ` + first + `
		830  ` + second + `
		1002 server expire -> d/1 1 3000 queue=c/1,a/1
		1003 d/1 return granted
		1100 d/1 releases -> c/1 1 3000 queue=a/1
		1103 c/1 return granted
		1200 c/1 releases -> a/1 1 3000
		1203 a/1 return granted
		1300 a/1 releases
		9000 server leave`
	}
	const ofC, ofA = "c/1 waits lock -> a/1 1 1001 queue=d/1", "a/1 exec acquire -> a/1 1 1001 queue=d/1"
	const overtaken = "fifo bug: c/1 was granted l at 0.401s before b/1, which had first tried at 0.101s and still waited"
	testJudged(t, []judged{
		{rule: "the hold from before a call is no place", lock: fair, record: owner(ofC+",c/1", "a/1 send acquire\n831 "+ofA+",c/1,a/1")},
		{rule: "a place behind it is", lock: fair, record: owner("a/1 send acquire\n821 "+ofA+",a/1", ofC+",a/1,c/1"),
			finds: "fifo bug: c/1 was granted l at 1.101s before a/1, which had first tried at 0.821s and still waited"},
		{rule: "a place under a value that nobody knows yet", lock: fair, record: unnamed("b/1", "value", "c/1", "value,c/1")},
		{rule: "a later one", lock: fair, record: unnamed("c/1", "c/1", "b/1", "c/1,value"), finds: "fifo bug: b/1 was granted l at 0.401s before c/1, which had first tried at 0.101s and still waited"},
		{rule: "a call that gave its grant back before it returned", lock: fair, record: back},
		{rule: "one that asked again", lock: fair, record: strings.Replace(back, "600  a/1", "502  a/1 send acquire\n504  a/1 exec acquire nth=3\n600  a/1", 1),
			finds: "fifo bug: b/1 was granted l at 0.503s before a/1, which had first tried at 0.001s and still waited"},
		{rule: "one that had no grant", lock: fair, record: strings.NewReplacer(" -> a/1 1 8001", "", " -> free", "").Replace(back),
			finds: "fifo bug: b/1 was granted l at 0.503s before a/1, which had first tried at 0.001s and still waited"},
		{rule: "two places of one millisecond, in the order that State shows", lock: fair, record: tie},
		{rule: "in another one", lock: fair, record: strings.Replace(tie, "queue=c/1,b/1", "queue=b/1,c/1", 1), finds: overtaken},
		{rule: "two places of two milliseconds", lock: fair, record: strings.Replace(tie, "101  c/1 exec", "102  c/1 exec", 1), finds: overtaken},
		{rule: "a look before it takes a place", lock: fair, record: record(" queue=c/1")},
		{rule: "a fault may have removed a queue that is not shown", lock: fair, record: unseen + "\n150 server fault 1 server restart without its data",
			finds: "fifo limit (waiter away when its turn came) (memory of a call removed by another hand): c/1 was granted l at 0.401s before b/1"},
		{rule: "or a pause the place in it", lock: fair, record: unseen + "\n150 server fault 1 pause of b for 100ms",
			finds: "fifo limit (waiter away when its turn came): c/1 was granted l at 0.401s before b/1"},
		{rule: "it has not, of one that is", lock: fair, record: strings.NewReplacer("101  b/1 exec acquire", "101  b/1 exec acquire -> a/1 1 8001 queue=b/1", ",b/1\n", "\n").Replace(record(" queue=b/1,c/1")) +
			"\n150 server fault 1 server restart without its data", finds: "fifo bug: c/1 was granted l at 0.401s before b/1"},
		{rule: "no queue is shown", lock: fair, record: unseen,
			finds: "fifo bug: c/1 was granted l at 0.401s before b/1, which had first tried at 0.101s and still waited"},
		{rule: "a place from an earlier call", lock: fair, record: earlier, finds: "tidy bug: c/1 stands in the queue of l at 0.160s"},
		{rule: "a second place", lock: fair, record: strings.NewReplacer("acquire nth=2", "acquire nth=2 -> a/1 1 8001 queue=c/1,b/1,c/1", "queue=b/1\n\t\t403", "queue=b/1,c/1\n\t\t403").Replace(earlier),
			finds: "fifo bug: c/1 was granted l at 0.401s before b/1, which had first tried at 0.301s and still waited\ntidy bug"},
		{rule: "a new place", lock: fair, record: strings.Replace(earlier, "acquire nth=2", "acquire nth=2 -> a/1 1 8001 queue=b/1\n330 c/1 send acquire\n331 c/1 exec acquire nth=3 -> a/1 1 8001 queue=b/1,c/1", 1),
			finds: "fifo bug: c/1 was granted l at 0.401s before b/1, which had first tried at 0.301s and still waited\ntidy bug"},
		{rule: "a new place in the same request", lock: fair, record: strings.NewReplacer("acquire nth=2", "acquire nth=2 -> a/1 1 8001 queue=b/1,c/1", "400  a/1 releases -> c/1 1 8401 queue=b/1", "400  a/1 releases -> b/1 1 8401 queue=c/1",
			"403  c/1 return", "403  b/1 return", "500  c/1 releases -> b/1", "500  b/1 releases -> c/1", "503  b/1 return", "503  c/1 return", "600  b/1", "600  c/1").Replace(earlier),
			finds: "tidy bug: c/1 stands in the queue of l at 0.160s"},
		{rule: "the first one, which stands", lock: fair, record: strings.NewReplacer("400  a/1 releases -> c/1 1 8401 queue=b/1", "400  a/1 releases -> b/1 1 8401 queue=c/1",
			"403  c/1 return", "403  b/1 return", "500  c/1 releases -> b/1", "500  b/1 releases -> c/1", "503  b/1 return", "503  c/1 return", "600  b/1", "600  c/1").Replace(earlier),
			finds: "fifo bug: b/1 was granted l at 0.401s before c/1\ntidy bug: c/1 stands in the queue of l at 0.160s"},
		{rule: "of a thread that asks for it after the grant", lock: fair, record: strings.NewReplacer("321  c/1", "421  c/1", "400  a/1 releases -> c/1 1 8401 queue=b/1", "400  a/1 releases -> b/1 1 8401 queue=c/1",
			"403  c/1 return", "403  b/1 return", "500  c/1 releases -> b/1", "500  b/1 releases -> c/1", "503  b/1 return", "503  c/1 return", "600  b/1", "600  c/1").Replace(earlier),
			finds: "tidy bug: c/1 stands in the queue of l at 0.160s"},
		{rule: "a place before", lock: fair, record: strings.NewReplacer(" queue=c/1,b/1", " queue=b/1,c/1").Replace(strings.Replace(record(" queue=c/1"), "101  b/1 exec acquire", "101  b/1 exec acquire -> a/1 1 8001 queue=b/1", 1)),
			finds: "fifo bug: c/1 was granted l at 0.401s before b/1, which had first tried at 0.101s and still waited"},
	})
}

// If State shows no queue, a look and a handshake are no first try.
func TestATurnBeginsInAQueueThatIsNotShown(t *testing.T) {
	fair := anybodys
	fair.Fair = true
	// The threads look, and c/1 takes its place first.
	const record = `
		0    a/1 takes lease=8000 -> a/1 1 8001
		100  b/1 invoke lock
		100  b/1 send acquire command=EXISTS
		101  b/1 exec acquire
		102  b/1 deliver acquire
		150  c/1 invoke lock
		150  c/1 send acquire command=EXISTS
		151  c/1 exec acquire
		152  c/1 deliver acquire
		200  c/1 send acquire
		201  c/1 exec acquire
		202  c/1 deliver acquire
		300  b/1 send acquire
		301  b/1 exec acquire
		302  b/1 deliver acquire
		400  a/1 releases -> c/1 1 8401
		403  c/1 return granted
		500  c/1 releases -> b/1 1 8501
		503  b/1 return granted
		600  b/1 releases
		9000 server leave`
	without := func(record string, lines ...string) string {
		for _, line := range lines {
			if !strings.Contains(record, line+"\n") {
				t.Fatalf("no line %q", line)
			}
			record = strings.Replace(record, line+"\n", "\n", 1)
		}
		return record
	}
	scripts := func(look, enter string) string {
		return strings.NewReplacer("command=EXISTS", "program="+look, "200  c/1 send acquire", "200  c/1 send acquire program="+enter,
			"300  b/1 send acquire", "300  b/1 send acquire program="+enter).Replace(record)
	}
	second := []string{"300  b/1 send acquire", "301  b/1 exec acquire", "302  b/1 deliver acquire"}
	const overtaken = "fifo bug: c/1 was granted l at 0.401s before b/1"
	testJudged(t, []judged{
		{rule: "a look", lock: fair, record: record},
		{rule: "a look by another script", lock: fair, record: scripts("look", "enter")},
		{rule: "not by the same one", lock: fair, finds: overtaken, record: scripts("enter", "enter")},
		{rule: "a place after the look", lock: fair, finds: overtaken, record: strings.NewReplacer("300  b", "180  b", "301  b", "181  b", "302  b", "182  b").Replace(record)},
		{rule: "nothing after the look", lock: fair, finds: overtaken, record: without(record, second...)},
		{rule: "the answer to the look has not come", lock: fair, record: strings.Replace(without(record, second...), "102  b/1 deliver", "402  b/1 deliver", 1)},
		{rule: "a handshake of the waiter", lock: fair, record: without(record, "150  c/1 send acquire command=EXISTS", "151  c/1 exec acquire", "152  c/1 deliver acquire")},
		{rule: "a handshake of the other", lock: fair, finds: overtaken, record: without(strings.NewReplacer("150  c", "90   c", "151  c", "91   c", "152  c", "92   c", "command=EXISTS\n\t\t101", "\n\t\t101").Replace(record), second...)},
	})
}

// A State may show a hold until somebody removes what is left of it.
func TestAHoldWhoseEndHasCome(t *testing.T) {
	record := func(end string) string {
		return `
			0    a/1 takes lease=5000
			` + end + ` b/1 takes lease=1000
			6400 b/1 releases
			9000 server leave`
	}
	pause := "100 server fault 1 pause of a for 7s\n7100 server heal 1\n"
	testJudged(t, []judged{
		{rule: "may be ended by anybody", lock: anybodys, record: record("5500")},
		{rule: "but not before", lock: anybodys, record: record("4500"), finds: `
			mutual-exclusion bug: b/1 was granted l at 4.502s
			misdelete bug: acquire of b/1`},
		{rule: "for its owner it ran out", lock: anybodys, record: pause + record("5500"), finds: "mutual-exclusion limit (holder paused past its lease): b/1 was granted l at 5.502s"},
	})
}

// A try that takes the lock, hears of it, and says busy leaves a hold of which its caller does not know.
func TestATryThatSaysBusyOfItsOwnHold(t *testing.T) {
	record := func(rest string) string {
		return "0 a/1 invoke try_lock\n0 a/1 send acquire\n2 a/1 exec acquire -> a/1 1 30002\n" + rest + "\n40000 server leave"
	}
	const (
		left   = "4 a/1 deliver acquire\n4 a/1 return busy\n30003 server expire -> free"
		undone = "4 a/1 deliver acquire\n4 a/1 send acquire nth=2\n6 a/1 exec acquire nth=2 -> free\n8 a/1 deliver acquire nth=2\n8 a/1 return busy"
		finds  = "linearizable bug: l: a/1 acquire (0.000s..0.004s) answered busy, but the lock was held by a/1"
	)
	testJudged(t, []judged{
		{rule: "it leaves the hold", lock: anybodys, record: record(left), finds: finds},
		{rule: "a lock that enters again does", lock: reentrantLock, record: record(left), finds: finds},
		{rule: "the answer was lost", lock: anybodys, record: record("3 a/1 lost acquire reply dropped\n700 a/1 return busy\n30003 server expire -> free")},
		{rule: "the answer is late", lock: anybodys, record: record("700 a/1 return busy\n701 a/1 deliver acquire\n30003 server expire -> free")},
		{rule: "the wait was over when the answer came", lock: anybodys, record: strings.Replace(record(left), "try_lock", "try_lock_timed wait=4", 1)},
		{rule: "the wait was not over", lock: anybodys, record: strings.Replace(record(left), "try_lock", "try_lock_timed wait=9", 1), finds: finds},
		{rule: "it gives the hold back", lock: anybodys, record: record(undone)},
		{rule: "the request that gives it back is lost", lock: anybodys, record: record(strings.Replace(undone, "6 a/1 exec acquire nth=2 -> free\n8 a/1 deliver acquire nth=2", "6 a/1 lost acquire request dropped nth=2", 1) + "\n30003 server expire -> free")},
		{rule: "it gives the hold back a moment later", lock: anybodys, record: record("4 a/1 deliver acquire\n4 a/1 send acquire nth=2\n5 a/1 return busy\n6 a/1 exec acquire nth=2 -> free\n8 a/1 deliver acquire nth=2")},
		{rule: "the hold is over", lock: anybodys, record: record(strings.Replace(left, "4 a/1 return busy\n30003 server expire -> free", "30003 server expire -> free\n30004 a/1 return busy", 1))},
		{rule: "it asks again, and meets its hold", lock: anybodys, record: record("600 a/1 send acquire nth=2\n602 a/1 exec acquire nth=2\n603 a/1 deliver acquire\n604 a/1 deliver acquire nth=2\n604 a/1 return busy\n30003 server expire -> free")},
		{rule: "the hold of an earlier call is a reason", lock: anybodys, record: record("3 a/1 lost acquire reply dropped\n700 a/1 return unknown\n800 a/1 invoke try_lock\n800 a/1 send acquire nth=2\n802 a/1 exec acquire nth=2\n804 a/1 deliver acquire nth=2\n804 a/1 return busy\n30003 server expire -> free")},
	})
}
