package frame

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// interruptions are the signals that end a command: a terminal sends the first, and kill the second.
var interruptions = []os.Signal{os.Interrupt, syscall.SIGTERM}

// Printed notes the exit code of a result that is printed before the command ends.
func (a *App) Printed(code int) {
	if code == ExitUnexpected {
		a.bug.Store(true)
	}
}

// interruptedCode returns the exit code of an interrupted command: exitUnexpected if it printed a bug,
// and else exitUndecided.
func (a *App) interruptedCode() int {
	if a.bug.Load() {
		return ExitUnexpected
	}
	return ExitUndecided
}

// Interruptible returns a context that an interrupt ends. The command then reports its results so
// far. The context of a nested command ends with the context of the outer command.
func (a *App) Interruptible() (stop context.Context, release func()) {
	a.Caught.Store(true)
	if a.Stop != nil {
		return context.WithCancel(a.Stop)
	}
	return signal.NotifyContext(context.Background(), interruptions...)
}

// endOnInterrupt ends the program at an interrupt, unless the command catches interrupts.
func (a *App) endOnInterrupt() (release func()) {
	if a.nested {
		return func() {}
	}
	signals, released := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, interruptions...)
	go func() {
		for {
			select {
			case <-signals:
			case <-released:
				return
			}
			if a.Caught.Load() {
				continue
			}
			a.Status("")
			a.Complain("interrupted")
			a.end(a.interruptedCode())
		}
	}()
	return func() { signal.Stop(signals); close(released) }
}

// end ends the program.
func (a *App) end(code int) {
	if a.Exit != nil {
		a.Exit(code)
		return
	}
	os.Exit(code)
}

// togetherMost is the largest distance between two signals that count as one interrupt. The program
// timeout, for example, sends its signal to a program, and at once again to the whole process
// group.
const togetherMost = time.Second

func (a *App) clock() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// Interrupts returns a context that the first interrupt ends. The command then reports its results
// so far. A second interrupt calls cleanup and ends the program.
func (a *App) Interrupts(cleanup func()) (stop context.Context, release func()) {
	a.Caught.Store(true)
	stop, end := context.WithCancel(context.Background())
	released := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, interruptions...)
	go func() {
		var first time.Time
		for {
			select {
			case <-signals:
			case <-released:
				return
			}
			if !first.IsZero() {
				if a.clock().Sub(first) < togetherMost {
					continue
				}
				cleanup()
				a.Warn("interrupted again; the results that are kept in a folder stay there")
				a.end(a.interruptedCode())
				return
			}
			a.Warn("interrupted; the results so far follow. Interrupt again to end at once")
			first = a.clock()
			end()
		}
	}()
	return stop, sync.OnceFunc(func() { signal.Stop(signals); close(released); end() })
}
