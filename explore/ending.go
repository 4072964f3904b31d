package explore

import (
	"fmt"

	"lockstep/explore/coverage"
)

// SettledRuns is the number of runs without a new cell after which a full campaign ends, unless
// its plan says otherwise.
const SettledRuns = 300

// ending reads the runs of a campaign, and finds the run with which the campaign ends. It takes
// them in the order of their indices, whatever the order in which they come.
type ending struct {
	plan  Plan
	runs  int         // that were taken: those before the first gap
	later map[int]Run // those after it
	steps int64
	cells cellSet
	last  int // the number of runs until the last new cell
	// spent and full say why the campaign ends with the last run: the budget of steps is used
	// up, or the campaign is full.
	spent, full bool
}

func newEnding(p Plan) *ending {
	return &ending{plan: p, later: map[int]Run{}}
}

// A cellSet has the cells of some runs. The zero value is empty.
type cellSet struct {
	all map[int]bool // the codes of the cells that runs met, with true, or could have met, with false
	met int          // of all, those that runs met
}

// add adds the cells of a run. It reports whether one of them is new: the first run met it, or
// could have met it.
func (s *cellSet) add(r Run) (fresh bool) {
	if s.all == nil {
		s.all = map[int]bool{}
	}
	for _, code := range r.Open {
		if _, known := s.all[code]; !known {
			s.all[code] = false
			fresh = true
		}
	}
	for _, code := range r.Cells {
		if c, ok := coverage.CellOf(code); ok && c.Fault != coverage.None && !s.all[code] {
			s.all[code] = true
			s.met++
			fresh = true
		}
	}
	return fresh
}

// isOver reports whether the campaign ends with the last run that was taken.
func (e *ending) isOver() bool { return e.spent || e.full }

// read reads a run. Nobody knows whether a campaign with a gap is over, so a run after a gap
// waits for the runs before it.
func (e *ending) read(r Run) {
	e.later[r.Index] = Run{Steps: r.Steps, Cells: r.Cells, Open: r.Open}
	for !e.isOver() {
		next, ok := e.later[e.runs]
		if !ok {
			return
		}
		delete(e.later, e.runs)
		e.take(next)
	}
}

func (e *ending) take(r Run) {
	e.runs++
	e.steps += r.Steps
	if e.cells.add(r) {
		e.last = e.runs
	}
	e.spent = e.plan.Steps > 0 && e.steps >= e.plan.Steps
	e.full = e.plan.Settled > 0 && len(e.cells.all) > 0 && e.cells.met == len(e.cells.all) && e.runs-e.last >= e.plan.Settled
}

// reason returns the reason for which the campaign ends; "": it does not.
func (e *ending) reason() string {
	switch {
	case e.spent:
		return "the budget of steps ended it"
	case e.full:
		return fmt.Sprintf("it is full and ended after %d of %d runs: each cell was met that its faults could meet, and the last %d runs brought no new one (--keep-going plays on)",
			e.runs, e.plan.Runs, e.plan.Settled)
	}
	return ""
}
