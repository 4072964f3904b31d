package explore

import (
	"slices"
	"time"

	"lockstep/explore/draw"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A telling is a run that tells a story.
type telling struct {
	story story.Story
	key   string // of the lock, if the story is about a key
}

// toldRuns is the number of runs of a family that may tell stories. The others are drawn.
const toldRuns = 60

// telling returns what a run tells. A family begins with stories that apply to the lock and have only
// what the faults and the profile of the plan allow: with all of them, or, if they are more than toldRuns,
// with those that follow the stories of the family before it. A story about a key is told of each key of
// the lock. It reports false if the run tells none.
func (f *family) telling(p Plan, l *subject.Subject, index int) (t telling, ok bool) {
	number, n := index/FamilyRuns/max(p.Seeds, 1), index%FamilyRuns
	all := f.tellingsOf(p, l)
	if n >= min(toldRuns, len(all)) {
		return t, false
	}
	if len(all) > toldRuns {
		n = (number*toldRuns + n) % len(all)
	}
	return all[n], true
}

// tellingsOf returns what all families together tell.
func (f *family) tellingsOf(p Plan, l *subject.Subject) []telling {
	if f.chosen {
		return f.tellings
	}
	f.chosen = true
	of := story.Of(l, toldWatchdogs[0])
	for _, s := range story.All {
		if s.Lacks(of) != "" {
			continue
		}
		if sc := s.Scenario(of); play.Applies(sc, l) != nil || !p.allows(l, sc) {
			continue
		}
		keys := []string{""}
		if s.AboutAKey() {
			keys = l.Keys(story.LockName)
		}
		for _, key := range keys {
			f.tellings = append(f.tellings, telling{s, key})
		}
	}
	return f.tellings
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
func (p Plan) tell(c sim.Chooser, l *subject.Subject, t telling) draw.Scenario {
	pick := func(n int) int { return int(c.Choose("draw/story", uint64(n))) }
	watchdog, latency := toldWatchdogs[0], toldLatencies[0]
	if p.Profile != draw.Simple {
		watchdog, latency = toldWatchdogs[pick(len(toldWatchdogs))], toldLatencies[pick(len(toldLatencies))]
	}
	of := story.Of(l, watchdog)
	if t.key != "" {
		of.Key = t.key
	}
	sc := t.story.Scenario(of)
	sc.Watchdog, sc.Latency = watchdog, latency
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
				s.D += time.Duration(pick(int(of.Lease/(50*time.Millisecond))+1)) * time.Millisecond
			case bounded && s.Kind == scenarios.StepLock && s.Interruptible == nil:
				wait := 2 * max(of.Lease, time.Second)
				s.Kind, s.Wait = scenarios.StepTryLock, &wait
			}
		}
	}
	return draw.Scenario{Text: sc.Write()}
}
