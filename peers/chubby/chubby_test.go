package chubby

import (
	"os"
	"testing"

	"lockstep/locktest"
	"lockstep/scenarios/subject"
)

const stories = "testdata/stories/*.yaml"

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(Lock.Name, WithoutDelay.Name)
	os.Exit(m.Run())
}

func TestLock(t *testing.T) {
	locktest.Run(t, Lock, locktest.Options{Scenarios: stories})
}

func TestWithoutDelay(t *testing.T) {
	locktest.Run(t, WithoutDelay, locktest.Options{Scenarios: stories})
}
