package shrink

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"lockstep/explore/failure"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/sim"
)

// exact lists the single latencies that are tried in place of a range.
var exact = []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}

// sayable looks for a seed that shows the failure, in place of recorded decisions.
func (s *shrinker) sayable() {
	if s.best.decisions != nil {
		if said := s.said(); said != nil {
			s.sow(said)
		}
	}
	if s.best.decisions == nil {
		s.exactly()
	}
}

// said returns the scenario with a rule in place of the fate that the chooser gave to a
// message; nil if no rule has the same effect.
func (s *shrinker) said() *scenarios.Scenario {
	hit := failure.FateOf(s.best.verdict)
	if hit == nil {
		return s.best.sc
	}
	rule, ok := fateRule(s.best.verdict.Played.Record, hit)
	if !ok {
		return nil
	}
	said := s.changed(s.best.sc, func(sc *scenarios.Scenario) { sc.Faults = append(sc.Faults, rule) })
	s.kinds = append(s.kinds, failure.FaultsStated(said)...) // the scenario of the run had this fault
	return said
}

// sow tries the first seeds.
func (s *shrinker) sow(said *scenarios.Scenario) {
	for _, latency := range []scenarios.Range{said.Latency, {Min: exact[0], Max: exact[0]}} {
		sc := s.changed(said, func(sc *scenarios.Scenario) { sc.Latency = latency })
		for seed := uint64(1); seed <= s.seeds && s.best.decisions != nil; seed++ {
			s.consider(sc, seed, nil)
		}
	}
}

// fateRule returns a rule that loses the message that the chooser lost. It reports false if there
// is none.
func fateRule(r *model.Record, hit *model.Event) (rule scenarios.Fault, ok bool) {
	if hit.Do != "drop" || hit.Dir == "push" {
		return rule, false
	}
	same := func(a, b *model.Event) bool {
		return a.Process == b.Process && a.Script == b.Script && a.Command == b.Command
	}
	i := slices.IndexFunc(r.Events, func(e model.Event) bool { return e.Kind == model.KindSend && e.Msg == hit.Msg })
	if i < 0 {
		return rule, false
	}
	sent := &r.Events[i]
	nth := 1
	for j := range r.Events[:i] {
		if e := &r.Events[j]; e.Kind == model.KindSend && same(e, sent) {
			nth++
		}
	}
	rule.Kind, rule.Do = model.FaultRule, "drop"
	rule.When = model.When{Process: sent.Process, Script: sent.Script, Direction: hit.Dir, Nth: nth}
	if sent.Script == "" {
		rule.When.Command = sent.Command
	}
	return rule, true
}

// exactly replaces the ranges of latencies and of lags by one latency each.
func (s *shrinker) exactly() {
	for _, of := range []func(*scenarios.Scenario) *scenarios.Range{
		func(sc *scenarios.Scenario) *scenarios.Range { return &sc.Latency },
		func(sc *scenarios.Scenario) *scenarios.Range { return &sc.Server.Lag },
	} {
		for _, latency := range exact {
			if r := of(s.best.sc); r.Min == r.Max || s.try(func(sc *scenarios.Scenario) { *of(sc) = scenarios.Range{Min: latency, Max: latency} }) {
				break
			}
		}
	}
}

// seed makes the range of latencies smaller, with any seed that shows the failure then,
// and the seed itself.
func (s *shrinker) seed() {
	s.exactly()
	for s.left > 0 && s.narrower() {
	}
	for seed := uint64(1); seed <= s.seeds && seed < s.best.seed; seed++ {
		s.consider(s.best.sc, seed, nil)
	}
}

func (s *shrinker) narrower() bool {
	r := s.best.sc.Latency
	grain := time.Millisecond
	if r.Max-r.Min <= 2*time.Millisecond {
		grain = 100 * time.Microsecond
	}
	middle := (r.Min + (r.Max-r.Min)/2).Truncate(grain)
	for _, half := range []scenarios.Range{{Min: r.Min.Truncate(grain), Max: middle}, {Min: middle, Max: r.Max.Truncate(grain)}} {
		if half.Min <= 0 || half.Min >= half.Max || half.Max-half.Min >= r.Max-r.Min {
			continue
		}
		sc := s.changed(s.best.sc, func(sc *scenarios.Scenario) { sc.Latency = half })
		for seed := uint64(0); seed <= s.seeds; seed++ {
			if s.consider(sc, cmp.Or(seed, s.best.seed), nil) {
				return true
			}
		}
	}
	return false
}

// decisions makes recorded decisions smaller: it sets whole streams to 0, then parts of
// all streams, and then makes single decisions 0 or smaller.
func (s *shrinker) decisions() {
	type place struct {
		stream string
		i      int
	}
	drawn := func() []place {
		var out []place
		for _, stream := range slices.Sorted(maps.Keys(s.best.decisions)) {
			for i, v := range s.best.decisions[stream] {
				if v > 0 {
					out = append(out, place{stream, i})
				}
			}
		}
		return out
	}
	lower := func(places []place, to func(uint64) uint64) bool {
		d := sim.Decisions{}
		for stream, values := range s.best.decisions {
			d[stream] = slices.Clone(values)
		}
		for _, p := range places {
			d[p.stream][p.i] = to(d[p.stream][p.i])
		}
		return s.consider(s.best.sc, s.best.seed, d)
	}
	none := func(uint64) uint64 { return 0 }
	for _, stream := range slices.Sorted(maps.Keys(s.best.decisions)) {
		lower(slices.DeleteFunc(drawn(), func(p place) bool { return p.stream != stream }), none)
	}
	for size := len(drawn()); size > 0 && s.left > 0; size /= 2 {
		for end := len(drawn()); end > 0; end -= size {
			if places := drawn(); end <= len(places) {
				lower(places[max(0, end-size):end], none)
			}
		}
	}
	for i := 0; i < len(drawn()) && s.left > 0; i++ {
		for lower(drawn()[i:i+1], func(v uint64) uint64 { return v / 2 }) && i < len(drawn()) {
		}
	}
}
