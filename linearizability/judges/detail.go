package judges

import (
	"time"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/model/trace"
)

// Detail has the values that the sentence about a finding needs besides its facts. It has one type
// per rule. Package sentence writes the sentences; nothing else reads details. Instants are
// simulated time since the start, and threads are process/thread.
type Detail any

// Details has a value of each type of a detail.
var Details = []Detail{
	Overlap{}, Misdelete{}, Unplaceable{}, Miscount{}, Overtaken{},
	Endless{}, LongLease{}, OutlivesOwner{}, Unrenewed{}, UndoneGrant{}, Unasked{}, ShortExtension{}, Untold{}, ToldLate{}, Misled{}, LateRenewal{},
	Stuck{}, Forgotten{}, LateReturn{}, RepeatedToken{}, StaleToken{}, Traffic{},
	Leftover{}, Ghost{}, Abandoned{}, TornQueue{}, Unmet{}, Defect{}, Unended{}, WrongResource{},
}

// Overlap is a detail of mutual-exclusion: two threads believed to hold the lock. Facts.Thread is
// the one that did not hold it.
type Overlap struct {
	Earlier   string
	EarlierNs int64 // since when the other thread believed to hold the lock
	Later     string
	Answer    model.Outcome // on which the belief of Later rests: a grant, an extension, or that a level is left
	Ending    Ending
}

// Ending says how a hold ended on the server while its owner believed in it.
type Ending struct {
	Cause  model.LossCause // "": the server never knew of the hold
	AtNs   int64           // of LossShortened when the fault was
	Fault  string          // of LossRemoved and LossShortened: the text of the fault
	Thread string          // of LossForced: the thread that forced the lock open
	By     Sender          // of LossEnded: of the command that ended the hold
	Before []Harm          // of LossExpired: the earlier effects of faults on the hold
}

// Sender names the command that changed a hold and the threads for which the client sent it.
type Sender struct {
	Role    model.Role // "": it has none
	Command string     // its name
	Says    string     // its name and its key, for people; "": the name is enough
	Process string
	Threads []string // for which it was; none: they are unknown, and its role is a guess
}

func senderOf(m *trace.Command) Sender {
	return Sender{m.Script, m.Command, m.Says, m.Process, m.Threads}
}

// Harm is the effect of a fault on a hold that ended with its lease.
type Harm struct {
	Kind  HarmKind
	Fault string // the text of the fault
	AtNs  int64
}

// HarmKind is the kind of a Harm.
type HarmKind string

// The kinds of harm.
const (
	HarmShortened HarmKind = "shortened" // a change of the hold shows it
	HarmUnseen    HarmKind = "unseen"    // it shortened the hold, or may have, but no change shows it
	HarmRemoved   HarmKind = "removed"   // a failover brought the hold back
)

// Misdelete is a detail of misdelete: a command changed a hold of another owner.
type Misdelete struct {
	By     Sender
	SentNs int64
	Change HoldChange
	Levels int    // that the hold has now, of HoldCounted
	Owner  string // of the hold
}

// HoldChange is the effect of a command on a hold.
type HoldChange string

// The changes of a hold.
const (
	HoldEnded     HoldChange = "ended"
	HoldCounted   HoldChange = "counted" // the number of levels changed
	HoldShortened HoldChange = "shortened"
	HoldProlonged HoldChange = "prolonged"
)

// Unplaceable is a detail of linearizable: no order of the calls explains their answers, or the
// search for one met a limit.
type Unplaceable struct {
	Lock   string
	Reason linearizability.Reason
	Closed bool  // nobody held the lock, and nobody could take it
	RanNs  int64 // when the last command of the call ran; 0: none did
}

// Miscount is a detail of hold-count: the server counts another number of levels than the calls of
// the owner.
type Miscount struct {
	After   model.Action // the owner's last call
	Counted int          // by the server
	Levels  int          // by the calls
}

// Overtaken is a detail of fifo: the thread waited when By, which had tried later, got the lock.
type Overtaken struct {
	By        string
	FirstNs   int64 // when the waiter first tried
	EvictedNs int64 // when it last lost its place in the queue; -1: it did not
}

// Endless is a detail of lease: the hold has no time to live.
type Endless struct{}

// LongLease is a detail of lease: the hold got a longer lease than its owner asked for.
type LongLease struct{ Got, Most time.Duration }

// OutlivesOwner is a detail of lease: the hold of a dead owner was prolonged.
type OutlivesOwner struct{ DiedNs int64 }

// Unrenewed is a detail of lease: the hold ended although the lock should have renewed it.
type Unrenewed struct {
	Fault     string // the text of the last fault that met its messages; "": none
	FaultNs   int64
	Shortened bool // the fault shortened the lease and met no message
}

// Unasked is a detail of tidy: a client took the lock long after the last call of its process was over.
type Unasked struct {
	Process, Command string
	SentNs, OverNs   int64
}

// UndoneGrant is a detail of lease: an acquire itself ended the hold with which it returned, or its client did, which was being
// closed.
type UndoneGrant struct {
	GrantNs, EndNs, SentNs int64
	ClosedNs               int64 `json:",omitempty"` // when the close began, before the command was sent; 0: it was not closed
}

// ShortExtension is a detail of lease: an extension left the hold less than another lease.
type ShortExtension struct {
	SentNs, EndNs int64
	Lease         time.Duration
}

// Untold is a detail of lease: an owner was not told that its hold is gone.
type Untold struct {
	BelievedNs int64 // until when it believed
	CalmNs     int64 // since when nothing disturbed the owner
	Bound      time.Duration
}

// ToldLate is a detail of lease: an owner was told of the end of its lease too late, or not at all.
type ToldLate struct {
	BelievedNs int64 // until when it believed
	SentNs     int64 // of the last acquire or renewal whose answer its process had
	LeaseNs    int64 // the end of the lease that counts from there; -1: no answer told of one
	EndedNs    int64 // of the hold on the server
}

// Misled is a detail of lease: an owner was told that its hold is gone although it was not.
type Misled struct {
	HeldNs  int64 // since when the server held it
	LeaseNs int64 // the end of the lease that the owner knows; -1: it knows none
}

// LateRenewal is a detail of lease: a renewal was sent for a hold that was given up.
type LateRenewal struct {
	Call     model.Action // the call after which the thread has no hold; "": it never had one
	Outcome  model.Outcome
	ReturnNs int64 // of the call
}

// Stuck is a detail of liveness: a call that need not wait did not return.
type Stuck struct {
	Call                   model.Action
	CallNs, LeftNs, CalmNs int64 // called; all left; every fault was over
}

// Forgotten is a detail of liveness: a waiter waited for a free lock.
type Forgotten struct {
	FromNs, ToNs int64
	Bound        Bound
	Own          bool // the servers held the lock for the waiter itself
}

// Bound is the longest time that a waiter may wait for a free lock, with its reason. At most one of
// RoundTrip, After and DeadWaiters is set; a bound without them is a second. Waits adds to each.
type Bound struct {
	Ns          int64
	RoundTrip   time.Duration // the bound is eight round trips
	Cost        time.Duration // besides a second, with After
	After       Disturbance
	DeadWaiters bool          // the bound is two waits and a second
	Waits       time.Duration // the time that a waiter needs by the lock's design
}

// Disturbance is an event that may make a waiter wait for the end of a lease.
type Disturbance struct {
	Kind  DisturbanceKind
	Fault string // for DisturbedByFault: the text of the fault
}

// DisturbanceKind is the kind of a disturbance.
type DisturbanceKind string

// The kinds of disturbances.
const (
	DisturbedByFault     DisturbanceKind = "fault"
	DisturbedByCrash     DisturbanceKind = "crash"
	DisturbedInterrupted DisturbanceKind = "interrupted-call"
	DisturbedUnknown     DisturbanceKind = "unknown-outcome"
	DisturbedRelease     DisturbanceKind = "failed-release"
	DisturbedLateRequest DisturbanceKind = "late-request"   // a request came after the end of its call, and made a hold of which nobody knows
	DisturbedClose       DisturbanceKind = "closed-client"  // a client closed while the run went on
	DisturbedRemoval     DisturbanceKind = "removed-hold"   // an operator or an eviction removed a hold, which wakes nobody
	DisturbedClock       DisturbanceKind = "stepped-clock"  // the clock of the server stepped, and the end of a lease with it
	DisturbedFailover    DisturbanceKind = "brought-back"   // a failover brought back a hold of which nobody knows
	DisturbedOutlasting  DisturbanceKind = "outlasting"     // the owner knows that the hold is gone, but the servers do not
	DisturbedLateWakeUp  DisturbanceKind = "late-wake-up"   // a published message came late
	DisturbedLostWakeUp  DisturbanceKind = "lost-wake-up"   // a published message was lost
	DisturbedGivenBack   DisturbanceKind = "grant-given-up" // a grant was given up since it reached no replica
)

// LateReturn is a detail of wait-bound: a timed try returned later than its wait and round trips.
type LateReturn struct {
	CallNs     int64
	Wait, Late time.Duration
	Trips      int
	Trip       time.Duration // the longest round trip
}

// RepeatedToken is a detail of fencing: a new hold has a token that is not greater than all before.
type RepeatedToken struct{ Token, Greatest int64 }

// StaleToken is a detail of fencing: a caller got a token that is not greater than the one that
// Before got earlier.
type StaleToken struct {
	Token       uint64
	Before      string
	BeforeToken uint64
}

// Traffic is a detail of traffic: how many commands a waiter sent in a second, how often it was woken in
// that second, and how many more commands it may send.
type Traffic struct{ Sent, Woken, Most int }

// Leftover is a detail of tidy: a key, a channel, or the thing in Text remained after all had left.
type Leftover struct {
	Key, Channel, Text string
	Goroutine          *model.Goroutine `json:",omitempty"` // the goroutine that Text names, if it names one
}

// Ghost is a detail of tidy: a thread that does not wait stands in the queue.
type Ghost struct {
	Call     model.Action // its last acquiring call; "": it has made none
	Outcome  model.Outcome
	ReturnNs int64
}

// Abandoned is a detail of tidy: a thread that was gone stands in the queue until the end.
type Abandoned struct{ GoneNs int64 }

// TornQueue is a detail of tidy: queue and deadlines have different members.
type TornQueue struct{ Queue, Deadlines []string }

// Unmet is a detail of want: the text of a step's want, reply or read that was not met.
type Unmet struct{ Text string }

// Defect is a detail of the harness: the text says what went wrong, or how the lock panicked.
type Defect struct{ Text string }

// Unended is a detail of the harness: the world ended the run, since it had too many events or took too long. Facts.Thread is the
// thread that waited longest then, and Facts.Lock the lock for which it waited; both are "" if nobody waited.
type Unended struct {
	Events int
	FromNs int64 // when the wait began
	// Owner held the lock, with a lease until UntilNs; "": nobody did.
	Owner   string
	UntilNs int64
}

// WrongResource is a detail of workload: a resource does not keep its own rule.
type WrongResource struct {
	Name string
	Left int64
	// Writer wrote Left, although Taken of Start were taken; "": the resource ended at Left
	// and not at End.
	Writer            string
	Taken, Start, End int64
	WaitsNs           int64     // for FormWaitedToTheEnd: since when the thread waited
	Together          *Together // nil: no two threads worked at the same time
	// Refused is the thread that the resource refused at RefusedNs, since its token was smaller than
	// an earlier one, although it was the token of a new hold; "": the resource refused no such thread.
	Refused   string
	RefusedNs int64
}

// Together is the work of two threads on one resource at the same time.
type Together struct {
	Earlier, Later        string
	FromNs, ToNs, LaterNs int64   // FromNs to ToNs: when Earlier worked; LaterNs: since when Later worked
	Ending                *Ending // of the hold of one of them; nil: they did not both believe in a hold
	Overstayed            string  // the thread whose lease had ended; "": they held no lock in common
}
