package draw

import (
	"slices"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
)

// denseEvery is the number of drawings of which one is dense, in the profiles Orderly and Full.
const denseEvery = 32

// dense draws whether the callers are dense.
func (d *drawer) dense() bool { return d.full() && d.draw("dense", denseEvery) == denseEvery-1 }

// crowd replaces the steps of all threads by dense calls on one lock, up to hundreds in a run.
// The first thread holds the lock for long. The others try again and again with a short wait,
// each until an instant of its own, and then wait until they get it. Several processes may
// crash in the same second while their threads do so.
func (d *drawer) crowd() {
	for _, name := range []string{"a", "b", "c", "d"}[len(d.sc.Processes):] {
		d.sc.Processes = append(d.sc.Processes, d.process(name))
	}
	for i := range d.sc.Processes {
		d.sc.Processes[i].Threads = 1 // more would make a run of seconds
	}
	d.findEdges()
	seconds := func(least, most int) time.Duration {
		return time.Duration(least+d.draw("dense", most-least+1)) * time.Second
	}
	wait := from(d, "dense", 500*time.Millisecond, time.Second, 250*time.Millisecond, 2*time.Second)
	section := scenarios.Step{Kind: scenarios.StepWithLock, Name: d.names[0], Lease: d.lease(), Steps: sleep(d.ms("dense", 1000))}
	d.sc.Threads = nil
	var callers []string // the processes that try
	for i, p := range d.sc.Processes {
		t := scenarios.Script{Process: p.Name, Thread: 1, Steps: sleep(d.ms("dense", 500))}
		if i == 0 {
			hold := seconds(5, 20)
			t.Steps = []scenarios.Step{{Kind: scenarios.StepLock, Name: section.Name, Lease: &hold}, {Kind: scenarios.StepSleep, D: hold}}
		} else {
			try, until := section, seconds(5, 30)
			try.Wait = &wait
			t.Steps = append(t.Steps, scenarios.Step{Kind: scenarios.StepRepeat, Until: &until, Steps: []scenarios.Step{try}}, section)
			callers = append(callers, p.Name)
		}
		d.sc.Threads = append(d.sc.Threads, t)
	}
	if !d.has(ClassCrash) {
		return
	}
	at := seconds(3, 20)
	for range d.draw("dense", len(callers)) {
		i := d.draw("dense", len(callers))
		crash := model.FaultSpec{Kind: model.FaultCrash, Processes: []string{callers[i]}, At: at + d.ms("dense", 1000)}
		d.sc.Faults = append(d.sc.Faults, scenarios.Fault{FaultSpec: crash})
		callers = slices.Delete(callers, i, i+1)
	}
}
