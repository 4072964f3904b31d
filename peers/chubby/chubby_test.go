package chubby

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/stories/*.yaml"

// What exploration with faults finds has not been looked at, so both are played without.

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Faults: "none", Scenarios: stories})
}

func TestWithoutDelay(t *testing.T) {
	locktest.Run(t, WithoutDelay, locktest.Options{Faults: "none", Scenarios: stories})
}
