package judges

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// TrafficMost is the number of commands that a waiter may send to a server in a simulated second,
// besides those that it sends because it was woken.
const TrafficMost = 20

// cleanUpMost is the number of requests of a release by WATCH, GET, MULTI and EXEC.
const cleanUpMost = 4

// trafficJudge finds waiters that send more than TrafficMost. A lock on several servers may send
// this number to each server. A message wakes a waiter for one command. Where none comes, each end of a hold while a
// request of the waiter is on its way, at the server or answered wakes it for three: a waiter that the server keeps
// waiting, such as one in BLPOP or XREAD, may look, try, and wait again once another was faster. On a stream, of whose
// messages nobody knows the meaning, each end of a hold does. Greetings do not count, and neither do
// commands that a fault met, since they may be sent again, nor do commands of a process with several threads whose
// thread is guessed. Commands that a process sent while it was paused do not count, either, nor one repetition of
// each: timers go on during a pause in the world, but stand still during the pause of a real
// process. After a call of unknown outcome its client may clean up, with at most cleanUpMost requests. A call that the
// thread begins within a second may send that many more.
type trafficJudge struct{ *run }

func (r trafficJudge) judge() []Finding {
	pushed, unknown := r.woken(), map[string][]int64{} // by thread, when calls of unknown outcome returned
	freed := map[string][]int64{}                      // by lock, when requests ended holds
	for _, lock := range r.Locks {
		for _, c := range r.Changes(lock) {
			if c.Ended() && c.By != nil {
				freed[lock] = append(freed[lock], c.AtNs)
			}
		}
	}
	var out []Finding
	for _, o := range r.Calls {
		left := cleanUpMost * inSecond(unknown[o.Caller], o.AtNs-int64(time.Second))
		if o.Outcome == model.Unknown {
			unknown[o.Caller] = append(unknown[o.Caller], o.ReturnedNs())
		}
		if o.Action != model.ActLock && o.Action != model.ActTryLockTimed {
			continue
		}
		var sent, kept []int64
		asked, stream := r.asked(o), false
		for _, m := range asked {
			sent, stream = append(sent, m.AtNs), stream || m.Command == model.SegmentCommand
		}
		for _, at := range freed[o.Lock] {
			if stream || slices.ContainsFunc(asked, func(m *trace.Command) bool {
				return m.AtNs <= at && m.Executed != nil && at <= max(m.Executed.AtNs, m.RepliedNs)
			}) {
				kept = append(kept, at, at, at)
			}
		}
		slices.Sort(kept)
		most := TrafficMost * max(r.Record.Params.Parts, 1)
		woken := func(from int64) int {
			n, after := inSecond(pushed[o.Process], from), inSecond(kept, from)
			if n > 0 && !stream {
				return n
			}
			return max(n, after)
		}
		if from, n, ok := burst(sent, woken, most+left); ok {
			out = append(out, Finding{Judge: model.JudgeTraffic, Verdict: Broken, AtNs: from, Ops: []OpRef{refOf(o)}, Facts: model.Facts{Lock: o.Lock, Thread: o.Caller},
				Detail: Traffic{Sent: n, Woken: woken(from), Most: most}})
		}
	}
	return out
}

// Counted returns the commands of a call that trafficJudge counts in the second that begins with from.
func Counted(t *trace.Run, o *trace.Call, from int64) []*trace.Command {
	r := trafficJudge{newRun(t)}
	return slices.DeleteFunc(r.asked(o), func(m *trace.Command) bool { return inSecond([]int64{m.AtNs}, from) == 0 })
}

// asked returns the commands of a call that may count, in any second.
func (r trafficJudge) asked(o *trace.Call) []*trace.Command {
	var out []*trace.Command
	pauses, inPause := r.pauses(o.Caller), map[string]int{}
	several := slices.ContainsFunc(r.Record.Params.Processes, func(p model.ProcessParams) bool { return p.Name == o.Process && p.Threads > 1 })
	words := func(m *trace.Command) string {
		return strings.Join(append([]string{cmp.Or(string(m.Script), m.Command)}, m.Args...), "\x00")
	}
	for _, m := range o.Sent {
		switch {
		case slices.ContainsFunc(pauses, func(p trace.Fault) bool { return p.FromNs <= m.AtNs && m.AtNs < p.ToNs }):
			inPause[words(m)]++
		case len(m.Hits) > 0 || m.Lost != nil || m.UnknownScript() || m.Greets || m.Guessed && several:
		case len(pauses) > 0 && inPause[words(m)] > 0:
			inPause[words(m)]--
		default:
			out = append(out, m)
		}
	}
	return out
}

// woken returns, by process, the instants at which published messages reached it, or at which the
// connection that brought one ended. Its client may then have missed others, and asks again.
func (r trafficJudge) woken() map[string][]int64 {
	at := map[string][]int64{}
	for _, e := range r.Pushes {
		if e.Kind == model.KindDeliver || trace.LostWithConnection(e) {
			at[e.Process] = append(at[e.Process], e.AtNs)
		}
	}
	return at
}

// burst finds the first second in which a waiter sent more than most, and the number
// that it sent.
func burst(sent []int64, woken func(from int64) int, most int) (from int64, n int, ok bool) {
	slices.Sort(sent)
	for _, at := range sent {
		if n := inSecond(sent, at); n-woken(at) > most {
			return at, n, true
		}
	}
	return 0, 0, false
}

// inSecond counts the instants, which are sorted, in the second that begins with from.
func inSecond(instants []int64, from int64) int {
	first, _ := slices.BinarySearch(instants, from)
	end, _ := slices.BinarySearch(instants, from+int64(time.Second))
	return end - first
}
