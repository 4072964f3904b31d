// Package frame is the frame of a program with commands: how the program is called, what its options
// take, what it says while it works, how an interrupt ends it, and its exit codes.
package frame

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"lockstep/explore/spread"
	"lockstep/internal/foreign"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Exit codes. If several apply, the first in the order 70, 64, 74, 1, 2, 0 counts.
const (
	ExitOK         = 0
	ExitUnexpected = 1  // a verdict that was not expected; check: not linearizable
	ExitUndecided  = 2  // undecided, nondeterministic, or interrupted
	ExitUsage      = 64 // bad input; nothing was run or written
	ExitDefect     = 70 // a defect of the program itself
	ExitIO         = 74 // the system could not read or write, as on a full disk
)

// A Program is a command line: its commands, and what they need beside the registered locks.
type Program struct {
	Name  string // of the program, and of its folder in cmd/
	About string // the help above the list of commands
	More  string // the help below it
	// Commands returns the commands for users by their groups, and the hidden parts of commands,
	// with which the program starts itself.
	Commands func(a *App) (groups []Group, parts []*cobra.Command)
	// Endings has the command for a file that stands in place of a command, by the ending of the file.
	Endings map[string]string
	// Unknown says more about a name that is no command; nil, or an error of nil: there is no more to say.
	Unknown func(a *App, name string) error
	// Moved has the command of another program that took the place of a command, by its name.
	Moved map[string]string
	// Register is called before a command, to register locks; nil: all are registered.
	Register func(*sim.Host) error
	// Before is called before Register. If done, the program ends with the code; nil: it goes on.
	Before func(args []string) (code int, done bool)
	Means
}

// A Group is a part of the list of commands.
type Group struct {
	Title    string
	Commands []*cobra.Command
}

// Means are the parts of a program that some programs lack.
type Means struct {
	// Live plays scenarios on real servers; nil: the program does not.
	Live play.LivePlayer
	// Farm spreads campaigns over machines; nil: the program has no command farm.
	Farm spread.Engine
	// Own are the names of the locks that this program has beside the built-in ones.
	Own []string
	// Others are the locks that the program in peers/ has and this program lacks.
	Others []Other
	// Shrinking is the number of runs that making one failure small may take; 0: 600.
	Shrinking int
}

// ShrinkBudget limits the runs that shrinking one failure takes.
func (m Means) ShrinkBudget() int { return cmp.Or(m.Shrinking, 600) }

// An Other is a lock of another program.
type Other struct {
	Name string `json:"name"`
	// OnlySimulated reports whether no program starts the servers of the lock.
	OnlySimulated bool `json:"only_simulated"`
}

// App is one call of a program.
type App struct {
	Program
	Host *sim.Host
	args []string // of the program
	code int      // of its exit, unless there is an error
	Out  io.Writer
	Err  io.Writer
	// Workflow is Out for the commands of a workflow of GitHub, as report.WriteGitHub writes them.
	Workflow io.Writer
	colour   bool
	TTY      bool // stderr is a terminal
	brief    bool // stderr gets progress and errors only
	Quiet    bool // stderr gets no progress, and a table only the results that were not as expected
	speech   sync.Mutex
	Exit     func(int)        // ends the program; nil: os.Exit
	Now      func() time.Time // of interrupts; nil: time.Now
	nested   bool             // another command of the program runs this one
	Stop     context.Context  // of the command around a nested one; may be nil
	Caught   atomic.Bool      // the command catches interrupts
	bug      atomic.Bool      // the command has printed a bug, see Printed
	Failed   error            // the error of the system, if the exit code is exitIO
	// Pace is the least time between two lines of progress; 0: paceOnTerminal or paceElsewhere.
	Pace time.Duration
	// folders are the folders into which only this process writes; see Folder.
	folders []os.FileInfo
}

// Main runs the command that the arguments name and ends the program with its exit code.
func Main(p Program) {
	if why := sim.Unsuited(); why != "" {
		fmt.Fprintf(foreign.NewTerminal(os.Stderr), "%s: %s\n", p.Name, why)
		os.Exit(ExitUsage)
	}
	sim.Main(func(h *sim.Host) int {
		if p.Before != nil {
			if code, done := p.Before(os.Args[1:]); done {
				return code
			}
		}
		for _, l := range p.Others {
			subject.Elsewhere(l.Name)
		}
		if p.Register != nil {
			if err := p.Register(h); err != nil {
				fmt.Fprintf(foreign.NewTerminal(os.Stderr), "%s: %v\n", p.Name, err)
				return ExitUsage
			}
		}
		a := &App{Program: p, Host: h, Out: os.Stdout, Err: os.Stderr, TTY: terminal(os.Stderr)}
		a.colour = terminal(os.Stdout) && os.Getenv("NO_COLOR") == ""
		return a.Run(os.Args[1:])
	})
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Complain prints an error to stderr, with the name of the program.
func (a *App) Complain(format string, args ...any) {
	fmt.Fprintf(a.Err, "%s: %s\n", a.Name, fmt.Sprintf(format, args...))
}

// Warn is say with the name of the program.
func (a *App) Warn(format string, args ...any) {
	a.Say("%s: %s", a.Name, fmt.Sprintf(format, args...))
}

// UsageError reports bad input. Its message goes to stderr, and nothing was run.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage returns an error of bad input.
func Usage(err error) error { return UsageError{err} }

// Usagef returns an error of bad input.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// InterruptedError reports that a command was interrupted before its result was complete. Its text follows
// the word "interrupted", and names the place of the interrupt, the results that were kept, or
// both.
type InterruptedError string

func (e InterruptedError) Error() string { return "interrupted" + string(e) }

// Run runs the command that the arguments name, and returns the exit code of the program.
func (a *App) Run(args []string) (code int) {
	end := a.watchOutput()
	defer func() { code = end(code) }()
	defer func() {
		if r := recover(); r != nil {
			a.Complain("a defect of %s: %v", a.Name, r)
			code = ExitDefect
		}
	}()
	for _, arg := range args {
		if strings.ContainsFunc(arg, unicode.IsControl) {
			a.Complain("the argument %q has a control character, such as a line break; no name or path may have one", arg)
			return ExitUsage
		}
	}
	args = a.withCommand(args)
	a.args, a.code = args, ExitOK
	root := a.Root()
	root.SetArgs(append([]string{}, args...)) // not nil, for which cobra takes the arguments of the program
	err := root.Execute()
	var bad UsageError
	var stopped InterruptedError
	switch {
	case FailedIO(err):
		return a.failIO(err)
	case errors.As(err, &stopped):
		a.Complain("%v", err)
		return a.interruptedCode()
	case errors.As(err, &bad):
		a.Complain("%s", a.hinted(err, args))
		return ExitUsage
	case err != nil:
		a.Complain("%v", err)
		return ExitDefect
	}
	return a.code
}

// Nested returns a call that a command makes of another command of p. Its output goes to out. It
// ends with stop. On a terminal it shows its progress; elsewhere it writes it to quiet.
func (a *App) Nested(p Program, stop context.Context, out, quiet io.Writer) *App {
	n := &App{Program: p, Host: a.Host, Out: out, Err: quiet, TTY: a.TTY, brief: a.TTY, folders: a.folders, nested: true, Stop: stop}
	if a.TTY {
		n.Err = a.Err
	}
	return n
}

// verdictColours are the ANSI colours of the verdicts. A colour is never the only sign.
var verdictColours = map[string]string{"held": "32", "bug": "31", "limit": "33", "undecided": "35", "nondeterministic": "35"}

// Paint returns a text in the colour of a verdict, if the output has colours.
func (a *App) Paint(word, padded string) string {
	if c := verdictColours[word]; a.colour && c != "" {
		return inColour(c) + padded + noColour
	}
	return padded
}

const noColour = "\x1b[0m"

func inColour(c string) string { return "\x1b[" + c + "m" }

// sequences returns the sequences with which Paint changes the colour.
func sequences() []string {
	all := []string{noColour}
	for _, c := range verdictColours {
		all = append(all, inColour(c))
	}
	return all
}
