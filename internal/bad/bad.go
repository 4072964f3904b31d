// Package bad makes bad inputs for tests, and checks how a program answers them.
package bad

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Input is the text of a bad file.
type Input struct{ Name, Text string }

// Flipped returns text with one bit turned, at so many places.
func Flipped(text string, times int) (all []Input) {
	for i := range times {
		at := i * len(text) / times
		b := []byte(text)
		b[at] ^= 1 << (i % 8)
		all = append(all, Input{fmt.Sprintf("bit %d of byte %d flipped", i%8, at), string(b)})
	}
	return all
}

// Cut returns so many beginnings and ends of text.
func Cut(text string, times int) (all []Input) {
	for i := range times {
		at := i * len(text) / times
		if i%2 == 0 {
			all = append(all, Input{fmt.Sprintf("only the first %d bytes", at), text[:at]})
		} else {
			all = append(all, Input{fmt.Sprintf("without the first %d bytes", at), text[at:]})
		}
	}
	return all
}

// Spliced returns text that is joined with another one at so many places, and text that is repeated or stands in a
// wrong encoding.
func Spliced(text, other string, times int) (all []Input) {
	for i := range times {
		at := i * len(text) / times
		all = append(all, Input{fmt.Sprintf("the other text from byte %d", at), text[:at] + other[min(at, len(other)):]})
	}
	half := len(text) / 2
	var wide strings.Builder
	wide.WriteString("\xff\xfe")
	for _, r := range text {
		wide.WriteRune(r)
		wide.WriteByte(0)
	}
	return append(all,
		Input{"twice", text + text},
		Input{"with the other text behind it", text + other},
		Input{"a half twice", text[:half] + text[:half] + text[half:]},
		Input{"with a part of the middle missing", text[:half/2] + text[half:]},
		Input{"with blanks in the middle", text[:half] + strings.Repeat(" ", 100_000) + text[half:]},
		Input{"with zeros in the middle", text[:half] + strings.Repeat("\x00", 4096) + text[half+min(4096, half):]},
		Input{"with zeros at the end", text + strings.Repeat("\x00", 4096)},
		Input{"backwards", backwards(text)},
		Input{"in wide characters", wide.String()},
		Input{"with a mark of the byte order", "\ufeff" + text},
		Input{"with line ends of Windows", strings.ReplaceAll(text, "\n", "\r\n")},
		Input{"with control characters in front", "\x1b[2J\x07\x00" + text},
		Input{"with a command of a workflow in front", "\n::error::x\n" + text},
		Input{"nothing but brackets", strings.Repeat("[", 100_000)},
		Input{"nothing but braces", strings.Repeat(`{"a":`, 100_000)},
		Input{"one long word", strings.Repeat("x", 1<<20)},
		Input{"bytes that are no text", strings.Repeat("\xff\xc0\x80", 1000)},
		Input{"a program", "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 4096)},
		Input{"gzip without its end", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"},
		Input{"HTML", "<!doctype html><script>alert(1)</script>"},
	)
}

func backwards(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return string(b)
}

// odd are values in place of the value of a field.
var odd = []string{
	`null`, `true`, `-1`, `0`, `1e400`, `99999999999999999999`, `9223372036854775807`, `0.5`, `""`, `"x"`, `"\u001b[2J\n::error::x"`, `[]`, `[null]`, `{}`, `{"":{}}`,
}

// Fields returns a JSON object with another value in each field in turn, and with each field missing, twice and
// misspelt.
func Fields(object string) (all []Input) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		panic(err)
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	write := func(change func(name string) string) string {
		var parts []string
		for _, name := range names {
			if part := change(name); part != "" {
				parts = append(parts, part)
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for i, at := range names {
		with := func(what, text string) {
			all = append(all, Input{at + " " + what, write(func(name string) string {
				if name == at {
					return text
				}
				return fmt.Sprintf("%q:%s", name, fields[name])
			})})
		}
		with("missing", "")
		with("twice", fmt.Sprintf("%q:%s,%[1]q:%[2]s", at, fields[at]))
		with("misspelt", fmt.Sprintf("%q:%s", at+"s", fields[at]))
		for j := range 6 {
			value := odd[(i*6+j)%len(odd)]
			with("is "+value, fmt.Sprintf("%q:%s", at, value))
		}
	}
	return all
}

// Most is the time after which an input counts as one without an end. It is long, since the machine may be busy.
const Most = 2 * time.Minute

// Ends calls f, which tries an input, and ends the whole test binary with the name of the input if f does not return.
func Ends(name string, f func()) {
	defer time.AfterFunc(Most, func() { panic(fmt.Sprintf("no end of: %s", name)) }).Stop()
	f()
}

// An Answer is how a program answers an input.
type Answer struct {
	Code        int
	Out, Errors string
}

// Check checks what holds for the answer to every bad input: the exit code is one of codes, an input that is refused
// with exit code 64 has no result and from one to most lines of errors, and no output has a character that does not show, or
// a line that is a command of a workflow.
func (a Answer) Check(most int, codes ...int) error {
	lines := strings.Count(a.Errors, "\n")
	switch {
	case !slices.Contains(codes, a.Code):
		return fmt.Errorf("exit code %d, want one of %v", a.Code, codes)
	case a.Code == 64 && (a.Out != "" || lines < 1 || lines > most):
		return fmt.Errorf("exit code 64 with %d bytes on stdout and %d lines on stderr", len(a.Out), lines)
	case a.Code == 74 && lines != 1:
		return fmt.Errorf("exit code 74 with %d lines on stderr", lines)
	case len(a.Errors) > 8192: // an argument may have 5000
		return fmt.Errorf("%d bytes on stderr", len(a.Errors))
	}
	for _, text := range []string{a.Out, a.Errors} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") {
				return fmt.Errorf("a command of a workflow: %.200s", line)
			}
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }); i >= 0 || !utf8.ValidString(text) {
			return fmt.Errorf("a character that does not show: %.200q", text[max(i-20, 0):])
		}
	}
	return nil
}

// String shows an answer in some lines.
func (a Answer) String() string {
	return fmt.Sprintf("exit code %d\nstdout: %.500s\nstderr: %.1000s", a.Code, a.Out, a.Errors)
}

// Counted checks that the table of bad inputs in CONTRIBUTING.md has a row for this kind and this test, with no more
// inputs than these.
func Counted(t testing.TB, kind string, inputs int) {
	t.Helper()
	for _, row := range Rows(t) {
		if row.Kind == kind && row.Test == t.Name() && row.Inputs <= inputs {
			return
		}
	}
	t.Errorf("CONTRIBUTING.md has no row | %s | N | %s |, where N is at most %d", kind, t.Name(), inputs)
}

// A Row is a row of the table of bad inputs.
type Row struct {
	Kind   string
	Inputs int
	Folder string // of the test
	Test   string
}

// begin is the folder in which the test began.
var begin, _ = os.Getwd()

var row = regexp.MustCompile("(?m)^\\| ([^|]+) \\| (\\d+) \\| `([^`]+)` (Test\\w+) \\|$")

// Rows returns the table of bad inputs.
func Rows(t testing.TB) (rows []Row) {
	t.Helper()
	for dir := begin; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "CONTRIBUTING.md"))
		if err != nil {
			if filepath.Dir(dir) == dir {
				t.Fatal(err)
			}
			continue
		}
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, Row{m[1], n, m[3], m[4]})
		}
		return rows
	}
}
