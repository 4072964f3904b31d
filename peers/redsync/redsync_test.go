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

// trackRecord matches the scenarios of tracker issues and of the debate about Redlock.
const trackRecord = "testdata/peers-track-record/*.yaml"

func TestSetOnExtend(t *testing.T) {
	locktest.Run(t, SetOnExtend, locktest.Options{Seed: 2, Accept: []string{asksOften}, Scenarios: trackRecord})
}

func TestRedlock(t *testing.T) {
	locktest.Run(t, Subject(5), locktest.Options{Seed: 2, Accept: []string{asksOften}, Scenarios: trackRecord})
}
