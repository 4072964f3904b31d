package locktest

import (
	"fmt"
	"io/fs"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// RegisterScenarios makes the scenario files (*.yaml) of a file system known to the command line,
// under the name of their collection. A folder of the file system is the tag of the files in it,
// so that run and matrix take them by --tag. A file may name locks that are known to the command
// line. Call it before command.Main. It panics if another collection has the name.
func RegisterScenarios(collection string, files fs.FS) { scenarios.Register(collection, files) }

// Register makes the lock known to the command line under its name. The error says what the
// subject lacks, or that another lock has the name. command.Main calls it.
func (s Subject) Register(h *sim.Host) error {
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
