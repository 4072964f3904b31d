package simrun

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/spf13/pflag"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/explore/strategy"
	"lockstep/known"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// shrinkBudget limits the runs that shrinking one failure takes.
const shrinkBudget = 600

func (a *app) explore(args []string) (int, error) {
	p := explore.Plan{World: sim.Version}
	c := &explore.Campaign{Of: 1}
	var w planWords
	var shard string
	var given *pflag.FlagSet
	var limit time.Duration
	asJSON, live := false, false
	rest, err := flags("explore", args, func(f *pflag.FlagSet) {
		planFlags(f, &p, &w)
		f.BoolVar(&live, "live", false, "")
		f.IntVar(&c.Jobs, "jobs", runtime.NumCPU(), "")
		f.StringVar(&shard, "shard", "", "")
		f.StringVar(&c.Dir, "out", "", "")
		f.DurationVar(&limit, "time", 0, "")
		f.BoolVar(&asJSON, "json", false, "")
		given = f
	})
	if err != nil {
		return 0, err
	}
	if live {
		return a.exploreLive(p, rest, w, given, c, limit, asJSON)
	}
	if p.Strategy == explore.StrategyExhaustive {
		return a.cover(p, given, rest, w, c.Dir, limit, asJSON)
	}
	if p.Case != "" {
		return 0, usagef("explore: --scenario belongs to --strategy exhaustive; the others draw theirs")
	}
	if err := planned(&p, c, rest, w, shard); err != nil {
		return 0, usageError{fmt.Errorf("explore: %w", err)}
	}
	temporary := c.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "lockstep-explore-")
		if err != nil {
			return 0, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		c.Dir = dir
	}
	stop, quit, release := a.interrupts()
	defer release()
	if limit > 0 {
		var cancel func()
		stop, cancel = context.WithTimeout(stop, limit)
		defer cancel()
	}
	c.Plan, c.Stop = p, stop
	c.Player = func() (explore.Player, error) { return player(quit, p) }
	told := a.tellProgress()
	c.Progress = told.show
	complete, err := c.Run()
	told.clear()
	var other *explore.OtherCampaignError
	switch {
	case errors.As(err, &other):
		return 0, usageError{err}
	case err != nil:
		return 0, err
	}
	if c.Of > 1 {
		fmt.Fprintf(a.out, "shard %d of %d is kept in %s; when all are done: %s merge DIR ... --out DIR\n", c.Shard+1, c.Of, c.Dir, program())
		if !complete {
			fmt.Fprintf(a.err, "simrun: incomplete: it was stopped; the same command goes on with it\n")
			return exitUndecided, nil
		}
		return exitOK, nil
	}
	_, runs, err := explore.Merge([]string{c.Dir})
	if err != nil {
		return 0, err
	}
	if temporary {
		c.Dir = ""
	}
	return a.conclude(quit, p, runs, c.Dir, asJSON)
}

// planWords are the options of a plan that become fields of it only when they are checked.
type planWords struct {
	faults         []string
	profile, seeds string
}

// planFlags declares the options of explore that determine a plan.
func planFlags(f *pflag.FlagSet, p *explore.Plan, w *planWords) {
	f.StringVar(&p.Lock, "lock", "", "")
	f.StringSliceVar(&w.faults, "faults", nil, "")
	f.StringVar(&w.profile, "profile", string(draw.Simple), "")
	f.IntVar(&p.Runs, "runs", 1000, "")
	f.Int64Var(&p.Steps, "steps", 0, "")
	f.StringVar(&w.seeds, "seed", "1", "")
	f.StringVar(&p.Strategy, "strategy", explore.StrategyRandom, "")
	f.IntVar(&p.Depth, "depth", 0, "")
	f.StringVar(&p.Case, "scenario", "", "")
}

// complete checks the words and sets the fields of the plan that they are about. An
// exhaustive search has no profile and no seed.
func (w planWords) complete(p *explore.Plan) (err error) {
	if p.Faults, err = draw.ParseClasses(w.faults); err != nil || p.Strategy == explore.StrategyExhaustive {
		return err
	}
	if p.Profile, err = draw.ParseProfile(w.profile); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	first, last, err := seedRange(w.seeds)
	if err != nil {
		return err
	}
	p.Seed = first
	if more := last - first; more > 0 {
		if more >= uint64(p.Runs/explore.FamilyRuns) {
			return fmt.Errorf("--seed %s --runs %d: each seed needs at least %d runs", w.seeds, p.Runs, explore.FamilyRuns)
		}
		p.Seeds = int(more) + 1
	}
	return nil
}

// interrupts returns two contexts for a campaign. The first interrupt ends stop: the
// campaign plays no more runs, and shrinks the failures that it has found unless it is a
// shard. The second interrupt ends quit: the campaign stops shrinking, too. The runs that
// were played are kept.
func (a *app) interrupts() (stop, quit context.Context, release func()) {
	stop, end := context.WithCancel(context.Background())
	quit, endNow := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-stop.Done():
			return
		}
		fmt.Fprintln(a.err, "simrun: interrupted; it plays no more, and ends when what is under way is done. Interrupt again to end at once")
		end()
		select {
		case <-signals:
			endNow()
		case <-quit.Done():
		}
	}()
	return stop, quit, func() { signal.Stop(signals); end(); endNow() }
}

// cover plays all schedules of a small scenario.
func (a *app) cover(p explore.Plan, given *pflag.FlagSet, rest []string, w planWords, dir string, limit time.Duration, asJSON bool) (int, error) {
	s, err := covered(&p, given, rest, w)
	if err == nil {
		err = folder(dir)
	}
	if err != nil {
		return 0, usageError{fmt.Errorf("explore: %w", err)}
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(stop, cancel) // a second interrupt ends the program
	if limit > 0 {
		stop, cancel = context.WithTimeout(stop, limit)
		defer cancel()
	}
	told := a.tellProgress()
	o, small, err := explore.Cover(stop, a.host, p, s, shrinkBudget, program(), told.show)
	told.clear()
	if err != nil {
		return 0, err
	}
	return a.result(o, small, dir, asJSON)
}

// covered checks the options of an exhaustive search before anything is run. It completes
// the plan and returns the search.
func covered(p *explore.Plan, given *pflag.FlagSet, rest []string, w planWords) (*strategy.Search, error) {
	if len(rest) > 0 {
		return nil, fmt.Errorf("%q is no option; explore takes options only", rest[0])
	}
	for _, name := range []string{"profile", "steps", "seed", "depth", "jobs", "shard"} {
		if given.Changed(name) {
			return nil, fmt.Errorf("--%s does not belong to --strategy exhaustive, which plays all schedules of one scenario in one process", name)
		}
	}
	if p.Lock == "" {
		return nil, errors.New("--lock is missing; simrun list names the locks")
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
		if p.Runs < 1 {
			return nil, fmt.Errorf("--runs %d: at least 1", p.Runs)
		}
		s.MaxRuns = p.Runs
	}
	if p.Case == "" {
		s.Scenario, err = scenarios.Parse("small.yaml", []byte(strategy.SmallCase(l)), subject.Find)
	} else {
		s.Scenario, err = scenarios.Find(p.Case)
	}
	return s, err
}

// planned checks the options of a campaign before anything is run. It completes the plan
// and the campaign.
func planned(p *explore.Plan, c *explore.Campaign, rest []string, w planWords, shard string) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q is no option; explore takes options only", rest[0])
	}
	if p.Lock == "" {
		return errors.New("--lock is missing; simrun list names the locks")
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
	case p.Strategy == explore.StrategyRandom && p.Depth != 0:
		return errors.New("--depth belongs to --strategy pct")
	case p.Strategy == explore.StrategyPCT && p.Depth == 0:
		p.Depth = 3
	case p.Strategy != explore.StrategyRandom && p.Strategy != explore.StrategyPCT:
		return fmt.Errorf("--strategy %q: write random, pct or exhaustive", p.Strategy)
	}
	switch {
	case p.Runs < 1:
		return fmt.Errorf("--runs %d: at least 1", p.Runs)
	case p.Steps < 0:
		return fmt.Errorf("--steps %d: at least 1, or 0 for no such budget", p.Steps)
	case p.Depth < 0:
		return fmt.Errorf("--depth %d: at least 1", p.Depth)
	case c.Jobs < 1 || c.Jobs > 1024:
		return fmt.Errorf("--jobs %d: from 1 to 1024", c.Jobs)
	}
	if shard != "" {
		i, n, ok := strings.Cut(shard, "/")
		first, err1 := strconv.Atoi(i)
		of, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil || first < 1 || of < first {
			return fmt.Errorf("--shard %q: write I/N, as in 1/8 for the first of eight", shard)
		}
		if c.Dir == "" {
			return errors.New("--shard needs --out: simrun merge reads the folders of all shards")
		}
		c.Shard, c.Of = first-1, of
	}
	return folder(c.Dir)
}

// folder makes the folder of --out, unless dir is "".
func folder(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// player starts a process that plays runs of a campaign until quit ends. The process has a
// process group of its own. An interrupt from the terminal therefore does not reach it, and
// the campaign ends it.
func player(quit context.Context, p explore.Plan) (explore.Player, error) {
	cmd := workerProcess(quit)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return explore.Away(cmd, p)
}

// workerCommand is the command with which simrun starts itself as a worker. It is not for
// users.
const workerCommand = "explore-worker"

func (a *app) worker([]string) (int, error) {
	return exitOK, explore.Serve(a.host, os.Stdin, os.Stdout)
}

// merge makes one campaign from the folders of its shards.
func (a *app) merge(args []string) (int, error) {
	out := ""
	asJSON := false
	dirs, err := flags("merge", args, func(f *pflag.FlagSet) {
		f.StringVar(&out, "out", "", "")
		f.BoolVar(&asJSON, "json", false, "")
	})
	if err != nil {
		return 0, err
	}
	if len(dirs) == 0 {
		return 0, usagef("merge takes the folders of the shards of one campaign")
	}
	p, runs, err := explore.Merge(dirs)
	if err == nil {
		err = folder(out)
	}
	if err != nil {
		return 0, usagef("merge: %w", err)
	}
	if p.World != sim.Version {
		return 0, usagef("merge: the campaign was played in world version %d, and this program's is %d", p.World, sim.Version)
	}
	quit, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return a.conclude(quit, p, runs, out, asJSON)
}

// conclude sums up the runs, shrinks one failure per group, and prints the result. If quit
// ends first, it prints no result.
func (a *app) conclude(quit context.Context, p explore.Plan, runs []explore.Run, dir string, asJSON bool) (int, error) {
	o, small, err := explore.Conclude(p, runs, shrinkBudget, func(tasks []explore.ShrinkTask) ([]explore.Shrunk, []error) {
		return a.shrinkAll(quit, p, tasks)
	})
	if quit.Err() != nil {
		kept := ""
		if dir != "" {
			kept = "; the runs are kept, and the same command goes on with them"
		}
		fmt.Fprintf(a.err, "simrun: interrupted while what was found was made small%s\n", kept)
		return exitUndecided, nil
	}
	if err != nil {
		return 0, err
	}
	return a.result(o, small, dir, asJSON)
}

// result prints the result of a campaign. It also writes the result to dir, unless dir is "".
func (a *app) result(o explore.Tally, small []explore.Shrunk, dir string, asJSON bool) (int, error) {
	o, small = o.Fold(small)
	if dir != "" {
		if err := explore.WriteTally(dir, program(), o, small); err != nil {
			return 0, err
		}
	}
	if asJSON {
		if err := o.WriteJSON(a.out, small); err != nil {
			return 0, err
		}
	} else {
		a.tally(o, small, dir)
	}
	return tallyCode(o), nil
}

func tallyCode(o explore.Tally) int {
	switch {
	case len(o.Died) > 0:
		return exitDefect
	case slices.ContainsFunc(o.Groups, func(g explore.Found) bool { return g.Class == "bug" }):
		return exitUnexpected
	case o.Missing > 0 || len(o.Odd) > 0 || o.Coverage != nil && !o.Coverage.Complete:
		return exitUndecided
	}
	return exitOK
}

// shrinkAll makes failures small, on all processors, until quit ends. It returns the result
// or the error of each.
func (a *app) shrinkAll(quit context.Context, p explore.Plan, tasks []explore.ShrinkTask) ([]explore.Shrunk, []error) {
	small := make([]explore.Shrunk, len(tasks))
	problems := make([]error, len(tasks))
	turn := make(chan int)
	var all sync.WaitGroup
	for range min(runtime.NumCPU(), len(tasks)) {
		all.Go(func() {
			for i := range turn {
				w, err := player(quit, p)
				if err == nil {
					tasks[i].Program = program()
					small[i], err = w.Shrink(tasks[i])
					w.Close()
				}
				problems[i] = err
			}
		})
	}
	for i := range tasks {
		a.status("making %d of %d failures small", i+1, len(tasks))
		turn <- i
	}
	close(turn)
	all.Wait()
	a.status("")
	return small, problems
}

// tally prints the failures that a campaign found, and its totals.
func (a *app) tally(o explore.Tally, small []explore.Shrunk, dir string) {
	for i, g := range o.Groups {
		word := string(g.Class)
		cause := ""
		switch {
		case g.Defect != "":
			cause = ", a known defect: " + g.Defect + ", " + known.Title(g.Defect)
		case g.Excuse != "":
			cause = ", excused: " + g.Excuse
		}
		fmt.Fprintf(a.out, "%s %s at %s, with %s\n", a.paint(word, fmt.Sprintf("%-5s", word)), g.Judge, g.Op, g.FaultWords())
		fmt.Fprint(a.out, wrap(fmt.Sprintf("%d of %d runs, first seed %d; %d events after %d runs of shrinking%s",
			g.Count, o.Runs, g.First.Seed, small[i].Size, small[i].Runs, cause), "    ", 100))
		fmt.Fprint(a.out, wrap(small[i].Why, "    ", 100))
		if cause := small[i].CauseText(); cause != "" {
			fmt.Fprint(a.out, wrap("cause: "+cause, "    ", 100))
		}
		if dir != "" {
			fmt.Fprintf(a.out, "    replay: %s replay %s\n", program(), filepath.Join(dir, g.Recording(small[i])))
		}
	}
	fmt.Fprint(a.out, wrap(o.Total(), "", 100))
}

// status shows a line of progress if stderr is a terminal. An empty line clears it.
func (a *app) status(format string, args ...any) {
	if a.tty {
		fmt.Fprintf(a.err, "\r\x1b[K"+format, args...)
	}
}

// exploreProgress shows the progress of a campaign. On a terminal it overwrites one line.
// Elsewhere it prints a line whenever the number of runs has doubled.
type exploreProgress struct {
	mu    sync.Mutex
	a     *app
	begun time.Time
	from  int // runs of an earlier start
	shown time.Time
	next  int
}

func (a *app) tellProgress() *exploreProgress {
	return &exploreProgress{a: a, begun: time.Now(), from: -1, next: 1}
}

func (t *exploreProgress) show(p explore.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from < 0 {
		t.from = p.Runs - 1
	}
	rate := float64(p.Runs-t.from) / time.Since(t.begun).Seconds()
	of := fmt.Sprintf("%d of %d runs", p.Runs, p.Of)
	if p.Of == 0 {
		of = fmt.Sprintf("%d schedules", p.Runs)
	}
	line := fmt.Sprintf("%s, %.0f a second, %d states, %d groups, %d steps", of, rate, p.States, p.Groups, p.Steps)
	if p.Died > 0 {
		line += fmt.Sprintf(", %d died", p.Died)
	}
	switch {
	case t.a.tty && time.Since(t.shown) > 200*time.Millisecond:
		t.shown = time.Now()
		t.a.status("%s", line)
	case !t.a.tty && (p.Runs >= t.next || p.Runs == p.Of):
		for t.next <= p.Runs {
			t.next = max(t.next+1, 2*t.next)
		}
		fmt.Fprintln(t.a.err, line)
	}
}

func (t *exploreProgress) clear() { t.a.status("") }
