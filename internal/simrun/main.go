// Package simrun implements the command line. It runs the registered locks in a simulated
// world and reports which of their promises they kept. See simrun help.
package simrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lockstep/sim"
)

// Exit codes. If several apply, the first in the order 70, 64, 74, 1, 2, 0 counts.
const (
	exitOK         = 0
	exitUnexpected = 1  // a verdict that was not expected; check: not linearizable
	exitUndecided  = 2  // undecided, nondeterministic, or interrupted
	exitUsage      = 64 // bad input; nothing was run or written
	exitDefect     = 70 // a defect of simrun itself
	exitIO         = 74 // the system could not read or write, as on a full disk
)

// app is one call of simrun.
type app struct {
	host   *sim.Host
	args   []string // of the program
	code   int      // of its exit, unless there is an error
	out    io.Writer
	err    io.Writer
	colour bool
	tty    bool // stderr is a terminal
	brief  bool // stderr gets progress and errors only
	quiet  bool // stderr gets no progress, and a table only the results that were not as expected
	speech sync.Mutex
	exit   func(int)        // ends the program; nil: os.Exit
	now    func() time.Time // of interrupts; nil: time.Now
	nested bool             // another command of simrun runs this one
	stop   context.Context  // of the command around a nested one; may be nil
	caught atomic.Bool      // the command catches interrupts
	bug    atomic.Bool      // the command has printed a bug, see printed
	failed error            // the error of the system, if the exit code is exitIO
	// pace is the least time between two lines of progress; 0: paceOnTerminal or paceElsewhere.
	pace time.Duration
	// folders are the folders into which only this process writes; see folder.
	folders []os.FileInfo
}

// Main runs the command that the arguments name and ends the program with its exit code. If
// register is not nil, Main calls it first, to register more locks.
func Main(register func(*sim.Host) error) {
	sim.Main(func(h *sim.Host) int {
		if engine != nil && len(os.Args) > 1 && os.Args[1] == queueCommand {
			return serveQueue(os.Args[2:], os.Stdin, os.Stdout)
		}
		if register != nil {
			if err := register(h); err != nil {
				fmt.Fprintf(os.Stderr, "simrun: %v\n", err)
				return exitUsage
			}
		}
		a := &app{host: h, out: os.Stdout, err: os.Stderr, tty: terminal(os.Stderr)}
		a.colour = terminal(os.Stdout) && os.Getenv("NO_COLOR") == ""
		return a.main(os.Args[1:])
	})
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// usageError reports bad input. Its message goes to stderr, and nothing was run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// interruptedError reports that a command was interrupted before its result was complete. Its text follows
// the word "interrupted", and names the place of the interrupt, the results that were kept, or
// both.
type interruptedError string

func (e interruptedError) Error() string { return "interrupted" + string(e) }

func (a *app) main(args []string) (code int) {
	end := a.watchOutput()
	defer func() { code = end(code) }()
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(a.err, "simrun: a defect of simrun: %v\n", r)
			code = exitDefect
		}
	}()
	args = withCommand(args)
	a.args, a.code = args, exitOK
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // not nil, for which cobra takes the arguments of the program
	err := root.Execute()
	var bad usageError
	var stopped interruptedError
	switch {
	case failedIO(err):
		return a.failIO(err)
	case errors.As(err, &stopped):
		fmt.Fprintf(a.err, "simrun: %v\n", err)
		return a.interruptedCode()
	case errors.As(err, &bad):
		fmt.Fprintf(a.err, "simrun: %s\n", hinted(err, args))
		return exitUsage
	case err != nil:
		fmt.Fprintf(a.err, "simrun: %v\n", err)
		return exitDefect
	}
	return a.code
}

// verdictColours are the ANSI colours of the verdicts. A colour is never the only sign.
var verdictColours = map[string]string{"held": "32", "bug": "31", "limit": "33", "undecided": "35", "nondeterministic": "35"}

func (a *app) paint(word, padded string) string {
	if c := verdictColours[word]; a.colour && c != "" {
		return "\x1b[" + c + "m" + padded + "\x1b[0m"
	}
	return padded
}
