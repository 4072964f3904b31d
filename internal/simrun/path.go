package simrun

import (
	"errors"
	"io/fs"
	"os"
)

// inputFolder returns an error if dir, from which a command reads, is not a folder. takes says what
// the command takes.
func inputFolder(dir, takes string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("there is no folder %s; %s", dir, takes)
	case err != nil:
		return usageError{err}
	case !info.IsDir():
		return usagef("%s is a file; %s", dir, takes)
	}
	return nil
}

// unwritable says that the file or the folder that an option names cannot be written. The reason
// does not name the temporary file.
func unwritable(option, name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return usagef("%s %s cannot be written: %w", option, name, err)
}

// outputFolder makes the folder that an option names.
func outputFolder(option, dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return usagef("%s %s is a file; name a folder", option, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return unwritable(option, dir, err)
	}
	return nil
}
