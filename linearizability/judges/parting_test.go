package judges

import (
	"strings"
	"testing"

	"lockstep/model"
	"lockstep/model/trace"
)

func TestWhereServerAndClientsPart(t *testing.T) {
	for _, c := range []struct {
		name, record, want string
		lock               string // of the finding; "": l
		ms                 int64  // of the finding
	}{
		{name: "they agree while nobody holds it", record: "0 a/1 takes\n10 a/1 releases", ms: 20, want: "server and clients agreed"},
		{name: "they agree while a call is under way", record: "0 a/1 invoke lock\n0 a/1 send acquire\n1 a/1 exec acquire -> a/1 1 30001", ms: 2, want: "server and clients agreed"},
		{name: "they agreed again", record: "0 a/1 takes\n5 server fault 1 delete of key l -> free\n10 a/1 invoke unlock\n11 a/1 return not_held", ms: 20, want: "server and clients agreed"},
		{name: "a fault", record: "0 a/1 takes\n5 server fault 1 delete of key l -> free", ms: 10, want: "0.005s: a fault took l from a/1"},
		{name: "a lease, which a pause outlasts", record: "0 a/1 takes\n20 server fault 1 pause of a for 40s\n30002 server expire -> free\n40020 server heal 1 pause of a for 40s", ms: 30010, want: "30.002s: the lease of a/1 on l ended"},
		{name: "another thread", record: "0 a/1 takes\n5 b/1 invoke unlock\n6 b/1 send unlock\n7 b/1 exec unlock -> free", ms: 10,
			want: "0.007s: a/1 believed to hold l, and a command of another thread had ended the hold"},
		{name: "its own client", record: "0 a/1 takes\n5 a/1 send renew\n6 a/1 exec renew -> free", ms: 10,
			want: "0.006s: a/1 believed to hold l, and a command that its client sent outside of calls"},
		{name: "an old unlock", record: "0 a/1 takes\n5 a/1 invoke unlock\n5 a/1 send unlock\n6 a/1 return unknown\n7 server expire -> free\n10 a/1 takes\n20 a/1 exec unlock -> free", ms: 25,
			want: "0.020s: a/1 believed to hold l, and an unlock that it had called before"},
		{name: "its own call", record: "0 a/1 invoke lock\n1 a/1 send acquire\n2 a/1 send acquire\n3 a/1 exec acquire nth=2 -> a/1 1 30003\n4 a/1 return granted\n6 a/1 exec acquire nth=1 -> free", ms: 10,
			want: "0.006s: a/1 believed to hold l, and a command of the very call that took it"},
		{name: "its own call, before it returned", record: "0 a/1 invoke lock\n1 a/1 send acquire\n2 a/1 send acquire\n3 a/1 exec acquire nth=2 -> a/1 1 30003\n4 a/1 exec acquire nth=1 -> free\n6 a/1 return granted", ms: 10,
			want: "0.006s: a/1 believed to hold l, and a command of the very call that took it"},
		{name: "a grant that nobody heard", record: "0 a/1 invoke lock\n1 a/1 send acquire\n2 a/1 exec acquire -> a/1 1 30002\n2 a/1 lost acquire reply dropped\n5 a/1 return unknown", ms: 10,
			want: "0.005s: the server held l for a/1, which did not believe to hold it"},
		{name: "a grant of a closed client", record: "0 a close\n0 a/1 invoke lock\n1 a/1 send acquire\n2 a/1 exec acquire -> a/1 1 30002\n5 a/1 return granted", ms: 10,
			want: "0.005s: the client of a/1 was closed, and was granted l all the same"},
		{name: "a request that came late", record: "0 a/1 invoke lock\n1 a/1 send acquire\n5 a/1 return busy\n7 a/1 exec acquire -> a/1 1 30007", ms: 10,
			want: "0.007s: a request of a/1 came when its call was over"},
		{name: "an unlock that did not arrive", record: "0 a/1 takes\n5 a/1 invoke unlock\n5 a/1 send unlock\n6 a/1 lost unlock request dropped\n9 a/1 return unknown", ms: 10,
			want: "0.009s: an unlock of l by a/1 had returned"},
		{name: "the first of two that touch", record: "0 a/1 takes\n5 server fault 1 delete of key l -> free\n8 b/1 takes\n10 c/1 invoke unlock\n11 c/1 send unlock\n12 c/1 exec unlock -> free", ms: 15,
			want: "0.005s: a fault took l from a/1"},
		{name: "no lock", record: "0 a/1 takes", lock: "m", ms: 10, want: "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Finding{AtNs: c.ms * 1e6}
			f.Lock = "l"
			if c.lock != "" {
				f.Lock = c.lock
			}
			got := "none"
			if p, ok := PartingOf(trace.New(recordOf(t, anybodys, c.record+"\n90000 server leave")), f); ok {
				got = PartingSentence(p)
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// An answer that has no place in the history may be wrong at any time of its call.
func TestAHistoryPartsWithinTheCall(t *testing.T) {
	run := trace.New(recordOf(t, anybodys, "0 a/1 takes\n5 server fault 1 delete of key l -> free\n90000 server leave"))
	f := Finding{Judge: model.JudgeLinearizable, AtNs: 3e6, Ops: []OpRef{{CallNs: 3e6, ReturnNs: 8e6}}, Facts: model.Facts{Lock: "l"}}
	if p, _ := PartingOf(run, f); p.Kind != PartedByFault || p.AtNs != 5e6 {
		t.Errorf("until the return: %v", p)
	}
	f.Ops[0].ReturnNs = 4e6
	if p, _ := PartingOf(run, f); p.Kind != Agreed {
		t.Errorf("after it: %v", p)
	}
}

// The way in which a thread waits does not depend on the fate of another thread's hold.
func TestTrafficHasNoCauseInAnothersHold(t *testing.T) {
	run := trace.New(recordOf(t, anybodys, "0 a/1 takes\n5 server fault 1 delete of key l -> free\n90000 server leave"))
	for thread, want := range map[string]PartingKind{"a/1": PartedByFault, "b/1": Agreed} {
		f := Finding{Judge: model.JudgeTraffic, AtNs: 10e6, Facts: model.Facts{Lock: "l", Thread: thread}}
		if p, _ := PartingOf(run, f); p.Kind != want {
			t.Errorf("of %s: %v", thread, p)
		}
	}
}

// A lost message is a parting only for a waiter that should have received it.
func TestALostMessageParts(t *testing.T) {
	record := recordOf(t, plainLock, "0 a/1 takes\n1 b/1 invoke lock\n5 a/1 releases\n6 b/1 push lost dropped\n90000 server leave")
	f := Finding{Judge: model.JudgeLiveness, AtNs: 20e6, Facts: model.Facts{Form: model.FormForgotten, Lock: "l", Thread: "b/1"}}
	if p, _ := PartingOf(trace.New(record), f); p.Kind != PartedByLoss || p.AtNs != 6e6 {
		t.Errorf("of a waiter: %v", p)
	}
	f.Form = ""
	if p, _ := PartingOf(trace.New(record), f); p.Kind != Agreed {
		t.Errorf("of another finding: %v", p)
	}
}
