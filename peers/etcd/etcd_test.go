package etcd

import (
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
)

const stories = "testdata/stories/*.yaml"

var accepted = []string{
	// An acquire that fails while its transaction is under way leaves its key. Others wait
	// behind it until the session is over.
	"tidy.bug.acquire.agreed", "tidy.bug.acquire.late-request-of-acquire",
	// An unlock whose request comes after the end of the lease returns no error.
	"story.release-after-request-5-of-a-waiter.linearizable", "story.other-holder-before-request-1-of-an-unlock.linearizable",
	"linearizable.bug.unlock.agreed", "linearizable.bug.unlock.lease-ended",
	// A holder whose keepalives are held up is told after its lease.
	"story.holder-that-is-cut-off.mutual-exclusion", "story.late-answers-to-renewals.mutual-exclusion",
	"story.other-holder-before-request-1-of-a-renewal.mutual-exclusion", "story.other-holder-before-request-2-of-a-renewal.mutual-exclusion",
	"story.other-holder-before-request-3-of-a-renewal.mutual-exclusion", "mutual-exclusion.bug.acquire.lease-ended",
}

func TestMutex(t *testing.T) {
	locktest.Run(t, Mutex, locktest.Options{Accept: accepted, Scenarios: stories})
}
