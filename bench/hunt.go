package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/explore"
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
	name    string
	lock    string
	bug     explore.Bug
	planted *subject.PlantedBug // nil: bug is no planted one
}

// huntStrategies are the strategies that the part hunt compares, in the order in which they hunt.
// The first one is the baseline, and the second the default of campaigns.
var huntStrategies = strategy.Names

// huntRuns bounds the runs of one hunt, and huntSeeds is the number of hunts of a bug.
const (
	huntRuns  = 20_000
	huntSeeds = 20
)

// huntLimits bound the processor time of one hunt. All hunts have the first limit. If the median of
// a bug is beyond a limit, the hunts of the baseline and of the default that met nothing are repeated
// with the next limit, until the bug is met or half of them have met nothing, which puts the median
// beyond that limit, too. Once more than half of the hunts have met the bug, no other one goes on past
// the median. So the easy bugs have their medians soon, and little time is spent on the slow half of
// any hunts.
var huntLimits = []time.Duration{250 * time.Millisecond, time.Second, 4 * time.Second, time.Minute}

// limitsOf returns the limits of the strategy with the index k. The first limit compares all strategies.
// The next ones compare the default with the baseline: they take hours. The last one is for the default
// alone, since the baseline would take days. So the sums of medians count what is beyond the last limit of
// the baseline as that limit.
func limitsOf(k int, limits []time.Duration) []time.Duration {
	switch k {
	case 0:
		return limits[:max(1, len(limits)-1)]
	case 1:
		return limits
	}
	return limits[:1]
}

// quarries returns the bugs of the track record, the planted bugs, and the known defects of the
// locks that the program adds to Lockstep's own.
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
			all = append(all, quarry{name: sc.Name + ": " + what, lock: b.Lock, bug: b})
		}
	}
	for _, b := range subject.PlantedBugs() {
		all = append(all, quarry{name: "planted: " + b.What, lock: subject.PlantedPrefix + b.Name, planted: b})
	}
	for _, d := range known.Registered() {
		locks := subject.All()
		has := slices.IndexFunc(locks, d.Applies)
		if has < 0 {
			continue
		}
		b := explore.Bug{Lock: locks[has].Name}
		if b.Defect = d.ID; !slices.Contains(seen, b) {
			all = append(all, quarry{name: d.ID + ": " + d.Title, lock: b.Lock, bug: b})
		}
	}
	return all, nil
}

// grounds returns the indices of the quarries, grouped by lock. One campaign hunts all bugs of a lock.
func grounds(quarries []quarry) (all [][]int) {
	at := map[string]int{}
	for i, q := range quarries {
		g, ok := at[q.lock]
		if !ok {
			g = len(all)
			at[q.lock], all = g, append(all, nil)
		}
		all[g] = append(all[g], i)
	}
	return all
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
	Used     []time.Duration `json:"used_ns"` // of processors; the limit of a hunt that did not meet the bug
	Runs     []int           `json:"runs"`    // 0: the hunt did not meet the bug
}

// huntEnd is how a hunt of a bug ended.
type huntEnd struct {
	Used time.Duration `json:"used_ns"` // of processors; the limit of a hunt that did not meet the bug
	Runs int           `json:"runs"`    // 0: the hunt did not meet the bug
}

// with returns the hunts with the end of another one, which was played with the seed after the first i.
func (h hunted) with(i int, e huntEnd) hunted {
	h.Used, h.Runs = slices.Clone(h.Used), slices.Clone(h.Runs)
	if i == len(h.Runs) {
		h.Used, h.Runs = append(h.Used, 0), append(h.Runs, 0)
	}
	h.Used[i], h.Runs[i] = e.Used, e.Runs
	return h
}

// median returns the processor time of the hunt in the middle, and its runs. If it is not known, runs
// is 0, and the median is more than the time that is returned.
func (h hunted) median() (used time.Duration, runs int) {
	if len(h.Runs) == 0 {
		return 0, 0
	}
	order := make([]int, len(h.Runs))
	for i := range order {
		order[i] = i
	}
	// A hunt that met nothing would meet the bug later than one that met it in the same time.
	slices.SortStableFunc(order, func(i, k int) int {
		return cmp.Or(cmp.Compare(h.Used[i], h.Used[k]), cmp.Compare(min(h.Runs[k], 1), min(h.Runs[i], 1)))
	})
	middle := len(order) / 2
	used = h.Used[order[middle]]
	for _, i := range order[:middle+1] {
		if h.Runs[i] == 0 {
			return used, 0
		}
	}
	return used, h.Runs[order[middle]]
}

// bound returns the processor time after which another hunt no longer matters to the median: the
// limit, or the median itself once enough hunts have met the bug.
func (h hunted) bound(seeds int, limit time.Duration) time.Duration {
	var met []time.Duration
	for i, runs := range h.Runs {
		if runs > 0 {
			met = append(met, h.Used[i])
		}
	}
	if len(met) <= seeds/2 {
		return limit
	}
	slices.Sort(met)
	return min(limit, met[seeds/2])
}

// next returns whether a hunt is to be played with the seed after the first i, of so many seeds,
// once the hunts of earlier limits are over, and the processor time that it may take.
func (h hunted) next(i, seeds int, limit time.Duration) (most time.Duration, play bool) {
	most = h.bound(seeds, limit)
	if i >= len(h.Runs) {
		return most, i == len(h.Runs)
	}
	if h.Runs[i] > 0 || h.Used[i] >= most {
		return 0, false
	}
	beyond := 0
	for k, n := range h.Runs {
		if n == 0 && h.Used[k] >= limit {
			beyond++
		}
	}
	return most, len(h.Runs) < seeds || beyond < seeds-seeds/2
}

// keepHunts is the time after which the hunts so far are kept: an interrupt loses no more, and the
// hunt that was under way.
const keepHunts = 10 * time.Second

// hunt measures how soon campaigns with all faults meet each bug.
func (b *bench) hunt() (section, error) {
	seeds, limits := huntSeeds, huntLimits
	if b.Quick {
		seeds, limits = 3, limits[:1]
	}
	quarries, err := quarries(b.Host)
	if err != nil {
		return section{}, err
	}
	return b.huntEach(quarries, seeds, limits, keepHunts)
}

// huntEach hunts each quarry with each strategy and each seed. The strategies take turns, so that
// other work on the machine slows all of them down. It goes on where an earlier call was interrupted,
// and keeps what it has whenever so much time has passed. An early interrupt leaves low
// limits and few seeds of all bugs, and not all of a few.
func (b *bench) huntEach(quarries []quarry, seeds int, limits []time.Duration, keep time.Duration) (section, error) {
	var all []hunted
	for _, name := range huntStrategies {
		for _, q := range quarries {
			h := hunted{Bug: q.name, Lock: q.lock, Strategy: name}
			if b.earlier != nil {
				if i := slices.IndexFunc(b.earlier.Hunted, func(e hunted) bool { return e.Bug == q.name && e.Lock == q.lock && e.Strategy == name }); i >= 0 {
					h = b.earlier.Hunted[i]
				}
			}
			all = append(all, h)
		}
	}
	once := b.once
	if once == nil {
		once = b.huntAway
		defer func() { _ = b.endHunter() }() // what it was asked is answered
	}
	kept := time.Now()
	for n, limit := range limits {
		var hunters []int      // the indices of the strategies that have this limit
		open := map[int]bool{} // by the index in all: the median is not known
		for k := range huntStrategies {
			if n >= len(limitsOf(k, limits)) {
				continue
			}
			hunters = append(hunters, k)
			for i := k * len(quarries); i < (k+1)*len(quarries); i++ {
				if _, runs := all[i].median(); runs == 0 || len(all[i].Runs) < seeds {
					open[i] = true
				}
			}
		}
		for seed := range seeds {
			if b.Progress != nil {
				b.Progress(fmt.Sprintf("hunts of at most %v, seed %d of %d: %d of %d medians are not known", limit, seed+1, seeds, len(open), len(hunters)*len(quarries)))
			}
			for _, ground := range grounds(quarries) {
				for _, k := range hunters {
					of := all[k*len(quarries):][:len(quarries)]
					var prey []int // the bugs that this campaign hunts
					var hunting []quarry
					var most time.Duration
					for _, i := range ground {
						if upTo, play := of[i].next(seed, seeds, limit); play && open[k*len(quarries)+i] {
							prey, hunting, most = append(prey, i), append(hunting, quarries[i]), max(most, upTo)
						}
					}
					if len(prey) == 0 {
						continue
					}
					ends, err := once(hunting, huntStrategies[k], uint64(seed+1), most)
					if err != nil {
						return section{}, fmt.Errorf("%s: %w", hunting[0].lock, err)
					}
					for k, i := range prey {
						of[i] = of[i].with(seed, ends[k])
					}
					if now := time.Now(); now.Sub(kept) >= keep && b.keep != nil {
						if err := b.keep(huntSection(all, len(quarries), seeds, limits), slices.Clone(all)); err != nil {
							return section{}, err
						}
						kept = now
					}
				}
			}
		}
	}
	s := huntSection(all, len(quarries), seeds, limits)
	if b.keep != nil {
		if err := b.keep(s, all); err != nil {
			return section{}, err
		}
	}
	return s, nil
}

// longHunt is the longest median that is wanted of any bug, and mostOfBaseline the part of the baseline's
// sum of medians that is wanted.
const (
	longHunt       = time.Minute
	mostOfBaseline = 0.2
)

// huntSection returns the section of the hunts so far: all has the bugs of each strategy. The hunts of a
// strategy are all played when each bug was hunted with each seed, and each median is known, or
// beyond the last limit of the strategy. The default has goals then.
func huntSection(all []hunted, bugs, seeds int, limits []time.Duration) section {
	baseline := limitsOf(0, limits)
	longest := baseline[len(baseline)-1] // the sums count a longer median as that
	s := section{
		Title: "Time to bug",
		Text: []string{fmt.Sprintf("Processor time (and runs) until a campaign first meets the bug, in the median of %d seeds; nobody tells it which fault to use: "+
			"all faults, profile full. The strategy plain draws each run anew, and is the baseline; told is the default. A cell with > has a median beyond that. "+
			"Only plain and told hunt for longer than %s, and only told for longer than %s.", seeds, span(float64(limits[0])), span(float64(longest)))},
		Head: append([]string{"bug", "lock"}, huntStrategies...),
	}
	against := time.Duration(0) // the sum of the medians of the baseline; 0: not known
	for k, name := range huntStrategies {
		own := limitsOf(k, limits)
		last := own[len(own)-1]
		sum, whole := time.Duration(0), true
		least, hunts, met, within := seeds, 0, 0, 0
		var missed []string
		for _, h := range all[k*bugs:][:bugs] {
			used, runs := h.median()
			sum += min(used, longest)
			least = min(least, len(h.Runs))
			hunts += len(h.Runs)
			for i, runs := range h.Runs {
				if runs > 0 && h.Used[i] <= limits[0] {
					met++
				}
			}
			if runs > 0 && used <= limits[0] {
				within++
			}
			whole = whole && len(h.Runs) == seeds && (runs > 0 || used >= last)
			if runs == 0 || used > longHunt {
				missed = append(missed, h.Bug)
			}
		}
		if hunts == 0 {
			s.After = append(s.After, "No bug was hunted with "+name+".")
			continue
		}
		s.After = append(s.After, fmt.Sprintf("Within %s, %s met the bug in %d of %d hunts, and has %d of %d medians.", span(float64(limits[0])), name, met, hunts, within, bugs))
		if !whole {
			s.After[len(s.After)-1] += fmt.Sprintf(" Its hunts are not all played: each bug was hunted with at least %d of %d seeds. The medians are of these.", least, seeds)
			continue
		}
		if k > 1 {
			continue
		}
		s.After[len(s.After)-1] += fmt.Sprintf(" The sum of its medians is %s, if those beyond %s count as %[2]s.", span(float64(sum)), span(float64(longest)))
		if k == 0 {
			against = sum
			continue
		}
		if against > 0 {
			share := float64(sum) / float64(against)
			s.Goals = append(s.Goals, atMost("the sum of the medians of "+name+" against that of "+huntStrategies[0]+", each counted as "+longest.String()+" at most", mostOfBaseline, share, "", digits(share), "A bug that both hardly meet counts as much in both sums."))
		}
		s.Goals = append(s.Goals, goal{"bugs that " + name + " meets within " + longHunt.String() + " of a processor, in the median", strconv.Itoa(bugs),
			strconv.Itoa(bugs - len(missed)), len(missed) == 0, "Beyond that: " + strings.Join(missed, "; ") + "."})
	}
	for i := range bugs {
		cells := []string{all[i].Bug, all[i].Lock}
		for k := range huntStrategies {
			h := all[k*bugs+i]
			switch used, runs := h.median(); {
			case len(h.Runs) == 0:
				cells = append(cells, "")
			case runs == 0:
				cells = append(cells, "> "+span(float64(used)))
			default:
				cells = append(cells, span(float64(used))+" ("+strconv.Itoa(runs)+")")
			}
		}
		s.row(cells...)
	}
	return s
}
