package locktest

import (
	"strings"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
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
