package subject

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// registry holds the subjects, in the order of their registration and by name.
var registry struct {
	sync.Mutex
	all    []*Subject
	byName map[string]*Subject
}

// Register makes subjects known under their names, in that order. It panics if a
// subject does not pass Check, or has the name of a registered one.
func Register(all ...*Subject) {
	registry.Lock()
	defer registry.Unlock()
	for _, s := range all {
		if err := s.Check(); err != nil {
			panic("subject: " + err.Error())
		}
		if registry.byName[s.Name] != nil {
			panic(fmt.Sprintf("subject: two subjects have the name %q", s.Name))
		}
		if registry.byName == nil {
			registry.byName = map[string]*Subject{}
		}
		registry.byName[s.Name] = s
		registry.all = append(registry.all, s)
	}
}

// All returns the registered subjects except the unlisted ones, in the order of their
// registration.
func All() []*Subject {
	registry.Lock()
	defer registry.Unlock()
	var listed []*Subject
	for _, s := range registry.all {
		if !s.Unlisted {
			listed = append(listed, s)
		}
	}
	return listed
}

// PlantedPrefix begins the name of a lock with a planted bug. Such a lock is not
// listed, so that nobody chooses it by chance.
const PlantedPrefix = "planted/"

// PlantedBugs returns the planted bugs of the registered subjects, in the order of their
// registration.
func PlantedBugs() []*PlantedBug {
	registry.Lock()
	defer registry.Unlock()
	var bugs []*PlantedBug
	for _, s := range registry.all {
		if s.Planted != nil {
			bugs = append(bugs, s.Planted)
		}
	}
	return bugs
}

// Find returns the registered subject of that name. The name of a family stands for
// its newest release on a single server, which is the last one registered.
func Find(name string) (*Subject, error) {
	registry.Lock()
	defer registry.Unlock()
	if exact := registry.byName[name]; exact != nil {
		return exact, nil
	}
	var names []string
	var newest *Subject
	for _, s := range registry.all {
		if !s.Unlisted {
			names = append(names, s.Name)
		}
		if s.Family() == name && !s.Replicated {
			newest = s
		}
	}
	switch {
	case newest != nil:
		return newest, nil
	case len(names) == 0:
		return nil, fmt.Errorf("unknown lock %q: none is registered (import %s/builtin for the built-in ones)", name, reflect.TypeFor[Subject]().PkgPath())
	}
	return nil, fmt.Errorf("unknown lock %q; known: %s", name, strings.Join(names, ", "))
}
