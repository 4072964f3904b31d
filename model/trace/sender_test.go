package trace

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"lockstep/model"
)

// A word with which several threads have held a lock names no hold of that lock, whatever other locks
// have the same word.
func TestAWordThatThreadsShareNamesNoHold(t *testing.T) {
	rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
	for _, h := range []holding{{"x", "a/1"}, {"y", "c/1"}, {"x", "b/1"}} {
		rec.Add(model.Event{Kind: model.KindState, Lock: h.lock, State: &model.LockState{Owner: h.owner, Count: 1, Value: "1"}})
	}
	if got, want := valuesOf(rec).carried([]string{"SET", "x", "1"}), []holding{{"y", "c/1"}}; !slices.Equal(got, want) {
		t.Errorf("the word 1 names %v, want %v", got, want)
	}
}

func TestAValueMayBeAPartOfAWord(t *testing.T) {
	for word, want := range map[string]bool{`{"owner":"abc"}`: true, "abc": true, "xabc": false, "abc1": false, "abcabc": false, "abcabc abc": true, "ab": false} {
		if got := len(word) >= len("abc") && within(word, "abc"); got != want {
			t.Errorf("%q has the value abc: %t, want %t", word, got, want)
		}
	}
}

// The thread of a request is unknown if the request explains the answer of another thread's call, and not the
// answer of its own thread's call.
func TestAProcessIsAnonymous(t *testing.T) {
	const s = 1000 * ms
	// run has a call of each thread of a. The request is in the call sender, or in none, and begins a hold, after that of before if there
	// is one.
	run := func(process string, sender int, first, second model.Outcome, owner, before string) []string {
		rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
		if before != "" {
			rec.Add(model.Event{Kind: model.KindState, Lock: "l", State: &model.LockState{Owner: before, Count: 1}})
		}
		for n := range 2 {
			rec.Add(model.Event{AtNs: s, Kind: model.KindInvoke, Process: "a", Thread: n + 1, Op: n + 1, Action: model.ActLock, Lock: "l"})
		}
		rec.Add(model.Event{AtNs: 2 * s, Kind: model.KindSend, Process: process, Msg: 1, Op: sender, Script: model.RoleAcquire, Locks: []string{"l"}, Owners: []string{process + "/1"}})
		rec.Add(model.Event{AtNs: 3 * s, Kind: model.KindExec, Process: process, Msg: 1})
		rec.Add(model.Event{AtNs: 3 * s, Kind: model.KindState, Lock: "l", Msg: 1, State: &model.LockState{Owner: cmp.Or(owner, process+"/1"), Count: 1}})
		for n, outcome := range []model.Outcome{first, second} {
			rec.Add(model.Event{AtNs: 4 * s, Kind: model.KindReturn, Process: "a", Thread: n + 1, Op: n + 1, Action: model.ActLock, Lock: "l", Outcome: outcome})
		}
		return New(rec).Anonymous
	}
	for _, c := range []struct {
		rule          string
		process       string
		sender        int
		first, second model.Outcome
		want          int
		owner, before string // of the hold; "": the first thread, and nobody
	}{
		{"a request in no call", "a", 0, model.Busy, model.Granted, 1, "", ""},
		{"a request that hands the lock over", "a", 1, model.Busy, model.Granted, 0, "a/2", "a/1"},
		{"a request in a call that was busy", "a", 1, model.Busy, model.Granted, 1, "", ""},
		{"a request in a call that was granted, too", "a", 1, model.Granted, model.Granted, 0, "", ""},
		{"a request in the call that was granted", "a", 1, model.Granted, model.Busy, 0, "", ""},
		{"a request of another process", "b", 0, model.Busy, model.Granted, 0, "", ""},
		{"nobody was granted the hold", "a", 0, model.Busy, model.Unknown, 0, "", ""},
		{"a hold of an unknown thread", "a", 0, model.Granted, model.Granted, 1, "v", ""},
		{"which another process wrote", "b", 0, model.Granted, model.Granted, 0, "v", ""},
		{"with which nobody returned", "a", 0, model.Busy, model.Unknown, 0, "v", ""},
	} {
		if got := run(c.process, c.sender, c.first, c.second, c.owner, c.before); len(got) != c.want {
			t.Errorf("%s: %v are anonymous, want %d", c.rule, got, c.want)
		}
	}
}

// So it is if the request ends the hold of a thread whose own unlock sends nothing.
func TestAProcessWhoseUnlockSendsNothingIsAnonymous(t *testing.T) {
	const s = 1000 * ms
	for _, c := range []struct {
		rule    string
		value   string // in the request
		sends   bool   // the unlock sends a request, too
		sentNs  int64
		outcome model.Outcome
		want    int
	}{
		{"a request in the call of another thread", "v", false, 3 * s, model.Unknown, 1},
		{"the unlock asked for it itself", "v", true, 3 * s, model.Unknown, 0},
		{"a request without the value", "w", false, 3 * s, model.Unknown, 0},
		{"a request that was sent before", "v", false, 2 * s, model.Unknown, 0},
		{"the unlock says that it did nothing", "v", false, 3 * s, model.NotHeld, 0},
	} {
		rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
		add := func(at int64, thread int, e model.Event) {
			e.AtNs, e.Process, e.Thread, e.Lock = at, "a", thread, "l"
			rec.Add(e)
		}
		deletes := model.Event{Kind: model.KindSend, Msg: 1, Op: 1, Command: "DEL", Args: []string{"l", c.value}, Script: model.RoleAcquire, Locks: []string{"l"}, Owners: []string{"a/1"}}
		add(s, 2, model.Event{Kind: model.KindState, State: &model.LockState{Owner: "a/2", Value: "v", Count: 1}})
		add(s, 1, model.Event{Kind: model.KindInvoke, Op: 1, Action: model.ActLock})
		if c.sentNs == 2*s {
			add(c.sentNs, 1, deletes)
		}
		add(2500*ms, 2, model.Event{Kind: model.KindInvoke, Op: 2, Action: model.ActUnlock})
		if c.sends {
			add(2600*ms, 2, model.Event{Kind: model.KindSend, Msg: 2, Op: 2, Command: "DEL", Args: []string{"l", "v"}, Script: model.RoleUnlock, Locks: []string{"l"}, Owners: []string{"a/2"}})
		}
		if c.sentNs == 3*s {
			add(c.sentNs, 1, deletes)
		}
		add(4*s, 1, model.Event{Kind: model.KindExec, Msg: 1})
		add(4*s, 1, model.Event{Kind: model.KindState, Msg: 1, State: &model.LockState{}})
		add(5*s, 2, model.Event{Kind: model.KindReturn, Op: 2, Action: model.ActUnlock, Outcome: c.outcome})
		if got := New(rec).Anonymous; len(got) != c.want {
			t.Errorf("%s: %v are anonymous, want %d", c.rule, got, c.want)
		}
	}
}

// A request of the only call under way stays in the call if nobody holds the lock with its value. If another thread
// does, the request renews that hold.
func TestAValueThatNobodyHoldsWith(t *testing.T) {
	const s = 1000 * ms
	for from, want := range map[int64]string{1: "a/1", 3 * s: ""} { // when a/1 gets its hold, and the owner of the request
		rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
		state := model.Event{AtNs: from, Kind: model.KindState, Lock: "l", State: &model.LockState{Owner: "a/1", Value: "v", Count: 1}}
		if from < s {
			rec.Add(state)
		}
		rec.Add(model.Event{AtNs: s, Kind: model.KindInvoke, Process: "a", Thread: 2, Op: 1, Action: model.ActLock, Lock: "l"})
		rec.Add(model.Event{AtNs: 2 * s, Kind: model.KindSend, Process: "a", Msg: 1, Op: 1, Script: model.RoleAcquire, Args: []string{"l", "v"}, Locks: []string{"l"}, Owners: []string{"a/2"}, Guessed: true})
		if from > s {
			rec.Add(state)
		}
		m := New(rec).Commands[0]
		if got := strings.Join(m.Owners, ","); got != want || (m.Call == nil) != (want == "a/1") {
			t.Errorf("the hold of a/1 begins at %d ns: the request is of %q and in a call: %t; want %q", from, got, m.Call != nil, want)
		}
	}
}

// The number of keys of a program is no value, and neither is an old value beside that of the hold.
func TestANumberMayBeAValue(t *testing.T) {
	rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
	hold := func(at int64, lock, owner, value string) {
		rec.Add(model.Event{AtNs: at, Kind: model.KindState, Lock: lock, State: &model.LockState{Owner: owner, Value: value, Count: 1}})
	}
	hold(1, "x", "a/1", "1")
	hold(2, "x", "b/1", "2")
	hold(2, "y", "c/1", "1")
	for n, e := range []model.Event{
		{Program: "digest", Args: []string{"1", "x", "2", "8000"}},
		{Program: "digest", Args: []string{"1", "x", "1", "8000"}},
		{Args: []string{"x", "1", "2"}},
		{Command: model.SegmentCommand, Args: []string{"2 bytes"}}, // nobody knows its words
		{Command: model.SegmentCommand, Args: []string{"24 bytes"}, Asked: []string{"2"}},
	} {
		e.AtNs, e.Kind, e.Process, e.Msg, e.Script = 3, model.KindSend, "d", n+1, model.RoleRenew
		rec.Add(e)
	}
	for n, want := range []string{"b/1", "a/1 c/1", "b/1 c/1", "", "b/1"} {
		var got []string
		for _, h := range New(rec).Commands[n].carried {
			got = append(got, h.owner)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("request %d carries the values of %v, want %s", n+1, got, want)
		}
	}
}
