package judges

import (
	"testing"
	"time"

	"lockstep/model"
)

// Servers with a time of recovery elect another master after a fault, and are of no use until
// then. Other servers serve again when the fault is over.
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
	// b/1 tries while nobody serves.
	late := func(returned string) string {
		return `
			0     a/1 takes lease=60000
			1000  server fault 1 server stall for 3s
			4000  server heal 1
			` + returned + `
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
	const partition = `
			15000 server fault 1 partition of a for 1s
			16000 server heal 1`
	testJudged(t, []judged{
		{rule: "a new master prolongs the hold of the dead", lock: electing, record: extended("24999")},
		{rule: "not after its recovery", lock: electing, record: extended("25001"),
			finds: "lease bug: the hold of a/1 on l was prolonged at 25.001s, although it had died at 1.000s"},
		{rule: "nor before the fault", lock: electing, record: extended("1999"),
			finds: "lease bug: the hold of a/1 on l was prolonged at 1.999s"},
		{rule: "nor do other servers", lock: serving, record: extended("4000"),
			finds: "lease bug: the hold of a/1 on l was prolonged at 4.000s"},

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

		{rule: "a waiter waits for the end of a hold that its owner gave up", lock: electing, record: told(partition, "30400")},
		{rule: "not longer than that hold lasts", lock: electing, record: told(partition, "31500"),
			finds: "liveness bug: b/1 waited for l from 25.001s to 31.501s while nobody believed to hold it; the bound is 6.001s"},
		{rule: "without a fault nobody gives a hold up early", lock: electing, record: told("", "30400"),
			finds: "liveness bug: b/1 waited for l from 25.001s"},
		{rule: "nor by a fault of another client", lock: electing, record: told(`
			15000 server fault 1 partition of c for 1s
			16000 server heal 1`, "30400"),
			finds: "liveness bug: b/1 waited for l from 25.001s"},
		{rule: "nor is that so of other servers", lock: serving, record: told(partition, "30400"),
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
	// No master is there from 28 s on, until one prolongs the hold of a/1 at 32 s.
	const failedOver = `
			0     a/1 takes
			28000 server fault 1 server stall for 3s
			31000 server heal 1
			32000 server expire lock=k
			32000 server expire -> a/1 1 62000
			35000 a/1 releases
			90000 server leave`
	serving := watchedLock
	testJudged(t, []judged{
		{rule: "a renewal takes effect when the servers prolong the lease", lock: electing, record: renewed("28000 server expire -> a/1 1 58000")},
		{rule: "if it does not, the hold ends with the lease", lock: electing, record: renewed(""),
			finds: "linearizable bug: l: a/1 release (35.000s..35.002s) answered released"},
		{rule: "a new master prolongs a hold whose lease is over", lock: electing, record: failedOver},
		{rule: "other servers do not", lock: serving, record: failedOver,
			finds: "linearizable bug: l: a/1 release (35.000s..35.002s) answered released"},
	})
}
