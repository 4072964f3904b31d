//go:build linux

package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/sim"
)

// ms is a millisecond in nanoseconds.
const ms = int64(1e6)

// heldBy is the key of a lock of setnx-del that ends with a millisecond of the run.
func heldBy(owner string, endMs int64) map[string]key {
	return map[string]key{"orders": {kind: "string", endMs: endMs, value: []string{owner}}}
}

// request is a request of process a, and when it was at the server.
func request(s *session, words string, fromNs int64) *message {
	c := &side{s: s}
	c.process.Name = "a"
	m := s.message(c, "c", len(s.messages), strings.Fields(words))
	m.came, m.told, m.sentNs, m.fromNs = true, true, fromNs, fromNs
	return m
}

// story writes the changes of the server. A change by a command has the name of the command.
func story(events []event) string {
	var out []string
	for _, e := range events {
		switch e.Kind {
		case model.KindExpire:
			out = append(out, fmt.Sprintf("%dms expire", e.AtNs/ms))
		case model.KindExec:
			out = append(out, e.Command)
		case model.KindState:
			text := e.State.Owner
			if e.msg != nil {
				text = "by " + e.msg.request.Name + " " + text
			}
			out = append(out, "["+strings.TrimSpace(text)+"]")
		}
	}
	return strings.Join(out, " ")
}

func testSession(t *testing.T) *session {
	s := newSession(parse(t, overstay), lockOf(t, "setnx-del"), Options{})
	if err := s.reads(); err != nil {
		t.Fatal(err)
	}
	s.nodes = []*node{{}}
	return s
}

func TestACommandBesideAnExpiryIsAssembledBothWays(t *testing.T) {
	for _, c := range []struct {
		rule               string
		fromNs, atNs, toNs int64
		early, late        string
	}{
		{"a command long before", 500 * ms, 501 * ms, 502 * ms, "[a/1] DEL [by DEL]", "[a/1] DEL [by DEL]"},
		{"within a millisecond of the end", 999 * ms, 1001 * ms, 1003 * ms, "[a/1] DEL [by DEL]", "[a/1] 1001ms expire [] DEL"},
		{"but not before it was sent", 1001 * ms, 1001 * ms, 1003 * ms, "[a/1] 1001ms expire [] DEL", "[a/1] 1001ms expire [] DEL"},
		{"long behind", 2000 * ms, 2001 * ms, 2002 * ms, "[a/1] 1001ms expire [] DEL", "[a/1] 1001ms expire [] DEL"},
		{"where the server does not say when, all that the parent saw is possible", 900 * ms, 0, 1100 * ms, "[a/1] DEL [by DEL]", "[a/1] 1001ms expire [] DEL"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := testSession(t)
			s.looks = []look{
				{first: true, keys: heldBy("a:1", 1000)},
				{fromNs: c.fromNs, atNs: c.atNs, toNs: c.toNs, readNs: c.toNs, msg: request(s, "DEL orders", c.fromNs), keys: map[string]key{}},
			}
			if got := story(s.held(-ms)); got != c.early {
				t.Errorf("early: %s, want %s", got, c.early)
			}
			if got := story(s.held(ms)); got != c.late {
				t.Errorf("late: %s, want %s", got, c.late)
			}
		})
	}
}

func TestTimeEndsKeysBetweenCommands(t *testing.T) {
	s := testSession(t)
	s.looks = []look{
		{first: true, keys: heldBy("a:1", 1000)},
		{fromNs: 1002 * ms, toNs: 1003 * ms, readNs: 1003 * ms, keys: map[string]key{}},
		{fromNs: 1500 * ms, atNs: 1500 * ms, toNs: 1501 * ms, readNs: 1501 * ms, msg: request(s, "SET orders b:1 NX PX 100", 1500*ms), keys: heldBy("b:1", 1600)},
		// It ends between the command and the look.
		{fromNs: 1600 * ms, atNs: 1600 * ms, toNs: 1601 * ms, readNs: 1602 * ms, msg: request(s, "GET orders", 1600*ms), keys: map[string]key{}},
		{fromNs: 1700 * ms, toNs: 1701 * ms, readNs: 1701 * ms, keys: map[string]key{}},
	}
	const want = "[a/1] 1001ms expire [] SET [by SET b/1] GET 1601ms expire []"
	if got := story(s.held(0)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A lock may be in several keys, which one command let end in the same millisecond. Nothing was between.
func TestKeysOfOneMillisecondEndAtOnce(t *testing.T) {
	s := newSession(parse(t, strings.ReplaceAll(overstay, "setnx-del", "reference-fair")), lockOf(t, "reference-fair"), Options{})
	if err := s.reads(); err != nil {
		t.Fatal(err)
	}
	s.nodes = []*node{{}}
	s.looks = []look{
		{first: true, keys: map[string]key{
			"reference_queue:{orders}":     {kind: "list", endMs: 1000, value: []string{"b:1"}},
			"reference_deadlines:{orders}": {kind: "zset", endMs: 1000, value: []string{"b:1", "2000"}},
		}},
		{fromNs: 1500 * ms, toNs: 1501 * ms, readNs: 1501 * ms, keys: map[string]key{}},
	}
	var got []string
	for _, e := range s.held(0) {
		if e.Kind == model.KindState {
			got = append(got, fmt.Sprintf("%v %v", e.State.Queue, e.State.Deadlines))
		} else {
			got = append(got, string(e.Kind))
		}
	}
	if want := []string{"[b/1] map[b/1:2000]", "expire", "expire", "[] map[]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A lease may end before the parent reads the key. What a judge makes of the record is then not certain.
func TestALeaseThatNobodySawIsNotJudged(t *testing.T) {
	s := testSession(t)
	s.looks = []look{{first: true}, {missed: []string{"orders"}}}
	broken := judges.Finding{Judge: model.JudgeHoldCount, Verdict: judges.Broken, Class: judges.ClassBug, Facts: model.Facts{Lock: "orders"}}
	other := broken
	other.Lock = "others"
	j := judges.Judgement{Findings: []judges.Finding{broken, other}}
	s.undecideMissed(&j)
	if j.Findings[0].Verdict != judges.Undecided || j.Findings[1].Verdict != judges.Broken {
		t.Errorf("of the lock: %v, of another: %v", j.Findings[0].Verdict, j.Findings[1].Verdict)
	}
}

func TestPausesThatOverlapAreOne(t *testing.T) {
	c := &side{s: testSession(t), over: make(chan struct{})}
	close(c.over) // there is no process to signal
	for _, x := range []struct {
		do   func()
		want string
	}{
		{func() { c.stops = 1; c.stood(1000*ms, time.Second) }, "[[1000 2000]]"},
		{func() { c.stops = 2; c.stood(1300*ms, 5*time.Second) }, "[[1000 6300]]"},
		{func() { c.goOn(2001 * ms) }, "[[1000 6300]]"},
		{func() { c.goOn(6302 * ms) }, "[[1000 6302]]"},
		{func() { c.stops = 1; c.stood(7000*ms, time.Second) }, "[[1000 6302] [7000 8000]]"},
		{func() { c.goOn(8003 * ms) }, "[[1000 6302] [7000 8003]]"},
	} {
		x.do()
		var got [][2]int64
		for _, p := range c.pauses {
			got = append(got, [2]int64{p[0] / ms, p[1] / ms})
		}
		if fmt.Sprint(got) != x.want {
			t.Errorf("%v, want %s", got, x.want)
		}
	}
}

func TestARequestAtAStalledServerRunsBehindTheStall(t *testing.T) {
	s := testSession(t)
	s.nodes[0].stalls = [][2]int64{{1000 * ms, 3000 * ms}}
	l := look{fromNs: 1500 * ms, toNs: 3010 * ms, msg: request(s, "GET orders", 1500*ms)}
	if at := s.instant(l, -ms, 0); at != 3000*ms {
		t.Errorf("it ran at %d ms, want not before 3000", at/ms)
	}
}

func TestAFindingCountsIfEachFormOfTheRecordHasIt(t *testing.T) {
	s := testSession(t)
	broken := judges.Finding{Judge: model.JudgeMisdelete, Verdict: judges.Broken, Class: judges.ClassBug, Detail: judges.Endless{}, Facts: model.Facts{Lock: "orders", Thread: "a/1"}}
	other := broken
	other.Thread = "b/1"
	with, without := judges.Judgement{Findings: []judges.Finding{broken}}, judges.Judgement{}
	for _, c := range []struct {
		rule string
		a, b judges.Judgement
		want []judges.Verdict
	}{
		{"in both", with, with, []judges.Verdict{judges.Broken}},
		{"in the first", with, without, []judges.Verdict{judges.Undecided}},
		{"in the second", without, with, []judges.Verdict{judges.Undecided}},
		{"of another thread", with, judges.Judgement{Findings: []judges.Finding{other}}, []judges.Verdict{judges.Undecided, judges.Undecided}},
		{"in none", without, without, nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got []judges.Verdict
			for _, f := range s.agree(c.a, c.b).Findings {
				got = append(got, f.Verdict)
				if f.Verdict == judges.Undecided && !strings.HasPrefix(sentence.Finding(f), "within the uncertainty of 2ms: ") {
					t.Errorf("why: %s", sentence.Finding(f))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// On a busy machine the request of a library is at the proxy before the parent hears that its call
// began.
func TestARequestThatOvertakesItsCallBelongsToIt(t *testing.T) {
	s := testSession(t)
	s.foreign = &Foreign{}
	a := &side{s: s, threads: make([]threadState, 1), ops: map[int]model.Event{}}
	a.process.Name = "a"
	sent := func(c *side, role model.Role, atNs int64) *message {
		m := &message{side: c, cmd: sim.Command{Script: role, Owners: []string{"a/1"}}, sentNs: atNs}
		s.messages = append(s.messages, m)
		return m
	}
	before, its := sent(a, model.RoleUnlock, 8*ms), sent(a, model.RoleUnlock, 10*ms)
	renewal, others := sent(a, model.RoleRenew, 11*ms), sent(request(s, "GET orders", 12*ms).side, model.RoleUnlock, 12*ms)
	a.happened(model.Event{Kind: model.KindInvoke, AtNs: 9 * ms, Process: "a", Thread: 1, Op: 5, Action: model.ActUnlock})
	if its.op != 5 || before.op != 0 || renewal.op != 0 || others.op != 0 {
		t.Errorf("its request has operation %d, and those before it, of a renewal and of another process have %d, %d and %d", its.op, before.op, renewal.op, others.op)
	}
}
