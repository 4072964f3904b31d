package mysql

import (
	"slices"
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/*/*.yaml"

// waitsOn lists the findings about a wait that was given up. The driver closes the connection, but
// the server goes on with the statement until it ends, after a second at most. In the other
// findings of the list a restart or a late unlock came earlier in the run, and is not the cause.
var waitsOn = []string{"tidy.bug.acquire.agreed", "tidy.bug.acquire.restart-with-data", "tidy.bug.acquire.unlock-without-effect"}

func TestGetLock(t *testing.T) {
	locktest.Run(t, GetLock, locktest.Options{Accept: waitsOn, Scenarios: stories})
}

// The stories of this package show the two bugs of the pool. Four stories of locktest show one of them: two
// threads of a process get one session, so that both get the lock, and one unlocks for the other.
func TestGetLockPool(t *testing.T) {
	shared := []string{
		"story.two-threads-of-one-process.mutual-exclusion", "story.hold-of-another-thread.mutual-exclusion",
		"story.two-threads-of-one-process-at-once.mutual-exclusion", "story.unlock-sent-again-in-the-next-hold.mutual-exclusion",
		// Drawn schedules, some of which have two threads in a process, show both bugs.
		"mutual-exclusion.bug.acquire.agreed", "misdelete.bug.acquire.agreed", "misdelete.bug.unlock.agreed", "misdelete.bug.unlock.hold-ended-by-another",
		"misdelete.bug.unlock.unlock-without-effect", "linearizable.bug.acquire.agreed", "linearizable.bug.unlock.agreed", "linearizable.bug.unlock.hold-ended-by-another",
		"linearizable.bug.unlock.restart-without-data", "linearizable.bug.unlock.unlock-without-effect", "liveness.bug.acquire.unlock-without-effect",
	}
	locktest.Run(t, GetLockPool, locktest.Options{Accept: slices.Concat(waitsOn, shared), Scenarios: stories})
}

// The greeting of a server that is late makes a lease end early, since the client counts it from the
// beginning of the attempt. That is no failure.
func TestRowLock(t *testing.T) {
	locktest.Run(t, RowLock, locktest.Options{Scenarios: stories})
}
