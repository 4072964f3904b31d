package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"lockstep/internal/longtest"
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

// A mutant that does not compile is caught by nothing but the compiler.
func TestEachMutantCompiles(t *testing.T) {
	if !longtest.Asked() {
		t.Skip("set LOCKSTEP_LONG=1 to compile each mutant")
	}
	for _, m := range mutants {
		overlay, err := m.overlay(root(t), t.TempDir())
		if err != nil {
			t.Error(err)
			continue
		}
		build := exec.Command("go", "build", "-overlay", overlay, "./"+portDir)
		build.Dir = root(t)
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("mutant %s: %v\n%s", m.id, err, out)
		}
	}
}
