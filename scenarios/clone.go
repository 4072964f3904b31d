package scenarios

import (
	"maps"
	"slices"
)

// Clone returns a copy of the scenario that shares no memory with it.
func (sc *Scenario) Clone() *Scenario {
	out := *sc
	out.Locks, out.Reach = slices.Clone(sc.Locks), slices.Clone(sc.Reach)
	out.Resources = slices.Clone(sc.Resources)
	for i := range out.Resources {
		r := &out.Resources[i]
		r.NeverBelow, r.End = clonePointer(r.NeverBelow), clonePointer(r.End)
	}
	out.Processes = slices.Clone(sc.Processes)
	for i := range out.Processes {
		o := &out.Processes[i].ClientOptions
		o.ResponseTimeout, o.RetryAttempts = clonePointer(o.ResponseTimeout), clonePointer(o.RetryAttempts)
		o.PoolSize, o.FairWait = clonePointer(o.PoolSize), clonePointer(o.FairWait)
	}
	out.Threads = slices.Clone(sc.Threads)
	for i := range out.Threads {
		out.Threads[i].Steps = cloneSteps(out.Threads[i].Steps)
	}
	out.Faults = slices.Clone(sc.Faults)
	for i := range out.Faults {
		f := &out.Faults[i]
		f.Processes, f.Nodes, f.Servers = slices.Clone(f.Processes), slices.Clone(f.Nodes), slices.Clone(f.Servers)
		f.Until = clonePointer(f.Until)
		if f.Awaits = clonePointer(f.Awaits); f.Awaits != nil {
			f.Awaits.Executed = clonePointer(f.Awaits.Executed)
		}
	}
	out.Expect = maps.Clone(sc.Expect)
	for lock, e := range out.Expect {
		e.Judges, e.Reach = slices.Clone(e.Judges), slices.Clone(e.Reach)
		out.Expect[lock] = e
	}
	return &out
}

func cloneSteps(steps []Step) []Step {
	out := slices.Clone(steps)
	for i := range out {
		s := &out[i]
		s.Lease, s.Wait, s.Until, s.Interruptible = clonePointer(s.Lease), clonePointer(s.Wait), clonePointer(s.Until), clonePointer(s.Interruptible)
		s.Want = slices.Clone(s.Want)
		s.Steps = cloneSteps(s.Steps)
		if s.Read = clonePointer(s.Read); s.Read != nil {
			r := s.Read
			r.Holds, r.Locked, r.TTL = clonePointer(r.Holds), clonePointer(r.Locked), clonePointer(r.TTL)
			if r.Queue = clonePointer(r.Queue); r.Queue != nil {
				*r.Queue = slices.Clone(*r.Queue)
			}
			r.Deadlines = maps.Clone(r.Deadlines)
		}
	}
	return out
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
