package bench

import (
	"cmp"
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
// first lock that has any, and the defects whose row it is, each in the first lock that has it. It
// leaves out wants that are not met, since drawn scenarios have no wants.
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

// hunted has the hunts of one bug with one strategy, by seed, from 1.
type hunted struct {
	Bug      string          `json:"bug"`
	Lock     string          `json:"lock"`
	Strategy string          `json:"strategy"`
	Used     []time.Duration `json:"used_ns"` // of processors
	Runs     []int           `json:"runs"`    // 0: the hunt did not meet the bug
}

// medians returns the medians of the processor time and of the runs; runs is 0 if half of the
// seeds or more did not meet the bug.
func (h hunted) medians() (used time.Duration, runs int) {
	order := make([]int, len(h.Used))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(h.Used[i], h.Used[k]) })
	middle := order[len(order)/2]
	return h.Used[middle], h.Runs[middle]
}

// keepHunts is the processor time after which the hunts so far are kept: an interrupt loses no
// more, and the hunt that was under way.
const keepHunts = 10 * time.Second

// hunt measures how soon campaigns with all faults meet each bug.
func (b *bench) hunt() (section, error) {
	limit := huntTime
	if b.Quick {
		limit /= 20
	}
	quarries, err := quarries(b.Host)
	if err != nil {
		return section{}, err
	}
	return b.huntEach(quarries, limit, keepHunts)
}

// huntEach hunts each quarry with each strategy and each seed. It continues an earlier call that
// was interrupted, and keeps its results whenever it has used the processor time keep.
func (b *bench) huntEach(quarries []quarry, limit, keep time.Duration) (section, error) {
	var all []hunted
	kept := processorTime()
	for i, q := range quarries {
		if b.Progress != nil {
			b.Progress(fmt.Sprintf("hunt %d of %d: %s", i+1, len(quarries), q.name))
		}
		for _, name := range huntStrategies {
			h := hunted{Bug: q.name, Lock: q.lock, Strategy: name}
			if b.earlier != nil {
				if i := slices.IndexFunc(b.earlier.Hunted, func(e hunted) bool { return e.Bug == q.name && e.Lock == q.lock && e.Strategy == name }); i >= 0 {
					h = b.earlier.Hunted[i]
				}
			}
			all = append(all, h)
			for len(h.Runs) < b.Rounds {
				used, runs, err := b.huntOnce(q, name, uint64(len(h.Runs)+1), limit)
				if err != nil {
					return section{}, fmt.Errorf("%s: %w", q.name, err)
				}
				h.Used, h.Runs = append(h.Used, used), append(h.Runs, runs)
				all[len(all)-1] = h
				if now := processorTime(); now-kept >= keep && b.keep != nil {
					if err := b.keep(b.huntSection(all, len(quarries), limit), slices.Clone(all)); err != nil {
						return section{}, err
					}
					kept = now
				}
			}
		}
	}
	if b.keep != nil {
		if err := b.keep(b.huntSection(all, len(quarries), limit), all); err != nil {
			return section{}, err
		}
	}
	return b.huntSection(all, len(quarries), limit), nil
}

// huntSection returns the section of the bugs that were hunted with each strategy and seed. It has
// no goals before all bugs were hunted.
func (b *bench) huntSection(all []hunted, bugs int, limit time.Duration) section {
	s := section{
		Title: "Time to bug",
		Text: []string{fmt.Sprintf("Processor time (and runs) until a campaign first meets the bug, in the median of %d seeds; nobody tells it which fault to use: "+
			"all faults, profile full. Draws of the strategy plain are independent; it is the baseline. A hunt ends after %v of processors: a cell with > has a median beyond that.", b.Rounds, limit)},
		Head: append([]string{"bug", "lock"}, huntStrategies...),
	}
	sums := make([]float64, len(huntStrategies))
	missed := make([]int, len(huntStrategies))
	for row := range slices.Chunk(all, len(huntStrategies)) {
		if last := row[len(row)-1]; len(row) < len(huntStrategies) || len(last.Runs) < b.Rounds {
			break
		}
		cells := []string{row[0].Bug, row[0].Lock}
		for k, h := range row {
			used, runs := h.medians()
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
	if len(s.Rows) < bugs {
		s.After = append(s.After, fmt.Sprintf("%d of %d bugs were hunted.", len(s.Rows), bugs))
		return s
	}
	var told []string
	for k, name := range huntStrategies {
		told = append(told, fmt.Sprintf("%s %s, %d of %d not met", name, span(sums[k]), missed[k], bugs))
	}
	s.After = append(s.After, "Sum of the medians, a bug that is not met counted with the limit: "+strings.Join(told, "; ")+".")
	best := slices.Index(sums, slices.Min(sums))
	s.Goals = append(s.Goals,
		atMost("sum of the medians, of the best strategy, relative to the baseline", 0.2, sums[best]/sums[0], "", digits(sums[best]/sums[0])+" ("+huntStrategies[best]+")", ""),
		goal{"bugs that the best strategy meets", strconv.Itoa(bugs), strconv.Itoa(bugs - missed[best]), missed[best] == 0, "The table names them."})
	return s
}

// huntOnce looks for a bug with one seed. It returns the processor time and the runs until the
// bug is met, or the limit and 0 if it is not.
func (b *bench) huntOnce(q quarry, name string, seed uint64, limit time.Duration) (used time.Duration, runs int, err error) {
	p := explore.Plan{World: sim.Version, Lock: q.lock, Faults: draw.Classes, Profile: draw.Full, Strategy: name, Depth: 3, Seed: seed, Runs: huntRuns}
	begun := processorTime()
	runs, err = q.seek(b.Host, p, func() bool { return processorTime()-begun > limit })
	if err != nil || runs == 0 {
		return limit, 0, err
	}
	return processorTime() - begun, runs, nil
}
