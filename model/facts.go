package model

// Facts state for programs the facts that the sentence of a finding states for people. A field
// without a meaning for the finding is zero.
type Facts struct {
	// Form says which rule of its judge the finding breaks, for a judge that has
	// several.
	Form Form
	Lock string
	// Thread is the thread that the finding is about, as process/thread: the owner that suffers the
	// harm. If there is none, it is the thread that does the harm.
	Thread string
	// Threads are the threads that worked on a resource at the same time, and the thread that lost
	// an update.
	Threads []string
	// Loss is how a hold that its owner believed in had ended on the server.
	Loss *Loss
	// Check is the want of a step that was not met.
	Check *Check
}

// Form is one of the rules of a judge.
type Form string

// The forms of findings.
const (
	FormEndless        Form = "endless"         // lease: the hold has no time to live
	FormLongLease      Form = "long-lease"      // lease: the hold got a longer lease than its owner asked for
	FormUndone         Form = "undone"          // lease: an acquire itself ended the hold with which it returned
	FormUnrenewed      Form = "unrenewed"       // lease: the hold ended although the lock should have renewed it
	FormOutlivesOwner  Form = "outlives-owner"  // lease: the hold of a dead owner was prolonged
	FormLateRenewal    Form = "late-renewal"    // lease: a renewal was sent for a hold that was given up
	FormShortExtension Form = "short-extension" // lease: an extension left the hold less than another lease
	FormUntold         Form = "untold"          // lease: an owner was not told that its hold is gone
	FormMisled         Form = "misled"          // lease: an owner was told that its hold is gone although it was not
	FormStuck          Form = "stuck"           // liveness: a call that need not wait did not return
	FormForgotten      Form = "forgotten"       // liveness: a waiter waited for a free lock
	FormGhost          Form = "ghost"           // tidy: a thread that does not wait stands in the queue
	FormUnasked        Form = "unasked"         // tidy: a client took the lock long after its callers had left
	FormTornQueue      Form = "torn-queue"      // tidy: queue and deadlines have different members
	FormLeftover       Form = "leftover"        // tidy: something remained after all had left
	FormLostUpdate     Form = "lost-update"     // workload: two threads worked on the resource at the same time
	FormWaitedToTheEnd Form = "waited-till-end" // workload: a thread still waited for a lock when the run ended
)

// Loss is the end of a hold on the server while its owner believed in it.
type Loss struct {
	Cause  LossCause
	Thread string // the owner, as process/thread
	Lock   string
	AtNs   int64 // simulated time since the start
	Fault  int   // the number of the fault, for LossRemoved and LossShortened
	Msg    int   // the number of the command, for LossForced and LossEnded
}

// LossCause says what ended a hold.
type LossCause string

// The causes of a loss.
const (
	LossExpired   LossCause = "expired"   // its lease ended
	LossRemoved   LossCause = "removed"   // a fault removed it
	LossShortened LossCause = "shortened" // a fault took a level or a part of the lease from it
	LossForced    LossCause = "forced"    // a force_unlock ended it
	LossEnded     LossCause = "ended"     // another command ended it
)

// Expired reports whether the lease of the hold had ended.
func (l *Loss) Expired() bool { return l != nil && l.Cause == LossExpired }

// Check is the check of a step's want, reply or read.
type Check struct {
	What   string // the step or the part of it: lock, unlock reply, holds, ttl, ...
	Thread string // for a deadline the waiter, for published messages the receiver or "all"
	Of     string // the name of the lock or the resource
	Want   string
	Got    string
}

// Claim writes what the step wants, for people.
func (c Check) Claim() string {
	what := c.What
	switch {
	case c.Thread != "" && c.What == "published":
		what += " to " + c.Thread
	case c.Thread != "":
		what += " of " + c.Thread
	}
	return what + " of " + c.Of + ": wanted " + c.Want
}

// String writes what the step wants and what it got, for people.
func (c Check) String() string { return c.Claim() + ", got " + c.Got }

// LostReason is the reason why a message is lost; "": it is not.
type LostReason string

// The reasons.
const (
	LostDropped       LostReason = "dropped"             // a rule dropped it
	LostReset         LostReason = "connection reset"    // its connection was reset
	LostClosed        LostReason = "connection closed"   // its client closed the connection
	LostPartition     LostReason = "partition"           // a partition stopped it
	LostProcessDead   LostReason = "process dead"        // its process is dead
	LostBehindAnother LostReason = "behind a lost one"   // a message before it in its pipeline is lost
	LostUnwanted      LostReason = "nobody waits for it" // its client does not wait for it any more
	LostChosen        LostReason = "lost"                // in a world without latencies, its loss was chosen
	// A rule should have answered it with an error, and nobody asked for it.
	LostUnanswerable LostReason = "an error rule cannot answer a published message"
)
