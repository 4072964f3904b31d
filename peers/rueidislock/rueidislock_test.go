package rueidislock

import (
	"slices"
	"testing"

	"lockstep/locktest"
)

// neverAgain are findings of one cause. A try is given up after 20 ms, which is TryNextAfter. A
// waiter whose try was given up, and left no key behind, waits for a change of a key. No key
// changes, and the waiter does not try again. A round trip of 20 ms is enough for that, even
// without a fault.
var neverAgain = []string{
	"story.slow-network.liveness", "story.other-hold-before-request-2-of-an-acquire.liveness",
	"story.other-holder-after-request-1-of-an-acquire.liveness",
	"story.release-before-answer-1-to-a-waiter.liveness", "story.release-before-answer-2-to-a-waiter.liveness", "story.release-before-answer-3-to-a-waiter.liveness",
	"story.release-before-request-1-of-a-waiter.liveness", "story.release-before-request-2-of-a-waiter.liveness",
	"story.two-at-one-instant-and-an-unlock-too-many.liveness",
	"liveness.bug.acquire.agreed", "liveness.bug.acquire.lost-message",
}

// deletesFirst is a third one: the client deletes its keys, and then tells the holder.
const deletesFirst = "mutual-exclusion.bug.acquire.hold-ended-by-its-own-client"

// toldLate are findings of a fourth cause. An extension may wait for its answer until the end of the lease that
// it asks for, and the lease that the holder has ends before that, so that the holder is told late.
var toldLate = []string{
	"story.holder-that-is-cut-off.mutual-exclusion", "story.client-closed-after-the-lease.mutual-exclusion", "story.late-answers-to-renewals.mutual-exclusion",
	"story.late-request-1-of-a-renewal.mutual-exclusion", "story.late-request-2-of-a-renewal.mutual-exclusion", "story.late-request-3-of-a-renewal.mutual-exclusion", "story.late-request-3-of-a-renewal.lease",
	"story.other-holder-before-request-1-of-a-renewal.mutual-exclusion", "story.other-holder-before-request-2-of-a-renewal.mutual-exclusion",
	"mutual-exclusion.bug.acquire.lease-ended", "lease.bug.acquire.lease-ended", "story.late-answers-to-an-acquire.lease",
}

func TestOneKey(t *testing.T) {
	locktest.Run(t, Subject(1), locktest.Options{Accept: slices.Concat(neverAgain, toldLate, []string{
		deletesFirst,
		"wait-bound.bug.acquire.agreed", // the client connects in a try
		// The answer to an acquire is lost, and the client sends the acquire again, finds its own value, and takes it for
		// somebody else's. The key stays for the lease.
		"liveness.bug.acquire.unheard-grant", "story.other-holder-before-request-3-of-a-renewal.mutual-exclusion",
	})})
}

func TestThreeKeys(t *testing.T) {
	locktest.Run(t, Subject(2), locktest.Options{Runs: 100, Accept: slices.Concat(neverAgain, toldLate, []string{
		"linearizable.bug.acquire.agreed", // of the same cause as the last two
		"story.lost-answer-to-a-try.linearizable", "story.long-hold-after-lost-answer-2.liveness", "story.long-hold-after-lost-answer-3.liveness",
		"story.other-hold-before-request-3-of-an-acquire.liveness", "story.release-before-request-3-of-a-waiter.liveness", "story.other-holder-before-request-3-of-a-renewal.lease",
	})})
}
