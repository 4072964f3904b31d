package scenarios

import (
	"embed"
	"fmt"
	"os"
	"path"
	"sort"
	"strings"
)

//go:embed builtin/*.yaml
var builtinFiles embed.FS

// Builtin loads the scenarios that come with the program, sorted by name.
func Builtin() ([]*Scenario, error) {
	entries, err := builtinFiles.ReadDir("builtin")
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, e := range entries {
		file := "builtin/" + e.Name()
		text, err := builtinFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sc, err := Parse(file, text, Canonical)
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// Find loads a scenario by the name of a built-in one, or from a file.
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
	return Parse(path.Clean(nameOrFile), text, Canonical)
}
