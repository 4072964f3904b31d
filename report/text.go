package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/model"
)

const (
	textWidth   = 100
	textTime    = 11 // the width of the column of instants with three decimals
	columnLeast = 15
	serverLeast = 29 // least width of the server's column, which has the most text
)

// A clock writes the instants of a timeline, all with the same number of decimals.
type clock int

// unitsLeast is the least number of units of the last decimal between the first and the last event of a
// timeline. With fewer units, most instants of a short timeline would read the same.
const unitsLeast = 100

// clockOf returns the clock of a timeline. It has milliseconds, or more decimals if the timeline is
// short. The events after the calm come long after it and count for nothing.
func clockOf(events []event) clock {
	if i := slices.IndexFunc(events, func(e event) bool { return e.Kind == string(model.KindCalm) }); i >= 0 {
		events = events[:i]
	}
	if len(events) == 0 || events[0].AtNs == events[len(events)-1].AtNs {
		return 3
	}
	switch length := time.Duration(events[len(events)-1].AtNs - events[0].AtNs); {
	case length >= unitsLeast*time.Millisecond:
		return 3
	case length >= unitsLeast*time.Microsecond:
		return 6
	}
	return 9
}

// width is the width of the column of instants.
func (c clock) width() int { return textTime + int(c) - 3 }

// at writes an instant in seconds. With milliseconds, it writes the same as model.At.
func (c clock) at(ns int64) string {
	s := fmt.Sprintf("%.*f", int(c)+3, float64(ns)/1e9)
	return s[:len(s)-3] + "s"
}

// A column of the story shows a thread, the server, or all lanes without a column of their
// own.
type column struct {
	name  string
	lanes []int
}

// Text returns a whole run as text, 100 characters wide. Each thread has a column, and the
// server has the last one. Faults go across all columns. The findings stand at the end.
func Text(r Run) string { return textOf(r, build(r)) }

func textOf(r Run, v *view) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, seed %d: %s (digest %.12s)\n", r.Scenario, r.Lock, r.Seed, r.Verdict, r.Digest)
	if r.About != "" {
		b.WriteString(Wrap(r.About, "", textWidth))
	}
	if r.Cause != "" {
		b.WriteString(Wrap("cause: "+r.Cause, "", textWidth))
	}
	b.WriteString("\n")
	head, body := columnsOf(v, v.Decimals)
	b.WriteString(head)
	events := v.Events
	for _, g := range v.Cuts {
		i := slices.IndexFunc(events, func(e event) bool { return e.AtNs >= g.ToNs })
		if i < 0 {
			i = len(events)
		}
		b.WriteString(strings.Join(body(events[:i]), ""))
		fmt.Fprintf(&b, "%*s  %s left out\n", v.Decimals.width()-2, "…", counted.Of(g.Events, "event"))
		events = events[i:]
	}
	b.WriteString(strings.Join(body(events), ""))
	b.WriteString("\n")
	if r.Why != "" {
		b.WriteString(Wrap(r.Why, "", textWidth))
	}
	if len(v.Findings) == 0 && r.Why == "" {
		b.WriteString("no judge found anything\n")
	}
	b.WriteString(foundText(v))
	if r.Blame != nil {
		b.WriteString("\n" + CurveText(*r.Blame))
	}
	return b.String()
}

func foundText(v *view) string {
	var b strings.Builder
	for _, f := range v.Findings {
		b.WriteString(Wrap(fmt.Sprintf("▶ %s  %s (%s): %s", v.Decimals.at(f.AtNs), f.Judge, f.Class, f.Why), "", textWidth))
		for _, o := range v.Overlaps {
			if o.FromNs == f.AtNs {
				b.WriteString(Wrap(fmt.Sprintf("%s and %s both believed to hold %s for %s", o.Who[0], o.Who[1], o.Lock, length(o.ToNs-o.FromNs)), "  ", textWidth))
			}
		}
		if f.Excuse != "" {
			b.WriteString(Wrap("not promised here: "+f.Excuse, "  ", textWidth))
		}
	}
	return b.String()
}

// columnsOf returns the head of the table, with the wall clocks that are wrong, and a function that makes rows from events.
func columnsOf(v *view, c clock) (head string, body func([]event) []string) {
	cols := choose(v, c)
	room := textWidth - c.width()
	width := min(room/len(cols), (room-serverLeast)/max(len(cols)-1, 1))
	for _, line := range v.clocks {
		head += strings.Repeat(" ", c.width()) + line + "\n"
	}
	head += strings.Repeat(" ", c.width())
	for i, col := range cols {
		head += pad(Clip(col.name, width-1), width, i == len(cols)-1)
	}
	head += "\n"
	return head, func(events []event) (rows []string) {
		for _, e := range events {
			if !e.quiet {
				rows = append(rows, row(e, cols, width, v, c))
			}
		}
		return rows
	}
}

// choose returns the columns. If there are too many threads, the threads that a finding
// names get columns first, and the threads without a column of their own share one.
func choose(v *view, c clock) []column {
	most := (textWidth - c.width() - serverLeast) / columnLeast
	var named, threads []int
	for _, f := range v.Findings {
		for _, op := range f.Ops {
			for _, o := range v.Ops {
				if o.Op == op && o.Lane >= 0 && !slices.Contains(named, o.Lane) {
					named = append(named, o.Lane)
				}
			}
		}
	}
	for i, l := range v.Lanes {
		if l.Kind == laneThread {
			threads = append(threads, i)
		}
	}
	shown := threads
	if len(threads) > most {
		shown = named[:min(len(named), most-1)]
		for _, i := range threads {
			if len(shown) < most-1 && !slices.Contains(shown, i) {
				shown = append(shown, i)
			}
		}
		slices.Sort(shown)
	}
	var cols []column
	of := map[string]int{} // by process, its first column
	for _, i := range shown {
		if _, ok := of[v.Lanes[i].Process]; !ok {
			of[v.Lanes[i].Process] = len(cols)
		}
		cols = append(cols, column{v.Lanes[i].Name, []int{i}})
	}
	rest, server := column{name: "others"}, column{name: "server"}
	for i, l := range v.Lanes {
		c, ok := of[l.Process]
		switch {
		case l.Kind == laneServer:
			server.lanes = append(server.lanes, i)
		case l.Kind == laneWatchdog && ok:
			cols[c].lanes = append(cols[c].lanes, i)
		case !slices.Contains(shown, i):
			rest.lanes = append(rest.lanes, i)
		}
	}
	if len(rest.lanes) > 0 {
		cols = append(cols, rest)
	}
	return append(cols, server)
}

// row returns one event in its column, wrapped to the width of the column.
func row(e event, cols []column, width int, v *view, c clock) string {
	at := fmt.Sprintf("%*s  ", c.width()-2, c.at(e.AtNs))
	blank := strings.Repeat(" ", c.width())
	if e.Lane < 0 {
		var b strings.Builder
		for i, line := range strings.Split(strings.TrimRight(Wrap("── "+e.Text+" ──", "", textWidth-c.width()), "\n"), "\n") {
			if i > 0 {
				at = blank
			}
			b.WriteString(at + line + "\n")
		}
		return b.String()
	}
	which, text := 0, e.Text
	for i, c := range cols {
		if slices.Contains(c.lanes, e.Lane) {
			which = i
			if l := v.Lanes[e.Lane]; c.name != l.Name && (l.Kind != laneServer || len(v.Locks) > 1) {
				text = strings.TrimPrefix(l.Name, "server: ") + ": " + text
			}
		}
	}
	// The text may take the room of the next column, too. The last column takes the rest of
	// the line.
	room := textWidth - c.width() - which*width
	if which < len(cols)-1 {
		room = max(width-1, min(room, 2*width-1))
	}
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(Wrap(text, "", room-2), "\n"), "\n") {
		if i > 0 {
			at, line = blank, "  "+line
		}
		b.WriteString(strings.TrimRight(at+strings.Repeat(" ", which*width)+line, " ") + "\n")
	}
	return b.String()
}

func pad(s string, width int, last bool) string {
	if n := len([]rune(s)); n < width && !last {
		return s + strings.Repeat(" ", width-n)
	}
	return s
}

// Wrap breaks text into lines of at most width characters that begin with indent. It breaks
// at spaces, and anywhere in a word that is too long for a line.
func Wrap(text, indent string, width int) string {
	var lines []string
	line := []rune(indent)
	empty := true
	for _, word := range strings.Fields(text) {
		w := []rune(foreign.Line(word))
		if !empty && len(line)+1+len(w) > width {
			lines = append(lines, string(line))
			line, empty = []rune(indent), true
		}
		if !empty {
			line = append(line, ' ')
		}
		for len(indent) < width && len(line)+len(w) > width {
			n := width - len(line)
			lines = append(lines, string(line)+string(w[:n]))
			line, w = []rune(indent), w[n:]
		}
		line = append(line, w...)
		empty = false
	}
	lines = append(lines, string(line))
	return strings.Join(lines, "\n") + "\n"
}

// Clip returns text as a part of a line, and shortens text that has more than most characters.
func Clip(s string, most int) string {
	s = foreign.Line(s)
	if r := []rune(s); len(r) > most {
		return strings.TrimRight(string(r[:most-1]), " ") + "…"
	}
	return s
}

// CurveText returns a curve as a table of bars, followed by its sentence.
func CurveText(c Curve) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10s %9s %7s\n", "decisions", "at", "failed")
	for _, p := range c.Points {
		bar := strings.Repeat("█", p.Failed*40/max(c.Runs, 1))
		when := ""
		if p.Stream != "" {
			when = at(p.AtNs)
		}
		line := fmt.Sprintf("%10d %9s %3d/%-3d %s", p.Kept, when, p.Failed, c.Runs, bar)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString(Wrap(c.Sentence, "", textWidth))
	return b.String()
}
