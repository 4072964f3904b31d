package judges

import (
	"testing"
	"time"
)

// A record of real time has an uncertainty. Each judge with a bound adds it to the bound.
func TestUncertainty(t *testing.T) {
	unsure := plainLock
	unsure.Uncertainty = 50 * time.Millisecond
	late := func(returned string) string {
		return `
			0   a/1 takes lease=9000
			100 b/1 waits try_lock_timed wait=500
			` + returned + ` b/1 return busy
			9000 server leave`
	}
	renewed := func(sent string) string {
		return `
			0    a/1 takes
			1000 a/1 releases
			` + sent + ` a/1 send renew
			3001 a/1 exec renew
			9000 server leave`
	}
	testJudged(t, []judged{
		{rule: "a timed try may be late by as much", lock: unsure, record: late("653")},
		{rule: "and no more", lock: unsure, finds: "wait-bound bug: returned at 0.654s", record: late("654")},
		{rule: "a renewal may have been on its way when the release returned", lock: unsure, finds: "lease undecided: a renewal of l for a/1 was sent at 1.052s", record: renewed("1052")},
		{rule: "but not later", lock: unsure, finds: "lease bug: a renewal of l for a/1 was sent at 1.053s", record: renewed("1053")},
		{rule: "a simulated world has none", finds: "lease bug: a renewal of l for a/1 was sent at 1.003s", record: renewed("1003")},
	})
}
