package simrun

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruptions are the signals that end a command: a terminal sends the first, and kill the second.
var interruptions = []os.Signal{os.Interrupt, syscall.SIGTERM}

// printed notes the exit code of a result that is printed before the command ends.
func (a *app) printed(code int) {
	if code == exitUnexpected {
		a.bug.Store(true)
	}
}

// interruptedCode returns the exit code of an interrupted command: exitUnexpected if it printed a bug,
// and else exitUndecided.
func (a *app) interruptedCode() int {
	if a.bug.Load() {
		return exitUnexpected
	}
	return exitUndecided
}

// interruptible returns a context that an interrupt ends. The command then reports its results so
// far. The context of a nested command ends with the context of the outer command.
func (a *app) interruptible() (stop context.Context, release func()) {
	a.caught.Store(true)
	if a.stop != nil {
		return context.WithCancel(a.stop)
	}
	return signal.NotifyContext(context.Background(), interruptions...)
}

// endOnInterrupt ends the program at an interrupt, unless the command catches interrupts.
func (a *app) endOnInterrupt() (release func()) {
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
			if a.caught.Load() {
				continue
			}
			a.status("")
			fmt.Fprintln(a.err, "simrun: interrupted")
			a.end(a.interruptedCode())
		}
	}()
	return func() { signal.Stop(signals); close(released) }
}

// end ends the program.
func (a *app) end(code int) {
	if a.exit != nil {
		a.exit(code)
		return
	}
	os.Exit(code)
}
