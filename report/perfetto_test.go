package report_test

import (
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"lockstep/internal/filetest"
	"lockstep/model"
	"lockstep/report"
)

var update = flag.Bool("update", false, "write the trace of a small run into testdata")

// A traced is an event of a trace.
type traced struct {
	Ph, Name, Cat, Bp, S string
	Ts, Dur              json.Number
	Pid, Tid, ID         int
	Args                 map[string]any
}

// ns returns a time of a trace in nanoseconds.
func ns(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, part, _ := strings.Cut(string(n), ".")
	ns, err := strconv.ParseInt(whole+(part + "000")[:3], 10, 64)
	if err != nil || len(part) > 3 {
		t.Fatalf("the time %s: %v", n, err)
	}
	return ns
}

// events returns the events of a trace.
func events(t *testing.T, text string) []traced {
	t.Helper()
	var got struct{ TraceEvents []traced }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	return got.TraceEvents
}

// A track is known by its process and its number.
type track struct{ pid, tid int }

// sound checks the rules of the format: each track has a name, the slices of a track nest, and each flow leads
// from a slice to a slice that is not earlier.
func sound(t *testing.T, all []traced) (names map[track]string) {
	t.Helper()
	names = map[track]string{}
	open, begun, ended := map[track][]int64{}, map[int]int64{}, map[int]bool{}
	last := map[track]traced{} // slice
	var now int64
	for _, e := range all {
		k := track{e.Pid, e.Tid}
		if e.Ph == "M" {
			if e.Name == "thread_name" {
				names[k] = e.Args["name"].(string)
			}
			continue
		}
		at := ns(t, e.Ts)
		if at < now || names[k] == "" {
			t.Errorf("%v is before the one before it, or has no track", e)
		}
		now = at
		switch e.Ph {
		case "X":
			end, stack := at+ns(t, e.Dur), open[k]
			for len(stack) > 0 && stack[len(stack)-1] <= at {
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 && stack[len(stack)-1] < end || end < at {
				t.Errorf("%v ends at %d ns and overlaps the slice around it on %s", e, end, names[k])
			}
			open[k], last[k] = append(stack, end), e
		case "s":
			if _, twice := begun[e.ID]; twice || last[k].Ts != e.Ts {
				t.Errorf("%v begins a flow twice, or in no slice of its own", e)
			}
			begun[e.ID] = at
		case "f":
			if from, ok := begun[e.ID]; !ok || from > at || ended[e.ID] || e.Bp != "e" || last[k].Ts != e.Ts {
				t.Errorf("%v ends no flow, ends it twice, or in no slice of its own", e)
			}
			ended[e.ID] = true
		case "i":
			if e.S != "t" {
				t.Errorf("%v: an instant of %q", e, e.S)
			}
		default:
			t.Errorf("%v is of no known kind", e)
		}
	}
	for id := range begun {
		if !ended[id] {
			t.Errorf("flow %d has no end", id)
		}
	}
	return names
}

// A trace has all calls, commands and losses of the record, whatever the page of the run folds.
func TestATraceHasTheWholeRun(t *testing.T) {
	runs := []report.Run{
		played(t, "misdelete", "setnx-del"), played(t, "unlock-reply-lost", "redisson@3.21.3"), played(t, "pause-past-lease", "redisson@4.7.0"),
		played(t, "fair-dead-waiters-add-up", "redisson-fair@3.21.3"), played(t, "inventory-small", "redisson@3.4.2"), played(t, "crashed-holder", "redisson@4.7.0"), long(500), crossed(),
	}
	flows, hits := 0, 0
	for _, r := range runs {
		text := report.Perfetto(r)
		if again := report.Perfetto(r); again != text {
			t.Errorf("%s: another trace of the same run", r.Scenario)
		}
		all := events(t, text)
		names := sound(t, all)
		got, want := map[string]int{}, map[string]int{}
		for _, e := range all {
			on := names[track{e.Pid, e.Tid}]
			switch {
			case e.Ph == "s" || e.Ph == "f":
				flows++
			case e.Cat == "call":
				got["calls"]++
			case e.Cat == "message" && strings.Contains(on, " commands"):
				got["commands"]++
			case e.Cat == "message" && strings.Contains(e.Name, " lost: "):
				got["losses"]++
			case e.Cat == "finding":
				got["findings"]++
			case e.Cat == "fault" && e.Args["message"] != nil:
				got["hits"]++
				hits++
			}
		}
		want["findings"] = len(r.Findings)
		ran, hears := map[int]bool{}, map[int]bool{}
		for _, e := range r.Record.Events {
			switch {
			case e.Kind == model.KindInvoke:
				want["calls"]++
			case e.Kind == model.KindExec && !ran[e.Msg]:
				ran[e.Msg] = true
				want["commands"]++
			case (e.Kind == model.KindDeliver || e.Kind == model.KindLost) && e.Dir == "push" && !ran[e.Msg] && !hears[e.Msg]:
				hears[e.Msg] = true
				want["commands"]++ // a wake-up, which the server sends
			}
			switch {
			case e.Kind == model.KindHit:
				want["hits"]++
			case e.Kind == model.KindLost && e.Why != model.LostUnwanted:
				want["losses"]++
			}
		}
		for _, key := range []string{"calls", "commands", "losses", "findings", "hits"} {
			if got[key] != want[key] {
				t.Errorf("%s on %s: %d %s, the record has %d", r.Scenario, r.Lock, got[key], key, want[key])
			}
		}
	}
	if flows < 100 || hits == 0 {
		t.Errorf("%d ends of flows and %d hits of a fault in all runs", flows, hits)
	}
}

// crossed returns a run with one thread whose messages, and whose holds, overlap but do not nest.
func crossed() report.Run {
	const ms = 1_000_000
	rec := &model.Record{Params: model.Params{Lock: "a lock", Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
	add := func(at int64, e model.Event) {
		e.AtNs, e.Process = at*ms, "a"
		rec.Add(e)
	}
	held := func(by string, until int64) *model.LockState {
		return &model.LockState{Owner: by, Count: 1, ExpiresMs: until}
	}
	call := func(at, end int64, op int, lock string, lease int64) {
		add(at, model.Event{Kind: model.KindInvoke, Thread: 1, Op: op, Action: model.ActLock, Lock: lock, LeaseNs: lease * ms})
		add(at, model.Event{Kind: model.KindSend, Op: op, Msg: op, Script: model.RoleAcquire, Command: "SET", Locks: []string{lock}})
		add(at+1, model.Event{Kind: model.KindExec, Msg: op, Script: model.RoleAcquire, Command: "SET", Locks: []string{lock}, Reply: "OK"})
		add(at+1, model.Event{Kind: model.KindState, Msg: op, Lock: lock, State: held("a/1", at+1+lease)})
		add(end, model.Event{Kind: model.KindDeliver, Msg: op, Dir: "reply"})
		add(end, model.Event{Kind: model.KindReturn, Thread: 1, Op: op, Action: model.ActLock, Lock: lock, Outcome: model.Granted})
	}
	call(1, 3, 1, "orders", 20)
	call(3, 6, 2, "stock", 40)
	// Two messages of the watchdog, the second of which is sent while the first is under way.
	add(10, model.Event{Kind: model.KindSend, Msg: 3, Script: model.RoleRenew, Command: "PEXPIRE", Locks: []string{"orders"}})
	add(11, model.Event{Kind: model.KindSend, Msg: 4, Script: model.RoleRenew, Command: "PEXPIRE", Locks: []string{"stock"}})
	add(12, model.Event{Kind: model.KindExec, Msg: 3, Script: model.RoleRenew, Command: "PEXPIRE", Locks: []string{"orders"}, Reply: "1"})
	add(12, model.Event{Kind: model.KindState, Msg: 3, Lock: "orders", State: held("a/1", 32)})
	add(14, model.Event{Kind: model.KindLost, Msg: 4, Dir: "request", Why: model.LostDropped})
	add(15, model.Event{Kind: model.KindDeliver, Msg: 3, Dir: "reply"})
	add(16, model.Event{Kind: model.KindSend, Msg: 5, Script: model.RoleRenew, Command: "PEXPIRE", Locks: []string{"stock"}}) // still on its way at the end
	// A message that travels in no time.
	add(20, model.Event{Kind: model.KindSend, Msg: 6, Script: model.RoleRenew, Command: "PEXPIRE", Locks: []string{"stock"}})
	add(20, model.Event{Kind: model.KindExec, Msg: 6, Script: model.RoleRenew, Command: "PEXPIRE", Locks: []string{"stock"}, Reply: "1"})
	add(20, model.Event{Kind: model.KindState, Msg: 6, Lock: "stock", State: held("a/1", 60)})
	add(20, model.Event{Kind: model.KindDeliver, Msg: 6, Dir: "reply"})
	add(32, model.Event{Kind: model.KindState, Lock: "orders", State: &model.LockState{}})
	return report.Run{Scenario: "crossed", Lock: "a lock", Seed: 1, Verdict: "held", Replay: "replay it", Digest: "its digest", Record: rec}
}

// The golden trace is the one of a small run. Read the difference before you keep it.
func TestTheTraceOfASmallRun(t *testing.T) {
	const golden = "testdata/perfetto.json"
	got := report.Perfetto(crossed())
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := filetest.Read(t, golden); got != want {
		t.Errorf("another trace than %s:\n%s", golden, got)
	}
}
