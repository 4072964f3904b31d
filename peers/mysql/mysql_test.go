package mysql

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/*/*.yaml"

// waitsOn lists the findings of a wait that is given up. The driver closes the connection,
// and the server goes on with the statement until it is over, after a second at most. A
// restart or a late unlock earlier in the run is no cause of the others.
var waitsOn = []string{"tidy.bug.acquire.agreed", "tidy.bug.acquire.restart-with-data", "tidy.bug.acquire.unlock-without-effect"}

func TestGetLock(t *testing.T) {
	locktest.Run(t, GetLock, locktest.Options{Accept: waitsOn, Scenarios: stories})
}

// The processes of drawn schedules have one thread each, which the pool gives its own
// connection again. The stories have the two bugs of the pool.
func TestGetLockPool(t *testing.T) {
	locktest.Run(t, GetLockPool, locktest.Options{Accept: waitsOn, Scenarios: stories})
}

// A false alarm is accepted: the greeting of the server is held, so the acquire is sent when the
// lease that its client counts from the beginning of the attempt is over, and the thread is told
// at once. The judge of leases takes no held greeting for a disturbance.
func TestRowLock(t *testing.T) {
	locktest.Run(t, RowLock, locktest.Options{Accept: []string{"lease.bug.acquire.told-of-a-hold-that-stays"}, Scenarios: stories})
}
