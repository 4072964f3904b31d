package frame

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// A message names the file that a command writes, and not the temporary file of that name.
func TestAMessageNamesNoTemporaryFile(t *testing.T) {
	for tried, want := range map[string]string{
		"out/.p.html6374967677377547931": "write out/p.html: no space left on device",
		".p.html6374967677377547931":     "write p.html: no space left on device",
		"out/p.html":                     "write out/p.html: no space left on device",
		".config":                        "write .config: no space left on device",
	} {
		err := fmt.Errorf("%w", &fs.PathError{Op: "write", Path: tried, Err: syscall.ENOSPC})
		if got := withoutTemporary(err).Error(); got != want {
			t.Errorf("%s: %s, want %s", tried, got, want)
		}
	}
}

// An option that takes tags may be repeated, and takes no empty one.
func TestTagsMayBeRepeated(t *testing.T) {
	var all []string
	for _, text := range []string{"stories", "fenced", ""} {
		if err := (tags{&all}).Set(text); (err != nil) != (text == "") {
			t.Errorf("--tag %q: %v", text, err)
		}
	}
	if got := (tags{&all}).String(); got != "stories,fenced" {
		t.Errorf("the tags are %s", got)
	}
}

func TestBothSignalsInterrupt(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		stop, release := (&App{}).Interruptible()
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
	a := &App{Program: Program{Name: SimrunName}, Err: &stderr, Exit: func(code int) { exited <- code }}
	defer a.endOnInterrupt()()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := <-exited; code != ExitUndecided || stderr.String() != "simrun: interrupted\n" {
		t.Errorf("exit %d, %s", code, &stderr)
	}
}

// The output of a command lets its own colours through, and no others.
func TestColoursReachTheTerminal(t *testing.T) {
	var b bytes.Buffer
	a := &App{colour: true, Out: &b, Err: &b}
	a.watchOutput()
	want := ""
	for word := range verdictColours {
		text := a.Paint(word, word)
		fmt.Fprint(a.Out, text)
		want += text
	}
	if fmt.Fprint(a.Out, "\x1b[5m"); b.String() != want+`\u001b[5m` {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
