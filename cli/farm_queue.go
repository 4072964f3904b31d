package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore/spread"
	"lockstep/internal/foreign"
)

// farmQueueCommand is the command with which simrun starts itself as the queue of a farm. It is not for
// users. The queue has a process of its own, in which no world runs. An engine may be a server that
// worlds use, too, and a world leaves such a server with a clock that stands still.
const farmQueueCommand = "farm-queue"

// removeQueue removes the queue of a campaign that was removed from the folder of a farm. A folder without
// the page of a farm has no such queue.
func removeQueue(dir string) error {
	queue := filepath.Join(dir, farmQueue)
	if _, err := os.Stat(filepath.Join(dir, FarmPageFile)); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(queue); err == nil {
			return frame.Usagef("farm: --dir: %s would be removed, and the command farm did not write it; name another folder", queue)
		}
	}
	return os.RemoveAll(queue)
}

// ServeFarm serves the queue of a farm if the arguments of the program say so. It is called before
// the program registers its locks. done reports whether it did.
func ServeFarm(engine spread.Engine, args []string, in io.Reader, out io.Writer) (code int, done bool) {
	if engine == nil || len(args) == 0 || args[0] != farmQueueCommand {
		return 0, false
	}
	return serveQueue(engine, args[1:], in, out), true
}

// serveQueue starts the engine on a folder, writes its URL in a line, and ends with in.
func serveQueue(engine spread.Engine, args []string, in io.Reader, out io.Writer) int {
	dir, listen := args[0], args[1]
	lock, err := lockQueue(dir)
	if err != nil {
		fmt.Fprintln(foreign.NewTerminal(os.Stderr), err)
		return frame.ExitIO
	}
	defer func() { _ = lock.Close() }()
	url, stop, err := engine.Start(dir, listen)
	if err != nil {
		fmt.Fprintln(foreign.NewTerminal(os.Stderr), err)
		return frame.ExitIO
	}
	defer stop()
	if _, err := fmt.Fprintln(out, url); err != nil {
		return frame.ExitIO
	}
	_, _ = io.Copy(io.Discard, in)
	return frame.ExitOK
}

// endQueue limits the time that a queue takes to end.
const endQueue = 5 * time.Second

// lockQueue makes the folder of a queue and keeps other processes out of it until the returned file
// is closed. The queue of a coordinator that was killed may need a moment to end.
func lockQueue(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case !errors.Is(err, syscall.EWOULDBLOCK): // it may be a file system without such locks
			return f, nil
		case time.Since(begun) > 2*endQueue:
			return nil, errors.Join(errors.New("another process has the data of the queue"), f.Close())
		}
	}
}

// startQueue starts a queue in a process of its own, unless ctx ends first. It calls fail if the
// process ends before stop is called.
func startQueue(ctx context.Context, dir, listen string, fail func(error)) (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, farmQueueCommand, dir, listen)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal does not reach it
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	late := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	late()
	if err != nil {
		_ = cmd.Wait()
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		return "", nil, frame.IO(fmt.Errorf("the queue in %s did not start: %s", dir, strings.TrimSpace(said.String())))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case err := <-ended:
			fail(frame.IO(fmt.Errorf("the queue in %s ended (%v); the same command goes on", dir, err)))
		case <-stopped:
			select {
			case <-ended:
			case <-time.After(endQueue):
				_ = cmd.Process.Kill()
				<-ended
			}
		}
	}()
	return strings.TrimSpace(line), sync.OnceFunc(func() {
		close(stopped)
		_ = in.Close()
		<-over
	}), nil
}
