package locktest

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// heldFor returns a run in which a thread takes the lock orders once for each length, by a request with a word. The
// servers show a value for its owner.
func heldFor(word, value string, lengths ...time.Duration) *trace.Run {
	rec := &model.Record{}
	add := func(e model.Event, at time.Duration) {
		e.AtNs, e.Process, e.Lock = int64(at), "a", "orders"
		rec.Add(e)
	}
	for i, length := range lengths {
		at := time.Duration(i) * time.Minute
		state := &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: (at + length).Milliseconds(), Value: value}
		add(model.Event{Kind: model.KindSend, Msg: i + 1, Command: "CREATE", Args: []string{word}, Script: model.RoleAcquire, Locks: []string{"orders"}, Owners: []string{"a/1"}}, at)
		add(model.Event{Kind: model.KindExec, Msg: i + 1, Command: "CREATE", Args: []string{word}}, at)
		add(model.Event{Kind: model.KindState, Msg: i + 1, State: state}, at)
		add(model.Event{Kind: model.KindState, State: &model.LockState{}}, at+length)
	}
	return trace.New(rec)
}

// A hint names another lease only if all holds last for it.
func TestAHintAboutTheLease(t *testing.T) {
	s := Subject{Lease: 8 * time.Second}
	for _, c := range []struct {
		lengths []time.Duration
		want    string
	}{
		{[]time.Duration{8 * time.Second, 8 * time.Second}, ""},
		{[]time.Duration{9 * time.Second, 9 * time.Second}, "State shows holds that last for 9s"},
		{[]time.Duration{9 * time.Second, 45 * time.Second}, ""},
	} {
		got := s.otherLease(heldFor("v", "v", c.lengths...), time.Millisecond)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q; want %q", c.lengths, got, c.want)
		}
	}
	// The request of a hold of 7.4 s was under way for a while.
	for _, c := range []struct {
		late, skew time.Duration
		want       string
	}{
		{late: 600 * time.Millisecond, want: ""},
		{late: 300 * time.Millisecond, want: "if the lock asks for that, give the subject this Lease"},
		{late: 300 * time.Millisecond, skew: time.Second, want: ""},
		{late: 1600 * time.Millisecond, want: "counts whole seconds"},
	} {
		rec := heldFor("v", "v", 7400*time.Millisecond).Record
		for i := range rec.Events {
			if rec.Events[i].Kind != model.KindSend {
				rec.Events[i].AtNs += int64(c.late)
			}
			if st := rec.Events[i].State; st.Held() {
				st.ExpiresMs += c.late.Milliseconds()
			}
		}
		rec.Params.Processes = []model.ProcessParams{{Name: "a", Skew: c.skew}}
		if got := s.otherLease(trace.New(rec), time.Millisecond); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v, clocks apart by %v: %q", c.late, c.skew, got)
		}
	}
}

// A hold that servers with ticks ended before its Lease was over has a hint of its own.
func TestAHintAboutTicks(t *testing.T) {
	for _, c := range []struct {
		tick, length time.Duration
		want         bool
	}{
		{time.Second, 7400 * time.Millisecond, true},
		{time.Second, 8100 * time.Millisecond, false}, // something prolonged it
		{0, 7400 * time.Millisecond, false},
	} {
		run := heldFor("v", "v", c.length)
		run.Record.Params.Tick = c.tick
		f := judges.Finding{Judge: model.JudgeMutualExclusion, Detail: judges.Overlap{Ending: judges.Ending{Cause: model.LossExpired, AtNs: run.Holds("orders")[0].ToNs()}}}
		f.Lock = "orders"
		got := Subject{Lease: 8 * time.Second}.mistake(f, run)
		if strings.Contains(got, "the servers end a hold up to 1s before its Lease of 8s is over") != c.want {
			t.Errorf("a tick of %v, and a hold of %v: %q", c.tick, c.length, got)
		}
		run.Record.Params.Watched = true
		if got := (Subject{Lease: 8 * time.Second}).mistake(f, run); strings.Contains(got, "the channel of Lost was still open") != c.want {
			t.Errorf("a tick of %v, and a hold of %v of a lock with Lost: %q", c.tick, c.length, got)
		}
	}
}

// An extension that adds a lease to what was left has a hint. One that asks for a longer lease has another cause.
func TestAHintAboutAnExtensionThatAdds(t *testing.T) {
	for end, want := range map[int64]bool{16000: true, 19000: false} {
		rec := heldFor("v", "v", 8*time.Second).Record
		rec.Events = rec.Events[:len(rec.Events)-1] // the hold goes on
		at := int64(3 * time.Second)
		for _, e := range []model.Event{
			{Kind: model.KindInvoke, Op: 1, Action: model.ActExtend},
			{Kind: model.KindSend, Op: 1, Msg: 2, Command: "SET", Script: model.RoleRenew, Locks: []string{"orders"}, Owners: []string{"a/1"}},
			{Kind: model.KindExec, Op: 1, Msg: 2, Command: "SET"},
			{Kind: model.KindState, Op: 1, Msg: 2, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: end, Value: "v"}},
		} {
			e.AtNs, e.Process, e.Thread, e.Lock = at, "a", 1, "orders"
			rec.Add(e)
		}
		f := judges.Finding{Judge: model.JudgeLease, AtNs: at, Detail: judges.LongLease{Got: 13 * time.Second, Most: 8 * time.Second}}
		f.Lock = "orders"
		got := Subject{Lease: 8 * time.Second}.mistake(f, trace.New(rec))
		if strings.Contains(got, "added that to what was left") != want {
			t.Errorf("an extension from 8s to %d ms: %q", end, got)
		}
	}
}

// A server may make the owner out of a word of the request, as ZooKeeper numbers a node, or out of one that
// the record lacks.
func TestAHintAboutTheOwner(t *testing.T) {
	for _, c := range []struct{ word, value, want string }{
		{"/orders/lock-", "/orders/lock-0000000000 of a session", ""},
		{"/orders/lock-", "owner of /orders/lock-", "which no request of this run carried"},
		{"orders", "orders and more", "which no request of this run carried"},
	} {
		got := Subject{}.otherOwner("orders", heldFor(c.word, c.value, time.Second))
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q for %q: %q; want %q", c.value, c.word, got, c.want)
		}
		run := heldFor(c.word, c.value, time.Second)
		run.Commands[0].Abridged = true
		if got := (Subject{}).otherOwner("orders", run); got != "" {
			t.Errorf("%q for %q, of which the record lacks a part: %q", c.value, c.word, got)
		}
	}
}

// A script may make the owner out of a word of its request and others. A plain command stores the word as it is.
func TestAHintAboutAnOwnerOfAScript(t *testing.T) {
	const want = "which no request of this run carried"
	for _, c := range []struct{ command, word, value, want string }{
		{"EVALSHA", "NPKLMAXZ", "1:NPKLMAXZ", ""},
		{"EVALSHA", "NPKLMAXZ", "1:NPKLMAXY", want},
		{"EVALSHA", "8000", "1:8000:NPKLMAXZ", want},
		{"SET", "NPKLMAXZ", "1:NPKLMAXZ", want},
	} {
		run := heldFor(c.word, c.value, time.Second)
		run.Commands[0].Command = c.command
		if got := (Subject{}).otherOwner("orders", run); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A renewal that is sent late after a lost one is a hint to the client's time limit, unless the process could send none.
func TestAHintAboutALateRenewal(t *testing.T) {
	s := Subject{Lease: 6 * time.Second, Renewed: true}
	for _, c := range []struct {
		fault model.FaultKind
		of    string
		want  string
	}{
		{model.FaultPartition, "a", ""},
		{model.FaultPause, "a", ""},
		{model.FaultPartition, "b", "the renewal sent at 2.000s was lost, and the next was sent only 4s later"},
	} {
		rec := heldFor("v", "v", 10*time.Second).Record
		rec.Params.Faults = []model.FaultSpec{{Kind: c.fault, Processes: []string{c.of}}}
		for _, e := range []model.Event{
			{AtNs: 2e9, Kind: model.KindSend, Process: "a", Msg: 2, Script: model.RoleRenew, Locks: []string{"orders"}, Owners: []string{"a/1"}},
			{AtNs: 2e9, Kind: model.KindLost, Process: "a", Msg: 2, Dir: "request"},
			{AtNs: 3e9, Kind: model.KindFault, Process: c.of, Fault: 1},
			{AtNs: 5e9, Kind: model.KindFaultEnd, Process: c.of, Fault: 1},
			{AtNs: 6e9, Kind: model.KindSend, Process: "a", Msg: 3, Script: model.RoleRenew, Locks: []string{"orders"}, Owners: []string{"a/1"}},
		} {
			rec.Add(e)
		}
		slices.SortStableFunc(rec.Events, func(a, b model.Event) int { return cmp.Compare(a.AtNs, b.AtNs) })
		got := s.waitForLost("orders", trace.New(rec))
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s of %s: %q; want %q", c.fault, c.of, got, c.want)
		}
	}
}

// A hold that State shows without an end, and that ends because a key ran out, had an end.
func TestAHintAboutAHoldWithoutAnEnd(t *testing.T) {
	f := judges.Finding{Judge: model.JudgeLease, Facts: model.Facts{Lock: "orders"}, Detail: judges.Endless{}}
	for _, c := range []struct {
		end     model.Kind
		expires int64 // of another hold
		want    string
	}{
		{model.KindExpire, -1, "State shows holds without an end, and the server ended one at 6.000s when its key ran out"},
		{model.KindCheck, -1, "State shows no hold of this run with an end; if the server ends one by itself"},
		{model.KindCheck, 9000, ""},
	} {
		rec := &model.Record{}
		for _, e := range []model.Event{
			{Kind: model.KindState, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: -1}},
			{AtNs: 6e9, Kind: c.end, Key: "orders"},
			{AtNs: 6e9, Kind: model.KindState, State: &model.LockState{}},
			{AtNs: 7e9, Kind: model.KindState, State: &model.LockState{Owner: "b/1", Count: 1, ExpiresMs: c.expires}},
		} {
			e.Lock = "orders"
			rec.Add(e)
		}
		if got := (Subject{}).mistake(f, trace.New(rec)); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q; want %q", c.end, got, c.want)
		}
	}
}

// Who is told too early of a hold that nothing renews has a subject that is not Renewed.
func TestAHintAboutRenewed(t *testing.T) {
	f := judges.Finding{Judge: model.JudgeLease, AtNs: 3e9, Facts: model.Facts{Lock: "orders"}, Detail: judges.Misled{HeldNs: 1e9}}
	const want = "in this run nothing renewed a hold"
	s := Subject{Lease: 6 * time.Second, Renewed: true}
	if got := s.mistake(f, heldFor("v", "v", 6*time.Second)); !strings.Contains(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	f.AtNs--
	if got := s.mistake(f, heldFor("v", "v", 6*time.Second)); got != "" {
		t.Errorf("told before a renewal was due, and the hint is %q", got)
	}
	rec := heldFor("v", "v", 6*time.Second).Record
	rec.Add(model.Event{AtNs: 7e9, Kind: model.KindSend, Process: "a", Msg: 2, Script: model.RoleRenew, Locks: []string{"orders"}, Owners: []string{"a/1"}})
	if got := s.mistake(f, trace.New(rec)); got != "" {
		t.Errorf("a renewal was sent, and the hint is %q", got)
	}
	f.Detail = judges.Unrenewed{}
	if got := s.mistake(f, trace.New(rec)); !strings.Contains(got, want) {
		t.Errorf("a renewal had no effect, and the hint is %q", got)
	}
	rec.Add(model.Event{AtNs: 7e9, Kind: model.KindHit, Process: "a", Msg: 2, Fault: 1, Dir: "request", Do: "error"})
	if got := s.mistake(f, trace.New(rec)); got != "" {
		t.Errorf("a fault met the renewal, and the hint is %q", got)
	}
}

// A request that takes two locks shows that they have one key.
func TestAHintAboutTwoLocksWithOneKey(t *testing.T) {
	f := judges.Finding{Judge: model.JudgeTidy, AtNs: 1e9, Facts: model.Facts{Lock: "items"}, Detail: judges.Unasked{}}
	for _, c := range []struct {
		second int // the request that takes items
		want   string
	}{
		{1, "by State, one request (SET) took orders and items"},
		{2, ""},
	} {
		rec := &model.Record{}
		for msg := 1; msg <= 2; msg++ {
			rec.Add(model.Event{AtNs: 1e9, Kind: model.KindSend, Process: "a", Msg: msg, Command: "SET"})
			rec.Add(model.Event{AtNs: 1e9, Kind: model.KindExec, Process: "a", Msg: msg, Command: "SET"})
			for _, lock := range []string{"orders", "items"} {
				if took := map[string]int{"orders": 1, "items": c.second}[lock]; took == msg {
					rec.Add(model.Event{AtNs: 1e9, Kind: model.KindState, Msg: msg, Lock: lock, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 9000}})
				}
			}
		}
		if got := (Subject{}).mistake(f, trace.New(rec)); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d: %q; want %q", c.second, got, c.want)
		}
	}
}
