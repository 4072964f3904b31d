package blpop

import (
	"testing"

	"lockstep/locktest"
)

func TestLock(t *testing.T) { locktest.Run(t, Subject, locktest.Options{Runs: 100}) }
