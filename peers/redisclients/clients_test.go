package redisclients

import (
	"testing"

	"lockstep/locktest"
)

// The other tests of this package need the overlay.
func TestRueidis(t *testing.T) { locktest.Run(t, Rueidis, locktest.Options{Runs: 20}) }
