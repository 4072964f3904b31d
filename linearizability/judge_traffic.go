package linearizability

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// TrafficMost is how many commands a waiter may send in a simulated second,
// beside those with which it answers to being woken.
const TrafficMost = 20

// judgeTraffic: a waiter asks more often than that. Commands that a fault met
// may be sent again, and do not count; nor do those that its process sent while it
// was paused, and each sent once more: only the timers of the world go on then, and no
// real process's.
func judgeTraffic(r *run) []Finding {
	woken := r.woken()
	var out []Finding
	for _, o := range r.Calls {
		if o.Action != model.ActLock && o.Action != model.ActTryLockTimed {
			continue
		}
		var sent []int64
		pauses, inPause := r.pauses(o.Caller), map[string]int{}
		for _, m := range o.Sent {
			words := fmt.Sprintf("%s %q", cmp.Or(m.Script, m.Command), m.Args)
			switch {
			case slices.ContainsFunc(pauses, func(p trace.Fault) bool { return p.FromNs <= m.AtNs && m.AtNs < p.ToNs }):
				inPause[words]++
			case len(m.Hits) > 0 || m.Lost != nil || m.UnknownScript():
			case inPause[words] > 0:
				inPause[words]--
			default:
				sent = append(sent, m.AtNs)
			}
		}
		if from, n, ok := burst(sent, woken[o.Process]); ok {
			out = append(out, Finding{Judge: model.JudgeTraffic, Verdict: Broken, AtNs: from, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Lock: o.Lock, Thread: o.Caller},
				Why: fmt.Sprintf("%s sent %d commands for %s in the second from %s on, %d more than it was woken", o.Caller, n, o.Lock,
					model.At(from), n-inSecond(woken[o.Process], from))})
		}
	}
	return out
}

// woken are the instants at which published messages reached a process.
func (r *run) woken() map[string][]int64 {
	at := map[string][]int64{}
	for i := range r.Record.Events {
		if e := &r.Record.Events[i]; e.Kind == model.KindDeliver && e.Dir == "push" {
			at[e.Process] = append(at[e.Process], e.AtNs)
		}
	}
	return at
}

// burst finds the first second in which more was sent than is allowed, and how
// much.
func burst(sent, woken []int64) (from int64, n int, ok bool) {
	slices.Sort(sent)
	for _, at := range sent {
		if n := inSecond(sent, at); n-inSecond(woken, at) > TrafficMost {
			return at, n, true
		}
	}
	return 0, 0, false
}

// inSecond counts the instants in the second that begins with from; they are
// sorted.
func inSecond(instants []int64, from int64) int {
	first, _ := slices.BinarySearch(instants, from)
	end, _ := slices.BinarySearch(instants, from+int64(time.Second))
	return end - first
}
