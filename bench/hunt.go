package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/explore/strategy"
	"lockstep/known"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A quarry is a bug that campaigns look for.
type quarry struct {
	name string
	lock string
	seek func(h *sim.Host, p explore.Plan, expired func() bool) (runs int, err error)
}

// huntStrategies are the strategies that the part hunt compares. The first one is the
// baseline.
var huntStrategies = strategy.Names

// huntRuns and huntTime bound one hunt.
const (
	huntRuns = 20_000
	huntTime = 60 * time.Second // of processors
)

// quarries returns the bugs of the track record, and the planted bugs.
func quarries(h *sim.Host) ([]quarry, error) {
	rows, err := scenarios.Tagged("track-record")
	if err != nil {
		return nil, err
	}
	var all []quarry
	var seen []explore.Bug
	for _, sc := range rows {
		bugs, err := bugsOfRow(h, sc)
		if err != nil {
			return nil, err
		}
		for _, b := range bugs {
			if i := slices.Index(seen, b); i >= 0 {
				all[i].name = sc.Name + ", " + all[i].name
				continue
			}
			seen = append(seen, b)
			what := known.Title(b.Defect)
			if b.Defect == "" {
				what = "no name: " + b.Judge + " " + b.Op
			}
			all = append(all, quarry{sc.Name + ": " + what, b.Lock, func(h *sim.Host, p explore.Plan, expired func() bool) (int, error) {
				return explore.Seek(h, p, b, expired)
			}})
		}
	}
	for _, b := range subject.PlantedBugs() {
		all = append(all, quarry{"planted: " + b.What, subject.PlantedPrefix + b.Name, func(h *sim.Host, p explore.Plan, expired func() bool) (int, error) {
			k, err := explore.Hunt(h, p, b.Judge, expired)
			return k.Runs, err
		}})
	}
	return all, nil
}

// bugsOfRow returns the bugs of a row of the track record: those that its scenario shows in the
// first lock that has any, and the defects whose row it is, each in the first lock that has it. A
// want that is not met is no such bug: drawn scenarios have no wants.
func bugsOfRow(h *sim.Host, sc *scenarios.Scenario) (bugs []explore.Bug, err error) {
	var locks []*subject.Subject // in which the scenario shows a bug
	for _, name := range sc.Locks {
		l, err := subject.Find(name)
		if err != nil {
			return nil, err
		}
		if sc.Expect[l.Name].Class == scenarios.Bug {
			locks = append(locks, l)
		}
	}
	for _, l := range locks {
		for _, b := range explore.BugsOf(h, play.Run(h, sc, l, sc.SeedFirst)) {
			if b.Judge != model.JudgeWant {
				bugs = append(bugs, b)
			}
		}
		if len(bugs) > 0 {
			break
		}
	}
	for _, d := range known.All {
		has := slices.IndexFunc(locks, d.Applies)
		if d.Row != sc.Name || has < 0 || slices.ContainsFunc(bugs, func(b explore.Bug) bool { return b.Defect == d.ID }) {
			continue
		}
		b := explore.Bug{Lock: locks[has].Name}
		b.Defect = d.ID
		bugs = append(bugs, b)
	}
	return bugs, nil
}

// hunt measures how soon campaigns with all faults meet each bug.
func (b *bench) hunt() (section, error) {
	limit := huntTime
	if b.Quick {
		limit /= 20
	}
	s := section{
		title: "Time to bug",
		text: []string{fmt.Sprintf("Processor time (and runs) until a campaign first meets the bug, in the median of %d seeds; nobody tells it which fault to use: "+
			"all faults, profile full. Draws of the strategy plain are independent; it is the baseline. A hunt ends after %v of processors: a cell with > has a median beyond that.", b.Rounds, limit)},
		head: append([]string{"bug", "lock"}, huntStrategies...),
	}
	all, err := quarries(b.Host)
	if err != nil {
		return s, err
	}
	sums := make([]float64, len(huntStrategies))
	missed := make([]int, len(huntStrategies))
	for i, q := range all {
		if b.Progress != nil {
			b.Progress(fmt.Sprintf("hunt %d of %d: %s", i+1, len(all), q.name))
		}
		cells := []string{q.name, q.lock}
		for k, name := range huntStrategies {
			used, runs, err := b.hunts(q, name, limit)
			if err != nil {
				return s, fmt.Errorf("%s: %w", q.name, err)
			}
			sums[k] += float64(used)
			if runs == 0 {
				missed[k]++
				cells = append(cells, "> "+span(float64(limit)))
				continue
			}
			cells = append(cells, span(float64(used))+" ("+strconv.Itoa(runs)+")")
		}
		s.row(cells...)
	}
	var told []string
	for k, name := range huntStrategies {
		told = append(told, fmt.Sprintf("%s %s, %d of %d not met", name, span(sums[k]), missed[k], len(all)))
	}
	s.after = append(s.after, "Sum of the medians, a bug that is not met counted with the limit: "+strings.Join(told, "; ")+".")
	best := slices.Index(sums, slices.Min(sums))
	s.goals = append(s.goals,
		atMost("sum of the medians, of the best strategy, relative to the baseline", 0.2, sums[best]/sums[0], "", digits(sums[best]/sums[0])+" ("+huntStrategies[best]+")", ""),
		goal{"bugs that the best strategy meets", strconv.Itoa(len(all)), strconv.Itoa(len(all) - missed[best]), missed[best] == 0, "The table names them."})
	return s, nil
}

// hunts looks for a bug with each seed. It returns the medians of the processor time and of
// the runs; runs is 0 if half of the seeds or more did not meet it.
func (b *bench) hunts(q quarry, name string, limit time.Duration) (used time.Duration, runs int, err error) {
	type hunted struct {
		used time.Duration
		runs int
	}
	var all []hunted
	for seed := range b.Rounds {
		p := explore.Plan{World: sim.Version, Lock: q.lock, Faults: draw.Classes, Profile: draw.Full, Strategy: name, Depth: 3, Seed: uint64(seed + 1), Runs: huntRuns}
		begun := processorTime()
		n, err := q.seek(b.Host, p, func() bool { return processorTime()-begun > limit })
		if err != nil {
			return 0, 0, err
		}
		one := hunted{processorTime() - begun, n}
		if n == 0 {
			one.used = limit
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y hunted) int { return int(x.used - y.used) })
	middle := all[len(all)/2]
	return middle.used, middle.runs, nil
}
