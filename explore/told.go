package explore

import (
	"slices"
	"sync"
	"time"

	"lockstep/explore/draw"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A telling is a run that tells a story: the story by the watchdog timeouts with which it can be told.
type telling []timedStory

// timedStory is a story in the world of a lock with a watchdog timeout.
type timedStory struct {
	watchdog time.Duration
	lock     story.Lock
	sc       func() *scenarios.Scenario // reads the story once, since most campaigns tell few of the stories
}

// The number of runs of a family that tell stories: of the first families, until each story has been told, and
// of the families after those.
const (
	toldRuns  = 60
	toldAgain = 10
)

// stories returns the number of stories of a family, of a plan that tells these, and which one is the first.
func (p Plan) stories(all []telling, family int) (n, first int) {
	number := family / max(p.Seeds, 1) // of the families of its seed
	many, few := min(toldRuns, len(all)), min(toldAgain, len(all))
	begin := (len(all) + toldRuns - 1) / toldRuns
	if number < begin {
		return many, number * many
	}
	return few, begin*many + (number-begin)*few
}

// telling returns which of the tellings of the plan a run is. A family begins with those that follow the
// tellings of the family before it. It reports false if the run tells no story.
func (p Plan) telling(all []telling, index int) (t telling, ok bool) {
	n, first := p.stories(all, index/FamilyRuns)
	if index%FamilyRuns >= n {
		return nil, false
	}
	return all[(first+index%FamilyRuns)%len(all)], true
}

// tellings returns what all families of the plan tell together: the stories that apply to the lock and have
// only what the faults and the profile of the plan allow. A story about a key is told of each key of the
// lock.
func (p Plan) tellings(l *subject.Subject) (all []telling) {
	if !p.strategy().Tells() {
		return nil
	}
	watchdogs := toldWatchdogs
	if p.Profile == draw.Simple {
		watchdogs = watchdogs[:1]
	}
	usual := story.Of(l, toldWatchdogs[0])
	for _, s := range story.All {
		if s.Lacks(usual) != "" {
			continue
		}
		sc := s.Scenario(usual)
		if play.Applies(sc, l) != nil || !p.allows(l, sc) {
			continue
		}
		keys := []string{usual.Key}
		if s.AboutAKey() {
			keys = l.Keys(story.LockName)
		}
		for _, key := range keys {
			var t telling
			for _, watchdog := range watchdogs {
				of := story.Of(l, watchdog)
				of.Key = key
				read := sync.OnceValue(func() *scenarios.Scenario { return s.Scenario(of) })
				if of == usual {
					read = func() *scenarios.Scenario { return sc }
				}
				t = append(t, timedStory{watchdog, of, read})
			}
			all = append(all, t)
		}
	}
	return all
}

// allows reports whether a scenario has only faults of the classes of the plan, and only callers of
// its profile.
func (p Plan) allows(l *subject.Subject, sc *scenarios.Scenario) bool {
	for _, f := range sc.Faults {
		if !slices.ContainsFunc(draw.ClassesOf(f), func(c draw.Class) bool { return slices.Contains(p.Faults, c) }) {
			return false
		}
	}
	for _, s := range sc.All() {
		switch {
		case s.Kind == scenarios.StepInterrupt && !slices.Contains(p.Faults, draw.ClassInterrupt),
			s.Kind == scenarios.StepForceUnlock && p.Profile != draw.Full,
			s.Wait != nil && l.Fair && p.Profile == draw.Simple:
			return false
		}
	}
	return p.Profile != draw.Simple || !slices.ContainsFunc(sc.Processes, func(x scenarios.Process) bool { return x.Threads > 2 })
}

// toldWatchdogs are the watchdog timeouts of stories, and toldLatencies their latencies one way.
var (
	toldWatchdogs = []time.Duration{30 * time.Second, 10 * time.Second, 5 * time.Second}
	toldLatencies = []scenarios.Range{
		{Min: 200 * time.Microsecond, Max: 2 * time.Millisecond}, {Min: 2 * time.Millisecond, Max: 2 * time.Millisecond}, {Min: 5 * time.Millisecond, Max: 20 * time.Millisecond},
	}
)

// tell returns what a run tells with times and calls that are drawn: the network, the timeout, moments that
// are a little later, and tries with a bounded wait in place of calls that wait without one.
func (p Plan) tell(c sim.Chooser, l *subject.Subject, t telling) *scenarios.Scenario {
	pick := func(n int) int { return int(c.Choose("draw/story", uint64(n))) }
	told, latency := t[0], toldLatencies[0]
	if p.Profile != draw.Simple {
		told, latency = t[pick(len(t))], toldLatencies[pick(len(toldLatencies))]
	}
	sc, lease := told.sc().Clone(), told.lock.Lease
	sc.Watchdog, sc.Latency = told.watchdog, latency
	if l.Replicated {
		sc.Server = scenarios.Server{Replicas: 2, Lag: scenarios.Range{Min: 100 * time.Microsecond, Max: time.Millisecond}}
	}
	later := pick(2) == 1
	bounded := pick(4) == 3 && (!l.Fair || p.Profile != draw.Simple)
	for _, x := range sc.Threads {
		for i := range x.Steps {
			s := &x.Steps[i]
			s.Want = nil // a want is not a promise of the lock
			switch {
			case later && (s.Kind == scenarios.StepSleep || s.Kind == scenarios.StepAt):
				s.D += time.Duration(pick(int(lease/(50*time.Millisecond))+1)) * time.Millisecond
			case bounded && s.Kind == scenarios.StepLock && s.Interruptible == nil:
				wait := 2 * max(lease, time.Second)
				s.Kind, s.Wait = scenarios.StepTryLock, &wait
			}
		}
	}
	return sc
}
