// Package external runs servers of the system, such as memcached, as processes on loopback. Tests
// compare the simulated servers with them, and live runs use them.
package external

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// patience limits the time until a server serves, so that nobody waits for ever.
const patience = time.Minute

// errEnded says that the process of a server ended before it served.
var errEnded = errors.New("it ended before it served")

// Process is a running server.
type Process struct {
	Cmd  *exec.Cmd
	over chan struct{}
}

// Launch starts a command with start, such as (*exec.Cmd).Start, and waits until serves reports true. The
// output of the server goes to log.
func Launch(cmd *exec.Cmd, log io.Writer, start func(*exec.Cmd) error, serves func() bool) (*Process, error) {
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, 5*time.Second
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", cmd.Path, err)
	}
	p := &Process{cmd, make(chan struct{})}
	go func() {
		defer close(p.over)
		_ = cmd.Wait()
	}()
	for began := time.Now(); !serves(); {
		select {
		case <-p.over:
			return nil, fmt.Errorf("%s: %w", cmd.Path, errEnded)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(began) > patience {
			p.Kill()
			return nil, fmt.Errorf("%s does not serve after %v", cmd.Path, patience)
		}
	}
	return p, nil
}

// Kill ends the process, even if it is stopped, and waits for its end.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.over
}
