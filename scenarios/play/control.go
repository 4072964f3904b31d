package play

import (
	"fmt"
	"slices"

	"lockstep/linearizability/judges"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A limit is tried on at most mostControls controls, on each with the seeds from 1 to controlSeeds. The
// limit is a bug if a control keeps the promise in enoughKept of the runs in which the circumstances of
// the limit meet it, and in all of them.
const (
	mostControls = 2
	controlSeeds = 6
	enoughKept   = 3
)

// ownDecisions stands for the seed of a run of a control with the decisions of the run that showed the
// limit, as far as they fit. They may have been chosen to do harm, as no seed does.
const ownDecisions = 0

// controls plays the controls of a lock under the faults of one run of it.
type controls struct {
	host   *sim.Host
	sc     *scenarios.Scenario
	lock   *subject.Subject
	of     Played
	played map[string]*trace.Run     // by control and seed
	shown  map[string]judges.Control // by judge and excuses
}

func newControls(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, p Played) *controls {
	return &controls{h, sc, l, p, map[string]*trace.Run{}, map[string]judges.Control{}}
}

// ShowLimits plays the controls for each limit of the run that Judge did not try on them, since they could not
// make a bug of it. It says in Finding.Control what they show.
func (v *Verdict) ShowLimits(h *sim.Host) {
	c := newControls(h, v.Scenario, v.Lock, v.Played)
	v.Findings = slices.Clone(v.Findings)
	for i := range v.Findings {
		v.Findings[i].Control = c.shownFor(v.Findings[i])
	}
}

// Shown returns what controls of the lock show about a finding of the run. See ShowLimits.
func (v *Verdict) Shown(h *sim.Host, f judges.Finding) judges.Control {
	return newControls(h, v.Scenario, v.Lock, v.Played).shownFor(f)
}

// shownFor returns what the controls show about a finding, which is nothing if it is no limit.
func (c *controls) shownFor(f judges.Finding) judges.Control {
	if f.Class != judges.ClassLimit || f.Control.Word != "" {
		return f.Control
	}
	return c.show(f)
}

// contrast makes a bug of each limit that a control keeps under the same faults.
func contrast(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, p Played, j *judges.Judgement) {
	c := newControls(h, sc, l, p)
	for i := range j.Findings {
		f := &j.Findings[i]
		if f.Class != judges.ClassLimit || f.Convicted || !judges.Contrastable(l.Traits, *f) {
			continue
		}
		if f.Control = c.show(*f); f.Control.Word == judges.ControlKept {
			f.Class = judges.ClassBug
		}
	}
}

// show returns what the controls show about a limit. It returns the zero value if the run was stopped, or is
// one of a world of orders, whose faults no seed decides.
func (c *controls) show(f judges.Finding) judges.Control {
	if c.of.Orders != nil {
		return judges.Control{}
	}
	key := fmt.Sprint(f.Judge, f.Lock, f.Excuses)
	shown, ok := c.shown[key]
	if !ok {
		shown = c.try(f)
		c.shown[key] = shown
	}
	return shown
}

func (c *controls) try(f judges.Finding) judges.Control {
	tried, met := 0, false
	sc := c.scenario()
	for _, control := range subject.Controls(c.lock) {
		if tried == mostControls || Plays(sc, control) != nil {
			continue
		}
		tried++
		about := func(word judges.ControlWord, seed uint64) judges.Control {
			return judges.Control{Word: word, Lock: control.Name, Seed: seed, Watchdog: sc.Watchdog}
		}
		kept, first := 0, uint64(0)
		for seed := uint64(1); seed <= controlSeeds && kept < enoughKept; seed++ {
			run := c.run(sc, control, seed)
			if c.host.Stopped() {
				return judges.Control{}
			}
			switch judges.ContrastOf(run, Rules(sc), f) {
			case judges.BrokeToo:
				return about(judges.ControlBroke, seed)
			case judges.KeptIt:
				if kept++; first == 0 {
					first = seed
				}
			}
		}
		met = met || kept > 0
		if kept == enoughKept && judges.ContrastOf(c.run(sc, control, ownDecisions), Rules(sc), f) != judges.BrokeToo {
			return about(judges.ControlKept, first)
		}
	}
	if tried == 0 {
		return judges.Control{Word: judges.ControlMissing}
	}
	return judges.Control{Word: judges.ControlUnmet}
}

// scenario returns the scenario with the lease of the lock as the watchdog timeout, so that the holds of a
// control last as long as those of the lock.
func (c *controls) scenario() *scenarios.Scenario {
	sc := *c.sc
	sc.Watchdog = c.lock.Timing(c.sc.Watchdog).Watchdog
	return &sc
}

// run plays a control with a seed, or with ownDecisions, and returns the indexed record.
func (c *controls) run(sc *scenarios.Scenario, control *subject.Subject, seed uint64) *trace.Run {
	key := fmt.Sprint(control.Name, " ", seed)
	if c.played[key] == nil {
		var chooser sim.Chooser = sim.NewSeeded(seed)
		if seed == ownDecisions {
			chooser = sim.NewLenientReplayer(c.of.Decisions)
		}
		c.played[key] = trace.New(playIn(c.host, sc, control, chooser, nil).Record)
	}
	return c.played[key]
}

// KeptBy returns a run of another lock in the scenario of the verdict, in which that lock keeps the promise which the
// finding says to be broken, and breaks no other as a bug. The other lock is a control, or one that the scenario expects to
// hold, and none of which unfit is true. KeptBy reports false if there is none.
func (v Verdict) KeptBy(h *sim.Host, f judges.Finding, unfit func(*subject.Subject) bool) (Verdict, bool) {
	if v.Played.Orders != nil {
		return Verdict{}, false
	}
	sc := newControls(h, v.Scenario, v.Lock, v.Played).scenario()
	tried := 0
	for _, other := range append(subject.Controls(v.Lock), holding(sc, v.Lock)...) {
		if tried == mostControls || other.Name == v.Lock.Name || unfit(other) || Plays(sc, other) != nil {
			continue
		}
		tried++
		for seed := uint64(1); seed <= controlSeeds && !h.Stopped(); seed++ {
			run := Judge(h, sc, other, seed, playIn(h, sc, other, sim.NewSeeded(seed), nil))
			_, promised := run.Played.Record.Params.Promise(f.Judge)
			if promised && (run.Word == VerdictHeld || run.Word == VerdictLimit) && !slices.ContainsFunc(run.Findings, func(g judges.Finding) bool { return g.Judge == f.Judge }) {
				return run, true
			}
		}
	}
	return Verdict{}, false
}

// holding returns the registered locks that a scenario names and expects to hold, those with the traits of a lock first.
func holding(sc *scenarios.Scenario, like *subject.Subject) (list []*subject.Subject) {
	for _, name := range sc.Locks {
		if e := sc.Expect[name]; e.Class == "" || e.Class == scenarios.Held {
			if l, err := subject.Find(name); err == nil {
				list = append(list, l)
			}
		}
	}
	unlike := func(l *subject.Subject) int {
		if l.Traits == like.Traits {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *subject.Subject) int { return unlike(a) - unlike(b) })
	return list
}
