package simrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/counted"
	"lockstep/internal/nearest"
	"lockstep/known"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// killed is the result of campaigns of several seeds on one planted bug.
type killed struct {
	Bug   string         `json:"bug"`
	Judge string         `json:"judge"` // the judge that must find it
	Kills []explore.Kill `json:"kills"` // by seed, from 1
	// The first failure that was found is shrunk to Size events in Runs runs. Why is its
	// finding. Known is the known defect that the finding is taken for, or "".
	Size  int    `json:"size_events"`
	Runs  int    `json:"shrink_runs"`
	Why   string `json:"why,omitempty"`
	Known string `json:"known,omitempty"`
}

// killRow is a row of the table of planted bugs, as the file beside the table has it.
type killRow struct {
	killed
	In   string `json:"in"` // the lock in which the bug was planted
	What string `json:"what"`
	Most int    `json:"at_most"` // runs of a campaign
	Look string `json:"look"`    // the arguments of simrun for a campaign of one run that shows the bug
}

func rowOf(b *subject.PlantedBug, k killed) killRow {
	return killRow{killed: k, In: b.Base, What: b.What, Most: b.Runs, Look: lookFor(b)}
}

// killHead are the columns of the table, and cells returns a row of it.
var killHead = []string{"planted bug", "in", "what is wrong", "judge", "runs", "at most", "found", "first", "events", "look"}

func (k killRow) cells() []string {
	median, size := "–", "–"
	if n := k.median(); n > 0 {
		median = strconv.Itoa(n)
	}
	if k.Why != "" {
		size = strconv.Itoa(k.Size)
	}
	return []string{k.Bug, k.In, k.What, k.Judge, median, strconv.Itoa(k.Most),
		fmt.Sprintf("%d of %d", len(k.Kills)-k.alive(), len(k.Kills)), k.caught(), size, k.Look}
}

// killRowsEnding is the extension of the file with the rows of a table. The rest of its name is
// that of the table.
const killRowsEnding = ".jsonl"

// readKills reads the rows of a table of planted bugs.
func readKills(r io.Reader) (rows []killRow, err error) {
	dec := json.NewDecoder(r)
	for {
		var k killRow
		switch err := dec.Decode(&k); {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, err
		}
		rows = append(rows, k)
	}
}

func (a *app) killCommand() *cobra.Command {
	var out string
	var seeds, jobs int
	asJSON := false
	c := a.command(guide{
		use: "kill [BUG ...]", short: "say whether every planted bug is found, and by which judge",
		long: "Kill plays campaigns on locks that are wrong on purpose and tells which judge found each bug, and after how many runs. " +
			"Without a name it plays all of them. The exit code is 1 if a seed did not find its bug.",
		examples: []string{"kill acquire-without-lease --seeds 2"},
	}, func(in invocation) (int, error) { return a.kill(in, out, seeds, jobs, asJSON) })
	f := c.Flags()
	whole(f, &seeds, "seeds", 20, atLeast(1), "campaigns for each bug")
	jobsFlag(f, &jobs)
	f.StringVarP(&out, "out", "o", "", "write the table to `FILE`, and its rows beside it, to a file that ends in "+killRowsEnding)
	jsonFlag(f, &asJSON, "an object per bug, one per line")
	a.quietFlag(f, "on stdout only the number of bugs that were found, and the bugs that were not")
	c.ValidArgsFunction = only(bugNames)
	return c
}

// kill plays campaigns on planted bugs and writes the table of their results.
func (a *app) kill(in invocation, out string, seeds, jobs int, asJSON bool) (int, error) {
	chosen, err := chooseBugs(in.names)
	if err != nil {
		return 0, usageError{fmt.Errorf("kill: %w", err)}
	}
	var to, rowsTo *target
	if out != "" {
		if to, err = newTarget(out, ""); err != nil {
			return 0, err
		}
	}
	if out != "" && !asJSON {
		ending := filepath.Ext(out)
		if ending == killRowsEnding {
			return 0, usagef("kill: -o %s: the table is Markdown, and its rows get this name; give a file that ends in .md, or --json", out)
		}
		if rowsTo, err = newTarget(strings.TrimSuffix(out, ending)+killRowsEnding, ""); err != nil {
			return 0, err
		}
	}
	stop, release := a.interruptible()
	defer release()
	all, done, err := a.killAll(stop, chosen, seeds, jobs)
	if stop.Err() != nil {
		return 0, interruptedError(fmt.Sprintf(" after %d of %s; there is no table", done, counted.Of(len(chosen), "planted bug")))
	}
	if err != nil {
		return 0, err
	}
	code := exitOK
	var b, lines bytes.Buffer
	enc, encRows := json.NewEncoder(&b), json.NewEncoder(&lines)
	var rows []killRow
	for i, k := range all {
		if k.alive() > 0 {
			code = exitUnexpected
		}
		rows = append(rows, rowOf(chosen[i], k))
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
		writeKills(&b, program()+" "+strings.Join(append([]string{"kill"}, in.args...), " "), rows)
	}
	if a.quiet && !asJSON {
		a.killsInShort(all)
	}
	if rowsTo != nil {
		if err := rowsTo.replace(lines.Bytes()); err != nil {
			return 0, err
		}
	}
	switch {
	case to != nil:
		return code, to.replace(b.Bytes())
	case a.quiet && !asJSON:
		return code, nil
	}
	_, err = a.out.Write(b.Bytes())
	return code, err
}

// killsInShort prints how many bugs every seed found, and each bug that some seed did not find.
func (a *app) killsInShort(all []killed) {
	var alive []killed
	for _, k := range all {
		if k.alive() > 0 {
			alive = append(alive, k)
		}
	}
	fmt.Fprintf(a.out, "%d of %s found with every seed\n", len(all)-len(alive), counted.Of(len(all), "planted bug"))
	for _, k := range alive {
		fmt.Fprintf(a.out, "%s: %s found it with %d of %s\n", k.Bug, k.Judge, len(k.Kills)-k.alive(), counted.Of(len(k.Kills), "seed"))
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
			problems = append(problems, fmt.Errorf("no planted bug is called %q; %s%s list --planted names them", name, nearest.Hint(nearest.Near(name, plantedNames())), program()))
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
func (a *app) killAll(stop context.Context, chosen []*subject.PlantedBug, seeds, jobs int) (all []killed, done int, err error) {
	all = make([]killed, len(chosen))
	problems := make([]error, len(chosen))
	turn := make(chan int)
	var players sync.WaitGroup
	for range min(jobs, len(chosen)) {
		players.Go(func() {
			for i := range turn {
				all[i], problems[i] = killAway(stop, chosen[i].Name, seeds)
			}
		})
	}
	begun := 0
	for i, b := range chosen {
		if stop.Err() != nil {
			break
		}
		a.status("looking for %d of %s: %s", i+1, counted.Of(len(chosen), "planted bug"), b.Name)
		select {
		case turn <- i:
			begun++
		case <-stop.Done():
		}
	}
	close(turn)
	players.Wait()
	a.status("")
	for _, problem := range problems[:begun] {
		if problem == nil {
			done++
		}
	}
	return all, done, errors.Join(problems...)
}

// killerCommand is the command with which simrun starts itself to look for one planted bug.
// It is not for users.
const killerCommand = "kill-worker"

func killAway(stop context.Context, name string, seeds int) (k killed, err error) {
	self, err := os.Executable()
	if err != nil {
		return k, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(stop, self, killerCommand, name, strconv.Itoa(seeds))
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal goes to simrun alone
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil {
		return k, fmt.Errorf("planted bug %s: %w: %s", name, err, stderr.String())
	}
	return k, nil
}

// killer looks for one planted bug with several seeds, and shrinks the first failure that it
// finds.
func (a *app) killer(args []string) (int, error) {
	if len(args) != 2 {
		return 0, usagef("%s takes a planted bug and a number of seeds", killerCommand)
	}
	chosen, err := chooseBugs(args[:1])
	if err != nil {
		return 0, usageError{err}
	}
	seeds, err := strconv.Atoi(args[1])
	if err != nil {
		return 0, usagef("%s: %s is no number of seeds", killerCommand, args[1])
	}
	b := chosen[0]
	k := killed{Bug: b.Name, Judge: b.Judge}
	for seed := 1; seed <= seeds; seed++ {
		p, err := planOf(b, uint64(seed))
		if err != nil {
			return 0, err
		}
		found, err := explore.Hunt(a.host, p, b.Judge, nil)
		if err != nil {
			return 0, err
		}
		k.Kills = append(k.Kills, found)
		if found.Runs == 0 || k.Why != "" {
			continue
		}
		player, err := explore.Here(a.host, p)
		if err != nil {
			return 0, err
		}
		small, err := player.Shrink(explore.ShrinkTask{Run: found.Run, Failed: found.Failed, Budget: shrinkBudget, Program: program()})
		if err != nil {
			return 0, err
		}
		k.Size, k.Runs, k.Why, k.Known = small.Size, small.Runs, small.Why, small.Defect
	}
	return exitOK, json.NewEncoder(a.out).Encode(k)
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

// alive returns the number of seeds that did not find the bug.
func (k killed) alive() (n int) {
	for _, one := range k.Kills {
		if one.Runs == 0 {
			n++
		}
	}
	return n
}

// median returns the median over the seeds of the runs that it took to find the bug. It
// returns 0 if half of the seeds or more did not find it.
func (k killed) median() int {
	var runs []int
	for _, one := range k.Kills {
		if one.Runs > 0 {
			runs = append(runs, one.Runs)
		}
	}
	slices.Sort(runs)
	if at := len(k.Kills) / 2; at < len(runs) {
		return runs[at]
	}
	return 0
}

// caught returns the judges that were broken in the first failing run of a seed, each with
// its number of seeds.
func (k killed) caught() string {
	count := map[string]int{}
	for _, one := range k.Kills {
		for _, judge := range one.First {
			count[judge]++
		}
	}
	judges := mostFirst(count)
	for i, judge := range judges {
		judges[i] = fmt.Sprintf("%s %d", judge, count[judge])
	}
	return strings.Join(judges, ", ")
}

func writeKills(b *bytes.Buffer, command string, all []killRow) {
	found, named := 0, 0
	for _, k := range all {
		if k.alive() < len(k.Kills) {
			found++
		}
		if k.alive() == 0 {
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
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(killHead, " | "), strings.Repeat("|---", len(killHead)))
	for _, k := range all {
		cells := k.cells()
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
