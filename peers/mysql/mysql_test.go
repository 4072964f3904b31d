package mysql

import (
	"os"
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
	"lockstep/scenarios/subject"
)

const stories = "testdata/*/*.yaml"

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(GetLock.Name, GetLockPool.Name, RowLock.Name)
	os.Exit(m.Run())
}

// waitsOn and waitsOnInAStory are the findings about a wait that was given up. The driver closes the connection, but
// the server goes on with the statement until it ends, after a second at most.
const waitsOn, waitsOnInAStory = "tidy.bug.acquire.agreed", "story.try-that-gave-up.tidy"

func TestGetLock(t *testing.T) {
	locktest.Run(t, GetLock, locktest.Options{Accept: []string{waitsOn, waitsOnInAStory, "tidy.bug.acquire.delete-of-a-key"}, Scenarios: stories})
}

// The stories of this package show the two bugs of the pool. Four stories of locktest show one of them: two
// threads of a process get one session, so that both get the lock, and one unlocks for the other.
func TestGetLockPool(t *testing.T) {
	shared := []string{
		// An unlock in the session of the other came earlier in the run.
		waitsOn, waitsOnInAStory, "tidy.bug.acquire.unlock-without-effect", "tidy.bug.acquire.hold-ended-by-another", "tidy.bug.acquire.delete-of-a-key",
		"story.two-threads-of-one-process.mutual-exclusion", "story.hold-of-another-thread.mutual-exclusion", "story.try-of-the-holder.linearizable",
		"story.two-threads-of-one-process-at-once.mutual-exclusion", "story.unlock-sent-again-in-the-next-hold.mutual-exclusion",
		// Drawn schedules, some of which have two threads in a process, show both bugs.
		"mutual-exclusion.bug.acquire.agreed", "mutual-exclusion.bug.acquire.unlock-without-effect", "mutual-exclusion.bug.acquire.hold-ended-by-another",
		"misdelete.bug.unlock.agreed", "misdelete.bug.unlock.hold-ended-by-another",
		"misdelete.bug.unlock.unlock-without-effect", "linearizable.bug.acquire.agreed", "linearizable.bug.unlock.agreed", "linearizable.bug.unlock.hold-ended-by-another",
		"linearizable.bug.unlock.restart-without-data", "linearizable.bug.unlock.unlock-without-effect", "liveness.bug.acquire.agreed", "liveness.bug.acquire.unlock-without-effect",
	}
	locktest.Run(t, GetLockPool, locktest.Options{Accept: shared, Scenarios: stories})
}

// The greeting of a server that is late makes a lease end early, since the client counts it from the
// beginning of the attempt. That is no failure.
func TestRowLock(t *testing.T) {
	locktest.Run(t, RowLock, locktest.Options{Scenarios: stories})
}
