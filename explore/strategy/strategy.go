package strategy

import (
	"lockstep/sim"
)

// The names of the strategies that draw runs.
const (
	NamePlain  = "plain"
	NameRandom = "random"
	NamePCT    = "pct"
	NameAimed  = "aimed"
)

// Names are the names of the strategies that draw runs.
var Names = []string{NamePlain, NameRandom, NamePCT, NameAimed}

// Strategy decides how the runs of a family come about.
type Strategy interface {
	// Next says how the run with an index in its family comes about. c draws, and kept is the
	// number of earlier runs of the family that reached something new.
	Next(c sim.Chooser, index, kept int) Next
	// Chooser returns the chooser that draws the schedule of a run. estimate is the number of
	// decisions to expect of it.
	Chooser(seed uint64, estimate int) sim.Chooser
	// Schedule returns the name of the way in which schedules are drawn, as recordings have
	// it: NameRandom if a seed draws all their decisions, else the name of the strategy.
	Schedule() string
}

// Next says how a run comes about.
type Next struct {
	// Base is the number, among the runs that were kept, of the run to vary; -1: none is varied.
	Base int
	// Aimed says that the run is the one before, with faults added at moments at which no run of
	// the family had one of their kind. The run before must be drawn anew.
	Aimed bool
}

// New returns the strategy with a name. Depth is that of NamePCT. It reports false if no
// strategy has the name.
func New(name string, depth int) (Strategy, bool) {
	switch name {
	case NamePlain:
		return plain{}, true
	case NameRandom:
		return random{}, true
	case NamePCT:
		return pct{depth: depth}, true
	case NameAimed:
		return aimed{}, true
	}
	return nil, false
}

// seeded draws schedules from seeds.
type seeded struct{}

func (seeded) Chooser(seed uint64, _ int) sim.Chooser { return sim.NewSeeded(seed) }
func (seeded) Schedule() string                       { return NameRandom }

// plain draws each run anew. It is the baseline for other strategies.
type plain struct{ seeded }

func (plain) Next(sim.Chooser, int, int) Next { return Next{Base: -1} }

// random draws a run anew, or varies one that reached new states.
type random struct{ seeded }

func (random) Next(c sim.Chooser, _, kept int) Next {
	if kept == 0 || c.Choose("explore/vary", 2) == 0 {
		return Next{Base: -1}
	}
	return Next{Base: int(c.Choose("explore/base", uint64(kept)))}
}

// pct changes runs as random does, and PCT draws their schedules.
type pct struct {
	random
	depth int
}

func (p pct) Chooser(seed uint64, estimate int) sim.Chooser { return NewPCT(seed, p.depth, estimate) }
func (pct) Schedule() string                                { return NamePCT }

// aimed draws every second run anew, and aims faults at the moments of that run in the next.
type aimed struct{ seeded }

func (aimed) Next(_ sim.Chooser, index, _ int) Next { return Next{Base: -1, Aimed: index%2 == 1} }
