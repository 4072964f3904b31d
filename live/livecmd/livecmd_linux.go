package livecmd

import (
	"context"
	"io"
	"os/exec"

	"lockstep/internal/simrun"
	"lockstep/live"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

func init() { simrun.Live = livePlayer{} }

// livePlayer adapts package live to the interface of the command line.
type livePlayer struct{}

func (livePlayer) Check(sc *scenarios.Scenario, l *subject.Subject, o simrun.LiveOptions) error {
	return live.Check(sc, l, live.Options(o))
}

func (livePlayer) Ready(locks []*subject.Subject, o simrun.LiveOptions) error {
	return live.Ready(locks, live.Options(o))
}

func (livePlayer) Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, o simrun.LiveOptions) (play.LiveRun, error) {
	return live.Run(ctx, sc, l, number, live.Options(o))
}

func (livePlayer) Folder() (dir string, free func(), err error) { return live.Folder() }

func (livePlayer) Spawn(cmd *exec.Cmd) error { return live.Spawn(cmd) }

func (livePlayer) Client(in io.Reader, out io.Writer) error { return live.Client(in, out) }
