package coverage

import (
	"fmt"
	"slices"
	"strings"
)

// Table says which cells a campaign met.
type Table struct {
	// Situations is the number of situations that the runs reached. Met is the number of
	// cells that they met, and Of is the number of cells that faults of the campaign can
	// meet in these situations.
	Situations int   `json:"situations"`
	Met        int   `json:"met"`
	Of         int   `json:"of"`
	Rows       []Row `json:"rows,omitempty"`
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
	Of     int    `json:"of"` // the situations of the moment that the runs reached
	// Cannot says why the fault cannot meet the moment; "": it can.
	Cannot string `json:"cannot,omitempty"`
}

// Asked is a kind of fault that a campaign asks for.
type Asked struct {
	Kind  Kind
	Lacks string                   // why the lock's servers have no such fault; "": they have
	At    func(Moment) (no string) // why the campaign places no such fault at a moment; "": it does
}

// Sum returns the table of a campaign that reached the cells with these codes.
func Sum(codes []int, asked []Asked) Table {
	var t Table
	situations := map[Moment][]Cell{}
	met := map[Cell]bool{}
	for _, code := range codes {
		c, ok := CellOf(code)
		if !ok {
			continue
		}
		if c.Fault == None {
			t.Situations++
			situations[c.Moment] = append(situations[c.Moment], c)
		} else {
			met[c] = true
		}
	}
	// A fault may end a situation at its beginning, and then the run has only the cell.
	for c := range met {
		if s := c.Situation(); !slices.Contains(situations[c.Moment], s) {
			t.Situations++
			situations[c.Moment] = append(situations[c.Moment], s)
		}
	}
	for _, a := range asked {
		r := Row{Fault: a.Kind, Lacks: a.Lacks}
		for _, m := range Moments {
			if a.Lacks != "" {
				break
			}
			e := Entry{Moment: m, Cannot: Cannot(a.Kind, m)}
			if e.Cannot == "" {
				e.Cannot = a.At(m)
			}
			if e.Cannot == "" {
				for _, c := range situations[m] {
					e.Of++
					if c.Fault = a.Kind; met[c] {
						e.Met++
					}
				}
			}
			t.Met, t.Of = t.Met+e.Met, t.Of+e.Of
			r.Entries = append(r.Entries, e)
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// String returns the figures of the table in words.
func (t Table) String() string {
	if t.Of == 0 {
		return fmt.Sprintf("%d situations", t.Situations)
	}
	return fmt.Sprintf("%d situations, and faults in %d of their %d cells", t.Situations, t.Met, t.Of)
}

// Markdown returns the table, and below it what was never met and what cannot be.
func (t Table) Markdown() string {
	if len(t.Rows) == 0 {
		return ""
	}
	var b, never strings.Builder
	b.WriteString("| fault |")
	for _, m := range Moments {
		fmt.Fprintf(&b, " %s |", m)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(Moments)) + "\n")
	reasons := map[string][]string{}
	var order []string
	for _, r := range t.Rows {
		if r.Lacks != "" {
			fmt.Fprintf(&never, "* %s: %s.\n", r.Fault, r.Lacks)
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.Fault)
		var missed []string
		for _, e := range r.Entries {
			switch {
			case e.Cannot != "":
				b.WriteString(" – |")
				if reasons[e.Cannot] == nil {
					order = append(order, e.Cannot)
				}
				reasons[e.Cannot] = append(reasons[e.Cannot], fmt.Sprintf("%s %s", r.Fault, e.Moment))
			case e.Of == 0:
				b.WriteString(" no run |")
				missed = append(missed, string(e.Moment)+" (no run came to it)")
			default:
				fmt.Fprintf(&b, " %d of %d |", e.Met, e.Of)
				if e.Met == 0 {
					missed = append(missed, string(e.Moment))
				}
			}
		}
		b.WriteString("\n")
		if len(missed) > 0 {
			fmt.Fprintf(&never, "* %s was never met: %s.\n", r.Fault, strings.Join(missed, "; "))
		}
	}
	b.WriteString("\n" + never.String())
	for _, why := range order {
		fmt.Fprintf(&b, "* cannot be (%s): %s.\n", why, strings.Join(reasons[why], ", "))
	}
	return b.String()
}
