package redsync

import (
	"testing"

	"lockstep/locktest"
)

// asksOften is a finding that is true of redsync's defaults, and no surprise: a waiter
// tries again after 50 to 250 ms, and each try that fails costs two round trips per
// server, since it deletes what it may have set. That is up to 22 commands a second.
const asksOften = "traffic.bug.acquire.agreed"

func TestRedsync(t *testing.T) {
	locktest.Run(t, Subject(1), locktest.Options{Seed: 2, Accept: []string{asksOften}})
}

func TestRedlock(t *testing.T) {
	locktest.Run(t, Subject(5), locktest.Options{Seed: 2, Accept: []string{asksOften}, Scenarios: "testdata/redlock/*.yaml"})
}
