package external

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Running is the part of a live server that is the same for each program of the system. A server embeds it
// and implements the rest of live.Observed.
type Running struct {
	Options
	// Launch starts the program and opens the connections of the run. The program begins with an empty
	// folder or with the data that it had. Launch returns its process, and its name with its version.
	Launch func(empty bool) (p *Process, version string, err error)
	// Disconnect closes the connections of the run, after the program has ended.
	Disconnect func()

	process *Process
	version string
	folders int // the number of folders made so far
	changed chan struct{}
	stopped chan struct{} // closed when the polling ends; nil: nobody polls
	polled  sync.WaitGroup
}

// Begin starts the program for the first time.
func (r *Running) Begin() error {
	r.changed = make(chan struct{}, 1)
	return r.begin(true)
}

func (r *Running) begin(empty bool) (err error) {
	r.process, r.version, err = r.Launch(empty)
	return err
}

// Folder returns the folder for the data of a program: a new folder if empty is set, else the last one.
func (r *Running) Folder(program string, empty bool) (string, error) {
	if empty {
		r.folders++
	}
	dir := filepath.Join(r.Dir, program+"-"+strconv.Itoa(r.folders))
	return dir, os.MkdirAll(dir, 0o755)
}

// Poll calls look again and again until the server ends. If look reports a change, Poll sends a value to
// Changed.
func (r *Running) Poll(every time.Duration, look func() bool) {
	stopped := make(chan struct{})
	r.stopped = stopped
	r.polled.Go(func() {
		for {
			select {
			case <-stopped:
				return
			case <-time.After(every):
			}
			if !look() {
				continue
			}
			select {
			case r.changed <- struct{}{}:
			default:
			}
		}
	})
}

// Addr implements live.Server.
func (r *Running) Addr() string { return r.Options.Addr }

// Version implements live.Server.
func (r *Running) Version() string { return r.version }

// Pid implements live.Server.
func (r *Running) Pid() int { return r.process.Cmd.Process.Pid }

// Restart implements live.Server.
func (r *Running) Restart(keepData bool) error {
	r.end()
	return r.begin(!keepData)
}

// end ends the program. It has no effect if the program did not start again.
func (r *Running) end() {
	if r.process == nil {
		return
	}
	if r.stopped != nil {
		close(r.stopped)
		r.stopped = nil
	}
	r.process.Kill()
	r.polled.Wait() // its requests fail now
	r.Disconnect()
	r.process = nil
}

// Stop implements live.Server.
func (r *Running) Stop() {
	r.end()
	_ = r.Log.Close()
}

// Changed implements live.Observed.
func (r *Running) Changed() <-chan struct{} { return r.changed }
