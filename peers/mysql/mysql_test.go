package mysql

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/stories/*.yaml"

// faults are all classes but network. A rule on messages may hold up a call by the greeting
// of the server, which belongs to no call, and no judge excuses that yet.
const faults = "crash,pause,partition,clock,server,operator,interrupt"

// waitsOn lists the findings of a wait that is given up. The driver closes the connection,
// and the server goes on with the statement until it is over, after a second at most. A
// restart earlier in the run is no cause of the second.
var waitsOn = []string{"tidy.bug.acquire.agreed", "tidy.bug.acquire.restart-with-data"}

func TestGetLock(t *testing.T) {
	locktest.Run(t, GetLock, locktest.Options{Faults: faults, Accept: waitsOn, Scenarios: stories})
}

// The processes of drawn schedules have one thread each, which the pool gives its own
// connection again. The stories have the two bugs of the pool.
func TestGetLockPool(t *testing.T) {
	locktest.Run(t, GetLockPool, locktest.Options{Faults: faults, Accept: waitsOn, Scenarios: stories})
}

func TestRowLock(t *testing.T) {
	locktest.Run(t, RowLock, locktest.Options{Faults: faults, Scenarios: stories})
}
