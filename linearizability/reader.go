package linearizability

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lockstep/model"
)

// lineBytesMax is the longest line that is read; a line of the format has some
// 200 bytes.
const lineBytesMax = 1 << 20

// A FormatError is the error of an invalid line of a history. It says what would be valid.
type FormatError struct {
	File   string
	Line   int // from 1
	Column int // from 1, in bytes; 1 also if the whole line is wrong
	Reason string
}

// Error returns file:line:column: reason.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// blankMost limits the empty lines at the end of a history.
const blankMost = 1000

// streamLines reads a history as JSON Lines, one operation per line in order of call_ns.
func streamLines(in *bufio.Reader, file string, each func(*Op)) error {
	threads := openCalls{}
	var last *Op
	blank := 0 // the first of the blank lines just read
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, errLineTooLong) {
			return &FormatError{file, number, 1, fmt.Sprintf("the line is longer than %d bytes; an operation is one short JSON object", lineBytesMax)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading history %s: line %d: %w", file, number, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if blank > 0 {
				return &FormatError{file, blank, 1, "the line is empty; every line is one operation"}
			}
			p := lineParser{text: line}
			op, perr := p.parse()
			if perr == nil {
				op.Line = number
				perr = p.inOrder(&op, last, threads)
			}
			if perr != nil {
				return &FormatError{file, number, perr.column, perr.reason}
			}
			last = &op
			each(&op)
		} else if blank == 0 && err == nil {
			blank = number
		} else if blank > 0 && err == nil && number-blank == blankMost {
			return &FormatError{file, blank, 1, fmt.Sprintf("the line is empty, and so are the next %d; every line is one operation", blankMost)}
		}
		if err != nil {
			return nil
		}
	}
}

var errLineTooLong = errors.New("line too long")

// readLine returns the next line without its end, and io.EOF with the last.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > lineBytesMax {
			return nil, errLineTooLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}

// openCall is the last call of a thread whose return is known.
type openCall struct {
	line     int
	returnNs int64
}

// openCalls holds the calls that may be open, by thread.
type openCalls map[string]openCall

// forget drops the calls that had returned by an instant, whenever the number of calls has doubled.
func (c openCalls) forget(at int64) {
	if n := len(c); n >= 1024 && n&(n-1) == 0 {
		maps.DeleteFunc(c, func(_ string, call openCall) bool { return call.returnNs <= at })
	}
}

// lineError is an error in a line, with its place in the line.
type lineError struct {
	column int
	reason string
}

// lineParser reads one line by hand, token by token: encoding/json would accept a field in another
// case, and a field twice, and would give no column.
type lineParser struct {
	text   []byte
	at     map[string]int // column of each field's value
	fields map[string]json.RawMessage
}

var fieldNames = []string{
	"process", "thread", "lock", "op", "call_ns", "return_ns", "outcome",
	"lease_ms", "watchdog", "token", "arrived_ns", "count",
}

// fieldsOf names the operations that have a field. All operations have the fields that it does not
// list.
var fieldsOf = map[string][]string{
	"lease_ms":   {OpAcquire, OpRelease, OpRenew},
	"watchdog":   {OpAcquire},
	"token":      {OpAcquire},
	"arrived_ns": {OpAcquire},
	"count":      {OpHoldCount},
}

func (p *lineParser) parse() (Op, *lineError) {
	if err := p.split(); err != nil {
		return Op{}, err
	}
	op, thread, err := p.values()
	if err == nil {
		err = p.fit(&op)
	}
	if err == nil {
		err = p.names(&op, thread)
	}
	if err == nil {
		err = p.answers(&op)
	}
	if err == nil {
		err = p.times(&op)
	}
	return op, err
}

// values reads each field by its type. thread is nil if the line has none.
func (p *lineParser) values() (op Op, thread *int64, failed *lineError) {
	str := func(name string) string {
		raw, ok := p.fields[name]
		if !ok || failed != nil {
			return ""
		}
		var v string
		if raw[0] != '"' || json.Unmarshal(raw, &v) != nil {
			failed = p.wrongType(name, "a string")
		}
		return v
	}
	num := func(name string, least int64) *int64 {
		raw, ok := p.fields[name]
		if !ok || failed != nil {
			return nil
		}
		v, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			failed = p.wrongType(name, "an integer of at most 63 bits, without fraction or exponent")
		} else if v < least {
			failed = &lineError{p.at[name], fmt.Sprintf("%q is %d; it must be at least %d", name, v, least)}
		}
		return &v
	}
	op.Op, op.Process, op.Lock, op.Outcome = str("op"), str("process"), str("lock"), str("outcome")
	thread = num("thread", 0)
	if call := num("call_ns", -forever); call != nil {
		op.CallNs = *call
	}
	op.ReturnNs = num("return_ns", -forever)
	op.LeaseMs = num("lease_ms", 1)
	op.Token = num("token", 0)
	op.ArrivedNs = num("arrived_ns", -forever)
	op.Count = num("count", 0)
	if raw, ok := p.fields["watchdog"]; ok && failed == nil {
		if string(raw) != "true" && string(raw) != "false" {
			failed = p.wrongType("watchdog", "true or false")
		}
		op.Watchdog = string(raw) == "true"
	}
	return op, thread, failed
}

// fit checks that the operation is known, and has the fields of the line.
func (p *lineParser) fit(op *Op) *lineError {
	if p.fields["op"] == nil {
		return p.missing("op", oneOf(opNames))
	}
	if !slices.Contains(opNames, op.Op) {
		return &lineError{p.at["op"], fmt.Sprintf("unknown op %q; it must be %s", op.Op, oneOf(opNames))}
	}
	for _, name := range fieldNames {
		if ops, ok := fieldsOf[name]; ok && p.fields[name] != nil && !slices.Contains(ops, op.Op) {
			return &lineError{p.at[name], fmt.Sprintf("%s has no %q; it belongs to %s", op.Op, name, oneOf(ops))}
		}
	}
	return nil
}

// names checks that the line has the instant of the call, its caller and its lock.
func (p *lineParser) names(op *Op, thread *int64) *lineError {
	if p.fields["call_ns"] == nil {
		return p.missing("call_ns", "when the call was made, an integer in nanoseconds")
	}
	if thread != nil {
		if *thread > 1<<31-1 {
			return &lineError{p.at["thread"], fmt.Sprintf("\"thread\" is %d; it must be at most %d", *thread, 1<<31-1)}
		}
		op.Thread = int(*thread)
	}
	switch {
	case op.Process == "" && op.Op != OpLost:
		return p.missing("process", "the name of the process, not empty")
	case thread == nil && !op.environment():
		return p.missing("thread", "the number of the thread in its process")
	case op.Lock == "" && op.Op != OpCrash:
		return p.missing("lock", "the name of the lock, not empty")
	}
	return nil
}

// answers checks that the operation can have the outcome of the line.
func (p *lineParser) answers(op *Op) *lineError {
	given, allowed := p.fields["outcome"] != nil, outcomes[op.Op]
	switch {
	case op.environment() && given:
		return &lineError{p.at["outcome"], fmt.Sprintf("%s has no outcome; leave it out", op.Op)}
	case !op.environment() && !given:
		return p.missing("outcome", oneOf(allowed))
	case !op.environment() && !slices.Contains(allowed, op.Outcome):
		return &lineError{p.at["outcome"], fmt.Sprintf("%s cannot have the outcome %q; it must be %s", op.Op, op.Outcome, oneOf(allowed))}
	}
	return nil
}

// times checks the times of one line against each other.
func (p *lineParser) times(op *Op) *lineError {
	unknown := op.Outcome == model.AnswerUnknown
	switch {
	case unknown && op.ReturnNs != nil:
		return &lineError{p.at["return_ns"], "an operation of unknown outcome may still take effect and has no return_ns; leave it out"}
	case !unknown && op.ReturnNs == nil && op.Op != OpCrash:
		return p.missing("return_ns", "an integer in nanoseconds; only the outcome unknown has none")
	case op.ReturnNs != nil && *op.ReturnNs < op.CallNs:
		return &lineError{p.at["return_ns"], fmt.Sprintf("return_ns %d is before call_ns %d", *op.ReturnNs, op.CallNs)}
	case op.ArrivedNs != nil && *op.ArrivedNs < op.CallNs:
		return &lineError{p.at["arrived_ns"], fmt.Sprintf("arrived_ns %d is before call_ns %d", *op.ArrivedNs, op.CallNs)}
	case op.ArrivedNs != nil && op.ReturnNs != nil && *op.ArrivedNs > *op.ReturnNs:
		return &lineError{p.at["arrived_ns"], fmt.Sprintf("arrived_ns %d is after return_ns %d", *op.ArrivedNs, *op.ReturnNs)}
	case op.Op == OpHoldCount && op.Count == nil:
		return p.missing("count", "the count that was read")
	case op.Op == OpRenew && op.startsLease() && op.LeaseMs == nil:
		return p.missing("lease_ms", "how long the renewed lease runs, in milliseconds")
	case op.Watchdog && op.startsLease() && op.LeaseMs == nil:
		return p.missing("lease_ms", "how long the lease lives on when its watchdog dies, in milliseconds")
	}
	return nil
}

// inOrder checks the line against those before it.
func (p *lineParser) inOrder(op, before *Op, threads openCalls) *lineError {
	if before != nil && op.CallNs < before.CallNs {
		return &lineError{p.at["call_ns"], fmt.Sprintf("call_ns %d is before %d, that of line %d; lines must be in order of call_ns",
			op.CallNs, before.CallNs, before.Line)}
	}
	if op.environment() || op.Op == OpRenew {
		return nil
	}
	last, ok := threads[op.owner()]
	if ok && op.CallNs < last.returnNs {
		return &lineError{p.at["call_ns"], fmt.Sprintf("%s calls at %d while its call of line %d is open until %d; a thread has one open call at a time (other than renew)",
			op.owner(), op.CallNs, last.line, last.returnNs)}
	}
	if !op.open() {
		if !ok {
			threads.forget(op.CallNs)
		}
		threads[op.owner()] = openCall{op.Line, *op.ReturnNs}
	}
	return nil
}

// split takes the object apart into fields with their columns.
func (p *lineParser) split() *lineError {
	p.at, p.fields = map[string]int{}, map[string]json.RawMessage{}
	if !utf8.Valid(p.text) {
		i := 0
		for i < len(p.text) {
			r, n := utf8.DecodeRune(p.text[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return &lineError{i + 1, "the line is not UTF-8"}
	}
	dec := json.NewDecoder(bytes.NewReader(p.text))
	start := p.next(0)
	if start >= len(p.text) || p.text[start] != '{' {
		return &lineError{start + 1, "the line does not start with {; every line is one JSON object"}
	}
	if _, err := dec.Token(); err != nil {
		return p.syntax(err, dec)
	}
	for dec.More() {
		at := p.next(int(dec.InputOffset()))
		token, err := dec.Token()
		if err != nil {
			return p.syntax(err, dec)
		}
		name, ok := token.(string)
		if !ok {
			return &lineError{at + 1, "a field's name must be a string"}
		}
		if !slices.Contains(fieldNames, name) {
			return &lineError{at + 1, fmt.Sprintf("unknown field %q; a line may have %s", name, strings.Join(fieldNames, ", "))}
		}
		if _, twice := p.fields[name]; twice {
			return &lineError{at + 1, fmt.Sprintf("field %q stands twice; once is enough", name)}
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return p.syntax(err, dec)
		}
		p.fields[name] = raw
		p.at[name] = int(dec.InputOffset()) - len(raw) + 1
	}
	if _, err := dec.Token(); err != nil {
		return p.syntax(err, dec)
	}
	if rest := p.next(int(dec.InputOffset())); rest < len(p.text) {
		return &lineError{rest + 1, "there is something after the object; every line is one JSON object"}
	}
	return nil
}

// next returns the offset of the first token at offset or later.
func (p *lineParser) next(offset int) int {
	for offset < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[offset]) >= 0 {
		offset++
	}
	return offset
}

func (p *lineParser) syntax(err error, dec *json.Decoder) *lineError {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &lineError{len(p.text) + 1, "the line is cut off; the object has no end"}
	}
	// The decoder counts the offset of a syntax error from different places, so this uses the end
	// of the last good token, which is certain.
	return &lineError{min(p.next(int(dec.InputOffset()))+1, len(p.text)+1), "not JSON: " + strings.TrimPrefix(err.Error(), "json: ")}
}

func (p *lineParser) missing(name, right string) *lineError {
	column := 1
	if at, ok := p.at[name]; ok {
		column = at
	}
	return &lineError{column, fmt.Sprintf("%q is missing; it must be %s", name, right)}
}

func (p *lineParser) wrongType(name, right string) *lineError {
	return &lineError{p.at[name], fmt.Sprintf("%q is %s; it must be %s", name, shorten(string(p.fields[name])), right)}
}

func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
