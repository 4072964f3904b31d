// Package input opens the files that users name.
package input

import (
	"bytes"
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
		return nil, Cannot(file, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = Cannot(file, err)
	case info.IsDir():
		err = fmt.Errorf("%s is a folder; %s", file, takes)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// headMost is the number of bytes in which a text begins.
const headMost = 64 << 10

// Read reads a text of at most most bytes from a file that a user named. It returns the errors of Open. It refuses a
// file from its first bytes if they are no text, or nothing but blanks and comments that begin with #.
func Read(file, takes string, most int64) ([]byte, error) {
	f, err := Open(file, takes)
	if err != nil {
		return nil, err
	}
	text, err := read(f, file, takes, most)
	return text, errors.Join(err, f.Close())
}

func read(f io.Reader, file, takes string, most int64) ([]byte, error) {
	var text bytes.Buffer
	size, err := text.ReadFrom(io.LimitReader(f, headMost))
	switch {
	case err != nil:
		return nil, Cannot(file, err)
	case bytes.IndexByte(text.Bytes(), 0) >= 0:
		return nil, fmt.Errorf("%s is no text; %s", file, takes)
	case size == headMost && empty(text.Bytes()):
		return nil, fmt.Errorf("the first %d bytes of %s are blanks and comments; %s", size, file, takes)
	}
	more, err := text.ReadFrom(io.LimitReader(f, most-size+1))
	switch {
	case err != nil:
		return nil, Cannot(file, err)
	case size+more > most:
		return nil, fmt.Errorf("%s has more than %d bytes; %s", file, most, takes)
	}
	return text.Bytes(), nil
}

// empty reports whether text has only blanks and comments.
func empty(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// Head returns the first bytes of a file, from which its kind can be known; nil if it cannot be read.
func Head(file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, headMost))
	if err != nil {
		return nil
	}
	return text
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

// Cannot says that a file or a folder cannot be read, without the name of the system call that package os puts
// before the reason.
func Cannot(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be read: %w", file, err)
}
