package zookeeper

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/*/*.yaml"

// What exploration with faults finds has not been looked at, so both are played without.

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Faults: "none", Scenarios: stories})
}

func TestClosing(t *testing.T) {
	locktest.Run(t, Closing, locktest.Options{Faults: "none", Scenarios: stories})
}
