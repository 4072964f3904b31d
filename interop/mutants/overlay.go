package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// portDir is the package whose client code is changed, from the root of the
// repository.
const portDir = "lockimpl/redisson"

// apply returns the changed text of the mutant's file. It reads the file below root.
func (m mutant) apply(root string) (string, error) {
	path := filepath.Join(root, portDir, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.before); n != 1 {
		return "", fmt.Errorf("mutant %s: its text occurs %d times in %s/%s, not once: %q", m.id, n, portDir, m.file, m.before)
	}
	return strings.Replace(string(text), m.before, m.after, 1), nil
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
