// Package model holds the words of a record and the promises of a lock: the events that a simulated
// run leaves behind, the state machines of the reentrant, the fair and the fenced lock, and the
// promises that the traits of a lock imply.
//
// The package runs nothing: it has no simulator, no lock and no checker. The world (sim/) writes
// these words, the judges (linearizability/judges/) read them, and either may change without the
// other as long as the words stay the same.
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

// Reachable lists the states that a run can reach, in the order of listings.
var Reachable = []string{
	"renewed", "lease_expired", "stale_unlock", "wakeup_lost", "waiter_evicted",
	"reply_lost_after_run", "reentered", "handed_over", "failed_over",
}
