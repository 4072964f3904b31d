package linearizability

import (
	"lockstep/model"
)

// An Op is one line of a history: a call of a thread with its answer, or an event of the
// environment. Times are nanoseconds on one clock. The JSON names are a file format that other
// programs write.
type Op struct {
	Process string `json:"process,omitempty"`
	Thread  int    `json:"thread,omitempty"`
	Lock    string `json:"lock,omitempty"`
	Op      string `json:"op"`
	CallNs  int64  `json:"call_ns"`
	// ReturnNs is absent exactly when the outcome is unknown.
	ReturnNs *int64 `json:"return_ns,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	// LeaseMs is the lease that the operation starts if it takes effect; absent: no expiry after an
	// acquire; after a release the current lease continues.
	LeaseMs *int64 `json:"lease_ms,omitempty"`
	// Watchdog reports that the lease is renewed until the process crashes.
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

	// ExpireNs is the exact instant at which the lease that this operation started ended, or would
	// have ended if it had not been replaced or given back. It is not before CallNs.
	ExpireNs *int64 `json:"-"`
	// NeverExpires reports that the lease that this operation started never ran out: the history
	// ended before.
	NeverExpires bool `json:"-"`
	// Evicted reports that the server removed this acquire from its queue while it still waited, so
	// no other has to wait for it. In a file a missing arrived_ns means the same.
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

// environment reports whether the operation has no caller.
func (o *Op) environment() bool { return o.Op == OpLost || o.Op == OpCrash }

// owner returns the caller as process/thread.
func (o *Op) owner() string { return model.ThreadName(o.Process, o.Thread) }

// open reports whether the operation may take effect at any time after its call, or never.
func (o *Op) open() bool { return o.ReturnNs == nil || o.Outcome == model.AnswerUnknown }

// ret returns the return, forever for an operation that may still take effect.
func (o *Op) ret() int64 {
	if o.open() {
		return forever
	}
	return *o.ReturnNs
}

// startsLease reports whether, after the operation, its own lease is current, or the hold no longer
// expires.
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

// replaces reports whether another lease, or none, is current after the operation.
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

// arrival returns the instant from which on an acquire waits. An acquire without a known arrival
// waits from its call on: the earlier it waits, the more answers are right, and no other has to
// wait for it.
func (o *Op) arrival() int64 {
	if o.ArrivedNs != nil {
		return *o.ArrivedNs
	}
	return o.CallNs
}

// arrive returns the step with which the acquire with an id begins to wait.
func (o *Op) arrive(id int) model.Input {
	in := model.Input{Do: model.DoArrive, Of: id, Owner: o.owner()}
	if o.ArrivedNs != nil {
		in.ArrivedNs, in.HasArrival = *o.ArrivedNs, true
		// An acquire of unknown outcome may have left the queue long ago, and a failed one may
		// never have been in it.
		in.Ordered = !o.open() && o.Outcome != model.AnswerFailed && !o.Evicted
	}
	return in
}
