package explain_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/explain"
	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

var update = flag.Bool("update", false, "write the fields of the JSON into testdata")

// played plays a scenario on a lock with seed 1, and returns its first failure by a judge.
func played(t *testing.T, h *sim.Host, sc *scenarios.Scenario, lock, judge string) (play.Verdict, judges.Finding) {
	t.Helper()
	v := play.Run(h, sc, find(t, lock), 1)
	f, ok := failure.First(v, judge)
	if !ok {
		t.Fatalf("%s on %s: no failure of %q", sc.Name, lock, judge)
	}
	return v, f
}

func find(t *testing.T, lock string) *subject.Subject {
	t.Helper()
	l, err := subject.Find(lock)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func builtIn(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	sc, err := scenarios.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// texts returns the lane and the text of each event.
func texts(x explain.Explanation) (list []string) {
	for _, e := range x.Events {
		list = append(list, e.Lane+": "+e.Text)
	}
	return list
}

// An explanation has the events that led to the failure, and no others: here the late unlock, the hold that it met, the
// grant of that hold, and the end of the hold for which the unlock was meant. The polls of the waiter are no part of it.
func TestTheEventsThatMatter(t *testing.T) {
	h := sim.NewHost(t)
	v, f := played(t, h, builtIn(t, "misdelete"), "setnx-del", "")
	x := explain.Of(h, v, f, "1.lockstep", "", explain.Commands{Replay: "replay it"})
	want := []string{
		"a/1: calls lock orders, lease 3.000s", "a/1: sends acquire (SET)", "server: orders: acquire (SET) of a/1 → OK", "server: orders: held by a/1 ×1, until 3.004s", "a/1: lock orders: granted",
		"b/1: calls lock orders, lease 10.000s", "server: orders: key orders ran out", "server: orders: free", "b/1: sends acquire (SET)", "server: orders: acquire (SET) of b/1 → OK",
		"server: orders: held by b/1 ×1, until 13.015s", "b/1: lock orders: granted", "a/1: calls unlock orders", "a/1: sends unlock (DEL)", "server: orders: unlock (DEL) of a → 1", "server: orders: free",
	}
	if got := texts(x); !slices.Equal(got, want) {
		t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	byNumber := map[int]explain.Event{}
	for _, e := range x.Events {
		byNumber[e.Event] = e
	}
	last := x.Events[len(x.Events)-1]
	var causes []string
	for _, n := range last.After {
		causes = append(causes, byNumber[n].Text)
	}
	if !slices.Equal(causes, []string{"held by b/1 ×1, until 13.015s", "unlock (DEL) of a → 1"}) || !last.Breaks {
		t.Errorf("the end of the hold is the consequence of %q, and breaks the promise: %v", causes, last.Breaks)
	}
	for _, e := range x.Events {
		if e.Breaks != slices.Contains([]string{"sends unlock (DEL)", "unlock (DEL) of a → 1"}, e.Text) && e.Event != last.Event {
			t.Errorf("%q breaks the promise: %v", e.Text, e.Breaks)
		}
	}
	if r := x.Request; r == nil || r.Victim != "b/1" || r.Site == nil || filepath.Base(r.Site.File) != "bare.go" || !strings.HasSuffix(r.Site.Function, ".release") || r.Site.Line == 0 {
		t.Errorf("the request is %+v", x.Request)
	}
	if c := x.Call; c == nil || c.Thread != "a/1" || c.Action != string(model.ActUnlock) || c.Site == nil || !strings.HasSuffix(c.Site.Function, ".Unlock") {
		t.Errorf("the call is %+v", x.Call)
	}
	if c := x.Kept.Control; c == nil || c.Lock != "setnx-cad" || c.Answer != string(model.NotHeld) {
		t.Errorf("the lock that keeps the promise is %+v", x.Kept.Control)
	}
	if len(x.Also) != 1 || x.Also[0].Judge != model.JudgeLinearizable || x.Cause.Defect != "SETNX-misdelete" || x.Kept.Hint == "" {
		t.Errorf("also %+v, cause %+v, hint %q", x.Also, x.Cause, x.Kept.Hint)
	}
}

// A fault that made the failure possible is an event of it. A fault of another process, and one that came later, are none.
func TestOnlyTheFaultsThatMatter(t *testing.T) {
	const text = `lockstep: 1
name: faults
locks: [setnx-cad]
processes: {a: {}, b: {}, c: {}}
steps:
  a/1:
    - lock: {name: orders, lease: 5s}
    - sleep: 7s
    - unlock: orders
  b/1:
    - at: 1s
    - lock: {name: orders, lease: 20s}
    - sleep: 10s
    - unlock: orders
  c/1:
    - sleep: 1s
faults:
  - {at: 2s, pause: a, for: 8s}
  - {at: 3s, pause: c, for: 1s}
  - {at: 12s, pause: b, for: 1s}
`
	sc, err := scenarios.Parse("faults.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	h := sim.NewHost(t)
	v, f := played(t, h, sc, "setnx-cad", model.JudgeMutualExclusion)
	var faults []string
	for _, e := range explain.Of(h, v, f, "", "", explain.Commands{}).Events {
		if e.Kind == string(model.KindFault) {
			faults = append(faults, e.Text)
		}
	}
	if len(faults) != 1 || !strings.Contains(faults[0], "pause of a") {
		t.Errorf("the faults are %q, want that of a", faults)
	}
}

// A limit has an excuse, which says what the controls show, and names no lock that keeps the promise.
func TestALimitHasAnExcuseInPlaceOfAControl(t *testing.T) {
	h := sim.NewHost(t)
	v, _ := played(t, h, builtIn(t, "pause-past-lease"), "redisson@4.7.0", "")
	v.ShowLimits(h)
	f, _ := failure.First(v, "")
	x := explain.Of(h, v, f, "", "", explain.Commands{})
	if x.Promise.Class != string(judges.ClassLimit) || !strings.Contains(x.Promise.Excuse, "pause of a") || x.Kept.Control != nil {
		t.Errorf("%s, excuse %q, control %+v", x.Promise.Class, x.Promise.Excuse, x.Kept.Control)
	}
}

// Whatever broke, the events come after their causes, the text has at most 60 lines, and it has the sentence of the
// judge.
func TestEachKindOfFailureIsExplained(t *testing.T) {
	files, err := filepath.Glob("../results/recordings/*.lockstep")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	h := sim.NewHost(t)
	seen := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rec, sc, l, err := play.ReadRecording(file, text)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := play.Replay(h, rec, sc, l)
		f, ok := failure.First(v, "")
		if !ok || seen[fmt.Sprint(f.Judge, f.Form)] > 1 {
			continue
		}
		seen[fmt.Sprint(f.Judge, f.Form)]++
		x := explain.Of(h, v, f, file, "", explain.Commands{Replay: "replay it", Mended: "try it"})
		known := map[int]bool{}
		for i, e := range x.Events {
			if i > 0 && e.Event <= x.Events[i-1].Event || slices.ContainsFunc(e.After, func(n int) bool { return !known[n] }) {
				t.Errorf("%s: event %d comes before its cause: %+v", file, i, e)
			}
			known[e.Event] = true
			if e.AtNs > failure.Until(f) && (f.Judge != model.JudgeTraffic || e.AtNs > f.AtNs+1e9) {
				t.Errorf("%s: an event after the failure: %+v", file, e)
			}
		}
		if len(x.Events) == 0 {
			t.Errorf("%s: no event led to %s", file, f.Judge)
		}
		shown := x.Text()
		if n := strings.Count(shown, "\n"); n > explain.LinesMost {
			t.Errorf("%s: %d lines", file, n)
		}
		for _, want := range []string{"breaks " + f.Judge, "promise: ", "replay it\n", "try it\n"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: %q is missing in\n%s", file, want, shown)
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %v were explained", seen)
	}
}

// A text that would be longer leaves out the first events, and says how many.
func TestALongTextLeavesOutTheFirstEvents(t *testing.T) {
	h := sim.NewHost(t)
	sc := builtIn(t, "crashed-watchdog")
	v, f := played(t, h, sc, "redisson@4.7.0", "")
	x := explain.Of(h, v, f, "", "", explain.Commands{})
	whole := x.Text()
	long := strings.Repeat("a long excuse ", 300)
	x.Promise.Excuse, x.Cause.Text, x.Kept.Hint = long, long, long
	for range 10 {
		x.Also = append(x.Also, explain.Also{Judge: "another", Why: long})
	}
	cut := x.Text()
	if strings.Contains(whole, " before\n") || !strings.Contains(cut, " before\n") || strings.Count(cut, "\n") > explain.LinesMost {
		t.Errorf("%d lines:\n%s\nand whole:\n%s", strings.Count(cut, "\n"), cut, whole)
	}
	if last := x.Events[len(x.Events)-1].Text; !strings.Contains(strings.Join(strings.Fields(cut), " "), last) {
		t.Errorf("the last event, %q, is missing in\n%s", last, cut)
	}
}

// shape lists the paths of all fields of a JSON value.
func shape(at string, value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			shape(at+"."+name, field, into)
		}
	case []any:
		for _, element := range v {
			shape(at+"[]", element, into)
		}
	default:
		into[fmt.Sprintf("%s %T", strings.TrimPrefix(at, "."), v)] = true
	}
}

// Programs rely on the names of the fields and on the kinds of their values. A change needs another Format and another
// description in docs/json.md.
func TestTheFormOfTheJSON(t *testing.T) {
	h := sim.NewHost(t)
	sc := builtIn(t, "misdelete")
	v, f := played(t, h, sc, "setnx-del", "")
	document, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string]any{
		"explanation": explain.Of(h, v, f, "1.lockstep", "", explain.Commands{}),
		"mend":        explain.Mended(h, v.Recording(), sc, v.Lock, "1.lockstep", "", nil),
	} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		paths := map[string]bool{}
		shape("", value, paths)
		var list []string
		for path := range paths {
			list = append(list, path)
			field, _, _ := strings.Cut(path, " ")
			field = strings.TrimSuffix(field[strings.LastIndexByte(field, '.')+1:], "[]")
			if !strings.Contains(string(document), "`"+field+"`") {
				t.Errorf("docs/json.md does not describe %s", path)
			}
		}
		slices.Sort(list)
		file, got := filepath.Join("testdata", name+".txt"), strings.Join(list, "\n")+"\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s has the fields\n%s\nand %s has\n%s\nIf a field went or means something else, raise explain.Format; then run this test with -update", name, got, file, want)
		}
	}
}

// A lock that compares values before it deletes is a mend of one that does not. The lock that broke the promise is none.
func TestAMendHoldsIfNoScheduleNearTheRecordingBreaksThePromise(t *testing.T) {
	h := sim.NewHost(t)
	sc := builtIn(t, "misdelete")
	v, _ := played(t, h, sc, "setnx-del", "")
	for lock, holds := range map[string]bool{"setnx-del": false, "setnx-cad": true} {
		runs := 0
		m := explain.Mended(h, v.Recording(), sc, find(t, lock), "1.lockstep", model.JudgeMisdelete, func(played, of int) {
			if played != runs || of != 221 {
				t.Errorf("%s: %d of %d runs were played, and %d were told", lock, played, of, runs)
			}
			runs++
		})
		if m.Holds != holds || m.Broke() == holds || runs != 221 {
			t.Errorf("%s: it holds is %v, want %v: %s", lock, m.Holds, holds, m.Text())
		}
		var parts []string
		for _, p := range m.Parts {
			parts = append(parts, fmt.Sprint(p.Name, " ", p.Runs))
			if (len(p.Broken) == 0) != holds {
				t.Errorf("%s, %s: %d runs broke the promise", lock, p.Name, len(p.Broken))
			}
		}
		if want := []string{"recording 1", "neighbours 20", "drawn 200"}; !slices.Equal(parts, want) {
			t.Errorf("%s: the parts are %q, want %q", lock, parts, want)
		}
	}
}

// The drawn schedules have faults of the kinds of the recording, and a recording without a fault has schedules without.
func TestTheJudgeOfAMendIsThatOfTheRecording(t *testing.T) {
	h := sim.NewHost(t)
	sc := builtIn(t, "misdelete")
	v, _ := played(t, h, sc, "setnx-del", "")
	// The scenario says what it expects of setnx-del, and nothing of a lock that keeps every promise in it.
	if m := explain.Mended(h, v.Recording(), sc, v.Lock, "", "", nil); m.Judge != model.JudgeMisdelete || !m.Promised() {
		t.Errorf("the judge is %q", m.Judge)
	}
	if m := explain.Mended(h, v.Recording(), sc, find(t, "setnx-cad"), "", "", nil); m.Promised() {
		t.Errorf("nobody says which promise is to be kept, and the judge is %q", m.Judge)
	}
}
