package redsync

import (
	"testing"

	"lockstep/locktest"
)

// asksOften has true findings about redsync's defaults. A waiter tries again after 50 to 250 ms.
// Each failed try costs two round trips per server, since it deletes the key that it may have set.
// That is up to 22 commands a second. The last word of a finding names an event of the hold for
// which the waiter waits.
var asksOften = []string{"traffic.bug.acquire.agreed", "traffic.bug.acquire.unlock-without-effect"}

// cleansUpLate are findings of one cause: the clean-up of one try deletes the hold of a later try of the same
// call.
var cleansUpLate = []string{"mutual-exclusion.bug.acquire.hold-ended-by-its-own-call", "lease.bug.acquire.hold-ended-by-its-own-call"}

func TestRedsync(t *testing.T) {
	locktest.Run(t, Subject(1), locktest.Options{Seed: 2, Accept: append(cleansUpLate, asksOften...)})
}

// trackRecord matches the scenarios of tracker issues and of the debate about Redlock.
const trackRecord = "testdata/peers-track-record/*.yaml"

// With WithSetNXOnExtend an extension takes a free lock, as its documentation says. The judges find
// the consequences: a holder that lost the lock to another is told that it extended its hold, and
// two mutexes that never locked extend the same hold, since both have an empty value
// (testdata/peers-track-record/extend-without-a-hold.yaml).
var extendsWithoutHold = []string{
	"story.late-extension.linearizable",
	"linearizable.bug.extend.agreed", "linearizable.bug.extend.lease-ended",
	"mutual-exclusion.bug.extend.agreed",
}

func TestSetOnExtend(t *testing.T) {
	locktest.Run(t, SetOnExtend, locktest.Options{Seed: 2, Accept: append(extendsWithoutHold, asksOften...), Scenarios: trackRecord})
}

func TestRedlock(t *testing.T) {
	locktest.Run(t, Subject(5), locktest.Options{Seed: 2, Accept: asksOften, Scenarios: trackRecord})
}
