package locktest

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/internal/foreign"
)

// A speaker prints to the output of a test, of which a name can make no command of a terminal or a workflow.
type speaker struct{ test testing.TB }

// say returns the speaker of a test. The package prints by speakers only.
func say(t testing.TB) speaker { return speaker{t} }

func (s speaker) Log(args ...any) {
	s.test.Helper()
	s.test.Log(shown(args))
}

func (s speaker) Logf(format string, args ...any) {
	s.test.Helper()
	s.test.Log(foreign.Lines(fmt.Sprintf(format, args...)))
}

func (s speaker) Error(args ...any) {
	s.test.Helper()
	s.test.Error(shown(args))
}

func (s speaker) Errorf(format string, args ...any) {
	s.test.Helper()
	s.test.Error(foreign.Lines(fmt.Sprintf(format, args...)))
}

func (s speaker) Fatal(args ...any) {
	s.test.Helper()
	s.test.Fatal(shown(args))
}

func (s speaker) Fatalf(format string, args ...any) {
	s.test.Helper()
	s.test.Fatal(foreign.Lines(fmt.Sprintf(format, args...)))
}

func (s speaker) Skip(args ...any) {
	s.test.Helper()
	s.test.Skip(shown(args))
}

func (s speaker) Skipf(format string, args ...any) {
	s.test.Helper()
	s.test.Skip(foreign.Lines(fmt.Sprintf(format, args...)))
}

// shown returns arguments as a test shows them, with a blank between each two.
func shown(args []any) string { return foreign.Lines(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
