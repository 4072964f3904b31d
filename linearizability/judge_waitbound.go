package linearizability

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

// judgeWaitBound: a timed try returns later than its wait and one round trip,
// on the fair lock two, since there it leaves the queue. Calls that a fault may
// have held up are not judged.
func judgeWaitBound(r *run) []Finding {
	var out []Finding
	for _, o := range r.ops {
		if o.Action != model.ActTryLockTimed || o.ret == nil || o.outcome == model.Waiting || r.heldUp(o) {
			continue
		}
		trips := 1
		if r.rec.Params.Fair {
			trips = 2
		}
		trips += o.detours()
		// A lock that reads a clock reads whole milliseconds.
		late := o.returned() - o.waitsUntil() - int64(trips)*r.roundTrip(o.Process) - int64(time.Millisecond)
		if late <= 0 {
			continue
		}
		f := Finding{Judge: model.JudgeWaitBound, Verdict: Broken, AtNs: o.returned(), Ops: []OpRef{o.ref()}, Facts: model.Facts{Lock: o.Lock, Thread: o.who},
			Why: fmt.Sprintf("%s tried for %s from %s on, for %v, and returned at %s, which is %v later than its wait and %s of at most %v",
				o.who, o.Lock, model.At(o.AtNs), time.Duration(o.WaitNs), model.At(o.returned()), time.Duration(late),
				plural(trips, "round trip"), time.Duration(r.roundTrip(o.Process)))}
		for _, p := range r.rec.Params.Processes {
			if p.Name == o.Process && p.Skew >= time.Millisecond {
				f.Excuses = append(f.Excuses, model.Excuse{Circumstance: model.ClocksApart, Clocks: true, Why: "the wall clock of " + p.Name + " is not the server's"})
			}
		}
		out = append(out, f)
	}
	return out
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// heldUp: a fault may have cost the call time: it met a message of its process,
// stopped that or the server, or the call was interrupted.
func (r *run) heldUp(o *operation) bool {
	if o.interrupted < math.MaxInt64 || r.goneAt(o.who) <= o.returned() {
		return true
	}
	during := func(from, to int64) bool { return from <= o.returned() && to >= o.AtNs }
	for _, t := range append(r.pauses(o.who), r.cuts(o.who)...) {
		if during(t.from, t.to) {
			return true
		}
	}
	return slices.ContainsFunc(r.faults, func(t trouble) bool {
		// One that cut connections shows when the next command finds its own dead.
		cut := t.spec.EndsConnections()
		return t.spec.Interrupts() && during(t.from, t.to) || cut && t.from <= o.returned()
	}) ||
		slices.ContainsFunc(r.ordered, func(m *msg) bool {
			// A call that ends unsubscribes and closes that connection: the answer,
			// for which nobody waits, holds nobody up. One that comes after its
			// client gave the command up does.
			lost := m.lost != nil && (m.lost.Why != model.LostUnwanted || !strings.HasSuffix(strings.ToUpper(m.Command+m.Script), "UNSUBSCRIBE"))
			return m.Process == o.Process && (len(m.hits) > 0 || lost) && m.AtNs <= o.returned() && (m.delivered < 0 || m.delivered >= o.AtNs)
		})
}

// detours are the round trips that a call made beside its tries: a script that
// the server did not know, or a question that no script answers, such as the
// server's time.
func (o *operation) detours() (n int) {
	for _, m := range o.sent {
		if m.Script == "" && !strings.HasSuffix(m.Command, "SUBSCRIBE") || m.notRun() {
			n++
		}
	}
	return n
}

// roundTrip is the longest that a command of a process took that no fault met.
func (r *run) roundTrip(process string) (ns int64) {
	for _, m := range r.ordered {
		if m.Process == process && m.delivered >= 0 && len(m.hits) == 0 {
			ns = max(ns, m.delivered-m.AtNs)
		}
	}
	return ns
}
