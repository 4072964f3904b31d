package etcd

import (
	"os"
	"testing"

	"lockstep/locktest"
	_ "lockstep/locktest/redistest" // the controls
	"lockstep/scenarios/subject"
)

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(Mutex.Name, OneSession.Name)
	os.Exit(m.Run())
}

const stories = "testdata/stories/*.yaml"

var accepted = []string{
	// An acquire that fails while its transaction is under way leaves its key. Others wait
	// behind it until the session is over.
	"tidy.bug.acquire.agreed",
	// An unlock whose request comes after the end of the lease returns no error.
	"story.release-after-request-5-of-a-waiter.linearizable", "story.other-holder-before-request-1-of-an-unlock.linearizable",
	"story.other-holder-before-request-2-of-an-unlock.linearizable", "story.other-holder-before-request-3-of-an-unlock.linearizable", "story.other-holder-before-request-4-of-an-unlock.linearizable",
	"linearizable.bug.unlock.agreed", "linearizable.bug.unlock.lease-ended",
	// A holder whose keepalives are held up is told after its lease.
	"story.holder-that-is-cut-off.mutual-exclusion", "story.client-closed-after-the-lease.mutual-exclusion", "story.late-answers-to-renewals.mutual-exclusion",
	"story.late-request-1-of-a-renewal.mutual-exclusion", "story.late-request-2-of-a-renewal.mutual-exclusion", "story.late-request-3-of-a-renewal.mutual-exclusion",
	"mutual-exclusion.bug.acquire.lease-ended", "lease.bug.acquire.lease-ended",
	// Done of the session does not look whether the key is there.
	"lease.bug.acquire.delete-of-a-key",
	// An unlock of a hold whose key an operator deleted returns no error, either.
	"story.queue-that-is-deleted.linearizable", "linearizable.bug.unlock.delete-of-a-key",
}

func TestMutex(t *testing.T) {
	alone := append([]string{
		// So is one whose request is held up, where no other thread keeps the session alive.
		"story.other-holder-before-request-1-of-a-renewal.mutual-exclusion", "story.other-holder-before-request-2-of-a-renewal.mutual-exclusion",
		"story.other-holder-before-request-3-of-a-renewal.mutual-exclusion",
		// An unlock of a hold whose key an operator deleted returns no error.
		"story.hold-of-another-thread.linearizable",
	}, accepted...)
	locktest.Run(t, Mutex, locktest.Options{Accept: alone, Scenarios: stories})
}

func TestOneSession(t *testing.T) {
	shared := append([]string{
		// Two threads of a process have one session, so that both get the lock, and one unlocks for the other.
		"story.two-threads-of-one-process-at-once.mutual-exclusion", "story.hold-of-another-thread.mutual-exclusion", "story.unlock-sent-again-in-the-next-hold.mutual-exclusion",
		"mutual-exclusion.bug.acquire.agreed", "mutual-exclusion.bug.acquire.hold-ended-by-another",
		"misdelete.bug.unlock.agreed", "misdelete.bug.unlock.hold-ended-by-another", "lease.bug.acquire.hold-ended-by-another", "misdelete.bug.unlock.unheard-grant",
		"linearizable.bug.acquire.agreed", "linearizable.bug.acquire.late-request-of-acquire", "linearizable.bug.acquire.unheard-grant", "linearizable.bug.acquire.lease-ended", "linearizable.bug.unlock.unlock-without-effect", "fencing.bug.acquire.agreed",
		// A key that an acquire or an unlock left stays as long as the session of the process.
		"story.lost-answer-to-the-acquire.liveness", "story.lost-answer-to-a-try.liveness", "story.acquire-that-is-granted-twice.liveness",
		"story.other-holder-before-request-2-after-a-lost-answer.liveness", "story.other-holder-before-request-3-after-a-lost-answer.liveness",
		"story.long-hold-after-lost-answer-1.liveness",
		"liveness.bug.acquire.agreed", "liveness.bug.acquire.late-request-of-acquire", "liveness.bug.acquire.unheard-grant", "liveness.bug.acquire.unlock-without-effect", "tidy.bug.acquire.unheard-grant",
		// Unlock does not look whether the session has ended.
		"story.pause-past-the-lease.linearizable", "story.other-holder-after-request-1-of-an-acquire.linearizable",
	}, accepted...)
	locktest.Run(t, OneSession, locktest.Options{Accept: shared, Scenarios: stories})
}
