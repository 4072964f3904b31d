package scenarios

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/model"
	"lockstep/scenarios/subject"
)

// A copy equals its original and shares no memory with it.
func TestACloneSharesNothing(t *testing.T) {
	for _, sc := range builtinAndOdd(t) {
		c := sc.Clone()
		if !reflect.DeepEqual(sc, c) {
			t.Errorf("%s is copied as\n%+v\nand is\n%+v", sc.Name, c, sc)
		}
		eachMemory(reflect.ValueOf(sc), reflect.ValueOf(c), "sc", func(path string) { t.Errorf("%s: the copy shares %s", sc.Name, path) })
	}
	var sc Scenario
	if c := sc.Clone(); !reflect.DeepEqual(&sc, c) {
		t.Errorf("an empty scenario is copied as %+v", c)
	}
}

// eachMemory calls shared for each pointer, list and map that two equal values share.
func eachMemory(a, b reflect.Value, path string, shared func(path string)) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() {
			return
		}
		if a.Pointer() == b.Pointer() {
			shared(path)
		}
		eachMemory(a.Elem(), b.Elem(), path, shared)
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			shared(path)
		}
		for i := range a.Len() {
			eachMemory(a.Index(i), b.Index(i), path, shared)
		}
	case reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			shared(path)
		}
		for _, key := range a.MapKeys() {
			eachMemory(a.MapIndex(key), b.MapIndex(key), path, shared)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			eachMemory(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name, shared)
		}
	}
}

// fieldValues are values of the fields of steps and faults.
var fieldValues = map[string]string{
	"name": "x", "lease": "1s", "wait": "1s", "interruptible": "true", "unit": "seconds", "reply": "nil", "unlock": "always", "steps": "[close]",
	"holds": "1", "locked": "true", "ttl": "free", "queue": "[a/1]", "deadlines": "{a/1: 1s}", "to": "all", "count": "1", "resource": "stock", "take": "2",
	"for": "1s", "times": "2", "until": "5s", "at": "1s", "crash": "a", "pause": "a", "partition": "a", "wall_clock": "a", "step": "1s", "server": "restart",
	"keep_data": "true", "servers": "[1]", "lose_last": "2", "slot_of": "x", "key": "x", "do": "delete", "when": "{nth: 1}", "from": "1s",
}

// fieldsOf writes fields with their values. Of a field that is optional it writes only the one named with.
func fieldsOf(t *testing.T, fields []string, values map[string]string, with string) string {
	t.Helper()
	var parts []string
	for _, field := range fields {
		name, required := strings.CutSuffix(field, "!")
		if !required && name != with {
			continue
		}
		value := cmp.Or(values[name], fieldValues[name])
		if value == "" {
			t.Fatalf("the test has no value of the field %s: add one", name)
		}
		parts = append(parts, name+": "+value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// bareText returns a scenario with a step and a fault; "": without.
func bareText(step, fault string) string {
	text := "lockstep: 1\nname: x\nlocks: [x]\nresources: {stock: {start: 3}}\nprocesses: {a: {}, b: {}}\nsteps: {a/1: [close"
	if step != "" {
		text += ", {" + step + "}"
	}
	if text += "], b/1: [{use: {resource: stock}}]}\n"; fault != "" {
		text += "faults: [" + fault + "]\n"
	}
	return text
}

// Options leaves out each field of a step and of a fault that a file may leave out.
func TestOptionsLeaveOutEachField(t *testing.T) {
	leftOut := func(name, with, without string) {
		t.Helper()
		sc, err := Parse("with.yaml", []byte(with), AnyLock)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, with)
		}
		want, err := Parse("without.yaml", []byte(without), AnyLock)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, without)
		}
		for _, remove := range slices.Backward(sc.Options()) {
			remove()
		}
		sc.Tidy()
		if text := sc.Write(); text != want.Write() {
			t.Errorf("%s is not left out:\n%s", name, text)
		}
	}
	for _, row := range stepTable {
		if row.kind == StepRepeat {
			continue // it needs one of its two
		}
		values := map[string]string{"want": "x"}
		if len(row.want) > 0 {
			values["want"] = row.want[0]
		}
		for _, field := range row.fields {
			if strings.HasSuffix(field, "!") || field == "steps" {
				continue
			}
			step := func(with string) string { return string(row.kind) + ": " + fieldsOf(t, row.fields, values, with) }
			without := step("")
			if row.kind == StepRead {
				without = "" // it would look at nothing
			}
			leftOut(string(row.kind)+" "+field, bareText(step(field), ""), bareText(without, ""))
		}
	}
	faults := func(name string, fields []string, values map[string]string) {
		for _, field := range fields {
			if !strings.HasSuffix(field, "!") && !slices.Contains([]string{"for", "with"}, field) { // these two belong to a do
				without := fieldsOf(t, fields, values, "")
				if name == string(model.FaultPartition) {
					without = "" // its processes are left out, too
				}
				leftOut(name+" "+field, bareText("", fieldsOf(t, fields, values, field)), bareText("", without))
			}
		}
	}
	for _, row := range faultTable {
		values := map[string]string{}
		if row.kind == model.FaultRule {
			values["do"] = "drop"
		}
		faults(string(row.kind), row.fields, values)
	}
	for _, row := range serverTable {
		faults(string(row.does), row.fields, map[string]string{"server": string(row.does)})
	}
	for _, field := range []string{"process: a", "direction: reply", "command: GET", "script: renew", `channel: "*"`} {
		leftOut(field, bareText("", "{when: {nth: 1, "+field+"}, do: drop}"), bareText("", "{when: {nth: 1}, do: drop}"))
	}
	for _, field := range []string{"lock_objects: per_call", "wall_clock: {offset: 1s, drift_ppm: 3}", "client: {response_timeout: 1s, retry_attempts: 1, pool_size: 2, fair_wait: 3s}"} {
		leftOut(field, strings.Replace(bareText("", ""), "b: {}", "b: {"+field+"}", 1), bareText("", ""))
	}
	leftOut("an unused resource", strings.Replace(bareText("", ""), "start: 3}", "start: 3}, other: {start: 4}", 1), bareText("", ""))
	for _, field := range []string{"never_below: 0", "end: 3", "fence: l"} {
		used := bareText("with_lock: {name: l, steps: [{use: {resource: stock}}]}", "")
		leftOut(field, strings.Replace(used, "start: 3", "start: 3, "+field, 1), used)
	}
	for _, field := range []string{"watchdog: 7s", "server: {replicas: 1, lag: 2s}"} {
		leftOut(field, strings.Replace(bareText("", ""), "name: x\n", "name: x\n"+field+"\n", 1), bareText("", ""))
	}
}

// A process or a thread goes with all that names it, and the threads after it move up.
func TestProcessesAndThreadsGoWithWhatNamesThem(t *testing.T) {
	const text = `lockstep: 1
name: x
locks: [x]
processes: {a: {threads: 3}, b: {}}
steps:
  a/1: [{sleep: 1s}]
  a/2: [{lock: l}, {lock: m}, {read: {name: l, queue: [a/3, a/1], deadlines: {a/1: 1s, a/3: 2s}}}]
  a/3: [{interrupt: a/2}, {repeat: {times: 2, steps: [{interrupt: a/1}]}}]
  b/1: [{lock: m}, {interrupt: a/3}, {published: {name: l, to: a/1, count: 1}}, {published: {name: l, to: all, count: 1}}, {read: {name: l, deadlines: {a/1: 1s}}}]
faults:
  - {at: 1s, crash: a}
  - {at: 1s, partition: [a, b], for: 1s}
  - {when: {process: a}, do: drop}
  - {when: {process: b}, do: drop}
  - {when: {}, do: hold, until: {granted: a, executed: {process: b, script: unlock}}}
  - {when: {}, do: drop, until: {granted: a/2}}
  - {when: {}, do: hold, until: {ended: m, executed: {process: a, nth: 2}}}
`
	for _, c := range []struct {
		name, want string
		drop       func(sc *Scenario)
	}{
		{"a process", `processes: {b: {}}
steps:
  b/1: [{lock: m}, {published: {name: l, to: all, count: 1}}]
faults:
  - {at: 1s, partition: b, for: 1s}
  - {when: {process: b}, do: drop}
  - {when: {}, do: hold, until: {executed: {process: b, script: unlock}}}
  - {when: {}, do: drop}
  - {when: {}, do: hold, until: {ended: m}}
`, func(sc *Scenario) { sc.DropProcess("a") }},
		{"a thread", `processes: {a: {threads: 2}, b: {}}
steps:
  a/1: [{lock: l}, {lock: m}, {read: {name: l, queue: [a/2], deadlines: {a/2: 2s}}}]
  a/2: [{interrupt: a/1}]
  b/1: [{lock: m}, {interrupt: a/2}, {published: {name: l, to: all, count: 1}}]
faults:
  - {at: 1s, crash: a}
  - {at: 1s, partition: [a, b], for: 1s}
  - {when: {process: a}, do: drop}
  - {when: {process: b}, do: drop}
  - {when: {}, do: hold, until: {granted: a, executed: {process: b, script: unlock}}}
  - {when: {}, do: drop, until: {granted: a/1}}
  - {when: {}, do: hold, until: {ended: m, executed: {process: a, nth: 2}}}
`, func(sc *Scenario) { sc.DropThread("a", 1) }},
		{"the last thread of a process", `processes: {a: {threads: 3}, b: {}}
` + text[strings.Index(text, "steps:"):strings.Index(text, "  b/1:")] + text[strings.Index(text, "faults:"):], func(sc *Scenario) { sc.DropThread("b", 1) }},
	} {
		sc, err := Parse("x.yaml", []byte(text), AnyLock)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Parse("x.yaml", []byte("lockstep: 1\nname: x\nlocks: [x]\n"+c.want), AnyLock)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.drop(sc)
		if got := sc.Write(); got != want.Write() {
			t.Errorf("without %s:\n%s\nwant:\n%s", c.name, got, want.Write())
		}
	}
}

// Of the fields of a condition each may go, and the last one stays. A condition may go if its rule meets only
// one message.
func TestAConditionKeepsAField(t *testing.T) {
	const all = "until: {granted: a/1, ended: l, published: x, executed: {process: b, script: renew}}"
	for _, c := range []struct {
		name, when, until string
		options           int
		want              []string // the rule without what each option leaves out, and without what all of them do
	}{
		{"each field", "{}", all, 4, []string{
			"until: {ended: l, published: x, executed: {process: b, script: renew}}",
			"until: {granted: a/1, published: x, executed: {process: b, script: renew}}",
			"until: {granted: a/1, ended: l, executed: {process: b, script: renew}}",
			"until: {granted: a/1, ended: l, published: x}",
			"until: {granted: a/1}",
		}},
		{"the only field", "{after: 2}", "until: {ended: l}", 0, []string{"until: {ended: l}"}},
		{"the condition of one message", "{nth: 2}", "until: {ended: l}", 1, []string{"", ""}},
	} {
		text := func(until string) string {
			rule := "{when: " + c.when + ", do: hold"
			if until != "" {
				rule += ", " + until
			}
			return strings.Replace(bareText("", rule+"}"), "[close", "[{lock: l}, close", 1)
		}
		parse := func(text string) *Scenario {
			sc, err := Parse("x.yaml", []byte(text), AnyLock)
			if err != nil {
				t.Fatalf("%s: %v\n%s", c.name, err, text)
			}
			return sc
		}
		sc := parse(text(c.until))
		if n := len(sc.Options()); n != c.options || n+1 != len(c.want) {
			t.Fatalf("%s: %d options, want %d", c.name, n, c.options)
		}
		for i, want := range c.want {
			without := sc.Clone()
			options := without.Options()
			if i < len(options) {
				options = options[i : i+1]
			}
			for _, remove := range slices.Backward(options) {
				remove()
			}
			without.Tidy()
			if got, want := without.Write(), parse(text(want)).Write(); got != want {
				t.Errorf("%s, option %d:\n%s\nwant:\n%s", c.name, i, got, want)
			}
		}
	}
}

// A scenario whose rule waits for what can never happen is not complete.
func TestAScenarioThatWaitsInVainIsNotComplete(t *testing.T) {
	for _, until := range []string{"granted: a", "granted: a/1", "ended: l"} {
		text := strings.Replace(bareText("", "{when: {}, do: hold, until: {"+until+"}}"), "[close", "[{lock: l}, close", 1)
		sc, err := Parse("x.yaml", []byte(text), AnyLock)
		if err != nil {
			t.Fatal(err)
		}
		if !sc.Complete() {
			t.Errorf("%s: not complete", until)
		}
		sc.Places()[0].Replace()
		if sc.Complete() {
			t.Errorf("%s: complete, and nobody takes l", until)
		}
	}
}

// A number is changed only to one that a file may have.
func TestAmountsTakeWhatAFileMayHave(t *testing.T) {
	sc, err := Parse("odd.yaml", []byte(odd), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sc.Amounts()); n < 30 {
		t.Fatalf("odd has %d amounts", n)
	}
	taken, refused := 0, 0
	for i := range sc.Amounts() {
		for _, n := range []int64{0, 1, -1, 1000, int64(minLease), int64(minWatchdog), int64(maxDuration), math.MaxInt32, math.MaxInt64, math.MinInt64 + 1} {
			c := sc.Clone()
			a := c.Amounts()[i]
			if a.N == n {
				continue
			}
			if !a.Set(n) {
				refused++
				if !reflect.DeepEqual(c, sc) {
					t.Errorf("amount %d did not become %d, and changed", i, n)
				}
				continue
			}
			taken++
			c.SetFile("c.yaml")
			if again, err := Parse("c.yaml", []byte(c.Text), subject.Find); err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("amount %d became %d: %v\n%s", i, n, err, c.Text)
			}
		}
	}
	if taken < 50 || refused < 50 {
		t.Errorf("%d numbers were taken and %d refused", taken, refused)
	}
}
