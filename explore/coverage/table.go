package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/model"
)

// Table says which cells a campaign met.
type Table struct {
	// Situations is the number of situations that the runs reached. Met is the number of
	// cells that they met, and Of is the number of cells that they met or could have met:
	// a run had an instant or a message that a fault of the campaign could have struck.
	Situations int   `json:"situations"`
	Met        int   `json:"met"`
	Of         int   `json:"of"`
	Rows       []Row `json:"rows,omitempty"`
	// Grid has the situations that the runs reached, in the order of Operations, States and
	// Moments, and then those of gaps. It is nil for a campaign without faults.
	Grid []Situation `json:"grid,omitempty"`
	// Gaps are the gaps between two requests that the runs came through.
	Gaps []Passage `json:"gaps,omitempty"`
	// Untried names the cells of these gaps that no fault met, in sentences for people.
	Untried []string `json:"untried,omitempty"`
}

// Situation says which kinds of faults met a situation.
type Situation struct {
	Op     model.Action `json:"op"`
	State  State        `json:"state"`
	Moment Moment       `json:"moment"`
	Gap    bool         `json:"gap,omitempty"` // the moment lies between two requests
	Met    []Kind       `json:"met,omitempty"`
	// Never has the kinds that could have met the situation, and never did.
	Never []Kind `json:"never,omitempty"`
}

// Row holds the cells of a kind of fault.
type Row struct {
	Fault Kind `json:"fault"`
	// Lacks says why the campaign has no fault of the kind; "": it has.
	Lacks   string  `json:"lacks,omitempty"`
	Entries []Entry `json:"entries,omitempty"`
}

// Entry holds the cells of a kind of fault and a moment.
type Entry struct {
	Moment Moment `json:"moment"`
	Met    int    `json:"met"`
	Of     int    `json:"of"` // the situations of the moment that the fault met, or could have met
	// Cannot says why the fault cannot meet the moment; "": it can.
	Cannot string `json:"cannot,omitempty"`
	Gap    bool   `json:"gap,omitempty"` // the moment lies between two requests
}

// Asked is a kind of fault that a campaign asks for.
type Asked struct {
	Kind  Kind
	Lacks string                   // why the lock's servers have no such fault; "": they have
	At    func(Moment) (no string) // why the campaign places no such fault at a moment; "": it does
}

// Sum returns the table of a campaign whose runs met the cells with the codes met, could
// have met those with the codes open, and came through gaps.
func Sum(met, open []int, asked []Asked, gaps []Passage) Table {
	var t Table
	reached := map[Cell]bool{} // situations
	has := map[Cell]bool{}     // cells, and whether they were met
	for _, code := range open {
		if c, ok := CellOf(code); ok {
			has[c] = false
		}
	}
	for _, code := range met {
		if c, ok := CellOf(code); ok {
			// A fault may end a situation at its beginning, and then the run has only the cell.
			reached[c.Situation()] = true
			if c.Fault != None {
				has[c] = true
			}
		}
	}
	t.Situations = len(reached)
	situations := inOrder(reached)
	if len(asked) > 0 {
		t.Grid = make([]Situation, len(situations))
		for i, s := range situations {
			t.Grid[i] = Situation{Op: s.Op, State: s.State, Moment: s.Moment, Gap: s.Moment.IsGap()}
		}
	}
	for _, a := range asked {
		r := Row{Fault: a.Kind, Lacks: a.Lacks}
		for _, m := range AllMoments {
			if a.Lacks != "" {
				break
			}
			e := Entry{Moment: m, Cannot: Cannot(a.Kind, m), Gap: m.IsGap()}
			if e.Cannot == "" {
				e.Cannot = a.At(m)
			}
			for i, c := range situations {
				if e.Cannot != "" || c.Moment != m {
					continue
				}
				c.Fault = a.Kind
				met, can := has[c]
				switch s := &t.Grid[i]; {
				case met:
					s.Met = append(s.Met, a.Kind)
					e.Met++
					e.Of++
				case can:
					s.Never = append(s.Never, a.Kind)
					e.Of++
				}
			}
			t.Met, t.Of = t.Met+e.Met, t.Of+e.Of
			r.Entries = append(r.Entries, e)
		}
		t.Rows = append(t.Rows, r)
	}
	if len(asked) > 0 {
		t.Gaps = gaps
		t.Untried = t.untriedGaps()
	}
	return t
}

// inOrder returns situations in the order of their codes.
func inOrder(situations map[Cell]bool) []Cell {
	return slices.SortedFunc(maps.Keys(situations), func(a, b Cell) int { return cmp.Compare(a.Code(), b.Code()) })
}

// String returns the figures of the table in words.
func (t Table) String() string {
	return fmt.Sprintf("faults met %d of the %d cells that they could meet", t.Met, t.Of)
}

// Empty returns the cells that faults could have met, and never met, by kind of fault and then in
// the order of Grid.
func (t Table) Empty() (cells []Cell) {
	for _, r := range t.Rows {
		for _, s := range t.Grid {
			if slices.Contains(s.Never, r.Fault) {
				cells = append(cells, Cell{State: s.State, Op: s.Op, Moment: s.Moment, Fault: r.Fault})
			}
		}
	}
	return cells
}

// listedMost is the number of empty cells that Markdown lists of a kind of fault.
const listedMost = 12

// never lists the first empty cells of a row: the states of each operation and moment.
func (t Table) never(r Row) string {
	var places []string // operations and moments
	states := map[string][]string{}
	cells, of := 0, 0
	for _, c := range t.Empty() {
		if c.Fault != r.Fault {
			continue
		}
		if cells++; cells > listedMost {
			continue
		}
		place := fmt.Sprintf("%s %s", c.Op, c.Moment)
		if states[place] == nil {
			places = append(places, place)
		}
		states[place] = append(states[place], string(c.State))
	}
	for _, e := range r.Entries {
		of += e.Of
	}
	if cells == 0 {
		return ""
	}
	var told []string
	for _, p := range places {
		told = append(told, fmt.Sprintf("%s (%s)", p, strings.Join(states[p], ", ")))
	}
	text := fmt.Sprintf("* %s never met %d of %d: %s", r.Fault, cells, of, strings.Join(told, "; "))
	if cells > listedMost {
		text += fmt.Sprintf("; and %d more", cells-listedMost)
	}
	return text + ".\n"
}

// Markdown returns the table in two parts, that of gaps last, and below it what was never met and what
// cannot be.
func (t Table) Markdown() string {
	if len(t.Rows) == 0 {
		return ""
	}
	var b strings.Builder
	for _, sentence := range t.Untried {
		fmt.Fprintf(&b, "* Not tried: %s.\n", sentence)
	}
	if len(t.Untried) > 0 {
		b.WriteString("\n")
	}
	t.grid(&b, Moments)
	b.WriteString("\n")
	t.grid(&b, Gaps)
	b.WriteString("\n")
	reasons := map[string][]string{}
	var order []string
	for _, r := range t.Rows {
		if r.Lacks != "" {
			fmt.Fprintf(&b, "* %s: %s.\n", r.Fault, r.Lacks)
			continue
		}
		b.WriteString(t.never(r))
		var roomless []string
		for _, e := range r.Entries {
			switch {
			case e.Cannot != "":
				if reasons[e.Cannot] == nil {
					order = append(order, e.Cannot)
				}
				reasons[e.Cannot] = append(reasons[e.Cannot], fmt.Sprintf("%s %s", r.Fault, e.Moment))
			case e.Of == 0:
				roomless = append(roomless, string(e.Moment))
			}
		}
		if len(roomless) > 0 {
			fmt.Fprintf(&b, "* %s had no room in any run: %s.\n", r.Fault, strings.Join(roomless, "; "))
		}
	}
	for _, why := range order {
		fmt.Fprintf(&b, "* cannot be (%s): %s.\n", why, strings.Join(reasons[why], ", "))
	}
	return b.String()
}

// grid writes the columns of some moments.
func (t Table) grid(b *strings.Builder, moments []Moment) {
	b.WriteString("| fault |")
	for _, m := range moments {
		fmt.Fprintf(b, " %s |", m)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(moments)) + "\n")
	for _, r := range t.Rows {
		if r.Lacks != "" {
			continue
		}
		fmt.Fprintf(b, "| %s |", r.Fault)
		for _, e := range r.Entries {
			switch {
			case !slices.Contains(moments, e.Moment):
			case e.Cannot != "":
				b.WriteString(" – |")
			case e.Of == 0:
				b.WriteString(" no run |")
			default:
				fmt.Fprintf(b, " %d of %d |", e.Met, e.Of)
			}
		}
		b.WriteString("\n")
	}
}
