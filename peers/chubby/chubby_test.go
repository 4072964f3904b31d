package chubby

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/stories/*.yaml"

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Scenarios: stories})
}

func TestWithoutDelay(t *testing.T) {
	locktest.Run(t, WithoutDelay, locktest.Options{Scenarios: stories})
}
