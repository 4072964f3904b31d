// Package command is the command line of Lockstep, simrun, for locks of yours. Package locktest
// is apart from it, so that a test links no library of a command line.
package command

import (
	"lockstep/internal/simrun"
	"lockstep/locktest"
	"lockstep/sim"
)

// Main is simrun for these locks and those that are registered. Call it from the main function
// of a program; it does not return. A program that imports locktest/redistest has the locks of
// Lockstep beside its own.
func Main(subjects ...locktest.Subject) {
	simrun.Main(func(h *sim.Host) error {
		for _, s := range subjects {
			if err := s.Register(h); err != nil {
				return err
			}
		}
		return nil
	})
}
