package report

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed assets/cells.html
var cellsHTML string

//go:embed assets/cells.css
var cellsCSS string

// Cells says which situations of a lock the faults of a campaign met. It has the form of the
// table of cells in verdicts.jsonl.
type Cells struct {
	Met int `json:"met"`
	Of  int `json:"of"` // cells that faults met, or could have met
	// Rows has the kinds of faults, and the moments that a fault of the kind cannot meet.
	Rows []CellRow `json:"rows"`
	// Grid has the situations that the runs reached, in the order of their operations and states. Those
	// between two requests are last.
	Grid []Situation `json:"grid"`
	// Untried says in sentences what the faults never met between two requests.
	Untried []string `json:"untried"`
}

// A CellRow is a kind of fault. Lacks says why the campaign has no such fault; "" if it has.
type CellRow struct {
	Fault   string      `json:"fault"`
	Lacks   string      `json:"lacks"`
	Entries []CellEntry `json:"entries"`
}

// A CellEntry is a moment. Cannot says why a fault of its row cannot meet it; "" if it can.
type CellEntry struct {
	Moment string `json:"moment"`
	Cannot string `json:"cannot"`
	Gap    bool   `json:"gap"` // it lies between two requests
}

// A Situation has the kinds of faults that met it, and the kinds that could have met it but did
// not.
type Situation struct {
	Op     string   `json:"op"`
	State  string   `json:"state"`
	Moment string   `json:"moment"`
	Gap    bool     `json:"gap"` // it lies between two requests
	Met    []string `json:"met"`
	Never  []string `json:"never"`
}

// A cellHead is a moment, with the faults that can meet it. Each of them is a column.
type cellHead struct {
	Moment string
	Faults []string
}

// A cellPart is a part of the picture. State names in its head the second part of a row.
type cellPart struct {
	State string
	Heads []cellHead
	Lines []cellLine
}

// Parts returns the parts of the picture: that of moments, and that of gaps between two requests if the runs
// came through some.
func (c *Cells) Parts() (parts []cellPart) {
	for _, p := range []struct {
		state string
		gap   bool
	}{{"the lock", false}, {"the actions of others between two of its requests", true}} {
		if lines := c.lines(p.gap); len(lines) > 0 {
			parts = append(parts, cellPart{p.state, c.heads(p.gap), lines})
		}
	}
	return parts
}

// heads returns the columns of a part of the picture, moment by moment.
func (c *Cells) heads(gap bool) (heads []cellHead) {
	for _, r := range c.Rows {
		for _, e := range r.Entries {
			if e.Gap != gap {
				continue
			}
			i := slices.IndexFunc(heads, func(h cellHead) bool { return h.Moment == e.Moment })
			if i < 0 {
				i = len(heads)
				heads = append(heads, cellHead{Moment: e.Moment})
			}
			if e.Cannot == "" {
				heads[i].Faults = append(heads[i].Faults, r.Fault)
			}
		}
	}
	return slices.DeleteFunc(heads, func(h cellHead) bool { return len(h.Faults) == 0 })
}

// A cellLine is a row of the picture: an operation and a state of the lock.
type cellLine struct {
	Op, State string
	Boxes     []cellBox
}

// A cellBox is a cell of the picture. A situation that no run reached is one box as wide as the
// faults of its moment.
type cellBox struct {
	Class, Sign, Title string
	Wide               int
}

// The signs of boxes. A sign tells without a colour what its box says.
const (
	signMet     = "●"
	signNever   = "○"
	signNoRoom  = "·"
	signNotHere = ""
)

// lines returns the rows of a part of the picture.
func (c *Cells) lines(gap bool) (lines []cellLine) {
	heads := c.heads(gap)
	for i, s := range c.Grid {
		if s.Gap != gap {
			continue
		}
		if i == 0 || s.Gap != c.Grid[i-1].Gap || s.Op != c.Grid[i-1].Op || s.State != c.Grid[i-1].State {
			lines = append(lines, c.line(heads, s.Op, s.State))
		}
	}
	return lines
}

func (c *Cells) line(heads []cellHead, op, state string) cellLine {
	l := cellLine{Op: op, State: state}
	for _, h := range heads {
		situation := fmt.Sprintf("%s, %s, %s", op, h.Moment, state)
		i := slices.IndexFunc(c.Grid, func(s Situation) bool {
			return s.Op == op && s.State == state && s.Moment == h.Moment
		})
		if i < 0 {
			l.Boxes = append(l.Boxes, cellBox{"away", signNotHere, "no run came to: " + situation, len(h.Faults)})
			continue
		}
		for _, fault := range h.Faults {
			b := cellBox{"shut", signNoRoom, fault + " had no room in any run: " + situation, 1}
			switch {
			case slices.Contains(c.Grid[i].Met, fault):
				b = cellBox{"met", signMet, fault + " met " + situation, 1}
			case slices.Contains(c.Grid[i].Never, fault):
				b = cellBox{"never", signNever, fault + " never met " + situation, 1}
			}
			l.Boxes = append(l.Boxes, b)
		}
	}
	return l
}

// Reasons says which faults have no column, and why: per reason a sentence.
func (c *Cells) Reasons() (out []string) {
	var whys []string
	which := map[string][]string{}
	note := func(why, what string) {
		if which[why] == nil {
			whys = append(whys, why)
		}
		which[why] = append(which[why], what)
	}
	for _, r := range c.Rows {
		if r.Lacks != "" {
			note(r.Lacks, r.Fault)
		}
		for _, e := range r.Entries {
			if e.Cannot != "" {
				note(e.Cannot, r.Fault+" "+e.Moment)
			}
		}
	}
	for _, why := range whys {
		out = append(out, why+": "+strings.Join(which[why], ", "))
	}
	return out
}
