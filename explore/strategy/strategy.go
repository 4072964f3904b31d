package strategy

import (
	"lockstep/sim"
)

// The names of the strategies that draw runs.
const (
	NamePlain = "plain"
	NameAimed = "aimed"
	NameTaPCT = "tapct"
	NameTold  = "told"
)

// Names are the names of the strategies that draw runs.
var Names = []string{NamePlain, NameTold, NameAimed, NameTaPCT}

// ScheduleSeeded is the name that recordings have for a schedule whose decisions are all drawn
// from a seed.
const ScheduleSeeded = "random"

// Strategy decides how the runs of a family come about.
type Strategy interface {
	// Aims reports whether a run, given by its index in the family, repeats the run before it with
	// faults added. They are added at moments at which no run of the family had a fault of their
	// kind. All other runs are drawn anew; the run before one that aims is always drawn anew.
	Aims(index int) bool
	// Tells reports whether a family begins with the stories of package story.
	Tells() bool
	// Chooser returns the chooser that draws the schedule of a run. estimate is the number of
	// decisions to expect of it.
	Chooser(seed uint64, estimate int) sim.Chooser
	// Schedule returns the name of the way in which schedules are drawn, as recordings have
	// it: ScheduleSeeded if a seed draws all their decisions, else the name of the strategy.
	Schedule() string
	// Bound returns the least probability with which a run of at most so many actors and decisions
	// finds a bug of the kind that its chooser looks for. It returns 0 if there is no bound.
	Bound(actors, decisions int) float64
}

// New returns the strategy with a name. Depth is that of NameTaPCT. The result is false if no
// strategy has the name.
func New(name string, depth int) (Strategy, bool) {
	switch name {
	case NamePlain:
		return plain{}, true
	case NameTaPCT:
		return tapct{depth: depth}, true
	case NameAimed:
		return aimed{}, true
	case NameTold:
		return teller{}, true
	}
	return nil, false
}

// plain draws each run anew, and its schedule from a seed.
type plain struct{}

func (plain) Aims(int) bool                          { return false }
func (plain) Tells() bool                            { return false }
func (plain) Chooser(seed uint64, _ int) sim.Chooser { return sim.NewSeeded(seed) }
func (plain) Schedule() string                       { return ScheduleSeeded }
func (plain) Bound(int, int) float64                 { return 0 }

// tapct draws each run anew, and TaPCT draws its schedule.
type tapct struct {
	plain
	depth int
}

func (t tapct) Chooser(seed uint64, estimate int) sim.Chooser {
	return NewTaPCT(seed, t.depth, estimate)
}
func (tapct) Schedule() string { return NameTaPCT }
func (t tapct) Bound(actors, decisions int) float64 {
	return TaPCTBound(actors, decisions, t.depth)
}

// aimed draws every second run anew, and repeats it in the next run with faults at its moments.
type aimed struct{ plain }

func (aimed) Aims(index int) bool { return index%2 == 1 }

// teller tells known stories first, and then draws each run anew.
type teller struct{ plain }

func (teller) Tells() bool { return true }
