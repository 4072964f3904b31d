package evidence

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/internal/quantity"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// agreeFlags are the options of evidence agree.
type agreeFlags struct {
	locks, again, tags []string
	out, differing     string
	runs, jobs         int
	planted            bool
}

func agreeCommand(a *frame.App) *cobra.Command {
	var o agreeFlags
	c := a.Command(frame.Guide{
		Use: "agree [SCENARIO or FILE ...]", Short: "play scenarios simulated and live, and say whether the verdicts agree",
		Long: "Agree plays scenarios in the simulated world and on real servers and compares the verdicts. Without a name and a tag it plays the track record. " +
			"With --planted it plays the stories of planted bugs, and says whether the judge of each bug names it. " +
			"With -o the same command goes on where it was interrupted.",
		Examples: []string{"agree misdelete --lock setnx-del", "agree -o agreement.md --differing differing"},
	}, func(in frame.Invocation) (int, error) {
		if o.planted {
			return agreePlanted(a, in, o)
		}
		return compareWorlds(a, in, o)
	})
	f := c.Flags()
	frame.LockFlag(f, &o.locks, "play on `LOCK` in place of the locks of the scenario; may be repeated")
	frame.TagsFlag(f, &o.tags)
	frame.Whole(f, &o.runs, "runs", 3, quantity.LiveRuns, "how often each scenario is played live")
	frame.LiveJobsFlag(f, &o.jobs, "live runs at a time")
	f.StringVarP(&o.out, "out", "o", "", "write the comparison to `FILE`")
	f.StringSliceVar(&o.again, "again", nil, "play all runs of `SCENARIO` anew, and keep the other runs; may be repeated")
	f.BoolVar(&o.planted, "planted", false, "play the stories of the planted bugs with these names; without a name, of all")
	f.StringVar(&o.differing, "differing", "", "write the live runs that do not agree to `DIR`, for report")
	a.ProgressFlag(f)
	c.ValidArgsFunction = frame.ScenariosOrFiles
	return c
}

// compareWorlds plays scenarios in the simulated world and on real servers, and compares the verdicts.
func compareWorlds(a *frame.App, in frame.Invocation, flags agreeFlags) (int, error) {
	names, tags, locks, runs, jobs, out := in.Names, flags.tags, flags.locks, flags.runs, flags.jobs, flags.out
	o, err := cli.LiveOptions(a, "", "")
	if err != nil {
		return 0, err
	}
	pairs, left, err := playableInBoth(a, names, tags, locks)
	if err != nil {
		return 0, frame.OnRealServer(err)
	}
	if err := cli.LiveReady(a, cli.LocksOf(pairs), o); err != nil {
		return 0, err
	}
	if err := flags.checkAgain(pairs); err != nil {
		return 0, err
	}
	earlier, err := flags.open()
	if err != nil {
		return 0, err
	}
	defer earlier.close()
	ctx, stop := a.Interruptible()
	defer stop()
	compared, err := simulateAll(a, ctx, pairs)
	if err != nil {
		return 0, err
	}
	// Nothing is simulated from here on.
	runtime.GOMAXPROCS(runtime.NumCPU())
	g, t := agreeing{a, o, earlier, flags.differing}, tellLive(a, len(compared)*runs)
	err = sideBySide(ctx, len(compared)*runs, jobs, "run", func(i int) error {
		c, n := compared[i/runs], i%runs+1
		x, before, err := g.run(ctx, c.Pair, n, slices.Contains(flags.again, c.Scenario.Name), func(x *agreedRun, _ play.LiveRun) bool {
			return slices.Contains(c.simulated, x.Outcome)
		})
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		c.add(x)
		t.played(before, c.Scenario.Name+" on "+c.Lock.Name+": "+x.Outcome)
		return nil
	})
	a.Status("")
	if err := tableError(ctx, err, earlier.kept()); err != nil {
		return 0, err
	}
	for _, c := range compared {
		c.sort()
	}
	text := agreement(compared, left, append([]string{a.Called(), "agree"}, in.ArgsBut("again")...), runs)
	if out == "" {
		_, err := a.Out.Write(text)
		return frame.ExitOK, err
	}
	if err := earlier.tidy(); err != nil {
		return 0, err
	}
	return frame.ExitOK, renameio.WriteFile(out, text, 0o666)
}

// checkAgain checks that the command plays the scenarios of --again.
func (f agreeFlags) checkAgain(pairs []*cli.Pair) error {
	if len(f.again) > 0 && f.out == "" {
		return frame.Usagef("agree: --again plays runs anew that an earlier command kept; give the -o of that command")
	}
	for _, name := range f.again {
		if !slices.ContainsFunc(pairs, func(p *cli.Pair) bool { return p.Scenario.Name == name }) {
			return frame.Usagef("agree: --again %s: this command does not play that scenario", name)
		}
	}
	return nil
}

// simulateAll plays the pairs in the simulated world, and returns their outcomes there.
func simulateAll(a *frame.App, ctx context.Context, pairs []*cli.Pair) (compared []*comparison, err error) {
	for _, p := range pairs {
		a.Status("simulated: %s on %s", p.Scenario.Name, p.Lock.Name)
		c := &comparison{Pair: p}
		world := *p
		world.Lock = simulated(p.Lock)
		err := cli.PlayPair(a, ctx, &world, cli.NoProgress(a), func(v play.Verdict) error {
			if x := outcome(v); !slices.Contains(c.simulated, x) {
				c.simulated = append(c.simulated, x)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		compared = append(compared, c)
	}
	return compared, nil
}

// open makes the folder of --differing, and reads the runs that an earlier command kept beside the
// file of -o.
func (f agreeFlags) open() (*agreedRuns, error) {
	if info, err := os.Stat(f.out); err == nil && info.IsDir() {
		return nil, frame.Usagef("-o %s is a folder; give a file", f.out)
	}
	if f.differing != "" {
		if err := frame.OutputFolder("--differing", f.differing); err != nil {
			return nil, err
		}
	}
	earlier, err := openAgreed(f.out)
	if err != nil {
		return nil, frame.Usage(fmt.Errorf("agree: %w", err))
	}
	return earlier, nil
}

// simulated returns the lock that is played in the simulated world.
func simulated(l *subject.Subject) *subject.Subject {
	if l.Port != nil {
		return l.Port
	}
	return l
}

// playableInBoth returns the pairs of scenario and lock that can be played in both worlds. It takes
// the scenarios with these names or one of these tags; without both, it takes the track record. left
// lists the pairs that are left out, with the reasons: the pair is not possible live, or the lock does
// not claim the property that the scenario tests. A pair that is not possible is an error if the user
// named both its scenario and its lock.
func playableInBoth(a *frame.App, names, tags, locks []string) (pairs []*cli.Pair, left []string, err error) {
	named := len(names) > 0
	switch {
	case !named && len(tags) == 0:
		tags = []string{"track-record"}
	case len(tags) == 0:
		tags = []string{""}
	}
	var chosen []*cli.Pair
	for i, tag := range tags {
		if i > 0 {
			names = nil // they are chosen already
		}
		these, err := cli.Choose(names, tag, locks, "")
		if err != nil {
			return nil, nil, err
		}
		chosen = append(chosen, these...)
	}
	for _, p := range chosen {
		err := a.Live.Check(p.Scenario, p.Lock, play.LiveOptions{})
		if err == nil {
			err = play.Applies(p.Scenario, simulated(p.Lock))
		}
		if err != nil && named && len(locks) > 0 {
			return nil, nil, frame.Usage(err)
		}
		if err == nil {
			err = play.Claims(p.Scenario, p.Lock)
		}
		if err != nil {
			left = append(left, fmt.Sprintf("%s on %s: %v", p.Scenario.Name, p.Lock.Name, err))
			continue
		}
		pairs = append(pairs, p)
	}
	if len(pairs) == 0 {
		return nil, nil, frame.Usagef("agree: no pair of scenario and lock is left: %s", strings.Join(left, "; "))
	}
	return pairs, left, nil
}

// comparison is a pair with its verdicts in both worlds.
type comparison struct {
	*cli.Pair
	simulated []string // the outcomes of the seeds
	runs      []agreedRun
	live      []string // the outcomes of the runs, each once
	times     []int    // how often each outcome of live occurred
}

func (c *comparison) add(r agreedRun) {
	c.runs = append(c.runs, r)
	i := slices.Index(c.live, r.Outcome)
	if i < 0 {
		c.live, c.times = append(c.live, r.Outcome), append(c.times, 0)
		i = len(c.live) - 1
	}
	c.times[i]++
}

// sort puts the runs in the order of their numbers.
func (c *comparison) sort() {
	slices.SortFunc(c.runs, func(x, y agreedRun) int { return cmp.Compare(x.Run, y.Run) })
}

// agreed counts the live runs whose outcome equals that of some simulated run.
func (c *comparison) agreed() (n int) {
	for i, x := range c.live {
		if slices.Contains(c.simulated, x) {
			n += c.times[i]
		}
	}
	return n
}

// outcome returns the verdict and the judges that found a promise broken. For an undecided run it
// names the judges that could not decide.
func outcome(v play.Verdict) string {
	var names []string
	for _, f := range v.Findings {
		if (f.Verdict == judges.Broken || v.Word == play.VerdictUndecided) && !slices.Contains(names, f.Judge) {
			names = append(names, f.Judge)
		}
	}
	if len(names) == 0 {
		return string(v.Word)
	}
	return string(v.Word) + ": " + strings.Join(names, ", ")
}

// agreement writes the table.
func agreement(compared []*comparison, left, command []string, runs int) []byte {
	var b bytes.Buffer
	all, agreed, programs := 0, 0, map[string]bool{}
	for _, c := range compared {
		all += runs
		agreed += c.agreed()
		for _, r := range c.runs {
			for _, p := range r.Programs {
				programs[p] = true
			}
		}
	}
	fmt.Fprintf(&b, "<!-- %s -->\n\n# Simulated and live\n\n", strings.Join(command, " "))
	fmt.Fprintf(&b, "Each scenario was played in the simulated world with the seeds of its file, and %s on %s in real time. A live run agrees if a simulated\n"+
		"run has the same verdict and the same judges. [docs/live.md](../docs/live.md) explains the cells that do not agree.\n\n", counted.Of(runs, "time"), strings.Join(sortedNames(programs), ", "))
	fmt.Fprintf(&b, "%d of %d live runs agree.\n\n", agreed, all)
	fmt.Fprintln(&b, "| scenario | lock | simulated | live | agree |")
	fmt.Fprintln(&b, "|---|---|---|---|---|")
	for _, c := range compared {
		var live []string
		for i, x := range c.live {
			live = append(live, fmt.Sprintf("%s (%d of %d)", x, c.times[i], runs))
		}
		slices.Sort(live)
		mark := fmt.Sprintf("%d of %d", c.agreed(), runs)
		if c.agreed() < runs {
			mark = "**" + mark + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.Scenario.Name, c.Lock.Name, strings.Join(c.simulated, " / "), strings.Join(live, " / "), mark)
	}
	var notes []string
	for _, c := range compared {
		for _, r := range c.runs {
			if r.Note != "" {
				notes = append(notes, fmt.Sprintf("* Run %d of %s on %s was %s.\n", r.Run, c.Scenario.Name, c.Lock.Name, r.Note))
			}
		}
	}
	if len(notes) > 0 {
		fmt.Fprintf(&b, "\n%s", strings.Join(notes, ""))
	}
	for i, l := range left {
		if i == 0 {
			fmt.Fprint(&b, "\nNot played:\n\n")
		}
		fmt.Fprintf(&b, "* %s\n", l)
	}
	return b.Bytes()
}

func sortedNames(set map[string]bool) []string {
	var names []string
	for n := range set {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
