package scenarios

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"lockstep/scenarios/subject"
)

//go:embed builtin
var builtinFiles embed.FS

// Tag returns the name of the folder of builtin/ that holds the scenario. Scenarios with
// the same tag belong together. A scenario outside such a folder, such as a user's own,
// has the tag "".
func (sc *Scenario) Tag() string {
	rest, ok := strings.CutPrefix(path.Dir(sc.File), "builtin/")
	if !ok {
		return ""
	}
	return rest
}

// Tagged loads the built-in scenarios with that tag, sorted by name.
func Tagged(tag string) ([]*Scenario, error) {
	all, err := Builtin()
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
	if tag == "" || len(found) == 0 {
		return nil, fmt.Errorf("no scenario is tagged %q; tags: %s", tag, strings.Join(known, ", "))
	}
	return found, nil
}

// Builtin loads the scenarios that come with the program, sorted by name.
func Builtin() ([]*Scenario, error) {
	var all []*Scenario
	err := fs.WalkDir(builtinFiles, "builtin", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := builtinFiles.ReadFile(file)
		if err != nil {
			return err
		}
		sc, err := Parse(file, text, subject.Find)
		if err != nil {
			return err
		}
		all = append(all, sc)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// Find loads the built-in scenario of that name. If there is none, it loads the file.
func Find(nameOrFile string) (*Scenario, error) {
	all, err := Builtin()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, sc := range all {
		if sc.Name == nameOrFile {
			return sc, nil
		}
		names = append(names, sc.Name)
	}
	text, err := os.ReadFile(nameOrFile)
	if err != nil {
		if !strings.ContainsAny(nameOrFile, "./\\") {
			return nil, fmt.Errorf("no scenario %q and no such file; built in: %s", nameOrFile, strings.Join(names, ", "))
		}
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	return Parse(path.Clean(nameOrFile), text, subject.Find)
}
