package judges

import (
	"maps"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// run is the record that is judged.
type run struct {
	*trace.Run
	believed map[string][]belief                        // by lock, what beliefs returned
	touched  map[string]map[string]*touches             // by lock, what touchesOf returned
	caused   map[string]map[*trace.Call][]*trace.Change // by lock, what changes returned
}

// newRun returns the run of a record. What was derived from it stays for the next question.
func newRun(t *trace.Run) *run {
	if r, ok := t.View.(*run); ok {
		return r
	}
	r := &run{t, map[string][]belief{}, map[string]map[string]*touches{}, map[string]map[*trace.Call][]*trace.Change{}}
	t.View = r
	return r
}

// diedAt returns when the process of a thread crashed, or trace.Never.
func (r *run) diedAt(thread string) int64 { return r.DiedNs(model.ProcessOf(thread)) }

// goneAt returns when the process of a thread crashed or closed its client, or trace.Never. From
// then on it no longer believes in its holds.
func (r *run) goneAt(thread string) int64 { return r.GoneNs(model.ProcessOf(thread)) }

// pauses returns the pauses of a thread's process, in order.
func (r *run) pauses(thread string) []trace.Fault { return r.Pauses(model.ProcessOf(thread)) }

// partitions returns the partitions of a thread's process, in order.
func (r *run) partitions(thread string) []trace.Fault { return r.Partitions(model.ProcessOf(thread)) }

// leased reports whether a hold for which the caller asked no lease has one that nothing renews.
func (r *run) leased() bool { return r.Record.Params.NoWatchdog && !r.Record.Params.Endless }

// unleased reports whether a hold that a change ended by itself ended with the session of its holder: the lock has no
// lease, and no key ran out.
func (r *run) unleased(end *trace.Change) bool { return r.Record.Params.Endless && !end.Expired }

// refOf names a call in a finding.
func refOf(o *trace.Call) OpRef {
	ref := OpRef{Process: o.Process, Thread: o.Thread, Op: string(o.Action), CallNs: o.AtNs, ReturnNs: -1}
	if o.Return != nil {
		ref.ReturnNs = o.Return.AtNs
	}
	return ref
}

// forced reports whether a force_unlock made the change. Such a change is no thread's release,
// whoever called it.
func forced(c *trace.Change) bool {
	o := c.Call()
	return o != nil && o.Action == model.ActForceUnlock
}

// evicts reports whether another thread, or no thread, made a change that took the thread out of
// the queue.
func evicts(c *trace.Change, thread string) bool {
	return c.After.Owner != thread && !c.MadeFor(thread)
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
