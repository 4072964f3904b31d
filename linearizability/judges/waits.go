package judges

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// Waits is the distribution of the waits of granted calls, from the call to its return. A
// percentile is the shortest wait that this share of the calls did not exceed.
type Waits struct {
	Granted                    int
	P50Ns, P90Ns, P99Ns, MaxNs int64
}

// waitsOf returns the waits of a run, for all locks together.
func waitsOf(r *trace.Run) Waits {
	var all []int64
	for _, o := range r.Calls {
		if o.Action.Acquires() && o.Outcome == model.Granted {
			all = append(all, o.ReturnedNs()-o.AtNs)
		}
	}
	if len(all) == 0 {
		return Waits{}
	}
	slices.Sort(all)
	at := func(percent float64) int64 { return all[int(math.Ceil(percent/100*float64(len(all))))-1] }
	return Waits{Granted: len(all), P50Ns: at(50), P90Ns: at(90), P99Ns: at(99), MaxNs: all[len(all)-1]}
}
