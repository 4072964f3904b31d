package foreign_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"lockstep/internal/foreign"
)

const bidi = "\u202e" // turns the direction of writing

func TestText(t *testing.T) {
	for _, c := range []struct {
		rule, text, line, lines string
	}{
		{"text that shows", "Lagerbestand ä 日本 ×2 | `x` <b> \\n", "Lagerbestand ä 日本 ×2 | `x` <b> \\n", "Lagerbestand ä 日本 ×2 | `x` <b> \\n"},
		{"line breaks", "a\r\n\tb", `a\r\n\tb`, "a\\r\n\tb"},
		{"control characters", "\x1b[31mred\x07\x7f\u0085", `\u001b[31mred\u0007\u007f\u0085`, `\u001b[31mred\u0007\u007f\u0085`},
		{"marks of direction", "a" + bidi + "b\u2028c", `a\u202eb\u2028c`, `a\u202eb\u2028c`},
		{"no character", "a\xffb\ufffe\U000e0001", `a�b\ufffe\udb40\udc01`, `a�b\ufffe\udb40\udc01`},
		{"commands of a workflow", "::error::x\n  ::debug::y", `\u003a:error::x\n  ::debug::y`, "\\u003a:error::x\n  \\u003a:debug::y"},
		{"older commands of a workflow", "a ##[error] ##vso[x] ## a ###[b", `a #\u0023[error] #\u0023vso[x] ## a ##\u0023[b`, `a #\u0023[error] #\u0023vso[x] ## a ##\u0023[b`},
		{"colons elsewhere", ":x a::b", ":x a::b", ":x a::b"},
	} {
		if got := foreign.Line(c.text); got != c.line {
			t.Errorf("%s: Line is %q, want %q", c.rule, got, c.line)
		}
		if got := foreign.Lines(c.text); got != c.lines {
			t.Errorf("%s: Lines is %q, want %q", c.rule, got, c.lines)
		}
	}
	if got := foreign.Cell("a|b\n<i> [x](y) `c` &amp; *d*"); got != "a\\|b\\\\n\\<i> [x]\\(y) \\`c\\` \\&amp; \\*d\\*" {
		t.Errorf("Cell is %q", got)
	}
	if got := foreign.Own("a|b\n<i> [x](y) `c`"); got != "a\\|b\\n\\<i> [x](y) `c`" {
		t.Errorf("Own is %q", got)
	}
	if got := foreign.Commented("a\nb\x1b" + bidi); got != "# a b\\u001b\\u202e\n" {
		t.Errorf("Commented is %q", got)
	}
}

func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := foreign.HTML(&b, []byte("<p>a\n\tä"+bidi+"\x1b</p>")); err != nil || b.String() != "<p>a\n\tä\ufffd\ufffd</p>" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// A terminal gets the sequences of the program, and none of a name.
func TestTerminal(t *testing.T) {
	var b bytes.Buffer
	w := foreign.NewTerminal(&b, "\x1b[31m", "\x1b[0m")
	for _, text := range []string{"\x1b[31mbug\x1b[0m \x1b[2J\n", " :", ":x ä", "\xe2\x80", "\xae\n"} {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "\x1b[31mbug\x1b[0m \\u001b[2J\n \\u003a:x ä\\u202e\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// JSON that a terminal gets stays the same value.
func TestATerminalKeepsJSON(t *testing.T) {
	want := "a\x7f\u202e\U000e0001\u0085 ::"
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(foreign.Lines(string(text))), &got); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// safe reports whether text shows as it is, and has no line that is a command of a workflow.
func safe(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			return false
		}
	}
	return utf8.ValidString(text) && !strings.Contains(text, "##[") && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }) < 0
}

type element struct {
	Attribute string `xml:",attr"`
	Text      string `xml:",cdata"`
}

// unescaped matches markdown in which a character that has a meaning stands without an escape of its own.
var unescaped = regexp.MustCompile("(?s)^(\\\\.|[^\\\\|<*&`])*[|<*&`]")

func FuzzOutputs(f *testing.F) {
	for _, seed := range []string{"orders", "o\n::error::x\x1b[2J" + bidi + "|`x`", "\\|\\<b>", "]]>\ufffe", "\r::x", "##[group]", "\v::x", "\u00a0::x", "\xff::", "###[x"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if got := foreign.Line(a); !safe(got) || strings.ContainsAny(got, "\n\t") {
			t.Errorf("Line(%q) is %q", a, got)
		}
		if got := foreign.Cell(a); !safe(got) || unescaped.MatchString(got) {
			t.Errorf("Cell(%q) is %q", a, got)
		}
		if got := foreign.Commented(a); !safe(got) || !strings.HasPrefix(got, "# ") || strings.Count(got, "\n") != 1 {
			t.Errorf("Commented(%q) is %q", a, got)
		}
		var document bytes.Buffer
		if err := foreign.XML(&document, element{Text: a, Attribute: b}); err != nil || !safe(document.String()) {
			t.Errorf("XML of %q and %q is %q, %v", a, b, document.String(), err)
		}
		for d := xml.NewDecoder(&document); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("XML of %q: %v", a, err)
			}
		}
		var to bytes.Buffer
		w := foreign.NewTerminal(&to)
		_, _ = io.WriteString(w, a)
		_, _ = io.WriteString(w, b)
		if !safe(to.String()) {
			t.Errorf("a terminal gets %q of %q and %q", to.String(), a, b)
		}
		var page bytes.Buffer
		if err := foreign.HTML(&page, []byte(a)); err != nil || strings.IndexFunc(page.String(), func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }) >= 0 {
			t.Errorf("a page has %q of %q, %v", page.String(), a, err)
		}
	})
}
