package strategy

import (
	"lockstep/sim"
)

// The names of the strategies that draw runs.
const (
	NamePlain = "plain"
	NameTaPCT = "tapct"
	NameTold  = "told"
)

// Names are the names of the strategies that draw runs.
var Names = []string{NamePlain, NameTold, NameTaPCT}

// ScheduleSeeded is the name that recordings have for a schedule whose decisions are all drawn
// from a seed.
const ScheduleSeeded = "random"

// Strategy decides how the runs of a family come about.
type Strategy interface {
	// Base returns which run a run repeats with faults added. n is the index of the run in its family, and
	// stories is the number of stories with which the family begins. The faults are added at moments at which
	// no run of the family had a fault of their kind. A run that repeats none is drawn anew.
	Base(n, stories int) Base
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

// Base is a run that another one repeats with faults added.
type Base string

// The bases.
const (
	None  Base = ""      // the run is drawn anew
	Last  Base = "last"  // the run before
	Story Base = "story" // one of the stories of the family
)

// New returns the strategy with a name. Depth is that of NameTaPCT. The result is false if no
// strategy has the name.
func New(name string, depth int) (Strategy, bool) {
	switch name {
	case NamePlain:
		return plain{}, true
	case NameTaPCT:
		return tapct{depth: depth}, true
	case NameTold:
		return teller{}, true
	}
	return nil, false
}

// plain draws each run anew, and its schedule from a seed.
type plain struct{}

func (plain) Base(int, int) Base                     { return None }
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

// teller tells known stories first. The runs that follow come in fives: one is drawn anew, the next one repeats
// it with faults at its moments, the third one does so with a story; then one more is drawn anew and repeated.
type teller struct{ plain }

func (teller) Tells() bool { return true }

func (teller) Base(n, stories int) Base {
	after := n - stories
	switch {
	case after < 0:
		return None
	case after%5 == 1 || after%5 == 4:
		return Last
	case after%5 == 2 && stories > 0:
		return Story
	}
	return None
}
