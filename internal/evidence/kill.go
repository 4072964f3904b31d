package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/counted"
	"lockstep/internal/nearest"
	"lockstep/internal/quantity"
	"lockstep/known"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func rowOf(b *subject.PlantedBug, k cli.Killed) cli.KillRow {
	return cli.KillRow{Killed: k, In: b.Base, What: b.What, Most: b.Runs, Look: lookFor(b)}
}

func killCommand(a *frame.App) *cobra.Command {
	var out string
	var seeds, jobs int
	asJSON := false
	c := a.Command(frame.Guide{
		Use: "kill [BUG ...]", Short: "say whether every planted bug is found, and by which judge",
		Long: "Kill plays campaigns on locks that are wrong on purpose and tells which judge found each bug, and after how many runs. " +
			"Without a name it plays all of them. The exit code is 1 if a seed did not find its bug.",
		Examples: []string{"kill acquire-without-lease --seeds 2"},
	}, func(in frame.Invocation) (int, error) { return kill(a, in, out, seeds, jobs, asJSON) })
	f := c.Flags()
	frame.Whole(f, &seeds, "seeds", 20, quantity.Campaigns, "campaigns for each bug")
	frame.JobsFlag(f, &jobs)
	f.StringVarP(&out, "out", "o", "", "write the table to `FILE`, and its rows beside it, to a file that ends in "+cli.KillRowsEnding)
	frame.JSONFlag(f, &asJSON, "an object per bug, one per line")
	a.QuietFlag(f, "on stdout only the number of bugs that were found, and the bugs that were not")
	c.ValidArgsFunction = frame.Only(bugNames)
	return c
}

// kill plays campaigns on planted bugs and writes the table of their results.
func kill(a *frame.App, in frame.Invocation, out string, seeds, jobs int, asJSON bool) (int, error) {
	chosen, err := chooseBugs(in.Names)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("kill: %w", err))
	}
	var to, rowsTo *frame.Target
	if out != "" {
		if to, err = frame.NewTarget(out, ""); err != nil {
			return 0, err
		}
	}
	if out != "" && !asJSON {
		ending := filepath.Ext(out)
		if ending == cli.KillRowsEnding {
			return 0, frame.Usagef("kill: -o %s: the table is Markdown, and its rows get this name; give a file that ends in .md, or --json", out)
		}
		if rowsTo, err = frame.NewTarget(strings.TrimSuffix(out, ending)+cli.KillRowsEnding, ""); err != nil {
			return 0, err
		}
	}
	stop, release := a.Interruptible()
	defer release()
	all, done, err := killAll(a, stop, chosen, seeds, jobs)
	if stop.Err() != nil {
		return 0, frame.InterruptedError(fmt.Sprintf(" after %d of %s; there is no table", done, counted.Of(len(chosen), "planted bug")))
	}
	problem := err // of some bugs; the others have rows
	code := frame.ExitOK
	var b, lines bytes.Buffer
	enc, encRows := json.NewEncoder(&b), json.NewEncoder(&lines)
	var rows []cli.KillRow
	for i, k := range all {
		rows = append(rows, rowOf(chosen[i], k))
	}
	if problem != nil {
		rows = slices.DeleteFunc(rows, func(r cli.KillRow) bool { return r.Bug == "" })
		all = slices.DeleteFunc(all, func(k cli.Killed) bool { return k.Bug == "" })
	}
	for i, k := range all {
		if k.Alive() > 0 {
			code = frame.ExitUnexpected
		}
		if asJSON {
			err = enc.Encode(k)
		} else {
			err = encRows.Encode(rows[i])
		}
		if err != nil {
			return 0, err
		}
	}
	if !asJSON {
		writeKills(&b, strings.Join(append([]string{a.Called(), "kill"}, in.Args...), " "), rows)
	}
	if a.Quiet && !asJSON {
		killsInShort(a, all)
	}
	if problem != nil {
		to, rowsTo = nil, nil // the files stay as they were
	}
	if rowsTo != nil {
		if err := rowsTo.Replace(lines.Bytes()); err != nil {
			return 0, err
		}
	}
	switch {
	case to != nil:
		return code, to.Replace(b.Bytes())
	case a.Quiet && !asJSON:
		return code, problem
	}
	_, err = a.Out.Write(b.Bytes())
	return code, errors.Join(problem, err)
}

// killsInShort prints how many bugs every seed found, and each bug that some seed did not find.
func killsInShort(a *frame.App, all []cli.Killed) {
	var alive []cli.Killed
	for _, k := range all {
		if k.Alive() > 0 {
			alive = append(alive, k)
		}
	}
	fmt.Fprintf(a.Out, "%d of %s found with every seed\n", len(all)-len(alive), counted.Of(len(all), "planted bug"))
	for _, k := range alive {
		fmt.Fprintf(a.Out, "%s: %s found it with %d of %s\n", k.Bug, k.Judge, len(k.Kills)-k.Alive(), counted.Of(len(k.Kills), "seed"))
	}
}

func chooseBugs(names []string) ([]*subject.PlantedBug, error) {
	if len(names) == 0 {
		return subject.PlantedBugs(), nil
	}
	var chosen []*subject.PlantedBug
	var problems []error
	for _, name := range names {
		name = strings.TrimPrefix(name, subject.PlantedPrefix)
		i := slices.IndexFunc(subject.PlantedBugs(), func(b *subject.PlantedBug) bool { return b.Name == name })
		if i < 0 {
			problems = append(problems, fmt.Errorf("no planted bug is called %q; %s%s list --planted names them", name, nearest.Hint(nearest.Near(name, plantedNames())), frame.Simrun()))
			continue
		}
		chosen = append(chosen, subject.PlantedBugs()[i])
	}
	return chosen, errors.Join(problems...)
}

func plantedNames() (names []string) {
	for _, b := range subject.PlantedBugs() {
		names = append(names, b.Name)
	}
	return names
}

// killAll plays each bug in a process of its own, jobs processes at a time, until stop ends. done is
// the number of bugs that were played to the end.
func killAll(a *frame.App, stop context.Context, chosen []*subject.PlantedBug, seeds, jobs int) (all []cli.Killed, done int, err error) {
	all = make([]cli.Killed, len(chosen))
	problems := make([]error, len(chosen))
	var begun atomic.Int64
	frame.SideBySide(stop, jobs, len(chosen), func(i int) {
		begun.Add(1)
		a.Status("looking for %d of %s: %s", i+1, counted.Of(len(chosen), "planted bug"), chosen[i].Name)
		all[i], problems[i] = killAway(stop, chosen[i].Name, seeds)
	})
	a.Status("")
	for _, problem := range problems[:begun.Load()] {
		if problem == nil {
			done++
		}
	}
	return all, done, errors.Join(problems...)
}

// killWorker is the command with which evidence starts itself to look for one planted bug.
// It is not for users.
const killWorker = "kill-worker"

// killTask asks a process to look for a planted bug with so many seeds.
type killTask struct {
	Bug   string
	Seeds int
}

func killAway(stop context.Context, name string, seeds int) (k cli.Killed, err error) {
	if err := frame.Away(stop, killWorker, killTask{name, seeds}, &k); err != nil {
		return k, fmt.Errorf("planted bug %s: %w", name, err)
	}
	return k, nil
}

// killer looks for planted bugs for another process.
func killer(a *frame.App) (int, error) {
	return frame.ServeTask(a, func(task killTask) (any, error) { return killOne(a, task) })
}

// killOne looks for one planted bug with several seeds, and shrinks the first failure that it
// finds.
func killOne(a *frame.App, task killTask) (k cli.Killed, err error) {
	chosen, err := chooseBugs([]string{task.Bug})
	if err != nil {
		return k, frame.Usage(err)
	}
	b := chosen[0]
	k = cli.Killed{Bug: b.Name, Judge: b.Judge}
	for seed := 1; seed <= task.Seeds; seed++ {
		p, err := planOf(b, uint64(seed))
		if err != nil {
			return k, err
		}
		found, err := explore.Hunt(a.Host, p, b.Judge, nil)
		if err != nil {
			return k, err
		}
		k.Kills = append(k.Kills, found)
		if found.Runs == 0 || k.Why != "" {
			continue
		}
		player, err := explore.Here(a.Host, p)
		if err != nil {
			return k, err
		}
		small, err := player.Shrink(explore.ShrinkTask{Run: found.Run, Failed: found.Failed, Budget: a.ShrinkBudget(), Program: frame.SimrunInFiles()})
		if err != nil {
			return k, err
		}
		k.Size, k.Runs, k.Why, k.Known = small.Size, small.Runs, small.Why, small.Defect
	}
	return k, nil
}

// planOf returns the plan of the campaign that must find a planted bug.
func planOf(b *subject.PlantedBug, seed uint64) (explore.Plan, error) {
	var words []string
	if b.Faults != "" {
		words = strings.Split(b.Faults, ",")
	}
	classes, err := draw.ParseClasses(words)
	return explore.Plan{
		World: sim.Version, Lock: subject.PlantedPrefix + b.Name, Faults: classes, Profile: draw.Profile(b.Profile),
		Strategy: explore.StrategyPlain, Seed: seed, Runs: b.Runs,
	}, err
}

func writeKills(b *bytes.Buffer, command string, all []cli.KillRow) {
	found, named := 0, 0
	for _, k := range all {
		if k.Alive() < len(k.Kills) {
			found++
		}
		if k.Alive() == 0 {
			named++
		}
	}
	fmt.Fprintf(b, "<!-- written by: %s -->\n%s# Planted bugs\n\nWritten by `%s`.\n\n", command, explore.CurrentVersions().Untold().Comment(), command)
	seeds := 0
	if len(all) > 0 {
		seeds = len(all[0].Kills)
	}
	fmt.Fprintf(b, "%d locks that are wrong on purpose, each a faithful lock with one thing changed (`lockimpl/planted`): in %d of them the judge that names the "+
		"cause found it, in %d with each of %d seeds within the runs of the column *at most*. Runs are those until that judge found it, in the median of the seeds; a "+
		"finding counts that the lock without the bug does not have in the same scenario. *First* are the judges that were broken in the first run that "+
		"showed anything, with the number of seeds.\n\n",
		len(all), found, named, seeds)
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(cli.KillHead, " | "), strings.Repeat("|---", len(cli.KillHead)))
	for _, k := range all {
		cells := k.Cells()
		cells[len(cells)-1] = "`" + k.Look + "`"
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n## What the judges say\n\nOf the first that was found, made small.\n\n")
	for _, k := range all {
		if k.Why == "" {
			continue
		}
		as := ""
		if k.Known != "" {
			as = fmt.Sprintf(" (It looks like a known defect: %s.)", known.Title(k.Known))
		}
		fmt.Fprintf(b, "* **%s**: %s%s\n", k.Bug, k.Why, as)
	}
}

// lookFor returns the arguments of simrun for a campaign of one run that shows the bug.
func lookFor(b *subject.PlantedBug) string {
	p, err := planOf(b, b.Seed)
	if err != nil {
		return err.Error()
	}
	p.Runs = 1
	return strings.Join(p.Args(), " ")
}

func bugNames() (names []string) {
	for _, b := range subject.PlantedBugs() {
		names = append(names, frame.Described(b.Name, b.What))
	}
	return names
}
