package explore

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// order is the order of a file's fields.
var order = []string{
	"lockstep", "name", "about", "source", "locks", "network", "watchdog", "server", "resources", "processes", "steps", "faults",
	"expect", "reach", "seeds",
}

// lineMost is how long a line may be before a list of steps is written out.
const lineMost = 100

// write writes a scenario as those built in are written: what there are many
// of on a line each, in braces.
func write(root *yaml.Node) string {
	var b strings.Builder
	for _, key := range order {
		n := get(root, key)
		if n == nil {
			continue
		}
		switch key {
		case "about":
			b.WriteString("about: >-\n" + fold(n.Value, "  ", 80))
		case "steps":
			b.WriteString("steps:\n")
			for _, t := range entries(n) {
				fmt.Fprintf(&b, "  %s:\n", t.key.Value)
				writeSteps(&b, t.value, "    ")
			}
		case "resources", "processes", "expect":
			b.WriteString(key + ":\n")
			for _, e := range entries(n) {
				fmt.Fprintf(&b, "  %s: %s\n", word(e.key), flow(e.value))
			}
		case "faults":
			b.WriteString("faults:\n")
			for _, f := range items(n) {
				fmt.Fprintf(&b, "  - %s\n", flow(f))
			}
		default:
			fmt.Fprintf(&b, "%s: %s\n", key, flow(n))
		}
	}
	return b.String()
}

func writeSteps(b *strings.Builder, list *yaml.Node, indent string) {
	for _, s := range items(list) {
		kind, value := stepOf(s)
		steps := get(value, "steps")
		switch {
		case value == nil:
			fmt.Fprintf(b, "%s- %s\n", indent, kind)
			continue
		case steps == nil || len(indent)+len(kind)+len(flow(value)) < lineMost:
			fmt.Fprintf(b, "%s- %s: %s\n", indent, kind, flow(value))
			continue
		}
		fmt.Fprintf(b, "%s- %s:\n", indent, kind)
		for _, e := range entries(value) {
			if e.value != steps {
				fmt.Fprintf(b, "%s    %s: %s\n", indent, e.key.Value, flow(e.value))
			}
		}
		fmt.Fprintf(b, "%s    steps:\n", indent)
		writeSteps(b, steps, indent+"      ")
	}
}

// flow writes a value on one line.
func flow(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		var parts []string
		for _, e := range entries(n) {
			parts = append(parts, word(e.key)+": "+flow(e.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for _, c := range items(n) {
			parts = append(parts, flow(c))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return word(n)
}

// word writes a scalar, in quotes where it could be read as something else.
func word(n *yaml.Node) string {
	s := n.Value
	plain := s != "" && s == strings.TrimSpace(s) && !strings.Contains(s, ": ") && !strings.Contains(s, " #") && !strings.HasSuffix(s, ":")
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_/.", r):
		case i > 0 && strings.ContainsRune(" -@+:()*", r):
		case i == 0 && r == '-' && len(s) > 1 && unicode.IsDigit(rune(s[1])):
		default:
			plain = false
		}
	}
	switch strings.ToLower(s) {
	case "null", "~":
		plain = false
	}
	if plain {
		return s
	}
	return quoted(s)
}

// quoted writes text between double quotes as YAML reads it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// fold breaks text into lines of at most width.
func fold(text, indent string, width int) string {
	var b strings.Builder
	line := ""
	for _, w := range strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)) {
		if line != "" && len(indent)+len(line)+1+len(w) > width {
			b.WriteString(indent + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	b.WriteString(indent + line + "\n")
	return b.String()
}
