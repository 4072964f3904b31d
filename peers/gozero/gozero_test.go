package gozero

import (
	"slices"
	"testing"

	"lockstep/locktest"
)

// sentAgain are findings of one cause. The client of the library sends an unlock without an answer again. If the
// first one had freed the lock, the second one finds nothing, and the caller is told that it freed nothing. If the first
// one is late, it ends the next hold of the same RedisLock, which has the same value.
var sentAgain = []string{"story.unlock-sent-again.linearizable"}

func TestRedisLock(t *testing.T) {
	locktest.Run(t, Subject, locktest.Options{Runs: 5, Accept: sentAgain})
}

// oneValue are findings of another cause. The threads that share a RedisLock share its value, so that both get the
// lock, and one unlocks for the other.
var oneValue = []string{
	"story.two-threads-of-one-process.mutual-exclusion", "story.two-threads-of-one-process-at-once.mutual-exclusion",
	"story.hold-of-another-thread.mutual-exclusion", "story.unlock-sent-again-in-the-next-hold.mutual-exclusion",
}

func TestShared(t *testing.T) {
	locktest.Run(t, Shared, locktest.Options{Runs: 5, Accept: slices.Concat(sentAgain, oneValue)})
}
