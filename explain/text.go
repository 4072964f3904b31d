package explain

import (
	"fmt"
	"path/filepath"
	"strings"

	"lockstep/internal/counted"
	"lockstep/model"
	"lockstep/report"
)

const (
	textWidth = 100
	// LinesMost is the largest number of lines of a text about one failure.
	LinesMost = 60
	// labelWidth is the width of the words before the lines of a text.
	labelWidth = 9
	// callersMost is the largest number of places in the text of a request.
	callersMost = 3
	// textMost is the largest number of characters of a paragraph, and alsoMost that of further promises.
	textMost, alsoMost = 400, 3
)

// Text returns the explanation for people, in at most LinesMost lines.
func (x Explanation) Text() string {
	var b strings.Builder
	p := x.Promise
	b.WriteString(report.Wrap(report.Clip(fmt.Sprintf("%s breaks %s (%s) in %s, seed %d: %s", x.Lock, p.Judge, p.Class, x.Scenario, x.Seed, p.Why), textMost), "", textWidth))
	label(&b, "promise", p.Text)
	label(&b, "excuse", p.Excuse)
	label(&b, "cause", x.Cause.Text)
	head := b.String()
	b.Reset()
	b.WriteString("\n")
	label(&b, "call", x.Call.String())
	label(&b, "request", x.Request.String())
	if x.Kept.Control != nil {
		label(&b, "control", x.Kept.Control.Text)
	}
	label(&b, "hint", x.Kept.Hint)
	for _, a := range x.Also[:min(len(x.Also), alsoMost)] {
		label(&b, "also", fmt.Sprintf("%s (%s): %s", a.Judge, a.Class, a.Why))
	}
	if more := len(x.Also) - alsoMost; more > 0 {
		label(&b, "also", counted.Of(more, "further judge"))
	}
	b.WriteString("\n")
	for _, c := range []struct{ name, command string }{
		{"replay", x.Commands.Replay}, {"shrink", x.Commands.Shrink}, {"live", x.Commands.Live}, {"page", x.Commands.Page}, {"mended?", x.Commands.Mended},
	} {
		if c.command != "" { // in one line, so that it can be copied
			fmt.Fprintf(&b, "%-*s%s\n", labelWidth, c.name+":", c.command)
		}
	}
	return head + "\n" + x.timeline(LinesMost-lines(head)-lines(b.String())-1) + b.String()
}

// label writes a paragraph with a word before it; nothing if the text is empty.
func label(b *strings.Builder, word, text string) {
	if text == "" {
		return
	}
	indent := strings.Repeat(" ", labelWidth)
	wrapped := report.Wrap(report.Clip(text, textMost), indent, textWidth)
	b.WriteString(fmt.Sprintf("%-*s", labelWidth, word+":") + strings.TrimPrefix(wrapped, indent))
}

func lines(text string) int { return strings.Count(text, "\n") }

// timeline returns the events in columns, in at most so many lines. If there are more, it leaves out the first ones.
func (x Explanation) timeline(most int) string {
	for from := range x.events {
		text := report.StepsText(x.run, x.events[from:])
		if from > 0 {
			head, rest, _ := strings.Cut(text, "\n")
			text = head + "\n" + fmt.Sprintf("         …  %s before\n", counted.Of(from, "event")) + rest
		}
		if lines(text) <= most {
			return text
		}
	}
	return ""
}

// String returns the call with its line; "" for nil.
func (c *Call) String() string {
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s by %s at %s", c.Action, c.Lock, c.Thread, model.At(c.CallNs))
	switch c.Outcome {
	case "":
	case string(model.Waiting):
		text += ", which still waited at the end"
	default:
		text += ", which answered " + c.Outcome
	}
	return text + c.Site.behind()
}

// String returns the request with its line; "" for nil.
func (r *Request) String() string {
	if r == nil {
		return ""
	}
	name := r.Name
	if len(r.Args) == 1 { // the key; the arguments of other requests are long
		name += " " + r.Args[0]
	}
	text := fmt.Sprintf("%s, sent at %s", name, model.At(r.SentNs)) + r.Site.behind()
	for i := range r.Stack[min(1, len(r.Stack)):min(callersMost, len(r.Stack))] {
		text += strings.Replace(r.Stack[i+1].behind(), ",", ", called by", 1)
	}
	return text
}

// behind returns the place as the end of a sentence; "" for nil.
func (s *Site) behind() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(", %s:%d in %s", shortFile(s.File), s.Line, s.Function[strings.LastIndexByte(s.Function, '/')+1:])
}

// shortFile returns the file of a place with its folder, which is enough to find it.
func shortFile(file string) string {
	return filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
}
