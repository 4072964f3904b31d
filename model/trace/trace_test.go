package trace

import (
	"maps"
	"slices"
	"testing"

	"lockstep/model"
)

const ms = 1_000_000

// example is a record in which a waits for a replica and is paused, b is refused,
// interrupted and evicted, a renewal of both locks is lost, and a crashes.
func example() *model.Record {
	state := func(owner string, count int, queue ...string) *model.LockState {
		return &model.LockState{Owner: owner, Count: count, Queue: queue}
	}
	a := func(at int64, kind model.Kind, e model.Event) model.Event {
		e.AtNs, e.Kind, e.Process, e.Thread = at*ms, kind, "a", 1
		return e
	}
	b := func(at int64, kind model.Kind, e model.Event) model.Event {
		e = a(at, kind, e)
		e.Process = "b"
		return e
	}
	l, k := []string{"l"}, []string{"k", "l"}
	return &model.Record{
		Params: model.Params{Faults: []model.FaultSpec{
			{Kind: model.FaultPause, Processes: []string{"a"}},
			{Kind: model.FaultRule, Do: "drop"},
			{Kind: model.FaultKey},
			{Kind: model.FaultCrash, Processes: []string{"a"}},
		}},
		Events: []model.Event{
			a(0, model.KindInvoke, model.Event{Op: 1, Action: model.ActLock, Lock: "l", WaitNs: -1}),
			a(0, model.KindSend, model.Event{Op: 1, Msg: 1, Conn: 1, Script: "acquire", Locks: l}),
			a(0, model.KindSend, model.Event{Op: 1, Msg: 2, Conn: 1, Command: "WAIT"}),
			a(1, model.KindExec, model.Event{Msg: 1, Reply: "(error) NOSCRIPT no such script", Answer: model.NotRun}),
			a(2, model.KindDeliver, model.Event{Msg: 1}),
			a(2, model.KindSend, model.Event{Op: 1, Msg: 3, Conn: 1, Script: "acquire", Locks: l}),
			a(2, model.KindSend, model.Event{Op: 1, Msg: 4, Conn: 1, Command: "WAIT"}),
			a(3, model.KindExec, model.Event{Msg: 3, Reply: "nil"}),
			{AtNs: 3 * ms, Kind: model.KindState, Msg: 3, Lock: "l", State: state("a/1", 1)},
			a(3, model.KindExec, model.Event{Msg: 4, Reply: "1"}),
			a(4, model.KindDeliver, model.Event{Msg: 3}),
			a(5, model.KindDeliver, model.Event{Msg: 4}),
			a(5, model.KindReturn, model.Event{Op: 1, Action: model.ActLock, Lock: "l", Outcome: model.Granted}),
			b(6, model.KindInvoke, model.Event{Op: 2, Action: model.ActTryLockTimed, Lock: "l", WaitNs: 50 * ms}),
			b(6, model.KindSend, model.Event{Op: 2, Msg: 5, Conn: 2, Script: "acquire", Locks: l}),
			b(7, model.KindExec, model.Event{Msg: 5, Reply: "30000"}),
			{AtNs: 7 * ms, Kind: model.KindState, Msg: 5, Lock: "l", State: state("a/1", 1, "b/1")},
			b(8, model.KindDeliver, model.Event{Msg: 5}),
			{AtNs: 9 * ms, Kind: model.KindFault, Fault: 1, Text: "pause of a", Process: "a"},
			a(10, model.KindSend, model.Event{Msg: 6, Conn: 1, Script: "renew", Owners: []string{"a/1", "a/1"}, Locks: k}),
			a(11, model.KindHit, model.Event{Msg: 6, Fault: 2, Text: "drop renew"}),
			a(11, model.KindLost, model.Event{Msg: 6, Dir: "request", Why: "dropped"}),
			a(12, model.KindFaultEnd, model.Event{Fault: 1}),
			{AtNs: 13 * ms, Kind: model.KindUse, Phase: "interrupt", Text: "b/1", Met: true},
			b(14, model.KindReturn, model.Event{Op: 2, Lock: "l", Outcome: model.Unknown}),
			{AtNs: 15 * ms, Kind: model.KindState, Lock: "l", State: state("a/1", 1)},
			{AtNs: 20 * ms, Kind: model.KindFault, Fault: 3, Text: "delete of key l"},
			{AtNs: 20 * ms, Kind: model.KindState, Lock: "l", State: state("", 0)},
			{AtNs: 21 * ms, Kind: model.KindState, Lock: "k", State: state("a/1", 1)},
			{AtNs: 22 * ms, Kind: model.KindExpire, Key: "k"},
			{AtNs: 22 * ms, Kind: model.KindState, Lock: "k", State: state("", 0)},
			{AtNs: 23 * ms, Kind: model.KindState, Lock: "k", State: state("b/1", 1)},
			{AtNs: 25 * ms, Kind: model.KindFault, Fault: 4, Text: "crash of a", Process: "a"},
			b(26, model.KindInvoke, model.Event{Op: 3, Action: model.ActLock, Lock: "k", WaitNs: -1}),
			{AtNs: 30 * ms, Kind: model.KindCalm},
			b(40, model.KindLeave, model.Event{}),
			b(40, model.KindReturn, model.Event{Op: 3, Lock: "k", Outcome: model.Waiting}),
			b(41, model.KindClose, model.Event{}),
		},
	}
}

func check[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestCalls(t *testing.T) {
	r := New(example())
	first, second, third := r.Call(1), r.Call(2), r.Call(3)
	check(t, "the caller", first.Caller, "a/1")
	check(t, "the outcome of the first call", first.Outcome, model.Granted)
	check(t, "the return of the first call", first.ReturnedNs(), 5*ms)
	check(t, "the commands of the first call", len(first.Sent), 4)
	check(t, "the changes by the first call", len(first.Changes), 1)
	check(t, "the first acquire that was executed", first.First("acquire"), r.Command(3))
	check(t, "the wait without bound", first.WaitsUntilNs(), Never)
	check(t, "the wait with a bound", second.WaitsUntilNs(), 56*ms)
	check(t, "the interrupt of the first call", first.InterruptedNs, Never)
	check(t, "the interrupt of the second call", second.InterruptedNs, 13*ms)
	check(t, "an interrupt at its instant", r.Interrupted("b/1", 13*ms, 13*ms), true)
	check(t, "an interrupt later", r.Interrupted("b/1", 13*ms+1, 99*ms), false)
	check(t, "an interrupt of another thread", r.Interrupted("a/1", 0, 99*ms), false)
	check(t, "the outcome of the open call", third.Outcome, model.Waiting)
	check(t, "the return of the open call", third.Return, nil)
	check(t, "the end of the open call", third.ReturnedNs(), 40*ms)
	check(t, "the call without a number", r.Call(0), nil)
	check(t, "the call after the last", r.Call(4), nil)
	check(t, "the calls on l", len(r.CallsOn("l")), 2)
}

func TestCommands(t *testing.T) {
	r := New(example())
	unknown, granted, wait, refused, renewal := r.Command(1), r.Command(3), r.Command(4), r.Command(5), r.Command(6)

	check(t, "the execution of an unknown script", unknown.Executed, nil)
	check(t, "the script", unknown.UnknownScript(), true)
	check(t, "the known script", granted.UnknownScript(), false)
	check(t, "the arrival of the WAIT that had no reply", unknown.DeliveredNs, -1)
	check(t, "the failure of the unknown script", unknown.Failed(), true)

	check(t, "the WAIT", granted.Wait, wait)
	check(t, "the command of the WAIT", wait.WaitOf, granted)
	check(t, "the reply of the script", granted.RepliedNs, 4*ms)
	check(t, "the reply of script and WAIT", granted.DeliveredNs, 5*ms)
	check(t, "the failure of the grant", granted.Failed(), false)
	check(t, "the levels before the grant", Levels(granted.Before("l"), "a/1"), 0)
	check(t, "the levels after the grant", Levels(granted.After("l"), "a/1"), 1)
	check(t, "the move of the levels", granted.MovedLevels("l", "a/1"), true)
	check(t, "the move of another thread's levels", granted.MovedLevels("l", "b/1"), false)
	check(t, "the lock before a command that found it held", refused.Before("l").Owner, "a/1")
	check(t, "the queue after it", len(refused.After("l").Queue), 1)
	check(t, "the move of levels by the refusal", refused.MovedLevels("l", "b/1"), false)
	check(t, "the other lock", refused.After("k").Held(), false)
	check(t, "who a command of a call speaks for", slices.Equal(refused.Threads, []string{"b/1"}), true)

	check(t, "the loss of the renewal", renewal.Lost.Why, "dropped")
	check(t, "the rule that met the renewal", renewal.Hits[0].Fault, 2)
	check(t, "the commands that a rule met", len(r.Hit), 1)
	check(t, "the call of the renewal", renewal.Call, nil)
	check(t, "the lock before a command that did not run", renewal.Before("l").Held(), false)
	check(t, "the commands about k", r.CommandsOn("k")[0], renewal)
	check(t, "the commands about l", len(r.CommandsOn("l")), 4)
	check(t, "the commands from b", len(r.CommandsFrom("b")), 1)
	check(t, "the commands from nobody", len(r.CommandsFrom("c")), 0)
}

// An unlock of a thread that waits behind itself hands the lock to it. State shows the queue, or another value.
func TestAnUnlockHandsTheLockToItsOwnThread(t *testing.T) {
	for _, c := range []struct {
		rule, value string
		script      model.Role
		want        bool
	}{
		{"an unlock leaves another value", "second", model.RoleUnlock, true},
		{"an unlock prolongs its hold", "first", model.RoleUnlock, false},
		{"a renewal writes another value", "second", model.RoleRenew, false},
	} {
		rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true, Uncounted: true}}}
		rec.Add(model.Event{Kind: model.KindState, Lock: "l", State: &model.LockState{Owner: "a/1", Value: "first", Count: 1, ExpiresMs: 100}})
		rec.Add(model.Event{AtNs: 10 * ms, Kind: model.KindSend, Process: "a", Msg: 1, Script: c.script, Locks: []string{"l"}, Owners: []string{"a/1"}})
		rec.Add(model.Event{AtNs: 11 * ms, Kind: model.KindExec, Process: "a", Msg: 1})
		rec.Add(model.Event{AtNs: 11 * ms, Kind: model.KindState, Lock: "l", Msg: 1, State: &model.LockState{Owner: "a/1", Value: c.value, Count: 1, ExpiresMs: 111}})
		got := New(rec).Changes("l")[1]
		check(t, c.rule, got.Started() && got.Ended(), c.want)
	}
}

// An unlock that does not say whether it left a level has the outcome of one that says it, and its own answer.
func TestAnUnlockThatLeavesALevel(t *testing.T) {
	for left, want := range map[int]model.Outcome{1: model.StillHeld, 0: model.Released} {
		held := func(levels int) *model.LockState {
			if levels == 0 {
				return new(model.LockState)
			}
			return &model.LockState{Owner: "a/1", Count: levels, ExpiresMs: 100}
		}
		rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
		rec.Add(model.Event{Kind: model.KindState, Lock: "l", State: held(left + 1)})
		rec.Add(model.Event{AtNs: 10 * ms, Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActUnlock, Lock: "l"})
		rec.Add(model.Event{AtNs: 10 * ms, Kind: model.KindSend, Process: "a", Op: 1, Msg: 1, Script: model.RoleUnlock, Locks: []string{"l"}, Owners: []string{"a/1"}})
		rec.Add(model.Event{AtNs: 11 * ms, Kind: model.KindExec, Process: "a", Msg: 1})
		rec.Add(model.Event{AtNs: 11 * ms, Kind: model.KindState, Lock: "l", Msg: 1, State: held(left)})
		rec.Add(model.Event{AtNs: 12 * ms, Kind: model.KindReturn, Process: "a", Thread: 1, Op: 1, Lock: "l", Outcome: model.Released})
		o := New(rec).Call(1)
		check(t, "the outcome", o.Outcome, want)
		check(t, "the answer", o.Answer(), model.Released)
	}
}

func TestChanges(t *testing.T) {
	r := New(example())
	check(t, "the locks", slices.Equal(r.Locks, []string{"k", "l"}), true)
	l, k := r.Changes("l"), r.Changes("k")
	check(t, "the maker of a grant", l[0].By, r.Command(3))
	check(t, "the call of a grant", l[0].Call(), r.Call(1))
	check(t, "the begin of a hold", l[0].Started() && !l[0].Ended(), true)
	check(t, "the gain", l[0].Gain("a/1"), 1)
	check(t, "the thread that the grant was for", l[0].MadeFor("a/1") && !l[0].MadeFor("b/1"), true)
	check(t, "a change by nobody", l[2].By == nil && l[2].Fault == 0 && !l[2].Expired, true)
	check(t, "the fault that removed the hold", l[3].Fault, 3)
	check(t, "the loss", l[3].Gain("a/1"), -1)
	check(t, "the end of a hold", l[3].Ended() && !l[3].Started(), true)
	check(t, "the expiry", k[1].Expired && k[1].Fault == 0, true)
	check(t, "an expiry of an earlier instant", k[2].Expired, false)

	check(t, "the state before everything", r.StateAt("l", 3*ms-1).Held(), false)
	check(t, "the state at the instant of a change", r.StateAt("l", 3*ms).Owner, "a/1")
	check(t, "the state of an unknown lock", r.StateAt("m", 99*ms).Held(), false)
	check(t, "the changes after the grant", len(r.ChangesAfter("l", 3*ms)), 3)
	check(t, "the changes up to the grant", len(r.ChangesUpTo("l", 3*ms)), 1)
	check(t, "the holds of k that began", len(r.StartsUpTo("k", 99*ms)), 2)
	check(t, "the holds of k that began early", len(r.StartsUpTo("k", 22*ms)), 1)
	check(t, "the end of the hold of l", r.EndOf(l[0]), l[3])
	check(t, "the end of the first hold of k", r.EndOf(k[0]), k[1])
	check(t, "the end of the hold of k that stays", r.EndOf(k[2]), nil)

	left := r.Departures("l")
	check(t, "the threads that left the queue", len(left), 1)
	check(t, "the departure", left["b/1"][0], l[2])

	var kinds []model.Kind
	for _, e := range r.EventsOf("k") {
		kinds = append(kinds, e.Kind)
	}
	check(t, "the events of k", slices.Equal(kinds, []model.Kind{
		model.KindSend, model.KindState, model.KindState, model.KindState, model.KindInvoke, model.KindReturn,
	}), true)
}

func TestFaults(t *testing.T) {
	r := New(example())
	check(t, "the faults that began", len(r.Faults), 3)
	check(t, "the end of the pause", r.Fault(1).ToNs, 12*ms)
	check(t, "the text of a rule", r.Fault(2).Text, "drop renew")
	check(t, "the begin of a rule", r.Fault(2).FromNs, 11*ms)
	check(t, "the text of a fault that never was", r.Fault(9).Text, "fault 9")
	check(t, "the pauses of a", len(r.Pauses("a")), 1)
	check(t, "the pauses of b", len(r.Pauses("b")), 0)
	check(t, "the partitions of a", len(r.Partitions("a")), 0)
	check(t, "the crash of a", r.DiedNs("a"), 25*ms)
	check(t, "the crash of b", r.DiedNs("b"), Never)
	check(t, "the dead", slices.Equal(r.Dead(), []string{"a"}), true)
	check(t, "the close of b", r.ClosedNs("b"), 41*ms)
	check(t, "the end of a", r.GoneNs("a"), 25*ms)
	check(t, "the end of b", r.GoneNs("b"), 41*ms)
	check(t, "the end of a process that does not exist", r.GoneNs("c"), Never)
	check(t, "calm", r.CalmNs, 30*ms)
	check(t, "the end of the run", r.LeaveNs, 40*ms)
}

func TestEmptyRecord(t *testing.T) {
	r := New(&model.Record{})
	check(t, "the end of an empty run", r.LeaveNs, Never)
	check(t, "the command of an empty run", r.Command(1), nil)
	check(t, "the departures of an empty run", len(r.Departures("l")), 0)
	check(t, "the state of an empty run", r.StateAt("l", 0).Held(), false)
}

// A command that arrived behind a late message of its connection and direction is met by the
// same rule. One that was sent before, later, on another connection or the other way is not.
func TestWhatArrivesBehindALateMessageIsLateToo(t *testing.T) {
	var events []model.Event
	add := func(at int64, kind model.Kind, msg, conn int, more model.Event) {
		more.AtNs, more.Kind, more.Msg, more.Conn, more.Process = at*ms, kind, msg, conn, "a"
		events = append(events, more)
	}
	none := model.Event{}
	sent := func(at int64, msg, conn int) {
		add(at, model.KindSend, msg, conn, model.Event{Script: "renew", Locks: []string{"l"}})
	}
	late := model.Event{Fault: 1, Dir: "request", Do: "delay"}
	answer := model.Event{Fault: 2, Dir: "reply", Do: "hold"}
	push := model.Event{Fault: 3, Dir: "push", Do: "delay"}

	sent(0, 1, 1) // before the late one
	add(1, model.KindExec, 1, 1, none)
	sent(2, 2, 1) // the late one
	add(2, model.KindHit, 2, 0, late)
	sent(3, 3, 1) // behind it
	sent(3, 4, 2) // on another connection
	add(4, model.KindExec, 4, 2, none)
	add(9, model.KindExec, 2, 1, none)
	add(9, model.KindExec, 3, 1, none)
	sent(10, 5, 1) // after it had arrived
	add(11, model.KindExec, 5, 1, none)
	add(11, model.KindHit, 5, 0, answer)
	sent(11, 6, 1) // whose answer comes behind the held one
	add(12, model.KindExec, 6, 1, none)
	add(20, model.KindDeliver, 5, 1, model.Event{Dir: "reply"})
	add(20, model.KindDeliver, 6, 1, model.Event{Dir: "reply"})
	add(30, model.KindHit, 7, 0, push)
	sent(29, 8, 1) // whose answer comes behind a late push
	add(31, model.KindExec, 8, 1, none)
	add(40, model.KindDeliver, 7, 1, model.Event{Dir: "push"})
	add(41, model.KindDeliver, 8, 1, model.Event{Dir: "reply"})

	r := New(&model.Record{Events: events})
	got := map[int][]int{}
	for _, m := range r.Commands {
		for _, h := range m.Hits {
			got[m.Msg] = append(got[m.Msg], h.Fault)
		}
	}
	if want := map[int][]int{2: {1}, 3: {1}, 5: {2}, 6: {2}, 8: {3}}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the rules that met each command are %v, want %v", got, want)
	}
}

// A late message that is lost makes late what is lost behind it. The record does not say on which
// connection a push was lost, so that a command of the process without a reply is behind it.
func TestWhatIsLostBehindALateMessageIsLateToo(t *testing.T) {
	var events []model.Event
	add := func(at int64, kind model.Kind, msg, conn int, more model.Event) {
		more.AtNs, more.Kind, more.Msg, more.Conn = at*ms, kind, msg, conn
		if more.Process == "" {
			more.Process = "a"
		}
		events = append(events, more)
	}
	none, lost := model.Event{}, model.Event{Dir: "request", Why: model.LostReset}
	sent := func(at int64, msg, conn int) {
		add(at, model.KindSend, msg, conn, model.Event{Script: "renew", Locks: []string{"l"}})
	}
	sent(0, 1, 1) // the held one
	add(0, model.KindHit, 1, 0, model.Event{Fault: 1, Dir: "request", Do: "hold"})
	sent(1, 2, 1) // lost behind it
	sent(1, 3, 2) // lost on another connection
	add(5, model.KindLost, 3, 0, lost)
	add(5, model.KindLost, 1, 0, lost)
	add(5, model.KindLost, 2, 0, lost)
	sent(6, 4, 1) // after that
	add(7, model.KindLost, 4, 0, lost)

	sent(20, 10, 3) // before a held push
	add(21, model.KindExec, 10, 3, none)
	add(22, model.KindHit, 11, 0, model.Event{Fault: 2, Dir: "push", Do: "hold"})
	sent(22, 12, 3) // its reply is lost behind the push
	add(23, model.KindExec, 12, 3, none)
	sent(22, 13, 4) // its reply arrives, so that it is on another connection
	add(23, model.KindExec, 13, 4, none)
	add(24, model.KindDeliver, 13, 4, model.Event{Dir: "reply"})
	add(22, model.KindSend, 14, 5, model.Event{Process: "b", Script: "renew", Locks: []string{"l"}})
	add(23, model.KindExec, 14, 5, model.Event{Process: "b"})
	add(30, model.KindLost, 11, 0, model.Event{Dir: "push", Why: model.LostReset})
	add(30, model.KindLost, 12, 0, model.Event{Dir: "reply", Why: model.LostReset})
	sent(31, 15, 3) // after that
	add(32, model.KindExec, 15, 3, none)

	add(40, model.KindHit, 20, 0, model.Event{Fault: 3, Dir: "push", Do: "hold"}) // without an end in the record
	sent(41, 21, 6)
	add(42, model.KindExec, 21, 6, none)

	sent(50, 30, 7) // one behind which nothing passes
	add(50, model.KindHit, 30, 0, model.Event{Fault: 4, Dir: "request", Do: "half_open"})
	sent(51, 31, 7)
	sent(52, 32, 8) // one that is lost alone
	add(52, model.KindHit, 32, 0, model.Event{Fault: 5, Dir: "request", Do: "drop"})
	sent(53, 33, 8)
	for msg := 30; msg <= 33; msg++ {
		add(55, model.KindLost, msg, 0, lost)
	}

	r := New(&model.Record{Events: events})
	got := map[int][]int{}
	for _, m := range r.Commands {
		for _, h := range m.Hits {
			got[m.Msg] = append(got[m.Msg], h.Fault)
		}
	}
	if want := map[int][]int{1: {1}, 2: {1}, 12: {2}, 21: {3}, 30: {4}, 31: {4}, 32: {5}}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the rules that met each command are %v, want %v", got, want)
	}
}
