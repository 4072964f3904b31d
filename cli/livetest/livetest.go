// Package livetest plays live runs in the simulated world, so that a command line can be tested
// without servers.
package livetest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Player implements play.LivePlayer.
type Player struct {
	Host *sim.Host
	// Runs counts the runs.
	Runs int
	// After is the number of runs after which it fails; 0: it does not.
	After int
	// Other is the lock that it plays in place of each lock; "": none.
	Other string
	// Refuses is the lock that it cannot play; "": none.
	Refuses string
	// Lacks says what the machine lacks; nil: nothing.
	Lacks error
	// Fails is the error of each run; nil: none.
	Fails error
	// Stopped is the run, numbered from 1, in which this process is interrupted; 0: none.
	Stopped int

	mu sync.Mutex
}

// Unusable returns an error of bad input.
func Unusable(err error) error { return unusable{err} }

type unusable struct{ error }

// Unusable marks the error.
func (unusable) Unusable() {}

// Check implements play.LivePlayer.
func (p *Player) Check(sc *scenarios.Scenario, l *subject.Subject, _ play.LiveOptions) error {
	if l.Name == p.Refuses {
		return Unusable(errors.New(sc.File + ":7: not possible live: a reason"))
	}
	return nil
}

// Ready implements play.LivePlayer.
func (p *Player) Ready([]*subject.Subject, play.LiveOptions) error { return p.Lacks }

// Run implements play.LivePlayer.
func (p *Player) Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, _ play.LiveOptions) (play.LiveRun, error) {
	p.mu.Lock() // one world at a time
	defer p.mu.Unlock()
	p.Runs++
	if p.Runs == p.Stopped {
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-ctx.Done()
		return play.LiveRun{}, ctx.Err()
	}
	if p.Fails != nil || p.After > 0 && p.Runs > p.After {
		return play.LiveRun{}, cmp.Or(p.Fails, errors.New("the machine is gone"))
	}
	if l.Port != nil { // a library runs on real servers only
		l = l.Port
	}
	v := play.Run(p.Host, sc, l, number)
	if p.Other != "" {
		l, _ = subject.Find(p.Other)
		v = play.Run(p.Host, sc, l, number)
	}
	return play.LiveRun{Verdict: v, Programs: []string{"fake-server 1.2.3"}, Note: "played twice, because of a reason"}, nil
}

// Folder implements play.LivePlayer.
func (*Player) Folder() (dir string, free func(), err error) {
	dir, err = os.MkdirTemp("", "fake-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// Spawn implements play.LivePlayer.
func (*Player) Spawn(cmd *exec.Cmd) error { return cmd.Start() }

// Client implements play.LivePlayer.
func (*Player) Client(io.Reader, io.Writer) error { return nil }
