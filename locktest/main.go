package locktest

import (
	"fmt"
	"io/fs"

	"lockstep/explore/spread"
	"lockstep/internal/simrun"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Main is the command line of Lockstep, simrun, for these locks and those that are
// registered. Call it from the main function of a program; it does not return. A program
// that imports redistest has the locks of Lockstep, which use Redis, beside its own.
func Main(subjects ...Subject) {
	simrun.Main(func(h *sim.Host) error { return Register(h, subjects...) })
}

// Register makes locks known by their names, as Main does, to a program or a test that reads
// scenarios and recordings which name them. The error names a subject that is wrong, or whose
// name another lock has.
func Register(h *sim.Host, subjects ...Subject) error {
	for _, s := range subjects {
		if err := s.register(h); err != nil {
			return err
		}
	}
	return nil
}

// RegisterScenarios makes the scenario files (*.yaml) of a file system known to Main, under the
// name of their collection. A folder of the file system is the tag of the files in it, so that
// run and matrix take them by --tag. A file may name locks that are known to Main. Call it
// before Main. It panics if another collection has the name.
func RegisterScenarios(collection string, files fs.FS) { scenarios.Register(collection, files) }

// RegisterFarm gives Main the command farm, which spreads campaigns over machines by an engine,
// such as JetStream of package peers/farm. Call it before Main. It panics if there is an engine.
func RegisterFarm(e spread.Engine) { simrun.RegisterFarm(e) }

// register makes the lock known to the command line.
func (s Subject) register(h *sim.Host) error {
	if err := s.check(); err != nil {
		return err
	}
	if _, err := subject.Find(s.Name); err == nil {
		return fmt.Errorf("subject %q has the name of another lock; give it one of its own", s.Name)
	}
	offers, err := probe(h, s)
	if err != nil {
		return fmt.Errorf("%s cannot be opened: %w", s.Name, err)
	}
	lock := s.compile(offers)
	lock.Unlisted = false
	if err := lock.Check(); err != nil {
		return err
	}
	subject.Register(lock)
	return nil
}
