// Package filetest reads and writes files and folders for tests.
package filetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Contents returns the text of each file of a folder by its name, relative to the folder and
// with forward slashes.
func Contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	folder := os.DirFS(dir)
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// WriteContents writes files into a folder, by the names that Contents gives them.
func WriteContents(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
}

// Read returns the text of a file.
func Read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write writes a file, and makes the folders above it.
func Write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
