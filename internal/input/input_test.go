package input_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lockstep/internal/input"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	near := filepath.Join(dir, "misdelete.lockstep")
	if err := os.WriteFile(near, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rule, file, text, err string }{
		{"a file", file, "text", ""},
		{"a folder", dir, "", dir + " is a folder; check takes a history"},
		{"nothing", filepath.Join(dir, "no"), "", "there is no file " + filepath.Join(dir, "no") + "; check takes a history"},
		{"an ending that is misspelt", filepath.Join(dir, "misdelete.4.lokstep"), "", "there is no file " + filepath.Join(dir, "misdelete.4.lokstep") + "; check takes a history"},
		{"a file that is misspelt", filepath.Join(dir, "misdelet.lockstep"), "", "there is no file " + filepath.Join(dir, "misdelet.lockstep") + `; did you mean "` + near + `"? check takes a history`},
		{"a file in place of a folder", filepath.Join(file, "no"), "", filepath.Join(file, "no") + " cannot be read: " + syscall.ENOTDIR.Error()},
	} {
		text, err := input.Read(c.file, "check takes a history")
		if c.err == "" && (err != nil || string(text) != c.text) {
			t.Errorf("%s: %q, %v", c.rule, text, err)
		}
		if c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s: %v, want %s", c.rule, err, c.err)
		}
	}
}
