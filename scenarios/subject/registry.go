package subject

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lockstep/internal/nearest"
)

// registry holds the subjects, in the order of their registration and by name.
var registry struct {
	sync.Mutex
	all    []*Subject
	byName map[string]*Subject

	elsewhere []string // the names that Elsewhere got
}

// Elsewhere makes the names of locks known that another program registers. Find does not find them,
// and suggests them for names that resemble them. A name that is registered here, too, has no effect.
func Elsewhere(names ...string) {
	registry.Lock()
	defer registry.Unlock()
	registry.elsewhere = append(registry.elsewhere, names...)
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

// Registered returns the number of registered subjects. None is ever removed.
func Registered() int {
	registry.Lock()
	defer registry.Unlock()
	return len(registry.all)
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
		return nil, fmt.Errorf("unknown lock %q: none is registered (import %s/builtin for the built-in ones)", nearest.Clip(name), reflect.TypeFor[Subject]().PkgPath())
	}
	return nil, &UnknownError{Name: nearest.Clip(name), Meant: meant(name), Known: len(names)}
}

// Known reports whether Find finds the lock of that name, or another program registers it.
func Known(name string) bool {
	if _, err := Find(name); err == nil {
		return true
	}
	registry.Lock()
	defer registry.Unlock()
	return slices.Contains(registry.elsewhere, name)
}

// An UnknownError says that no registered lock has a name.
type UnknownError struct {
	Name  string // clipped
	Meant string // the name that may have been meant; "": none
	Known int    // how many locks are listed
}

func (e *UnknownError) Error() string {
	return nearest.Unknown(fmt.Sprintf("unknown lock %q", e.Name), e.Meant)
}

// meant returns the name of a registered lock that somebody may have meant by name, or "" if
// there is none. If the release is not registered, it returns the nearest release with the
// same configuration. It returns a planted bug only if name has the prefix of planted bugs.
// The caller holds the registry.
func meant(name string) string {
	var names, families []string
	releases := map[string][]string{} // by family
	for _, s := range registry.all {
		if s.Unlisted && !strings.HasPrefix(name, PlantedPrefix) {
			continue
		}
		names = append(names, s.Name)
		family, release, hasRelease := strings.Cut(s.Name, "@")
		if hasRelease && releases[family] == nil {
			families = append(families, family)
		}
		if hasRelease {
			releases[family] = append(releases[family], release)
		}
	}
	if slices.Contains(registry.elsewhere, name) {
		return ""
	}
	family, release, hasRelease := strings.Cut(name, "@")
	family = nearest.Near(family, slices.Concat(families, registry.elsewhere))
	switch {
	case slices.Contains(registry.elsewhere, family):
		return family
	case family == "":
		return nearest.Near(name, names)
	case !hasRelease:
		return nearest.Near(name, append(families, names...))
	case !strings.ContainsAny(release, "0123456789"):
		return family // its newest release
	}
	return family + "@" + nearestRelease(release, releases[family])
}

// nearestRelease returns the one of several releases, such as 3.43.0 or 4.7.0+replicas, that is
// nearest to another: the first number that differs counts most.
func nearestRelease(release string, known []string) string {
	version, configuration, _ := strings.Cut(release, "+")
	alike := slices.DeleteFunc(slices.Clone(known), func(k string) bool {
		_, other, _ := strings.Cut(k, "+")
		return other != configuration
	})
	if len(alike) == 0 {
		alike = known
	}
	return slices.MinFunc(alike, func(a, b string) int { return slices.Compare(distance(version, a), distance(version, b)) })
}

// distance returns how far the numbers of two versions are from each other.
func distance(a, b string) []int {
	of := func(version string) (n [3]int) {
		version, _, _ = strings.Cut(version, "+")
		for i, part := range strings.SplitN(version, ".", len(n)) {
			n[i], _ = strconv.Atoi(part) // a part that is no number counts as 0
		}
		return n
	}
	x, y := of(a), of(b)
	var d []int
	for i := range x {
		d = append(d, max(x[i]-y[i], y[i]-x[i]))
	}
	return d
}
