package frame_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/internal/filetest"
)

// task asks the worker of these tests, which is this test, to die so many times before it answers.
type task struct {
	File   string // has a byte for each start
	Deaths int
	Wait   bool // for the end of the process that asks
}

func TestMain(m *testing.M) {
	frametest.AsProgram(func() {
		if os.Args[1] == "ask" { // a process that asks, and is killed meanwhile
			_ = frame.Away(context.Background(), "work", task{File: os.Args[2], Wait: true}, nil)
			return
		}
		code, err := frame.ServeTask(&frame.App{Out: os.Stdout}, func(t task) (any, error) {
			f, err := os.OpenFile(t.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			defer func() { _ = f.Close() }()
			if _, err := f.WriteString("."); err != nil {
				return nil, err
			}
			if t.Wait {
				select {}
			}
			text, err := os.ReadFile(t.File)
			if err == nil && len(text) <= t.Deaths {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return len(text), err
		})
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(frame.ExitDefect)
		}
		os.Exit(code)
	})
	m.Run()
}

// A task whose process is killed gets another process; a process that fails by itself is asked once.
func TestATaskOutlivesItsProcess(t *testing.T) {
	for _, c := range []struct {
		name   string
		task   task
		starts string
		want   string // in the error
	}{
		{"a process that lives", task{}, ".", ""},
		{"killed once", task{Deaths: 1}, "..", ""},
		{"killed twice", task{Deaths: 2}, "...", ""},
		{"killed again and again", task{Deaths: 9}, "...", "each of 3 processes that played it ended; the last one: signal: killed"},
		{"a process that fails", task{File: "/no/such/folder/file"}, "", "exit status 70: open /no/such/folder/file"},
	} {
		file := t.TempDir() + "/starts"
		if c.task.File == "" {
			c.task.File = file
			filetest.Write(t, file, "")
		}
		answer := 0
		err := frame.Away(t.Context(), "work", c.task, &answer)
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && (err != nil || answer != len(c.starts)) {
			t.Errorf("%s: %d, %v; want %q", c.name, answer, err, c.want)
		}
		if c.starts != "" && filetest.Read(t, file) != c.starts {
			t.Errorf("%s: %d starts, want %d", c.name, len(filetest.Read(t, file)), len(c.starts))
		}
	}
	if err := frame.Away(t.Context(), "work", struct{ File int }{1}, nil); err == nil || !strings.Contains(err.Error(), "exit status 70: the input has no task: ") {
		t.Errorf("a task of another kind: %v", err)
	}
}

// The process of a task ends with the process that asked, however that ends.
func TestATaskEndsWithItsParent(t *testing.T) {
	file := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "ask", file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = started.Close() }()
	if _, err := started.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if rest, err := io.ReadAll(started); err != nil || len(rest) > 0 { // until the process of the task ends
		t.Errorf("%q, %v", rest, err)
	}
}
