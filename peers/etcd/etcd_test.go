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
	// TryLock writes its key before it knows whether the lock is free, and deletes it later.
	// Another try meanwhile is refused, although nobody gets the lock.
	"linearizable.bug.acquire.agreed",
	// The renewal of a session keeps a key that was left in front of the others, as above. In the
	// history another thread has the lock then.
	"linearizable.bug.renew.agreed",
}

func TestMutex(t *testing.T) {
	locktest.Run(t, Mutex, locktest.Options{Accept: accepted, Scenarios: stories})
}
