package explore

import (
	"maps"
	"slices"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/explore/strategy"
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// Tally is the result of a campaign, or of some of its shards.
type Tally struct {
	Plan    Plan
	Runs    int    // runs that were played, until the campaign ended
	Missing int    // runs of the plan that were not played
	Ended   string // why the campaign ended before its last run; "": it did not
	Full    bool   // it ended because it was full, see Plan.Settled
	Steps   int64
	SimNs   int64
	Words   map[string]int // verdicts
	Died    []Run
	Odd     []Run // undecided or nondeterministic
	Groups  []Found
	Curve   []Point
	// Service is the sum of the services of the runs, and Unsimulated lists what their servers met and do
	// not simulate.
	Service     play.Service
	Unsimulated []string
	// Cells says which cells the runs met; nil: no run tells, or the lock is not registered.
	Cells *coverage.Table
	// Unfinished is the number of groups whose failure is not as small as it may be.
	Unfinished int
	// Within, Actors and Estimate belong to strategies with a bound: the number of runs that had no more
	// decisions than expected, the most actors in one of them, and the most decisions that
	// were expected of one.
	Within, Actors, Estimate int
	// Medians has for each known defect the number of runs until it was met, in the median of the parts of
	// the campaign. Each part is as good as a campaign of another seed. A defect that half of the parts
	// did not meet is missing.
	Medians map[string]int
	// Coverage belongs to the exhaustive strategy, whose runs are schedules.
	Coverage *strategy.Coverage
}

// Unjudged returns the reasons why the promises that no run broke cannot be called held.
func (o Tally) Unjudged() []string {
	var why []string
	if len(o.Unsimulated) > 0 {
		why = append(why, sentence.Unsimulated(o.Unsimulated))
	}
	if text := sentence.Denied(o.Service); text != "" {
		why = append(why, text)
	}
	return why
}

// Found is a group of failures.
type Found struct {
	Failed
	Count int
	First Run // the first that failed so
	Least Run // the smallest
}

// Point is the number of states that were known after a number of runs.
type Point struct {
	Runs   int `json:"runs"`
	States int `json:"states"`
}

// parts is the number of parts of a campaign for which the first run that meets a defect
// is looked up.
const parts = 20

// Sum adds up runs, whichever process or machine played them.
func Sum(p Plan, runs []Run) Tally {
	s := sum{
		Tally:   Tally{Plan: p, Words: map[string]int{}, Medians: map[string]int{}},
		reached: newReached(),
		at:      map[string]int{}, first: map[string][]int{}, met: map[string]int{},
	}
	next := 1
	end := newEnding(p)
	for _, r := range sorted(runs) {
		if end.isOver() {
			break
		}
		end.read(r)
		s.add(r)
		if s.Runs == next {
			s.Curve = append(s.Curve, Point{s.Runs, len(s.states)})
			next = max(next+1, next*5/4)
		}
	}
	slices.Sort(s.Unsimulated)
	s.Unsimulated = slices.Compact(s.Unsimulated)
	s.Ended, s.Full = end.reason(), end.full
	if n := len(s.Curve); s.Runs > 0 && s.Curve[n-1].Runs != s.Runs {
		s.Curve = append(s.Curve, Point{s.Runs, len(s.states)})
	}
	if s.Ended == "" {
		s.Missing = p.Runs - s.Runs
	}
	if l, err := subject.Find(p.Lock); err == nil && len(s.cells) > 0 {
		t := coverage.Sum(slices.Sorted(maps.Keys(s.cells)), slices.Sorted(maps.Keys(s.open)), draw.Asked(l, p.Faults), s.gaps)
		s.Cells = &t
	}
	slices.SortStableFunc(s.Groups, func(a, b Found) int { return b.rank() - a.rank() })
	for defect, took := range s.first {
		if len(took) > parts/2 {
			slices.Sort(took)
			s.Medians[defect] = took[parts/2] // those that did not meet it are last
		}
	}
	return s.Tally
}

// sum is a Tally while runs are added to it.
type sum struct {
	Tally
	reached
	gaps  []coverage.Passage
	at    map[string]int   // by group, its index
	first map[string][]int // by defect: how many runs it took, in the parts that met it
	met   map[string]int   // by defect: the last part that met it, from 1
}

func (s *sum) add(r Run) {
	s.Runs++
	s.Steps += r.Steps
	s.SimNs += r.SimNs
	s.Service.Add(r.Service)
	s.Unsimulated = append(s.Unsimulated, r.Unsimulated...)
	if r.Died {
		s.Died = append(s.Died, r)
	} else {
		s.Words[string(r.Word)]++
	}
	if r.Decisions > 0 && r.Decisions <= r.Estimate {
		s.Within++
		s.Actors, s.Estimate = max(s.Actors, r.Actors), max(s.Estimate, r.Estimate)
	}
	if r.unjudged() {
		s.Odd = append(s.Odd, r)
	}
	s.note(r)
	for _, passage := range r.Gaps {
		s.gaps = append(s.gaps, coverage.Passage(passage))
	}
	s.gaps = coverage.Merge(s.gaps)
	for _, f := range r.Failures {
		s.addFailure(r, f)
	}
}

func (s *sum) addFailure(r Run, f Failed) {
	i, ok := s.at[f.key()]
	if !ok {
		i = len(s.Groups)
		s.at[f.key()] = i
		s.Groups = append(s.Groups, Found{Failed: f, First: r, Least: r})
	}
	each := max(s.Plan.Runs/parts, 1)
	if part := min(r.Index/each, parts-1) + 1; f.Defect != "" && s.met[f.Defect] < part {
		s.met[f.Defect] = part
		s.first[f.Defect] = append(s.first[f.Defect], r.Index-(part-1)*each+1)
	}
	g := &s.Groups[i]
	g.Count++
	if f.Size < g.Size {
		g.Failed, g.Least = f, r
	}
}

// rank orders groups: bugs without a name, then known defects, then limits.
func (f Found) rank() int {
	switch {
	case f.Class == judges.ClassBug && f.Defect == "":
		return 2
	case f.Class == judges.ClassBug:
		return 1
	}
	return 0
}
