package model

import "time"

// Traits say what kind of lock a subject is. Judges use the promises that they imply, see
// [Traits.Implies].
type Traits struct {
	Fair         bool // waiters are served in the order of their first tries
	Deadlines    bool // the server keeps a deadline of every waiter in its queue
	Fenced       bool // every hold has a token, greater than all before
	Uncounted    bool // re-entry is not counted, or not possible
	NonReentrant bool // an owner that enters again gets an error
	// Idempotent reports whether a thread that holds the lock and asks for it again is granted at once,
	// and one unlock still ends its hold.
	Idempotent bool
	// PerGrant reports whether a thread knows a hold only by the value that its grant
	// returned. A thread that got no answer to an acquire does not know the hold that the
	// acquire may have left.
	PerGrant bool
	// Watched reports whether a thread is told when its hold is gone. From then on it no longer
	// believes in the hold.
	Watched bool
	// Endless reports whether a hold has no lease. Only an unlock or the end of its session ends
	// it, if anything does. Nothing renews it, see NoWatchdog.
	Endless bool
	// Parts is the number of parts of a hold. A part is a key, or a server that does not know the
	// others. The owner needs the majority of them. 0 counts as 1.
	Parts      int
	Extends    bool // a holder may renew its lease by a call
	NoWatchdog bool // nothing renews a hold: one without a lease gets Watchdog as its lease
}

// Timing has the times of a lock and of its client.
type Timing struct {
	// Watchdog is the lease of a hold for which the caller named none, until it is renewed.
	Watchdog time.Duration
	// RenewalPeriod is the time between two renewals of a hold; 0 when nothing
	// renews it.
	RenewalPeriod time.Duration
	// FairWait is the longest time for which a waiter of a fair lock keeps its place without asking
	// again.
	FairWait time.Duration
	// ResponseTimeout is how long a client waits for an answer.
	ResponseTimeout time.Duration
	// Resend is how long a client may need to notice that its command was lost, and
	// to send it again or to give up.
	Resend time.Duration
	// GiveUp is longer than any client takes to give a command up, with all its
	// resends.
	GiveUp time.Duration
	// Recovery is the time for which servers that fail over by themselves may serve nobody after a
	// fault that interrupts them; 0: they serve again when the fault is over.
	Recovery time.Duration
	// Reconnect is the time for which a client may wait before it connects again, after the end of
	// a fault that met its connections; 0: no longer than Resend.
	Reconnect time.Duration
	// Tick is the time between two instants at which the servers end holds; 0: they end them at any. A hold may
	// last for less than its lease by up to a tick.
	Tick time.Duration
	// Waits is the longest time that a waiter needs by the lock's design to get a lock that is free,
	// besides the messages that it sends; 0: none.
	Waits time.Duration
	// Memory is how long the server remembers a call that is over; 0: not at all.
	Memory time.Duration
}
