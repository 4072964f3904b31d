// Package strangers builds distributed locks of many plumbings, as strangers to Lockstep write them.
//
// Right returns plumbings of which a written argument says that their locks keep every promise. A judge
// that accuses one of these locks is wrong. A [Mutation] changes such a lock so that it breaks a promise.
package strangers

import (
	"strconv"
	"strings"
)

// Value says which value a hold has on the server.
type Value string

const (
	// Fresh is a random value per call of Lock or TryLock. No request of another call has it, so that a
	// request that arrives late changes no other hold.
	Fresh Value = "fresh"
	// Handle is a value per handle, which a handle draws anew once a request with it may still arrive:
	// after a call with an unknown outcome, and after a hold that ended otherwise than by an unlock.
	Handle Value = "handle"
	// Process is a value per process and lock, which the threads of the process share. A channel of the
	// process lets one of its threads hold the lock or ask for it at a time. The value is drawn anew
	// as that of Handle, so that a late unlock of one thread does not end the hold of another.
	Process Value = "process"
)

// Renewal says who renews a hold. Each renewal compares the value and sets the lease in one script. Its
// lease counts from the instant before it is sent. One that fails is repeated soon. The server's word that
// the value is gone ends the renewals.
type Renewal string

const (
	// Never renews nothing: a hold lasts for its lease.
	Never Renewal = "never"
	// Goroutine is a goroutine per hold.
	Goroutine Renewal = "goroutine"
	// Timer is a time.AfterFunc per hold, which starts the next one.
	Timer Renewal = "timer"
	// Ticker is a goroutine per process, which renews one hold after another.
	Ticker Renewal = "ticker"
	// Pipeline is a goroutine per process, which renews all holds in one pipeline.
	Pipeline Renewal = "pipeline"
	// Hook is a hook of the client, which starts a goroutine when it sees that an acquire was granted.
	Hook Renewal = "hook"
)

// Stop says how an unlock stops the renewals of its hold.
type Stop string

const (
	// Waits stops the renewals, waits for one that is under way, and releases then.
	Waits Stop = "waits"
	// Leaves stops the renewals, cancels one that is under way, and releases at once. A renewal that
	// was sent compares the value, which no later hold has unless it is the same handle's; that one is
	// only prolonged.
	Leaves Stop = "leaves"
	// After releases first, and then stops the renewals and waits for one that is under way. A renewal
	// that runs after the release finds no value and changes nothing.
	After Stop = "after"
)

// Release says how an unlock deletes the key only if it has the value of the hold.
type Release string

const (
	// Script compares and deletes in a script.
	Script Release = "script"
	// Watch compares after WATCH, and deletes in MULTI and EXEC. EXEC does nothing if the key changed
	// meanwhile, such as by a renewal of the hold. Then the unlock compares again.
	Watch Release = "watch"
	// Member is HDEL: the key is a hash whose one field is the value. HDEL says whether it deleted it.
	Member Release = "member"
)

// Wake says how a waiter learns that the lock is free.
type Wake string

const (
	// Poll asks again after a pause.
	Poll Wake = "poll"
	// Publish subscribes after a refusal, asks again once the subscription is confirmed, and then asks again
	// after each message, and after a second without one. The release publishes after its delete, in one step.
	Publish Wake = "publish"
	// List asks for an element of a list, to which the release appends one, and asks for the lock if it got it,
	// and in any case after a second. Elements are not needed, so that none of them may be lost.
	List Wake = "list"
	// HandOver is a queue of the waiters' values. The release writes the value of the first one into the key.
	// Whoever finds the lock free while others wait writes the value of the first waiter, too, so that
	// a waiter that is gone keeps the others for a lease. A waiter asks whether the key has its value. A
	// waiter that gives up leaves the queue, and hands the lock on if it got it meanwhile.
	HandOver Wake = "hand-over"
	// Head is a list of tickets. The first ticket has the lock, and each one who leaves removes the own ticket. A
	// hold has no lease.
	Head Wake = "head"
)

// Retry says who sends a request again that got no answer.
type Retry string

const (
	// Once sends each request once. A call whose request fails has an unknown outcome.
	Once Retry = "once"
	// ByClient lets go-redis send a request again (MaxRetries). An acquire grants a value that has the lock already,
	// so that a grant whose reply was lost is granted again. A refusal may follow a request that arrives late, and the
	// unlock of a value that is gone may follow its own first request, so that both have an unknown outcome.
	ByClient Retry = "by-client"
	// ByLock lets the lock ask again after an error, with the same value. As with ByClient a refusal or the unlock of a value
	// that is gone has an unknown outcome, but only if a request of the call failed before.
	ByLock Retry = "by-lock"
)

// Taking says how the requests of an acquire are sent.
type Taking string

const (
	// Direct sends them in the goroutine of the caller.
	Direct Taking = "direct"
	// Dispatched sends each command of the client in a goroutine of its own, which one goroutine of the process starts. The
	// caller waits for the reply, so that nothing else changes.
	Dispatched Taking = "dispatched"
	// InTwoLeases takes the lock with a short lease, and sets the whole one by the script of a renewal. The acquire is granted
	// when both have run. If the second one fails, the short lease ends what the first one took.
	InTwoLeases Taking = "in-two-leases"
	// CleansUp releases the value of an acquire that failed, in a goroutine that goes on when the call is over. No later hold
	// has the value.
	CleansUp Taking = "cleans-up"
)

// Levels says what a Lock of the holder does.
type Levels string

const (
	// Flat refuses it, as that of another thread.
	Flat Levels = "flat"
	// Counted grants another level. The requests carry the number of levels, which the handle knows, and the server
	// stores it, so that a request that runs twice counts once.
	Counted Levels = "counted"
	// Idempotent grants it, and changes nothing but the end of the lease. One unlock ends the hold.
	Idempotent Levels = "idempotent"
)

// Plumbing says how a lock is built.
type Plumbing struct {
	Value   Value
	Renewal Renewal
	Stop    Stop // "" without a Renewal
	Release Release
	Wake    Wake
	Retry   Retry
	Taking  Taking
	Levels  Levels
	// Servers is 1, or 3, of which a hold needs the majority. A request goes to all servers at once. An acquire that
	// gets no majority deletes its value everywhere. The hold is valid for the lease, less the time that the acquire or the
	// renewal took and a margin for the drift of clocks.
	Servers int
	// Lost says that the handle has a channel that tells of the end of the hold: when the server says so, and when the
	// lease that the handle knows ends.
	Lost bool
	// Fenced says that the script that takes the lock counts, and that the count is the token of the hold.
	Fenced bool
	// Extends says that the holder can set the lease anew, by the script of a renewal.
	Extends bool
}

// String names the plumbing.
func (p Plumbing) String() string {
	words := []string{string(p.Value), string(p.Renewal)}
	for _, word := range []string{string(p.Stop), string(p.Release), string(p.Wake), string(p.Retry), string(p.Taking), string(p.Levels)} {
		switch word {
		case "", string(Script), string(Poll), string(Once), string(Direct), string(Flat): // the usual ones
		default:
			words = append(words, word)
		}
	}
	if p.Servers > 1 {
		words = append(words, strconv.Itoa(p.Servers))
	}
	if p.Lost {
		words = append(words, "lost")
	}
	if p.Fenced {
		words = append(words, "fenced")
	}
	if p.Extends {
		words = append(words, "extends")
	}
	return strings.Join(words, "+")
}
