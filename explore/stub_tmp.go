package explore

import "lockstep/sim"

const pctDecisions = 200

func NewPCT(seed uint64, depth, est int) sim.Chooser { return sim.NewSeeded(seed) }
func (p Plan) bound(runs int) string                 { return "" }
