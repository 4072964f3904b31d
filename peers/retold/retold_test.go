package retold

import (
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
)

// toldLate are findings about a holder whose keepalives are held up. It is told after its lease.
var toldLate = []string{
	"story.holder-that-is-cut-off.mutual-exclusion", "story.client-closed-after-the-lease.mutual-exclusion", "story.late-answers-to-renewals.mutual-exclusion",
	"story.late-request-1-of-a-renewal.mutual-exclusion", "story.late-request-2-of-a-renewal.mutual-exclusion", "story.late-request-3-of-a-renewal.mutual-exclusion",
	"story.other-holder-before-request-1-of-a-renewal.mutual-exclusion", "story.other-holder-before-request-2-of-a-renewal.mutual-exclusion",
	"story.other-holder-before-request-3-of-a-renewal.mutual-exclusion",
}

func TestValkeyrieEtcd(t *testing.T) {
	locktest.Run(t, ValkeyrieEtcd, locktest.Options{Runs: 1, Accept: append([]string{
		"story.other-hold-before-request-2-of-an-acquire.lease", "story.first-waiter-late-at-request-3.lease", // told late, too
		// Unlock of the mutex does not look whether there was a key.
		"story.queue-that-is-deleted.linearizable", "story.hold-of-another-thread.linearizable", "story.release-after-request-5-of-a-waiter.linearizable", "story.other-holder-before-request-1-of-an-unlock.linearizable",
		"story.other-holder-before-request-2-of-an-unlock.linearizable", "story.other-holder-before-request-3-of-an-unlock.linearizable", "story.other-holder-before-request-4-of-an-unlock.linearizable",
	}, toldLate...)})
}

func TestValkeyrieZooKeeper(t *testing.T) {
	locktest.Run(t, ValkeyrieZooKeeper, locktest.Options{Runs: 7, Accept: append([]string{
		"story.late-answers-to-an-acquire.lease",   // told late, too
		"story.hold-that-is-gone.lease",            // the session of a server that lost its data never ends for the client
		"story.second-hold-that-is-gone.lease",     // so it is the second time
		"story.queue-that-is-deleted.linearizable", // the library does not look for its own node
	}, toldLate...)})
}
