package main

import (
	"encoding/json"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// portDir is the package whose client code is changed, from the root of the
// repository.
const portDir = "lockimpl/redisson"

// apply returns the changed text of the mutant's file. It reads the file below root.
func (m mutant) apply(root string) (string, error) {
	text, err := m.whole(root)
	if err != nil {
		return "", err
	}
	return strings.Replace(text, m.before, m.after, 1), nil
}

// whole returns the text of the mutant's file. It fails unless the mutant's text occurs there
// exactly once.
func (m mutant) whole(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, portDir, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.before); n != 1 {
		return "", fmt.Errorf("mutant %s: its text occurs %d times in %s/%s, not once: %q", m.id, n, portDir, m.file, m.before)
	}
	return string(text), nil
}

// declaration returns the text of the declaration that the mutant changes, without comments.
func (m mutant) declaration(root string) (string, error) {
	text, err := m.whole(root)
	if err != nil {
		return "", err
	}
	same := 0 // the change begins here
	for same < min(len(m.before)-1, len(m.after)) && m.before[same] == m.after[same] {
		same++
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, m.file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	at := fset.File(parsed.FileStart).Pos(strings.Index(text, m.before) + same)
	for _, d := range parsed.Decls {
		if d.Pos() <= at && at <= d.End() {
			var b strings.Builder
			err := format.Node(&b, fset, d)
			return b.String(), err
		}
	}
	return "", fmt.Errorf("mutant %s changes no declaration of %s/%s: %q", m.id, portDir, m.file, m.before)
}

// overlay writes the file for the -overlay flag of the go command into dir, and
// returns its path. It changes nothing below root.
func (m mutant) overlay(root, dir string) (string, error) {
	text, err := m.apply(root)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, m.id+".go.txt")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, portDir, m.file): file}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, m.id+".overlay.json")
	return path, os.WriteFile(path, list, 0o666)
}
