package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"lockstep/internal/input"
	"lockstep/internal/nearest"
	"lockstep/scenarios/subject"
)

// A collection is a file system of scenario files under a name.
type collection struct {
	name  string
	files fs.FS
}

// registry holds the collections in the order of their registration. The built-in
// scenarios are the first.
var registry = struct {
	sync.Mutex
	all []collection
}{all: []collection{{builtinName, builtinFiles()}}}

// Register makes the scenario files (*.yaml) of a file system known under the name of their
// collection. A folder of the file system is the tag of the files in it. It panics if the
// name is no name, or that of another collection.
func Register(name string, files fs.FS) {
	registry.Lock()
	defer registry.Unlock()
	if !scenarioName.MatchString(name) {
		panic(fmt.Sprintf("scenarios: %q is no name of a collection", name))
	}
	if slices.ContainsFunc(registry.all, func(c collection) bool { return c.name == name }) {
		panic(fmt.Sprintf("scenarios: two collections have the name %q", name))
	}
	registry.all = append(registry.all, collection{name, files})
}

// All loads the registered scenarios, the built-in ones first, as Builtin does. The scenarios of a
// collection are sorted by name.
func All() ([]*Scenario, error) {
	registry.Lock()
	collections := slices.Clone(registry.all)
	registry.Unlock()
	var all []*Scenario
	for _, c := range collections {
		load := c.load
		if c.name == builtinName {
			load = builtin
		}
		loaded, err := load()
		if err != nil {
			return nil, err
		}
		all = append(all, withLocks(loaded)...)
	}
	return all, nil
}

// withLocks returns the scenarios that name a lock of the program.
func withLocks(all []*Scenario) []*Scenario {
	return slices.DeleteFunc(all, func(sc *Scenario) bool { return len(sc.Locks) == 0 })
}

// load loads the scenarios of a collection, sorted by name. Only built-in scenarios may name locks that
// the program does not have. Such a scenario has only the other locks, and may have none.
func (c collection) load() ([]*Scenario, error) {
	partial := c.name == builtinName
	var all []*Scenario
	err := fs.WalkDir(c.files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(c.files, file)
		if err != nil {
			return err
		}
		sc, err := parse(path.Join(c.name, file), text, subject.Find, partial)
		if err != nil {
			return err
		}
		all = append(all, sc)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *Scenario) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// inCollection returns the registered collection that has the file of the scenario, and the
// path of the file in it.
func (sc *Scenario) inCollection() (c collection, file string, ok bool) {
	name, file, _ := strings.Cut(sc.File, "/")
	registry.Lock()
	i := slices.IndexFunc(registry.all, func(c collection) bool { return c.name == name })
	if i >= 0 {
		c = registry.all[i]
	}
	registry.Unlock()
	if i < 0 {
		return c, "", false
	}
	_, err := fs.Stat(c.files, file)
	return c, file, err == nil
}

// Collection returns the name of the registered collection that has the scenario. It is ""
// for a scenario of no collection, such as a user's own file.
func (sc *Scenario) Collection() string {
	if c, _, ok := sc.inCollection(); ok {
		return c.name
	}
	return ""
}

// Tag returns the name of the folder that holds the scenario within its collection.
// Scenarios with the same tag belong together. A scenario outside of a folder, or of no
// collection, has the tag "".
func (sc *Scenario) Tag() string {
	_, file, ok := sc.inCollection()
	if !ok || path.Dir(file) == "." {
		return ""
	}
	return path.Base(path.Dir(file))
}

// Tagged loads the registered scenarios with that tag, as All sorts them.
func Tagged(tag string) ([]*Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var found []*Scenario
	var known []string
	for _, sc := range all {
		if t := sc.Tag(); t == tag {
			found = append(found, sc)
		} else if t != "" && !slices.Contains(known, t) {
			known = append(known, t)
		}
	}
	if len(known)+len(found) == 0 {
		return nil, fmt.Errorf("no scenario is tagged %q, and none of this program has a tag", tag)
	}
	if tag == "" || len(found) == 0 {
		return nil, fmt.Errorf("no scenario is tagged %q; %s", tag, nearest.Known(tag, known))
	}
	return found, nil
}

// Find loads the registered scenario of that name. A name that several collections have is
// that of the built-in scenario; the others are written COLLECTION/NAME. If there is no
// scenario of the name, Find loads the file. A built-in scenario has no Locks if the program has none of
// the locks that it names.
func Find(nameOrFile string) (*Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var found []*Scenario
	var names, full []string
	for _, sc := range all {
		if sc.ShortName() == nameOrFile || sc.fullName() == nameOrFile {
			return sc, nil
		}
		if sc.Name == nameOrFile {
			found, full = append(found, sc), append(full, sc.fullName())
		}
		if !slices.Contains(names, sc.Name) {
			names = append(names, sc.Name)
		}
	}
	switch len(found) {
	case 0:
	case 1:
		return found[0], nil
	default:
		return nil, fmt.Errorf("several scenarios have the name %s; take one of %s", nameOrFile, strings.Join(full, ", "))
	}
	text, err := input.Read(nameOrFile, "name a scenario, or the file of one", maxText)
	if err == nil {
		return Parse(path.Clean(nameOrFile), text, subject.Find)
	}
	if _, there := os.Stat(nameOrFile); !errors.Is(there, fs.ErrNotExist) || strings.ContainsAny(nameOrFile, "./\\") {
		return nil, err
	}
	lockless, err := builtin()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(lockless, func(sc *Scenario) bool { return sc.Name == nameOrFile }); i >= 0 {
		return lockless[i], nil
	}
	return nil, &UnknownError{Name: nameOrFile, Meant: nearest.Near(nameOrFile, names), Known: len(names)}
}

// An UnknownError says that no registered scenario has a name, and no file either.
type UnknownError struct {
	Name  string
	Meant string // the name that may have been meant; "": none
	Known int    // how many scenarios are registered
}

func (e *UnknownError) Error() string {
	return nearest.Unknown(fmt.Sprintf("no scenario %q and no such file", e.Name), e.Meant)
}

// fullName returns the name that no other registered scenario has.
func (sc *Scenario) fullName() string { return sc.Collection() + "/" + sc.Name }

// ShortName returns the shortest name by which Find finds the scenario in every set of collections:
// the name of a built-in scenario, COLLECTION/NAME of another registered one, and the file of one of
// no collection.
func (sc *Scenario) ShortName() string {
	switch sc.Collection() {
	case "":
		return sc.File
	case builtinName:
		return sc.Name
	}
	return sc.fullName()
}
