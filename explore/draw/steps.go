package draw

import (
	"slices"
	"time"

	"lockstep/scenarios"
)

// thread draws the steps of one thread: sections, each of which is a hold or a try, and in
// the profile full other steps of a caller between them.
func (d *drawer) thread() []scenarios.Step {
	// A careful thread unlocks only locks that it was granted. A wrong answer to the unlock
	// of a free lock, which some releases give, would hide other wrong answers.
	careful := d.odds("careful")
	var steps []scenarios.Step
	for range 1 + d.draw("steps", d.most(3, 4)) {
		steps = append(steps, d.gap()...)
		section := d.section(careful, 0)
		if d.odds("repeat") {
			section = []scenarios.Step{{Kind: scenarios.StepRepeat, Times: 2 + d.draw("steps", 2), Steps: section}}
		}
		steps = append(steps, section...)
		steps = append(steps, d.between()...)
	}
	return steps
}

// gap draws the time before a section: a length, or until an instant at which other
// threads step, too.
func (d *drawer) gap() []scenarios.Step {
	if d.odds("burst") {
		return []scenarios.Step{{Kind: scenarios.StepAt, D: from(d, "times", d.bursts...)}}
	}
	return sleep(d.length(d.longest()))
}

func sleep(t time.Duration) []scenarios.Step {
	if t == 0 {
		return nil
	}
	return []scenarios.Step{{Kind: scenarios.StepSleep, D: t}}
}

// section draws steps that take a lock, work and give it up. Nested locks are taken in the
// order of their names, so that there is no deadlock.
func (d *drawer) section(careful bool, name int) []scenarios.Step {
	name += d.draw("steps", len(d.names)-name)
	if !d.full() {
		name = min(d.draw("steps", 4)/3, len(d.names)-1) // most meet at one lock
	}
	take := scenarios.Step{Kind: scenarios.StepLock, Name: d.names[name], Lease: d.lease()}
	switch d.pick("steps", d.knobs.Calls) {
	case "try_lock":
		switch {
		case take.Lease == nil && !careful:
			take.Kind = scenarios.StepTryLock
		case d.full():
			take.Wait = new(time.Duration)
		}
	case "timed":
		wait := d.length(d.longest())
		take.Wait = &wait
	}
	if take.Kind == scenarios.StepLock && take.Wait == nil && d.odds("interruptible") && !careful {
		yes := true
		take.Interruptible = &yes
	}
	if take.Wait != nil {
		take.Kind = scenarios.StepTryLock
		take.UnitSeconds = !careful && d.odds("seconds")
	}
	levels := 1
	if d.reenters() && d.odds("reenter") {
		levels += 1 + d.draw("steps", 2)
	}
	if careful {
		return d.careful(take, levels, name)
	}
	var steps []scenarios.Step
	for i := range levels {
		if i > 0 && d.odds("mixed") {
			take.Lease = d.lease()
		}
		steps = append(steps, take)
	}
	steps = append(steps, sleep(d.length(d.longest()))...)
	steps = append(steps, d.extensions(take.Name)...)
	unlocks := levels
	if d.odds("twice") {
		unlocks++
	}
	if d.odds("forget") && !(d.lock.Campaign.ShortWaits && take.Lease == nil) {
		unlocks--
	}
	for range unlocks {
		steps = append(steps, scenarios.Step{Kind: scenarios.StepUnlock, Name: take.Name})
	}
	return steps
}

// careful draws a hold that is given up only if it was granted.
func (d *drawer) careful(take scenarios.Step, levels, name int) []scenarios.Step {
	take.Kind = scenarios.StepWithLock
	take.Interruptible = nil
	take.Steps = append(sleep(d.length(d.longest())), d.extensions(take.Name)...)
	if d.odds("use") {
		use := scenarios.Step{Kind: scenarios.StepUse, Name: resourceOf(name), Take: int64(1 + d.draw("steps", 2)), For: d.length(d.longest())}
		take.Steps = append(take.Steps, use)
	}
	if name+1 < len(d.names) && d.odds("nest") {
		take.Steps = append(take.Steps, d.section(true, name+1)...)
	}
	// An inner step that unlocks always would give up the level around it.
	outside := d.odds("always")
	for i := range levels {
		if i > 0 {
			outer := take
			if d.odds("mixed") {
				outer.Lease = d.lease()
			}
			outer.Steps = append([]scenarios.Step{take}, sleep(d.short())...)
			take = outer
		}
		take.UnlockAlways = outside && i == levels-1
	}
	return []scenarios.Step{take}
}

// extensions draws extensions of a hold, each with work after it.
func (d *drawer) extensions(name string) []scenarios.Step {
	if !d.odds("extend") {
		return nil
	}
	var steps []scenarios.Step
	for range 1 + d.draw("steps", 2) {
		steps = append(steps, scenarios.Step{Kind: scenarios.StepExtend, Name: name})
		steps = append(steps, sleep(d.length(d.longest()))...)
	}
	return steps
}

// short draws a time between two steps of one hold.
func (d *drawer) short() time.Duration {
	if !d.full() {
		return 0
	}
	return d.length(time.Second)
}

// reenters reports whether threads may enter a lock that they hold. On a lock without
// re-entry they would only wait for themselves.
func (d *drawer) reenters() bool {
	if d.full() {
		return !d.lock.Campaign.NoReentry
	}
	return !d.lock.Uncounted && !d.lock.NonReentrant
}

// lease draws a lease; nil: none.
func (d *drawer) lease() *time.Duration {
	if !d.odds("leased") {
		return nil
	}
	lease := 500*time.Millisecond + d.ms("times", 7500)
	if d.full() {
		// A lease that ends before its grant arrives would give nobody a hold.
		least := (4*d.sc.Latency.Max + time.Millisecond).Round(time.Millisecond)
		lease = max(least, d.length(d.longest()).Round(time.Millisecond))
	}
	if !slices.Contains(d.edges, lease) {
		d.edges = append(d.edges, lease)
	}
	return &lease
}

// between draws steps of a thread outside of its sections.
func (d *drawer) between() []scenarios.Step {
	var steps []scenarios.Step
	add := func(s scenarios.Step) {
		steps = append(steps, sleep(d.short())...)
		steps = append(steps, s)
	}
	if d.odds("stray") {
		add(scenarios.Step{Kind: scenarios.StepUnlock, Name: from(d, "steps", d.names...)})
	}
	if d.odds("force_unlock") {
		add(scenarios.Step{Kind: scenarios.StepForceUnlock, Name: from(d, "steps", d.names...)})
	}
	if d.odds("interrupt") {
		add(scenarios.Step{Kind: scenarios.StepInterrupt, Target: d.anyThread()})
	}
	if d.odds("close") && d.draw("steps", 3) == 2 {
		add(scenarios.Step{Kind: scenarios.StepClose})
	}
	return steps
}

func (d *drawer) anyThread() string {
	p := from(d, "steps", d.sc.Processes...)
	return threadName(p.Name, 1+d.draw("steps", p.Threads))
}

// interrupts draws a process that only interrupts, since the threads under test are inside
// their calls.
func (d *drawer) interrupts() {
	if n, _ := d.knobs.Faults.weight("interrupt"); n == 0 {
		return
	}
	var steps []scenarios.Step
	var instants []time.Duration
	for range 1 + d.draw("steps", 4) {
		at := d.instant()
		if d.draw("times", 2) == 1 {
			at = from(d, "times", d.bursts...) + d.within()
		}
		instants = append(instants, at)
	}
	slices.Sort(instants)
	for _, at := range instants {
		steps = append(steps,
			scenarios.Step{Kind: scenarios.StepAt, D: at},
			scenarios.Step{Kind: scenarios.StepInterrupt, Target: d.anyThread()})
	}
	p := scenarios.Process{Name: "i", Threads: 1}
	p.ClientOptions.FairWait = d.sc.Processes[0].ClientOptions.FairWait
	d.sc.Processes = append(d.sc.Processes, p)
	d.sc.Threads = append(d.sc.Threads, scenarios.Script{Process: p.Name, Thread: 1, Steps: steps})
}

// within draws a time after which a call is under way, or answered.
func (d *drawer) within() time.Duration {
	return time.Duration(d.draw("times", 401)) * d.sc.Latency.Max / 100 // up to two round trips
}
