package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/explore/strategy"
	"lockstep/internal/counted"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// exploreFlags are the options of simrun explore.
type exploreFlags struct {
	plan         explore.Plan
	words        planWords
	jobs         int
	shard, out   string
	limit        time.Duration
	live, asJSON bool
}

func exploreCommand(a *frame.App) *cobra.Command {
	o := exploreFlags{plan: explore.Plan{World: sim.Version}}
	c := a.Command(frame.Guide{
		Use: "explore --lock LOCK", OptionsOnly: true, Short: "look for schedules that break a lock",
		Long: "Explore draws workloads and faults, plays them, and reports each kind of failure once, with a run that is made small. The exit code is 1 if it found a bug, even if it was interrupted. " +
			"With --out the same command goes on where it was interrupted.\n" +
			"A campaign with faults ends before its last run when it is full: its faults have met each cell that they can meet, and the last 300 runs met no new one. With --keep-going it plays on. " +
			"A cell is an operation, the holder of the lock at that time, a moment of the operation, and a kind of fault; or two requests of an operation, an action of others between them, and a kind of fault.\n" +
			"The strategies: plain draws each run anew. Tapct orders messages by chance, to find bugs that need --depth orderings of messages. " +
			"Told tells stories of known failures first. Then it draws runs as plain does, and repeats some of these and of the stories with faults at moments that had no fault yet, also between two requests; it finds most bugs sooner, and meets the most cells. Exhaustive plays all schedules of two clients, or of --scenario. With --faults network it also plays the schedules in which one message is lost.",
		Examples: []string{
			"explore --lock setnx-del --faults pause --runs 300", "explore --lock setnx-del --faults network --strategy exhaustive",
			"explore --lock reference --faults all --runs 100 --out campaign",
		},
	}, func(in frame.Invocation) (int, error) { return exploreLock(a, in, o) })
	f := c.Flags()
	planFlags(f, &o.plan, &o.words)
	frame.JobsFlag(f, &o.jobs)
	f.StringVar(&o.out, "out", "", "keep the runs, and what is found, in `DIR`")
	f.StringVar(&o.shard, "shard", "", "play the I-th of N parts, `I/N`; then simrun merge")
	frame.Duration(f, &o.limit, "time", "end after this time; failures are made as small as it allows")
	f.BoolVar(&o.live, "live", false, "play on real servers in real time, for --time; --jobs: runs at a time")
	frame.JSONFlag(f, &o.asJSON, "the result as JSON Lines")
	a.QuietFlag(f, "only the totals and the bugs")
	return c
}

func exploreLock(a *frame.App, in frame.Invocation, o exploreFlags) (int, error) {
	p, w, shard, limit, asJSON := o.plan, o.words, o.shard, o.limit, o.asJSON
	c := &explore.Campaign{Of: 1, Jobs: o.jobs, Dir: o.out}
	given := in.Given
	if o.live {
		return exploreLive(a, p, w, given, c, limit, asJSON)
	}
	if p.Strategy == explore.StrategyExhaustive {
		return coverScenario(a, p, given, w, c.Dir, limit, asJSON)
	}
	if p.Case != "" {
		return 0, frame.Usagef("explore: --scenario belongs to --strategy exhaustive; the other strategies draw their scenarios")
	}
	if err := planned(&p, c, w, shard); err != nil {
		return 0, frame.Usage(fmt.Errorf("explore: %w", err))
	}
	release, err := campaignFolder(a, c.Dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("explore: %w", err))
	}
	defer release()
	out, work := c.Dir, c.Dir
	if out == "" {
		if work, err = os.MkdirTemp("", "lockstep-explore-"); err != nil {
			return 0, frame.IO(fmt.Errorf("there is no folder for temporary files, see TMPDIR: %w", err))
		}
	}
	cleanup := func() {
		if out == "" {
			_ = os.RemoveAll(work)
		}
	}
	defer cleanup()
	c.Plan, c.Dir = p, work
	return playCampaign(a, campaigning{
		Campaign: c, out: out, limit: limit, jobs: o.jobs, asJSON: asJSON, cleanup: cleanup,
		begin: func(playing context.Context, _ func(error)) (func(bool), error) {
			c.Player = func() (explore.Player, error) { return Player(playing, p) }
			return func(bool) {}, nil
		},
	})
}

// coverScenario plays all schedules of a small scenario.
func coverScenario(a *frame.App, p explore.Plan, given *pflag.FlagSet, w planWords, dir string, limit time.Duration, asJSON bool) (int, error) {
	s, err := covered(&p, given, w)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("explore: %w", err))
	}
	release, err := campaignFolder(a, dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("explore: %w", err))
	}
	defer release()
	stop, unregister := a.Interrupts(func() {})
	defer unregister()
	told := tellProgress(a, limit)
	t := NewTime(stop, limit)
	defer t.End()
	expired := func() bool { return stop.Err() != nil || limit > 0 && !time.Now().Before(t.Until) }
	begun := time.Now()
	playing, end := context.WithCancel(stop)
	defer end()
	o, small, err := explore.Cover(playing, a.Host, p, s, a.ShrinkBudget(), frame.SimrunInFiles(), expired, func(p explore.Progress) {
		told.played(p)
		told.show()
		if spent := time.Since(begun); limit > 0 && spent >= limit-shrinkTime(limit, spent, p) {
			end()
		}
	}, func(p explore.ShrinkProgress) {
		told.made(p)
		told.show()
	})
	told.clear()
	if err != nil {
		return 0, err
	}
	o, small = o.Fold(small)
	if err := writeResult(a, o, small, dir, asJSON); err != nil {
		return 0, err
	}
	if ended := stop.Err() != nil || limit > 0 && playing.Err() != nil; ended && !o.Coverage.Complete {
		a.Warn("%s after %s; the others were not played", t.endedBy(), counted.Of(o.Runs, "schedule"))
	}
	return tallyCode(o, t.inTime()), nil
}

// covered checks the options of an exhaustive search before anything is run. It completes
// the plan and returns the search.
func covered(p *explore.Plan, given *pflag.FlagSet, w planWords) (*strategy.Search, error) {
	for _, name := range []string{"profile", "steps", "seed", "depth", "jobs", "shard", "keep-going"} {
		if given.Changed(name) {
			return nil, fmt.Errorf("--%s does not belong to --strategy exhaustive, which plays all schedules of one scenario in one process", name)
		}
	}
	if p.Lock == "" {
		return nil, frame.ErrNoLock()
	}
	l, err := FindSimulated(p.Lock)
	if err != nil {
		return nil, err
	}
	p.Lock = l.Name
	if err := w.complete(p); err != nil {
		return nil, err
	}
	s := &strategy.Search{Lock: l, NearReplicas: true}
	switch {
	case len(p.Faults) == 1 && p.Faults[0] == draw.ClassNetwork:
		s.LoseOne = true
	case len(p.Faults) > 0:
		return nil, errors.New("--strategy exhaustive takes --faults network, one lost message; other faults come at their time: write them into a scenario and name it with --scenario")
	}
	if given.Changed("runs") {
		s.MaxRuns = p.Runs
	}
	if p.Case == "" {
		s.Scenario, err = scenarios.Parse("small.yaml", []byte(strategy.SmallCase(l)), subject.Find)
	} else {
		s.Scenario, err = findScenario(p.Case)
	}
	if err == nil {
		err = play.Applies(s.Scenario, l)
	}
	return s, err
}
