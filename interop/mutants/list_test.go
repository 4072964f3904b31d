package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func root(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEachMutantFindsItsPlace(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.id] {
			t.Errorf("two mutants are called %s", m.id)
		}
		seen[m.id] = true
		if _, err := m.apply(root(t)); err != nil {
			t.Error(err)
		}
	}
}

// A mutant that does not compile says nothing about the comparisons.
func TestEachMutantCompiles(t *testing.T) {
	fset := token.NewFileSet()
	list := exec.Command("go", "list", "-deps", "-export", "-f", "{{.ImportPath}}\t{{.Export}}", "./"+portDir)
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{} // the file of each package that the port may import
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	paths, err := filepath.Glob(filepath.Join(root(t), portDir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	parsed := map[string]*ast.File{}
	parse := func(name string, text any) *ast.File {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
		}
		return f
	}
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			parsed[filepath.Base(path)] = parse(path, nil)
		}
	}
	check := func() error {
		config := types.Config{Importer: imports}
		_, err := config.Check(portDir, fset, slices.Collect(maps.Values(parsed)), nil)
		return err
	}
	if err := check(); err != nil {
		t.Fatalf("the port itself: %v", err)
	}
	for _, m := range mutants {
		text, err := m.apply(root(t))
		if err != nil {
			t.Error(err)
			continue
		}
		whole := parsed[m.file]
		if whole == nil {
			t.Errorf("mutant %s is in %s, which is no file of the port", m.id, m.file)
			continue
		}
		parsed[m.file] = parse(m.id+"/"+m.file, text)
		if err := check(); err != nil {
			t.Errorf("mutant %s: %v", m.id, err)
		}
		parsed[m.file] = whole
	}
}

// The table in the document lists the mutants in order, with their kept results.
func TestTheDocumentHasTheTableOfMutants(t *testing.T) {
	all, err := readPlayed(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for id := range all {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.id == id }) {
			t.Errorf("%s tells of a mutant that is not on the list: %s", playedFile, id)
		}
	}
	text, err := os.ReadFile(filepath.Join(root(t), document))
	if err != nil {
		t.Fatal(err)
	}
	want, err := withTable(string(text), all)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Errorf("%s does not have the table of mutants as it would be written; run `go run ./interop/mutants -table`", document)
	}
}

func TestEachMutantNamesReleases(t *testing.T) {
	for _, m := range mutants {
		if _, err := m.on(); err != nil {
			t.Error(err)
		}
	}
	for releases, want := range map[string]int{"all": 6, "3.4.2 to 3.12.4": 3, "3.21.3 on": 3, "3.43.0, 4.7.0": 2, "4.7.0": 1} {
		if got, err := (mutant{releases: releases}).on(); err != nil || len(got) != want {
			t.Errorf("releases %q: %v, %v; want %d", releases, got, err, want)
		}
	}
	for _, wrong := range []string{"4.7.1", "3.12.4 to 3.4.2", "5 on"} {
		if got, err := (mutant{releases: wrong}).on(); err == nil {
			t.Errorf("releases %q are taken for %v", wrong, got)
		}
	}
}

// A text must occur exactly once in its file. The error names the file and the mutant.
func TestAMutantThatLostItsPlaceIsAnError(t *testing.T) {
	for _, before := range []string{"func ", "no such text"} {
		_, err := mutant{id: "stray", file: "lock.go", before: before}.apply(root(t))
		if err == nil || !strings.Contains(err.Error(), "stray") || !strings.Contains(err.Error(), "lock.go") {
			t.Errorf("before %q: %v", before, err)
		}
	}
}

func TestAMutantThatChangedCountsAsNotPlayed(t *testing.T) {
	m := mutants[0]
	all := outcomes{m.id: {Mutant: m.digest(), CaughtBy: "stories of rules", On: "4.7.0"}}
	if !strings.Contains(table(all), "stories of rules (4.7.0)") {
		t.Error("the table does not tell what caught the mutant")
	}
	all[m.id] = played{Mutant: "another", CaughtBy: "stories of rules", On: "4.7.0"}
	if strings.Contains(table(all), "stories of rules") {
		t.Error("the table tells what caught another mutant")
	}
}

// A mutant is unproved only if it passed every comparison.
func TestAMutantIsUnprovedByAllComparisons(t *testing.T) {
	var names []string
	for _, c := range comparisons {
		names = append(names, c.name)
	}
	for _, c := range []struct {
		result played
		want   string
	}{
		{played{Passed: names}, "unproved"},
		{played{Passed: names[1:]}, "not played"},
		{played{Passed: names[1:], Unusable: names[:1]}, "not played"},
		{played{}, "not played"},
		{played{CaughtBy: names[0], On: "4.7.0"}, names[0] + " (4.7.0)"},
	} {
		if got := c.result.text(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.result, got, c.want)
		}
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		options options
		rest    []string
		want    string
	}{
		{options{parallel: 0}, nil, "-parallel 0: at least 1"},
		{options{parallel: 1, only: "batch-owner,stray"}, nil, `no mutant is called "stray"`},
		{options{parallel: 1, by: "guesses"}, nil, `no comparison is called "guesses"`},
		{options{parallel: 1}, []string{"batch-owner"}, `"batch-owner" is no option`},
	} {
		if err := run(t.Context(), c.options, c.rest); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v %q: %v, want %q", c.options, c.rest, err, c.want)
		}
	}
	chosen, by, err := options{parallel: 1, only: "batch-size,batch-owner", by: "interrupts"}.choose(nil)
	if err != nil || len(chosen) != 2 || chosen[1].id != "batch-owner" || len(by) != 1 || by[0].test != "TestInterrupts" {
		t.Errorf("%v, %v, %v", chosen, by, err)
	}
}
