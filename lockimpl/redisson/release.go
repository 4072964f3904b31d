package redisson

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Release is one coherent snapshot of the library: which script, which
// watchdog, which executor rule. Releases differ in this table and in nothing
// else; what two of them share is written once.
type Release struct {
	Version string

	// Plain lock.
	Acquire     Script
	Unlock      Script
	ForceUnlock Script
	Renew       Script
	Watchdog    Watchdog

	// Fair lock; renewals are the plain lock's.
	FairAcquire     Script
	FairTryAcquire  Script
	FairLeave       Script
	FairUnlock      Script
	FairForceUnlock Script
	// FairWait is how long a waiter that named no wait may hold its place
	// (threadWaitTime, since 3.46.0 fairLockWaitTimeout).
	FairWait time.Duration

	// Executor.
	Resend        []ScriptKind // sent again after a lost reply
	RetryAttempts int
	RetryDelay    Delay
	ScriptCache   bool // EVALSHA first, and SCRIPT LOAD on NOSCRIPT
	// LatchLife is the life of the unlock latch: (response timeout + delay) × attempts.
	LatchDelay Delay
	// FalseOnTimeout: a response timeout inside tryLock's loop becomes false
	// instead of an error (issue 5019).
	FalseOnTimeout bool
}

// ResponseTimeout is how long every release waits for a reply.
const ResponseTimeout = 3 * time.Second

// SubscriptionTimeout is how long lock() waits for the server's subscribe
// acknowledgement.
const SubscriptionTimeout = 7500 * time.Millisecond

// DefaultWatchdog is lockWatchdogTimeout: the lease of a hold without one. It
// is renewed at a third of it.
const DefaultWatchdog = 30 * time.Second

// Watchdog names a generation of the renewal code.
type Watchdog int

const (
	// WatchdogEntryQueue is W8 as of 3.37.0: one timer a lock name, renewing
	// the first thread of a queue that gets an element at every entry and
	// loses one only when that thread's count reaches 0. An error, or a reply
	// of 0, ends it.
	WatchdogEntryQueue Watchdog = iota + 1
	// WatchdogTask is W9: one timer a client for all its locks, renewing in
	// batches. An error is logged and the next tick comes all the same.
	WatchdogTask
)

// watchdogBatch is lockWatchdogBatchSize.
const watchdogBatch = 100

// Delay is a wait before a resend: Fixed, or, where Min is set, drawn from
// [d/2, d) with d = Min doubled at each attempt up to Max (EqualJitter).
type Delay struct {
	Fixed    time.Duration
	Min, Max time.Duration
}

var fixedRetry = Delay{Fixed: 1500 * time.Millisecond}
var jitterRetry = Delay{Min: time.Second, Max: 2 * time.Second}

// Releases is the table, oldest first.
var Releases = []*Release{
	{
		Version:         "3.43.0",
		Acquire:         script(KindAcquire, "acquire_merged"),      // G8
		Unlock:          script(KindUnlock, "unlock_latch"),         // G10
		ForceUnlock:     script(KindForceUnlock, "force_unlock"),    // G9
		Renew:           script(KindRenew, "renew_owner"),           // 3.1.0
		Watchdog:        WatchdogEntryQueue,                         // W8, 3.37.0 form
		FairAcquire:     fair(KindAcquire, "fair_acquire_lock_ttl"), // F7
		FairTryAcquire:  fair(KindAcquire, "fair_try_acquire"),      // F4
		FairLeave:       script(KindLeave, "fair_leave_behind"),     // F4
		FairUnlock:      fair(KindUnlock, "fair_unlock_latch"),
		FairForceUnlock: fair(KindForceUnlock, "fair_force_unlock"),
		FairWait:        300 * time.Second,
		Resend:          []ScriptKind{KindRenew, KindForceUnlock},
		RetryAttempts:   3,
		RetryDelay:      fixedRetry,
		LatchDelay:      fixedRetry,
	},
	{
		Version:         "4.7.0",
		Acquire:         script(KindAcquire, "acquire_merged"),
		Unlock:          script(KindUnlock, "unlock_latch"),
		ForceUnlock:     script(KindForceUnlock, "force_unlock"),
		Renew:           script(KindRenew, "renew_batch"),              // 3.44.0
		Watchdog:        WatchdogTask,                                  // W9
		FairAcquire:     fair(KindAcquire, "fair_acquire_scored_last"), // F8
		FairTryAcquire:  fair(KindAcquire, "fair_try_acquire"),
		FairLeave:       script(KindLeave, "fair_leave_behind"),
		FairUnlock:      fair(KindUnlock, "fair_unlock_latch"),
		FairForceUnlock: fair(KindForceUnlock, "fair_force_unlock"),
		FairWait:        300 * time.Second,
		Resend:          []ScriptKind{KindRenew, KindForceUnlock, KindLeave}, // F9
		RetryAttempts:   4,
		RetryDelay:      jitterRetry,
		ScriptCache:     true,
		LatchDelay:      jitterRetry,
		FalseOnTimeout:  true, // F9
	},
}

// Find gives the release of a version; "" is the newest.
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

func (r *Release) resends(kind ScriptKind) bool {
	return kind == kindRead || slices.Contains(r.Resend, kind)
}

// Scripts lists the release's scripts.
func (r *Release) Scripts() []Script {
	return []Script{
		r.Acquire, r.Unlock, r.ForceUnlock, r.Renew,
		r.FairAcquire, r.FairTryAcquire, r.FairLeave, r.FairUnlock, r.FairForceUnlock,
	}
}
