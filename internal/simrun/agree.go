package simrun

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// agreeFlags are the options of simrun agree.
type agreeFlags struct {
	locks, again, tags []string
	out, differing     string
	runs, jobs         int
	planted            bool
}

func (a *app) agreeCommand() *cobra.Command {
	var o agreeFlags
	c := a.command(guide{
		use: "agree [SCENARIO or FILE ...]", short: "play scenarios simulated and live, and say whether the verdicts agree",
		long: "Agree plays scenarios in the simulated world and on real servers and compares the verdicts. Without a name and a tag it plays the track record. " +
			"With --planted it plays the stories of planted bugs, and says whether the judge of each bug names it. " +
			"With -o the same command goes on where it was interrupted.",
		examples: []string{"agree misdelete --lock setnx-del", "agree -o agreement.md --differing differing"},
	}, func(in invocation) (int, error) {
		if o.planted {
			return a.agreePlanted(in, o)
		}
		return a.agree(in, o)
	})
	f := c.Flags()
	lockFlag(f, &o.locks, "play on `LOCK` in place of the locks of the scenario; may be repeated")
	f.Var(tags{&o.tags}, "tag", tagUsage+"; may be repeated")
	whole(f, &o.runs, "runs", 3, bounds{1, runsMost}, "how often each scenario is played live")
	liveJobsFlag(f, &o.jobs, "live runs at a time")
	f.StringVarP(&o.out, "out", "o", "", "write the comparison to `FILE`")
	f.StringSliceVar(&o.again, "again", nil, "play all runs of `SCENARIO` anew, and keep the other runs; may be repeated")
	f.BoolVar(&o.planted, "planted", false, "play the stories of the planted bugs with these names; without a name, of all")
	f.StringVar(&o.differing, "differing", "", "write the live runs that do not agree to `DIR`, for report")
	a.progressFlag(f)
	c.ValidArgsFunction = scenariosOrFiles
	return c
}

// agree plays scenarios in the simulated world and on real servers, and compares the verdicts.
func (a *app) agree(in invocation, flags agreeFlags) (int, error) {
	names, tags, locks, runs, jobs, out, keep := in.names, flags.tags, flags.locks, flags.runs, flags.jobs, flags.out, flags.differing
	o, err := liveOptions("", "")
	if err != nil {
		return 0, err
	}
	pairs, left, err := playableInBoth(names, tags, locks)
	if err != nil {
		return 0, realServerError{err}
	}
	if err := liveReady(locksOf(pairs), o); err != nil {
		return 0, err
	}
	if len(flags.again) > 0 && out == "" {
		return 0, usagef("agree: --again plays runs anew that an earlier command kept; give the -o of that command")
	}
	for _, name := range flags.again {
		if !slices.ContainsFunc(pairs, func(p *pair) bool { return p.sc.Name == name }) {
			return 0, usagef("agree: --again %s: this command does not play that scenario", name)
		}
	}
	earlier, err := flags.open()
	if err != nil {
		return 0, err
	}
	defer earlier.close()
	ctx, stop := a.interruptible()
	defer stop()
	compared := make([]*comparison, len(pairs))
	for i, p := range pairs {
		a.status("simulated: %s on %s", p.sc.Name, p.lock.Name)
		compared[i] = &comparison{pair: p}
		world := *p
		world.lock = simulated(p.lock)
		err := a.play(ctx, &world, &progress{a: a}, func(v play.Verdict) error {
			if x := outcome(v); !slices.Contains(compared[i].simulated, x) {
				compared[i].simulated = append(compared[i].simulated, x)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	// Nothing is simulated from here on.
	runtime.GOMAXPROCS(runtime.NumCPU())
	t := a.tellLive(len(compared) * runs)
	err = sideBySide(ctx, len(compared)*runs, jobs, "run", func(i int) error {
		c, n := compared[i/runs], i%runs+1
		x, ok := earlier.find(c.pair, n)
		if ok = ok && !slices.Contains(flags.again, c.sc.Name); !ok {
			r, err := Live.Run(ctx, c.sc, c.lock, uint64(n), o)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", c.sc.Name, c.lock.Name, err)
			}
			x = agreedRunOf(c.pair, n, r)
			if keep != "" && !slices.Contains(c.simulated, x.Outcome) {
				if _, err := writeLive(keep, r); err != nil {
					return err
				}
			}
			if err := earlier.add(x); err != nil {
				return err
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		c.add(x)
		t.played(ok, c.sc.Name+" on "+c.lock.Name+": "+x.Outcome)
		return nil
	})
	a.status("")
	if err := tableError(ctx, err, earlier.kept()); err != nil {
		return 0, err
	}
	for _, c := range compared {
		c.sort()
	}
	text := agreement(compared, left, in.argsBut("again"), runs)
	if out == "" {
		_, err := a.out.Write(text)
		return exitOK, err
	}
	if err := earlier.tidy(); err != nil {
		return 0, err
	}
	return exitOK, renameio.WriteFile(out, text, 0o666)
}

// open makes the folder of --differing, and reads the runs that an earlier command kept beside the
// file of -o.
func (f agreeFlags) open() (*agreedRuns, error) {
	if info, err := os.Stat(f.out); err == nil && info.IsDir() {
		return nil, usagef("-o %s is a folder; give a file", f.out)
	}
	if f.differing != "" {
		if err := outputFolder("--differing", f.differing); err != nil {
			return nil, err
		}
	}
	earlier, err := openAgreed(f.out)
	if err != nil {
		return nil, usageError{fmt.Errorf("agree: %w", err)}
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
func playableInBoth(names, tags, locks []string) (pairs []*pair, left []string, err error) {
	named := len(names) > 0
	switch {
	case !named && len(tags) == 0:
		tags = []string{"track-record"}
	case len(tags) == 0:
		tags = []string{""}
	}
	var chosen []*pair
	for i, tag := range tags {
		if i > 0 {
			names = nil // they are chosen already
		}
		these, err := choose(names, tag, locks, "")
		if err != nil {
			return nil, nil, err
		}
		chosen = append(chosen, these...)
	}
	for _, p := range chosen {
		err := Live.Check(p.sc, p.lock, LiveOptions{})
		if err == nil {
			err = play.Applies(p.sc, simulated(p.lock))
		}
		if err != nil && named && len(locks) > 0 {
			return nil, nil, usageError{err}
		}
		if err == nil {
			err = play.Claims(p.sc, p.lock)
		}
		if err != nil {
			left = append(left, fmt.Sprintf("%s on %s: %v", p.sc.Name, p.lock.Name, err))
			continue
		}
		pairs = append(pairs, p)
	}
	if len(pairs) == 0 {
		return nil, nil, usagef("agree: no pair of scenario and lock is left: %s", strings.Join(left, "; "))
	}
	return pairs, left, nil
}

// comparison is a pair with its verdicts in both worlds.
type comparison struct {
	*pair
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
func agreement(compared []*comparison, left, args []string, runs int) []byte {
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
	fmt.Fprintf(&b, "<!-- %s agree %s -->\n\n# Simulated and live\n\n", program(), strings.Join(args, " "))
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
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.sc.Name, c.lock.Name, strings.Join(c.simulated, " / "), strings.Join(live, " / "), mark)
	}
	var notes []string
	for _, c := range compared {
		for _, r := range c.runs {
			if r.Note != "" {
				notes = append(notes, fmt.Sprintf("* Run %d of %s on %s was %s.\n", r.Run, c.sc.Name, c.lock.Name, r.Note))
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
