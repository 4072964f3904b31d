package judges

import "testing"

// A hold that a step of the server's clock ended, or shortened, is lost for that reason only.
func TestTheClockOfAServerSteps(t *testing.T) {
	fenced := plainLock
	fenced.Fenced = true
	testJudged(t, []judged{
		{rule: "forward past the lease: the hold ends at once", lock: bareLock,
			finds: "mutual-exclusion limit (wall clock of a server stepped): b/1 was granted l at 2.002s while a/1 believed to hold it since 0.002s: wall clock of the server steps by 40s had removed it at 1.000s", record: `
			0     a/1 takes
			1000  server fault 1 wall clock of the server steps by 40s -> free
			2000  b/1 takes
			3000  b/1 releases
			40000 server leave`},
		{rule: "forward within the lease: the hold ends earlier", lock: bareLock,
			finds: "mutual-exclusion limit (wall clock of a server stepped): its lease had ended at 20.002s, which wall clock of the server steps by 10s had shortened at 1.000s", record: `
			0     a/1 takes
			1000  server fault 1 wall clock of the server steps by 10s -> a/1 1 20001
			20002 server expire -> free
			21000 b/1 takes
			22000 b/1 releases
			40000 server leave`},
		{rule: "before the grant comes back", lock: bareLock,
			finds: "mutual-exclusion limit (wall clock of a server stepped): its lease had ended at 20.002s, which wall clock of the server steps by 10s had shortened at 0.500s", record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			500   server fault 1 wall clock of the server steps by 10s -> a/1 1 20001
			600   a/1 deliver acquire
			600   a/1 return granted
			20002 server expire -> free
			21000 b/1 takes
			22000 b/1 releases
			40000 server leave`},
		{rule: "a step excuses nothing that it did not touch", lock: bareLock,
			finds: "mutual-exclusion bug: unlock of b/1 had ended it at 2.001s\nmisdelete bug: ended the hold of a/1", record: `
			0     a/1 takes
			1000  server fault 1 wall clock of the server steps by 10s -> a/1 1 20001
			2000  b/1 invoke unlock
			2000  b/1 send unlock
			2001  b/1 exec unlock -> free
			2002  b/1 deliver unlock
			2002  b/1 return not_held
			3000  b/1 takes
			4000  b/1 releases
			40000 server leave`},
		{rule: "on one of several servers, before there is a majority", lock: onSeveral,
			finds: "mutual-exclusion limit (wall clock of a server stepped): b/1 was granted l at 2.002s", record: `
			0    a/1 invoke lock
			0    a/1 send acquire
			1000 server fault 1 wall clock of the server steps by 40s
			1001 a/1 exec acquire
			1002 a/1 deliver acquire
			1002 a/1 return granted
			2000 b/1 takes
			3000 b/1 releases
			3100 a/1 invoke unlock
			3101 a/1 return unknown
			40000 server leave`},
		{rule: "which shortens the hold that comes of it", lock: onSeveral,
			finds: "mutual-exclusion limit (wall clock of a server stepped): its lease had ended at 20.002s, and wall clock of the server steps by 10s had shortened it at 1.000s", record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1000  server fault 1 wall clock of the server steps by 10s
			1001  a/1 exec acquire -> a/1 1 20001
			1002  a/1 deliver acquire
			1002  a/1 return granted
			20002 server expire -> free
			21000 b/1 takes
			22000 b/1 releases
			40000 server leave`},
		{rule: "but not one that came later", lock: onSeveral,
			finds: "mutual-exclusion bug: its lease had ended at 20.002s", record: `
			0     a/1 takes -> a/1 1 20001
			20002 server expire -> free
			20500 server fault 1 wall clock of the server steps by 10s
			21000 b/1 takes
			22000 b/1 releases
			40000 server leave`},
		{rule: "backward before there is a majority is no excuse", lock: onSeveral,
			finds: "mutual-exclusion bug: b/1 was granted l at 2.002s", record: `
			0    a/1 invoke lock
			0    a/1 send acquire
			1000 server fault 1 wall clock of the server steps by -40s
			1001 a/1 exec acquire
			1002 a/1 deliver acquire
			1002 a/1 return granted
			2000 b/1 takes
			3000 b/1 releases
			3100 a/1 invoke unlock
			3101 a/1 return unknown
			40000 server leave`},
		{rule: "a watchdog cannot renew in time what a step leaves", lock: plainLock, record: `
			0     a/1 takes
			10000 a/1 renews
			11000 server fault 1 wall clock of the server steps by 25s -> a/1 1 15001
			15002 server expire -> free
			16000 a/1 invoke unlock
			16000 a/1 send unlock
			16001 a/1 exec unlock
			16002 a/1 deliver unlock
			16002 a/1 return not_held
			60000 server leave`},
		{rule: "it can where a period is left", lock: plainLock,
			finds: "lease bug: the hold of a/1 on l ended with its lease at 25.002s while a/1 believed to hold it and its watchdog should have renewed it; wall clock of the server steps by 15s had shortened it at 11.000s", record: `
			0     a/1 takes
			10000 a/1 renews
			11000 server fault 1 wall clock of the server steps by 15s -> a/1 1 25001
			25002 server expire -> free
			26000 a/1 invoke unlock
			26000 a/1 send unlock
			26001 a/1 exec unlock
			26002 a/1 deliver unlock
			26002 a/1 return not_held
			60000 server leave`},
		{rule: "the hold of a dead owner lives longer, and nobody prolonged it", lock: plainLock, record: `
			0     a/1 takes
			1000  server fault 1 crash of a
			2000  server fault 2 wall clock of the server steps by -40s -> a/1 1 70001
			3000  b/1 waits lock -> a/1 1 70001
			70002 server expire -> free
			70500 b/1 gets -> b/1 1 100501
			71000 b/1 releases
			90000 server leave`},
		{rule: "a stall lets the hold of a dead owner live longer, and nobody prolonged it", lock: plainLock, record: `
			0     a/1 takes
			1000  server fault 1 crash of a
			2000  server fault 2 server stall for 2s -> a/1 1 30900
			30901 server expire -> free
			90000 server leave`},
		{rule: "whoever waits past that waits too long", lock: plainLock,
			finds: "liveness limit (wall clock of a server stepped): b/1 waited for l", record: `
			0     a/1 takes
			1000  server fault 1 crash of a
			2000  server fault 2 wall clock of the server steps by -40s -> a/1 1 70001
			3000  b/1 waits lock -> a/1 1 70001
			70002 server expire -> free
			99500 b/1 gets -> b/1 1 129501
			99900 b/1 releases
			120000 server leave`},
		{rule: "a token that is the time of the server", lock: fenced,
			finds: "fencing limit (wall clock of a server stepped): the hold of b/1 on l since 2.001s has the token 3, and there was a token 7 before", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			500  a/1 releases -> free token=7
			1000 server fault 1 wall clock of the server steps by -40s
			2000 b/1 takes lease=3000 -> b/1 1 5001 token=3
			2500 b/1 releases -> free token=3
			9000 server leave`},
		{rule: "a token after the step is the lock's own", lock: fenced,
			finds: "fencing bug: the hold of b/1 on l since 2.001s has the token 3, and there was a token 7 before", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			500  a/1 releases -> free token=7
			2000 b/1 takes lease=3000 -> b/1 1 5001 token=3
			2500 b/1 releases -> free token=3
			3000 server fault 1 wall clock of the server steps by -40s
			9000 server leave`},
		{rule: "a try that a server with another clock puts off", lock: bareLock,
			finds: "wait-bound limit (wall clock of a server stepped): a/1 tried for l from 1.000s on, for 50ms, and returned at 1.200s", record: `
			500  server fault 1 wall clock of the server steps by 40s
			600  b/1 takes
			1000 a/1 waits try_lock_timed wait=50
			1200 a/1 return busy
			1300 b/1 releases
			9000 server leave`},
		{rule: "a step after it puts off nothing", lock: bareLock,
			finds: "wait-bound bug: a/1 tried for l from 1.000s on, for 50ms, and returned at 1.200s", record: `
			600  b/1 takes
			1000 a/1 waits try_lock_timed wait=50
			1200 a/1 return busy
			1300 b/1 releases
			1500 server fault 1 wall clock of the server steps by 40s
			9000 server leave`},
		{rule: "a key that lives on", lock: bareLock, finds: "tidy limit (wall clock of a server stepped): there still was key k", record: `
			1000 server fault 1 wall clock of the server steps by -40s
			9000 server leave
			9500 server left key k`},
	})
}
