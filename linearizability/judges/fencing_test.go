package judges

import (
	"strings"
	"testing"

	"lockstep/model"
)

func TestFencing(t *testing.T) {
	fenced := plainLock
	fenced.Fenced = true
	drawnLater := func(token string) string {
		return `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=1
			1000 a/1 releases -> free token=1
			1100 b/1 invoke lock lease=3000
			1100 b/1 send acquire
			1101 b/1 exec acquire -> b/1 1 4101 token=1
			1102 b/1 deliver acquire
			1102 b/1 send acquire
			1103 b/1 exec acquire nth=2 -> b/1 1 4101 ` + token + `
			1104 b/1 deliver acquire nth=2
			1104 b/1 return granted
			9000 server leave`
	}
	// twice is a call whose first hold, which has the token 1 until the second request of the call draws one, ends before it returns.
	twice := func(token, fault string) string {
		return `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=1
			1000 a/1 releases -> free token=1
			1100 b/1 invoke lock lease=3000
			1100 b/1 send acquire
			1101 b/1 exec acquire -> b/1 1 4101 token=1
			1102 b/1 lost acquire reply dropped
			4102 server expire -> free token=2
			` + fault + `
			4200 b/1 send acquire
			4201 b/1 exec acquire nth=2 -> b/1 1 7201 token=` + token + `
			4202 b/1 deliver acquire nth=2
			4202 b/1 return granted
			5000 b/1 releases -> free
			9000 server leave`
	}
	testJudged(t, []judged{
		{rule: "every token is greater", lock: fenced, record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=1
			1000 a/1 releases -> free token=1
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=2
			9000 server leave`},
		{rule: "a token that comes again", lock: fenced,
			finds: "fencing bug: the hold of b/1 on l since 1.101s has the token 7, and there was a token 7 before", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			1000 a/1 releases -> free
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=7
			9000 server leave`},
		{rule: "every one before, not only the last", lock: fenced, finds: `
			fencing bug: the hold of b/1 on l since 1.101s has the token 3, and there was a token 7 before
			fencing bug: the hold of c/1 on l since 2.101s has the token 4, and there was a token 7 before`, record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			1000 a/1 releases -> free
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=3
			2000 b/1 releases -> free
			2100 c/1 takes lease=3000 -> c/1 1 5101 token=4
			9000 server leave`},
		{rule: "what a re-entry drew counts", lock: fenced, finds: "fencing bug: has the token 8, and there was a token 8 before", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			500  a/1 takes lease=3000 -> a/1 2 3501 token=8
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 3501 token=8
			1002 a/1 deliver unlock
			1002 a/1 return still_held
			1050 a/1 releases -> free
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=8
			9000 server leave`},
		{rule: "a re-entry needs none of its own", lock: fenced, record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			500  a/1 takes lease=3000 -> a/1 2 3501 token=7
			9000 server leave`},
		{rule: "it may be drawn when the hold has begun", lock: fenced, record: drawnLater("token=2")},
		{rule: "and must be drawn", lock: fenced, finds: "fencing bug: the hold of b/1 on l since 1.101s has the token 1, and there was a token 1 before", record: drawnLater("token=1")},
		{rule: "nobody knows it if the acquire fails before", lock: fenced, record: strings.Replace(drawnLater("token=1"), "return granted", "return unknown", 1)},
		{rule: "a request that runs when its call is over draws another", lock: fenced, finds: "hold-count bug: at 1.400s", record: strings.Replace(drawnLater("token=2"), "1104 b/1 return granted\n\t\t\t9000 server", `1103 b/1 send acquire
			1104 b/1 return granted
			1300 server expire -> free token=2
			1400 b/1 exec acquire nth=3 -> b/1 1 4400 token=3
			9000 server`, 1)},
		{rule: "the hold of a request without an answer, which ends before the call returns with a later hold, gives nobody a token", lock: fenced, record: twice("2", "")},
		{rule: "but the later hold does", lock: fenced, finds: "fencing bug: the hold of b/1 on l since 4.201s has the token 1, and there was a token 1 before", record: twice("1", "")},
		{rule: "unless its count was taken away", lock: fenced, finds: "fencing limit (hold removed by another hand): the hold of b/1 on l since 4.201s has the token 1, and there was a token 1 before",
			record: twice("1", "4150 server fault 1 delete of key token")},
		{rule: "an unlock that hands the lock on gives a token, too", lock: fenced, finds: "fencing bug: the hold of b/1 on l since 1.001s has the token 1, and there was a token 1 before", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=1
			500  b/1 waits lock lease=3000
			1000 a/1 releases -> b/1 1 4001 token=1
			1003 b/1 return granted
			9000 server leave`},
		{rule: "each lock counts for itself", lock: fenced, record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			1100 b/1 takes lease=3000 lock=m -> b/1 1 4101 token=1
			9000 server leave`},
		{rule: "a count that another hand took away is a limit", lock: fenced, finds: "fencing limit (hold removed by another hand): has the token 1", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			1000 a/1 releases -> free token=7
			1050 server fault 1 delete of key * -> free
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=1
			9000 server leave`},
		{rule: "also while nobody held the lock, when nothing is seen of it", lock: fenced,
			finds: "fencing limit (hold removed by another hand): has the token 7", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			1000 a/1 releases -> free
			1050 server fault 1 delete of key token
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=7
			9000 server leave`},
		{rule: "but not before the greater token was there", lock: fenced, finds: "fencing bug: has the token 7", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=6
			500  a/1 releases -> free
			550  server fault 1 delete of key token
			600  a/1 takes lease=3000 -> a/1 1 3601 token=7
			1000 a/1 releases -> free
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=7
			9000 server leave`},
		{rule: "no other fault excuses it", lock: fenced, finds: "fencing bug: has the token 7", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 token=7
			1000 a/1 releases -> free token=7
			1050 server fault 1 pause of c for 6s
			1100 b/1 takes lease=3000 -> b/1 1 4101 token=7
			9000 server leave`},
		{rule: "a lock without tokens", record: `
			0    a/1 takes lease=3000
			1000 a/1 releases
			1100 b/1 takes lease=3000
			9000 server leave`},
	})
	if _, promised := plainLock.Promise(model.JudgeFencing); promised {
		t.Error("the plain lock promises tokens")
	}
}

// A call may return with a hold that began by a request of which nobody knows that it was sent for the call.
func TestTheTokenOfALaterHold(t *testing.T) {
	fenced := anybodys
	fenced.Fenced = true
	const record = `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001 token=1 value=v
			2     a/1 lost acquire reply dropped
			10    server fault 1 failover that loses the last 1 writes -> free
			20    b/1 takes token=1 -> b/1 1 30020 token=1
			30    b/1 releases -> free token=1
			40    a/1 send EVAL nobody=y args=v
			41    a/1 exec EVAL -> a/1 1 30041 token=2 value=v
			42    a/1 deliver EVAL
			42    a/1 return granted token=2
			90000 server leave`
	const limit = "fencing limit (hold removed by another hand): the hold of b/1 on l since 0.021s has the token 1"
	testJudged(t, []judged{
		{rule: "it counts for that hold", lock: fenced, record: record, finds: limit},
		{rule: "another was told a greater one before", lock: fenced, finds: limit + "\nfencing bug: a/1 was told the token 1 with the grant of l at 0.042s, and b/1 had been told 1",
			record: strings.NewReplacer("return granted token=2", "return granted token=1").Replace(record)},
	})
}
