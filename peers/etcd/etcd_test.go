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
	// A thread whose Lock failed has a key in front of its next one. The state of a lock names the
	// thread and not the key, so that the judge takes the end of the first key for that of the hold
	// which follows it.
	"linearizable.bug.unlock.agreed",
}

func TestMutex(t *testing.T) {
	locktest.Run(t, Mutex, locktest.Options{Accept: accepted, Scenarios: stories})
}
