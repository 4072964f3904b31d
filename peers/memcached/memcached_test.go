package memcached

import (
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
)

const stories = "testdata/*/*.yaml"

// A late or repeated delete removes the hold of another. Exploration with faults finds more ways to
// do that, so the test plays it without faults.
var anybodys = []string{
	"story.pause-past-the-lease.misdelete", "story.late-unlock.mutual-exclusion", "story.lost-answer-to-the-unlock.misdelete", "story.hold-of-another-thread.mutual-exclusion",
	"story.queue-that-is-deleted.misdelete", "story.other-holder-before-request-1-of-an-unlock.mutual-exclusion",
	"story.other-holder-after-request-1-of-an-acquire.misdelete",
	"misdelete.bug.unlock.hold-ended-by-another", "mutual-exclusion.bug.acquire.hold-ended-by-another", "linearizable.bug.unlock.hold-ended-by-another",
	"linearizable.bug.unlock.lease-ended",
}

// lastSecond is another finding: a hold ends up to a second before its expiry, while its holder
// still relies on it.
const lastSecond = "mutual-exclusion.bug.acquire.lease-ended"

func TestAdd(t *testing.T) {
	locktest.Run(t, Add, locktest.Options{Faults: "none", Accept: append(anybodys, lastSecond, "story.unlock-given-up-that-comes-in-the-next-hold.mutual-exclusion"), Scenarios: stories})
}

func TestAddForever(t *testing.T) {
	locktest.Run(t, AddForever, locktest.Options{Faults: "none", Accept: anybodys[2:5], Scenarios: stories})
}

func TestCAS(t *testing.T) { locktest.Run(t, CAS, locktest.Options{Scenarios: stories}) }
