package simrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/explore/shrink"
	"lockstep/explore/strategy"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// shrinkBudget limits the runs that shrinking one failure takes.
const shrinkBudget = 600

// exploreFlags are the options of simrun explore.
type exploreFlags struct {
	plan         explore.Plan
	words        planWords
	jobs         int
	shard, out   string
	limit        time.Duration
	live, asJSON bool
}

func (a *app) exploreCommand() *cobra.Command {
	o := exploreFlags{plan: explore.Plan{World: sim.Version}}
	c := a.command(guide{
		use: "explore --lock LOCK", optionsOnly: true, short: "look for schedules that break a lock",
		long: "Explore draws workloads and faults, plays them, and reports each kind of failure once, with a run that is made small. The exit code is 1 if it found a bug, even if it was interrupted. " +
			"With --out the same command goes on where it was interrupted.\n" +
			"A campaign with faults ends before its last run when it is full: its faults have met each cell that they can meet, and the last 300 runs met no new one. With --keep-going it plays on. " +
			"A cell is an operation, the holder of the lock at that time, a moment of the operation, and a kind of fault.\n" +
			"The strategies: plain draws each run anew. Aimed adds faults to every second run, at moments that had no fault yet; it meets the most cells. Tapct orders messages by chance, to find bugs that need --depth orderings of messages. " +
			"Told tells stories of known failures first, and then draws as plain does; it finds most bugs sooner. Exhaustive plays all schedules of two clients, or of --scenario. With --faults network it also plays the schedules in which one message is lost.",
		examples: []string{
			"explore --lock setnx-del --faults pause --runs 300", "explore --lock setnx-del --faults network --strategy exhaustive",
			"explore --lock reference --faults all --runs 100 --out campaign",
		},
	}, func(in invocation) (int, error) { return a.explore(in, o) })
	f := c.Flags()
	planFlags(f, &o.plan, &o.words)
	jobsFlag(f, &o.jobs)
	f.StringVar(&o.out, "out", "", "keep the runs, and what is found, in `DIR`")
	f.StringVar(&o.shard, "shard", "", "play the I-th of N parts, `I/N`; then simrun merge")
	f.Var(length{&o.limit}, "time", "end after this time; failures are made as small as it allows")
	f.BoolVar(&o.live, "live", false, "play on real servers in real time, for --time; --jobs: runs at a time")
	jsonFlag(f, &o.asJSON, "the result as JSON Lines")
	a.quietFlag(f, "only the totals and the bugs")
	return c
}

func (a *app) explore(in invocation, o exploreFlags) (int, error) {
	p, w, shard, limit, asJSON := o.plan, o.words, o.shard, o.limit, o.asJSON
	c := &explore.Campaign{Of: 1, Jobs: o.jobs, Dir: o.out}
	given := in.given
	if o.live {
		return a.exploreLive(p, w, given, c, limit, asJSON)
	}
	if p.Strategy == explore.StrategyExhaustive {
		return a.cover(p, given, w, c.Dir, limit, asJSON)
	}
	if p.Case != "" {
		return 0, usagef("explore: --scenario belongs to --strategy exhaustive; the other strategies draw their scenarios")
	}
	if err := planned(&p, c, w, shard); err != nil {
		return 0, usageError{fmt.Errorf("explore: %w", err)}
	}
	release, err := a.campaignFolder(c.Dir)
	if err != nil {
		return 0, usageError{fmt.Errorf("explore: %w", err)}
	}
	defer release()
	out, work := c.Dir, c.Dir
	if out == "" {
		if work, err = os.MkdirTemp("", "lockstep-explore-"); err != nil {
			return 0, err
		}
	}
	cleanup := func() {
		if out == "" {
			_ = os.RemoveAll(work)
		}
	}
	defer cleanup()
	c.Plan, c.Dir = p, work
	return a.campaign(campaigning{
		Campaign: c, out: out, limit: limit, jobs: o.jobs, asJSON: asJSON, cleanup: cleanup,
		begin: func(playing context.Context, _ func(error)) (func(bool), error) {
			c.Player = func() (explore.Player, error) { return player(playing, p) }
			return func(bool) {}, nil
		},
	})
}

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
	progress(explore.Progress)
	found(f explore.Failed, recording string)
	small() // failures are made small from now on
	concluded(o explore.Tally, small []explore.Shrunk)
}

// campaign plays a campaign or a shard, makes the failures small, and prints and keeps the result.
func (a *app) campaign(c campaigning) (int, error) {
	stop, unregister := a.interrupts(c.cleanup)
	defer unregister()
	told := a.tellProgress(c.limit)
	t := newTime(stop, c.limit)
	defer t.end()
	playing := t.hard
	if c.limit > 0 && c.Of == 1 {
		var end func()
		playing, end = context.WithCancel(t.hard)
		defer end()
		go endInTime(playing, c.limit, told.progress, end)
	} else if c.limit > 0 {
		var end func()
		playing, end = context.WithDeadline(stop, t.until)
		defer end()
	}
	playing, fail := context.WithCancelCause(playing)
	defer fail(nil)
	go told.pace.each(t.hard, told.line)
	c.Stop = playing
	c.Progress = func(p explore.Progress) {
		if p.Played == 0 && p.Runs > 0 && !a.quiet {
			a.say("%s", playedBefore(p, c.out))
		}
		if told.played(p); c.watch != nil {
			c.watch.progress(p)
		}
	}
	c.Found = func(f explore.Failed, r explore.Run, recording string) {
		if c.watch != nil {
			c.watch.found(f, recording)
		}
		if a.quiet {
			return
		}
		if c.Of == 1 && f.Class == judges.ClassBug {
			a.printed(exitUnexpected)
		}
		a.say("found after %s (seed %d): %s %s at %s: %s", counted.Of(told.progress().Runs, "run"), r.Seed, f.Class, f.Judge, f.Op, f.Why)
		if c.out != "" {
			a.say("    replay until a smaller run shows it: %s replay %s", program(), recording)
		}
	}
	end, err := c.begin(playing, fail)
	switch {
	case err != nil && playing.Err() != nil:
		a.say("simrun: incomplete: it was stopped; the same command goes on with it")
		return exitUndecided, nil
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
		return 0, usageError{err}
	case err != nil:
		return 0, err
	}
	if c.Of > 1 {
		fmt.Fprintf(a.out, "shard %d of %d is kept in %s; when all are done: %s merge DIR ... --out DIR\n", c.Shard+1, c.Of, c.out, program())
		if !complete {
			p := told.progress()
			a.say("simrun: %s after %d of %d runs. The same command goes on from there", t.over(), p.Runs, p.Of)
			return exitUndecided, nil
		}
		return exitOK, nil
	}
	s := &explore.Shrinking{Plan: c.Plan, Jobs: c.jobs, Dir: c.out, From: []string{c.Dir}}
	return a.conclude(t, s, told, runs, c.out, c.asJSON, c.watch)
}

// lateMost limits the time after --time that a worker has for its last run.
const lateMost = 5 * time.Second

// timing is the time of a command that makes failures small.
type timing struct {
	// stop ends with an interrupt. hard also ends when the time is over and a worker still has not
	// finished.
	stop, hard context.Context
	until      time.Time // when the time is over; zero: never
	end        func()
}

// newTime returns the time of a command that begins now; limit 0 means no limit.
func newTime(stop context.Context, limit time.Duration) timing {
	if limit == 0 {
		hard, end := context.WithCancel(stop)
		return timing{stop: stop, hard: hard, end: end}
	}
	until := time.Now().Add(limit)
	hard, end := context.WithDeadline(stop, until.Add(min(limit/10, lateMost)))
	return timing{stop, hard, until, end}
}

// inTime reports whether the command has a limit of time and nothing interrupted it.
func (t timing) inTime() bool { return !t.until.IsZero() && t.stop.Err() == nil }

// over says why a command ended before it was done.
func (t timing) over() string {
	if t.inTime() {
		return "--time ended it"
	}
	return "interrupted"
}

// planWords has the options of a plan that become its fields only after they are checked.
type planWords struct {
	faults         []string
	profile, seeds string
	keepGoing      bool
}

// texts returns words as strings.
func texts[W ~string](words []W) (all []string) {
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

// planFlags declares the options of explore that determine a plan.
func planFlags(f *pflag.FlagSet, p *explore.Plan, w *planWords) {
	drawnFlags(f, p, w)
	oneOf(f, &p.Strategy, "strategy", explore.DefaultStrategy, append(slices.Clone(strategy.Names), explore.StrategyExhaustive), "how the runs are chosen, see above: plain, told, aimed, tapct or exhaustive")
	f.StringVar(&p.Case, "scenario", "", "with --strategy exhaustive: the `SCENARIO` or file to play")
}

// drawnFlags declares the options, besides --strategy, of a plan whose runs are drawn.
func drawnFlags(f *pflag.FlagSet, p *explore.Plan, w *planWords) {
	single(f, &p.Lock, "lock", "the `LOCK` to play")
	someOf(f, &w.faults, "faults", draw.ClassNames(), "the failures that you fear: "+strings.Join(texts(draw.Classes), ", ")+", or all, or none; default: none")
	oneOf(f, &w.profile, "profile", string(draw.Simple), texts(draw.Profiles), "what the callers do: the `PROFILE` simple, orderly or full")
	whole(f, &p.Runs, "runs", 1000, atLeast(1), "how many runs are played")
	whole(f, &p.Steps, "steps", 0, atLeast(0), "also end after so many steps; 0: no such limit")
	seedFlag(f, &w.seeds, "1", "the seeds, `N or A..B`; several share the runs, a hundred at a time")
	whole(f, &p.Depth, "depth", 0, atLeast(1), "with --strategy tapct: find bugs that need `N` orderings of messages; default 3")
	f.BoolVar(&w.keepGoing, "keep-going", false, "play on when the campaign is full")
}

// complete checks the words and sets their fields of the plan. An exhaustive search has no
// profile and no seed.
func (w planWords) complete(p *explore.Plan) (err error) {
	if p.Faults, err = draw.ParseClasses(w.faults); err != nil || p.Strategy == explore.StrategyExhaustive {
		return err
	}
	if p.Profile, err = draw.ParseProfile(w.profile); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	first, last, err := seedRange("--seed", w.seeds)
	if err != nil {
		return err
	}
	p.Seed = first
	if !w.keepGoing {
		p.Settled = explore.SettledRuns
	}
	if more := last - first; more > 0 {
		if more >= uint64(p.Runs/explore.FamilyRuns) {
			return fmt.Errorf("--seed %s --runs %d: each seed needs at least %d runs", w.seeds, p.Runs, explore.FamilyRuns)
		}
		p.Seeds = int(more) + 1
	}
	return nil
}

// togetherMost is the largest distance between two signals that count as one interrupt. The program
// timeout, for example, sends its signal to a program, and at once again to the whole process
// group.
const togetherMost = time.Second

func (a *app) clock() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// interrupts returns a context that the first interrupt ends. The command then reports its results
// so far. A second interrupt calls cleanup and ends the program.
func (a *app) interrupts(cleanup func()) (stop context.Context, release func()) {
	a.caught.Store(true)
	stop, end := context.WithCancel(context.Background())
	released := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, interruptions...)
	go func() {
		var first time.Time
		for {
			select {
			case <-signals:
			case <-released:
				return
			}
			if !first.IsZero() {
				if a.clock().Sub(first) < togetherMost {
					continue
				}
				cleanup()
				a.say("simrun: interrupted again; the results that are kept in a folder stay there")
				a.end(a.interruptedCode())
				return
			}
			a.say("simrun: interrupted; the results so far follow. Interrupt again to end at once")
			first = a.clock()
			end()
		}
	}()
	return stop, sync.OnceFunc(func() { signal.Stop(signals); close(released); end() })
}

// cover plays all schedules of a small scenario.
func (a *app) cover(p explore.Plan, given *pflag.FlagSet, w planWords, dir string, limit time.Duration, asJSON bool) (int, error) {
	s, err := covered(&p, given, w)
	if err != nil {
		return 0, usageError{fmt.Errorf("explore: %w", err)}
	}
	release, err := a.campaignFolder(dir)
	if err != nil {
		return 0, usageError{fmt.Errorf("explore: %w", err)}
	}
	defer release()
	stop, unregister := a.interrupts(func() {})
	defer unregister()
	told := a.tellProgress(limit)
	t := newTime(stop, limit)
	defer t.end()
	expired := func() bool { return stop.Err() != nil || limit > 0 && !time.Now().Before(t.until) }
	begun := time.Now()
	playing, end := context.WithCancel(stop)
	defer end()
	o, small, err := explore.Cover(playing, a.host, p, s, shrinkBudget, program(), expired, func(p explore.Progress) {
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
	if err := a.result(o, small, dir, asJSON); err != nil {
		return 0, err
	}
	if ended := stop.Err() != nil || limit > 0 && playing.Err() != nil; ended && !o.Coverage.Complete {
		a.say("simrun: %s after %s; the others were not played", t.over(), counted.Of(o.Runs, "schedule"))
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
		return nil, errNoLock()
	}
	l, err := findSimulated(p.Lock)
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

// defaultDepth is the depth of --strategy tapct if none is given.
const defaultDepth = 3

// planned checks the options of a campaign before anything is run. It completes the plan
// and the campaign.
func planned(p *explore.Plan, c *explore.Campaign, w planWords, shard string) error {
	if p.Lock == "" {
		return errNoLock()
	}
	l, err := findSimulated(p.Lock)
	if err != nil {
		return err
	}
	p.Lock = l.Name
	if err := w.complete(p); err != nil {
		return err
	}
	switch {
	case !p.Bounded() && p.Depth != 0:
		return errors.New("--depth belongs to --strategy tapct")
	case p.Bounded() && p.Depth == 0:
		p.Depth = defaultDepth
	}
	if shard != "" {
		i, n, ok := strings.Cut(shard, "/")
		first, err1 := strconv.Atoi(i)
		of, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil || first < 1 || of < first {
			return fmt.Errorf("--shard %q: write I/N, as in 1/8 for the first of eight", shard)
		}
		if c.Dir == "" {
			return fmt.Errorf("--shard needs --out: %s merge reads the folders of all shards", program())
		}
		c.Shard, c.Of = first-1, of
	}
	return nil
}

// player starts a process that plays runs of a campaign until stop ends. The process has a
// process group of its own. An interrupt from the terminal therefore does not reach it, and
// the campaign ends it.
func player(stop context.Context, p explore.Plan) (explore.Player, error) {
	cmd := ownProcess(stop, workerCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return explore.Away(cmd, p)
}

// workerMemory limits the heap of a worker, which then has less than 512 MiB of memory in all.
const workerMemory = 400 << 20

// workerCommand is the command with which simrun starts itself as a worker. It is not for
// users.
const workerCommand = "explore-worker"

func (a *app) worker([]string) (int, error) {
	return exitOK, a.serveParent(func(in io.Reader) error { return explore.Serve(a.host, in, os.Stdout) })
}

// serveParent serves questions of the process that started this one, on the input, with the memory of a worker. The
// process ends with its input.
func (a *app) serveParent(serve func(in io.Reader) error) error {
	sim.LimitMemory(workerMemory)
	questions, asked := io.Pipe()
	go func() {
		_, _ = io.Copy(asked, os.Stdin)
		os.Exit(exitOK) // nobody needs the answer that is under way
	}()
	return serve(questions)
}

func (a *app) mergeCommand() *cobra.Command {
	out, asJSON := "", false
	c := a.command(guide{
		use: "merge DIR ...", short: "make one campaign out of its shards",
		long:     "Merge makes one campaign out of the folders that explore --shard I/N --out wrote, and reports what it found as explore does.",
		examples: []string{"merge shard-1 shard-2 --out campaign"},
	}, func(in invocation) (int, error) { return a.merge(in.names, out, asJSON) })
	f := c.Flags()
	f.StringVar(&out, "out", "", "keep what is found in `DIR`")
	jsonFlag(f, &asJSON, "the result as JSON Lines")
	a.quietFlag(f, "only the totals and the bugs")
	c.ValidArgsFunction = folders
	return c
}

// merge makes one campaign from the folders of its shards.
func (a *app) merge(dirs []string, out string, asJSON bool) (int, error) {
	if len(dirs) == 0 {
		return 0, usagef("merge takes the folders of the shards of one campaign")
	}
	to, err := os.Stat(out)
	var before []os.FileInfo
	for _, dir := range dirs {
		if err := inputFolder(dir, "merge takes the folders of shards"); err != nil {
			return 0, err
		}
		if info, err := os.Stat(dir); err == nil {
			if slices.ContainsFunc(before, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
				return 0, usagef("merge: the folder %s is named twice", dir)
			}
			before = append(before, info)
		}
		if from, fromErr := os.Stat(dir); err == nil && fromErr == nil && os.SameFile(from, to) {
			return 0, usagef("merge: --out %s is the folder of a shard; name another folder", out)
		}
	}
	p, runs, err := explore.Merge(dirs)
	if err != nil {
		return 0, usagef("merge: %w", err)
	}
	if p.World != sim.Version {
		return 0, usagef("merge: the campaign was played in world version %d, and this program's is %d", p.World, sim.Version)
	}
	missing, err := explore.MissingShards(dirs)
	if err != nil {
		return 0, usagef("merge: %w", err)
	}
	if len(missing) > 0 {
		a.say("simrun: merge: these shards of the campaign are missing: %s", strings.Join(missing, ", "))
	}
	release, err := a.campaignFolder(out)
	if err != nil {
		return 0, usageError{fmt.Errorf("merge: %w", err)}
	}
	defer release()
	stop, unregister := a.interrupts(func() {})
	defer unregister()
	t := newTime(stop, 0)
	defer t.end()
	told := a.tellProgress(0)
	told.played(explore.Progress{Runs: len(runs), Of: p.Runs})
	go told.pace.each(t.hard, told.line)
	s := &explore.Shrinking{Plan: p, Jobs: runtime.NumCPU(), Dir: out, From: dirs}
	return a.conclude(t, s, told, runs, out, asJSON, nil)
}

// conclude sums up the runs, makes one failure per group small while there is time, and prints
// the result. watch may be nil.
func (a *app) conclude(t timing, s *explore.Shrinking, told *exploreProgress, runs []explore.Run, dir string, asJSON bool, watch watcher) (int, error) {
	if watch != nil {
		watch.small()
	}
	s.Budget, s.Program, s.Stop, s.Until = shrinkBudget, program(), t.hard, t.until
	s.Player = func() (explore.Player, error) { return player(t.hard, s.Plan) }
	began := false
	s.Progress = func(p explore.ShrinkProgress) {
		if told.made(p); !began && !a.quiet && t.stop.Err() == nil {
			began = true
			a.say("making %s", shrinkingCost(p, s.Budget, told.within(-1, time.Now())))
		}
	}
	o, small, err := s.Conclude(runs)
	t.end() // ends the progress
	told.clear()
	if err != nil {
		return 0, err
	}
	kinds := len(o.Groups)
	o, small = o.Fold(small)
	if same := kinds - len(o.Groups); same > 0 {
		a.say("%d of %d kinds of failure are the same as others, as their small runs show", same, kinds)
	}
	if watch != nil {
		watch.concluded(o, small)
	}
	if err := a.result(o, small, dir, asJSON); err != nil {
		return 0, err
	}
	if ended := t.inTime() || t.stop.Err() != nil; ended && o.Missing+o.Unfinished > 0 {
		a.say("simrun: %s", cutShort(o, t.over(), dir != ""))
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

// result prints the result of a campaign. It also writes the result to dir, unless dir is "".
func (a *app) result(o explore.Tally, small []explore.Shrunk, dir string, asJSON bool) error {
	if dir != "" {
		if err := explore.WriteTally(dir, program(), o, small); err != nil {
			return err
		}
	}
	if asJSON {
		return o.WriteJSON(a.out, small)
	}
	a.tally(o, small, dir)
	return nil
}

// tallyCode returns the exit code of a campaign. A campaign that ended with its time did its task
// if it played a run. An exhaustive search did not.
func tallyCode(o explore.Tally, inTime bool) int {
	switch {
	case len(o.Died) > 0:
		return exitDefect
	case slices.ContainsFunc(o.Groups, func(g explore.Found) bool { return g.Class == "bug" }):
		return exitUnexpected
	case len(o.Odd) > 0 || len(o.Unjudged()) > 0 || o.Coverage != nil && !o.Coverage.Complete:
		return exitUndecided
	case (o.Missing > 0 || o.Unfinished > 0) && (!inTime || o.Runs == 0):
		return exitUndecided
	}
	return exitOK
}

// neverMost is the number of empty cells that the terminal names.
const neverMost = 4

// neverMet names some cells that the campaign never met, and the file that lists all of them. It
// returns "" if the campaign met all cells, or has none.
func neverMet(o explore.Tally, dir string) string {
	if o.Cells == nil {
		return ""
	}
	text := o.Cells.NeverMet(neverMost)
	switch {
	case text == "":
		return ""
	case dir == "":
		return text + " (--out DIR writes a table, and --json has all)"
	}
	return fmt.Sprintf("%s (table: %s)", text, filepath.Join(dir, verdictsPage))
}

// tally prints the totals of a campaign, the failures that it found, and what it did not try.
func (a *app) tally(o explore.Tally, small []explore.Shrunk, dir string) {
	fmt.Fprint(a.out, wrap(o.Total(), "", 100))
	unkept := false // a failure that is printed has no recording
	for i, g := range o.Groups {
		if a.quiet && g.Class != judges.ClassBug {
			continue
		}
		word := string(g.Class)
		cause := ""
		switch {
		case g.Defect != "":
			cause = ", " + defectText(g.Defect)
		case g.Excuse != "":
			cause = ", excused: " + g.Excuse
		}
		fmt.Fprintf(a.out, "%s %s at %s, with %s\n", a.paint(word, fmt.Sprintf("%-5s", word)), g.Judge, g.Op, g.FaultWords())
		fmt.Fprint(a.out, wrap(fmt.Sprintf("%d of %d runs, first seed %d; %s %s%s",
			g.Count, o.Runs, g.First.Seed, counted.Of(small[i].Size, "event"), small[i].Shrinking(), cause), "    ", 100))
		fmt.Fprint(a.out, wrap(small[i].Why, "    ", 100))
		if cause := small[i].CauseText(); cause != "" {
			fmt.Fprint(a.out, wrap("cause: "+cause, "    ", 100))
		}
		switch recording := g.Recording(small[i]); {
		case recording == "":
		case dir == "":
			unkept = true
		default:
			fmt.Fprintf(a.out, "    replay: %s replay %s\n", program(), filepath.Join(dir, recording))
		}
	}
	if unkept {
		fmt.Fprintln(a.out, "The same command with --out DIR writes a recording of each failure.")
	}
	if text := neverMet(o, dir); text != "" && !a.quiet {
		fmt.Fprint(a.out, wrap(text, "", 100))
	}
	if len(o.Plan.Faults) == 0 && !a.quiet {
		fmt.Fprintln(a.out, "No faults were played: --faults names those that you fear, and --faults all plays every kind.")
	}
}
