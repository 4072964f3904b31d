package play

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A run with too many events, or of too many years, is ended. It is undecided, and the finding says for what the scenario waits.
func TestARunWithoutAnEndSaysForWhatItWaits(t *testing.T) {
	const second = int64(time.Second)
	for _, c := range []struct {
		rule, steps string
		want        *judges.Unended
		facts       model.Facts
	}{
		{"a lease of a day", "{a/1: [{lock: {name: x, lease: 24h}}], b/1: [{at: 1s}, {lock: {name: x, lease: 1s}}]}",
			&judges.Unended{FromNs: second, Owner: "a/1", UntilNs: 24 * 3600 * second}, model.Facts{Lock: "x", Thread: "b/1"}},
		{"a loop", "{a/1: [{repeat: {until: 24h, steps: [{read: {name: x, locked: false}}]}}]}", &judges.Unended{}, model.Facts{}},
		{"sleeps of 270 years", "{a/1: [{repeat: {times: 27, steps: [sleep: 87600h]}}]}", &judges.Unended{Events: 19}, model.Facts{}},
		{"sleeps of 190 years", "{a/1: [{repeat: {times: 19, steps: [sleep: 87600h]}}]}", nil, model.Facts{}},
		{"a lease of a second", "{a/1: [{lock: {name: x, lease: 1s}}], b/1: [{at: 100ms}, {lock: {name: x, lease: 1s}}]}", nil, model.Facts{}},
	} {
		sc, err := scenarios.Parse("t.yaml", []byte("lockstep: 1\nname: t\nlocks: [setnx-del]\nnetwork: {latency: 1ms}\nprocesses: {a: {}, b: {}}\nsteps: "+c.steps+"\n"), subject.Find)
		if err != nil {
			t.Fatal(err)
		}
		h := *sim.NewHost(t)
		h.MostSteps = 2000
		v := Run(&h, sc, scenariotest.Lock(t, "setnx-del"), 1)
		if c.want == nil {
			if v.Word == VerdictUndecided || v.Played.Steps >= h.MostSteps {
				t.Errorf("%s: %s after %d steps", c.rule, v.Word, v.Played.Steps)
			}
			continue
		}
		c.want.Events = cmp.Or(c.want.Events, h.MostSteps)
		f, ok := v.Doubtful()
		if got, is := f.Detail.(judges.Unended); v.Word != VerdictUndecided || !ok || !is || got.Events != c.want.Events || got.FromNs/second != c.want.FromNs/second ||
			got.Owner != c.want.Owner || got.UntilNs/second != c.want.UntilNs/second || f.Lock != c.facts.Lock || f.Thread != c.facts.Thread {
			t.Errorf("%s: %s, %+v; want %+v, %+v", c.rule, v.Word, f, *c.want, c.facts)
		}
	}
}

// A run with thousands of locks or waiters has fewer events, since each of them reads the state of every lock, and
// each change of a queue keeps the queue.
func TestARunReadsNoMoreThanItsShare(t *testing.T) {
	locks := func(n int) string {
		text := "{a/1: [{repeat: {times: 2, steps: ["
		for i := range n {
			text += fmt.Sprintf("{lock: {name: x%d, lease: 1h}}, {unlock: x%d}, ", i, i)
		}
		return text + "]}}]}"
	}
	const waiters = "{a/*: [{lock: {name: x, lease: 1h}}, {sleep: 1s}, {unlock: x}]}"
	for _, c := range []struct {
		rule, lock string
		threads    int
		steps      string
		ended      bool
	}{
		{"a hundred locks", "setnx-del", 1, locks(100), true},
		{"ten locks", "setnx-del", 1, locks(10), false},
		{"forty waiters", "redisson-fair@4.7.0", 40, waiters, true},
		{"five waiters", "redisson-fair@4.7.0", 5, waiters, false},
	} {
		text := fmt.Sprintf("lockstep: 1\nname: t\nlocks: [%s]\nprocesses: {a: {threads: %d}}\nsteps: %s\n", c.lock, c.threads, c.steps)
		sc, err := scenarios.Parse("t.yaml", []byte(text), subject.Find)
		if err != nil {
			t.Fatal(err)
		}
		h := *sim.NewHost(t)
		h.MostRead = 20_000
		v := Run(&h, sc, scenariotest.Lock(t, c.lock), 1)
		f, _ := v.Doubtful()
		if u, is := f.Detail.(judges.Unended); is != c.ended || is && u.Events > v.Played.Steps {
			t.Errorf("%s: %s after %d steps, %+v", c.rule, v.Word, v.Played.Steps, f)
		}
	}
}
