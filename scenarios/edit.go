package scenarios

import (
	"slices"

	"lockstep/model"
)

// A Place is the place of a step in a list of steps.
type Place struct {
	List  *[]Step // of a thread, or within a step
	Index int
}

// Step returns the step at the place.
func (p Place) Step() *Step { return &(*p.List)[p.Index] }

// Replace puts steps in the place of the step. The places before it stay what they are.
func (p Place) Replace(steps ...Step) {
	*p.List = slices.Replace(*p.List, p.Index, p.Index+1, steps...)
}

// Places returns the places of the steps of all threads, each before the places within it.
func (sc *Scenario) Places() (places []Place) {
	var visit func(list *[]Step)
	visit = func(list *[]Step) {
		for i := range *list {
			places = append(places, Place{list, i})
			visit(&(*list)[i].Steps)
		}
	}
	for i := range sc.Threads {
		visit(&sc.Threads[i].Steps)
	}
	return places
}

// Complete reports whether the scenario has a process and a step, takes the lock of each fence and each lock
// for whose end a rule waits, and has steps that take a lock in each thread or process for whose grant a
// rule waits. Parse reads no other scenario.
func (sc *Scenario) Complete() bool {
	taken := sc.taken()
	return len(sc.Processes) > 0 && len(sc.Threads) > 0 && !slices.ContainsFunc(sc.Resources, func(r Resource) bool {
		return r.Fence != "" && !slices.Contains(taken, r.Fence)
	}) && !slices.ContainsFunc(sc.Faults, func(f Fault) bool {
		c := f.Awaits
		return c != nil && (c.Ended != "" && !slices.Contains(taken, c.Ended) || c.Granted != "" && !sc.takes(c.Granted))
	})
}

// takes reports whether steps of a thread, or of any thread of a process, take a lock.
func (sc *Scenario) takes(who string) bool {
	for t, s := range sc.All() {
		if s.takesLock() && (t.Process == who || model.ThreadName(t.Process, t.Thread) == who) {
			return true
		}
	}
	return false
}

// takesLock reports whether a step takes a lock.
func (s *Step) takesLock() bool {
	return s.Kind == StepLock || s.Kind == StepTryLock || s.Kind == StepWithLock
}

// taken returns the names of the locks that the steps take.
func (sc *Scenario) taken() (names []string) {
	for _, s := range sc.All() {
		if s.takesLock() && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Tidy removes the parts that have no meaning, because what they were about is gone: threads and
// repetitions without steps, reads that look at nothing, faults of no process, and conditions that wait for
// nothing.
func (sc *Scenario) Tidy() {
	for i := range sc.Threads {
		sc.Threads[i].Steps = keepSteps(sc.Threads[i].Steps, meaningful)
	}
	sc.Threads = without(sc.Threads, func(t Script) bool { return len(t.Steps) == 0 })
	sc.Resources = without(sc.Resources, func(Resource) bool { return false })
	sc.Faults = without(sc.Faults, func(f Fault) bool {
		switch f.Kind {
		case model.FaultCrash, model.FaultPause, model.FaultPartition, model.FaultWallClock:
			return len(f.Processes) == 0
		}
		return false
	})
	for i := range sc.Faults {
		if f := &sc.Faults[i]; f.Awaits != nil && *f.Awaits == (model.Condition{}) {
			f.Awaits = nil
		}
	}
}

// without returns the parts for which gone returns false; nil: none is left.
func without[T any](parts []T, gone func(T) bool) []T {
	if parts = slices.DeleteFunc(parts, gone); len(parts) == 0 {
		return nil
	}
	return parts
}

// keepSteps returns the steps for which keep returns true. It asks first about the steps within a step.
func keepSteps(steps []Step, keep func(s *Step) bool) []Step {
	var kept []Step
	for _, s := range steps {
		s.Steps = keepSteps(s.Steps, keep)
		if keep(&s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// meaningful reports whether a step does something.
func meaningful(s *Step) bool {
	switch s.Kind {
	case StepRepeat:
		return len(s.Steps) > 0
	case StepRead:
		r := s.Read
		if len(r.Deadlines) == 0 {
			r.Deadlines = nil
		}
		return r.Holds != nil || r.Locked != nil || r.TTL != nil || r.Queue != nil || r.Deadlines != nil
	}
	return true
}

// DropProcess removes a process, its threads, and the parts that name them.
func (sc *Scenario) DropProcess(name string) {
	sc.Processes = slices.DeleteFunc(sc.Processes, func(p Process) bool { return p.Name == name })
	sc.Threads = slices.DeleteFunc(sc.Threads, func(t Script) bool { return t.Process == name })
	sc.Faults = slices.DeleteFunc(sc.Faults, func(f Fault) bool { return f.When.Process == name })
	for i := range sc.Faults {
		f := &sc.Faults[i]
		f.Processes = slices.DeleteFunc(f.Processes, func(p string) bool { return p == name })
		if c := f.Awaits; c != nil && c.Executed != nil && c.Executed.Process == name {
			c.Executed = nil
		}
	}
	sc.renameThreads(func(thread string) string {
		if thread == name || model.ProcessOf(thread) == name {
			return ""
		}
		return thread
	})
	sc.Tidy()
}

// DropThread removes a thread of a process, and the parts that name it. The numbers of the threads
// after it decrease by one. The last thread of a process stays and loses its steps.
func (sc *Scenario) DropThread(process string, number int) {
	sc.Threads = slices.DeleteFunc(sc.Threads, func(t Script) bool { return t.Process == process && t.Thread == number })
	for i := range sc.Threads {
		if t := &sc.Threads[i]; t.Process == process && t.Thread > number {
			t.Thread--
		}
	}
	for i := range sc.Processes {
		if p := &sc.Processes[i]; p.Name == process && p.Threads > 1 {
			p.Threads--
		}
	}
	sc.renameThreads(func(thread string) string {
		switch n := model.NumberOf(thread); {
		case model.ProcessOf(thread) != process || n < number:
			return thread
		case n == number:
			return ""
		default:
			return model.ThreadName(process, n-1)
		}
	})
	sc.Tidy()
}

// renameThreads gives the threads that steps and faults name the names that rename returns. The name ""
// removes what a step or a fault has about the thread, or the step if it has nothing else.
func (sc *Scenario) renameThreads(rename func(string) string) {
	for i := range sc.Threads {
		sc.Threads[i].Steps = keepSteps(sc.Threads[i].Steps, func(s *Step) bool {
			switch s.Kind {
			case StepInterrupt, StepPublished:
				s.Target = rename(s.Target)
				return s.Target != ""
			case StepRead:
				s.Read.renameThreads(rename)
			}
			return true
		})
	}
	for _, f := range sc.Faults {
		if f.Awaits != nil && f.Awaits.Granted != "" {
			f.Awaits.Granted = rename(f.Awaits.Granted)
		}
	}
}

func (r *Read) renameThreads(rename func(string) string) {
	if r.Queue != nil {
		queue := []string{}
		for _, thread := range *r.Queue {
			if thread = rename(thread); thread != "" {
				queue = append(queue, thread)
			}
		}
		r.Queue = &queue
	}
	if r.Deadlines != nil {
		deadlines := map[string]Range{}
		for thread, deadline := range r.Deadlines {
			if thread = rename(thread); thread != "" {
				deadlines[thread] = deadline
			}
		}
		r.Deadlines = deadlines
	}
}
