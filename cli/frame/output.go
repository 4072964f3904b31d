package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"syscall"

	"lockstep/explore/spread"
	"lockstep/internal/foreign"
)

// ioError reports that the system could not read or write.
type ioError struct{ error }

func (e ioError) Unwrap() error { return e.error }

// IO returns an error of the system in reading or writing.
func IO(err error) error { return ioError{err} }

// unplayedError reports that something could not be played on real servers, as when a server died. Its
// exit code is that of an ioError.
type unplayedError struct{ error }

func (e unplayedError) Unwrap() error { return e.error }

// Unplayed returns an error of a run that could not be played on real servers.
func Unplayed(err error) error { return unplayedError{err} }

// FailedIO reports whether err is an error of the system in reading or writing. Bad input, such as
// a missing file, is an error of the user, unless the device is full or broken.
func FailedIO(err error) bool {
	var known ioError
	var unplayed unplayedError
	var bad UsageError
	var number syscall.Errno
	var queue *spread.QueueError
	if errors.As(err, &known) || errors.As(err, &unplayed) || errors.As(err, &queue) {
		return true
	}
	if errors.As(err, &bad) {
		return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.EIO)
	}
	return errors.As(err, &number)
}

// firstOf returns the first of several joined errors. A full disk fails every write after the
// first, and each says the same.
func firstOf(err error) error {
	for {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			return err
		}
		err = joined.Unwrap()[0]
	}
}

// output is the output of a command. It keeps the first error, since most commands do not check the
// errors of printing, and writes nothing after it.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(text []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err != nil {
		o.err = ioError{fmt.Errorf("the output: %w", err)}
	}
	return n, o.err
}

// clearLine goes to the beginning of the line of progress, and clears it.
const clearLine = "\r\x1b[K"

// watchOutput replaces the output by a writer that keeps its error, and lets nothing that came from outside
// give commands to a terminal, as it also does with stderr. The returned function ends the
// command. If the output failed, it says so, and returns exitIO in place of the code, unless the
// code reports a defect of simrun.
func (a *App) watchOutput() (end func(code int) int) {
	o, stderr := &output{to: a.Out}, a.Err
	var colours []string
	if a.colour {
		colours = sequences()
	}
	a.Out, a.Workflow = foreign.NewTerminal(o, colours...), o
	a.Err = foreign.NewTerminal(a.Err, clearLine)
	return func(code int) int {
		defer func() { a.Out, a.Err = o.to, stderr }()
		if o.err == nil || code == ExitDefect || code == ExitIO {
			return code
		}
		return a.failIO(o.err)
	}
}

// failIO says that the system could not read or write, or could not play on real servers. A nested
// command leaves this to the outer command.
func (a *App) failIO(err error) int {
	a.Failed = firstOf(err)
	var unplayed unplayedError
	switch {
	case a.nested:
	case errors.As(err, &unplayed):
		a.Complain("%v", a.Failed)
	default:
		a.Complain("input or output failed: %v", withoutTemporary(a.Failed))
	}
	return ExitIO
}

// temporary matches the name of a file that is written before it gets its name.
var temporary = regexp.MustCompile(`^\.(.+?)[0-9]{6,}$`)

// withoutTemporary puts the name of a file into an error in place of the name of its temporary file.
func withoutTemporary(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	dir, base := filepath.Split(path.Path)
	name := temporary.FindStringSubmatch(base)
	if name == nil {
		return err
	}
	return fmt.Errorf("%s %s%s: %w", path.Op, dir, name[1], path.Err)
}

// Captured returns what print writes to stdout.
func (a *App) Captured(print func()) []byte {
	var b bytes.Buffer
	stdout := a.Out
	a.Out = &b
	print()
	a.Out = stdout
	return b.Bytes()
}
