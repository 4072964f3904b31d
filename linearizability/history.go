package linearizability

import (
	"lockstep/model"
)

// An Op is one line of a history: a call of a thread with its answer, or what
// the environment did. Times are nanoseconds on one clock. The JSON names are a
// file format that other programs write.
type Op struct {
	Process string `json:"process,omitempty"`
	Thread  int    `json:"thread,omitempty"`
	Lock    string `json:"lock,omitempty"`
	Op      string `json:"op"`
	CallNs  int64  `json:"call_ns"`
	// ReturnNs is absent exactly when the outcome is unknown.
	ReturnNs *int64 `json:"return_ns,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	// LeaseMs is the lease that the operation starts if it takes effect; absent:
	// no expiry for an acquire, the running lease goes on for a release.
	LeaseMs *int64 `json:"lease_ms,omitempty"`
	// Watchdog says that the lease is kept up until the process's crash.
	Watchdog bool `json:"watchdog,omitempty"`
	// Token is the fencing token of a granted acquire.
	Token *int64 `json:"token,omitempty"`
	// ArrivedNs is when the first try of an acquire reached the server. Absent:
	// its place in the queue is not known and not judged.
	ArrivedNs *int64 `json:"arrived_ns,omitempty"`
	// Count is the answer of hold_count.
	Count *int64 `json:"count,omitempty"`

	// Line is the line of the file, from 1; 0 when there is none.
	Line int `json:"-"`

	// The following fields come from the record of a simulated run. No file has them.

	// ExpireNs is the exact instant at which the lease that this operation
	// started ended, or would have, had it not been replaced or given back. Not
	// before CallNs.
	ExpireNs *int64 `json:"-"`
	// NeverExpires says that the lease that this operation started never ran
	// out: the history ended before.
	NeverExpires bool `json:"-"`
	// Evicted says that the server took this acquire out of its queue while it
	// still waited, so that nobody has to wait for it any more. In a file the
	// same is said by leaving arrived_ns out.
	Evicted bool `json:"-"`
}

// The operations.
const (
	OpAcquire      = "acquire"
	OpRelease      = "release"
	OpRenew        = "renew"
	OpForceRelease = "force_release"
	OpIsLocked     = "is_locked"
	OpHoldCount    = "hold_count"
	OpLost         = "lost"
	OpCrash        = "crash"
)

// opNames are the operations in the order of the documentation.
var opNames = []string{
	OpAcquire, OpRelease, OpRenew, OpForceRelease, OpIsLocked, OpHoldCount, OpLost, OpCrash,
}

// outcomes are the outcomes that each operation can have. The environment has
// none.
var outcomes = map[string][]string{
	OpAcquire:      {model.AnswerGranted, model.AnswerBusy, model.AnswerFailed, model.AnswerUnknown},
	OpRelease:      {model.AnswerReleased, model.AnswerStillHeld, model.AnswerNotHeld, model.AnswerFailed, model.AnswerUnknown},
	OpRenew:        {model.AnswerRenewed, model.AnswerNotHeld, model.AnswerFailed, model.AnswerUnknown},
	OpForceRelease: {model.AnswerReleased, model.AnswerNotHeld, model.AnswerFailed, model.AnswerUnknown},
	OpIsLocked:     {model.AnswerTrue, model.AnswerFalse},
	OpHoldCount:    {model.AnswerOK},
}

// environment says that nobody called the operation.
func (o *Op) environment() bool { return o.Op == OpLost || o.Op == OpCrash }

// owner names who calls, as process/thread.
func (o *Op) owner() string { return model.ThreadName(o.Process, o.Thread) }

// open says that the operation may take effect at any time after its call, or
// never.
func (o *Op) open() bool { return o.ReturnNs == nil || o.Outcome == model.AnswerUnknown }

// ret returns the return, forever for an operation that may still take effect.
func (o *Op) ret() int64 {
	if o.open() {
		return forever
	}
	return *o.ReturnNs
}

// startsLease says that the running lease is this operation's own once it took
// effect, or that it ended expiry.
func (o *Op) startsLease() bool {
	switch o.Op {
	case OpAcquire:
		return o.Outcome == model.AnswerGranted || o.Outcome == model.AnswerUnknown
	case OpRenew:
		return o.Outcome == model.AnswerRenewed || o.Outcome == model.AnswerUnknown
	case OpRelease:
		return o.LeaseMs != nil && (o.Outcome == model.AnswerStillHeld || o.Outcome == model.AnswerUnknown)
	}
	return false
}

// replaces says that once the operation took effect another lease runs than
// before, or none.
func (o *Op) replaces() bool {
	switch o.Op {
	case OpAcquire:
		return o.Outcome == model.AnswerGranted
	case OpRelease:
		return o.Outcome == model.AnswerReleased
	case OpRenew:
		return o.Outcome == model.AnswerRenewed
	case OpForceRelease:
		return o.Outcome == model.AnswerReleased || o.Outcome == model.AnswerNotHeld
	case OpIsLocked:
		return o.Outcome == model.AnswerFalse
	}
	return o.Op == OpLost
}

// arrival is from when on an acquire waits. One without a known arrival waits from
// the call on: the sooner it waits the more answers are right, and nobody has to
// wait for it.
func (o *Op) arrival() int64 {
	if o.ArrivedNs != nil {
		return *o.ArrivedNs
	}
	return o.CallNs
}

// arrive is the step with which an acquire, which has that id, begins to wait.
func (o *Op) arrive(id int) model.Input {
	in := model.Input{Do: model.DoArrive, Of: id, Owner: o.owner()}
	if o.ArrivedNs != nil {
		in.ArrivedNs, in.HasArrival = *o.ArrivedNs, true
		// An unknown acquire may have left the queue long ago, a failed one may
		// never have been in it.
		in.Ordered = !o.open() && o.Outcome != model.AnswerFailed && !o.Evicted
	}
	return in
}
