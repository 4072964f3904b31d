package judges

import (
	"testing"

	"lockstep/model"
)

// fencedLock keeps its counter.
var fencedLock = model.Params{Lock: "fenced", Traits: model.Traits{Fenced: true}, Timing: timing(0), Kept: []string{"token"}}

func TestTidy(t *testing.T) {
	const broughtBack = `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
			900  b/1 send unlock
			1000 b/1 send leave
			1001 b/1 exec leave -> a/1 1 9001
			1002 b/1 return busy
			1500 server fault 1 failover that loses the last 1 writes -> a/1 1 9001 queue=b/1`
	// lostLeave is a waiter whose second poll a rule may meet, and whose leave is lost.
	lostLeave := func(hit, why string) string {
		return `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
			800  b/1 send acquire
			801  b/1 exec acquire nth=2
			` + hit + `
			802  b/1 deliver acquire nth=2
			1000 b/1 send leave
			1000 b/1 lost leave request ` + why + `
			4000 b/1 return busy
			5000 a/1 releases -> free
			9000 server leave`
	}
	// unopened is a waiter that gives up, and begins a connection on which it might leave.
	unopened := func(began string) string {
		return `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
			` + began + `
			2000 b/1 return unknown
			5000 a/1 releases -> free
			9000 server leave`
	}
	const noReply = "1001 b/1 exec acquire nth=2\n1001 b/1 hit 1 acquire reply\n1002 b/1 lost acquire reply dropped\n"
	testJudged(t, []judged{
		{rule: "the connection on which it would leave does not come about", lock: fairLock,
			finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue", record: unopened("1000 b/1 send acquire conn=2\n" + noReply)},
		{rule: "since the server's greeting was lost", lock: fairLock,
			finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue", record: unopened("1000 b greeting hit\n1000 b greeting lost dropped")},
		{rule: "a connection that had come about", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue", record: unopened("1000 b/1 send acquire\n" + noReply)},
		{rule: "one whose first request asked for the lock again", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue", record: unopened("1000 b/1 send acquire conn=2 args=l\n" + noReply)},
		{rule: "one that comes about in time", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue", record: unopened("1000 b/1 send acquire conn=2\n1001 b/1 exec acquire nth=2\n1001 b/1 hit 1 acquire reply\n1500 b/1 deliver acquire")},
		{rule: "one whose first request queued it", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue", record: `
			0    a/1 takes lease=9000
			500  b/1 invoke try_lock_timed wait=500
			500  b/1 send acquire conn=2
			501  b/1 exec acquire -> a/1 1 9001 queue=b/1
			501  b/1 hit 1 acquire reply
			501  b/1 lost acquire reply dropped
			2000 b/1 return unknown
			5000 a/1 releases -> free
			9000 server leave`},
		{rule: "a client that takes the lock long after its call is over", lock: anybodys,
			finds: "tidy bug: b took l at 2.001s with a request (EVAL) that it sent at 2.000s, although its last call had returned at 0.900s", record: `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001
			900 b/1 return unknown
			1500 a/1 releases
			2000 b/1 send acquire nobody=y
			2001 b/1 exec acquire -> b/1 1 5001
			5002 server expire -> free
			9000 server leave`},
		{rule: "a client that lets another have the lock long after its call is over", lock: ourFairLock,
			finds: "tidy bug: b/1 stands in the queue of l at 0.900s", record: `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
			600  c/1 waits lock -> a/1 1 9001 queue=b/1,c/1
			900  b/1 return unknown
			1500 a/1 releases -> free queue=b/1,c/1
			2000 b/1 send leave nobody=y
			2001 b/1 exec leave -> c/1 1 5001
			2002 c/1 return granted
			4000 c/1 releases
			9000 server leave`},
		{rule: "a client that has just ended a call", lock: anybodys, record: `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001
			1000 b/1 return unknown
			1500 a/1 releases
			2000 b/1 send acquire nobody=y
			2001 b/1 exec acquire -> b/1 1 5001
			5002 server expire -> free
			9000 server leave`},
		{rule: "a client that a fault had held up", lock: anybodys, record: `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001
			900 b/1 return unknown
			1500 a/1 releases
			800  server fault 1 pause of b for 200ms
			1000 server heal 1
			2000 b/1 send acquire nobody=y
			2001 b/1 exec acquire -> b/1 1 5001
			5002 server expire -> free
			9000 server leave`},
		{rule: "a client of which another thread waits", lock: anybodys, record: `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001
			900 b/1 return unknown
			1500 a/1 releases
			1600 b/2 waits lock -> free
			2002 b/2 return granted
			2003 b/2 releases
			2000 b/1 send acquire nobody=y
			2001 b/1 exec acquire -> b/2 1 5001
			9000 server leave`},
		{rule: "who leaves the queue leaves nothing", lock: fairLock, record: `
			0    a/1 takes lease=3000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 3001 queue=b/1
			1000 b/1 send leave
			1001 b/1 exec leave -> a/1 1 3001
			1002 b/1 return busy
			2000 a/1 releases
			9000 server leave`},
		{rule: "a ghost stands in the queue and does not wait", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue of l at 1.000s, although its try_lock_timed had returned unknown at 1.000s", record: `
			0    a/1 takes lease=3000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 3001 queue=b/1
			1000 b/1 return unknown
			2000 a/1 releases -> free
			9000 server leave`},
		{rule: "a late command of an earlier call put it there", lock: fairLock, finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue of l at 3.000s", record: `
			0    b/1 invoke lock
			0    b/1 send acquire
			0    b/1 hit 1 acquire
			0    b/1 send acquire
			1    b/1 exec acquire nth=2 -> b/1 1 30001
			2    b/1 deliver acquire nth=2
			2    b/1 return granted
			100  b/1 releases
			200  b/1 takes
			300  b/1 releases
			400  a/1 takes lease=4000
			3000 b/1 exec acquire nth=1 -> a/1 1 4401 queue=b/1
			3500 a/1 releases
			9000 server leave`},
		{rule: "a clean-up overtook the command that put it there", lock: fairLock, finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue of l at 1.002s", record: `
			0    a/1 takes lease=3000
			500  b/1 invoke try_lock_timed wait=500
			500  b/1 send acquire
			500  b/1 hit 1 acquire
			1000 b/1 send leave
			1000 b/1 exec leave
			1001 b/1 exec acquire -> a/1 1 3001 queue=b/1
			1002 b/1 return unknown
			2000 a/1 releases -> free
			9000 server leave`},
		{rule: "one that looks like a renewal", lock: fairLock, finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue of l at 1.002s", record: `
			0    a/1 takes lease=3000
			500  b/1 invoke try_lock_timed wait=500
			500  b/1 send renew call=y
			500  b/1 hit 1 renew
			1000 b/1 send leave
			1000 b/1 exec leave
			1001 b/1 exec renew -> a/1 1 3001 queue=b/1
			1002 b/1 return unknown
			2000 a/1 releases -> free
			9000 server leave`},
		{rule: "a clean-up came before the command that put it there, and no fault held that up", lock: fairLock, finds: "tidy bug: b/1 stands in the queue of l at 1.001s", record: `
			0    a/1 takes lease=3000
			500  b/1 invoke try_lock_timed wait=500
			500  b/1 send acquire
			1000 b/1 send leave
			1000 b/1 exec leave
			1001 b/1 exec acquire -> a/1 1 3001 queue=b/1
			1001 b/1 return unknown
			2000 a/1 releases -> free
			9000 server leave`},
		{rule: "a command of its owner is still under way", lock: fairLock, record: `
			0    a/1 takes lease=3000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 3001 queue=b/1
			1000 b/1 send leave
			1001 b/1 return busy
			1003 b/1 exec leave -> a/1 1 3001
			2000 a/1 releases
			9000 server leave`},
		{rule: "a queue and deadlines with different members", lock: fairLock,
			finds: "tidy bug: at 0.501s the queue of l has [b/1] and its deadlines []", record: `
			0    a/1 takes lease=3000
			500  b/1 waits lock -> a/1 1 3001 queue=b/1 deadlines=none
			2000 a/1 releases -> free
			2001 b/1 gets
			2100 b/1 releases
			9000 server leave`},
		{rule: "an operator tore them apart", lock: fairLock,
			finds: "tidy limit (hold removed by another hand): at 1.000s the queue of l has [b/1] and its deadlines []", record: `
			0    a/1 takes lease=3000
			500  b/1 waits lock -> a/1 1 3001 queue=b/1
			1000 server fault 1 delete of key z -> a/1 1 3001 queue=b/1 deadlines=none
			2000 a/1 releases -> free
			2001 b/1 gets
			2100 b/1 releases
			9000 server leave`},
		{rule: "an operator tore them apart, and a message of theirs was under way", lock: fairLock,
			finds: "tidy limit (hold removed by another hand): at 1.500s the queue of l has [b/1] and its deadlines []", record: `
			0    a/1 takes lease=3000
			500  b/1 waits lock -> a/1 1 3001 queue=b/1
			900  b/1 send acquire
			1000 server fault 1 delete of key z -> a/1 1 3001 queue=b/1 deadlines=none
			1400 a/1 releases -> free queue=b/1 deadlines=none
			1500 b/1 lost acquire request dropped
			2001 b/1 gets
			2100 b/1 releases
			9000 server leave`},
		{rule: "what a failover brings back stands there by another hand, however late it is looked at", lock: fairLock,
			finds: "tidy limit (hold removed by another hand): b/1 stands in the queue of l at 3.000s, although its try_lock_timed had returned busy at 1.002s", record: broughtBack + `
			2000 a/1 releases -> free queue=b/1
			3000 b/1 lost unlock request dropped
			9000 server leave`},
		{rule: "but not once its owner has asked again", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue of l at 2.600s, although its try_lock_timed had returned busy at 2.600s", record: broughtBack + `
			2000 b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
			2100 b/1 lost unlock request dropped
			2600 b/1 return busy
			3000 a/1 releases -> free
			9000 server leave`},
		{rule: "which it has not when that was lost", lock: fairLock,
			finds: "tidy limit (hold removed by another hand): b/1 stands in the queue", record: broughtBack + `
			2000 b/1 invoke try_lock_timed wait=500
			2000 b/1 send acquire
			2001 b/1 lost acquire request dropped
			2100 b/1 lost unlock request dropped
			2600 b/1 return busy
			3000 a/1 releases -> free
			9000 server leave`},
		{rule: "the command with which it leaves was lost", lock: fairLock,
			finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue", record: `
			0    a/1 takes lease=9000
			500  b/1 waits try_lock_timed wait=500 -> a/1 1 9001 queue=b/1
			1000 b/1 send leave
			1000 b/1 hit 1 leave
			1000 b/1 lost leave request dropped
			4000 b/1 return busy
			5000 a/1 releases -> free
			9000 server leave`},
		{rule: "or with a connection that a rule had met", lock: fairLock,
			finds: "tidy limit (waiter away when its turn came): b/1 stands in the queue", record: lostLeave("800 b/1 hit 1 acquire", "connection reset")},
		{rule: "a connection that no rule met", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue", record: lostLeave("", "connection reset")},
		{rule: "a command that was not lost with it", lock: fairLock,
			finds: "tidy bug: b/1 stands in the queue", record: lostLeave("800 b/1 hit 1 acquire", "dropped")},
		{rule: "the dead stay in the queue until somebody asks again", lock: fairLock,
			finds: "tidy limit (waiter gone from the queue): b/1 stands in the queue of l to the end", record: `
			0    a/1 takes lease=3000
			500  b/1 waits lock -> a/1 1 3001 queue=b/1
			1000 server fault 1 crash of b
			2000 a/1 releases -> free queue=b/1
			90000 server leave`},
		{rule: "who waits to the end is no ghost", lock: fairLock, record: `
			0    a/1 takes lease=3000
			500  b/1 waits lock -> a/1 1 3001 queue=b/1
			900  server leave`},
		{rule: "a key that nobody will ever delete",
			finds: "tidy bug: at 130.000s, when everybody had left and every lease was over, there still was key l", record: `
			0      a/1 takes lease=3000
			2000   a/1 releases
			9000   server leave
			130000 server left key l`},
		{rule: "a channel to which somebody still listens", finds: "tidy bug: there still was channel c", record: `
			0      a/1 takes lease=3000
			2000   a/1 releases
			9000   server leave
			130000 server left channel c`},
		{rule: "a goroutine that has not ended", finds: "tidy bug: there still was goroutine f", record: `
			0      a/1 takes lease=3000
			2000   a/1 releases
			9000   server leave
			130000 server left goroutine f`},
		{rule: "a fencing counter may stay", lock: fencedLock, record: `
			0      a/1 takes lease=3000
			2000   a/1 releases
			9000   server leave
			130000 server left key token`},
	})
}
