package frame

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

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

// Away starts this program again with a command that takes a task, and reads its answer. The
// process has the environment of this one and the variables of env.
func Away(stop context.Context, command string, task, answer any, env ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(stop, self, command, string(text))
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal goes to simrun alone
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, answer)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, stderr.String())
	}
	return nil
}

// Kept returns the answer to a task that an interrupted command kept in a folder under this name.
// If there is none, or if it belongs to another task, kept calls ask and keeps the answer. If dir
// is "", it keeps nothing.
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
		err = renameio.WriteFile(file, text, 0o644)
	}
	return answer, err
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
