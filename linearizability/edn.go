package linearizability

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"olympos.io/encoding/edn"

	"lockstep/model"
)

// jepsenLock is the name of the lock of a history that names none.
const jepsenLock = "lock"

// streamJepsen reads a history of a lock as Jepsen writes it: EDN, one map per line, in the order of
// events.
//
//	{:type :invoke, :f :acquire, :process 0, :time 1200, :value nil}
//
// :type is :invoke, :ok, :fail (the call did nothing) or :info (unknown); :f is :acquire or
// :release. The lock is a :value that is a word, or the first element of a :value that is a vector.
// The second element, or the :value, may be a map with the :token or :fence of a grant. Instants are
// the :time in ns, or else the :index, or else the number of the line. The actions of :nemesis
// become notes.
func streamJepsen(in *bufio.Reader, file string, each func(*Op)) ([]Note, error) {
	p := jepsenParser{each: each, open: map[string]*Op{}, lost: map[string]int{}, levels: map[string]int{}}
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, errLineTooLong) {
			return nil, &FormatError{file, number, 1, fmt.Sprintf("the line is longer than %d bytes; an operation is one short map", lineBytesMax)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading history %s: line %d: %w", file, number, err)
		}
		if text := p.unwrapped(line); len(text) > 0 {
			if reason := p.add(text, number); reason != "" {
				return nil, &FormatError{file, number, 1, reason}
			}
		}
		if err != nil {
			clear(p.open) // their outcome is unknown
			p.handOver()
			return p.notes, nil
		}
	}
}

// jepsenParser makes operations of pairs of entries.
type jepsenParser struct {
	each   func(*Op)
	queue  []*Op // in order of call; the first is open
	notes  []Note
	clock  string         // the field with the instants
	last   int64          // instant
	lastAt int            // its line
	open   map[string]*Op // by process
	lost   map[string]int // by process: the line after which it may not come back
	levels map[string]int // by lock and process, above 0
}

// jepsenEntry is one line.
type jepsenEntry struct {
	Type    edn.Keyword `edn:"type"`
	F       edn.Keyword `edn:"f"`
	Process any         `edn:"process"`
	Time    *int64      `edn:"time"`
	Index   *int64      `edn:"index"`
	Value   any         `edn:"value"`
}

// unwrapped removes the text around the map of a line: the brackets of a file that is one vector,
// and the name of the record.
func (p *jepsenParser) unwrapped(line []byte) []byte {
	line = bytes.TrimSpace(line)
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("[")))
	if bytes.HasPrefix(line, []byte(";")) {
		return nil
	}
	line = bytes.TrimPrefix(line, []byte("#jepsen.history.Op"))
	if bytes.HasSuffix(line, []byte("}]")) || bytes.Equal(line, []byte("]")) {
		line = bytes.TrimSuffix(line, []byte("]"))
	}
	return bytes.TrimSpace(line)
}

// add takes one entry. It returns a reason if the entry is not valid.
func (p *jepsenParser) add(text []byte, number int) (reason string) {
	if text[0] != '{' {
		return fmt.Sprintf("%s is no entry; every line is one map, such as {:type :invoke, :f :acquire, :process 0, :time 0}", shorten(string(text)))
	}
	var e jepsenEntry
	decoder := edn.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&e); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "the line is cut off; the map has no end"
		}
		return misread(err)
	}
	var more any
	if err := decoder.Decode(&more); err == nil {
		return "there is something after the map; every line is one entry"
	}
	at, reason := p.instant(e, number)
	if reason != "" {
		return reason
	}
	if e.Process == edn.Keyword("nemesis") {
		p.notes = append(p.notes, Note{Of: "nemesis", AtNs: at, Text: strings.TrimSpace(fmt.Sprintf("%s %s", string(e.F), nemesisValue(e.Value)))})
		return ""
	}
	if e.F != "acquire" && e.F != "release" {
		return fmt.Sprintf(":f %s is none of a lock; it must be :acquire or :release", e.F)
	}
	n, ok := e.Process.(int64)
	if !ok {
		return fmt.Sprintf(":process %v is none; it must be a whole number, or :nemesis", e.Process)
	}
	process := fmt.Sprint(n)
	switch e.Type {
	case "invoke":
		return p.invoke(e, process, at, number)
	case "ok", "fail", "info":
		return p.complete(e, process, at)
	}
	return fmt.Sprintf(":type %s is unknown; it must be :invoke, :ok, :fail or :info", e.Type)
}

// misread returns the reason why an entry cannot be read.
func misread(err error) (reason string) {
	const whole = "whole numbers of at most 64 bits"
	var number *strconv.NumError
	var kind *edn.UnmarshalTypeError
	switch {
	case errors.As(err, &number):
		return fmt.Sprintf("%s is too large or too small; the numbers of a lock's history are "+whole, shorten(number.Num))
	case errors.As(err, &kind) && kind.Type.Kind() == reflect.Int64:
		return fmt.Sprintf("%s is no :time, :index or :process; these are "+whole, shorten(kind.Value))
	case errors.As(err, &kind):
		return fmt.Sprintf("%s is no :type and no :f; these are keywords, as in :type :invoke, :f :acquire", shorten(kind.Value))
	}
	return "not EDN: " + strings.TrimPrefix(err.Error(), "edn: ")
}

// instant returns the instant of an entry. All entries must have it in the same field.
func (p *jepsenParser) instant(e jepsenEntry, number int) (at int64, reason string) {
	clock := "line"
	at = int64(number)
	switch {
	case e.Time != nil:
		clock, at = ":time", *e.Time
	case e.Index != nil:
		clock, at = ":index", *e.Index
	}
	if p.clock == "" {
		p.clock, p.last = clock, at
	}
	switch {
	case p.clock != clock && clock == "line":
		return 0, p.clock + " is missing, which the entries before it have"
	case p.clock != clock:
		return 0, fmt.Sprintf("%s tells when this was, and %s of the entries before it", clock, p.clock)
	case at < p.last:
		return 0, fmt.Sprintf("%s %d is before the %d of line %d; a history is in the order in which it happened", clock, at, p.last, p.lastAt)
	case at < 0 || at > math.MaxInt64/2:
		return 0, fmt.Sprintf("%s %d is no instant", clock, at)
	}
	p.last, p.lastAt = at, number
	return at, ""
}

func (p *jepsenParser) invoke(e jepsenEntry, process string, at int64, number int) (reason string) {
	if op := p.open[process]; op != nil {
		return fmt.Sprintf("process %s calls while its call of line %d is open; a process has one at a time", process, op.Line)
	}
	if line, gone := p.lost[process]; gone {
		return fmt.Sprintf("process %s calls although nobody knows what became of its call of line %d; what comes after is another process", process, line)
	}
	lock, _, reason := lockAndToken(e.Value)
	if reason != "" {
		return reason
	}
	// Until it returns, it may still take effect.
	op := &Op{Process: process, Thread: 1, Lock: lock, Op: string(e.F), CallNs: at, Outcome: model.AnswerUnknown, Line: number}
	p.open[process] = op
	p.queue = append(p.queue, op)
	return ""
}

// handOver hands over the operations that were called before the first open call.
func (p *jepsenParser) handOver() {
	n := 0
	for n < len(p.queue) && p.open[p.queue[n].Process] != p.queue[n] {
		p.each(p.queue[n])
		n++
	}
	p.queue = slices.Delete(p.queue, 0, n)
}

func (p *jepsenParser) complete(e jepsenEntry, process string, at int64) (reason string) {
	op := p.open[process]
	if op == nil {
		return fmt.Sprintf("process %s returns from %s and has not called", process, e.F)
	}
	if op.Op != string(e.F) {
		return fmt.Sprintf("process %s returns from %s, and its call of line %d was :%s", process, e.F, op.Line, op.Op)
	}
	_, token, reason := lockAndToken(e.Value)
	if reason != "" {
		return reason
	}
	delete(p.open, process)
	if e.Type != "info" { // a call of unknown outcome has no return
		op.ReturnNs = &at
	}
	holds := op.Lock + "\x00" + process
	switch {
	case e.Type == "info":
		p.lost[process] = op.Line
	case e.Type == "fail":
		op.Outcome = model.AnswerFailed
	case e.F == "acquire":
		op.Outcome, op.Token = model.AnswerGranted, token
		p.levels[holds]++
	case p.levels[holds] > 1:
		op.Outcome = model.AnswerStillHeld
		p.levels[holds]--
	default:
		op.Outcome = model.AnswerReleased
		delete(p.levels, holds)
	}
	p.handOver()
	return ""
}

// lockAndToken reads a :value.
func lockAndToken(value any) (lock string, token *int64, reason string) {
	lock = jepsenLock
	if pair, ok := value.([]any); ok {
		if len(pair) != 2 {
			return "", nil, fmt.Sprintf(":value has %d parts; a vector is the lock and what else there is", len(pair))
		}
		lock, value = wordOf(pair[0]), pair[1]
		if lock == "" {
			return "", nil, fmt.Sprintf(":value names no lock: %v", pair[0])
		}
	} else if word := wordOf(value); word != "" {
		return word, nil, ""
	}
	m, _ := value.(map[any]any)
	for _, name := range []edn.Keyword{"token", "fence"} {
		if n, ok := m[name].(int64); ok {
			token = &n
		}
	}
	return lock, token, ""
}

// wordOf returns the text of an EDN value that is a word, "" for others.
func wordOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case edn.Keyword:
		return string(v)
	case edn.Symbol:
		return string(v)
	case int64:
		return fmt.Sprint(v)
	}
	return ""
}

// nemesisValue writes the value of a fault's action, shortened; "" for nil.
func nemesisValue(v any) string {
	if v == nil {
		return ""
	}
	text, err := edn.Marshal(v) // the entries of a map have no order
	if _, isMap := v.(map[any]any); err != nil || isMap {
		return ""
	}
	return shorten(string(text))
}
