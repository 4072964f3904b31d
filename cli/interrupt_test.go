package cli

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/sim"
)

// A command that catches interrupts reports its results so far, and writes nothing that a reader
// could take for the whole.
func TestAnInterruptedCommandWritesNoTable(t *testing.T) {
	results := t.TempDir()
	if code, _, stderr := call(t, "run", "misdelete", "pause-past-lease", "--lock", "setnx-del", "--seed", "1", "--out", results); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, c := range []struct {
		args string
		says string
		soon bool // the command is interrupted at its beginning, not at its first line of progress
	}{
		{"matrix misdelete --lock setnx-del --seed 1..18446744073709551615 --format markdown", " of 18446744073709551615 runs; there is no table\n", true},
		{"report RESULTS -o OUT", "simrun: interrupted after 1 report; there is no index\n", false},
	} {
		out := t.TempDir()
		args := strings.Fields(strings.NewReplacer("RESULTS", results, "OUT", out).Replace(c.args))
		stop, interrupt := context.WithCancel(t.Context())
		stdout, stderr := &afterLines{lines: 1}, &afterLines{lines: 1}
		a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: stdout, Err: stderr, Stop: stop, Pace: 1}
		if c.soon {
			go func() {
				for !a.Caught.Load() {
					runtime.Gosched()
				}
				interrupt()
			}()
		} else {
			stderr.do = interrupt
		}
		code := a.Run(args)
		interrupt()
		if code != frame.ExitUndecided || stdout.Len() > 0 || !strings.Contains(stderr.String(), "simrun: interrupted after ") || !strings.HasSuffix(stderr.String(), c.says) {
			t.Errorf("%s: exit %d\n%s%s; want %q", c.args, code, stdout, stderr, c.says)
		}
		for _, whole := range []string{"index.html"} {
			if _, err := os.Stat(filepath.Join(out, whole)); err == nil {
				t.Errorf("%s: it wrote %s", c.args, whole)
			}
		}
	}
}
