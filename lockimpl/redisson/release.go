package redisson

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Release is one coherent snapshot of the library: its scripts, its watchdog, and the rules of its
// queue and of its executor. Releases differ only in this table. Code that releases share is
// written once. G, W and F count the generations of the plain lock's scripts, of the watchdog and
// of the fair lock in the library's history.
type Release struct {
	Version string

	// Plain lock.
	Acquire     Script
	Unlock      Script
	ForceUnlock Script
	Renew       Script

	// Fair lock; renewals are the plain lock's.
	FairAcquire     Script
	FairTryAcquire  Script
	FairLeave       Script
	FairUnlock      Script
	FairForceUnlock Script
	// FairWait is how long a waiter holds its place (threadWaitTime, since
	// 3.46.0 fairLockWaitTimeout).
	FairWait time.Duration
	// FairOwnWait: a tryLock with a wait enters and leaves the queue with that wait in place of
	// FairWait (F5 on).
	FairOwnWait bool

	// Other locks; nil if the port has none for the release.
	Fenced       *Fenced
	NonReentrant *NonReentrant

	// Watchdog and lease field.
	Watchdog   Watchdog
	LeaseField LeaseField
	// OnlyMinusOne: of the negative leases only -1 ms means no lease; any other is sent (before
	// 3.17.1).
	OnlyMinusOne bool
	// StopsRenewal names the answers to an unlock that take one level from the
	// watchdog.
	StopsRenewal []UnlockAnswer

	// Client.
	//
	// PatientReply: a call that waits for a reply does not notice an interrupt.
	PatientReply bool
	// LockReturnsInterrupted: lock() comes back from an interrupted wait as if
	// it had the lock (issue 1593).
	LockReturnsInterrupted bool
	// LateSubscription says what happens to a subscription that the server does not acknowledge within the
	// response timeout.
	LateSubscription LateSubscription
	// FalseOnTimeout: a response timeout inside tryLock's loop becomes false
	// instead of an error (issue 5019).
	FalseOnTimeout bool

	// Executor.
	Resend        []ScriptKind // sent again after a lost reply
	ResendDelay   Delay        // after the response timeout
	RetryAttempts int          // the most further attempts, for either reason
	RetryDelay    Delay        // before a command that was not written is sent again
	Refusals      []string     // error replies after which a command is sent again
	RefusalDelay  Delay        // before it is sent again
	// LoadingForever: after the reply LOADING a command is sent again at once, and without end.
	LoadingForever bool
	ScriptCache    bool // EVALSHA first, and SCRIPT LOAD on NOSCRIPT
	// Sync says how the release waits for replicas.
	Sync Sync
	// RequestKept: an unlock that reached no replica is tried again with the same request id, so
	// that its latch answers (3.52.0 on).
	RequestKept bool
}

// LateSubscription says what happens to a subscription that the server has not acknowledged within the
// response timeout.
type LateSubscription int

const (
	// SubscriptionKept: its waiters use it whenever it is acknowledged.
	SubscriptionKept LateSubscription = iota
	// SubscriptionShared: the same, but all waiters fail when the time of the lock() that began the
	// subscription is over.
	SubscriptionShared
	// SubscriptionLeft: the client leaves the channel. The waiters do not hear of
	// it, and wait on until their time is over.
	SubscriptionLeft
	// SubscriptionFails: the waiters fail at once.
	SubscriptionFails
	// SubscriptionFailsLate: when the late acknowledgement comes, the client leaves the channel.
	// The waiters fail when it has left, or when the time of the call that began the subscription
	// is over.
	SubscriptionFailsLate
)

// Fenced is the lock whose holds are numbered.
type Fenced struct {
	Acquire      Script // lock, tryLock: draw a token and do not return it
	AcquireToken Script // lockAndGetToken, tryLockAndGetToken
}

// NonReentrant is the pair of locks that refuse their own holder.
type NonReentrant struct {
	Acquire        Script
	FairAcquire    Script
	FairTryAcquire Script
}

// ResponseTimeout is how long every release waits for a reply.
const ResponseTimeout = 3 * time.Second

// SubscriptionTimeout is how long lock() waits for the server's subscribe
// acknowledgement at most, with the default settings.
const SubscriptionTimeout = 7500 * time.Millisecond

// DefaultWatchdog is lockWatchdogTimeout: the lease of a hold for which the caller named none. The
// hold is renewed after each third of it.
const DefaultWatchdog = 30 * time.Second

// Watchdog names a generation of the renewal code.
type Watchdog int

const (
	// WatchdogTimer is W2: one timer per lock name, for the thread that set it. Every outcome of a renewal
	// but a reply of 1 forgets the timer; so does an error.
	WatchdogTimer Watchdog = iota + 1
	// WatchdogEntry is W6: one entry per lock name, with a count for each thread. A timer renews
	// the first thread. An error, or a reply of 0, ends the timer and leaves the entry, so that no
	// later hold starts another (issues 3194, 3712).
	WatchdogEntry
	// WatchdogEntryDropped is W8 up to 3.36.0: like WatchdogEntry, but an error or a reply of 0
	// drops the entry (issue 5698: even if its owner still holds). A reply of 0 also resets the
	// lease field of the lock object to the watchdog timeout.
	WatchdogEntryDropped
	// WatchdogEntryQueue is W8 as of 3.37.0: the entry keeps a queue of threads
	// that gets an element at every entry and loses one only when that thread's
	// count reaches 0.
	WatchdogEntryQueue
	// WatchdogTask is W9: one timer per client, which renews all its locks in batches. An error is
	// logged, and the next tick still comes.
	WatchdogTask
)

// watchdogBatch is lockWatchdogBatchSize.
const watchdogBatch = 100

// LeaseField says when a release writes internalLockLeaseTime, the lease that a lock object keeps.
// Attempts without a lease and all unlocks send it.
type LeaseField int

const (
	// FieldOfAttempt: every attempt, even a failed one, writes its lease there, or the watchdog
	// timeout if it has no lease. Renewals take lease and period from it.
	FieldOfAttempt LeaseField = iota + 1
	// FieldUntilUnlock: a grant with a lease writes it there; every answer to an unlock, every
	// forceUnlock, and a renewal of a W8 watchdog that finds no hold reset it to the watchdog
	// timeout (issue 5623).
	FieldUntilUnlock
	// FieldUntilRelease: the same, but an answer of 0 resets nothing.
	FieldUntilRelease
)

// UnlockAnswer is the reply to an unlock.
type UnlockAnswer string

// The answers.
const (
	AnswerReleased  UnlockAnswer = "1"
	AnswerStillHeld UnlockAnswer = "0"
	AnswerNotHeld   UnlockAnswer = "nil"
	AnswerError     UnlockAnswer = "error"
)

var anyAnswer = []UnlockAnswer{AnswerReleased, AnswerStillHeld, AnswerNotHeld, AnswerError}

// Sync is how a release waits for replicas.
type Sync int

const (
	// SyncNone: no WAIT is sent (up to 3.12.4).
	SyncNone Sync = iota + 1
	// SyncAsked: before each script the client asks INFO for the number of replicas, and WAIT
	// follows the script. If there are replicas and WAIT answers 0, an acquire unlocks, and acquire
	// and unlock are tried again (seen in 3.21.3).
	SyncAsked
	// SyncThrown: INFO is asked once. If WAIT answers 0, the caller gets an error at once: nothing
	// is given back or tried again (seen in 3.43.0).
	SyncThrown
	// SyncCached: like SyncAsked, but INFO is asked only once, and again after WAIT answered 0
	// (seen in 4.7.0).
	SyncCached
)

// Delay is a wait before a resend. It is Fixed, or, if Min is set, drawn from [d/2, d), where d is
// Min doubled at each attempt, up to Max (EqualJitter).
type Delay struct {
	Fixed    time.Duration
	Min, Max time.Duration
}

var (
	atOnce      = Delay{}
	fixedRetry  = Delay{Fixed: 1500 * time.Millisecond}
	jitterRetry = Delay{Min: time.Second, Max: 2 * time.Second}
)

// The refusals. Each list adds those of a release to the list before.
var (
	refusals    = []string{"MOVED", "ASK", "LOADING", "TRYAGAIN"}
	refusals313 = append([]string{"CLUSTERDOWN", "BUSY"}, refusals...)
	refusals322 = append([]string{"READONLY"}, refusals313...)
	aSecond     = Delay{Fixed: time.Second}
)

var (
	nothing     = []ScriptKind{}
	everything  = []ScriptKind{KindAcquire, KindUnlock, KindRenew, KindForceUnlock, KindLeave, kindRead}
	unguarded   = []ScriptKind{KindRenew, KindForceUnlock, kindRead}
	unguardedF9 = append([]ScriptKind{KindLeave}, unguarded...)
)

// fencedScripts are the fenced lock's since 3.19.0.
var fencedScripts = &Fenced{
	Acquire:      script(KindAcquire, "acquire_fenced"),
	AcquireToken: script(KindAcquire, "acquire_token"),
}

// Releases is the table, oldest first.
var Releases = []*Release{
	{
		Version:     "3.4.2",
		Acquire:     script(KindAcquire, "acquire_hset", reenter), // G4
		Unlock:      script(KindUnlock, "unlock_lenient"),         // G4
		ForceUnlock: script(KindForceUnlock, "force_unlock"),
		Renew:       script(KindRenew, "renew_owner"), // 3.1.0

		FairAcquire:     script(KindAcquire, "fair_acquire_first", purgeStrict, take, reenter), // F1
		FairTryAcquire:  script(KindAcquire, "fair_try_acquire", purgeStrict, take, reenter),   // F1
		FairLeave:       script(KindLeave, "fair_leave"),                                       // F2
		FairUnlock:      script(KindUnlock, "fair_unlock", purgeStrict),
		FairForceUnlock: script(KindForceUnlock, "fair_force_unlock", purgeStrict),
		FairWait:        5 * time.Second,

		Watchdog:     WatchdogTimer, // W2
		LeaseField:   FieldOfAttempt,
		OnlyMinusOne: true,
		StopsRenewal: []UnlockAnswer{AnswerReleased}, // issue 1602

		PatientReply:           true,
		LockReturnsInterrupted: true, // up to 3.10.5

		Resend:         nothing,
		RetryAttempts:  3,
		RetryDelay:     fixedRetry,
		Refusals:       refusals,
		RefusalDelay:   aSecond,
		LoadingForever: true,
		Sync:           SyncNone,
	},
	{
		Version:     "3.11.0",
		Acquire:     script(KindAcquire, "acquire_hset", reenter),
		Unlock:      script(KindUnlock, "unlock_owner"), // G5
		ForceUnlock: script(KindForceUnlock, "force_unlock"),
		Renew:       script(KindRenew, "renew_owner"),

		FairAcquire:     script(KindAcquire, "fair_acquire_first", purgeStrict, take, reenter),
		FairTryAcquire:  script(KindAcquire, "fair_try_acquire", purgeStrict, take, reenter),
		FairLeave:       script(KindLeave, "fair_leave_head"), // F3
		FairUnlock:      script(KindUnlock, "fair_unlock", purgeStrict),
		FairForceUnlock: script(KindForceUnlock, "fair_force_unlock", purgeStrict),
		FairWait:        5 * time.Second,

		Watchdog:     WatchdogEntry, // W6
		LeaseField:   FieldOfAttempt,
		OnlyMinusOne: true,
		StopsRenewal: []UnlockAnswer{AnswerReleased, AnswerStillHeld, AnswerError},

		LateSubscription: SubscriptionLeft,

		Resend:        everything,
		ResendDelay:   atOnce,
		RetryAttempts: 3,
		RetryDelay:    fixedRetry,
		Refusals:      refusals,
		RefusalDelay:  aSecond,
		Sync:          SyncNone,
	},
	{
		Version:     "3.12.4",
		Acquire:     script(KindAcquire, "acquire_hincrby", reenter), // G6
		Unlock:      script(KindUnlock, "unlock_owner"),
		ForceUnlock: script(KindForceUnlock, "force_unlock"),
		Renew:       script(KindRenew, "renew_owner"),

		FairAcquire:     script(KindAcquire, "fair_acquire_deadline", purgeStrict, takeChained, reenter), // F4
		FairTryAcquire:  script(KindAcquire, "fair_try_acquire_wait", purgeStrict, takeChained, reenter), // F4
		FairLeave:       script(KindLeave, "fair_leave_behind"),                                          // F4
		FairUnlock:      script(KindUnlock, "fair_unlock", purgeStrict),
		FairForceUnlock: script(KindForceUnlock, "fair_force_unlock", purgeStrict),
		FairWait:        5 * time.Second,

		Watchdog:     WatchdogEntry,
		LeaseField:   FieldOfAttempt,
		OnlyMinusOne: true,
		StopsRenewal: anyAnswer, // 3.12.1 (issue 2515)

		LateSubscription: SubscriptionShared,

		Resend:        everything,
		ResendDelay:   atOnce,
		RetryAttempts: 3,
		RetryDelay:    fixedRetry,
		Refusals:      refusals,
		RefusalDelay:  aSecond,
		Sync:          SyncNone,
	},
	{
		Version:     "3.21.3",
		Acquire:     script(KindAcquire, "acquire_merged"), // G8
		Unlock:      script(KindUnlock, "unlock_owner"),
		ForceUnlock: script(KindForceUnlock, "force_unlock"),
		Renew:       script(KindRenew, "renew_owner"),

		FairAcquire:     script(KindAcquire, "fair_acquire_deadline", purgeStrict, takeChained, reenter),
		FairTryAcquire:  script(KindAcquire, "fair_try_acquire_wait", purgeStrict, takeChained, reenter),
		FairLeave:       script(KindLeave, "fair_leave_behind"),
		FairUnlock:      script(KindUnlock, "fair_unlock", purgeStrict),
		FairForceUnlock: script(KindForceUnlock, "fair_force_unlock", purgeStrict),
		FairWait:        300 * time.Second, // F5
		FairOwnWait:     true,              // F5

		Fenced: fencedScripts,

		Watchdog:     WatchdogEntryDropped, // W8
		LeaseField:   FieldUntilUnlock,
		StopsRenewal: anyAnswer,

		LateSubscription: SubscriptionFails,

		Resend:        everything,
		ResendDelay:   fixedRetry,
		RetryAttempts: 3,
		RetryDelay:    fixedRetry,
		Refusals:      refusals313,
		RefusalDelay:  fixedRetry,
		Sync:          SyncAsked,
	},
	{
		Version:     "3.43.0",
		Acquire:     script(KindAcquire, "acquire_merged"),
		Unlock:      script(KindUnlock, "unlock_latch"),              // G10
		ForceUnlock: script(KindForceUnlock, "force_unlock_command"), // G9
		Renew:       script(KindRenew, "renew_owner"),

		FairAcquire:     script(KindAcquire, "fair_acquire_lock_ttl", purgeTolerant, takeChained, reenter), // F7
		FairTryAcquire:  script(KindAcquire, "fair_try_acquire_wait", purgeTolerant, takeChained, reenter), // F6
		FairLeave:       script(KindLeave, "fair_leave_behind"),
		FairUnlock:      script(KindUnlock, "fair_unlock_latch", purgeTolerant),
		FairForceUnlock: script(KindForceUnlock, "fair_force_unlock_command", purgeTolerant),
		FairWait:        300 * time.Second,
		FairOwnWait:     true,

		Fenced: fencedScripts,

		Watchdog:     WatchdogEntryQueue, // W8, 3.37.0
		LeaseField:   FieldUntilRelease,
		StopsRenewal: anyAnswer,

		LateSubscription: SubscriptionFailsLate,

		Resend:        unguarded, // G11
		ResendDelay:   fixedRetry,
		RetryAttempts: 3,
		RetryDelay:    fixedRetry,
		Refusals:      refusals322,
		RefusalDelay:  fixedRetry,
		Sync:          SyncThrown,
	},
	{
		Version:     "4.7.0",
		Acquire:     script(KindAcquire, "acquire_merged"),
		Unlock:      script(KindUnlock, "unlock_latch"),
		ForceUnlock: script(KindForceUnlock, "force_unlock_command"),
		Renew:       script(KindRenew, "renew_batch"), // 3.44.0

		FairAcquire:     script(KindAcquire, "fair_acquire_scored_last", purgeTolerant, takeChained, reenter), // F8
		FairTryAcquire:  script(KindAcquire, "fair_try_acquire_wait", purgeTolerant, takeChained, reenter),
		FairLeave:       script(KindLeave, "fair_leave_behind"),
		FairUnlock:      script(KindUnlock, "fair_unlock_latch", purgeTolerant),
		FairForceUnlock: script(KindForceUnlock, "fair_force_unlock_command", purgeTolerant),
		FairWait:        300 * time.Second,
		FairOwnWait:     true,

		Fenced: fencedScripts,
		NonReentrant: &NonReentrant{
			Acquire:        script(KindAcquire, "acquire_hincrby", refuseReentry),
			FairAcquire:    script(KindAcquire, "fair_acquire_scored_last", purgeTolerant, takeChained, refuseReentry),
			FairTryAcquire: script(KindAcquire, "fair_try_acquire_wait", purgeTolerant, takeChained, refuseReentry),
		},

		Watchdog:     WatchdogTask, // W9
		LeaseField:   FieldUntilRelease,
		StopsRenewal: anyAnswer,

		LateSubscription: SubscriptionFailsLate,
		FalseOnTimeout:   true, // F9

		Resend:        unguardedF9,
		ResendDelay:   jitterRetry,
		RetryAttempts: 4,
		RetryDelay:    jitterRetry,
		Refusals:      refusals322,
		RefusalDelay:  jitterRetry,
		ScriptCache:   true,
		Sync:          SyncCached,
		RequestKept:   true,
	},
}

// Find returns the release of a version; "" is the newest.
func Find(version string) (*Release, error) {
	if version == "" {
		return Releases[len(Releases)-1], nil
	}
	var known []string
	for _, r := range Releases {
		if r.Version == version {
			return r, nil
		}
		known = append(known, r.Version)
	}
	return nil, fmt.Errorf("unknown redisson release %q; known: %s", version, strings.Join(known, ", "))
}

func (r *Release) resends(kind ScriptKind) bool { return slices.Contains(r.Resend, kind) }

// Scripts returns the release's scripts.
func (r *Release) Scripts() []Script {
	all := []Script{
		r.Acquire, r.Unlock, r.ForceUnlock, r.Renew,
		r.FairAcquire, r.FairTryAcquire, r.FairLeave, r.FairUnlock, r.FairForceUnlock,
	}
	if f := r.Fenced; f != nil {
		all = append(all, f.Acquire, f.AcquireToken)
	}
	if n := r.NonReentrant; n != nil {
		all = append(all, n.Acquire, n.FairAcquire, n.FairTryAcquire)
	}
	return all
}
