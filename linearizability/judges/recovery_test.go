package judges

import (
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// Servers with a time of recovery elect another master after a fault, and serve nobody until then.
// Other servers serve again when the fault is over.
func TestServersRecover(t *testing.T) {
	watched := model.Traits{Uncounted: true, PerGrant: true, Watched: true}
	electing, serving := watchedLock, watchedLock
	electing.Traits, serving.Traits = watched, watched
	electing.Recovery = 20 * time.Second

	// A new master gives the session of the dead a whole lease.
	extended := func(at string) string {
		return `
			0     a/1 takes
			1000  server fault 1 crash of a
			2000  server fault 2 server stall for 3s
			5000  server heal 2
			` + at + ` server expire -> a/1 1 60001
			60002 server expire -> free
			90000 server leave`
	}
	served := func(at string) string {
		return strings.Replace(extended(at), at+" server expire", "24998 b/1 send connect nobody=y command=SEGMENT\n"+at+" b/1 exec connect", 1)
	}
	renewedBy := func(at string) string {
		return `
			0     a/1 takes
			2000  server fault 1 server stall for 3s
			5000  server heal 1
			` + at + ` b/1 send renew command=SEGMENT
			` + at + ` b/1 exec renew -> a/1 1 60001
			60000 a/1 releases
			90000 server leave`
	}
	const lateHold = `
			0     a/1 invoke lock lease=9000
			1000  server fault 1 server stall for 3s
			4000  server heal 1
			4100  a/1 send acquire
			4101  a/1 exec acquire -> a/1 1 28100
			4102  a/1 deliver acquire
			4102  a/1 return granted
			13100 a/1 told
			28102 server expire -> free
			90000 server leave`
	// b/1 tries while nobody serves.
	late := func(returned string) string {
		return `
			0     a/1 takes lease=60000
			1000  server fault 1 server stall for 3s
			4000  server heal 1
			` + returned + `
			60000 a/1 told
			60002 server expire -> free
			90000 server leave`
	}
	// The client of a/1 gives up a hold that its servers have for 10 s more.
	told := func(why string, granted string) string {
		return `
			0     a/1 takes
			1000  b/1 waits lock
			` + why + `
			20000 a/1 told
			25000 a/1 invoke unlock
			25001 a/1 return not_held
			30002 server expire -> free
			` + granted + ` b/1 gets
			60000 b/1 releases
			90000 server leave`
	}
	// A renewal of b, which holds k, is lost at 4 s.
	lost := func(granted string) string {
		return `
			3000  b/1 takes lock=k
			4000  b/1 send renew lock=k
			4000  b/1 hit 1 renew
			4000  b/1 lost renew request dropped
			5000  b/1 invoke lock
			` + granted + ` b/1 gets
			27000 b/1 releases
			27500 b/1 releases lock=k
			90000 server leave`
	}
	// The grant of a/1 is late, and so is the answer to its renewal, if it comes.
	unheard := func(answer string) string {
		return `
			1000  a/1 invoke lock
			1000  a/1 send acquire
			1001  a/1 exec acquire -> a/1 1 31001
			1400  a/1 send renew
			1401  a/1 exec renew -> a/1 1 31401
			` + answer + `
			1500  server fault 2 partition of a for 8.5s
			1900  b/1 waits lock
			10000 server heal 2
			10000 a/1 return granted
			10000 a/1 told
			10001 a/1 invoke unlock
			10001 a/1 return not_held
			31402 server expire -> free
			31900 b/1 gets
			60000 b/1 releases
			90000 server leave`
	}
	const partition = `
			15000 server fault 1 partition of a for 1s
			16000 server heal 1`
	testJudged(t, []judged{
		{rule: "a new master prolongs the hold of the dead", lock: electing, record: extended("24999")},
		{rule: "or shows that its lease stands still, while it serves others", lock: electing, record: served("24999")},
		{rule: "a renewal of another process, while the servers recover", lock: electing, record: renewedBy("24000")},
		{rule: "after that", lock: electing, record: renewedBy("26000"), finds: "misdelete bug: renew of b/1 (SEGMENT, sent at 26.000s) prolonged the hold of a/1"},
		{rule: "until its recovery", lock: electing, record: served("25001"), finds: "lease bug: the hold of a/1 on l was prolonged at 25.001s"},
		{rule: "not after its recovery", lock: electing, record: extended("25001"),
			finds: "lease bug: the hold of a/1 on l was prolonged at 25.001s, although it had died at 1.000s"},
		{rule: "nor before the fault", lock: electing, record: extended("1999"),
			finds: "lease bug: the hold of a/1 on l was prolonged at 1.999s"},
		{rule: "nor do other servers", lock: serving, record: extended("4000"),
			finds: "lease bug: the hold of a/1 on l was prolonged at 4.000s"},

		{rule: "a server that starts again with its data may count leases from their beginning", lock: serving, record: `
			0     a/1 takes
			1000  server fault 1 crash of a
			2000  server fault 2 server restart with its data -> a/1 1 32000
			32001 server expire -> free
			90000 server leave`},
		{rule: "one that lost its data has none", lock: serving, record: `
			0     a/1 takes
			1000  server fault 1 crash of a
			2000  server fault 2 server restart without its data -> a/1 1 32000
			32001 server expire -> free
			90000 server leave`,
			finds: "lease bug: the hold of a/1 on l was prolonged at 2.000s"},

		{rule: "a try may be late while nobody serves", lock: electing, record: late(`
			23000 b/1 waits try_lock_timed wait=500
			28000 b/1 return busy`)},
		{rule: "and not after the recovery", lock: electing, record: late(`
			24001 b/1 waits try_lock_timed wait=500
			28000 b/1 return busy`),
			finds: "wait-bound bug: b/1 tried for l from 24.001s on"},
		{rule: "nor at other servers", lock: serving, record: late(`
			4001 b/1 waits try_lock_timed wait=500
			9000 b/1 return busy`),
			finds: "wait-bound bug: b/1 tried for l from 4.001s on"},

		{rule: "a waiter may have to wait for an election", lock: electing, record: `
			1000  server fault 1 server stall for 3s
			4000  server heal 1
			4500  b/1 invoke lock
			24000 b/1 send acquire
			24001 b/1 exec acquire -> b/1 1 54001
			24002 b/1 deliver acquire
			24002 b/1 return granted
			25000 b/1 releases
			90000 server leave`},
		{rule: "and not longer", lock: electing, record: `
			1000  server fault 1 server stall for 3s
			4000  server heal 1
			4500  b/1 invoke lock
			26000 b/1 send acquire
			26001 b/1 exec acquire -> b/1 1 56001
			26002 b/1 deliver acquire
			26002 b/1 return granted
			27000 b/1 releases
			90000 server leave`,
			finds: "liveness bug: b/1 waited for l from 4.500s to 26.001s while nobody believed to hold it; the bound is 21s"},

		{rule: "a client whose renewal is lost looks for a master", lock: electing, record: lost("23999")},
		{rule: "as long as one may be missing", lock: electing, record: lost("26001"),
			finds: "liveness bug: b/1 waited for l from 5.000s"},
		{rule: "other servers are there", lock: serving, record: lost("23999"),
			finds: "liveness bug: b/1 waited for l from 5.000s"},

		{rule: "a waiter waits for the end of a hold that its owner gave up", lock: electing, record: told(partition, "30400")},
		{rule: "not longer than that hold lasts", lock: electing, record: told(partition, "31500"),
			finds: "liveness bug: b/1 waited for l from 25.001s to 31.501s while nobody believed to hold it; the bound is 6.001s"},
		{rule: "a lease from before a fault begins anew, for a hold that comes after it", lock: electing, record: lateHold},
		{rule: "but not on servers that do not recover", lock: serving, record: lateHold, finds: "lease bug: at 4.101s the hold of a/1 on l got a lease of 23.999s, and asked for 9s at most"},
		{rule: "without a fault nobody gives a hold up early", lock: electing, record: told("", "30400"),
			finds: "lease bug: a/1 was told at 20.000s that its hold on l is gone\nliveness bug: b/1 waited for l from 25.001s"},
		{rule: "nor by a fault of another client", lock: electing, record: told(`
			15000 server fault 1 partition of c for 1s
			16000 server heal 1`, "30400"),
			finds: "liveness bug: b/1 waited for l from 25.001s"},
		{rule: "or that a renewal prolonged whose answer is lost, on any server", lock: serving, record: told(`
			10000 a/1 send renew
			10001 a/1 exec renew -> a/1 1 30001
			10001 a/1 hit 1 renew
			10001 a/1 lost renew reply dropped`, "30400")},
		{rule: "also while its owner did not know of it yet", lock: serving, record: unheard(`
			1401  a/1 hit 1 renew
			1401  a/1 lost renew reply dropped`)},
		{rule: "and not if the answer comes", lock: serving, record: unheard(`
			1402  a/1 deliver renew`),
			finds: "liveness bug: b/1 waited for l from 10.001s"},
		{rule: "nothing else prolongs a hold on other servers", lock: serving, record: told(partition, "30400"),
			finds: "liveness bug: b/1 waited for l from 25.001s"},
	})
}

// Servers that fail over answer a renewal when they prolong the lease, which may be long after
// it came, and a new master prolongs leases without one.
func TestServersProlongLeases(t *testing.T) {
	electing := watchedLock
	electing.Recovery = 20 * time.Second
	// The renewal is sent at 1 s, and answered when the lease is prolonged. a/1 holds until its
	// unlock at 35 s.
	renewed := func(prolonged string) string {
		return `
			0     a/1 takes
			1000  a/1 send renew
			` + prolonged + `
			28001 a/1 exec renew
			28002 a/1 deliver renew
			35000 a/1 releases
			90000 server leave`
	}
	// There is no master from 28 s on, until one prolongs the hold of a/1 at 32 s.
	const failedOver = `
			0     a/1 takes
			28000 server fault 1 server stall for 3s
			31000 server heal 1
			32000 server expire lock=k
			32000 server expire -> a/1 1 62000
			35000 a/1 releases
			90000 server leave`
	testJudged(t, []judged{
		{rule: "a renewal takes effect when the servers prolong the lease", lock: electing, record: renewed("28000 server expire -> a/1 1 58000")},
		{rule: "a new master prolongs a hold whose lease is over", lock: electing, record: failedOver},
	})
}

// A lock may stay closed after its last holder failed. Nobody holds it then, and nobody can
// have it.
func TestALockIsClosed(t *testing.T) {
	record := func(after string) string {
		return `
			0     a/1 takes lease=12000 -> a/1 1 12000
			1000  server fault 1 pause of a for 20s
			1000  b/1 waits lock
			12001 server expire lock=k
			12001 server expire -> closed 72000
			20000 c/1 waits try_lock
			20001 c/1 return busy
			21000 server heal 1
			21000 a/1 told
			` + after + `
			90000 server leave`
	}
	const open = `
			72001 server expire lock=l
			72001 server expire -> free
			72100 b/1 gets
			73000 b/1 releases`
	testJudged(t, []judged{
		{rule: "its last holder holds nothing, others are refused, and a waiter waits", lock: watchedLock, record: record(`
			21000 a/1 invoke unlock
			21001 a/1 return not_held` + open)},
		{rule: "nobody holds it", lock: watchedLock, record: record(`
			21000 a/1 invoke unlock
			21001 a/1 return released` + open),
			finds: "linearizable bug: l: a/1 release (21.000s..21.001s) answered released, but the lock was closed"},
		{rule: "it opens when it was said to", lock: watchedLock, record: record(`
			74000 server expire lock=l
			74000 server expire -> free
			74100 b/1 gets
			75000 b/1 releases`),
			finds: "liveness bug: b/1 waited for l from 72.001s"},
	})
}

// A client that is closed in an orderly way ends its session, and with it the holds of its threads.
func TestAHoldEndsWithItsClosedClient(t *testing.T) {
	record := func(closed string) string {
		return `
			0     a/1 takes
			1000  b/1 waits lock
			` + closed + `
			2000  a/1 send renew
			2001  a/1 exec renew -> free
			2002  b/1 gets
			3000  b/1 releases
			90000 server leave`
	}
	testJudged(t, []judged{
		{rule: "its client gives it up", lock: watchedLock, record: record("1999 a close")},
		{rule: "a client that goes on does not", lock: watchedLock, record: record(""),
			finds: "mutual-exclusion bug: b/1 was granted l at 2.004s while a/1 believed to hold it\n" +
				"lease bug: a/1 believed to hold l until 90.000s; the hold had ended at 2.001s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s"},
	})
}

// A master that fails may have passed a request on. The next master then executes it for the call
// that had sent it, without an answer.
func TestANewMasterDoesWhatTheOldOneWasAskedFor(t *testing.T) {
	electing, serving := watchedLock, watchedLock
	electing.Recovery = 20 * time.Second
	const record = `
			0     a/1 invoke lock
			1     a/1 send acquire
			2     server fault 1 server restart
			2     a/1 lost acquire request connection reset
			500   server fault 2 crash of a
			4000  server ends -> a/1 1 34000
			5000  server ends -> a/1 1 35000
			35001 server expire lock=k
			35001 server expire -> free
			90000 server leave`
	testJudged(t, []judged{
		{rule: "of servers that fail over", lock: electing, record: record},
	})
	of := func(p model.Params) bool {
		r := traced(recordOf(t, p, record))
		return r.handedTo(r.Changes("l")[0]) != nil
	}
	if !of(electing) || of(serving) {
		t.Errorf("the hold belongs to the call: %t, and on other servers %t; want true and false", of(electing), of(serving))
	}
}

// A client of a lock without re-entry may know that its own thread holds the lock, and then asks no
// server.
func TestAClientRefusesItsOwnHolder(t *testing.T) {
	record := func(who string) string {
		return `
			0     a/1 takes
			1000  ` + who + ` invoke try_lock
			1001  ` + who + ` return busy
			2000  a/1 releases
			3000  ` + who + ` invoke try_lock
			3001  ` + who + ` return busy
			90000 server leave`
	}
	testJudged(t, []judged{
		{rule: "while it holds the lock, and not later", lock: watchedLock, record: record("a/1"),
			finds: "linearizable bug: l: a/1 acquire (3.000s..3.001s) answered busy"},
	})
}

// A server that speaks first holds up the calls of a client if its greeting is late. A message on a
// channel holds up only the thread that waits for it.
func TestAGreetingIsLate(t *testing.T) {
	const record = `
			0     b push hit
			0     b/1 invoke lock
			30000 b woken
			30100 b/1 gets -> b/1 1 37601
			31000 b/1 releases
			90000 server leave`
	for _, c := range []struct{ channel, finds string }{
		{"", ""},
		{"channel", "liveness bug: b/1 waited for l from 0.000s to 30.101s while nobody believed to hold it; the bound is 8.5s"},
	} {
		short := watchedLock
		short.Watchdog = 7500 * time.Millisecond
		rec := recordOf(t, short, record)
		for i := range rec.Events {
			if e := &rec.Events[i]; e.Dir == "push" {
				e.Channel = ""
				if e.Kind == model.KindDeliver {
					e.Channel = c.channel // the hit of a fault does not name the channel
				}
			}
		}
		t.Run("on the channel "+c.channel, func(t *testing.T) { expect(t, c.finds, judgeRecord(rec, nil)) })
	}
}

// A master that resigns answers that it is none, and the next master executes the requests that it
// was sent all the same.
func TestANewMasterDoesWhatTheOldOneRefused(t *testing.T) {
	electing, serving := watchedLock, watchedLock
	electing.Recovery = 20 * time.Second
	const begun = `
			0     a/1 invoke try_lock
			1     a/1 send acquire
			5     server fault 1 server stall for 3s
			2005  a/1 return unknown
			3005  server heal 1
			3005  a/1 exec acquire`
	// The next master executes the request of the first try, and none of the second.
	tries := begun + `
			2010  a/1 invoke try_lock
			2011  a/1 send acquire
			3006  a/1 exec acquire
			3007  server ends -> a/1 1 12001
			3008  server ends -> a/1 1 15008
			15009 server expire -> closed 75008
			15015 a/1 return busy
			75009 server expire -> free
			90000 server leave`
	// It also executes the request that ends the hold again.
	gone := func(end string) string {
		return begun + `
			3005  server ends -> a/1 1 33006
			` + end + `
			4000  b/1 takes
			4500  b/1 releases
			90000 server leave`
	}
	// Nobody asked for the end of the hold.
	const ended = `
			0     a/1 takes
			3010  server ends -> free
			4000  b/1 takes
			4500  b/1 releases
			5000  a/1 told
			90000 server leave`
	const two = "mutual-exclusion bug: b/1 was granted l at 4.002s while a/1 believed to hold it"
	testJudged(t, []judged{
		{rule: "the hold belongs to the try that knows of no answer", lock: electing, record: tries},
		{rule: "and ends with the request to end it", lock: electing, record: gone("3010 server ends -> free")},
		{rule: "a history has that end", lock: electing, record: ended, finds: two},
		{rule: "not on other servers", lock: serving, record: ended, finds: two},
	})
	r := traced(recordOf(t, electing, tries))
	if o := r.handedTo(r.Changes("l")[0]); o == nil || o.Outcome != model.Unknown {
		t.Errorf("the hold belongs to %+v, want the first try", o)
	}
}

// A thread has left a hold on the server of which it knows nothing, and opens another session. That
// session's renewals are none of the hold.
func TestAThreadRenewsAnotherSession(t *testing.T) {
	record := func(renewed string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 12001
			2     a/1 return granted
			10    a/1 invoke unlock
			10    a/1 send unlock
			11    a/1 hit 1 unlock
			12    a/1 lost unlock request dropped
			16    a/1 return unknown
			20    a/1 invoke unlock
			20    a/1 return not_held
			10000 a/1 send renew
			` + renewed + `
			90000 server leave`
	}
	const late = "lease bug: a renewal of l for a/1 was sent at 10.000s, although its unlock had returned not_held at 0.020s"
	testJudged(t, []judged{
		{rule: "the hold ends no later", lock: watchedLock, record: record("10001 a/1 exec renew\n12002 server expire -> free")},
		{rule: "the hold is over when the renewal runs", lock: watchedLock, record: record("12002 server expire -> free\n20000 a/1 exec renew")},
		{rule: "a request that ends the hold is no renewal", lock: watchedLock, record: record("10001 a/1 exec renew -> free")},
		{rule: "but a hold that it prolongs is its own", lock: watchedLock, record: record("10001 a/1 exec renew -> a/1 1 22001\n22002 server expire -> free"), finds: late},
	})
}

// An acquire that failed is cleaned up after in a goroutine that is in no call. Only a request that prolongs the
// hold is a renewal then.
func TestACleanUpIsNoRenewal(t *testing.T) {
	record := func(returned, ran string) string {
		return `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 12001
			800   a/1 return ` + returned + `
			900   a/1 send renew
			` + ran + `
			90000 server leave`
	}
	const late = "lease bug: a renewal of l for a/1 was sent at 0.900s, although its lock had returned unknown at 0.800s"
	testJudged(t, []judged{
		{rule: "it ends the hold", lock: watchedLock, record: record("unknown", "901 a/1 exec renew -> free")},
		{rule: "it finds no hold", lock: watchedLock, record: record("unknown", "12002 server expire -> free\n20000 a/1 exec renew")},
		{rule: "it is lost", lock: watchedLock, record: record("unknown", "901 a/1 hit 1 renew\n902 a/1 lost renew request dropped")},
		{rule: "it prolongs the hold", lock: watchedLock, record: record("unknown", "901 a/1 exec renew -> a/1 1 12901\n12902 server expire -> free"), finds: late},
	})
}

// A stream has an order: a reply that a fault holds up also holds up what the server sends behind it.
// Other connections go on.
func TestWhatComesBehindALateReplyIsLate(t *testing.T) {
	const record = `
			0     a/1 takes lock=k
			0     b/1 waits lock
			100   a/1 send renew lock=k
			101   a/1 exec renew lock=k -> a/1 1 30101
			101   a/1 hit 1 renew
			20000 a/1 deliver renew
			20001 b/1 gets
			20100 b/1 releases
			25000 a/1 releases lock=k
			90000 server leave`
	const late = "liveness bug: b/1 waited for l from"
	for _, c := range []struct {
		rule, command string
		conn          int
		finds         string
	}{
		{"on the same connection", model.SegmentCommand, 1, ""},
		{"on another connection", model.SegmentCommand, 2, late},
		{"of a message that is none of a stream", "EVAL", 1, late},
	} {
		t.Run(c.rule, func(t *testing.T) {
			rec := recordOf(t, plainLock, strings.ReplaceAll(record, "b/1", "a/2"))
			for i := range rec.Events {
				switch e := &rec.Events[i]; {
				case e.Kind == model.KindHit:
					e.Dir = "reply"
				case e.Kind == model.KindSend && e.Script == model.RoleRenew:
					e.Command, e.Conn = c.command, c.conn
				case e.Kind == model.KindSend:
					e.Conn = 1
				}
			}
			expect(t, strings.ReplaceAll(c.finds, "b/1", "a/2"), judgeRecord(rec, nil))
		})
	}
}

// The threads of a client may wait for one another. What a fault holds up in the call of one then holds up those that have
// nothing under way.
func TestAThreadWaitsBehindAnother(t *testing.T) {
	record := func(behind, met string) string {
		return `
			0     c/1 takes lock=k
			0     b/1 takes
			50    a/1 invoke lock
			60    ` + behind + `
			100   b/1 releases
			101   a/1 send acquire
			101   a/1 hit 1 acquire
			` + met + `
			12001 a/1 exec acquire -> a/1 1 42001
			12002 a/1 deliver acquire
			12002 a/1 return granted
			13000 a/1 releases
			13100 a/2 gets
			14000 a/2 releases
			14100 c/1 releases lock=k
			90000 server leave`
	}
	const silent = "a/2 invoke lock"
	testJudged(t, []judged{
		{rule: "whose request is late", record: record(silent, "")},
		{rule: "whose request was lost, and is sent again", record: strings.Replace(record(silent, "3500 a/1 lost acquire request dropped\n12000 a/1 send acquire"), "hit 1 acquire", "hit 1 acquire drop", 1)},
		{rule: "which waits for another lock", record: strings.NewReplacer("a/1 invoke lock", "a/1 invoke lock lock=k", "a/1 exec acquire -> a/1 1 42001", "a/1 exec acquire lock=k -> c/1 1 30001",
			"a/1 send acquire", "a/1 send acquire lock=k", "12002 a/1 return granted\n", "12002 a/1 return busy\n", "13000 a/1 releases\n", "", "13100 a/2", "12500 a/2").Replace(record(silent, ""))},
		{rule: "not if no fault held it up", record: strings.Replace(record(silent, ""), "101   a/1 hit 1 acquire", "", 1), finds: "liveness bug: a/1 waited for l from\nliveness bug: a/2 waited for l from"},
		{rule: "not if it is one of another process", record: strings.ReplaceAll(record(silent, ""), "a/2", "d/1"), finds: "liveness bug: d/1 waited for l from"},
		{rule: "nor if it waits for the server itself", record: record("a/2 invoke lock\n60 a/2 send acquire\n12003 a/2 exec acquire -> a/1 1 42001\n12004 a/2 deliver acquire", ""), finds: "liveness bug: a/2 waited for l from"},
		{rule: "nor once it has asked by itself", record: record("a/2 invoke lock\n9000 a/2 send acquire\n9001 a/2 exec acquire\n9002 a/2 deliver acquire", ""), finds: "liveness bug: a/2 waited for l from"},
	})
}

// The server gives the lock to a single try that stands in the queue, whose answer a fault holds up. The
// hold ends before the try answers busy, so its renewals renew no grant.
func TestATryThatIsServedAnswersBusy(t *testing.T) {
	record := func(end string) string {
		return `
			0     b/1 takes
			1000  a/1 invoke try_lock
			1000  a/1 send acquire
			1001  a/1 exec acquire -> b/1 1 30001 queue=a/1
			1001  a/1 hit 1 acquire
			2000  b/1 releases -> a/1 1 32001
			5000  a/1 send renew
			5001  a/1 exec renew -> a/1 1 35001
			` + end + `
			40000 a/1 return busy
			90000 server leave`
	}
	queued := watchedLock
	queued.Fair = true
	testJudged(t, []judged{
		{rule: "after the hold is over", lock: queued, record: record("35002 server expire -> free")},
	})
}

// A client sends an acquire again whose answer does not come, and the first grant is over by then. The
// call is granted twice, and may know of the second grant.
func TestACallIsGrantedAgainWhenItsFirstGrantIsOver(t *testing.T) {
	record := func(returned, released string) string {
		return `
			0     c/1 invoke lock
			0     c/1 send acquire
			1     c/1 exec acquire -> c/1 1 8001
			1     c/1 hit 1 acquire
			8002  server expire -> free
			10000 c/1 send acquire
			10001 c/1 exec acquire -> c/1 1 18001
			` + returned + `
			` + released + `
			90000 server leave`
	}
	const inTime = `
			15000 c/1 invoke unlock
			15000 c/1 send unlock
			15001 c/1 exec unlock -> free
			15002 c/1 return released`
	const late = `
			18002 server expire -> free
			19000 c/1 invoke unlock
			19000 c/1 send unlock
			19001 c/1 exec unlock
			19002 c/1 return released`
	for outcome, returned := range map[string]string{"granted": "10002 c/1 return granted", "unknown": "15000 c/1 return unknown"} {
		testJudged(t, []judged{
			{rule: outcome + ", and releases it", lock: anybodys, record: record(returned, inTime)},
			{rule: outcome + ", and says that it releases what is over", lock: anybodys, record: record(returned, late),
				finds: "linearizable bug: l: c/1 release (19.000s..19.002s) answered released, but the lock was free"},
		})
	}
}

// A lease begins anew after a fault for which the servers fail over, if it is not over before, nor begins after it.
func TestALeaseBeginsAnew(t *testing.T) {
	electing := watchedLock
	electing.Recovery = 20 * time.Second
	const record = `
		0     a/1 takes
		60000 server fault 1 server stall for 3s
		63000 server heal 1
		90000 server leave`
	const lease, second = 30 * time.Second, int64(time.Second)
	for _, c := range []struct {
		lock           model.Params
		atNs, wantAtNs int64
		want           time.Duration
	}{
		{electing, 29 * second, 29 * second, lease},
		{electing, 31 * second, 63 * second, lease + electing.Recovery},
		{electing, 82 * second, 82 * second, lease + electing.Recovery},
		{electing, 84 * second, 84 * second, lease},
		{watchedLock, 31 * second, 31 * second, lease},
	} {
		if at, cost := (livenessJudge{newRun(trace.New(recordOf(t, c.lock, record)))}).leaseAnew(c.atNs, lease); at != c.wantAtNs || cost != c.want {
			t.Errorf("a lease that begins at %ds ends %v after %ds; want %v after %ds", c.atNs/second, cost, at/second, c.want, c.wantAtNs/second)
		}
	}
}
