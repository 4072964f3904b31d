package draw

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/scenarios"
)

// Knobs say which features a drawing uses, and how often. Each drawing leaves some features
// out (swarm testing): a feature that is always on would hide failures that need its absence.
type Knobs struct {
	Calls  Weights // weight per kind of call that takes a lock
	Chance Weights // features, each with a percentage
	Faults Weights // kinds of faults
	Times  Weights // scales of times
}

// Weights are the weights of several features, in the order in which one is picked.
type Weights []Weight

// Weight is the weight of the feature that a word names. With weight 0 the feature is off.
type Weight struct {
	Word string
	N    int
}

// String returns the words with their weights.
func (w Weights) String() string {
	var parts []string
	for _, one := range w {
		parts = append(parts, fmt.Sprintf("%s %d", one.Word, one.N))
	}
	return strings.Join(parts, ", ")
}

// weight returns the weight of a word. It reports false if there is none.
func (w Weights) weight(word string) (int, bool) {
	for _, one := range w {
		if one.Word == word {
			return one.N, true
		}
	}
	return 0, false
}

// pick draws a word by weight; "": all words are off.
func (d *drawer) pick(what string, w Weights) string {
	total := 0
	for _, one := range w {
		total += one.N
	}
	if total == 0 {
		return ""
	}
	k := d.draw(what, total)
	for _, one := range w {
		if k -= one.N; k < 0 {
			return one.Word
		}
	}
	panic("draw: weights do not add up")
}

// odds draws whether a feature is used this time.
func (d *drawer) odds(what string) bool {
	n, _ := d.knobs.Chance.weight(what)
	return n > 0 && d.draw(what, 100) >= 100-n
}

// swarm turns some of the words on, with very different weights.
func (d *drawer) swarm(words []string) (w Weights) {
	sides := 2
	if len(words) < 3 {
		sides = 3 // of few, rarely none
	}
	for _, word := range words {
		n := 0
		if d.draw("knobs", sides) > 0 {
			n = 1 << d.draw("knobs", 5)
		}
		w = append(w, Weight{word, n})
	}
	return w
}

func (d *drawer) drawKnobs() {
	calls := []string{"lock", "try_lock", "timed"}
	if d.lock.Fair && !d.full() {
		calls = calls[:2]
	}
	d.knobs.Calls = d.swarm(calls)
	odds := []string{"careful", "leased", "burst", "reenter", "twice"}
	if d.full() {
		odds = append(odds, "always", "mixed", "nest", "repeat", "use", "forget", "interruptible", "seconds",
			"force_unlock", "stray", "close", "per_call", "response_timeout", "retry_attempts")
		if d.profile == Orderly {
			odds = slices.DeleteFunc(odds, func(word string) bool { return word == "force_unlock" || word == "close" })
		}
		if d.has(ClassInterrupt) {
			odds = append(odds, "interrupt")
		}
	}
	if d.has(ClassClock) {
		odds = append(odds, "skewed")
	}
	if d.lock.Extends {
		odds = append(odds, "extend")
	}
	for _, word := range odds {
		n := 0
		if d.draw("knobs", 2) == 1 {
			n = from(d, "knobs", 50, 25, 10, 90)
		}
		d.knobs.Chance = append(d.knobs.Chance, Weight{word, n})
	}
	d.knobs.Faults = d.swarm(slices.DeleteFunc(faultKindsOf(d.classes), d.lacks))
	d.knobs.Times = d.swarm(scales)
}

// about tells people the knobs with their values, and more. No program reads it.
func (d *drawer) about(more string) string {
	sc := d.sc
	var threads []string
	for _, p := range sc.Processes {
		threads = append(threads, fmt.Sprintf("%s %d", p.Name, p.Threads))
	}
	var classes []string
	for _, c := range d.classes {
		classes = append(classes, string(c))
	}
	parts := []string{
		"profile " + string(d.profile),
		"classes " + orNone(strings.Join(classes, " ")),
		fmt.Sprintf("%d processes with threads %s", len(sc.Processes), strings.Join(threads, ", ")),
		"lock names " + strings.Join(d.names, " "),
		"latency " + sc.Latency.String(),
		"watchdog " + sc.Watchdog.String(),
	}
	if n := sc.Server.Replicas; n > 0 {
		parts = append(parts, fmt.Sprintf("%d replicas, lag %v", n, sc.Server.Lag))
	}
	for _, p := range sc.Processes {
		if own := ownOptions(p); own != "" {
			parts = append(parts, p.Name+" has "+own)
		}
	}
	for _, k := range d.knobs.named() {
		parts = append(parts, k.name+" "+orNone(k.weights.String()))
	}
	parts = append(parts, fmt.Sprintf("%d faults", len(sc.Faults)))
	if more != "" {
		parts = append(parts, more)
	}
	return "Drawn: " + strings.Join(parts, "; ") + "."
}

// namedKnob is a knob with its name in an about.
type namedKnob struct {
	name    string
	weights *Weights
}

func (k *Knobs) named() []namedKnob {
	return []namedKnob{{"calls", &k.Calls}, {"percent", &k.Chance}, {"faults", &k.Faults}, {"times", &k.Times}}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// ownOptions returns the settings of a process that differ from the defaults.
func ownOptions(p scenarios.Process) string {
	var own []string
	add := func(is bool, format string, args ...any) {
		if is {
			own = append(own, fmt.Sprintf(format, args...))
		}
	}
	o := p.ClientOptions
	add(p.PerCall, "a lock object a call")
	add(o.FairWait != nil, "fair wait %v", value(o.FairWait))
	add(o.ResponseTimeout != nil, "response timeout %v", value(o.ResponseTimeout))
	add(o.RetryAttempts != nil, "retry attempts %d", value(o.RetryAttempts))
	add(p.WallOffset != 0, "clock offset %v", p.WallOffset)
	add(p.WallDriftPPM != 0, "clock drift %d ppm", p.WallDriftPPM)
	return strings.Join(own, ", ")
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
