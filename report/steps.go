package report

import (
	"slices"
	"strings"
)

// A Step is one event of a run in the words of its timeline.
type Step struct {
	Event int // its index in the record
	AtNs  int64
	// Lane is the thread, or the server of a lock; "": the event concerns all.
	Lane string
	Text string
}

// Steps returns the events of a run with these indexes, in the order of the record. It leaves out an event
// of which no timeline has a line.
func Steps(r Run, indexes []int) (steps []Step) {
	v := read(r).v
	for _, e := range chosen(v, indexes) {
		s := Step{Event: e.index, AtNs: e.AtNs, Text: e.Text}
		if e.Lane >= 0 {
			s.Lane = v.Lanes[e.Lane].Name
		}
		steps = append(steps, s)
	}
	return steps
}

// StepsText returns the timeline of the events with these indexes, with the columns of Text.
func StepsText(r Run, indexes []int) string {
	v := read(r).v
	events := chosen(v, indexes)
	for i := range events {
		events[i].quiet = false
	}
	head, body := columnsOf(v, clockOf(events))
	return head + strings.Join(body(events), "")
}

// chosen returns the events of a view with these indexes in the record.
func chosen(v *view, indexes []int) (events []event) {
	for _, e := range v.Events {
		if slices.Contains(indexes, e.index) {
			events = append(events, e)
		}
	}
	return events
}
