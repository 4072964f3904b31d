// Package input opens the files that users name.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockstep/internal/nearest"
)

// Open opens a file that a user named. An error is a sentence that begins with the name, or says
// that there is no such file, and names a file of the same folder with a similar name. It ends with
// takes, such as "check takes a history", since the user may have meant another file.
func Open(file, takes string) (*os.File, error) {
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s; %s%s", file, nearest.Hint(near(file)), takes)
	case err != nil:
		return nil, cannot(file, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = cannot(file, err)
	case info.IsDir():
		err = fmt.Errorf("%s is a folder; %s", file, takes)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// Read reads a file that a user named. It returns the errors of Open.
func Read(file, takes string) ([]byte, error) {
	f, err := Open(file, takes)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		err = cannot(file, err)
	}
	return text, errors.Join(err, f.Close())
}

// near returns the file of the same folder and ending whose name resembles that of file; "" if there
// is none.
func near(file string) string {
	ending := filepath.Ext(file)
	others, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return ""
	}
	var known []string
	for _, other := range others {
		if !other.IsDir() && filepath.Ext(other.Name()) == ending {
			known = append(known, strings.TrimSuffix(other.Name(), ending))
		}
	}
	name := nearest.Near(strings.TrimSuffix(filepath.Base(file), ending), known)
	if name == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(file), name+ending)
}

// cannot says that a file cannot be read, without the name of the system call that package os puts
// before the reason.
func cannot(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be read: %w", file, err)
}
