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
	"reflect"
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
	exports := map[string]string{} // the export file of each package that the port may import
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

// The tables in the document list rules and mutants in order, with the kept results.
func TestTheDocumentHasTheTablesOfRulesAndMutants(t *testing.T) {
	all, err := readPlayed(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for id := range all {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.id == id }) {
			t.Errorf("%s tells of a mutant that is not on the list: %s", playedFile, id)
		}
	}
	stale, err := all.forgetStale(root(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root(t), document))
	if err != nil {
		t.Fatal(err)
	}
	want, err := withTables(string(text), all)
	if err != nil {
		t.Fatal(err)
	}
	if want == string(text) {
		return
	}
	t.Errorf("%s does not have the tables of rules and mutants as they would be written; run `go run ./interop/mutants -table`", document)
	if len(stale) > 0 {
		t.Errorf("the code changed that these mutants change, and their results do not count: play them, `go run ./interop/mutants -only %s`", strings.Join(stale, ","))
	}
}

// A mutant breaks one rule, on releases that have it.
func TestEachMutantBreaksARule(t *testing.T) {
	named := map[string]int{}
	said := map[string]bool{}
	for _, r := range rules {
		if said[r.says] {
			t.Errorf("two rules say %q", r.says)
		}
		said[r.says] = true
		has, err := releasesNamed("the rule", r.releases)
		if err != nil {
			t.Errorf("%q: %v", r.says, err)
		}
		for _, id := range r.mutants {
			named[id]++
			i := slices.IndexFunc(mutants, func(m mutant) bool { return m.id == id })
			if i < 0 {
				t.Errorf("%q: no mutant is called %s", r.says, id)
				continue
			}
			breaks, err := mutants[i].brokenReleases()
			if err != nil {
				t.Error(err)
			}
			for _, v := range breaks {
				if !slices.Contains(has, v) {
					t.Errorf("mutant %s is of %s, which does not have its rule", id, v)
				}
			}
		}
	}
	for _, m := range mutants {
		if named[m.id] != 1 {
			t.Errorf("%d rules name the mutant %s, not one", named[m.id], m.id)
		}
	}
}

// A rule that no comparison shows gives a reason, and no other rule does. The test that compares a
// rule exists.
func TestEachRuleIsShownOrSaysWhyNot(t *testing.T) {
	all, err := readPlayed(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.forgetStale(root(t)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(root(t), "interop", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is {
				tests[f.Name.Name] = true
			}
		}
	}
	for _, r := range rules {
		if r.seen != "" && !tests[r.seen] {
			t.Errorf("%q: package interop has no %s", r.says, r.seen)
		}
		v, err := r.verdict(all)
		switch {
		case err != nil:
			t.Errorf("%q: %v", r.says, err)
		case len(v.unplayed) > 0:
		case len(v.unproved) > 0 && r.unproved == "":
			t.Errorf("nothing shows %q on %s, and the list does not say why", r.says, strings.Join(v.unproved, ", "))
		case len(v.unproved) == 0 && r.unproved != "":
			t.Errorf("the list says why nothing shows %q, and something does", r.says)
		}
	}
}

func TestTheVerdictOnARule(t *testing.T) {
	m := mutants[slices.IndexFunc(mutants, func(m mutant) bool { return m.id == "request-fresh" })] // of 3.43.0 and 4.7.0
	var names []string
	for _, c := range comparisons {
		names = append(names, c.name)
	}
	both := []catch{{names[0], "3.43.0"}, {names[1], "4.7.0"}}
	for _, c := range []struct {
		name   string
		rule   rule
		result played
		want   verdict
	}{
		{"caught on each", rule{releases: "3.43.0, 4.7.0"}, played{Caught: both}, verdict{proved: []string{"3.43.0", "4.7.0"}}},
		{"the rule is of one release more", rule{releases: "3.21.3 on"}, played{Caught: both}, verdict{proved: []string{"3.43.0", "4.7.0"}, unproved: []string{"3.21.3"}}},
		{"passes on one", rule{releases: "3.43.0, 4.7.0"}, played{Caught: both[:1], Passed: names[1:]}, verdict{proved: []string{"3.43.0"}, unproved: []string{"4.7.0"}}},
		{"not played to the end", rule{releases: "3.43.0, 4.7.0"}, played{Caught: both[:1]}, verdict{proved: []string{"3.43.0"}, unplayed: []string{"4.7.0"}}},
		{"not played", rule{releases: "3.43.0, 4.7.0"}, played{}, verdict{unplayed: []string{"3.43.0", "4.7.0"}}},
	} {
		c.rule.mutants = []string{m.id}
		if got, err := c.rule.verdict(outcomes{m.id: c.result}); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	if got, err := (rule{releases: "4.7.0"}).verdict(nil); err != nil || len(got.unproved) != 1 {
		t.Errorf("without a mutant: %+v, %v", got, err)
	}
	if got, err := (rule{releases: "4.7.0", seen: "TestLostAnswers"}).verdict(nil); err != nil || len(got.proved) != 1 {
		t.Errorf("seen by a test: %+v, %v", got, err)
	}
}

func TestEachMutantNamesReleases(t *testing.T) {
	for _, m := range mutants {
		if _, err := m.brokenReleases(); err != nil {
			t.Error(err)
		}
	}
	for releases, want := range map[string]int{"all": 6, "3.4.2 to 3.12.4": 3, "3.21.3 on": 3, "3.43.0, 4.7.0": 2, "4.7.0": 1} {
		if got, err := (mutant{releases: releases}).brokenReleases(); err != nil || len(got) != want {
			t.Errorf("releases %q: %v, %v; want %d", releases, got, err, want)
		}
	}
	for _, wrong := range []string{"4.7.1", "3.12.4 to 3.4.2", "5 on"} {
		if got, err := (mutant{releases: wrong}).brokenReleases(); err == nil {
			t.Errorf("releases %q are taken for %v", wrong, got)
		}
	}
}

// The text that a mutant replaces must occur exactly once in its file. The error names the file and
// the mutant.
func TestAMutantThatLostItsPlaceIsAnError(t *testing.T) {
	for _, before := range []string{"func ", "no such text"} {
		_, err := mutant{id: "stray", file: "lock.go", before: before}.apply(root(t))
		if err == nil || !strings.Contains(err.Error(), "stray") || !strings.Contains(err.Error(), "lock.go") {
			t.Errorf("before %q: %v", before, err)
		}
	}
}

// A result counts for as long as the mutant and the function that it changes stay the same.
// Comments and other functions may change.
func TestAResultOfOtherCodeIsStale(t *testing.T) {
	m := mutants[slices.IndexFunc(mutants, func(m mutant) bool { return m.id == "late-subscription" })] // in giveUp
	whole, err := m.whole(root(t))
	if err != nil {
		t.Fatal(err)
	}
	was, err := m.digest(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, from, to string
		stale          bool
	}{
		{"nothing", "", "", false},
		{"a comment", "func (s *subscriptions) giveUp(", "// another comment\nfunc (s *subscriptions) giveUp(", false},
		{"another function", "e.users++\n", "e.users += 1\n", false},
		{"the function", "if !s.outlasts(e, s.client.response) {", "if !s.outlasts(e, 2*s.client.response) {", true},
	} {
		if !strings.Contains(whole, c.from) {
			t.Fatalf("%s: %s lacks %q", c.name, m.file, c.from)
		}
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, portDir), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, portDir, m.file), []byte(strings.Replace(whole, c.from, c.to, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		now, err := m.digest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if (now != was) != c.stale {
			t.Errorf("%s changed: the digest changed: %v, want %v", c.name, now != was, c.stale)
		}
	}
	m.after += " // more"
	if now, err := m.digest(root(t)); err != nil || now == was {
		t.Errorf("the mutant changed: %s, %v; want another digest than %s", now, err, was)
	}

	all := outcomes{"late-subscription": {Mutant: "another"}, "batch-owner": {}}
	if m, err := mutants[0].digest(root(t)); err != nil || mutants[0].id != "batch-owner" {
		t.Fatal(mutants[0].id, err)
	} else {
		all["batch-owner"] = played{Mutant: m, Caught: []catch{{"stories of rules", "4.7.0"}}}
	}
	stale, err := all.forgetStale(root(t))
	if err != nil || !slices.Equal(stale, []string{"late-subscription"}) || len(all) != 1 {
		t.Errorf("stale: %v, %v; left: %v", stale, err, all)
	}
	if !strings.Contains(table(all), "stories of rules (4.7.0)") {
		t.Error("the table does not tell what caught the mutant")
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
		{played{Caught: []catch{{names[0], "4.7.0"}}}, names[0] + " (4.7.0)"},
		{played{Caught: []catch{{names[0], "3.4.2, 3.11.0"}, {names[1], "4.7.0"}}}, names[0] + " (3.4.2, 3.11.0), " + names[1] + " (4.7.0)"},
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
		{options{parallel: 1, story: "renewal"}, nil, "-story needs -by"},
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
