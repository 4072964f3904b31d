package play

import (
	"encoding/json"
	"fmt"
	"strings"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// difference says where two records of one schedule begin to differ. Its text ends
// with the likely causes, since a record does not show what chance is behind an event.
type difference struct {
	number int         // of the first event that differs, from 1
	events [2]string   // in each record; "" where a record has ended
	code   [2][]string // the functions that wrote the event's request, the innermost first
	kind   model.Kind  // of the event
	moved  bool        // it is the same event at another instant
}

// writersShown is the largest number of functions that are named.
const writersShown = 4

// explainTries is the largest number of runs in which Explain looks for a difference.
const explainTries = 10

// Explain plays a schedule again until two records differ, and says in a few lines where they do and
// whose code made the difference. chooser makes the decisions anew. played are earlier plays of the
// schedule: if all new records are the same, an earlier one may differ from them, or from another earlier
// one. A run without a server is none of them. Explain returns "" if all records are the same.
func Explain(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, chooser func() sim.Chooser, played ...sim.Result) string {
	return explain(h, func(traced *sim.Host) Played { return Play(traced, sc, l, chooser()) }, played)
}

// Explain is the function Explain for the schedule of a recording.
func (r *Recording) Explain(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, played ...sim.Result) string {
	return explain(h, func(traced *sim.Host) Played { return PlayIn(traced, sc, l, sim.NewReplayer(r.Decisions), r.Orders) }, played)
}

func explain(h *sim.Host, play func(*sim.Host) Played, played []sim.Result) string {
	traced := h.Traced()
	first := play(traced).Result
	others := func(yield func(sim.Result) bool) {
		for range explainTries {
			if !yield(play(traced).Result) {
				return
			}
		}
		for _, p := range played { // last, since nobody noted the code that wrote its messages
			if !yield(p) {
				return
			}
		}
	}
	for other := range others {
		if other.Record.Unstarted() != "" {
			continue
		}
		if first.Record.Unstarted() != "" {
			first = other
		}
		if d, ok := differenceOf(first, other); ok {
			return d.String()
		}
	}
	return ""
}

// differenceOf compares two records. It reports false if they are the same.
func differenceOf(a, b sim.Result) (d difference, ok bool) {
	x, y := a.Record.Events, b.Record.Events
	for i := range max(len(x), len(y)) {
		var text [2]string
		for side, events := range [][]model.Event{x, y} {
			if i < len(events) {
				text[side] = shownEvent(&events[i])
				d.kind = events[i].Kind
			}
		}
		if text[0] == text[1] {
			continue
		}
		d.number, d.events = i+1, text
		d.moved = i < min(len(x), len(y)) && sameButInstant(x[i], y[i])
		for side, run := range []sim.Result{a, b} {
			if i < len(run.Record.Events) {
				d.code[side] = sim.Functions(run.Writers[run.Record.Events[i].Msg])
			}
		}
		return d, true
	}
	return d, false
}

// sameButInstant reports whether two events differ at most in their instants.
func sameButInstant(a, b model.Event) bool {
	a.AtNs, b.AtNs = 0, 0
	return shownEvent(&a) == shownEvent(&b)
}

// shownEvent writes an event as the digest covers it.
func shownEvent(e *model.Event) string {
	line, err := json.Marshal(e)
	if err != nil {
		panic("play: " + err.Error()) // an event is data
	}
	return string(line)
}

// shownWriters chooses, from the functions that wrote a request, those to name: the user's own, or
// else the innermost.
func shownWriters(code []string) []string {
	shown := sim.OwnWriters(code)
	if len(shown) == 0 {
		shown = code
	}
	return shown[:min(len(shown), writersShown)]
}

// String names the event in both records, the code that wrote it and the likely causes.
func (d difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the records differ from event %d on:\n", d.number)
	for side, name := range []string{"once", "then"} {
		text := d.events[side]
		if text == "" {
			text = "(the record has ended)"
		}
		fmt.Fprintf(&b, "  %s: %s\n", name, text)
	}
	for _, code := range d.code {
		if len(code) > 0 {
			fmt.Fprintf(&b, "written by %s\n", strings.Join(shownWriters(code), ", called by "))
			break
		}
	}
	b.WriteString("likely causes, the commonest first, and what helps (more in docs/locktest.md, When the lock is nondeterministic):\n")
	b.WriteString("  " + strings.Join(d.causes(sim.Overlaid), "\n  "))
	return b.String()
}

// causes returns the likely causes, the commonest first, of a program that was built with the overlay of the
// standard library, or without it.
func (d difference) causes(overlaid bool) (list []string) {
	const race = "goroutines of the lock that race with each other: let one wait for the other"
	if overlaid {
		return []string{
			race,
			"something that outlives a run, such as a package variable or a cache: make it in Open",
			"a number of the machine, such as an address, a process id or a file: let the lock do without it",
			"the order of a map whose keys have pointers: sort the keys",
		}
	}
	if d.moved {
		list = append(list, "a pause of random length, since the two events differ only in their instant: run the test with simrun test in place of go test, "+
			"or draw the length with the package functions of math/rand, which repeat, and not with those of math/rand/v2")
	}
	return append(list,
		"a select with several cases ready, of which Go takes any: run the test with simrun test, with whose overlay the choice repeats; "+
			"or, after the select, check the stop channel or ctx.Err() again, before the lock renews",
		"chance that cannot be seeded (the package functions of math/rand/v2, hash/maphash, a source of math/rand that was made before the world): run the test with simrun test; "+
			"or use crypto/rand, or give the value to Process.Value",
		race,
		"the order of a map: run the test with simrun test, or sort the keys",
	)
}
