// Package draw draws scenarios. It takes a chooser, a lock, a profile of the callers, and the
// classes of faults that may happen. It gives a scenario for that lock, or one that it drew
// before with faults at moments of its run. It plays nothing.
package draw

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep/internal/nearest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Version is the version of the drawing. It is raised by hand whenever the same
// seed draws another scenario, or aiming changes a scenario in another way.
const Version = 4

// Profile says what the callers of a workload may do.
type Profile string

// The profiles.
const (
	// Simple has one thread per client, and now and then two. It does not mix leases and watchdog on one
	// hold, makes no timed try on a fair lock, and neither forces a lock open nor closes a client.
	Simple Profile = "simple"
	// Orderly has everything that callers do, but nobody forces a lock open or closes a
	// client before the end.
	Orderly Profile = "orderly"
	// Full has everything that callers do.
	Full Profile = "full"
)

// Profiles are all profiles, the tamest first.
var Profiles = []Profile{Simple, Orderly, Full}

// ParseProfile reads the name of a profile.
func ParseProfile(name string) (Profile, error) {
	if p := Profile(name); slices.Contains(Profiles, p) {
		return p, nil
	}
	known := make([]string, len(Profiles))
	for i, p := range Profiles {
		known[i] = string(p)
	}
	return "", fmt.Errorf("unknown profile %q; %s", name, nearest.Known(name, known))
}

// Scenario is a scenario that was drawn. Its about tells people the knobs and the last fault that Aim
// added. It has no file: SetFile gives it one.
type Scenario struct {
	*scenarios.Scenario
	// Knobs are the features that the drawing used.
	Knobs Knobs
	// Aimed is the number of faults that Aim added since the scenario was drawn.
	Aimed int
}

// New draws a scenario for a lock. All its chance comes from streams of c that begin with
// draw/. If every draw is 0, the scenario is the simplest one.
func New(c sim.Chooser, l *subject.Subject, p Profile, classes []Class) Scenario {
	d := newDrawer(c, l, p, classes)
	d.drawKnobs()
	d.world()
	for _, pr := range d.sc.Processes {
		for i := range pr.Threads {
			d.sc.Threads = append(d.sc.Threads, scenarios.Script{Process: pr.Name, Thread: i + 1, Steps: d.thread()})
		}
	}
	if d.dense() {
		d.crowd()
	}
	d.interrupts()
	d.fit()
	d.settleResources()
	for range d.draw("faults", d.most(3, 6)+1) {
		if f, ok := d.fault(); ok {
			d.sc.Faults = append(d.sc.Faults, f)
		}
	}
	d.sc.About = d.about("")
	// Parts that were drawn once and used twice become parts of their own.
	return Scenario{Scenario: d.sc.Clone(), Knobs: d.knobs}
}

// Given returns a scenario that was not drawn, with knobs that are, for Aim.
func Given(c sim.Chooser, l *subject.Subject, p Profile, classes []Class, sc *scenarios.Scenario) Scenario {
	d := newDrawer(c, l, p, classes)
	d.drawKnobs()
	return Scenario{Scenario: sc, Knobs: d.knobs}
}

// fit removes the parts that the lock does not offer.
func (d *drawer) fit() {
	for _, t := range d.sc.Threads {
		fit(t.Steps, d.lock)
	}
}

// drawer is a scenario being drawn.
type drawer struct {
	c       sim.Chooser
	lock    *subject.Subject
	profile Profile
	classes []Class
	sc      *scenarios.Scenario
	knobs   Knobs
	// edges are lengths of time after which something ends or begins. bursts are instants
	// at which several threads step.
	edges, bursts []time.Duration
	names         []string // of locks
}

func newDrawer(c sim.Chooser, l *subject.Subject, p Profile, classes []Class) *drawer {
	return &drawer{c: c, lock: l, profile: p, classes: classes, sc: &scenarios.Scenario{
		Name: "drawn", Locks: []string{l.Name}, SeedFirst: 1, SeedLast: 1,
	}}
}

func (d *drawer) has(c Class) bool { return slices.Contains(d.classes, c) }

// full reports whether the profile is Orderly or Full.
func (d *drawer) full() bool { return d.profile != Simple }

// most returns the bound of the profile.
func (d *drawer) most(simple, full int) int {
	if d.full() {
		return full
	}
	return simple
}

// draw draws a number below n for the next decision about something.
func (d *drawer) draw(what string, n int) int { return int(d.c.Choose("draw/"+what, uint64(n))) }

// from draws one of several values, of which the first is the simplest.
func from[T any](d *drawer, what string, of ...T) T { return of[d.draw(what, len(of))] }

func (d *drawer) ms(what string, most int) time.Duration {
	return time.Duration(d.draw(what, most+1)) * time.Millisecond
}

// world draws everything but steps and faults.
func (d *drawer) world() {
	d.sc.Latency = d.latency()
	d.sc.Server = d.server()
	d.sc.Watchdog = d.watchdog()
	d.names = []string{"x", "y"}
	if d.full() {
		d.names = []string{"x", "y", "z{1}"}[:1+d.draw("world", 3)]
	}
	n := 2 + d.draw("world", 3)
	threads := 0
	for _, name := range []string{"a", "b", "c", "d"}[:n] {
		p := d.process(name)
		if threads += p.Threads; threads > 6 {
			p.Threads = 1
		}
		d.sc.Processes = append(d.sc.Processes, p)
	}
	d.findEdges()
	d.bursts = []time.Duration{d.length(5 * time.Second), d.length(30 * time.Second)}
}

// latency draws the time that a message takes one way. Four messages hand a lock over,
// and the judge of liveness allows one second for it.
func (d *drawer) latency() scenarios.Range {
	switch {
	case d.lock.Fair && d.full():
		return from(d, "world", span(5, 20), span(20, 20), span(50, 50), span(5, 200))
	case d.lock.Fair:
		// The waiter behind a dead one asks again without a pause. A slow network keeps
		// such a run short.
		return span(5, 20)
	case d.full():
		return from(d, "world", usual, atOnce, span(1, 1), span(1, 5), span(5, 20), span(50, 50), span(1, 200))
	}
	return from(d, "world", usual, atOnce)
}

func (d *drawer) server() (s scenarios.Server) {
	if !d.lock.Replicated {
		return s
	}
	s.Replicas, s.Lag = 2, from(d, "world", span(0, 1), span(0, 20))
	if d.full() {
		s.Replicas = from(d, "world", 1, 2, 3)
		s.Lag = from(d, "world", atOnce, span(0, 1), span(0, 20), span(100, 100), span(200, 600), span(0, 2000))
	}
	s.Lag.Min = max(s.Lag.Min, atOnce.Min)
	return s
}

func (d *drawer) watchdog() time.Duration {
	if d.full() {
		return from(d, "world", 30*time.Second, 15*time.Second, 10*time.Second, 5*time.Second, time.Minute)
	}
	// With a watchdog below the response timeout, one lost reply would outlast the lease.
	return from(d, "world", 30*time.Second, 15*time.Second)
}

// usual is the default latency of a file. atOnce is the smallest latency.
var (
	usual  = scenarios.Range{Min: 200 * time.Microsecond, Max: 2 * time.Millisecond}
	atOnce = scenarios.Range{Min: 100 * time.Microsecond, Max: 100 * time.Microsecond}
)

func span(min, max int) scenarios.Range {
	return scenarios.Range{Min: time.Duration(min) * time.Millisecond, Max: time.Duration(max) * time.Millisecond}
}

func (d *drawer) process(name string) scenarios.Process {
	p := scenarios.Process{Name: name, Threads: 1}
	if d.lock.Fair {
		// The wait is longer than any hold, so that no living waiter loses its place.
		wait := 40 * time.Second
		if d.full() {
			wait = from(d, "process", 40*time.Second, 10*time.Second, 5*time.Second, time.Second)
		}
		p.ClientOptions.FairWait = &wait
	}
	if !d.full() {
		p.Threads = from(d, "process", 1, 1, 1, 1, 2) // in almost half of the scenarios a process has two
	}
	if d.full() {
		p.Threads = from(d, "process", 1, 2, 3)
		p.PerCall = d.odds("per_call")
		if d.odds("response_timeout") {
			t := from(d, "process", 10*time.Second, time.Second, 300*time.Millisecond)
			p.ClientOptions.ResponseTimeout = &t
		}
		if d.odds("retry_attempts") {
			n := from(d, "process", 1, 0, 2, 5)
			p.ClientOptions.RetryAttempts = &n
		}
	}
	if d.has(ClassClock) && d.odds("skewed") {
		p.WallOffset = d.signed(d.length(time.Minute))
		p.WallDriftPPM = int64(from(d, "process", 0, 20, -20, 500, -500, 50_000, -50_000))
	}
	return p
}

func (d *drawer) signed(t time.Duration) time.Duration {
	if d.draw("times", 2) == 1 {
		return -t
	}
	return t
}

// findEdges gathers the lengths of the scenario at which something ends.
func (d *drawer) findEdges() {
	w, timing := d.sc.Watchdog, d.timing()
	period := cmp.Or(timing.RenewalPeriod, w/3) // where nothing renews, as good a part of a lease as any
	d.edges = []time.Duration{period, w, 2 * period, timing.ResponseTimeout, timing.Resend, d.sc.Latency.Min, d.sc.Latency.Max, 100 * time.Millisecond}
	for _, p := range d.sc.Processes {
		for _, t := range []*time.Duration{p.ClientOptions.FairWait, p.ClientOptions.ResponseTimeout} {
			if t != nil && !slices.Contains(d.edges, *t) {
				d.edges = append(d.edges, *t)
			}
		}
	}
}

// scales are the scales of times. Bugs sit at boundaries, and where things meet.
var scales = []string{"zero", "tiny", "second", "seconds", "edge", "minute"}

// length draws a length of time, at most most.
func (d *drawer) length(most time.Duration) time.Duration {
	var t time.Duration
	switch d.pick("times", d.knobs.Times) {
	case "zero":
	case "tiny":
		t = d.ms("times", 10)
	case "second":
		t = d.ms("times", 1000)
	case "seconds":
		t = d.ms("times", 6000)
	case "minute":
		t = d.ms("times", 60_000)
	case "edge":
		var edges []time.Duration
		for _, e := range d.edges {
			if e <= most {
				edges = append(edges, e)
			}
		}
		if len(edges) == 0 {
			return 0
		}
		// The distance to the edge: none, a millisecond, the way of a message, a round trip.
		off := from(d, "times", 0, time.Millisecond, d.sc.Latency.Max, 2*d.sc.Latency.Max, 50*time.Millisecond, time.Second)
		t = max(0, from(d, "times", edges...)+d.signed(off)).Round(10 * time.Microsecond)
	}
	if t > most {
		return t % (most + time.Millisecond)
	}
	return t
}

// positive draws a length between least and most.
func (d *drawer) positive(least, most time.Duration) time.Duration {
	return max(least, d.length(most))
}

// instant draws an instant.
func (d *drawer) instant() time.Duration {
	switch from(d, "times", "any", "length", "burst") {
	case "length":
		return d.length(time.Minute)
	case "burst":
		return from(d, "times", d.bursts...) + d.length(time.Second)
	}
	return d.ms("times", 12_000)
}

// underWay draws an instant at which messages of a step may be under way, and the process
// of the step. The instant lies a few latencies after the step would begin if no call took
// any time.
func (d *drawer) underWay() (at time.Duration, who string) {
	type begin struct {
		at  time.Duration
		who string
	}
	var begins []begin
	var thread *scenarios.Script
	var now time.Duration
	for t, s := range d.sc.All() {
		if t != thread {
			thread, now = t, 0
		}
		switch s.Kind {
		case scenarios.StepSleep:
			now += s.D
		case scenarios.StepAt:
			now = max(now, s.D)
		default:
			begins = append(begins, begin{now, t.Process})
		}
	}
	if len(begins) == 0 {
		return d.instant(), from(d, "faults", d.sc.Processes...).Name
	}
	b := from(d, "times", begins...)
	way := max((d.sc.Latency.Min+d.sc.Latency.Max)/2, 100*time.Microsecond)
	return b.at + (time.Duration(d.draw("times", 25)) * way / 4).Round(10*time.Microsecond), b.who
}

// settleResources declares the resources that the workload uses. Their start values and rules follow
// from the amounts that the workload takes.
func (d *drawer) settleResources() {
	var used []string
	takes := map[string]int64{}
	var walk func(steps []scenarios.Step, times int64)
	walk = func(steps []scenarios.Step, times int64) {
		for _, s := range steps {
			if s.Kind == scenarios.StepUse {
				if !slices.Contains(used, s.Name) {
					used = append(used, s.Name)
				}
				takes[s.Name] += s.Take * times
			}
			walk(s.Steps, times*int64(max(1, s.Times)))
		}
	}
	for _, t := range d.sc.Threads {
		walk(t.Steps, 1)
	}
	certain := d.certain()
	slices.Sort(used)
	for _, name := range used {
		if slices.ContainsFunc(d.sc.Resources, func(r scenarios.Resource) bool { return r.Name == name }) {
			continue
		}
		// If less is there than is taken, somebody finds it sold out. The step use never
		// goes below zero.
		taken, zero := takes[name], int64(0)
		r := scenarios.Resource{Name: name, Start: taken + from(d, "world", int64(10), 0, -1), NeverBelow: &zero}
		if end := r.Start - taken; certain && end >= 0 {
			r.End = &end
		}
		d.sc.Resources = append(d.sc.Resources, r)
	}
}

func resourceOf(name int) string { return fmt.Sprintf("stock%d", name+1) }

// certain reports whether all uses are sure to happen: threads only wait for the lock and
// work under it, and no call ends because its answer is late.
func (d *drawer) certain() bool {
	var plain func(steps []scenarios.Step, under int) bool
	plain = func(steps []scenarios.Step, under int) bool {
		return !slices.ContainsFunc(steps, func(s scenarios.Step) bool {
			switch s.Kind {
			case scenarios.StepAt, scenarios.StepSleep, scenarios.StepUse, scenarios.StepRepeat:
				return !plain(s.Steps, under)
			case scenarios.StepWithLock:
				again := under > 0 && (d.lock.NonReentrant || d.lock.Uncounted)
				return again || s.Wait != nil || s.UnlockAlways || !plain(s.Steps, under+1)
			}
			return true
		})
	}
	return len(d.classes) == 0 && !d.answersLate() && !slices.ContainsFunc(d.sc.Threads, func(t scenarios.Script) bool { return !plain(t.Steps, 0) })
}

// timing returns the timing of the lock in the world that is drawn.
func (d *drawer) timing() model.Timing { return d.lock.Timing(d.sc.Watchdog) }

// answersLate reports whether an answer may take longer than a client waits for it, without
// any fault.
func (d *drawer) answersLate() bool {
	longest := 2 * (d.sc.Latency.Max + d.sc.Server.Lag.Max)
	return slices.ContainsFunc(d.sc.Processes, func(p scenarios.Process) bool {
		if t := p.ClientOptions.ResponseTimeout; t != nil {
			return longest >= *t
		}
		return longest >= d.timing().ResponseTimeout
	})
}

// longest returns the longest time that a thread works, waits or sleeps at once.
func (d *drawer) longest() time.Duration {
	switch {
	case d.lock.Campaign.ShortWaits || d.lock.Fair:
		return 6 * time.Second
	case d.full():
		return time.Minute
	}
	return 20 * time.Second
}
