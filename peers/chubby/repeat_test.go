package chubby_test

import (
	"testing"

	"lockstep/locktest/drawntest"
	"lockstep/peers/chubby"
)

// In this run a session is closed while its owner waits for the lock.
func TestADrawnRunRepeats(t *testing.T) { drawntest.Repeats(t, chubby.Lock, 245) }
