package judges

import (
	"testing"

	"lockstep/model"
)

func TestFencing(t *testing.T) {
	fenced := plainLock
	fenced.Fenced = true
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
