// Package foreign writes text that came from outside, such as names of locks, paths and errors of servers, for
// each kind of output, so that the text cannot give commands to the program that shows it: a terminal, a
// workflow of GitHub, a reader of XML, markdown or HTML.
package foreign

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text as a part of one line. Characters that do not show, such as control characters, line
// breaks and the marks that turn the direction of writing, become escapes that JSON has, too. So does the
// beginning of a command of a workflow. All other text stays as it is.
func Line(text string) string { return clean(text, false) }

// Lines is Line for text of several lines, which keeps line breaks and tabs.
func Lines(text string) string { return clean(text, true) }

// Cell returns text as a cell of a table in markdown, or as a part of its paragraphs.
func Cell(text string) string { return inMarkdown.Replace(Line(text)) }

// Own returns markdown that the program composed as the text of a cell of a table.
func Own(markdown string) string { return ownMarkdown.Replace(Line(markdown)) }

// Commented returns text as a line of a comment.
func Commented(text string) string { return "# " + Line(strings.ReplaceAll(text, "\n", " ")) + "\n" }

// inMarkdown escapes what begins another cell, HTML, a link, code, stress, a character by its name, or an escape.
var inMarkdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", `\<`, "](", `]\(`, "`", "\\`", "*", `\*`, "&", `\&`)

// ownMarkdown escapes what begins another cell, or HTML.
var ownMarkdown = strings.NewReplacer("|", `\|`, "<", `\<`)

// XML writes a value as a document of XML, whose text is as Lines returns it.
func XML(w io.Writer, value any) error {
	text, err := xml.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+Lines(string(text))+"\n")
	return err
}

// Page writes a page that a template makes, see HTML.
func Page(w io.Writer, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	return HTML(w, b.Bytes())
}

// HTML writes a page with the character U+FFFD in place of the characters that do not show. The page is
// escaped already.
func HTML(w io.Writer, page []byte) error {
	_, err := w.Write(bytes.Map(func(r rune) rune {
		if shows(r) || r == '\n' || r == '\t' {
			return r
		}
		return utf8.RuneError
	}, page))
	return err
}

// shows reports whether a character shows.
func shows(r rune) bool { return unicode.IsGraphic(r) }

func clean(text string, lines bool) string {
	var b bytes.Buffer
	c := cleaner{lines: lines, begins: true}
	c.write(&b, []byte(text))
	return b.String()
}

// cleaner replaces the characters that do not show.
type cleaner struct {
	lines  bool     // line breaks and tabs stay
	may    []string // sequences that stay
	begins bool     // the line has only blanks so far
	marks  int      // the number of # at the end of the text so far
}

// workflow are the words between ## and the bracket of a command: that of Azure Pipelines, of TeamCity and the
// older one of GitHub.
var workflow = []string{"[", "vso[", "teamcity["}

func (c *cleaner) write(b *bytes.Buffer, text []byte) {
	for i := 0; i < len(text); {
		rest := text[i:]
		if n := slices.IndexFunc(c.may, func(s string) bool { return bytes.HasPrefix(rest, []byte(s)) }); n >= 0 {
			b.WriteString(c.may[n])
			i += len(c.may[n])
			continue
		}
		r, size := utf8.DecodeRune(rest)
		i += size
		after := text[i:]
		command := c.begins && r == ':' && (len(after) == 0 || after[0] == ':') ||
			c.marks > 0 && r == '#' && (len(after) == 0 || slices.ContainsFunc(workflow, func(word string) bool { return bytes.HasPrefix(after, []byte(word)) }))
		switch {
		case c.lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case shows(r) && !command:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
		if c.marks++; r != '#' {
			c.marks = 0
		}
		c.begins = c.lines && r == '\n' || c.begins && unicode.IsSpace(r)
	}
}

// A Terminal is a writer of text for a terminal, or for the log of a workflow. It writes as Lines does.
type Terminal struct {
	mu   sync.Mutex
	to   io.Writer
	c    cleaner
	part []byte // the beginning of a character whose rest was not written yet
}

// NewTerminal returns a Terminal that writes to w. The sequences that the program itself uses, such as those of
// colours, stay.
func NewTerminal(w io.Writer, sequences ...string) *Terminal {
	return &Terminal{to: w, c: cleaner{lines: true, may: sequences, begins: true}}
}

func (t *Terminal) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(t.part, text...)
	whole := len(all)
	for n := 1; n < utf8.UTFMax && n <= len(all); n++ {
		if at := len(all) - n; utf8.RuneStart(all[at]) {
			if !utf8.FullRune(all[at:]) {
				whole = at
			}
			break
		}
	}
	var b bytes.Buffer
	t.c.write(&b, all[:whole])
	t.part = slices.Clone(all[whole:])
	if n, err := t.to.Write(b.Bytes()); err != nil || n < b.Len() {
		if err == nil {
			err = io.ErrShortWrite
		}
		return 0, err
	}
	return len(text), nil
}
