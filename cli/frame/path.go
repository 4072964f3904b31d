package frame

import (
	"errors"
	"io/fs"
	"os"

	"lockstep/internal/input"
)

// InputFolder returns an error if dir, from which a command reads, is not a folder. takes says what
// the command takes.
func InputFolder(dir, takes string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return Usagef("there is no folder %s; %s", dir, takes)
	case err != nil:
		return UsageError{input.Cannot(dir, err)}
	case !info.IsDir():
		return Usagef("%s is a file; %s", dir, takes)
	}
	return nil
}

// Unwritable says that the file or the folder that an option names cannot be written. The reason
// does not name the temporary file.
func Unwritable(option, name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return Usagef("%s %s cannot be written: %w", option, name, err)
}

// OutputFolder makes the folder that an option names.
func OutputFolder(option, dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Usagef("%s %s is a file; name a folder", option, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Unwritable(option, dir, err)
	}
	return nil
}
