package etcd

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/stories/*.yaml"

var accepted = []string{
	// An acquire that fails while its transaction is under way leaves its key. Others wait
	// behind it until the session is over.
	"tidy.bug.acquire.agreed",
	// An unlock after the end of the lease returns no error.
	"linearizable.bug.unlock.lease-ended",
	// TryLock is refused because of another TryLock that is refused, too.
	"linearizable.bug.acquire.agreed",
}

func TestMutex(t *testing.T) {
	locktest.Run(t, Mutex, locktest.Options{Accept: accepted, Scenarios: stories})
}
