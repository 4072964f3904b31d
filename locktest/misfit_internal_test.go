package locktest

import (
	"strings"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// A Lease that is too short and a key that is not Kept are refused, unless the test accepts the finding of them. Other findings are
// failures of the lock.
func TestUnsaid(t *testing.T) {
	long := judges.Finding{Judge: model.JudgeLease, Class: judges.ClassBug, Detail: judges.LongLease{Got: 12 * time.Second, Most: 10 * time.Second}}
	key := judges.Finding{Judge: model.JudgeTidy, Class: judges.ClassBug, Detail: judges.Leftover{Key: "/locks"}}
	limit := long
	limit.Class = judges.ClassLimit
	for name, c := range map[string]struct {
		finding judges.Finding
		accept  []string
		want    string
	}{
		"a hold that is too long":       {long, nil, "its Lease is 10s, and its State shows a hold that lasts for 12s"},
		"it is accepted":                {long, []string{"story.one-after-the-other.lease"}, ""},
		"it is accepted of another":     {long, []string{"story.one-after-the-other.tidy"}, "its Lease is 10s"},
		"it has an excuse":              {limit, nil, ""},
		"a key":                         {key, nil, "the key /locks stays when everybody has left and nothing has failed; name it in Kept"},
		"a goroutine":                   {judges.Finding{Judge: model.JudgeTidy, Class: judges.ClassBug, Detail: judges.Leftover{Text: "a goroutine"}}, nil, ""},
		"a hold that is too short":      {judges.Finding{Judge: model.JudgeLease, Class: judges.ClassBug, Detail: judges.Unrenewed{}}, nil, ""},
		"the owner is told of too much": {judges.Finding{Judge: model.JudgeLease, Class: judges.ClassBug, Detail: judges.Misled{}}, nil, ""},
	} {
		r := &runner{s: Subject{Lease: 10 * time.Second}, o: Options{Accept: c.accept}}
		got := r.unsaid([]judges.Finding{c.finding})
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

// A hold that was over when it began has a wrong Expires, and so has one whose end comes nearer as time goes on. A server that ends holds at its ticks shows a hold that goes on after its end.
func TestWrongExpires(t *testing.T) {
	at := func(ms int64, owner string, expiresMs int64, queue ...string) model.Event {
		return model.Event{Kind: model.KindState, Lock: "orders", AtNs: ms*int64(time.Millisecond) + 999, State: &model.LockState{Owner: owner, Count: 1, ExpiresMs: expiresMs, Queue: queue}}
	}
	for name, c := range map[string]struct {
		events []model.Event
		want   string
	}{
		"Expires is never set":             {[]model.Event{at(0, "a/1", 0), at(2, "", 0), at(814, "b/1", 0)}, "begins at 0.814s and has the Expires 0s"},
		"milliseconds for nanoseconds":     {[]model.Event{at(2, "a/1", 1)}, "begins at 0.002s and has the Expires 1ms"},
		"the rest of the lease":            {[]model.Event{at(2, "a/1", 8000), at(400, "a/1", 7602)}, "shows the Expires 8s at 0.002s, and 7.602s at 0.400s, as if"},
		"a lease that is shortened":        {[]model.Event{at(2, "a/1", 8000), at(400, "a/1", 5000)}, ""},
		"the rest of a lease of another":   {[]model.Event{at(2, "a/1", 8000), at(9000, "b/1", 8000)}, "begins at 9.000s and has the Expires 8s"},
		"it ends in the same millisecond":  {[]model.Event{at(2, "a/1", 2)}, ""},
		"it has no end":                    {[]model.Event{at(2, "a/1", -1)}, ""},
		"a waiter comes before the tick":   {[]model.Event{at(2, "a/1", 8002), at(8004, "a/1", 8002, "b/1"), at(8500, "b/1", 16500)}, ""},
		"nobody holds the lock after that": {[]model.Event{at(2, "a/1", 8002), at(8500, "", 8002)}, ""},
	} {
		got := wrongExpires(&model.Record{Events: c.events})
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

// A request that prolonged a hold is nobody's call if its thread is known, or if no call was under way in its process.
func TestRenewsUnsaid(t *testing.T) {
	call := func(kind model.Kind, action model.Action) model.Event {
		return model.Event{Kind: kind, Process: "a", Op: 1, Action: action, Lock: "orders"}
	}
	send := func(op int, owners ...string) model.Event {
		return model.Event{Kind: model.KindSend, Process: "a", Op: op, Msg: 1, Owners: owners, Command: "PEXPIRE"}
	}
	invoke, ret := call(model.KindInvoke, model.ActLock), call(model.KindReturn, model.ActLock)
	began := model.Event{Kind: model.KindState, Lock: "orders", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 8000}}
	prolonged := model.Event{Kind: model.KindState, Lock: "orders", Msg: 1, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 9000}}
	for name, c := range map[string]struct {
		events       []model.Event
		unsaid, asks bool // asks: only a long hold can tell
	}{
		"of the call":                        {[]model.Event{invoke, began, send(1, "a/1"), prolonged, ret}, false, false},
		"of nobody during a call":            {[]model.Event{invoke, began, send(0), prolonged, ret}, false, true},
		"of nobody, late":                    {[]model.Event{invoke, began, send(0), ret, prolonged}, false, true},
		"of nobody after the call":           {[]model.Event{invoke, began, ret, send(0), prolonged}, true, true},
		"of a known thread during a call":    {[]model.Event{invoke, began, send(0, "a/1"), prolonged, ret}, true, true},
		"of a known thread in an extension":  {[]model.Event{invoke, began, ret, call(model.KindInvoke, model.ActExtend), send(0, "a/1"), prolonged}, false, true},
		"of another process during the call": {[]model.Event{{Kind: model.KindInvoke, Process: "b", Op: 2, Action: model.ActLock}, began, send(0), prolonged}, true, true},
	} {
		rec := &model.Record{Events: c.events}
		if got := (&runner{}).renewsUnsaid(rec); (got != "") != c.unsaid || (len(prolonging(rec)) > 0) != c.asks {
			t.Errorf("%s: %q, %d prolongations", name, got, len(prolonging(rec)))
		}
		if got := (&runner{s: Subject{Renewed: true}}).renewsUnsaid(rec); got != "" {
			t.Errorf("%s, of a lock that is Renewed: %q", name, got)
		}
	}
	late := call(model.KindReturn, model.ActExtend)
	late.AtNs = int64(2 * time.Second)
	rec := &model.Record{Events: []model.Event{began, call(model.KindInvoke, model.ActExtend), late, send(0), prolonged}}
	if got := (&runner{}).renewsUnsaid(rec); !strings.Contains(got, "let Extend wait for its answer if it is that of the Extend which had returned at 2.000s, and set Renewed") {
		t.Errorf("after an extension: %q", got)
	}
}

// A State that reads the same key for each name shows one hold as that of two locks.
func TestOneHoldOfTwo(t *testing.T) {
	state := func(lock string, msg int, value string) model.Event {
		return model.Event{Kind: model.KindState, Lock: lock, Msg: msg, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 8000, Value: value}}
	}
	for name, c := range map[string]struct {
		events []model.Event
		want   bool
	}{
		"one request":                    {[]model.Event{state("orders", 1, "v"), state("stock", 1, "v")}, true},
		"one request with two values":    {[]model.Event{state("orders", 1, "v"), state("stock", 1, "w")}, false},
		"a request for each":             {[]model.Event{state("orders", 1, "v"), state("stock", 2, "v")}, false},
		"one request that prolongs both": {[]model.Event{state("orders", 1, "v"), state("stock", 2, "v"), state("orders", 3, "v"), state("stock", 3, "v")}, false},
	} {
		rec := &model.Record{}
		for i := range 3 {
			rec.Add(model.Event{Kind: model.KindSend, Process: "a", Thread: 1, Msg: i + 1, Command: "SET", Script: model.RoleAcquire})
		}
		for _, e := range c.events {
			e.Process = "a"
			rec.Add(e)
		}
		if got := oneHoldOfTwo(trace.New(rec)); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
