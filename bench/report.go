package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockstep/explore"
	"lockstep/internal/foreign"
	"lockstep/scenarios/subject"
)

// measurement has the figures of one part, measured in one call. It is a line of the data beside the page.
type measurement struct {
	Part     string           `json:"part"`
	Command  string           `json:"command"`
	Begun    time.Time        `json:"begun"`
	Took     time.Duration    `json:"took_ns"` // by the clock
	Versions explore.Versions `json:"versions"`
	Machine  []string         `json:"machine"`
	Loads    [2]string        `json:"loads"` // before and after
	Rounds   int              `json:"rounds"`
	Quick    bool             `json:"quick,omitempty"`
	Section  section          `json:"section"`
	// Unfinished is true of a part that was interrupted. The same command goes on with it.
	Unfinished bool `json:"unfinished,omitempty"`
	// Hunted has the hunts of the part hunt.
	Hunted []hunted `json:"hunted,omitempty"`
}

// goesOn reports whether m, which begins now, goes on with the unfinished measurement before: the
// same machine measures the same in the same world.
func (m measurement) goesOn(before measurement) bool {
	return before.Unfinished && before.Part == m.Part && before.Versions.Recorded() == m.Versions.Recorded() && before.Rounds == m.Rounds && before.Quick == m.Quick && slices.Equal(before.Machine, m.Machine)
}

// report holds the last measurement of each part, in the order of the parts.
type report struct {
	command string // of the last call
	all     []measurement
}

// readReport reads what report.WriteData wrote. A part that is not known any more is left out.
func readReport(data []byte) (*report, error) {
	r := &report{}
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var m measurement
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the figures of an earlier call cannot be read: %w", err)
		}
		if slices.Contains(partNames(), m.Part) {
			r.put(m)
		}
	}
}

// put replaces the measurement of a part.
func (r *report) put(m measurement) {
	r.all = slices.DeleteFunc(r.all, func(old measurement) bool { return old.Part == m.Part })
	r.all = append(r.all, m)
	place := func(m measurement) int { return slices.Index(partNames(), m.Part) }
	slices.SortFunc(r.all, func(x, y measurement) int { return cmp.Compare(place(x), place(y)) })
}

// unfinished returns the measurement with which m goes on, or nil. It leaves out the hunts on locks to
// which a change of the judges or of the names since matters, and those that told other stories.
func (r *report) unfinished(m measurement) *measurement {
	i := slices.IndexFunc(r.all, m.goesOn)
	if i < 0 {
		return nil
	}
	before := r.all[i]
	before.Hunted = slices.DeleteFunc(slices.Clone(before.Hunted), func(h hunted) bool {
		lock, err := subject.Find(h.Lock)
		if err != nil {
			return true
		}
		then, now := before.Versions.Raised(m.Versions, lock), m.Versions
		if h.Strategy != explore.StrategyTold {
			then, now = then.Untold(), now.Untold()
		}
		return then != now
	})
	return &before
}

// WriteData implements Report.
func (r *report) WriteData(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, m := range r.all {
		if err := enc.Encode(m); err != nil {
			return err
		}
	}
	return nil
}

// WritePage implements Report.
func (r *report) WritePage(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# What it costs\n\nWritten by `%s`. ", r.command, r.command)
	b.WriteString("Each section has the figures of the last call that measured it. What it compares was measured in turn, in that one call; figures are medians of the rounds, ratios medians of the ratios within a round, " +
		"with the least and the greatest behind them. Processor time, unless a column says otherwise. [docs/performance.md](../docs/performance.md) says where it goes.\n")
	machines, numbered := r.machines()
	for i, lines := range machines {
		if b.WriteString("\n"); len(machines) > 1 {
			fmt.Fprintf(&b, "Machine %d:\n\n", i+1)
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "* %s\n", line)
		}
	}
	missing := slices.DeleteFunc(partNames(), func(name string) bool {
		return slices.ContainsFunc(r.all, func(m measurement) bool { return m.Part == name })
	})
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", strings.Join(missing, ", "))
	}
	var goals [][]string
	for _, m := range r.all {
		for _, g := range m.Section.Goals {
			verdict := "met"
			if !g.Met {
				verdict = "**not met**: " + g.Short
			}
			goals = append(goals, []string{g.What, g.Wanted, g.Measured, verdict})
		}
	}
	if len(goals) > 0 {
		b.WriteString("\n## Goals\n\n")
		grid(&b, []string{"figure", "goal", "measured", ""}, goals)
	}
	for _, m := range r.all {
		on := ""
		if len(machines) > 1 {
			on = fmt.Sprintf(" on machine %d", numbered[m.Part])
		}
		m.write(&b, on)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// machines returns the machines on which the parts were measured, each once, and for each part
// the number of its machine, from 1.
func (r *report) machines() (machines [][]string, numbered map[string]int) {
	numbered = map[string]int{}
	for _, m := range r.all {
		i := slices.IndexFunc(machines, func(lines []string) bool { return slices.Equal(lines, m.Machine) })
		if i < 0 {
			i, machines = len(machines), append(machines, m.Machine)
		}
		numbered[m.Part] = i + 1
	}
	return machines, numbered
}

// write writes the section of a measurement. The word on is its machine, if the page has several.
func (m measurement) write(b *strings.Builder, on string) {
	s := m.Section
	fmt.Fprintf(b, "\n## %s\n\nMeasured on %s%s by `%s` in %v, %d rounds; load of the machine before and after (1 minute; what the call runs itself is in the second): %s, %s.\n",
		s.Title, m.Begun.UTC().Format("2 January 2006, 15:04 UTC"), on, m.Command, m.Took.Round(time.Second), m.Rounds, m.Loads[0], m.Loads[1])
	if m.Quick {
		b.WriteString("\n**Measured with --quick: good for a look, too little for a comparison.**\n")
	}
	if m.Unfinished {
		b.WriteString("\n**Not complete: it was interrupted, or goes on. The same command goes on with it.**\n")
	}
	for _, p := range s.Text {
		fmt.Fprintf(b, "\n%s\n", p)
	}
	if len(s.Rows) > 0 {
		b.WriteString("\n")
		grid(b, s.Head, s.Rows)
	}
	for _, p := range s.After {
		fmt.Fprintf(b, "\n%s\n", p)
	}
}

func grid(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, c := range cells {
			escaped[i] = foreign.Own(cmp.Or(c, " "))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(escaped, " | "))
	}
	line(head)
	fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(head)))
	for _, row := range rows {
		line(row)
	}
}
