package redsync

import (
	"testing"

	"lockstep/locktest"
)

func TestRedsync(t *testing.T) { locktest.Run(t, Subject(1), locktest.Options{}) }

func TestRedlock(t *testing.T) { locktest.Run(t, Subject(5), locktest.Options{}) }
