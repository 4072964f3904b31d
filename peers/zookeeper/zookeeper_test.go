package zookeeper

import (
	"os"
	"testing"

	"lockstep/locktest"
	"lockstep/scenarios/subject"
)

const stories = "testdata/*/*.yaml"

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(Lock.Name, Closing.Name)
	os.Exit(m.Run())
}

// The findings of exploration with faults have not been examined, so the test plays both locks
// without faults.

// withoutNode is of a waiter whose node is deleted with the whole queue: the library does not look whether
// its own node is among the children, and grants the lock to a caller that has none.
const withoutNode = "story.queue-that-is-deleted.mutual-exclusion"

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Faults: "none", Accept: []string{withoutNode}, Scenarios: stories})
}

func TestClosing(t *testing.T) {
	locktest.Run(t, Closing, locktest.Options{Faults: "none", Accept: []string{withoutNode}, Scenarios: stories})
}
