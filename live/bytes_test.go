//go:build linux

package live

import (
	"testing"
	"time"

	"lockstep/live/proxy"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// viewed returns a session with Observed servers. Its parent process looked at them as looks says.
func viewed(t *testing.T, looks ...look) *session {
	t.Helper()
	s := newSession(parse(t, overstay), lockOf(t, "setnx-del"), Options{})
	s.nodes = []*node{{}}
	s.bytes, s.world = true, subject.World{Nodes: []sim.Node{{}}}
	s.owners, s.viewed, s.appeared = sim.NewOwners(), map[string]*model.LockState{}, map[appearance]bool{}
	s.looks = looks
	return s
}

// held is a view in which a thread holds the lock until a millisecond; "": nobody does.
func held(owner string, endMs int64) []map[string]*model.LockState {
	state := &model.LockState{}
	if owner != "" {
		state = &model.LockState{Owner: owner, Count: 1, ExpiresMs: endMs}
	}
	return []map[string]*model.LockState{{"orders": state}}
}

// asked is a request of process a in a role.
func asked(s *session, name string, role model.Role) *message {
	m := &message{side: &side{s: s}, came: true, told: true}
	m.request.Name, m.cmd.Script = name, role
	return m
}

func TestAMessageBesideTheEndOfALeaseIsAssembledBothWays(t *testing.T) {
	for _, c := range []struct {
		rule        string
		name        string
		role        model.Role
		atMs        int64
		after       []map[string]*model.LockState
		early, late string
	}{
		{"an unlock long before", "DELETE", model.RoleUnlock, 500, held("", 0), "[a/1] DELETE [by DELETE]", "[a/1] DELETE [by DELETE]"},
		{"an unlock about then", "DELETE", model.RoleUnlock, 1010, held("", 0), "[a/1] DELETE [by DELETE]", "[a/1] 1012ms expire [] DELETE"},
		{"an acquire about then takes a free lock", "ADD", model.RoleAcquire, 1010, held("b/1", 2000), "[a/1] 1010ms expire [] ADD [by ADD b/1]", "[a/1] 1012ms expire [] ADD [by ADD b/1]"},
		{"an acquire long before takes a lock that is held", "ADD", model.RoleAcquire, 500, held("b/1", 2000), "[a/1] ADD [by ADD b/1]", "[a/1] ADD [by ADD b/1]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := viewed(t)
			s.looks = []look{
				{readNs: 100 * ms, views: held("a/1", 1000)},
				{fromNs: c.atMs * ms, toNs: (c.atMs + 2) * ms, readNs: (c.atMs + 3) * ms, before: 100 * ms, msg: asked(s, c.name, c.role), views: c.after},
			}
			if got := story(s.views(-ms)); got != c.early {
				t.Errorf("early: %s, want %s", got, c.early)
			}
			if got := story(s.views(ms)); got != c.late {
				t.Errorf("late: %s, want %s", got, c.late)
			}
		})
	}
}

// A change that comes soon after a message may be of it, and a change long after is not.
func TestALateChangeIsAssembledBothWays(t *testing.T) {
	s := viewed(t)
	m := asked(s, "SEGMENT", model.RoleUnlock)
	s.looks = []look{
		{readNs: 100 * ms, views: held("a/1", 9000)},
		{fromNs: 200 * ms, toNs: 210 * ms, readNs: 211 * ms, before: 100 * ms, msg: m, views: held("a/1", 9000)},
		{fromNs: 220 * ms, toNs: 221 * ms, readNs: 221 * ms, before: 211 * ms, after: m, views: held("", 0)},
	}
	if got, want := story(s.views(-ms)), "[a/1] SEGMENT [by SEGMENT]"; got != want {
		t.Errorf("early: %s, want %s", got, want)
	}
	if got, want := story(s.views(ms)), "[a/1] SEGMENT []"; got != want {
		t.Errorf("late: %s, want %s", got, want)
	}
	if got := time.Duration(s.width()); got != 10*time.Millisecond {
		t.Errorf("a change came within %v, want 10ms", got)
	}
}

// The end of a hold that is read anew differs a little.
func TestTheEndOfAHoldIsSteady(t *testing.T) {
	before := held("a/1", 1000)[0]["orders"]
	for _, c := range []struct {
		now    *model.LockState
		wantMs int64
	}{
		{held("a/1", 1003)[0]["orders"], 1000},
		{held("a/1", 980)[0]["orders"], 1000},
		{held("a/1", 3000)[0]["orders"], 3000},
		{held("b/1", 1003)[0]["orders"], 1003},
	} {
		if got := steady(before, c.now).ExpiresMs; got != c.wantMs {
			t.Errorf("%+v: ends at %d ms, want %d", c.now, got, c.wantMs)
		}
	}
}

// A value belongs to the thread whose message carried it, also if the server put digits behind it.
func TestAValueBelongsToWhoeverSentIt(t *testing.T) {
	s := viewed(t)
	a, b := asked(s, "SEGMENT", model.RoleAcquire), asked(s, "SEGMENT", model.RoleAcquire)
	a.author.Thread, a.request.Words = "a/1", []string{"PUT orders/node-of-a- x"}
	b.author.Thread, b.request.Words = "b/1", []string{"PUT orders/node-of-b- x"}
	s.messages = []*message{a, b}
	s.learnFrom(a, &look{}, "orders", &model.LockState{Owner: "orders/node-of-b-0000000007"})
	s.learnFrom(a, &look{}, "orders", &model.LockState{Owner: "17.3"}) // nobody sent it
	for value, want := range map[string]string{"orders/node-of-b-0000000007": "b/1", "17.3": "a/1"} {
		if got := s.named("orders", &model.LockState{Owner: value}).Owner; got != want {
			t.Errorf("%s is of %s, want %s", value, got, want)
		}
	}
}

func TestAnAnswerIsShownIfItIsText(t *testing.T) {
	for raw, want := range map[string]string{"STORED\r\n": "STORED", "VALUE a 0 1\r\nx\r\nEND\r\n": "VALUE a 0 1 x END", "\x00\x01": ""} {
		if got := printable([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

var _ proxy.Handler = (*bytesGate)(nil)

// Only the owner moves the end of its hold. If the end moved at the message of another thread, a message
// that nobody saw moved it.
func TestAnotherMovesNoEnd(t *testing.T) {
	s := viewed(t)
	other, owner := asked(s, "CREATE", model.RoleAcquire), asked(s, "PING", model.RoleRenew)
	other.cmd.Owners, owner.cmd.Owners = []string{"b/1"}, []string{"a/1"}
	s.looks = []look{
		{readNs: 100 * ms, views: held("a/1", 1000)},
		{fromNs: 200 * ms, toNs: 201 * ms, readNs: 201 * ms, before: 100 * ms, msg: other, views: held("a/1", 3000)},
		{fromNs: 300 * ms, toNs: 301 * ms, readNs: 301 * ms, before: 201 * ms, msg: owner, views: held("a/1", 5000)},
	}
	if got, want := story(s.views(0)), "[a/1] CREATE [a/1] PING [by PING a/1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The end of a hold is corrected from its beginning, when a later reading of it is better.
func TestTheEndOfAHoldIsRevised(t *testing.T) {
	s := viewed(t)
	s.looks = []look{{views: held("b/1", 500)}, {views: held("a/1", 7448)}, {views: held("a/1", 7448)}}
	n := &node{observed: vague{}}
	states := func(endMs int64) *model.LockState { return held("a/1", endMs)[0]["orders"] }
	ends := func(want ...int64) {
		t.Helper()
		for i, want := range want {
			if got := s.looks[i].views[0]["orders"].ExpiresMs; got != want {
				t.Errorf("look %d: the hold ends at %d ms, want %d", i, got, want)
			}
		}
	}
	s.correct(n, nil, look{}, "orders", states(7448), states(6471))
	ends(500, 6471, 6471)
	s.correct(n, nil, look{}, "orders", states(6471), states(9000)) // a renewal that nobody saw
	ends(500, 6471, 6471)
	s.correct(&node{observed: exact{}}, nil, look{}, "orders", states(6471), states(6700))
	ends(500, 6471, 6471)
	s.correct(n, nil, look{fromNs: 6450 * ms, readNs: 6451 * ms}, "orders", states(6471), &model.LockState{})
	ends(500, 6449, 6449)
}

// exact is a server that tells the ends of leases, and vague one that tells them roughly.
type (
	exact struct{ Observed }
	vague struct{ Observed }
)

func (vague) EndsWithin() time.Duration { return 1500 * time.Millisecond }

// A look that came too early for a message is made good for by the next one, if the message carried
// the value that appears.
func TestWhatAMessageDidIsSeenLate(t *testing.T) {
	s := viewed(t)
	put, next := asked(s, "PUT", model.RoleAcquire), asked(s, "NEXT", model.RoleRenew)
	s.looks = []look{
		{readNs: 100 * ms, views: held("", 0)},
		{fromNs: 200 * ms, toNs: 201 * ms, readNs: 201 * ms, before: 100 * ms, msg: put, views: held("", 0)},
		{fromNs: 300 * ms, toNs: 301 * ms, readNs: 301 * ms, before: 201 * ms, msg: next, views: held("a/1", 5000), causes: map[string]*message{"orders": put}},
	}
	if got, want := story(s.views(ms)), "PUT [by PUT a/1] NEXT"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// quiet is a server that holds nothing.
type quiet struct{ Observed }

func (quiet) Look([]string) ([]any, error) { return nil, nil }

func (quiet) Settle() Settle { return Settle{} }

func (quiet) Addr() string { return "quiet" }

// Before a client gets an answer that did not come in time, the parent looks. Otherwise one look could see
// the grant and the client's next change. The parent does not wait for ever for its turn, since the next
// message of the connection may have it.
func TestALateAnswerIsLookedAtFirst(t *testing.T) {
	for _, busy := range []bool{false, true} {
		s := viewed(t)
		n := newNode(0, quiet{})
		s.nodes = []*node{n}
		m := asked(s, "SEGMENT", model.RoleAcquire)
		x := &proxy.Conn{ID: 7}
		g := &bytesGate{&gate{side: m.side, node: n, conns: map[int]string{}, torn: map[int]bool{}}, map[int]*message{7: m}}
		if busy {
			n.turn <- struct{}{}
		}
		if f := g.Pushed(x, "", []byte("granted")); f.Later == nil {
			t.Errorf("busy %v: the answer does not wait for its turn", busy)
		}
		if got, want := len(s.looks), map[bool]int{false: 1, true: 0}[busy]; got != want {
			t.Errorf("busy %v: the parent looked %d times, want %d", busy, got, want)
		}
		if len(s.messages) != 0 || len(g.last) != 0 {
			t.Errorf("busy %v: the answer is taken for a message of its own", busy)
		}
	}
}

// A message that was behind others of its connection has been on its way meanwhile.
func TestAMessageTravelsBehindOthers(t *testing.T) {
	s := viewed(t)
	s.sc.Latency.Min, s.sc.Latency.Max = time.Hour, time.Hour
	if !s.travel(2*time.Hour, nil) {
		t.Error("it is lost")
	}
	gone := make(chan struct{})
	close(gone)
	if s.travel(time.Minute, gone) {
		t.Error("it is there too early")
	}
}
