// Package input opens the files that users name.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a file that a user named. An error is a sentence that begins with the name, or says
// that there is no such file. It ends with takes, such as "check takes a history", if the user may
// have meant another file.
func Open(file, takes string) (*os.File, error) {
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s; %s", file, takes)
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

// cannot says that a file cannot be read, without the name of the system call that package os puts
// before the reason.
func cannot(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be read: %w", file, err)
}
