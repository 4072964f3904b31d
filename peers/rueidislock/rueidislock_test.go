package rueidislock

import (
	"slices"
	"testing"

	"lockstep/locktest"
)

// neverAgain are findings of one cause. A try is given up after 20 ms, which is
// TryNextAfter. A waiter whose try was given up, and left no key behind, waits for a key
// to change. No key does, and the waiter does not try again. A round trip of 20 ms is
// enough for that, without a fault.
var neverAgain = []string{
	"story.slow-network.liveness", "liveness.bug.acquire.no-fault", "liveness.bug.acquire.stall",
	"liveness.bug.acquire.late-request-of-acquire", "liveness.bug.acquire.late-reply-of-acquire",
}

// ownKey is another: the answer to an acquire is lost, the client sends the acquire again,
// meets its own value, and takes it for somebody else's. The key stays for the lease.
const ownKey = "linearizable.bug.acquire.lost-reply-of-acquire"

// refused are findings about a server that answers a command with an error. The function
// that gives a hold up returns nothing, so that nobody learns that the keys are still
// there. A renewal that is refused ends the hold. The locker says so by the context of the
// hold, which Lockstep does not look at: the last three say more than is true.
var refused = []string{
	"liveness.bug.acquire.refused-request-of-renew", "mutual-exclusion.bug.acquire.refused-request-of-renew",
	"linearizable.bug.acquire.refused-request-of-renew", "linearizable.bug.unlock.refused-request-of-renew",
}

func TestOneKey(t *testing.T) {
	locktest.Run(t, Subject(1), locktest.Options{Accept: slices.Concat([]string{ownKey}, neverAgain, refused)})
}

func TestThreeKeys(t *testing.T) {
	locktest.Run(t, Subject(2), locktest.Options{Runs: 100, Accept: []string{ownKey, neverAgain[0], neverAgain[2]}})
}
