package subject

import (
	"time"

	"lockstep/lockimpl"
	"lockstep/sim"
)

// Environment returns the clock, the IDs and the jitter that a process of a world gives
// to a lock.
func Environment(p *sim.Process) lockimpl.Environment {
	return lockimpl.Environment{
		Now:    p.Now,
		NewID:  func(o lockimpl.Owner) string { return p.NewID(int64(o)) },
		Jitter: func(o lockimpl.Owner, max time.Duration) time.Duration { return p.Jitter(int64(o), max) },
	}
}
