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

// keptNode is of a waiter whose connection ends behind its CREATE: the library leaves the node, and its session keeps it.
const keptNode = "story.last-holder-before-request-3-of-a-waiter.lease"

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Faults: "none", Accept: []string{withoutNode, keptNode}, Scenarios: stories})
}

func TestClosing(t *testing.T) {
	locktest.Run(t, Closing, locktest.Options{Faults: "none", Accept: []string{withoutNode}, Scenarios: stories})
}
