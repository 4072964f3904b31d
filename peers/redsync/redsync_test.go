package redsync

import (
	"testing"

	"lockstep/locktest"
)

// asksOften is a finding that is true of redsync's defaults, and no surprise: a waiter
// tries again after 50 to 250 ms, and each try that fails costs two round trips per
// server, since it deletes what it may have set. That is up to 22 commands a second. The cause
// that the finding names is what happened to the hold that the waiter waits for.
var asksOften = []string{"traffic.bug.acquire.agreed", "traffic.bug.acquire.unlock-without-effect"}

func TestRedsync(t *testing.T) {
	locktest.Run(t, Subject(1), locktest.Options{Seed: 2, Accept: asksOften})
}

// trackRecord matches the scenarios of tracker issues and of the debate about Redlock.
const trackRecord = "testdata/peers-track-record/*.yaml"

// With WithSetNXOnExtend an extension takes a lock that is free, as its documentation says. The
// judges find what follows from it: a holder that lost the lock to another is told that it
// extended its hold, and two mutexes that never locked extend the same hold, since the value of
// both is empty (testdata/peers-track-record/extend-without-a-hold.yaml).
var extendsWithoutHold = []string{
	"story.late-extension.linearizable",
	"linearizable.bug.extend.agreed",
	"mutual-exclusion.bug.extend.agreed",
}

func TestSetOnExtend(t *testing.T) {
	locktest.Run(t, SetOnExtend, locktest.Options{Seed: 2, Accept: append(extendsWithoutHold, asksOften...), Scenarios: trackRecord})
}

func TestRedlock(t *testing.T) {
	locktest.Run(t, Subject(5), locktest.Options{Seed: 2, Accept: asksOften, Scenarios: trackRecord})
}
