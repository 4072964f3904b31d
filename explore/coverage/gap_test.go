package coverage_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/explore/coverage"
	"lockstep/model"
	"lockstep/model/trace"
)

// The unlock asks whose the lock is, and deletes it in a second request. A pause or a late request lets much
// come between, or little.
func TestGapsOfACall(t *testing.T) {
	const steps = `
  a/1: [{lock: {name: x, lease: 3s}}, {sleep: 1s}, {unlock: x}]
  b/1: [{at: 500ms}, {lock: x}]`
	for _, c := range []struct{ fault, want, not string }{
		{"", "unlock, after request 1, nothing", " met "},
		{"{at: 1003500us, pause: a, for: 4s}", "pause met unlock, after request 1, another owner came", "pause met unlock, after request 1, nothing"},
		{"{at: 1003500us, pause: a, for: 4s}", "pause met unlock, after request 1, the lease ended", "another owner came and went"},
		{"{at: 1003500us, pause: a, for: 1s}", "pause met unlock, after request 1, nothing", "pause met unlock, after request 1, another owner came"},
		{"{at: 1001500us, pause: a, for: 4s}", "unlock, before request 1, nothing", "pause met unlock, after request 1"},
		{"{when: {process: a, direction: request, command: DEL}, do: delay, for: 4s}", "delay met unlock, after request 1, another owner came", "delay met unlock, before request 1"},
		{"{when: {process: a, direction: request, command: GET}, do: delay, for: 4s}", "delay met unlock, before request 1, another owner came", "delay met unlock, after request 1"},
		{"{when: {process: a, direction: request, command: DEL}, do: drop}", "drop met unlock, after request 1, nothing", "drop met unlock, after request 1, another owner came"},
		{"{at: 1003500us, crash: a}", "crash met unlock, after request 1, nothing", "crash met unlock, before request 1"},
	} {
		_, cells := played(t, "setnx-get-del", steps, c.fault)
		if !slices.Contains(cells, c.want) {
			t.Errorf("%s: %q is missing in\n%s", c.fault, c.want, strings.Join(cells, "\n"))
		}
		if i := slices.IndexFunc(cells, func(cell string) bool { return strings.Contains(cell, c.not) }); i >= 0 {
			t.Errorf("%s: there is %q", c.fault, cells[i])
		}
	}
	openings, _ := played(t, "setnx-get-del", steps, "")
	i := slices.IndexFunc(openings, func(o coverage.Opening) bool { return o.Op == model.ActUnlock && o.Moment == coverage.AfterFirst })
	if i < 0 {
		t.Fatal("there is no gap in the unlock")
	}
	o := openings[i]
	if o.Command != "DEL" || o.After != "GET" || o.Nth != 1 || o.Rival != "b/1" || o.LeftNs < 1.9e9 || o.LeftNs > 2.1e9 || o.ToNs-o.FromNs < 9e5 || o.ToNs-o.FromNs > 11e5 {
		t.Errorf("the gap is after %s and before message %d of %s, from %d to %d, with %d left; the rival is %s", o.After, o.Nth, o.Command, o.FromNs, o.ToNs, o.LeftNs, o.Rival)
	}
	if got, want := o.May(coverage.Pause), []coverage.State{coverage.Nothing, coverage.AnotherCame, coverage.AnotherWent, coverage.LeaseEnded}; !slices.Equal(got, want) {
		t.Errorf("a pause may bring about %q, want %q", got, want)
	}
	if got := o.May(coverage.Crash); !slices.Equal(got, []coverage.State{coverage.Nothing}) {
		t.Errorf("a crash may bring about %q", got)
	}
	want := []coverage.Passage{
		{Op: model.ActLock, Moment: coverage.BeforeFirst, Before: "SET", N: 2},
		{Op: model.ActUnlock, Moment: coverage.BeforeFirst, Before: "GET", N: 1},
		{Op: model.ActUnlock, Moment: coverage.AfterFirst, After: "GET", Before: "DEL", N: 1},
	}
	got := slices.DeleteFunc(coverage.Passages(openings), func(p coverage.Passage) bool { return p.Op == model.ActLock && p.Moment != coverage.BeforeFirst })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the run came through %+v, want %+v", got, want)
	}
}

// A renewal consists of two requests, and the next renewal begins with a request like the first. Requests that
// go to two servers at the same instant count as one request of the renewal.
func TestGapsOfRenewals(t *testing.T) {
	var events []model.Event
	held := &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 9000}
	message := func(atMs, msg, conn int, command string) {
		at := time.Duration(atMs) * time.Millisecond
		e := model.Event{AtNs: int64(at), Kind: model.KindSend, Process: "a", Msg: msg, Conn: conn, Command: command, Script: model.RoleRenew, Owners: []string{"a/1"}, Locks: []string{"x"}}
		events = append(events, e)
		e.AtNs, e.Kind = int64(at+time.Millisecond), model.KindExec
		events = append(events, e)
		e.AtNs, e.Kind, e.Dir = int64(at+2*time.Millisecond), model.KindDeliver, "reply"
		events = append(events, e)
	}
	events = append(events, model.Event{Kind: model.KindState, Lock: "x", State: held})
	for i := range 3 {
		message(1000*(i+1), 2*i+1, 1, "GET")
		if i == 1 { // another has the lock between the two
			events = append(events, model.Event{AtNs: 2.5e9, Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "b/1", Count: 1, ExpiresMs: 9000}})
			events = append(events, model.Event{AtNs: 2.6e9, Kind: model.KindState, Lock: "x", State: held})
		}
		message(1000*(i+1)+700, 2*i+2, 1, "PEXPIRE")
	}
	events = append(events, model.Event{AtNs: 9e9, Kind: model.KindCalm})
	run := trace.New(&model.Record{Events: events})
	var gaps []string
	for _, o := range coverage.Openings(run) {
		if o.Op != coverage.Renewal {
			t.Errorf("there is %+v", o)
		}
		gaps = append(gaps, fmt.Sprintf("%s of message %d at %v: %s", o.Moment, o.Nth, time.Duration(o.FromNs), o.State))
	}
	want := []string{
		"before request 1 of message 1 at 1s: nothing", "after request 1 of message 2 at 1.001s: nothing",
		"before request 1 of message 3 at 2s: nothing", "after request 1 of message 4 at 2.001s: the lease ended", "after request 1 of message 4 at 2.001s: another owner came",
		"after request 1 of message 4 at 2.001s: another owner came and went",
		"before request 1 of message 5 at 3s: nothing", "after request 1 of message 6 at 3.001s: nothing",
	}
	if !slices.Equal(gaps, want) {
		t.Errorf("the gaps are\n%s\nwant\n%s", strings.Join(gaps, "\n"), strings.Join(want, "\n"))
	}
}

// A gap that a kind of fault never met comes first, with the requests on its sides. Then comes what never happened
// in a gap while a fault met it, and then the other cells.
func TestWhatWasNotTried(t *testing.T) {
	anywhere := func(coverage.Moment) string { return "" }
	cell := func(op model.Action, m coverage.Moment, s coverage.State, k coverage.Kind) int {
		return coverage.Cell{Op: op, Moment: m, State: s, Fault: k}.Code()
	}
	passages := []coverage.Passage{
		{Op: model.ActTryLock, Moment: coverage.AfterFirst, After: "SET", Before: "SET", N: 2}, {Op: model.ActTryLock, Moment: coverage.AfterSecond, After: "SET", Before: "SET", N: 1},
		{Op: coverage.Renewal, Moment: coverage.AfterFirst, After: "GET", Before: "PEXPIRE", N: 14},
		{Op: model.ActUnlock, Moment: coverage.AfterFirst, After: "GET", Before: "DEL", N: 3}, {Op: model.ActUnlock, Moment: coverage.AfterFirst, After: "GET", Before: "PUBLISH", N: 1},
		{Op: model.ActLock, Moment: coverage.BeforeFirst, Before: "SET", N: 1},
	}
	met := []int{
		cell(coverage.Renewal, coverage.AfterFirst, coverage.Nothing, coverage.None),
		cell(model.ActUnlock, coverage.AfterFirst, coverage.Nothing, coverage.Pause), cell(model.ActUnlock, coverage.AfterFirst, coverage.AnotherCame, coverage.Crash),
		cell(model.ActTryLock, coverage.AfterSecond, coverage.Nothing, coverage.Pause), cell(model.ActTryLock, coverage.AfterFirst, coverage.Nothing, coverage.None),
		cell(model.ActLock, coverage.BeforeFirst, coverage.Nothing, coverage.None), cell(model.ActLock, coverage.Waiting, coverage.Free, coverage.None),
	}
	open := []int{
		cell(coverage.Renewal, coverage.AfterFirst, coverage.Nothing, coverage.Pause), cell(model.ActUnlock, coverage.AfterFirst, coverage.AnotherCame, coverage.Pause),
		cell(model.ActLock, coverage.BeforeFirst, coverage.Nothing, coverage.Drop), cell(model.ActLock, coverage.BeforeFirst, coverage.Nothing, coverage.Crash),
		cell(model.ActLock, coverage.Waiting, coverage.Free, coverage.Pause),
		cell(model.ActTryLock, coverage.AfterFirst, coverage.Nothing, coverage.Crash), cell(model.ActTryLock, coverage.AfterSecond, coverage.Nothing, coverage.Crash),
		cell(model.ActTryLock, coverage.AfterFirst, coverage.Nothing, coverage.Pause), cell(model.ActTryLock, coverage.AfterSecond, coverage.Nothing, coverage.Pause),
	}
	asked := []coverage.Asked{{Kind: coverage.Drop, At: anywhere}, {Kind: coverage.Crash, At: anywhere}, {Kind: coverage.Pause, At: anywhere}}
	table := coverage.Sum(met, open, asked, passages)
	want := []string{
		"no pause fell between GET and PEXPIRE of a renewal; 14 such moments came",
		"no loss of a message or crash fell on SET, the first request of an acquire; 1 such moment came",
		"no crash fell between one SET and the next of a single try; 3 such moments came",
		"no pause fell between requests 1 and 2 of an unlock, such as GET and DEL while another owner came",
	}
	if !slices.Equal(table.Untried, want) {
		t.Errorf("not tried:\n%s\nwant\n%s", strings.Join(table.Untried, "\n"), strings.Join(want, "\n"))
	}
	for most, want := range map[int]string{
		0: "", 1: "not tried: " + want[0] + "; and 4 more",
		5: "not tried: " + strings.Join(append(want, "no pause met an acquire while waiting, with the lock free"), "; "),
	} {
		if got := table.NotTried(most); got != want {
			t.Errorf("%d of them: %s\nwant\n%s", most, got, want)
		}
	}
	if text := table.Markdown(); !strings.Contains(text, "* Not tried: "+want[0]+".\n") || !strings.Contains(text, "| fault | before request 1 | after request 1 |") {
		t.Errorf("the page lacks a gap:\n%s", text)
	}
	if full := coverage.Sum(append(met, open...), open, asked, passages); len(full.Untried) > 0 || full.NotTried(3) != "" {
		t.Errorf("of a full table: %q", full.NotTried(3))
	}
	var many []coverage.Asked
	open = open[:1]
	for _, k := range coverage.Kinds[:6] {
		many = append(many, coverage.Asked{Kind: k, At: anywhere})
		open = append(open, cell(coverage.Renewal, coverage.AfterFirst, coverage.Nothing, k))
	}
	for n, want := range map[int]string{
		5: "no loss of a message, delay, hold of a message, half-open connection or reset fell between GET and PEXPIRE of a renewal; 14 such moments came",
		6: "no loss of a message, delay, hold of a message, half-open connection or fault of 2 other kinds fell between GET and PEXPIRE of a renewal; 14 such moments came",
	} {
		if got := coverage.Sum(met[:1], open, many[:n], passages).Untried; len(got) != 1 || got[0] != want {
			t.Errorf("of %d kinds: %q, want %q", n, got, want)
		}
	}
	if bare := coverage.Sum(met, open, nil, passages); bare.NotTried(3) != "" {
		t.Errorf("without faults: %q", bare.NotTried(3))
	}
}

func TestAPassageIsWrittenShort(t *testing.T) {
	want := coverage.Short{Op: coverage.Renewal, Moment: coverage.AfterSecond, After: "GET", Before: "PEXPIRE", N: 3}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got coverage.Short
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s is read as %+v, %v", text, got, err)
	}
	for _, wrong := range []string{`[]`, `[0,"GET","PEXPIRE",3]`, `[-1,"GET","PEXPIRE",3]`, `["GET"]`, `7`, strings.TrimSuffix(string(text), "]") + ",1]"} {
		if err := json.Unmarshal([]byte(wrong), &got); err == nil {
			t.Errorf("%s is read", wrong)
		}
	}
}
