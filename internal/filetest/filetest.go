// Package filetest reads folders for tests.
package filetest

import (
	"io/fs"
	"os"
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
