package input_test

import (
	"os"
	"path/filepath"
	"strings"
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
		text, err := input.Read(c.file, "check takes a history", 1<<20)
		if c.err == "" && (err != nil || string(text) != c.text) {
			t.Errorf("%s: %q, %v", c.rule, text, err)
		}
		if c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s: %v, want %s", c.rule, err, c.err)
		}
	}
}

// A text is refused from its first bytes, however long the file is.
func TestAFileThatIsNoTextIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	const most = 200_000
	for _, c := range []struct{ rule, text, says string }{
		{"a text", "# comment\n\ntext", ""},
		{"comments and no more", "# comment\n\n", ""}, // its reader says what is missing
		{"a long text", strings.Repeat("x", most), ""},
		{"a text that is too long", strings.Repeat("x", most+1), " has more than 200000 bytes; run takes a scenario"},
		{"zeros", "text\x00", " is no text; run takes a scenario"},
		{"blanks", strings.Repeat(" ", most), " are blanks and comments; run takes a scenario"},
		{"empty lines", strings.Repeat("\n", most), " are blanks and comments; run takes a scenario"},
		{"comments", strings.Repeat("# x\n", most), " are blanks and comments; run takes a scenario"},
		{"a text after many comments", strings.Repeat("# x\n", 1000) + "text", ""},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		text, err := input.Read(file, "run takes a scenario", most)
		if c.says == "" && (err != nil || string(text) != c.text) || c.says != "" && (err == nil || !strings.HasSuffix(err.Error(), c.says)) {
			t.Errorf("%s: %d bytes, %v; want %q", c.rule, len(text), err, c.says)
		}
	}
	if text, err := input.Read("/dev/zero", "run takes a scenario", most); err == nil {
		t.Errorf("/dev/zero has %d bytes of text", len(text))
	}
	if got := input.Head("/dev/zero"); len(got) == 0 || len(got) > most {
		t.Errorf("the head of /dev/zero has %d bytes", len(got))
	}
}
