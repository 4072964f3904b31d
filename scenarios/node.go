package scenarios

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"lockstep/internal/nearest"
	"lockstep/internal/quantity"
)

// This file reads values from YAML nodes and reports their errors. A nil node stands for a
// field that the file does not have. Every reader returns the zero value for it.

func (l *loader) fail(n *yaml.Node, format string, args ...any) {
	l.failAt(n.Line, n.Column, fmt.Sprintf(format, args...))
}

func (l *loader) failAt(line, column int, msg string) {
	l.errs = append(l.errs, &FileError{File: l.file, Line: max(line, 1), Column: max(column, 1), Msg: msg})
}

func (l *loader) result() error {
	l.errs = l.errs[:min(len(l.errs), maxErrors)]
	slices.SortStableFunc(l.errs, func(a, b *FileError) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if len(l.errs) == 1 {
		return l.errs[0]
	}
	var errs []error
	for _, err := range l.errs {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// document returns the root of the file's only document, or nil after an error. A scenario
// may not contain anchors, aliases, tags, merge keys, duplicate keys, or keys that are
// lists or mappings.
func (l *loader) document(text []byte) *yaml.Node {
	if len(text) > maxText {
		l.failAt(1, 1, fmt.Sprintf("the file has %d bytes; a scenario has at most %d", len(text), maxText))
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	first, second, err := decode(text)
	switch {
	case err != nil:
		line, column := syntaxErrorAt(text)
		l.failAt(line, column, "not valid YAML: "+yamlPrefix.ReplaceAllString(err.Error(), ""))
	case !utf8.Valid(text): // the YAML package also reads UTF-16
		l.failAt(1, 1, "the file is not UTF-8")
	case first == nil || first.Content[0].Tag == "!!null":
		l.failAt(1, 1, "the file is empty; a scenario starts with `lockstep: "+formatVersion+"`")
	case second != nil:
		l.fail(second, "a second YAML document; one scenario a file")
	default:
		l.refuseMarks(first.Content[0])
		if len(l.errs) == 0 {
			return first.Content[0]
		}
	}
	return nil
}

// decode returns the first two documents of text. A missing document is nil.
func decode(text []byte) (first, second *yaml.Node, err error) {
	// The YAML package panics on some inputs. The user must get an error instead.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(text))
	for _, doc := range []**yaml.Node{&first, &second} {
		n := new(yaml.Node)
		if err := d.Decode(n); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, err
		}
		*doc = n
	}
	return first, second, nil
}

var yamlPrefix = regexp.MustCompile(`^yaml: (line \d+: )?`)

// syntaxErrorAt returns the position of the syntax error in text. The message of the YAML
// package names the line where the construct around the error starts. For some errors that
// number is one too small. Therefore syntaxErrorAt cuts the text off after a line, and
// returns the first line after which the rest fails with the message of the whole text. It
// puts a comment in front, because the package names another position for a construct on
// the first line.
func syntaxErrorAt(text []byte) (line, column int) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	failure := func(lines [][]byte) string {
		_, _, err := decode(append([]byte("#\n"), bytes.Join(lines, nil)...))
		if err == nil {
			return ""
		}
		return err.Error()
	}
	whole := failure(lines)
	i := sort.Search(len(lines)-1, func(i int) bool { return failure(lines[:i+1]) == whole })
	return i + 1, len(lines[i]) - len(bytes.TrimLeft(lines[i], " \t")) + 1
}

func (l *loader) refuseMarks(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		l.fail(n, "the alias *%s: write the value out; a scenario has no anchors and aliases", nearest.Clip(n.Value))
	case n.Anchor != "":
		l.fail(n, "the anchor &%s: write the value out; a scenario has no anchors and aliases", nearest.Clip(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		l.fail(n, "the tag %s: a scenario has no tags", nearest.Clip(n.Tag))
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]*yaml.Node{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				if key.Kind != yaml.AliasNode {
					l.fail(key, "a key must be a word, not %s", describe(key))
				}
				continue
			}
			if key.Tag == "!!merge" {
				l.fail(key, "a merge key <<: write the fields out")
			}
			if other := seen[key.Value]; other != nil {
				l.fail(key, "%s is here twice; first on line %d", quote(key.Value), other.Line)
			}
			seen[key.Value] = key
		}
	}
	for _, child := range n.Content {
		l.refuseMarks(child)
	}
}

// fields returns the values of a mapping by their keys, or nil if n is not a mapping. It
// reports keys that are not in known. It also reports missing keys that end in "!" in known.
func (l *loader) fields(n *yaml.Node, where string, known ...string) map[string]*yaml.Node {
	if n == nil {
		return nil
	}
	var names, required []string
	for _, name := range known {
		name, must := strings.CutSuffix(name, "!")
		if names = append(names, name); must {
			required = append(required, name)
		}
	}
	if n.Kind != yaml.MappingNode {
		l.fail(n, "%s is a mapping of fields, not %s", where, describe(n))
		return nil
	}
	f := map[string]*yaml.Node{}
	misspelt := false
	for key, value := range l.pairs(n, "") {
		if slices.Contains(names, key.Value) {
			f[key.Value] = value
		} else {
			l.unknown(key, "field", key.Value, where, names)
			misspelt = true // most likely it is the required one
		}
	}
	for _, name := range required {
		if f[name] == nil && !misspelt {
			l.fail(n, "%s needs %q", where, name)
		}
	}
	return f
}

// oneOf returns the name that f has. It reports an error if f has none or several of names.
func (l *loader) oneOf(n *yaml.Node, f map[string]*yaml.Node, where string, names ...string) string {
	var found []string
	for _, name := range names {
		if f[name] != nil {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0]
	case len(found) > 1:
		l.fail(n, "%s has %s; give one of them", where, strings.Join(found, " and "))
	case f != nil:
		l.fail(n, "%s needs one of %s", where, strings.Join(names, ", "))
	}
	return ""
}

// pairs ranges over the keys and values of a mapping.
func (l *loader) pairs(n *yaml.Node, want string) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil {
			return
		}
		if n.Kind != yaml.MappingNode {
			l.fail(n, "this must be %s, not %s", want, describe(n))
			return
		}
		for i := 0; i < len(n.Content) && yield(n.Content[i], n.Content[i+1]); i += 2 {
		}
	}
}

func (l *loader) list(n *yaml.Node, want string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		l.fail(n, "this must be %s, not %s", want, describe(n))
		return nil
	}
	return n.Content
}

// notEmpty reports an empty list or mapping.
func (l *loader) notEmpty(n *yaml.Node, advice string) {
	if n != nil && n.Kind != yaml.ScalarNode && len(n.Content) == 0 {
		l.fail(n, "this is empty; %s", advice)
	}
}

func (l *loader) scalar(n *yaml.Node, want string) (text string, ok bool) {
	if n == nil {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		l.fail(n, "this must be %s, not %s", want, describe(n))
		return "", false
	}
	return n.Value, true
}

func (l *loader) text(n *yaml.Node) string {
	text, _ := l.scalar(n, "text")
	return text
}

// filled reads text that is not empty.
func (l *loader) filled(n *yaml.Node) string {
	text, ok := l.scalar(n, "text")
	if ok && text == "" {
		l.fail(n, "this must not be empty")
	}
	return text
}

func (l *loader) name(n *yaml.Node, pattern *regexp.Regexp, rule string) string {
	text, ok := l.scalar(n, "a name")
	if ok && !pattern.MatchString(text) {
		l.fail(n, "name %s must have %s", quote(text), rule)
	}
	if ok && len(strings.TrimSuffix(text, Shrunk)) > maxName {
		l.fail(n, "name %s has more than %d characters", quote(text), maxName)
	}
	return text
}

// member reads the name of a process or a resource where it is declared.
func (l *loader) member(n *yaml.Node) string {
	return l.name(n, memberName, "letters, digits, dashes and underscores, and start with a letter")
}

func (l *loader) word(n *yaml.Node, what, where string, known ...string) string {
	text, ok := l.scalar(n, "a word")
	if ok && !slices.Contains(known, text) {
		l.unknown(n, what, text, where, known)
		return ""
	}
	return text
}

func (l *loader) words(n *yaml.Node, what, where string, known []string) []string {
	var words []string
	for _, item := range l.list(n, "a list, such as ["+known[0]+"]") {
		words = append(words, l.word(item, what, where, known...))
	}
	return words
}

func (l *loader) boolean(n *yaml.Node) bool {
	if _, ok := l.scalar(n, "true or false"); !ok {
		return false
	}
	return l.word(n, "value", "a field that is true or false", "true", "false") == "true"
}

func (l *loader) integer(n *yaml.Node) int64 {
	text, ok := l.scalar(n, "a whole number")
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		l.fail(n, "%s is not a whole number of at most 64 bits", quote(text))
	}
	return i
}

// count returns a reader of whole numbers that are not below least.
func (l *loader) count(least int) func(*yaml.Node) int { return l.countTo(least, math.MaxInt32) }

// countTo returns a reader of numbers from least to most.
func (l *loader) countTo(least, most int) func(*yaml.Node) int {
	return func(n *yaml.Node) int {
		bad := len(l.errs)
		i := l.integer(n)
		if n == nil || len(l.errs) > bad {
			return 0
		}
		if i < int64(least) || i > int64(most) {
			l.fail(n, "%d is not between %d and %d", i, least, most)
			return 0
		}
		return int(i)
	}
}

// duration reads a duration of 0 or more.
func (l *loader) duration(n *yaml.Node) Duration { return l.durationFrom(0)(n) }

// durationFrom returns a reader of durations that are not below least.
func (l *loader) durationFrom(least Duration) func(*yaml.Node) Duration {
	return func(n *yaml.Node) Duration {
		text, ok := l.scalar(n, "a duration, such as 5s or 200ms")
		if !ok {
			return 0
		}
		d, _ := l.parseDuration(n, text, least)
		return d
	}
}

// signed reads a duration that may be negative.
func (l *loader) signed(n *yaml.Node) Duration { return l.durationFrom(math.MinInt64)(n) }

func (l *loader) parseDuration(n *yaml.Node, text string, least Duration) (Duration, bool) {
	d, err := quantity.Duration(text, least)
	if err != nil {
		l.fail(n, "%s is %v", quote(text), err)
		return 0, false
	}
	return d, true
}

// span reads a range of durations, or one duration for both ends.
func (l *loader) span(n *yaml.Node) Range {
	text, ok := l.scalar(n, "a duration or a range, such as 5s or 1ms..5ms")
	if !ok {
		return Range{}
	}
	first, last, isRange := strings.Cut(text, "..")
	lo, ok := l.parseDuration(n, first, 0)
	hi := lo
	if ok && isRange {
		hi, ok = l.parseDuration(n, last, 0)
	}
	switch {
	case !ok:
		return Range{}
	case lo > hi:
		l.fail(n, "range %s: the first is above the second", quote(text))
	}
	return Range{lo, hi}
}

func optional[T any](n *yaml.Node, read func(*yaml.Node) T) *T {
	if n == nil {
		return nil
	}
	v := read(n)
	return &v
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return quote(n.Value)
}

func quote(text string) string { return strconv.Quote(nearest.Clip(text)) }

// unknown reports an unknown word. The message names the nearest known word and lists the
// known words.
func (l *loader) unknown(n *yaml.Node, what, word, where string, known []string) {
	if len(known) == 0 {
		l.fail(n, "unknown %s %s; %s declares none", what, quote(word), where)
		return
	}
	if len(l.errs) >= maxErrors {
		l.fail(n, "unknown %s", what) // this error is not shown, so the search is not worth it
		return
	}
	word = nearest.Clip(word)
	const most = 20
	list := strings.Join(known[:min(len(known), most)], ", ")
	if len(known) > most {
		list += ", …"
	}
	l.fail(n, "unknown %s %q in %s; did you mean %q? known: %s", what, word, where, nearest.Word(word, known), list)
}
