package judges

import (
	"math"
	"slices"

	"lockstep/model"
)

// Waits is how long calls waited that were granted a lock, from the call to its
// return, as a distribution: a percentile is the shortest wait that so many did
// not exceed.
type Waits struct {
	Granted                    int
	P50Ns, P90Ns, P99Ns, MaxNs int64
}

// waits gathers them, of all locks of a run together.
func (r *run) waits() Waits {
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
