package locktest

import (
	"fmt"

	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Register makes locks known by their names to a program or a test that reads scenarios and
// recordings which name them. The error names a subject that is wrong, or whose
// name another lock has.
func Register(h *sim.Host, subjects ...Subject) error {
	for _, s := range subjects {
		if err := s.register(h); err != nil {
			return err
		}
	}
	return nil
}

// register makes the lock known by its name.
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
