package live

import (
	"context"
	"io"
	"os/exec"

	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// Player returns the functions of this package for a program or a test that plays live; nil on a
// system other than Linux.
func Player() play.LivePlayer { return player{} }

type player struct{}

func (player) Check(sc *scenarios.Scenario, l *subject.Subject, o Options) error {
	return Check(sc, l, o)
}

func (player) Ready(locks []*subject.Subject, o Options) error { return Ready(locks, o) }

func (player) Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, o Options) (play.LiveRun, error) {
	return Run(ctx, sc, l, number, o)
}

func (player) Folder() (dir string, free func(), err error) { return Folder() }

func (player) Spawn(cmd *exec.Cmd) error { return Spawn(cmd) }

func (player) Client(in io.Reader, out io.Writer) error { return Client(in, out) }
