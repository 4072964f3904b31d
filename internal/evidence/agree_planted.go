package evidence

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/live/planted"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// A plantedCell is a planted bug with the story that shows it, simulated and live.
type plantedCell struct {
	*subject.PlantedBug
	story *scenarios.Scenario
	// lacks says why the story cannot be played live; "": it can.
	lacks string
	// lock has the bug, and base does not. Bugs of one story and one base share base.
	lock, base *plantedSide
}

// A plantedSide is a story on one lock: the judges that find a bug, in each run.
type plantedSide struct {
	*cli.Pair
	simulated [][]string // by seed
	live      []agreedRun
}

// plantedCells returns the planted bugs of these names in the order of their table; without a
// name, all. Each bug has one story.
func plantedCells(a *frame.App, names []string) ([]*plantedCell, error) {
	bugs, err := chooseBugs(names)
	if err != nil {
		return nil, frame.Usage(fmt.Errorf("agree: %w", err))
	}
	stories, err := planted.Stories()
	if err != nil {
		return nil, err
	}
	var cells []*plantedCell
	bases := map[string]*plantedSide{}
	for _, b := range bugs {
		l, err := subject.Find(subject.PlantedPrefix + b.Name)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(stories, func(sc *scenarios.Scenario) bool { return slices.Contains(sc.Locks, l.Name) })
		if i < 0 {
			return nil, fmt.Errorf("agree: no story in live/planted/stories shows the planted bug %s", b.Name)
		}
		c := &plantedCell{PlantedBug: b, story: stories[i], lock: plantedSideOf(stories[i], l)}
		key := c.story.Name + " " + b.Base
		if bases[key] == nil {
			bases[key] = plantedSideOf(c.story, l.Unplanted())
		}
		c.base = bases[key]
		if err := a.Live.Check(c.story, l, play.LiveOptions{}); err != nil {
			c.lacks = err.Error()
		}
		cells = append(cells, c)
	}
	return cells, nil
}

func plantedSideOf(sc *scenarios.Scenario, l *subject.Subject) *plantedSide {
	return &plantedSide{Pair: &cli.Pair{Scenario: sc, Lock: l, From: sc.SeedFirst, To: sc.SeedLast}}
}

// sides returns the pairs of cells that are possible live, each once.
func sides(cells []*plantedCell) (all []*plantedSide) {
	for _, c := range cells {
		for _, s := range []*plantedSide{c.lock, c.base} {
			if c.lacks == "" && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// buggy returns the judges that find a bug in a run, each once.
func buggy(v play.Verdict) (names []string) {
	for _, f := range v.Findings {
		if f.Verdict == judges.Broken && f.Class == judges.ClassBug && !slices.Contains(names, f.Judge) {
			names = append(names, f.Judge)
		}
	}
	return names
}

// agreePlanted plays the stories of planted bugs in both worlds, with the bug and without it, and
// counts the runs in which the judge of the bug finds a bug.
func agreePlanted(a *frame.App, in frame.Invocation, flags agreeFlags) (int, error) {
	o, err := cli.LiveOptions(a, "", "")
	if err != nil {
		return 0, err
	}
	if len(flags.locks) > 0 || len(flags.tags) > 0 || len(flags.again) > 0 {
		return 0, frame.Usagef("agree: --planted plays the stories of planted bugs; it has no --lock, --tag and --again")
	}
	cells, err := plantedCells(a, in.Names)
	if err != nil {
		return 0, err
	}
	all := sides(cells)
	var pairs []*cli.Pair
	for _, s := range all {
		pairs = append(pairs, s.Pair)
	}
	if err := cli.LiveReady(a, cli.LocksOf(pairs), o); err != nil {
		return 0, err
	}
	earlier, err := flags.open()
	if err != nil {
		return 0, err
	}
	defer earlier.close()
	ctx, stop := a.Interruptible()
	defer stop()
	if err := simulatePlanted(a, ctx, cells); err != nil {
		return 0, err
	}
	// Nothing is simulated from here on.
	runtime.GOMAXPROCS(runtime.NumCPU())
	g, t := agreeing{a, o, earlier, flags.differing}, tellLive(a, len(all)*flags.runs)
	err = sideBySide(ctx, len(all)*flags.runs, flags.jobs, "run", func(i int) error {
		s, n := all[i/flags.runs], i%flags.runs+1
		x, before, err := g.run(ctx, s.Pair, n, false, func(x *agreedRun, r play.LiveRun) bool {
			x.Bugs = buggy(r.Verdict)
			b := s.Lock.Planted
			return b == nil || slices.Contains(x.Bugs, b.Judge)
		})
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		s.live = append(s.live, x)
		t.played(before, s.Scenario.Name+" on "+s.Lock.Name+": "+x.Outcome)
		return nil
	})
	a.Status("")
	if err := tableError(ctx, err, earlier.kept()); err != nil {
		return 0, err
	}
	for _, s := range all {
		slices.SortFunc(s.live, func(x, y agreedRun) int { return cmp.Compare(x.Run, y.Run) })
	}
	text := plantedAgreement(cells, append([]string{a.Called(), "agree"}, in.Args...))
	if flags.out == "" {
		_, err := a.Out.Write(text)
		return frame.ExitOK, err
	}
	return frame.ExitOK, errors.Join(earlier.tidy(), renameio.WriteFile(flags.out, text, 0o666))
}

// simulatePlanted plays the stories of cells in the simulated world, each side once.
func simulatePlanted(a *frame.App, ctx context.Context, cells []*plantedCell) error {
	for _, c := range cells {
		for _, s := range []*plantedSide{c.lock, c.base} {
			if len(s.simulated) > 0 {
				continue
			}
			a.Status("simulated: %s on %s", s.Scenario.Name, s.Lock.Name)
			err := cli.PlayPair(a, ctx, s.Pair, cli.NoProgress(a), func(v play.Verdict) error {
				s.simulated = append(s.simulated, buggy(v))
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// named counts the runs in which the judge finds a bug.
func named(runs [][]string, judge string) (n int) {
	for _, found := range runs {
		if slices.Contains(found, judge) {
			n++
		}
	}
	return n
}

// bugs returns the judges that find a bug, by live run.
func (s *plantedSide) bugs() (all [][]string) {
	for _, r := range s.live {
		all = append(all, r.Bugs)
	}
	return all
}

// ofAll writes n and the number of the runs.
func ofAll(n int, runs [][]string) string { return fmt.Sprintf("%d of %d", n, len(runs)) }

// plantedAgreement writes the table. A cell is in bold if its figure is not the one that a judge
// without a mistake gives.
func plantedAgreement(cells []*plantedCell, command []string) []byte {
	var b, rows, notes bytes.Buffer
	possible, always, sometimes, wrongly := 0, 0, 0, 0
	programs := map[string]bool{}
	strong := func(text string, yes bool) string {
		if yes {
			return "**" + text + "**"
		}
		return text
	}
	for _, c := range cells {
		simulated, without := named(c.lock.simulated, c.Judge), named(c.base.simulated, c.Judge)
		cell, cellWithout := "", ""
		if c.lacks == "" {
			live := c.lock.bugs()
			n, wrong := named(live, c.Judge), named(c.base.bugs(), c.Judge)
			possible++
			switch {
			case n == len(live):
				always++
			case n > 0:
				sometimes++
			}
			if wrong > 0 {
				wrongly++
			}
			cell, cellWithout = strong(ofAll(n, live), n < len(live)), strong(ofAll(wrong, c.base.bugs()), wrong > 0)
		} else {
			cell = "not possible live: " + c.lacks
		}
		fmt.Fprintf(&rows, "| %s | %s | [%s](../%s) | %s | %s | %s | %s | %s |\n", c.Name, c.Base, c.story.Name, c.story.File, c.Judge,
			strong(ofAll(simulated, c.lock.simulated), simulated < len(c.lock.simulated)), strong(ofAll(without, c.base.simulated), without > 0), cell, cellWithout)
		for _, r := range c.lock.live {
			for _, p := range r.Programs {
				programs[p] = true
			}
			if !slices.Contains(r.Bugs, c.Judge) {
				fmt.Fprintf(&notes, "* Run %d of %s came to this: %s.\n", r.Run, c.Name, cmp.Or(r.Outcome+also(r.Note), "nothing"))
			}
		}
	}
	fmt.Fprintf(&b, "<!-- %s -->\n\n# Planted bugs on real servers\n\n", strings.Join(command, " "))
	fmt.Fprintf(&b, "Each [planted bug](kill-table.md) has a story that shows it. The story was played in the simulated world with the seeds of its file, and in real time on %s. "+
		"The table counts the runs in which the judge of the bug finds a bug, on the lock with the bug and on the lock without it.\n\n", strings.Join(sortedNames(programs), ", "))
	fmt.Fprintf(&b, "The judge names %d of %s in each live run", always, counted.Of(len(cells), "planted bug"))
	if sometimes > 0 {
		fmt.Fprintf(&b, ", and %d in some of them", sometimes)
	}
	if n := len(cells) - possible; n > 0 {
		fmt.Fprintf(&b, "; %d are not possible live", n)
	}
	if wrongly > 0 {
		fmt.Fprintf(&b, ". For %d it finds a bug live on the lock without the bug, too.\n\n", wrongly)
	} else {
		b.WriteString(". It finds none live on the lock without the bug.\n\n")
	}
	fmt.Fprintln(&b, "| planted bug | in | story | judge | simulated | without the bug | live | without the bug |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|---|")
	b.Write(rows.Bytes())
	if notes.Len() > 0 {
		fmt.Fprintf(&b, "\n%s", notes.Bytes())
	}
	return b.Bytes()
}

// also writes the note of a run after its outcome.
func also(note string) string {
	if note == "" {
		return ""
	}
	return ", and was " + note
}
