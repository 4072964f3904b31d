package zookeeper

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/*/*.yaml"

// The findings of exploration with faults have not been examined, so the test plays both locks
// without faults.

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Faults: "none", Scenarios: stories})
}

func TestClosing(t *testing.T) {
	locktest.Run(t, Closing, locktest.Options{Faults: "none", Scenarios: stories})
}
