package report

import (
	"cmp"
	"fmt"
	"slices"

	"lockstep/internal/counted"
	"lockstep/model"
)

// Shortened returns the story that Text tells, up to the first finding and the returns of its
// calls. If it has more than most lines below its head, it keeps the lines on which the finding
// rests and the last ones, and says how many events it leaves out where. An event that is too long
// for one line counts as one. Shortened returns "" if there is no finding.
func Shortened(r Run, most int) string {
	v := build(r)
	if len(v.Findings) == 0 {
		return ""
	}
	f := v.Findings[0]
	var events []event
	place := 0 // of the finding's line
	for i, e := range v.Events[:endOf(v, f)] {
		if e.quiet {
			continue
		}
		if i <= f.Event {
			place = len(events)
		}
		events = append(events, e)
	}
	if f.throughNs > f.AtNs {
		place = len(events) - 1 // the finding is about all that happens until then
	}
	keep := f.keep(events, place, most)
	c := clockOf(events)
	head, body := columnsOf(v, c)
	out, left := head, 0
	for i, row := range body(events) {
		if !keep[i] {
			left++
			continue
		}
		out += leftOut(left, i == left, c)
		left = 0
		out += row
	}
	return out + leftOut(left, false, c)
}

// leftOut is the line in place of n events; "" if n is 0.
func leftOut(n int, first bool, c clock) string {
	switch {
	case n == 0:
		return ""
	case first:
		return fmt.Sprintf("%*s  %s before\n", c.width()-2, "…", counted.Of(n, "event"))
	}
	return fmt.Sprintf("%*s  %s left out\n", c.width()-2, "…", counted.Of(n, "event"))
}

// The relevance of an event for a finding, the highest first.
const (
	relevantEnd    = iota // it is one of the last events up to the finding, or comes later
	relevantCall          // a call of the finding begins or ends
	relevantWork          // it repeats commands, or began or ended a hold
	relevantFault         // a fault, a lost message, or the end of a client
	relevantOwner         // the lock of the finding has another owner
	relevantOthers        // another call about the lock
	relevantLock          // any other event about the lock
	relevantLeast
)

// closing is the number of events, up to the finding, within which all about its lock are shown.
const closing = 6

func (f finding) relevance(e *event, i, place int) int {
	mine := slices.Contains(f.Ops, cmp.Or(e.Op, e.by))
	about := len(e.Locks) == 0 || len(f.Locks) == 0 || slices.ContainsFunc(e.Locks, func(l string) bool { return slices.Contains(f.Locks, l) })
	kind := model.Kind(e.Kind)
	bounds := kind == model.KindInvoke || kind == model.KindReturn
	switch {
	case i >= place, i > place-closing && about:
		return relevantEnd
	case mine && bounds:
		return relevantCall
	case mine && (e.by != 0 || e.Times > 0):
		return relevantWork
	case !about:
		return relevantLeast
	case e.Lane < 0, kind == model.KindHit, kind == model.KindLost, kind == model.KindTold, kind == model.KindClose:
		return relevantFault
	case e.turn:
		return relevantOwner
	case bounds:
		return relevantOthers
	}
	return relevantLock
}

// keep chooses the events of a story that has at most so many lines, with a line for each gap. Each
// relevance has a quarter of the lines, so that many faults do not hide who had the lock. The rest of
// the lines is for the last events about the lock, and then for the last of all.
func (f finding) keep(events []event, place, most int) []bool {
	keep := make([]bool, len(events))
	if len(events) <= most {
		for i := range keep {
			keep[i] = true
		}
		return keep
	}
	var by [relevantLeast + 1][]int
	for i := len(events) - 1; i >= 0; i-- { // the later ones first
		n := f.relevance(&events[i], i, place)
		by[n] = append(by[n], i)
	}
	var order, rest []int
	for n, list := range by[:relevantLock] {
		some := min(len(list), max(most/4, 1))
		if n == relevantEnd {
			some = min(len(list), most)
		}
		order, rest = append(order, list[:some]...), append(rest, list[some:]...)
	}
	rest = append(rest, by[relevantLock]...)
	slices.SortFunc(rest, func(a, b int) int { return cmp.Compare(b, a) })
	shown := 1 // one gap has all events
	for _, i := range slices.Concat(order, rest, by[relevantLeast]) {
		// The event is a line, and the gap around it becomes two, one or none.
		more := 0
		if i > 0 && !keep[i-1] {
			more++
		}
		if i+1 < len(keep) && !keep[i+1] {
			more++
		}
		if shown+more <= most {
			keep[i] = true
			shown += more
		}
	}
	return keep
}

// afterFinding is the number of events for which a shortened timeline goes on to show how the
// calls of its finding ended.
const afterFinding = 10

// endOf returns the number of events in a timeline of the finding f. The timeline includes all
// events at the finding's instant. It goes on until the finding's calls have returned and the
// commands sent by then have run, if that takes few events, or if the finding is about a history or
// counts the commands. It shows a command when the server runs it.
func endOf(v *view, f finding) int {
	if f.Event < 0 {
		return 0 // its line was cut away
	}
	end := f.Event + 1
	for end < len(v.Events) && v.Events[end].AtNs <= f.throughNs {
		end++
	}
	var sent []int
	for i := end - 1; i >= 0 && v.Events[i].AtNs == f.AtNs; i-- {
		if e := v.Events[i]; e.Kind == string(model.KindSend) {
			sent = append(sent, e.Msg)
		}
	}
	for i := min(end+afterFinding, len(v.Events)) - 1; i >= end; i-- {
		e := v.Events[i]
		if e.Kind == string(model.KindReturn) && slices.Contains(f.Ops, e.Op) || e.Kind == string(model.KindExec) && slices.Contains(sent, e.Msg) {
			return i + 1
		}
	}
	return end
}
