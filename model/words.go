// Package model holds the words of a record and what a lock promises: the
// events that a simulated run leaves behind, the state machines of the
// reentrant, the fair and the fenced lock, and what the traits of a lock promise.
//
// Nothing here runs anything: no simulator, no lock and no checker. The world
// (sim/) writes these words, the judges (linearizability/judges/) read them, and both
// may change without the other as long as the words stay.
package model

// Judges are the names of all judges, in the order in which findings are
// listed.
var Judges = []string{
	JudgeMutualExclusion, JudgeMisdelete, JudgeLinearizable, JudgeHoldCount,
	JudgeFIFO, JudgeLease, JudgeLiveness, JudgeWaitBound, JudgeFencing,
	JudgeTidy, JudgeTraffic, JudgeWorkload, JudgeWant,
}

// The judges.
const (
	JudgeMutualExclusion = "mutual-exclusion"
	JudgeMisdelete       = "misdelete"
	JudgeLinearizable    = "linearizable"
	JudgeHoldCount       = "hold-count"
	JudgeFIFO            = "fifo"
	JudgeLease           = "lease"
	JudgeLiveness        = "liveness"
	JudgeWaitBound       = "wait-bound"
	JudgeFencing         = "fencing"
	JudgeTidy            = "tidy"
	JudgeTraffic         = "traffic"
	JudgeWorkload        = "workload"
	JudgeWant            = "want"
)

// Reachable is what a run can reach, in the order in which it is listed.
var Reachable = []string{
	"renewed", "lease_expired", "stale_unlock", "wakeup_lost", "waiter_evicted",
	"reply_lost_after_run", "reentered", "handed_over", "failed_over",
}
