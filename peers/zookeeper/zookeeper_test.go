package zookeeper

import (
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
)

const stories = "testdata/*/*.yaml"

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
