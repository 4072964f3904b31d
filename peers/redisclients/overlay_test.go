//go:build lockstep_overlay

package redisclients

import (
	"testing"

	"lockstep/locktest"
)

// sentAgain are findings about a client that sends a request without an answer again. The first unlock had freed the lock, and
// the second one finds nothing. The first try had taken it, and the second one takes its key for that of another.
var sentAgain = []string{"story.unlock-sent-again.linearizable", "story.lost-answer-to-a-try.liveness"}

func TestGoRedis8(t *testing.T) {
	locktest.Run(t, GoRedis8, locktest.Options{Runs: 20, Accept: sentAgain})
}

func TestRing(t *testing.T) {
	locktest.Run(t, Ring, locktest.Options{Runs: 5, Accept: sentAgain, Scenarios: "testdata/*.yaml"})
}

// A call without a deadline waits for its answer as long as its connection lasts.
func TestRadix(t *testing.T) {
	locktest.Run(t, Radix, locktest.Options{Runs: 20, Accept: []string{"story.lost-answer-to-the-acquire.liveness", "story.unlock-sent-again.liveness", "story.other-holder-before-request-2-after-a-lost-answer.liveness"}})
}
