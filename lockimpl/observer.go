package lockimpl

import (
	"context"
	"errors"
	"time"
)

// An Observer receives the outcomes of the calls and the holds of a client, so that a program can
// count and time them. Package otellock has one for OpenTelemetry. Many goroutines call its methods,
// from within the calls and renewals of the client, so the methods must return soon. The client holds
// no mutex meanwhile.
type Observer interface {
	// AcquireEnded reports a call that asked for a lock, by an owner or by a handle. Calls with
	// invalid arguments are not reported. ctx is the context of the call.
	AcquireEnded(ctx context.Context, e AcquireEnded)
	// RenewalEnded reports an attempt to renew a hold. An attempt that was under way when its hold
	// was given up is not reported.
	RenewalEnded(e RenewalEnded)
	// HoldEnded reports the end of a hold when its holder learns of it, once per hold.
	HoldEnded(e HoldEnded)
}

// AcquireEnded is a call that asked for a lock.
type AcquireEnded struct {
	Lock    string // its name
	Outcome AcquireOutcome
	Took    time.Duration // from the call to its return
	// Waited is the part of Took after the first answer that another owner holds the lock or is in front. It
	// is 0 if there was no such answer, or if the call makes a single attempt.
	Waited time.Duration
}

// AcquireOutcome is the outcome of a call that asked for a lock.
type AcquireOutcome string

// The outcomes of a call that asked for a lock.
const (
	AcquireGranted  AcquireOutcome = "granted"
	AcquireBusy     AcquireOutcome = "busy"     // others had the lock for as long as the call tried
	AcquireCanceled AcquireOutcome = "canceled" // its context ended first; nothing is left behind
	AcquireFailed   AcquireOutcome = "failed"   // an error, and nothing is left behind
	AcquireUnknown  AcquireOutcome = "unknown"  // an error, and the server may hold the lock for nobody
)

// RenewalEnded is an attempt to renew a hold.
type RenewalEnded struct {
	Lock    string
	Outcome RenewalOutcome
}

// RenewalOutcome is the outcome of an attempt to renew a hold.
type RenewalOutcome string

// The outcomes of a renewal.
const (
	RenewalRenewed RenewalOutcome = "renewed"
	RenewalFailed  RenewalOutcome = "failed" // no answer, or an error; it is tried again
	RenewalGone    RenewalOutcome = "gone"   // the server no longer has the hold
)

// HoldEnded is a hold that ended for its holder.
type HoldEnded struct {
	Lock    string
	Outcome HoldOutcome
	Held    time.Duration // from the answer that granted it to its end
}

// HoldOutcome is how a hold ended.
type HoldOutcome string

// The ends of a hold.
const (
	HoldReleased HoldOutcome = "released" // given up by its holder, with any outcome
	HoldLost     HoldOutcome = "lost"     // it may have ended on the server
	HoldClosed   HoldOutcome = "closed"   // its client was closed
)

// OutcomeOf returns the outcome of a call for a lock that returned err, and whether the lock was granted.
func OutcomeOf(ctx context.Context, granted bool, err error) AcquireOutcome {
	switch {
	case granted:
		return AcquireGranted
	case err == nil:
		return AcquireBusy
	case errors.Is(err, ErrUnknownOutcome):
		return AcquireUnknown
	case ctx.Err() != nil:
		return AcquireCanceled
	}
	return AcquireFailed
}

// EndOf returns the outcome of a hold whose context ended with cause.
func EndOf(cause error) HoldOutcome {
	switch {
	case errors.Is(cause, ErrHoldLost):
		return HoldLost
	case errors.Is(cause, ErrClosed):
		return HoldClosed
	}
	return HoldReleased
}

// Unobserved returns o, or an observer that does nothing if o is nil.
func Unobserved(o Observer) Observer {
	if o == nil {
		return nobody{}
	}
	return o
}

// nobody observes nothing.
type nobody struct{}

func (nobody) AcquireEnded(context.Context, AcquireEnded) {}
func (nobody) RenewalEnded(RenewalEnded)                  {}
func (nobody) HoldEnded(HoldEnded)                        {}
