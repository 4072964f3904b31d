package frame

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// A Target is a file that is replaced completely or not at all.
type Target struct{ file string }

// NewTarget checks before any run that file can be written. It refuses the file that the
// command reads, from.
func NewTarget(file, from string) (*Target, error) {
	t := &Target{file}
	switch info, err := os.Stat(file); {
	case file == "":
		return nil, Usagef("-o needs a file")
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, Usagef("-o: %w", err)
	case info.IsDir():
		return nil, Usagef("-o %s is a folder; give a file", file)
	case !info.Mode().IsRegular():
		return nil, Usagef("-o %s is no ordinary file; without -o the result goes to stdout", file)
	default:
		if read, err := os.Stat(from); err == nil && os.SameFile(info, read) {
			return nil, Usagef("-o %s is the recording itself; name another file", file)
		}
		// Replace the file that a link names, not the link.
		if t.file, err = filepath.EvalSymlinks(file); err != nil {
			return nil, Usagef("-o: %w", err)
		}
	}
	if err := InputFolder(filepath.Dir(t.file), "-o takes a file in a folder that exists"); err != nil {
		return nil, err
	}
	tmp, err := renameio.TempFile("", t.file)
	if err != nil {
		return nil, Unwritable("-o", file, err)
	}
	return t, tmp.Cleanup()
}

// Replace writes the file.
func (t *Target) Replace(text []byte) error {
	return renameio.WriteFile(t.file, text, 0o644, renameio.WithExistingPermissions())
}
