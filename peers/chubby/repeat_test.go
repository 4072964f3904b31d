package chubby_test

import (
	"testing"

	"lockstep/locktest/drawntest"
	"lockstep/peers/chubby"
)

// In these runs a session is closed while its owner waits for the lock, while it is opened, or while its
// owner unlocks; and a grace period ends at the instant of a retry.
func TestDrawnRunsRepeat(t *testing.T) {
	drawntest.Repeats(t, chubby.Lock, 245, 443, 520)
	drawntest.Repeats(t, chubby.WithoutDelay, 1942)
}
