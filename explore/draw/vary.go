package draw

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
)

// adopt starts from a scenario, without its expectations.
func (d *drawer) adopt(was *scenarios.Scenario) {
	sc := *was
	sc.Name, sc.Source, sc.Locks = d.sc.Name, "", d.sc.Locks
	sc.SeedFirst, sc.SeedLast = 1, 1
	sc.Expect, sc.Reach = nil, nil
	sc.Resources = slices.Clone(was.Resources)
	for i := range sc.Resources {
		sc.Resources[i].End = nil // what follows from the workload no longer does
	}
	sc.Threads = nil
	for _, t := range was.Threads {
		if t.Steps = d.undemanding(t.Steps); len(t.Steps) > 0 {
			sc.Threads = append(sc.Threads, t)
		}
	}
	if d.lock.Replicated != (sc.Server.Replicas > 0) {
		sc.Server = d.server()
	}
	d.sc = &sc
	if len(d.names) == 0 {
		d.names = []string{"x"}
	}
	if len(d.bursts) == 0 {
		d.bursts = []time.Duration{0}
	}
	d.findEdges()
}

// undemanding copies steps without their wants, and learns their names, instants and
// leases.
func (d *drawer) undemanding(steps []scenarios.Step) []scenarios.Step {
	learn := func(list *[]time.Duration, t time.Duration) {
		if !slices.Contains(*list, t) {
			*list = append(*list, t)
		}
	}
	var out []scenarios.Step
	for _, s := range steps {
		s.Want, s.Reply = nil, ""
		switch s.Kind {
		case scenarios.StepRead, scenarios.StepPublished:
			continue
		case scenarios.StepAt:
			learn(&d.bursts, s.D)
		case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock, scenarios.StepUnlock, scenarios.StepForceUnlock, scenarios.StepExtend:
			if !slices.Contains(d.names, s.Name) {
				d.names = append(d.names, s.Name)
			}
		}
		s.Steps = d.undemanding(s.Steps)
		if s.Kind == scenarios.StepRepeat && len(s.Steps) == 0 {
			continue
		}
		out = append(out, s)
	}
	slices.Sort(d.names)
	return out
}

// change makes one change and returns its description; "": there was nothing to change.
func (d *drawer) change() string {
	changes := []func() string{d.changeTime, d.changeTime, d.changeTime, d.changeFault, d.changeFault, d.changeWorld, d.changeThread}
	if d.full() {
		// On the profile simple these would mix lease and watchdog, or unlock a lock that
		// is not held.
		changes = append(changes, d.changeStep, d.changeStep)
	}
	return from(d, "vary", changes...)()
}

// slot is a length of time in the scenario.
type slot struct {
	of    string
	t     *time.Duration
	least time.Duration
}

// slots returns all lengths of time that can be changed.
func (d *drawer) slots() (all []slot) {
	least := time.Millisecond // of a lease
	if !d.full() {
		least = 500 * time.Millisecond
	}
	for t, s := range d.sc.All() {
		of := string(s.Kind) + " of " + threadName(t.Process, t.Thread)
		switch s.Kind {
		case scenarios.StepAt, scenarios.StepSleep:
			all = append(all, slot{of, &s.D, 0})
		case scenarios.StepUse:
			all = append(all, slot{of, &s.For, 0})
		}
		for _, o := range []struct {
			what  string
			t     **time.Duration
			least time.Duration
		}{{"lease", &s.Lease, least}, {"wait", &s.Wait, 0}} {
			if *o.t != nil {
				t := **o.t // of this scenario's own
				*o.t = &t
				all = append(all, slot{o.what + " of " + of, &t, o.least})
			}
		}
	}
	for i := range d.sc.Faults {
		f := &d.sc.Faults[i]
		of := "of fault " + strconv.Itoa(i+1)
		if f.Kind != model.FaultRule {
			all = append(all, slot{"instant " + of, &f.At, 0})
		}
		if f.For > 0 {
			all = append(all, slot{"length " + of, &f.For, time.Millisecond})
		}
		if f.Until != nil {
			until := *f.Until
			f.Until = &until
			all = append(all, slot{"end " + of, &until, f.From + time.Millisecond})
		}
	}
	return all
}

// changeTime moves one time a little, or draws it anew.
func (d *drawer) changeTime() string {
	slots := d.slots()
	if len(slots) == 0 {
		return ""
	}
	s := from(d, "vary", slots...)
	was := *s.t
	switch from(d, "vary", "nudge", "nudge", "half", "double", "new") {
	case "nudge":
		by := from(d, "vary", time.Millisecond, d.sc.Latency.Max, 10*time.Millisecond, 100*time.Millisecond, time.Second)
		*s.t += d.signed(by)
	case "half":
		*s.t /= 2
	case "double":
		*s.t *= 2
	case "new":
		*s.t = d.length(d.longest())
	}
	// Leases count in whole milliseconds.
	*s.t = max(s.least, min(*s.t, time.Minute).Round(time.Millisecond))
	return fmt.Sprintf("%s from %v to %v", s.of, was, *s.t)
}

// changeFault adds a fault, drops one, or draws one anew.
func (d *drawer) changeFault() string {
	n := len(d.sc.Faults)
	d.sc.Faults = slices.Clone(d.sc.Faults)
	i := d.draw("vary", n+1)
	drop := i < n && d.draw("vary", 2) == 0
	if drop {
		d.sc.Faults = slices.Delete(d.sc.Faults, i, i+1)
		return fmt.Sprintf("without fault %d", i+1)
	}
	f, ok := d.fault()
	switch {
	case !ok:
		return ""
	case i < n:
		d.sc.Faults[i] = f
		return fmt.Sprintf("fault %d anew", i+1)
	case n >= d.most(3, 6):
		return ""
	}
	d.sc.Faults = append(d.sc.Faults, f)
	return fmt.Sprintf("fault %d added", n+1)
}

// changeWorld changes the network, the watchdog, or a process's client.
func (d *drawer) changeWorld() string {
	switch from(d, "vary", "latency", "watchdog", "process", "lag") {
	case "latency":
		d.sc.Latency = d.latency()
		return "latency " + d.sc.Latency.String()
	case "watchdog":
		d.sc.Watchdog = d.watchdog()
		return "watchdog " + d.sc.Watchdog.String()
	case "lag":
		if !d.lock.Replicated {
			return ""
		}
		d.sc.Server = d.server()
		return "lag " + d.sc.Server.Lag.String()
	}
	d.sc.Processes = slices.Clone(d.sc.Processes)
	p := &d.sc.Processes[d.draw("vary", len(d.sc.Processes))]
	threads := p.Threads
	*p = d.process(p.Name)
	p.Threads = threads
	return "process " + p.Name + " anew"
}

// changeThread draws the steps of a thread anew, or adds steps to it.
func (d *drawer) changeThread() string {
	i := d.draw("vary", len(d.sc.Threads))
	t := &d.sc.Threads[i]
	name := threadName(t.Process, t.Thread)
	if d.draw("vary", 2) == 0 {
		more := append(d.gap(), d.section(d.odds("careful"), 0)...)
		t.Steps = append(slices.Clip(t.Steps), more...)
		return "a section more of " + name
	}
	t.Steps = d.thread()
	return "steps of " + name + " anew"
}

// changeStep drops a step, repeats one, swaps two, or gives one another lock.
func (d *drawer) changeStep() string {
	i := d.draw("vary", len(d.sc.Threads))
	t := &d.sc.Threads[i]
	if slices.ContainsFunc(t.Steps, func(s scenarios.Step) bool { return s.Kind == scenarios.StepUse }) {
		return "" // nobody knows which steps guard it
	}
	name := threadName(t.Process, t.Thread)
	t.Steps = slices.Clone(t.Steps)
	k := d.draw("vary", len(t.Steps))
	s := t.Steps[k]
	switch how := from(d, "vary", "drop", "twice", "swap", "lock"); how {
	case "drop":
		if len(t.Steps) == 1 {
			return ""
		}
		t.Steps = slices.Delete(t.Steps, k, k+1)
		return fmt.Sprintf("without %s of %s", s.Kind, name)
	case "twice":
		t.Steps = slices.Insert(t.Steps, k, s)
		return fmt.Sprintf("%s of %s twice", s.Kind, name)
	case "swap":
		if k == 0 {
			return ""
		}
		t.Steps[k-1], t.Steps[k] = t.Steps[k], t.Steps[k-1]
		return fmt.Sprintf("%s of %s one step earlier", s.Kind, name)
	}
	// A step with steps keeps its lock, which guards what they use.
	if s.Name == "" || len(s.Steps) > 0 {
		return ""
	}
	t.Steps[k].Name = from(d, "vary", d.names...)
	return fmt.Sprintf("%s of %s on %s", s.Kind, name, t.Steps[k].Name)
}
