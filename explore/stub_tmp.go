package explore

import (
	"lockstep/scenarios"
	"lockstep/sim"
)

const pctDecisions = 200

func NewPCT(seed uint64, depth, est int) sim.Chooser { return sim.NewSeeded(seed) }
func Vary(c sim.Chooser, text string, l *scenarios.Lock, p Profile, classes []Class) string {
	return Draw(c, l, p, classes)
}
func (p Plan) bound(runs int) string { return "" }
