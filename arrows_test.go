// Package lockstep holds no code: the folders do. This test keeps the arrows
// between them as docs/design.md has them.
package lockstep

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows are the imports that the design knows, by top-level folder.
var arrows = map[string][]string{
	"model":           nil,
	"lockimpl":        nil,
	"interop":         {"lockimpl"},
	"sim":             {"model"},
	"linearizability": {"model"},
	"scenarios":       {"model", "lockimpl", "sim", "linearizability"},
	"known":           {"model", "sim", "linearizability", "scenarios"},
	"explore":         {"model", "sim", "linearizability", "scenarios", "known"},
	"report":          {"model", "linearizability"},
	"internal":        nil,
	"bench":           {"model", "lockimpl", "interop", "sim", "scenarios", "explore"},
	"cmd":             {"model", "sim", "linearizability", "scenarios", "known", "explore", "report", "bench"},
}

// within are the imports that the design knows between the folders of scenarios/.
var within = map[string][]string{
	"scenarios":                 {"scenarios/subject"},
	"scenarios/subject":         nil,
	"scenarios/subject/builtin": {"scenarios/subject"},
	"scenarios/play":            {"scenarios", "scenarios/subject"},
}

// Nobody but the programs that offer the built-in locks knows them: whatever runs,
// judges and searches takes any lock.
func TestTheBuiltInLocksEnterLikeAnybodys(t *testing.T) {
	const builtin = "scenarios/subject/builtin"
	seen := map[string]bool{}
	eachImport(t, func(path, folder, imported string) {
		seen[folder] = true
		top, _, _ := strings.Cut(folder, "/")
		known, inside := within[folder]
		switch {
		case top == "scenarios" && !inside:
			t.Errorf("%s: folder %s is not in the design's table", path, folder)
		case inside && strings.HasPrefix(imported, "scenarios") && !slices.Contains(known, imported):
			t.Errorf("%s imports %s: an arrow that the design does not know", path, imported)
		case imported == builtin && !slices.Contains([]string{"bench", "cmd"}, top):
			t.Errorf("%s imports %s: a lock is passed to %s, or found by its name", path, imported, folder)
		}
	})
	for folder := range within {
		if !seen[folder] {
			t.Errorf("folder %s is in the design and imports nothing of ours", folder)
		}
	}
}

// eachImport calls f for every import of a folder of ours by a file that is no test.
func eachImport(t *testing.T, f func(path, folder, imported string)) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			if inside, ours := strings.CutPrefix(name, "lockstep/"); ours {
				f(path, filepath.ToSlash(filepath.Dir(path)), inside)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoArrowPointsTheOtherWay(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		from, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		known, ok := arrows[from]
		if !ok {
			t.Errorf("%s: folder %s is not in the design's table", path, from)
			return nil
		}
		seen[from] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			inside, ours := strings.CutPrefix(name, "lockstep/")
			if !ours {
				continue
			}
			to, _, _ := strings.Cut(inside, "/")
			if to != from && !slices.Contains(known, to) {
				t.Errorf("%s imports %s: an arrow that the design does not know", path, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range arrows {
		if !seen[folder] {
			t.Errorf("folder %s is in the design and has no code", folder)
		}
	}
}

// kernelKnows are the packages outside the standard library that the kernel of the
// world may import. Servers and clients live in folders below it.
var kernelKnows = []string{"lockstep/model"}

func TestTheKernelKnowsNoServer(t *testing.T) {
	files, err := filepath.Glob("sim/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") || first == "lockstep" && !slices.Contains(kernelKnows, name) {
				t.Errorf("%s imports %s", path, name)
			}
		}
		for _, word := range []string{"redis", "EVAL", "SCRIPT", "SUBSCRIBE", "PUBLISH", "HELLO", "RESP", "WAIT"} {
			if strings.Contains(string(text), word) || word == "redis" && strings.Contains(strings.ToLower(string(text)), word) {
				t.Errorf("%s says %s", path, word)
			}
		}
	}
}
