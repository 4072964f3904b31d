package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/shrink"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
)

// campaigning is a campaign that a command plays.
type campaigning struct {
	*explore.Campaign
	out    string        // the folder that the user named; "": none
	limit  time.Duration // of the whole command; 0: none
	jobs   int           // processes that make failures small
	asJSON bool
	// begin sets the Player or the Family of the campaign, which play it until the context playing ends.
	// The player calls fail to end the campaign. end is called when all runs are played, or when the play
	// ended early.
	begin func(playing context.Context, fail func(error)) (end func(complete bool), err error)
	// cleanup is called before the program ends by a second interrupt.
	cleanup func()
	watch   watcher // nil: nobody watches
}

// A watcher follows a campaign.
type watcher interface {
	Progress(explore.Progress)
	Found(f explore.Failed, recording string)
	Small() // failures are made small from now on
	Concluded(o explore.Tally, small []explore.Shrunk)
}

// playCampaign plays a campaign or a shard, makes the failures small, and prints and keeps the result.
func playCampaign(a *frame.App, c campaigning) (int, error) {
	stop, unregister := a.Interrupts(c.cleanup)
	defer unregister()
	told := tellProgress(a, c.limit)
	t := NewTime(stop, c.limit)
	defer t.End()
	playing := t.hard
	if c.limit > 0 && c.Of == 1 {
		var end func()
		playing, end = context.WithCancel(t.hard)
		defer end()
		go endInTime(playing, c.limit, told.progress, end)
	} else if c.limit > 0 {
		var end func()
		playing, end = context.WithDeadline(stop, t.Until)
		defer end()
	}
	playing, fail := context.WithCancelCause(playing)
	defer fail(nil)
	go told.pace.Each(t.hard, told.line)
	c.Stop = playing
	c.Progress = func(p explore.Progress) {
		if p.Played == 0 && p.Runs > 0 && !a.Quiet {
			a.Say("%s", playedBefore(p, c.out))
		}
		if told.played(p); c.watch != nil {
			c.watch.Progress(p)
		}
	}
	c.Found = func(f explore.Failed, r explore.Run, recording string) {
		if c.watch != nil {
			c.watch.Found(f, recording)
		}
		if a.Quiet {
			return
		}
		if c.Of == 1 && f.Class == judges.ClassBug {
			a.Printed(frame.ExitUnexpected)
		}
		a.Say("found after %s (seed %d): %s %s at %s: %s", counted.Of(told.progress().Runs, "run"), r.Seed, f.Class, f.Judge, f.Op, f.Why)
		if c.out != "" {
			a.Say("    replay until a smaller run shows it: %s", frame.Command("replay", recording))
		}
	}
	end, err := c.begin(playing, fail)
	switch {
	case err != nil && playing.Err() != nil:
		a.Warn("incomplete: it was stopped; the same command goes on with it")
		return frame.ExitUndecided, nil
	case err != nil:
		return 0, err
	}
	runs, complete, err := c.Run()
	end(complete)
	told.clear()
	if why := context.Cause(playing); err == nil && why != nil && !errors.Is(why, playing.Err()) {
		err = why
	}
	var other *explore.OtherCampaignError
	switch {
	case errors.As(err, &other):
		return 0, frame.Usage(err)
	case err != nil:
		return 0, err
	}
	if c.Of > 1 {
		fmt.Fprintf(a.Out, "shard %d of %d is kept in %s; when all are done: %s merge DIR ... --out DIR\n", c.Shard+1, c.Of, c.out, frame.Simrun())
		if !complete {
			p := told.progress()
			a.Warn("%s after %d of %d runs. The same command goes on from there", t.endedBy(), p.Runs, p.Of)
			return frame.ExitUndecided, nil
		}
		return frame.ExitOK, nil
	}
	s := &explore.Shrinking{Plan: c.Plan, Jobs: c.jobs, Dir: c.out, From: []string{c.Dir}}
	return conclude(a, t, s, told, runs, c.out, c.asJSON, c.watch)
}

// lateMost limits the time after --time that a worker has for its last run.
const lateMost = 5 * time.Second

// Timing is the time of a command that makes failures small.
type Timing struct {
	// stop ends with an interrupt. hard also ends when the time is over and a worker still has not
	// finished.
	stop, hard context.Context
	Until      time.Time // when the time is over; zero: never
	End        func()
}

// NewTime returns the time of a command that begins now; limit 0 means no limit.
func NewTime(stop context.Context, limit time.Duration) Timing {
	if limit == 0 {
		hard, end := context.WithCancel(stop)
		return Timing{stop: stop, hard: hard, End: end}
	}
	until := time.Now().Add(limit)
	hard, end := context.WithDeadline(stop, until.Add(min(limit/10, lateMost)))
	return Timing{stop, hard, until, end}
}

// inTime reports whether the command has a limit of time and nothing interrupted it.
func (t Timing) inTime() bool { return !t.Until.IsZero() && t.stop.Err() == nil }

// endedBy says why a command ended before it was done.
func (t Timing) endedBy() string {
	if t.inTime() {
		return "--time ended it"
	}
	return "interrupted"
}

// conclude sums up the runs, makes one failure per group small while there is time, and prints
// the result. watch may be nil.
func conclude(a *frame.App, t Timing, s *explore.Shrinking, told *exploreProgress, runs []explore.Run, dir string, asJSON bool, watch watcher) (int, error) {
	if watch != nil {
		watch.Small()
	}
	s.Budget, s.Program, s.Stop, s.Until = a.ShrinkBudget(), frame.SimrunInFiles(), t.hard, t.Until
	s.Player = func() (explore.Player, error) { return Player(t.hard, s.Plan) }
	s.Died = func(t explore.ShrinkTask, err error) {
		a.Warn("the failure of run %d (seed %d) stays as it was found, since each process that made it small ended; the last one: %v", t.Run.Index, t.Run.Seed, err)
	}
	began := false
	s.Progress = func(p explore.ShrinkProgress) {
		if told.made(p); !began && !a.Quiet && t.stop.Err() == nil {
			began = true
			a.Say("making %s", shrinkingCost(p, s.Budget, told.within(-1, time.Now())))
		}
	}
	o, small, err := s.Conclude(runs)
	if other := (*explore.OtherCampaignError)(nil); errors.As(err, &other) {
		err = frame.Usage(err)
	}
	t.End() // ends the progress
	told.clear()
	if err != nil && len(small) < len(o.Groups) {
		return 0, err
	}
	kinds := len(o.Groups)
	o, small = o.Fold(small)
	if same := kinds - len(o.Groups); same > 0 {
		a.Say("%d of %d kinds of failure are the same as others, as their small runs show", same, kinds)
	}
	if watch != nil {
		watch.Concluded(o, small)
	}
	if err := errors.Join(err, writeResult(a, o, small, dir, asJSON)); err != nil {
		return 0, err
	}
	if ended := t.inTime() || t.stop.Err() != nil; ended && o.Missing+o.Unfinished > 0 {
		a.Warn("%s", cutShort(o, t.endedBy(), dir != ""))
	}
	return tallyCode(o, t.inTime()), nil
}

// playedBefore says what a folder has of a campaign that goes on.
func playedBefore(p explore.Progress, dir string) string {
	return fmt.Sprintf("%d of %d runs were played before and are in %s, with %s of failure", p.Runs, p.Of, dir, counted.Of(p.Groups, "kind"))
}

// shrinkingCost returns a sentence about the cost of making failures small.
func shrinkingCost(p explore.ShrinkProgress, budget int, left string) string {
	return fmt.Sprintf("%d of %s small, each within %d runs of smaller scenarios%s; a failure of a run of more than %d steps stays as it was found",
		p.Of-p.Done, counted.Of(p.Of, "failure"), budget, left, shrink.LongestRun)
}

// cutShort says how far a campaign came that ended early, and how to continue it.
func cutShort(o explore.Tally, why string, kept bool) string {
	s := fmt.Sprintf("%s after %d of %d runs", why, o.Runs, o.Plan.Runs)
	if o.Missing == 0 {
		s = fmt.Sprintf("%s after all %s", why, counted.Of(o.Runs, "run"))
	}
	if o.Unfinished > 0 {
		s += fmt.Sprintf(", with %d of %d failures not made small yet", o.Unfinished, len(o.Groups))
	}
	if kept {
		return s + ". The same command goes on from there"
	}
	return s + ". Nothing of it was kept: with --out DIR it is, and the same command goes on from there"
}

// Player starts a process that plays runs of a campaign until stop ends. The process has a
// process group of its own. An interrupt from the terminal therefore does not reach it, and
// the campaign ends it.
func Player(stop context.Context, p explore.Plan) (explore.Player, error) {
	cmd := frame.OwnProcess(stop, ExploreWorker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return explore.Away(cmd, p)
}

// ExploreWorker is the command with which simrun starts itself as a worker. It is not for
// users.
const ExploreWorker = "explore-worker"

func serveRuns(a *frame.App) (int, error) {
	return frame.ExitOK, frame.ServeParent(a, func(in io.Reader) error { return explore.Serve(a.Host, in, os.Stdout) })
}
