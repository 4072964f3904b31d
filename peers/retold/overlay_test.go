//go:build lockstep_overlay

package retold

import (
	"testing"

	"lockstep/locktest"
)

func TestScalingo(t *testing.T) {
	locktest.Run(t, Scalingo, locktest.Options{Runs: 20, Accept: []string{
		// A waiter goes on with a session that is over.
		"story.late-answers-to-an-acquire.liveness", "story.first-waiter-late-at-request-2.liveness", "liveness.bug.acquire.agreed",
		// Unlock of the mutex does not look whether there was a key.
		"story.queue-that-is-deleted.linearizable", "story.hold-of-another-thread.linearizable",
		// The library has given the hold up itself, as it says.
		"story.renewal-that-fails-once.want", "story.holder-that-is-cut-off-for-a-while.want", "story.unlock-beside-a-renewal-of-two-holds.want",
	}})
}

// The server goes on with a GET_LOCK whose client has given up.
func TestGoMySQLLock(t *testing.T) {
	locktest.Run(t, GoMySQLLock, locktest.Options{Runs: 10, Accept: []string{"tidy.bug.acquire.agreed", "story.try-that-gave-up.tidy"}})
}

// An elector that begins anew because its session is over goes on leading until it observes another leader.
func TestElector(t *testing.T) {
	locktest.Run(t, Elector, locktest.Options{Runs: 20, Accept: append([]string{"story.late-answers-to-an-acquire.lease"}, toldLate...)})
}
