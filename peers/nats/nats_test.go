package nats

import (
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
)

const stories = "testdata/*/*.yaml"

// existing: if its second request has no answer, Create reports that a deleted key exists. The
// caller takes a free lock for a held one.
const existing = "linearizable.bug.acquire.agreed"

// again: a server that has lost its data counts revisions from 1, and a holder from before renews
// the key of the next holder. Exploration without faults of the server does not find it.
const again, againThread = "story.server-restarts-without-its-data.misdelete", "story.hold-of-another-thread.mutual-exclusion"

// late are findings of two causes. A renewal succeeds although the time to live is over. The key of a hold
// that its holder counts as lost stays until its time to live is over.
var late = []string{"linearizable.bug.unlock.unlock-without-effect", "liveness.bug.acquire.unlock-without-effect", "liveness.bug.acquire.told-of-a-hold-that-stays"}

// endless: an update removes the TTL of a key, so a renewed hold has no end.
var endless = []string{
	"story.pause-past-the-lease.lease", "story.lost-answer-to-the-unlock.lease", "story.unlock-twice.lease", "story.renewal-that-fails-once.lease", "story.hold-of-three-leases.lease", "story.other-holder-before-request-2-after-a-lost-answer.lease", "story.other-holder-before-request-3-after-a-lost-answer.lease",
	"story.holder-that-is-cut-off-for-a-while.lease", "story.request-2-of-an-unlock-in-the-next-hold.lease", "story.request-3-of-an-unlock-in-the-next-hold.lease",
	"story.unlock-after-a-renewal-without-an-answer.lease", "story.unlock-in-two-steps.lease", "story.two-threads-of-one-process.lease", "story.try-of-a-held-lock.lease", "story.hold-of-another-thread.lease",
	"story.holder-that-is-cut-off.lease", "story.client-closed-after-the-lease.lease", "story.late-answers-to-an-acquire.lease", "story.late-answers-to-renewals.lease", "story.acquire-that-is-granted-twice.lease",
	"story.unlock-sent-again-in-the-next-hold.lease", "story.failed-unlock-sent-again-in-a-hold-of-its-thread.lease", "story.other-holder-before-request-1-of-an-unlock.lease", "story.other-holder-before-request-2-of-an-unlock.lease",
	"story.other-holder-before-request-3-of-an-unlock.lease", "story.other-holder-before-request-4-of-an-unlock.lease", "story.other-holder-before-request-1-of-a-renewal.lease",
	"story.other-holder-before-request-2-of-a-renewal.lease", "story.other-holder-before-request-3-of-a-renewal.lease",
	"story.late-request-1-of-a-renewal.lease", "story.late-request-2-of-a-renewal.lease", "story.late-request-3-of-a-renewal.lease",
	"story.last-holder-before-request-2-of-a-waiter.lease", "story.last-holder-before-request-3-of-a-waiter.lease", "story.last-holder-before-request-4-of-a-waiter.lease", "story.last-holder-before-request-5-of-a-waiter.lease",
	"story.other-holder-after-request-1-of-an-acquire.lease", "story.other-holder-after-request-2-of-an-acquire.lease", "story.other-holder-after-request-3-of-an-acquire.lease",
	"story.try-of-the-holder.lease", "story.names-that-begin-alike.lease", "story.unlock-of-another-thread-during-renewals.lease", "story.unlock-beside-a-renewal-of-two-holds.lease", "story.first-waiter-late-at-request-2.lease",
	"story.first-waiter-late-at-request-3.lease", "lease.bug.renew.agreed",
}

func TestKV(t *testing.T) {
	locktest.Run(t, KV, locktest.Options{
		Faults: "network,crash,pause,partition,clock,watchdog,interrupt", Accept: append([]string{existing, again}, late...), Scenarios: stories})
}

func TestOnTime(t *testing.T) {
	locktest.Run(t, OnTime, locktest.Options{Accept: append([]string{existing}, late...), Scenarios: stories})
}

// A delete without a revision removes the hold of another. Exploration with faults finds more ways
// to do that, so the test plays it without faults.
func TestBlind(t *testing.T) {
	locktest.Run(t, Blind, locktest.Options{
		Faults: "none", Runs: 100, Accept: []string{existing, again, againThread, "story.pause-past-the-lease.misdelete",
			"story.late-answers-to-an-acquire.misdelete", "story.other-holder-before-request-1-of-an-unlock.mutual-exclusion",
			"story.other-holder-before-request-2-of-an-unlock.mutual-exclusion",
			"story.other-holder-before-request-3-of-an-unlock.mutual-exclusion", "story.other-holder-before-request-4-of-an-unlock.mutual-exclusion"}, Scenarios: stories})
}

func TestKeyTTL(t *testing.T) {
	locktest.Run(t, KeyTTL, locktest.Options{Faults: "none", Runs: 50, Accept: append([]string{again, "story.two-take-over-at-request-2.lease", "story.two-take-over-at-request-3.lease",
		"story.try-that-gave-up.lease", "story.long-hold-beside-another-thread.lease", "story.unlock-again-in-the-hold-of-another-thread.lease", "story.other-holder-before-request-2-after-a-lost-one.lease", "story.other-holder-before-request-3-after-a-lost-one.lease"}, endless...), Scenarios: stories})
}
