package explore

import (
	"slices"
	"testing"
	"time"

	"lockstep/explore/draw"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/sim"
)

// Callers that come back again and again put the deadlines of a fair queue off, further each
// time, and a waiter then waits for the dead: Redisson's issue 1104, mended in 3.5.5. A campaign
// meets it in its dense runs, of which a few are enough.
func TestDenseCallersMeetTheDeadlineDrift(t *testing.T) {
	h := sim.NewHost(t)
	const runs = 400 // of which the dense ones are played
	met := map[string]int{}
	for _, name := range []string{"redisson-fair@3.4.2", "redisson-fair@3.11.0"} {
		l := scenariotest.Lock(t, name)
		p := Plan{World: sim.Version, Lock: name, Faults: []draw.Class{draw.ClassCrash}, Profile: draw.Full, Strategy: StrategyPlain, Seed: 1, Runs: runs}
		dense := 0
		for index := range runs {
			seed, sc := p.Draw(index, l)
			if !comesBack(sc) {
				continue
			}
			dense++
			v := play.Run(h, sc, l, seed)
			if drifts(sc, v.Played.Record) && slices.ContainsFunc(sightings(h, v), func(f sighting) bool { return f.Defect == "R-fair-deadline-drift" }) {
				met[name]++
			}
		}
		t.Logf("%s: the deadlines drift, and somebody is forgotten, in %d of %d dense runs", name, met[name], dense)
		if dense < 5 || dense > 30 {
			t.Errorf("%s: %d of %d runs are dense", name, dense, runs)
		}
	}
	if met["redisson-fair@3.4.2"] < 1 || met["redisson-fair@3.11.0"] > 0 {
		t.Errorf("it is met in %v runs", met)
	}
}

// comesBack reports whether a thread of the scenario repeats its steps until an instant.
func comesBack(sc *scenarios.Scenario) bool {
	for _, s := range sc.All() {
		if s.Until != nil {
			return true
		}
	}
	return false
}

// drifts reports whether a deadline of the queue is ever later than the hold of the lock and
// the waits of all that stand in the queue explain, and a minute more.
func drifts(sc *scenarios.Scenario, r *model.Record) bool {
	var longest time.Duration
	for _, p := range sc.Processes {
		if w := p.ClientOptions.FairWait; w != nil {
			longest = max(longest, *w)
		}
	}
	for _, e := range r.Events {
		if e.Kind != model.KindState || e.State == nil {
			continue
		}
		now := e.AtNs / 1_000_000
		latest := now + int64(len(e.State.Queue))*longest.Milliseconds() + time.Minute.Milliseconds()
		if e.State.Held() {
			latest += max(0, e.State.ExpiresMs-now)
		}
		for _, deadline := range e.State.Deadlines {
			if deadline > latest {
				return true
			}
		}
	}
	return false
}
