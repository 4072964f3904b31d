package rueidislock

import (
	"testing"

	"lockstep/locktest"
)

// neverAgain are findings of one cause. A try is given up after 20 ms, which is TryNextAfter. A
// waiter whose try was given up, and left no key behind, waits for a change of a key. No key
// changes, and the waiter does not try again. A round trip of 20 ms is enough for that, even
// without a fault.
var neverAgain = []string{"story.slow-network.liveness", "liveness.bug.acquire.agreed"}

// ownKey is another finding. The answer to an acquire is lost, and the client sends the acquire
// again, finds its own value, and takes it for somebody else's. The key stays for the lease.
const ownKey = "linearizable.bug.acquire.agreed"

func TestOneKey(t *testing.T) {
	locktest.Run(t, Subject(1), locktest.Options{Accept: neverAgain})
}

func TestThreeKeys(t *testing.T) {
	locktest.Run(t, Subject(2), locktest.Options{Runs: 100, Accept: append(neverAgain, ownKey)})
}
