//go:build lockstep_overlay

package redisclients

import (
	"testing"

	"lockstep/locktest"
)

// sentAgain is a finding about a client that sends an unlock without an answer again. The first one had freed the lock, and
// the second one finds nothing.
const sentAgain = "story.unlock-sent-again.linearizable"

func TestGoRedis8(t *testing.T) {
	locktest.Run(t, GoRedis8, locktest.Options{Runs: 20, Accept: []string{sentAgain}})
}

func TestRing(t *testing.T) {
	locktest.Run(t, Ring, locktest.Options{Runs: 5, Accept: []string{sentAgain}, Scenarios: "testdata/*.yaml"})
}

// A call without a deadline waits for its answer as long as its connection lasts.
func TestRadix(t *testing.T) {
	locktest.Run(t, Radix, locktest.Options{Runs: 20, Accept: []string{"story.lost-answer-to-the-acquire.liveness", "story.unlock-sent-again.liveness", "story.other-holder-before-request-2-after-a-lost-answer.liveness"}})
}
