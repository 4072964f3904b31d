package mysql

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/stories/*.yaml"

// What exploration with faults finds has not been looked at, so the locks are played
// without.

func TestGetLock(t *testing.T) {
	locktest.Run(t, GetLock, locktest.Options{Faults: "none", Scenarios: stories})
}

func TestGetLockPool(t *testing.T) {
	locktest.Run(t, GetLockPool, locktest.Options{Faults: "none", Scenarios: stories})
}

func TestRowLock(t *testing.T) {
	locktest.Run(t, RowLock, locktest.Options{Faults: "none", Scenarios: stories})
}
