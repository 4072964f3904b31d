package frame

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"lockstep/sim"
)

// OwnProcess returns the command that starts this program with a command that is not for users. The process
// is killed when quit ends.
func OwnProcess(quit context.Context, command string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(quit, self, command)
}

// WorkerMemory limits the heap of a process that plays long runs, which then has less than 512 MiB of memory in all.
const WorkerMemory = 400 << 20

// ServeParent serves questions of the process that started this one, on the input, with the memory of a worker. The
// process ends with its input.
func ServeParent(a *App, serve func(in io.Reader) error) error {
	sim.LimitMemory(WorkerMemory)
	questions, asked := io.Pipe()
	go func() {
		_, _ = io.Copy(asked, os.Stdin)
		os.Exit(ExitOK) // nobody needs the answer that is under way
	}()
	return serve(questions)
}

// awayTries is the number of processes that Away starts for a task while something kills them, as a system does
// that has no memory left.
const awayTries = 3

// Away starts this program again with a command that calls ServeTask, and reads its answer to a task. The
// process has the environment of this one and the variables of env, and ends with this one. If something kills
// it, another one gets the task.
func Away(stop context.Context, command string, task, answer any, env ...string) error {
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	for range awayTries {
		var out, stderr bytes.Buffer
		cmd := OwnProcess(stop, command)
		cmd.Stdout, cmd.Stderr = &out, &stderr
		cmd.Env = append(os.Environ(), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal goes to simrun alone
		in, problem := cmd.StdinPipe()
		if problem == nil {
			problem = cmd.Start()
		}
		if problem != nil {
			return problem
		}
		_, _ = in.Write(text) // a process that is gone is noticed at its end
		switch err = cmd.Wait(); {
		case err == nil:
			return json.Unmarshal(out.Bytes(), answer)
		case stop.Err() != nil:
			return stop.Err()
		case cmd.ProcessState.ExitCode() >= 0: // not killed
			return fmt.Errorf("%w: %s", err, stderr.String())
		}
	}
	return fmt.Errorf("each of %d processes that played it ended; the last one: %w", awayTries, err)
}

// SideBySide does all of n things, jobs of them at a time, and begins none once stop has ended.
func SideBySide(stop context.Context, jobs, n int, do func(i int)) {
	var all errgroup.Group
	all.SetLimit(jobs)
	for i := 0; i < n && stop.Err() == nil; i++ {
		all.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = all.Wait() // do keeps its errors
}

// ServeTask reads the task of Away.
func ServeTask[Task any](a *App, serve func(Task) (answer any, err error)) (int, error) {
	return ExitOK, ServeParent(a, func(in io.Reader) error {
		var task Task
		if err := json.NewDecoder(in).Decode(&task); err != nil {
			return Usage(fmt.Errorf("the input has no task: %w", err))
		}
		answer, err := serve(task)
		if err != nil {
			return err
		}
		return json.NewEncoder(a.Out).Encode(answer)
	})
}

// Kept returns the answer to a task that an interrupted command kept in a folder under this name.
// If there is none, or if it belongs to another task, kept calls ask and keeps the answer. If dir
// is "", it keeps nothing. A *NotKeptError comes with the answer.
func Kept[Task comparable, Answer any](dir, name string, task Task, ask func(Task) (Answer, error)) (Answer, error) {
	var done struct {
		Task   Task
		Answer Answer
	}
	file := filepath.Join(dir, name+".json")
	if text, err := os.ReadFile(file); dir != "" && err == nil && json.Unmarshal(text, &done) == nil && done.Task == task {
		return done.Answer, nil
	}
	answer, err := ask(task)
	if err != nil || dir == "" {
		return answer, err
	}
	done.Task, done.Answer = task, answer
	text, err := json.Marshal(done)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = WriteFile(file, append(text, '\n'))
	}
	if err != nil {
		err = NotKept(err)
	}
	return answer, err
}

// A NotKeptError is the error of an answer that could not be kept.
type NotKeptError struct{ error }

// NotKept returns a *NotKeptError.
func NotKept(err error) error { return &NotKeptError{err} }

func (e *NotKeptError) Unwrap() error { return e.error }

// WriteFile writes a file whole or not at all. Its errors name the file, and not a temporary one.
func WriteFile(file string, text []byte) error {
	err := renameio.WriteFile(file, text, 0o644)
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: file, Err: at.Err}
	}
	return err
}

// ProcessorTime returns the processor time of this process and of the children that
// it has waited for.
func ProcessorTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
