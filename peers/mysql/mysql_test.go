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

// The processes of drawn schedules have one thread each, which always gets its own connection from
// the pool. The stories of this package show the two bugs of the pool. Two stories of locktest show
// one of them: two threads of a process get one session, so that both get the lock, and one unlocks
// for the other.
func TestGetLockPool(t *testing.T) {
	shared := []string{"story.two-threads-of-one-process.mutual-exclusion", "story.hold-of-another-thread.mutual-exclusion"}
	locktest.Run(t, GetLockPool, locktest.Options{Accept: slices.Concat(waitsOn, shared), Scenarios: stories})
}

// The test accepts a false alarm. The greeting of the server is delayed, and the client counts the
// lease from the beginning of the attempt. So the lease is over when the acquire is sent, and the
// thread is told at once. The judge of leases does not count a delayed greeting as a disturbance.
func TestRowLock(t *testing.T) {
	locktest.Run(t, RowLock, locktest.Options{Accept: []string{"lease.bug.acquire.told-of-a-hold-that-stays"}, Scenarios: stories})
}
