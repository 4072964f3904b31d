package explain

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

const ms = int64(time.Millisecond)

// adderTo returns a function that adds an event of the first thread of a process to a record, about the lock l.
func adderTo(rec *model.Record, process string) func(ns int64, e model.Event) {
	return func(ns int64, e model.Event) {
		e.AtNs, e.Process, e.Thread, e.Lock = ns, process, 1, "l"
		rec.Add(e)
	}
}

// twoThreads is the record of a run in which a/1 takes and gives up the lock l, and b/1 then tries to take
// it for 100 ms. unlock and try are the events of these calls between the invocation and the return.
// late are the events of the unlock after its return.
func twoThreads(unlock, try []model.Event, unlocked model.Outcome, late ...model.Event) *trace.Run {
	rec := &model.Record{Params: model.Params{Traits: model.Traits{Uncounted: true, PerGrant: true, NoWatchdog: true}, Timing: model.Timing{Watchdog: 5 * time.Second}}}
	at := func(e model.Event, ns int64, process string) {
		e.AtNs, e.Process, e.Thread, e.Lock = ns, process, 1, "l"
		rec.Add(e)
	}
	at(model.Event{Kind: model.KindInvoke, Op: 1, Action: model.ActLock, WaitNs: -1}, 0, "a")
	at(model.Event{Kind: model.KindSend, Op: 1, Msg: 1, Command: "SET", Script: model.RoleAcquire, Locks: []string{"l"}, Owners: []string{"a/1"}}, 0, "a")
	at(model.Event{Kind: model.KindExec, Op: 1, Msg: 1, Reply: "OK"}, 1*ms, "a")
	at(model.Event{Kind: model.KindState, Op: 1, Msg: 1, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 5001}}, 1*ms, "a")
	at(model.Event{Kind: model.KindDeliver, Op: 1, Msg: 1, Dir: "reply"}, 2*ms, "a")
	at(model.Event{Kind: model.KindReturn, Op: 1, Action: model.ActLock, Outcome: model.Granted}, 2*ms, "a")
	at(model.Event{Kind: model.KindInvoke, Op: 2, Action: model.ActUnlock}, 100*ms, "a")
	for i, e := range unlock {
		e.Op, e.Msg = 2, cmp.Or(e.Msg, 2)
		at(e, (101+int64(i))*ms, "a")
	}
	at(model.Event{Kind: model.KindReturn, Op: 2, Action: model.ActUnlock, Outcome: unlocked}, 110*ms, "a")
	for i, e := range late {
		e.Op, e.Msg = 2, 2
		at(e, (120+int64(i))*ms, "a")
	}
	at(model.Event{Kind: model.KindInvoke, Op: 3, Action: model.ActTryLockTimed, WaitNs: 100 * ms}, 200*ms, "b")
	for i, e := range try {
		e.Op, e.Msg = 3, 3
		at(e, (201+int64(i))*ms, "b")
	}
	at(model.Event{Kind: model.KindReturn, Op: 3, Action: model.ActTryLockTimed, Outcome: model.Busy}, 300*ms, "b")
	return trace.New(rec)
}

// A want that was not met has a hint if the call was a try that waited.
func TestAHintAboutATryThatWaits(t *testing.T) {
	for _, c := range []struct {
		freedNs int64
		action  model.Action
		want    bool
	}{
		{300 * ms, model.ActTryLock, true},
		{150 * ms, model.ActTryLock, false},
		{300 * ms, model.ActLock, false},
	} {
		rec := &model.Record{}
		add := adderTo(rec, "b")
		add(0, model.Event{Kind: model.KindState, State: &model.LockState{Owner: "a/1", Count: 1}})
		if c.freedNs < 200*ms {
			add(c.freedNs, model.Event{Kind: model.KindState, State: &model.LockState{}})
		}
		add(200*ms, model.Event{Kind: model.KindInvoke, Op: 1, Action: c.action})
		if c.freedNs > 200*ms {
			add(c.freedNs, model.Event{Kind: model.KindState, State: &model.LockState{}})
		}
		add(310*ms, model.Event{Kind: model.KindReturn, Op: 1, Action: c.action, Outcome: model.Granted})
		f := judges.Finding{Judge: model.JudgeWant, AtNs: 310 * ms, Facts: model.Facts{Lock: "l", Thread: "b/1"}, Detail: judges.Unmet{}}
		if got := Hint(f, trace.New(rec)); strings.Contains(got, "waited for the hold of a/1") != c.want {
			t.Errorf("%s that began at 200 ms, of a lock that was free at %d ms: %q", c.action, c.freedNs/ms, got)
		}
	}
}

// An unlock that sends nothing gives up a level of the process only if its thread was granted one without a request.
func TestAHintAboutLevelsOfTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		again, sends bool
		want         string
	}{
		"a second grant without a request": {again: true, want: "as if the process counted the levels"},
		"a second grant by a request":      {again: true, sends: true, want: "although no request of it reached a server"},
		"one grant":                        {want: "although no request of it reached a server"},
	} {
		rec := &model.Record{Params: model.Params{Traits: model.Traits{Uncounted: true, PerGrant: true, NoWatchdog: true}}}
		ns := int64(0)
		add := func(e model.Event) {
			ns += ms
			e.AtNs, e.Process, e.Thread, e.Lock = ns, "a", 1, "l"
			rec.Add(e)
		}
		acquire := func(op int, sends bool) {
			add(model.Event{Kind: model.KindInvoke, Op: op, Action: model.ActLock, WaitNs: -1})
			if sends {
				add(model.Event{Kind: model.KindSend, Op: op, Msg: op, Command: "SET", Script: model.RoleAcquire, Locks: []string{"l"}, Owners: []string{"a/1"}})
				add(model.Event{Kind: model.KindExec, Op: op, Msg: op, Reply: "OK"})
			}
			if op == 1 {
				add(model.Event{Kind: model.KindState, Op: op, Msg: op, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: -1}})
			}
			add(model.Event{Kind: model.KindReturn, Op: op, Action: model.ActLock, Outcome: model.Granted})
		}
		acquire(1, true)
		unlock := 2
		if c.again {
			acquire(2, c.sends)
			unlock = 3
		}
		add(model.Event{Kind: model.KindInvoke, Op: unlock, Action: model.ActUnlock})
		add(model.Event{Kind: model.KindReturn, Op: unlock, Action: model.ActUnlock, Outcome: model.Released})
		run := trace.New(rec)
		if got := hintOfReleased(run, run.Calls[len(run.Calls)-1]); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An unlock may find what is left of a hold whose end has come, unless its key ran out or a request ended it.
func TestAHintAboutWhatIsLeftOfAHold(t *testing.T) {
	ends := model.Event{Kind: model.KindState, State: &model.LockState{}}
	for name, c := range map[string]struct {
		before []model.Event
		want   bool
	}{
		"its end had come": {[]model.Event{ends}, true},
		"its key ran out":  {[]model.Event{{Kind: model.KindExpire, Key: "l"}, ends}, false},
		"it goes on":       {nil, false},
	} {
		rec := &model.Record{Params: model.Params{Traits: model.Traits{Uncounted: true, PerGrant: true, NoWatchdog: true}}}
		add := adderTo(rec, "a")
		add(0, model.Event{Kind: model.KindState, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 50}})
		for _, e := range c.before {
			add(50*ms, e)
		}
		add(60*ms, model.Event{Kind: model.KindInvoke, Op: 1, Action: model.ActUnlock})
		add(61*ms, model.Event{Kind: model.KindSend, Op: 1, Msg: 1, Command: "DELETE", Script: model.RoleUnlock, Locks: []string{"l"}, Owners: []string{"a/1"}})
		add(62*ms, model.Event{Kind: model.KindExec, Op: 1, Msg: 1, Reply: "1"})
		add(63*ms, model.Event{Kind: model.KindDeliver, Op: 1, Msg: 1, Dir: "reply"})
		add(63*ms, model.Event{Kind: model.KindReturn, Op: 1, Action: model.ActUnlock, Outcome: model.Released})
		run := trace.New(rec)
		got := hintOfReleased(run, run.Calls[0])
		if strings.Contains(got, "whose end by State had come at 0.050s") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The hint depends on what the run shows of the call, and of an unlock before it.
func TestAHintIsChosenByTheFactsOfTheRun(t *testing.T) {
	var (
		unlocks = model.Event{Kind: model.KindSend, Command: "EVAL", Script: model.RoleUnlock, Locks: []string{"l"}, Owners: []string{"a/1"}}
		frees   = model.Event{Kind: model.KindState, State: &model.LockState{}}
		tries   = model.Event{Kind: model.KindSend, Command: "SET", Script: model.RoleAcquire, Locks: []string{"l"}, Owners: []string{"b/1"}}
		runs    = model.Event{Kind: model.KindExec, Reply: "1"}
		unknown = model.Event{Kind: model.KindExec, Answer: model.NotRun, Reply: "(error) NOSCRIPT no such script"}
		refuses = model.Event{Kind: model.KindExec, Answer: model.Refused, Reply: "LOADING"}
		lost    = model.Event{Kind: model.KindLost, Dir: "request", Why: model.LostReset}
		replies = model.Event{Kind: model.KindDeliver, Dir: "reply"}
		met     = model.Event{Kind: model.KindHit, Dir: "request", Do: "delay", Fault: 1}
	)
	soon := model.Event{Kind: model.KindState, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 153}}
	second := func(e model.Event) model.Event {
		e.Msg = 4
		return e
	}
	const busy = "ErrBusy, or a TryLock that returns false and no error, says that the lock was held at some time during the call; "
	for name, c := range map[string]struct {
		unlock, late, try []model.Event // late: after the unlock returned
		want              string
		unlocked          model.Outcome // "": released
	}{
		"the unlock was lost on its way, and the lock was busy": {unlock: []model.Event{unlocks, lost}, try: []model.Event{tries, runs, replies},
			want: "Unlock returned nil, although its request was lost before a server had it; it must return the error of the request"},
		"the unlock did not wait for the answer, and the lock was busy": {unlock: []model.Event{unlocks}, late: []model.Event{runs, replies}, try: []model.Event{tries, runs, replies},
			want: "Unlock returned nil, and returned before the answer to its request had come; it must wait for the answer, and return the error of the request if none comes"},
		"nor for the answer that the script is unknown": {unlock: []model.Event{unlocks}, late: []model.Event{unknown, replies}, try: []model.Event{tries, runs, replies},
			want: "Unlock returned nil, and returned before the answer to its request had come; it must wait for the answer, and return the error of the request if none comes"},
		"a fault met the unlock, which did not wait for the answer": {unlock: []model.Event{unlocks, met}, late: []model.Event{runs, replies}, try: []model.Event{tries, runs, replies},
			want: "Unlock returned nil, although the answer to its request did not arrive; it must return the error of the request"},
		"the unlock lets the hold end soon": {unlock: []model.Event{unlocks, runs, soon, replies},
			want: "Unlock returned nil, and its request did not end the hold: by State, the hold went on until 0.153s; the request must end the hold itself"},
		"the server refused the unlock, and the lock was busy": {unlock: []model.Event{unlocks, refuses, replies}, try: []model.Event{tries, runs, replies},
			want: "Unlock returned nil, although the server answered its request with an error; it must return the error of the request"},
		"the try asked nobody": {unlock: []model.Event{unlocks, runs, frees, replies}, try: nil,
			want: busy + "this call sent no request, so it must return the error that ended it, such as that of the context"},
		"the try was lost on its way": {unlock: []model.Event{unlocks, runs, frees, replies}, try: []model.Event{tries, lost},
			want: busy + "here its request was lost before a server had it, so the call must return that error"},
		"the try had an answer": {unlock: []model.Event{unlocks, runs, frees, replies}, try: []model.Event{tries, runs, replies},
			want: busy + "if the call ended for another reason, it must return that error, such as that of the context; if the server keeps others out for a while after a hold, State must return Closed for that time"},
		"a server did not know the script of the unlock, and what it sent next is not known": {unlock: []model.Event{unlocks, unknown, replies}, try: []model.Event{tries, runs, replies},
			want: "Unlock returned nil, which says that it freed the lock; if it found nothing to free, it must return locktest.ErrNotHeld"},
		"the unlock freed the lock and says that it did not": {unlock: []model.Event{unlocks, runs, frees, replies}, unlocked: model.NotHeld,
			want: "the Unlock that a/1 called at 0.100s returned ErrNotHeld, although its request freed the lock at 0.103s; it must return nil if the server freed the hold"},
		"the unlock freed the lock, and was sent again": {unlock: []model.Event{unlocks, runs, frees, replies, second(unlocks), second(runs), second(replies)}, unlocked: model.NotHeld,
			want: "the Unlock that a/1 called at 0.100s returned ErrNotHeld, although its request freed the lock at 0.103s; a client that retries sends the request again, and the second one finds nothing. Let the client not retry an unlock, or let Unlock return an error if it does not know which request freed the lock"},
	} {
		run := twoThreads(c.unlock, c.try, cmp.Or(c.unlocked, model.Released), c.late...)
		hints := ""
		for _, f := range judges.Judge(run, nil).Findings {
			if f.Judge == model.JudgeLinearizable {
				hints += Hint(f, run)
			}
		}
		if hints != c.want {
			t.Errorf("%s: the hint is\n%q, want\n%q", name, hints, c.want)
		}
	}
}

// An unlock that freed the hold of its caller on the server need not say that it found nothing.
func TestAnUnlockThatFreedItsOwnHoldHasNoHint(t *testing.T) {
	run := twoThreads([]model.Event{
		{Kind: model.KindSend, Command: "EVAL", Script: model.RoleUnlock, Locks: []string{"l"}, Owners: []string{"a/1"}}, {Kind: model.KindExec, Reply: "1"},
		{Kind: model.KindState, State: &model.LockState{}}, {Kind: model.KindDeliver, Dir: "reply"},
	}, nil, model.Released)
	if got := hintOfReleased(run, run.Calls[1]); got != "" {
		t.Errorf("the hint is %q", got)
	}
}

func TestHintsOfCallsAndRenewalsThatGoOn(t *testing.T) {
	const closes = "Client.Close must end "
	for _, c := range []struct {
		detail judges.Detail
		want   string
	}{
		{judges.Leftover{Goroutine: &model.Goroutine{Calls: true}}, "every call must return soon after the end of its context"},
		{judges.Leftover{Goroutine: &model.Goroutine{Closes: "a"}}, closes + "what the client and its locks have started"},
		{judges.Leftover{Goroutine: &model.Goroutine{Opens: "a"}}, "Open must return, with an error if its servers do not answer"},
		{judges.Leftover{Goroutine: &model.Goroutine{}}, closes + "every goroutine"},
		{judges.Leftover{Key: "k"}, ""},
		{judges.LateReturn{}, "does each of its waits and requests end with the context?"},
		{judges.Stuck{Call: model.ActTryLockTimed}, "does each of its waits and requests end with the context?"},
		{judges.Stuck{Call: model.ActUnlock}, ""},
		{judges.LateRenewal{}, "stop the goroutine that sends them, and wait for its end"},
		{judges.Misled{}, "locktest.Outlive"},
	} {
		if got := Hint(judges.Finding{Detail: c.detail}, nil); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%#v: the hint is %q, want %q in it", c.detail, got, c.want)
		}
	}
}

// A renewal that names a key is one of the lock. One that names nothing is a ping of the client, which keeps a session alive.
func TestTheHintOfALateRenewalOfASession(t *testing.T) {
	for command, args := range map[string][]string{"PEXPIRE": {"l", "5000"}, "PING": nil} {
		rec := &model.Record{}
		at := adderTo(rec, "a")
		at(0, model.Event{Kind: model.KindInvoke, Op: 1, Action: model.ActLock, WaitNs: -1})
		at(2, model.Event{Kind: model.KindReturn, Op: 1, Action: model.ActLock, Outcome: model.Granted})
		at(3, model.Event{Kind: model.KindInvoke, Op: 2, Action: model.ActUnlock})
		at(4, model.Event{Kind: model.KindReturn, Op: 2, Action: model.ActUnlock, Outcome: model.Unknown})
		at(9, model.Event{Kind: model.KindSend, Msg: 1, Command: command, Args: args, Script: model.RoleRenew, Locks: []string{"l"}, Owners: []string{"a/1"}})
		f := judges.Finding{AtNs: 9, Facts: model.Facts{Lock: "l", Thread: "a/1"}, Detail: judges.LateRenewal{Call: model.ActUnlock, Outcome: model.Unknown, ReturnNs: 4}}
		got := Hint(f, trace.New(rec))
		if session := strings.Contains(got, "must end the session"); session != (args == nil) || strings.Contains(got, "goroutine") == session {
			t.Errorf("after a %s the hint is %q", command, got)
		}
	}
}

// A lock that asks often may be meant to, and the subject can say so.
func TestTheHintOfTrafficNamesTheBoundAndThePromise(t *testing.T) {
	got := Hint(judges.Finding{Judge: model.JudgeTraffic, Detail: judges.Traffic{Sent: 63, Most: 60}}, nil)
	const want = "let a waiter send at most 60 commands in a second, for example by longer pauses between its tries, or let a message of the release wake it. " +
		`If the lock is meant to ask so often, say so in the Subject: Promises: locktest.Promises{NotTraffic: "the reason"}`
	if got != want {
		t.Errorf("the hint is\n%q, want\n%q", got, want)
	}
}

// An unlock that freed the hold of another thread must compare values, and so must a renewal. Another command has no such
// remedy.
func TestTheHintOfARequestThatChangesAnothersHold(t *testing.T) {
	const (
		freed   = "Unlock freed the hold of b/1; it must free a hold only if the value on the server is that of its own hold, compare and free in one request, such as a script or a transaction, and each hold needs a value of its own"
		renewed = "a renewal changed the hold of b/1; it must prolong a hold only if the value on the server is that of its own hold, and compare and prolong in one request, such as a script"
	)
	for _, c := range []struct {
		verb   model.Role
		change judges.HoldChange
		want   string
	}{
		{model.RoleUnlock, judges.HoldEnded, freed}, {model.RoleUnlock, judges.HoldCounted, ""}, {model.RoleAcquire, judges.HoldEnded, ""},
		{model.RoleRenew, judges.HoldEnded, renewed}, {model.RoleRenew, judges.HoldProlonged, renewed},
	} {
		got := Hint(judges.Finding{Judge: model.JudgeMisdelete, Facts: model.Facts{Lock: "l"}, Detail: judges.Misdelete{By: judges.Sender{Role: c.verb}, Change: c.change, Owner: "b/1"}}, nil)
		if got != c.want {
			t.Errorf("%s, %s: the hint is %q, want %q", c.verb, c.change, got, c.want)
		}
	}
	// A second owner that such an unlock made possible has the same hint. A late unlock of the owner itself does not.
	for _, c := range []struct {
		ending judges.Ending
		want   bool
	}{
		{judges.Ending{Cause: model.LossEnded, By: judges.Sender{Role: model.RoleUnlock, Threads: []string{"a/1"}}}, true},
		{judges.Ending{Cause: model.LossEnded, By: judges.Sender{Role: model.RoleUnlock, Threads: []string{"b/1"}}}, false},
		{judges.Ending{Cause: model.LossEnded, By: judges.Sender{Role: model.RoleAcquire, Threads: []string{"a/1"}}}, false},
		{judges.Ending{Cause: model.LossExpired}, false},
	} {
		got := Hint(judges.Finding{Judge: model.JudgeMutualExclusion, Facts: model.Facts{Lock: "l"}, Detail: judges.Overlap{Earlier: "b/1", Later: "c/1", Ending: c.ending}}, nil)
		if strings.HasPrefix(got, "Unlock freed the hold of b/1; ") != c.want {
			t.Errorf("a second owner after %+v: the hint is %q", c.ending, got)
		}
	}
}

// Who is never told of the end of a hold has a channel that stays open.
func TestAHintAboutAChannelThatStaysOpen(t *testing.T) {
	for _, c := range []struct {
		watched bool
		told    string // the process that is told
		cause   model.LossCause
		want    bool
	}{
		{watched: true, cause: model.LossExpired, want: true},
		{watched: true, told: "b", cause: model.LossExpired, want: true},
		{watched: true, told: "a", cause: model.LossExpired},
		{watched: true, cause: model.LossEnded},
		{cause: model.LossExpired},
	} {
		rec := &model.Record{Params: model.Params{Traits: model.Traits{Watched: c.watched}}}
		if c.told != "" {
			adderTo(rec, c.told)(9000*ms, model.Event{Kind: model.KindTold})
		}
		details := []judges.Detail{judges.Overlap{Earlier: "a/1", Later: "b/1", Ending: judges.Ending{Cause: c.cause}}}
		if c.cause == model.LossExpired {
			details = append(details, judges.Untold{})
		}
		for _, d := range details {
			hint := Hint(judges.Finding{Judge: model.JudgeLease, Facts: model.Facts{Lock: "l", Thread: "a/1"}, Detail: d}, trace.New(rec))
			if strings.HasPrefix(hint, "the channel that Lost returned for the hold of a/1 stayed open. ") != c.want {
				t.Errorf("%+v, %T: the hint is %q", c, d, hint)
			}
		}
	}
}

// A lock that renews nothing has no renewals that could outlive a context.
func TestAHintAboutRenewals(t *testing.T) {
	f := judges.Finding{Judge: model.JudgeLease, Detail: judges.Misled{}}
	for _, renews := range []bool{true, false} {
		run := trace.New(&model.Record{Params: model.Params{Traits: model.Traits{NoWatchdog: !renews}}})
		if hint := Hint(f, run); strings.Contains(hint, "locktest.Outlive") != renews {
			t.Errorf("renews: %v; the hint is %q", renews, hint)
		}
	}
}

// A hint about a late unlock is about holds with one value.
func TestAHintAboutAValueThatIsKept(t *testing.T) {
	for second, want := range map[string]bool{"v": true, "w": false} {
		rec := &model.Record{}
		for i, state := range []*model.LockState{{Owner: "a/1", Count: 1, Value: "v"}, {}, {Owner: "a/1", Count: 1, Value: second}, {}} {
			rec.Add(model.Event{Kind: model.KindState, AtNs: int64(i) * ms, Lock: "l", State: state})
		}
		if hint := keptValue(trace.New(rec), "l", "a/1", 3*ms); (hint != "") != want {
			t.Errorf("the value %s after v: %q", second, hint)
		}
	}
}

// A holder that is refused held the lock itself.
func TestAHintAboutAHolderThatIsRefused(t *testing.T) {
	hint := func(owner string) string {
		rec := &model.Record{}
		for _, e := range []model.Event{
			{Kind: model.KindState, State: &model.LockState{Owner: owner, Count: 1, ExpiresMs: 9000}},
			{AtNs: 1e9, Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActTryLock},
			{AtNs: 2e9, Kind: model.KindReturn, Process: "a", Thread: 1, Op: 1, Outcome: model.Busy},
		} {
			e.Lock = "l"
			rec.Add(e)
		}
		run := trace.New(rec)
		return hintOfBusy(run, run.Calls[0])
	}
	const want = "the caller held the lock itself; if the lock does not let its holder enter again, the subject is neither Reentrant nor Idempotent"
	if got := hint("a/1"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := hint("b/1"); got == want {
		t.Errorf("another held it: %q", got)
	}
}

// A waiter that got the lock late has a hint at Waits, unless it got it when a lease was over, or not at all, or the servers
// kept the lock for another thread.
func TestAHintAtALockThatIsMadeToWait(t *testing.T) {
	for _, c := range []struct {
		returnedNs int64
		outcome    model.Outcome
		holder     string
		want       bool
	}{
		{3000 * ms, model.Granted, "", true},
		{3000 * ms, model.Granted, "b/1", true},
		{3000 * ms, model.Granted, "a/1", false},
		{5100 * ms, model.Granted, "", false},
		{3000 * ms, model.Failed, "", false},
	} {
		rec := &model.Record{Params: model.Params{Timing: model.Timing{Watchdog: 5 * time.Second}}}
		add := adderTo(rec, "b")
		add(0, model.Event{Kind: model.KindInvoke, Op: 1, Action: model.ActLock, WaitNs: -1})
		if c.holder != "" {
			add(1000*ms, model.Event{Kind: model.KindState, State: &model.LockState{Owner: c.holder, Count: 1, ExpiresMs: 2900}})
			add(2900*ms, model.Event{Kind: model.KindState, State: &model.LockState{}})
		}
		add(c.returnedNs, model.Event{Kind: model.KindReturn, Op: 1, Action: model.ActLock, Outcome: c.outcome})
		run := trace.New(rec)
		f := judges.Finding{Judge: model.JudgeLiveness, Facts: model.Facts{Lock: "l"}, Ops: []judges.OpRef{{Process: "b", Thread: 1}}, Detail: judges.Forgotten{ToNs: c.returnedNs}}
		if got := Hint(f, run); strings.Contains(got, "give the subject Waits") != c.want {
			t.Errorf("a wait of %s that ended with %s, while %q held the lock: %q", model.At(c.returnedNs), c.outcome, c.holder, got)
		}
	}
}

// A holder that was told of an end which is none has a hint about its renewals if one was due, and none was sent.
func TestAHintAboutRenewalsThatEnd(t *testing.T) {
	for _, c := range []struct {
		told, renewed int64 // ms
		without, want bool
	}{
		{told: 3000, want: true},
		{told: 1500}, // no renewal was due
		{told: 3000, renewed: 2000},
		{told: 3000, without: true},
	} {
		rec := twoThreads(nil, nil, model.Released).Record
		rec.Params.NoWatchdog, rec.Params.RenewalPeriod = c.without, 2*time.Second
		if c.renewed > 0 {
			adderTo(rec, "a")(c.renewed*ms, model.Event{Kind: model.KindSend, Msg: 9, Command: "EVAL", Script: model.RoleRenew, Locks: []string{"l"}, Owners: []string{"a/1"}})
		}
		f := judges.Finding{Judge: model.JudgeLease, AtNs: c.told * ms, Detail: judges.Misled{HeldNs: 1 * ms}}
		f.Lock, f.Thread = "l", "a/1"
		if got := Hint(f, trace.New(rec)); strings.Contains(got, "let them outlive it") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
