package explore

import (
	"strings"
	"testing"

	"lockstep/scenarios/scenariotest"

	"lockstep/explore/failure"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// In racing, a/1 gets the lock only if its request comes first. So the failure depends on
// the latencies of the two requests and on no later decision.
const racing = `lockstep: 1
name: racing
locks: [setnx-cad]
network: {latency: 1ms..20ms}
processes: {a: {}, b: {}}
steps:
  a/1:
    - try_lock: {name: x, want: granted}
    - sleep: 1s
    - unlock: x
  b/1:
    - try_lock: x
    - sleep: 1s
    - unlock: x
`

func TestBlameFindsTheDecision(t *testing.T) {
	h := sim.NewHost(t)
	sc, err := scenarios.Parse("racing.yaml", []byte(racing), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	l := scenariotest.Lock(t, "setnx-cad")
	var v play.Verdict
	for seed := uint64(1); v.Word != play.VerdictBug; seed++ {
		v = play.Run(h, sc, l, seed)
	}
	f, _ := failure.First(v, "")
	b, err := FindBlame(h, v.Recording(), v, f, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	none, all := b.Points[0], b.Points[len(b.Points)-1]
	if none.Kept != 0 || none.Failed == 0 || none.Failed == 20 || all.Kept != b.Of || all.Failed != 20 {
		t.Errorf("with nothing kept %d of 20 failed, with everything %d", none.Failed, all.Failed)
	}
	for i, p := range b.Points {
		if i > 0 && p.Kept <= b.Points[i-1].Kept {
			t.Errorf("points out of order: %+v", b.Points)
		}
		if p.Kept >= b.From && p.Failed != 20 || p.Kept == b.From-1 && p.Failed == 20 {
			t.Errorf("decision %d is to blame, and with %d kept %d of 20 failed", b.From, p.Kept, p.Failed)
		}
		if p.Kept == b.From && !strings.HasSuffix(p.Stream, "/request") {
			t.Errorf("a latency of %s is to blame, want that of a request", p.Stream)
		}
	}
	again, err := FindBlame(h, v.Recording(), v, f, 20, nil)
	if err != nil || again.String() != b.String() {
		t.Errorf("another time: %s (%v), before: %s", again, err, b)
	}
}

// If a run fails under every schedule, no decision is to blame.
func TestBlameOfWhatAlwaysFails(t *testing.T) {
	h := sim.NewHost(t)
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	v := play.Run(h, sc, scenariotest.Lock(t, "setnx-del"), 1)
	f, _ := failure.First(v, "")
	b, err := FindBlame(h, v.Recording(), v, f, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.From != 0 || !strings.Contains(b.String(), "with none of the") {
		t.Errorf("decision %d: %s", b.From, b)
	}
	f.Judge = "fifo"
	if _, err := FindBlame(h, v.Recording(), v, f, 2, nil); err == nil {
		t.Error("a judge that is not broken has a decision to blame")
	}
}
