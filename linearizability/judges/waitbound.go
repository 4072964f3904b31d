package judges

import (
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// waitBoundJudge finds timed tries that return later than their wait and one round trip. A lock of
// several parts has one for each, since it may ask them one after another. A try of a fair lock has
// one more, in which it leaves the queue, and so has a try of a lock that cleans up after it. The
// judge leaves out calls that a fault may have held up.
type waitBoundJudge struct{ *run }

func (r waitBoundJudge) judge() []Finding {
	var out []Finding
	for _, o := range r.Calls {
		if o.Action != model.ActTryLockTimed || o.Return == nil || r.heldUp(o) {
			continue
		}
		trips := max(r.Record.Params.Parts, 1) + detours(o) + r.greetings(o)
		if r.Record.Params.Fair || r.Record.Params.PerGrant {
			trips++
		}
		// A lock that reads a clock reads whole milliseconds.
		late := o.ReturnedNs() - o.WaitsUntilNs() - int64(trips)*r.roundTrip(o.Process) - int64(time.Millisecond) - int64(r.Record.Params.Uncertainty)
		if late <= 0 {
			continue
		}
		f := Finding{Judge: model.JudgeWaitBound, Verdict: Broken, AtNs: o.ReturnedNs(), Ops: []OpRef{refOf(o)}, Facts: model.Facts{Lock: o.Lock, Thread: o.Caller},
			Detail: LateReturn{CallNs: o.AtNs, Wait: time.Duration(o.WaitNs), Late: time.Duration(late), Trips: trips, Trip: time.Duration(r.roundTrip(o.Process))}}
		// A client that asks the server for the time may get one that is too late.
		f.Excuses = append(f.Excuses, r.clockSteps(0, o.ReturnedNs())...)
		out = append(out, f)
	}
	return out
}

// heldUp reports whether a fault may have cost the call time: it met a message of the
// process, or stopped the process or the server, or the call was interrupted.
func (r waitBoundJudge) heldUp(o *trace.Call) bool {
	if o.InterruptedNs < math.MaxInt64 || r.goneAt(o.Caller) <= o.ReturnedNs() {
		return true
	}
	during := func(from, to int64) bool { return from <= o.ReturnedNs() && to >= o.AtNs }
	if slices.ContainsFunc(r.lateGreetings(o.Process), func(h heldConnection) bool { return during(h.from, h.to) }) {
		return true
	}
	for _, t := range append(r.pauses(o.Caller), r.partitions(o.Caller)...) {
		if during(t.FromNs, t.ToNs) {
			return true
		}
	}
	return slices.ContainsFunc(r.Faults, func(t trace.Fault) bool {
		// A fault that cut connections takes effect when the next command finds its connection
		// dead.
		cut := t.Spec.EndsConnections()
		return t.Spec.Interrupts() && during(t.FromNs, t.ToNs+int64(r.Record.Params.Recovery)) || cut && t.FromNs <= o.ReturnedNs()
	}) ||
		slices.ContainsFunc(r.CommandsFrom(o.Process), func(m *trace.Command) bool {
			// A call that ends unsubscribes and closes that connection. Nobody waits for
			// that answer, so its loss holds nobody up. An answer that comes after its
			// client gave the command up does.
			lost := m.Lost != nil && (m.Lost.Why != model.LostUnwanted || m.Listens != model.ListenStop)
			return (len(m.Hits) > 0 || lost) && m.AtNs <= o.ReturnedNs() && (m.RepliedNs < 0 || m.RepliedNs >= o.AtNs)
		})
}

// detours counts the round trips that a call made besides its tries: scripts that the server did
// not know, commands outside scripts, such as a question for the server's time, and greetings. The
// greetings that a client sends at once take one.
func detours(o *trace.Call) (n int) {
	greeted := map[int64]bool{}
	for _, m := range o.Sent {
		switch {
		case m.Greets && m.Script != "":
			greeted[m.AtNs] = true
		case m.Script == "" && m.Listens == model.ListensNot || m.UnknownScript():
			n++
		}
	}
	return n + len(greeted)
}

// greetings counts the connections that the process of a call began during the call and on which the server speaks first.
func (r waitBoundJudge) greetings(o *trace.Call) (n int) {
	for _, e := range r.Pushes {
		if e.Kind == model.KindDeliver && e.Channel == "" && e.Process == o.Process && o.AtNs <= e.AtNs && e.AtNs <= o.ReturnedNs() &&
			!slices.ContainsFunc(r.CommandsFrom(o.Process), func(m *trace.Command) bool { return m.Conn == e.Conn && m.AtNs < e.AtNs }) {
			n++
		}
	}
	return n
}

// roundTrip returns the longest time that a command of a process took without meeting a
// fault. A command does not count if the server keeps its answer back, for as long as the client asks; WAIT
// does, which is about an earlier command. A client that sends commands together keeps the first one of a call for a
// while, up to collecting, before it writes it on a connection that it has.
func (r waitBoundJudge) roundTrip(process string) (ns int64) {
	began := map[int]int64{} // by connection, when its first command was sent
	for _, m := range r.CommandsFrom(process) {
		if _, ok := began[m.Conn]; !ok {
			began[m.Conn] = m.AtNs
		}
		if m.RepliedNs >= 0 && len(m.Hits) == 0 && (!m.Blocks || m.WaitOf != nil) {
			trip := m.RepliedNs - m.AtNs
			if m.Call != nil && m.Call.Sent[0] == m && began[m.Conn] < m.Call.AtNs {
				trip += min(m.AtNs-m.Call.AtNs, int64(collecting))
			}
			ns = max(ns, trip)
		}
	}
	return ns
}

// collecting is the longest time for which a client keeps a command back, to send others with it.
const collecting = 10 * time.Millisecond
