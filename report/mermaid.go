package report

import (
	"fmt"
	"lockstep/internal/counted"
	"lockstep/model"
	"slices"
	"strings"
)

// mermaidMost limits the arrows and notes of a diagram. GitHub does not draw a diagram with
// more than some hundreds.
const mermaidMost = 120

// Mermaid returns a run as a sequence diagram. It draws the run up to the first finding. If
// that is too long, it draws the last part.
func Mermaid(r Run) string {
	v := build(r)
	type line struct {
		at   int64
		text string
	}
	var lines []line
	add := func(at int64, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	everybody := fmt.Sprintf("P0,P%d", len(v.Lanes)-1)
	for i := range v.Messages {
		m := &v.Messages[i]
		if m.Lane < 0 || len(m.Locks) == 0 && !m.Push {
			continue
		}
		name := escaped(m.Name)
		switch {
		case m.Exec < 0 && m.Lost >= 0:
			add(m.Sent, "P%d-xP%d: %s, lost: %s", m.Lane, m.Server, name, escaped(string(m.Why)))
			continue
		case m.Exec < 0:
			add(m.Sent, "P%d->>P%d: %s, not executed. %s", m.Lane, m.Server, name, escaped(m.Hit))
			continue
		case !m.Push:
			add(m.Exec, "P%d->>P%d: %s", m.Lane, m.Server, name)
		}
		switch {
		case m.Done >= 0:
			add(m.Done, "P%d-->>P%d: %s", m.Server, m.Lane, escaped(answer(m)))
		case m.Lost >= 0 && m.Why != model.LostUnwanted:
			add(m.Lost, "P%d--xP%d: %s, lost: %s", m.Server, m.Lane, escaped(answer(m)), escaped(string(m.Why)))
		}
	}
	for _, e := range v.Events {
		if e.Kind == "state" {
			add(e.AtNs, "Note over P%d: %s %s", e.Lane, at(e.AtNs), escaped(e.Text))
		} else if e.Kind == "return" || e.Kind == "repeat" {
			add(e.AtNs, "Note over P%d: %s", max(e.Lane, 0), escaped(e.Text))
		}
	}
	for _, f := range v.Faults {
		add(f.FromNs, "Note over %s: FAULT %s at %s", everybody, escaped(f.Text), at(f.FromNs))
	}
	until := v.EndNs
	if len(v.Findings) > 0 {
		until = v.Findings[0].AtNs
	}
	for _, f := range v.Findings {
		if f.AtNs <= until {
			add(f.AtNs, "Note over %s: BROKEN %s. %s", everybody, escaped(f.Judge), escaped(f.Why))
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(min(max(a.at-b.at, -1), 1)) })
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.at > until })
	left := max(0, len(lines)-mermaidMost)

	var b strings.Builder
	fmt.Fprintf(&b, "sequenceDiagram\n")
	for i, l := range v.Lanes {
		fmt.Fprintf(&b, "    participant P%d as %s\n", i, escaped(l.Name))
	}
	if left > 0 {
		fmt.Fprintf(&b, "    Note over %s: … %s before\n", everybody, counted.Of(left, "step"))
	}
	for _, l := range lines[left:] {
		fmt.Fprintf(&b, "    %s\n", l.text)
	}
	return b.String()
}

func answer(m *message) string {
	if m.Push {
		return "wake-up"
	}
	return m.Name + " → " + m.Reply
}

// escaped escapes the characters that have a meaning in Mermaid.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range Clip(s, textMost) {
		if strings.ContainsRune("#;<>&\"{}%`", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}
