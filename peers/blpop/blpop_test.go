package blpop

import (
	"slices"
	"testing"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/locktest/redistest"
)

func TestLock(t *testing.T) { locktest.Run(t, Subject, locktest.Options{Runs: 100}) }

// A lock whose client ignores deadlines breaks the bound of its wait, however long BLPOP takes.
func TestAWaitThatOutlivesItsContext(t *testing.T) {
	s := Subject
	s.Open = func(p *locktest.Process) (locktest.Client, error) { return newClient(p, redistest.Options(p, 0)), nil }
	if broken := drawntest.Broken(t, s); !slices.Contains(broken, "try-that-gave-up wait-bound") {
		t.Errorf("the stories found %q, and no wait that is too long", broken)
	}
}
