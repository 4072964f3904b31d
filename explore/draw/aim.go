package draw

import (
	"fmt"
	"slices"
	"time"

	"lockstep/explore/coverage"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Kinds returns the kinds of faults that Aim can place at a moment of a run of the lock, with
// faults of these classes.
func Kinds(l *subject.Subject, classes []Class, m coverage.Moment) (kinds []coverage.Kind) {
	d := &drawer{lock: l}
	add := func(k coverage.Kind) {
		if coverage.Cannot(k, m) == "" && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for _, kind := range faultKindsOf(classes) {
		if d.lacks(kind) {
			continue
		}
		switch k := coverage.Kind(kind); {
		case kind == "wakeup" && m == coverage.WakeUp:
			add(coverage.Drop)
			add(coverage.Delay)
			add(coverage.Reset)
		case kind == "lose_renewal" && m == coverage.AtRenewal:
			add(coverage.Drop)
		case kind == "fail_renewal" && m == coverage.AtRenewal:
			add(coverage.Error)
		case slices.Contains(coverage.Kinds, k) && !(k.OnMessages() && m == coverage.WakeUp):
			add(k)
		}
	}
	return kinds
}

// Aim draws a scenario that adds to base a fault of the kind, so that the fault strikes in the
// opening. CanAim must report true for them. The opening is one of base's run with a seed. With the
// same seed the run of the new scenario is the same until the fault. Aim reports false if base has
// too many faults already, or the servers of the lock lack the fault. It leaves base as it is.
func Aim(c sim.Chooser, base Scenario, l *subject.Subject, p Profile, classes []Class, o coverage.Opening, k coverage.Kind) (Scenario, bool) {
	d := newDrawer(c, l, p, classes)
	d.knobs = base.Knobs
	d.adopt(base.Clone())
	if len(d.sc.Threads) == 0 || len(d.sc.Faults) > d.most(3, 6) {
		return Scenario{}, false
	}
	if k == coverage.Interrupt {
		d.interruptAt(d.momentOf(o), o.Thread)
	} else {
		f := d.aimed(o, k)
		if d.lock.LacksFault(f.FaultSpec, f.Servers) != "" { // such as the refusal of a command that no server refuses
			return Scenario{}, false
		}
		d.sc.Faults = append(d.sc.Faults, f)
	}
	aimed := base.Aimed + 1
	d.sc.About = d.about(fmt.Sprintf("%d of them aimed, the last: %s met %s, %s", aimed, k, o.Op, o.Moment))
	return Scenario{Scenario: d.sc, Knobs: d.knobs, Aimed: aimed}, true
}

// adopt goes on with a scenario, which it takes the expectations from.
func (d *drawer) adopt(sc *scenarios.Scenario) {
	sc.Name, sc.Source, sc.Locks = d.sc.Name, "", d.sc.Locks
	sc.File, sc.Text = "", ""
	sc.SeedFirst, sc.SeedLast = 1, 1
	sc.Expect, sc.Reach = nil, nil
	for i := range sc.Resources {
		sc.Resources[i].End = nil // what follows from the workload no longer does
	}
	for i := range sc.Threads {
		sc.Threads[i].Steps = d.undemanding(sc.Threads[i].Steps)
	}
	sc.Tidy()
	if d.lock.Replicated != (sc.Server.Replicas > 0) {
		sc.Server = d.server()
	}
	d.sc = sc
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
		out = append(out, s)
	}
	slices.Sort(d.names)
	return out
}

// CanAim reports whether a fault of the kind can strike in an opening: whether a message leaves
// in it, or the world has an instant in it.
func CanAim(o coverage.Opening, k coverage.Kind) bool {
	switch {
	case k.OnMessages():
		return o.Nth > 0
	case k == coverage.Interrupt && o.Thread == "":
		return false
	}
	_, n := instants(o)
	return n > 0
}

// instants returns the first instant within an opening at which a world has faults, and the
// number of these instants.
func instants(o coverage.Opening) (first time.Duration, n int64) {
	const each = int64(sim.Resolution)
	from, to := o.FromNs/each+1, (o.ToNs-1)/each
	return time.Duration(from * each), to - from + 1
}

// momentOf draws an instant of an opening.
func (d *drawer) momentOf(o coverage.Opening) time.Duration {
	first, n := instants(o)
	return first + time.Duration(int64(d.draw("aim", 1000))*n/1000)*sim.Resolution
}

// aimed draws a fault of the kind that strikes in an opening.
func (d *drawer) aimed(o coverage.Opening, k coverage.Kind) (f scenarios.Fault) {
	at := d.momentOf(o)
	switch {
	case k.OnMessages():
		f.FaultSpec = model.FaultSpec{Kind: model.FaultRule, Do: string(k), When: model.When{
			Process: o.Process, Direction: o.Direction(), Script: o.Role, Nth: o.Nth,
		}}
		switch {
		case o.Moment == coverage.WakeUp:
			f.When.Channel = "*"
		case o.Role == "":
			f.When.Command = o.Command
		case o.Moment == coverage.AtRenewal && k != coverage.Error && d.draw("aim", 2) == 1:
			f.When.Direction = "reply"
		}
		switch k {
		case coverage.Delay:
			f.For = d.spell(o)
		case coverage.Hold:
			if f.Awaits = awaited(o); f.Awaits != nil { // the client must not ask again meanwhile
				f.When.Nth, f.When.After = 0, o.Nth-1
			}
		case coverage.Error:
			f.With = d.refusal()
		}
		f.Servers = d.struck(f.Kind)
		return f
	case k == coverage.Crash:
		f.FaultSpec = model.FaultSpec{Kind: model.FaultCrash, Processes: []string{o.Process}}
	case k == coverage.Pause:
		f.FaultSpec = model.FaultSpec{Kind: model.FaultPause, Processes: []string{o.Process}, For: d.spell(o)}
	case k == coverage.Partition:
		f.FaultSpec = model.FaultSpec{Kind: model.FaultPartition, Processes: []string{o.Process}, For: d.spell(o)}
	case k == coverage.WallClock:
		f.FaultSpec = model.FaultSpec{Kind: model.FaultWallClock, Processes: []string{o.Process}, Step: d.signed(d.length(time.Minute))}
	case k == coverage.Delete, k == coverage.Expire:
		f.FaultSpec = model.FaultSpec{Kind: model.FaultKey, Key: from(d, "aim", append(d.lock.Keys(o.Lock), "*")...), KeyDo: string(k)}
	default:
		f.FaultSpec = d.serverFault(string(k))
		if f.For > 0 {
			f.For = d.spell(o)
		}
	}
	f.Servers = d.struck(f.Kind)
	f.At = at
	return f
}

// spell draws the length of a fault: until the hold of the opening's lock has ended, and a
// little longer, or as the length of any other fault.
func (d *drawer) spell(o coverage.Opening) time.Duration {
	if o.LeftNs == 0 || d.draw("aim", 2) == 0 {
		return d.outage()
	}
	left := time.Duration(o.LeftNs).Round(time.Millisecond)
	return max(time.Millisecond, left+from(d, "aim", time.Millisecond, 100*time.Millisecond, time.Second))
}

// awaited returns the condition that brings about the state of a gap; nil: the state is that of the run as
// it is, or the moment is no gap.
func awaited(o coverage.Opening) *model.Condition {
	switch o.State {
	case coverage.LeaseEnded:
		return &model.Condition{Ended: o.Lock}
	case coverage.AnotherCame:
		if o.Rival != "" {
			return &model.Condition{Granted: o.Rival}
		}
	case coverage.AnotherWent:
		if o.Rival != "" {
			return &model.Condition{Granted: o.Rival, Ended: o.Lock}
		}
	}
	return nil
}

// interruptAt adds the interrupt of a thread to the steps of the process that only interrupts.
func (d *drawer) interruptAt(at time.Duration, target string) {
	const name = "i"
	steps := []scenarios.Step{{Kind: scenarios.StepAt, D: at}, {Kind: scenarios.StepInterrupt, Target: target}}
	i := slices.IndexFunc(d.sc.Threads, func(t scenarios.Script) bool { return t.Process == name })
	if i < 0 {
		p := scenarios.Process{Name: name, Threads: 1}
		p.ClientOptions.FairWait = d.sc.Processes[0].ClientOptions.FairWait
		d.sc.Processes = append(d.sc.Processes, p)
		d.sc.Threads = append(d.sc.Threads, scenarios.Script{Process: name, Thread: 1, Steps: steps})
		return
	}
	t := &d.sc.Threads[i]
	k := slices.IndexFunc(t.Steps, func(s scenarios.Step) bool { return s.Kind == scenarios.StepAt && s.D > at })
	if k < 0 {
		k = len(t.Steps)
	}
	t.Steps = slices.Insert(t.Steps, k, steps...)
}

// Asked returns the kinds of faults that a campaign with these classes asks for.
func Asked(l *subject.Subject, classes []Class) (asked []coverage.Asked) {
	d := &drawer{lock: l}
	at := map[coverage.Moment][]coverage.Kind{}
	for _, m := range coverage.AllMoments {
		at[m] = Kinds(l, classes, m)
	}
	for _, kind := range faultKindsOf(classes) {
		k := coverage.Kind(kind)
		switch kind {
		case "wakeup", "lose_renewal":
			k = coverage.Drop
		case "fail_renewal":
			k = coverage.Error
		}
		if slices.ContainsFunc(asked, func(a coverage.Asked) bool { return a.Kind == k }) {
			continue
		}
		a := coverage.Asked{Kind: k, At: func(m coverage.Moment) string {
			if slices.Contains(at[m], k) {
				return ""
			}
			return "the classes of the campaign have no such fault there"
		}}
		if d.lacks(kind) {
			a.Lacks = "the servers of the lock have no such fault"
		}
		asked = append(asked, a)
	}
	return asked
}
