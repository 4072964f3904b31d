package linearizability

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// readLines reads a history as JSON Lines, without guessing its format.
func readLines(r io.Reader, file string) (ops []Op, err error) {
	err = streamLines(bufio.NewReader(r), file, func(op *Op) { ops = append(ops, *op) })
	if err != nil {
		return nil, err
	}
	return ops, nil
}

func TestReadTakesEveryOperation(t *testing.T) {
	text := `{"process":"a","thread":1,"lock":"orders","op":"acquire","call_ns":0,"return_ns":1200000,"outcome":"granted","lease_ms":30000,"watchdog":true,"token":7,"arrived_ns":3}
{"process":"a","thread":1,"lock":"orders","op":"renew","call_ns":5,"return_ns":2000000,"outcome":"renewed","lease_ms":30000}
{"process":"a","thread":1,"lock":"orders","op":"hold_count","call_ns":1200000,"return_ns":1200001,"outcome":"ok","count":1}
 { "outcome" : "true", "op":"is_locked", "lock":"orders", "thread":2, "process":"b", "return_ns":1200003, "call_ns":1200002 }
{"process":"b","thread":2,"lock":"orders","op":"force_release","call_ns":1200004,"return_ns":1200005,"outcome":"released"}
{"process":"a","thread":1,"lock":"orders","op":"release","call_ns":1200004,"outcome":"unknown"}
{"process":"a","thread":1,"lock":"orders","op":"acquire","call_ns":1200005,"return_ns":1200005,"outcome":"busy","watchdog":false}
{"lock":"orders","op":"lost","call_ns":1200006,"return_ns":1200007}
{"process":"a","op":"crash","call_ns":1200006}
`
	for _, text := range []string{text, strings.TrimSuffix(text, "\n"), strings.ReplaceAll(text, "\n", "\r\n"), text + "\n \n"} {
		ops, err := readLines(strings.NewReader(text), "h")
		if err != nil {
			t.Fatal(err)
		}
		if len(ops) != 9 {
			t.Fatalf("%d operations, want 9", len(ops))
		}
		first := Op{Process: "a", Thread: 1, Lock: "orders", Op: OpAcquire, CallNs: 0, ReturnNs: new(int64(1200000)), Outcome: "granted",
			LeaseMs: new(int64(30000)), Watchdog: true, Token: new(int64(7)), ArrivedNs: new(int64(3)), Line: 1}
		if !reflect.DeepEqual(ops[0], first) {
			t.Errorf("got %+v, want %+v", ops[0], first)
		}
		if op := ops[5]; op.ReturnNs != nil || op.Line != 6 {
			t.Errorf("got %+v", op)
		}
	}
}

func TestReadTakesAnEmptyHistory(t *testing.T) {
	for _, text := range []string{"", "\n", "\n\n"} {
		if ops, err := readLines(strings.NewReader(text), "h"); err != nil || len(ops) != 0 {
			t.Errorf("%q: %v, %v", text, ops, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	const good = `{"process":"a","thread":1,"lock":"l","op":"acquire","call_ns":10,"return_ns":20,"outcome":"granted"}` + "\n"
	for _, c := range []struct{ rule, text, want string }{
		{"a field that nobody knows", `{"proces":"a"}`, `h:1:2: unknown field "proces"; a line may have process, thread,`},
		{"a field in another case", `{"Process":"a"}`, `h:1:2: unknown field "Process"`},
		{"a field twice", `{"process":"a","process":"b"}`, `h:1:16: field "process" stands twice`},
		{"text that is not JSON", good + `acquire a 1`, `h:2:1: the line does not start with {`},
		{"a list", `[]`, `h:1:1: the line does not start with {`},
		{"only punctuation", `,:,`, `the line does not start with {`},
		{"a line that is cut off", good + `{"process":"a","thr`, `h:2:20: the line is cut off`},
		{"a line that is cut off in a value", good + `{"process":"a","thread":`, `the line is cut off`},
		{"a missing comma", `{"process":"a" "thread":1}`, `h:1:16: not JSON: `},
		{"two objects on a line", `{"op":"crash","process":"a","call_ns":1} {}`, `h:1:42: there is something after the object`},
		{"an empty line in the middle", good + "\n\n" + good, `h:2:1: the line is empty`},
		{"bytes that are not UTF-8", "{\"process\":\"\xff\"}", `h:1:13: the line is not UTF-8`},
		{"a line without end", "{" + strings.Repeat(" ", 1<<20), `h:1:1: the line is longer than 1048576 bytes`},
		{"a string for a number", `{"thread": "1"}`, `h:1:12: "thread" is "1"; it must be an integer`},
		{"a fraction", `{"call_ns":1.5}`, `h:1:12: "call_ns" is 1.5; it must be an integer`},
		{"an exponent", `{"call_ns":1e3}`, `"call_ns" is 1e3; it must be an integer`},
		{"a number too large", `{"call_ns":9223372036854775808}`, `it must be an integer of at most 63 bits`},
		{"null", `{"lease_ms":null}`, `h:1:13: "lease_ms" is null; it must be an integer`},
		{"a number for a string", `{"process":1}`, `h:1:12: "process" is 1; it must be a string`},
		{"a bool as a string", `{"watchdog":"true"}`, `h:1:13: "watchdog" is "true"; it must be true or false`},
		{"a thread below zero", `{"thread":-1}`, `h:1:11: "thread" is -1; it must be at least 0`},
		{"a lease of nothing", `{"lease_ms":0}`, `h:1:13: "lease_ms" is 0; it must be at least 1`},
		{"no op", `{"process":"a"}`, `h:1:1: "op" is missing; it must be acquire, release, renew,`},
		{"an op that nobody knows", `{"op":"lock"}`, `h:1:7: unknown op "lock"; it must be acquire, release,`},
		{"no call", `{"op":"crash","process":"a"}`, `h:1:1: "call_ns" is missing`},
		{"no process", `{"op":"acquire","call_ns":1}`, `h:1:1: "process" is missing`},
		{"an empty process", `{"op":"acquire","call_ns":1,"process":""}`, `h:1:39: "process" is missing; it must be the name of the process, not empty`},
		{"no thread", `{"op":"acquire","call_ns":1,"process":"a"}`, `h:1:1: "thread" is missing`},
		{"no lock", `{"op":"acquire","call_ns":1,"process":"a","thread":1}`, `h:1:1: "lock" is missing`},
		{"no lock that was lost", `{"op":"lost","call_ns":1,"return_ns":2}`, `h:1:1: "lock" is missing`},
		{"no outcome", `{"op":"acquire","call_ns":1,"process":"a","thread":1,"lock":"l"}`, `h:1:1: "outcome" is missing; it must be granted, busy, failed or unknown`},
		{"an outcome of another op", `{"op":"acquire","call_ns":1,"process":"a","thread":1,"lock":"l","outcome":"released"}`, `h:1:75: acquire cannot have the outcome "released"; it must be granted, busy, failed or unknown`},
		{"an unknown read", `{"op":"is_locked","call_ns":1,"process":"a","thread":1,"lock":"l","outcome":"unknown"}`, `is_locked cannot have the outcome "unknown"; it must be true or false`},
		{"an outcome as a bool", `{"op":"is_locked","call_ns":1,"process":"a","thread":1,"lock":"l","outcome":true}`, `h:1:77: "outcome" is true; it must be a string`},
		{"a crash with an outcome", `{"op":"crash","call_ns":1,"process":"a","outcome":"ok"}`, `h:1:51: crash has no outcome`},
		{"no return", `{"op":"acquire","call_ns":1,"process":"a","thread":1,"lock":"l","outcome":"granted"}`, `h:1:1: "return_ns" is missing; it must be an integer in nanoseconds; only the outcome unknown has none`},
		{"a lost key without an end", `{"op":"lost","call_ns":1,"lock":"l"}`, `h:1:1: "return_ns" is missing`},
		{"an unknown outcome with a return", `{"op":"acquire","call_ns":1,"return_ns":2,"process":"a","thread":1,"lock":"l","outcome":"unknown"}`, `h:1:41: an operation of unknown outcome`},
		{"a return before its call", `{"op":"acquire","call_ns":3,"return_ns":2,"process":"a","thread":1,"lock":"l","outcome":"granted"}`, `h:1:41: return_ns 2 is before call_ns 3`},
		{"an arrival before the call", `{"op":"acquire","call_ns":3,"return_ns":4,"arrived_ns":2,"process":"a","thread":1,"lock":"l","outcome":"granted"}`, `h:1:56: arrived_ns 2 is before call_ns 3`},
		{"an arrival after the return", `{"op":"acquire","call_ns":3,"return_ns":4,"arrived_ns":5,"process":"a","thread":1,"lock":"l","outcome":"granted"}`, `h:1:56: arrived_ns 5 is after return_ns 4`},
		{"a field of another op", `{"op":"release","call_ns":3,"return_ns":4,"token":5,"process":"a","thread":1,"lock":"l","outcome":"released"}`, `h:1:51: release has no "token"; it belongs to acquire`},
		{"a renewal of no length", `{"op":"renew","call_ns":3,"return_ns":4,"process":"a","thread":1,"lock":"l","outcome":"renewed"}`, `"lease_ms" is missing; it must be how long the renewed lease runs`},
		{"a watchdog without a lease", `{"op":"acquire","call_ns":3,"return_ns":4,"process":"a","thread":1,"lock":"l","outcome":"granted","watchdog":true}`, `"lease_ms" is missing; it must be how long the lease lives on`},
		{"a count that is not there", `{"op":"hold_count","call_ns":3,"return_ns":4,"process":"a","thread":1,"lock":"l","outcome":"ok"}`, `"count" is missing`},
		{"lines out of order", good + `{"process":"b","thread":1,"lock":"l","op":"acquire","call_ns":9,"return_ns":20,"outcome":"busy"}`, `h:2:63: call_ns 9 is before 10, that of line 1`},
		{"two open calls of a thread", good + `{"process":"a","thread":1,"lock":"m","op":"acquire","call_ns":19,"return_ns":20,"outcome":"busy"}`, `h:2:63: a/1 calls at 19 while its call of line 1 is open until 20`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			ops, err := readLines(strings.NewReader(c.text), "h")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			var format *FormatError
			if ops != nil || !errors.As(err, &format) {
				t.Errorf("got %d operations and a %T", len(ops), err)
			}
		})
	}
}

func TestReadLetsCallsOverlapWhere(t *testing.T) {
	for _, c := range []struct{ rule, text string }{
		{"one returns as the next is called", `
{"process":"a","thread":1,"lock":"l","op":"acquire","call_ns":1,"return_ns":5,"outcome":"granted"}
{"process":"a","thread":1,"lock":"l","op":"release","call_ns":5,"return_ns":6,"outcome":"released"}`},
		{"the watchdog renews", `
{"process":"a","thread":1,"lock":"l","op":"release","call_ns":1,"return_ns":5,"outcome":"still_held"}
{"process":"a","thread":1,"lock":"l","op":"renew","call_ns":2,"return_ns":9,"outcome":"renewed","lease_ms":1}
{"process":"a","thread":1,"lock":"l","op":"release","call_ns":6,"return_ns":7,"outcome":"released"}`},
		{"the call before is of unknown outcome", `
{"process":"a","thread":1,"lock":"l","op":"acquire","call_ns":1,"outcome":"unknown"}
{"process":"a","thread":1,"lock":"l","op":"release","call_ns":2,"return_ns":3,"outcome":"released"}`},
		{"it is another thread", `
{"process":"a","thread":1,"lock":"l","op":"acquire","call_ns":1,"return_ns":5,"outcome":"granted"}
{"process":"a","thread":2,"lock":"l","op":"acquire","call_ns":2,"return_ns":6,"outcome":"busy"}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if _, err := readLines(strings.NewReader(c.text[1:]), "h"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadPassesOnTheReadersError(t *testing.T) {
	_, err := readLines(iotest.ErrReader(io.ErrClosedPipe), "h")
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

// FuzzRead checks that no input makes the reader or the judge panic.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{", "{}", "[1]", `{"op":}`, "\xff", `{"op":"crash","process":"a","call_ns":1}`,
		`{"process":"a","thread":1,"lock":"l","op":"acquire","call_ns":0,"return_ns":12,"outcome":"granted","lease_ms":3,"watchdog":true,"token":7,"arrived_ns":3}` + "\n" +
			`{"process":"b","thread":1,"lock":"l","op":"acquire","call_ns":5,"outcome":"unknown","lease_ms":9223372036854775807}` + "\n" +
			`{"process":"a","thread":1,"lock":"l","op":"hold_count","call_ns":9223372036854775806,"return_ns":9223372036854775807,"outcome":"ok","count":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ops, err := readLines(strings.NewReader(string(data)), "h")
		if err != nil {
			if ops != nil {
				t.Errorf("%d operations beside %v", len(ops), err)
			}
			return
		}
		for i, op := range ops {
			if op.Line < 1 || i > 0 && op.CallNs < ops[i-1].CallNs {
				t.Errorf("operation %d: %+v", i, op)
			}
		}
		for _, spec := range []string{"reentrant", "fair", "fenced"} {
			Check(ops, Options{Spec: spec, StepLimit: 10_000})
		}
	})
}

// lineReader returns one line per Read.
type lineReader struct {
	line  func(i int) string // "" at the end
	given int
}

func (r *lineReader) Read(p []byte) (int, error) {
	text := r.line(r.given)
	if text == "" {
		return 0, io.EOF
	}
	r.given++
	return copy(p, text), nil
}

// The reader hands a complete operation over while it reads more lines, since a history may not fit
// into memory.
func TestOperationsAreHandedOverWhileMoreIsRead(t *testing.T) {
	const lines = 400
	for _, c := range []struct {
		name string
		line func(i int) string
		each int // lines of an operation
		ops  int // operations that are complete after all lines
		open int // lines after which the first operation is complete; 0: at once
	}{
		{"JSON Lines", func(i int) string {
			return fmt.Sprintf(`{"process":"a","thread":1,"lock":"l","op":"is_locked","call_ns":%d,"return_ns":%d,"outcome":"false"}`+"\n", 10*i, 10*i+5)
		}, 1, lines, 0},
		{"EDN", func(i int) string {
			return fmt.Sprintf("{:type %s, :f %s, :process 0, :time %d}\n", [...]string{":invoke", ":ok"}[i%2], [...]string{":acquire", ":release"}[i/2%2], i)
		}, 2, lines / 2, 0},
		{"EDN, behind a call that is open for long", func(i int) string {
			switch i {
			case 0:
				return "{:type :invoke, :f :acquire, :process 1, :time 0}\n"
			case lines / 2:
				return fmt.Sprintf("{:type :info, :f :acquire, :process 1, :time %d}\n", i)
			}
			j := i - 1 - i/(lines/2)
			return fmt.Sprintf("{:type %s, :f %s, :process 0, :time %d}\n", [...]string{":invoke", ":ok"}[j%2], [...]string{":acquire", ":release"}[j/2%2], i)
		}, 2, lines / 2, lines / 2},
	} {
		in, ops := &lineReader{}, 0
		in.line = func(i int) string {
			switch {
			case i == lines && ops < c.ops:
				t.Errorf("%s: %d operations of %d handed over when all lines but the end were read", c.name, ops, c.ops)
			case i == lines:
				return ""
			case c.open > 0 && i <= c.open && ops > 0:
				t.Errorf("%s: operation %d was handed over before the first", c.name, ops)
			case c.open == 0 && i > 20 && ops < (i-20)/c.each:
				t.Errorf("%s: %d operations handed over after %d lines", c.name, ops, i)
			}
			if t.Failed() {
				return ""
			}
			return c.line(i)
		}
		var last int64 = -1
		if _, err := Stream(in, "h", func(op *Op) {
			ops++
			if op.CallNs < last {
				t.Errorf("%s: called at %d, after %d", c.name, op.CallNs, last)
			}
			last = op.CallNs
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Empty lines at the end are no error, unless they have no end.
func TestEmptyLinesWithoutAnEnd(t *testing.T) {
	const call = `{"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":0,"return_ns":5,"outcome":"granted"}` + "\n"
	if _, err := ReadHistory(strings.NewReader(call+strings.Repeat("\n", blankMost)), "h"); err != nil {
		t.Error(err)
	}
	_, err := ReadHistory(io.MultiReader(strings.NewReader(call), endless('\n')), "h")
	if want := "h:2:1: the line is empty, and so are the next 1000; every line is one operation"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// endless is a reader of a byte without an end.
type endless byte

func (e endless) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = byte(e)
	}
	return len(to), nil
}
