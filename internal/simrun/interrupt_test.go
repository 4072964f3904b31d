package simrun

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"lockstep/sim"
)

func TestBothSignalsInterrupt(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		stop, release := (&app{}).interruptible()
		if err := syscall.Kill(os.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
		<-stop.Done()
		release()
	}
}

// A command that does not catch interrupts says that it was interrupted, and its exit code is that
// of all interrupted commands.
func TestAnInterruptThatNobodyCatchesEndsTheProgram(t *testing.T) {
	var stderr bytes.Buffer
	exited := make(chan int)
	a := &app{err: &stderr, exit: func(code int) { exited <- code }}
	defer a.endOnInterrupt()()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := <-exited; code != exitUndecided || stderr.String() != "simrun: interrupted\n" {
		t.Errorf("exit %d, %s", code, &stderr)
	}
}

// A command that catches interrupts reports its results so far, and writes nothing that a reader
// could take for the whole.
func TestAnInterruptedCommandWritesNoTable(t *testing.T) {
	results := t.TempDir()
	if code, _, stderr := call(t, "run", "misdelete", "pause-past-lease", "--lock", "setnx-del", "--seed", "1", "--out", results); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, c := range []struct {
		args string
		says string
		soon bool // the command is interrupted at its beginning, not at its first line of progress
	}{
		{"matrix misdelete --lock setnx-del --seed 1..18446744073709551615 --format markdown", " of 18446744073709551615 runs; there is no table\n", true},
		{"kill unlock-by-anyone --seeds 1000000 -o OUT/table.md", "simrun: interrupted after 0 of 1 planted bug; there is no table\n", true},
		{"report RESULTS -o OUT", "simrun: interrupted after 1 report; there is no index\n", false},
	} {
		out := t.TempDir()
		args := strings.Fields(strings.NewReplacer("RESULTS", results, "OUT", out).Replace(c.args))
		stop, interrupt := context.WithCancel(t.Context())
		stdout, stderr := &afterLines{lines: 1}, &afterLines{lines: 1}
		a := &app{host: sim.NewHost(t), out: stdout, err: stderr, stop: stop, pace: 1}
		if c.soon {
			go func() {
				for !a.caught.Load() {
					runtime.Gosched()
				}
				interrupt()
			}()
		} else {
			stderr.do = interrupt
		}
		code := a.main(args)
		interrupt()
		if code != exitUndecided || stdout.Len() > 0 || !strings.Contains(stderr.String(), "simrun: interrupted after ") || !strings.HasSuffix(stderr.String(), c.says) {
			t.Errorf("%s: exit %d\n%s%s; want %q", c.args, code, stdout, stderr, c.says)
		}
		for _, whole := range []string{"table.md", "index.html"} {
			if _, err := os.Stat(filepath.Join(out, whole)); err == nil {
				t.Errorf("%s: it wrote %s", c.args, whole)
			}
		}
	}
	// A command of results ends with it, and what it printed is not written.
	stop, interrupt := context.WithCancel(t.Context())
	interrupt()
	r := &renewal{a: &app{host: sim.NewHost(t)}, stop: stop}
	if text, err := r.run("matrix", "misdelete", "--seed", "1"); !errors.Is(err, context.Canceled) || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
