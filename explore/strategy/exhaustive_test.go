package strategy

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/scenarios/scenariotest"

	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/scenarios/play"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// tiny returns a scenario of two clients with the steps a and b.
func tiny(lock, extra, a, b string) string {
	return fmt.Sprintf("lockstep: 1\nname: tiny\nlocks: [%s]\n%sprocesses: {a: {}, b: {}}\nsteps:\n  a/1: [%s]\n  b/1: [%s]\n", lock, extra, a, b)
}

// A search that plays one order of commuting steps has the same outcomes as a search that
// plays all orders.
func TestReductionLosesNoOutcome(t *testing.T) {
	const (
		section = "with_lock: {name: x, steps: []}"
	)
	h := sim.NewHost(t)
	for _, c := range []struct {
		lock, extra, a, b string
		lose, near, long  bool
		late              []time.Duration
	}{
		{lock: "setnx-del", a: section, b: section},
		{lock: "setnx-get-del", a: section, b: section},
		{lock: "setnx-del", a: "{try_lock: x}, {unlock: x}", b: "{try_lock: x}", lose: true},
		{lock: "setnx-del", a: "{try_lock: {name: x, lease: 1s, wait: 0s}}, {unlock: x}", b: "{at: 2s}, {try_lock: x}", late: []time.Duration{2 * time.Second}},
		{lock: "redisson@3.4.2", a: "lock: x", b: "unlock: x", lose: true},
		{lock: "redisson@4.7.0", a: "try_lock: {name: x, lease: 1s}", b: "try_lock: {name: x, lease: 1s}", lose: true},
		{lock: "redisson-fair@4.7.0", a: "lock: {name: x, lease: 1s}", b: "lock: {name: x, lease: 1s}"},
		{lock: "string-reentrant", a: "{lock: x}, {lock: x}, {unlock: x}", b: "{at: 0}, {try_lock: x}"},
		{lock: "setnx-cad", a: section, b: "with_lock: {name: y, steps: []}"},
		{lock: "none", extra: "resources: {r: {start: 5}}\n", a: "{use: {resource: r, take: 1, for: 0}}", b: "{use: {resource: r, take: 1, for: 0}}"},
		{lock: "redisson@3.43.0+replicas", extra: "server: {replicas: 1}\n", a: "try_lock: {name: x, lease: 1s}", b: "at: 0"},
		{lock: "redisson@3.21.3+replicas", extra: "server: {replicas: 1}\n", near: true, long: true, a: "try_lock: {name: x, lease: 1s}", b: "force_unlock: x"},
		{lock: "setnx-del", extra: "faults: [{at: 1ms, server: stall, for: 5ms}]\n", a: "{at: 2ms}, {try_lock: x}", b: "{at: 2ms}, {try_lock: x}"},
		{lock: "setnx-del", extra: "faults: [{at: 5ms, server: failover, lose_last: 1}]\n", a: "{try_lock: x}, {at: 6ms}, {unlock: z}, {at: 7ms}, {try_lock: x}", b: "{try_lock: y}"},
	} {
		name := fmt.Sprintf("%s/%s|%s", c.lock, c.a, c.b)
		t.Run(name, func(t *testing.T) {
			if c.long {
				longtest.Only(t)
			}
			h := h.For(t)
			l := scenariotest.Lock(t, c.lock)
			sc := scenariotest.Parse(t, tiny(c.lock, c.extra, c.a, c.b))
			search := func(plain bool) (map[string]int, Coverage) {
				outcomes := map[string]int{}
				s := Search{Scenario: sc, Lock: l, LoseOne: c.lose, Late: c.late, NearReplicas: c.near, Plain: plain, MaxRuns: 40000}
				cov := s.Run(h, func(_ int, v play.Verdict) bool {
					outcomes[outcome(v)]++
					return true
				})
				if !cov.Complete || cov.Diverged != "" {
					t.Fatalf("plain %t: not complete: %v", plain, cov)
				}
				return outcomes, cov
			}
			all, plain := search(true)
			some, reduced := search(false)
			t.Logf("plain: %v; reduced: %v, %d pruned; %d outcomes", plain, reduced, reduced.Pruned, len(all))
			for _, o := range slices.Sorted(maps.Keys(all)) {
				if some[o] == 0 {
					t.Errorf("the reduced search does not reach\n%s", o)
				}
			}
			for _, o := range slices.Sorted(maps.Keys(some)) {
				if all[o] == 0 {
					t.Errorf("only the reduced search reaches\n%s", o)
				}
			}
			if strings.Contains(reduced.String(), "with replicas that keep up") != c.near {
				t.Errorf("it says of replicas what is not so: %v", reduced)
			}
			if reduced.Schedules >= plain.Schedules {
				t.Errorf("%d schedules of %d: nothing was reduced", reduced.Schedules, plain.Schedules)
			}
		})
	}
}

// A schedule of the exhaustive strategy can be recorded and replayed. The recording names
// the strategy.
func TestOrdersAreRecorded(t *testing.T) {
	h := sim.NewHost(t)
	l := scenariotest.Lock(t, "redisson@3.21.3")
	s := Search{Scenario: scenariotest.Parse(t, SmallCase(l)), Lock: l, LoseOne: true, MaxRuns: 40}
	failed := 0
	s.Run(h, func(n int, v play.Verdict) bool {
		v.Played.Strategy = "exhaustive"
		var b bytes.Buffer
		if err := v.Recording().Write(&b, nil); err != nil {
			t.Fatal(err)
		}
		r, sc, lock, err := play.ReadRecording("r.lockstep", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		again, diverged := play.Replay(h, r, sc, lock)
		if diverged != "" || again.Digest() != v.Digest() || again.Recording().Strategy != "exhaustive" {
			t.Errorf("schedule %d: digest %.12s, and again %.12s (%s), strategy %s", n, v.Digest(), again.Digest(), diverged, again.Recording().Strategy)
		}
		if len(v.Findings) == 0 || failed > 0 {
			return true
		}
		failed++
		// Shrinking turns the lost message into a rule, which a scenario file can express.
		small, _ := shrink.Shrink(h, failure.Failure{Verdict: v, Finding: v.Findings[0]}, 300, nil)
		if !small.Seeded || len(small.Verdict.Scenario.Faults) != 1 {
			t.Errorf("made small it is no file with one fault:\n%s", small.Verdict.Scenario.Text)
		}
		return true
	})
	if failed == 0 {
		t.Error("none failed: nothing was shrunk")
	}
}

// noting plays every order that its Chooser chooses and records the effects of the steps.
type noting struct {
	sim.Chooser
	effects []sim.Effect
}

func (*noting) Offer(int, []sim.Candidate) bool { return true }
func (n *noting) Took(e sim.Effect)             { n.effects = append(n.effects, e) }

// Acknowledgements of replicas, on which the answer of a WAIT depends, are ordered only if
// replicas may lag.
func TestAWaitRestsOnReplicasThatMayLag(t *testing.T) {
	h := sim.NewHost(t)
	l := scenariotest.Lock(t, "redisson@3.43.0+replicas")
	sc := scenariotest.Parse(t, SmallCase(l))
	for _, near := range []bool{false, true} {
		n := &noting{Chooser: sim.NewReplayer(nil)}
		play.PlayIn(h, sc, l, n, &sim.Orders{NearReplicas: near})
		touched := func(of func(sim.Effect) map[string]bool, object string) (count int) {
			for _, e := range n.effects {
				for name := range of(e) {
					if strings.HasPrefix(name, object) {
						count++
					}
				}
			}
			return count
		}
		read := func(e sim.Effect) map[string]bool { return e.Reads }
		written := func(e sim.Effect) map[string]bool { return e.Writes }
		for what, count := range map[string]int{
			"acknowledgements are read":     touched(read, "ack of write"),
			"acknowledgements come":         touched(written, "ack of write"),
			"the number of writes is read":  touched(read, "writes"),
			"the number of writes is other": touched(written, "writes"),
		} {
			if (count > 0) == near {
				t.Errorf("near %t: %s %d times", near, what, count)
			}
		}
	}
}

// outcome returns the result of a schedule without instants and numbers: the verdict, the
// answers to the operations of each thread, which operation was over before which began,
// the states that the server went through, and what was left at the end. Schedules that
// differ only in steps that commute have the same outcome.
func outcome(v play.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", v.Word)
	var findings []string
	for _, f := range v.Findings {
		findings = append(findings, fmt.Sprintf("%s %s %s", f.Judge, f.Verdict, f.Class))
	}
	slices.Sort(findings)
	fmt.Fprintf(&b, "%s\n", strings.Join(slices.Compact(findings), ", "))
	events := v.Played.Record.Events
	number := map[int]string{} // operation -> thread and number within it
	count := map[string]int{}
	ended := []string{}
	var lines, left []string
	states := map[string][]string{}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case model.KindInvoke:
			who := e.ThreadName()
			count[who]++
			number[e.Op] = fmt.Sprintf("%s.%d", who, count[who])
			after := slices.Clone(ended)
			slices.Sort(after)
			lines = append(lines, fmt.Sprintf("%s %s after %v", number[e.Op], e.Action, after))
		case model.KindReturn:
			ended = append(ended, number[e.Op])
			lines = append(lines, fmt.Sprintf("%s: %s", number[e.Op], e.Outcome))
		case model.KindState:
			states[e.Lock] = append(states[e.Lock], fmt.Sprintf("%q %d %v", e.State.Owner, e.State.Count, e.State.Queue))
		case model.KindLeft:
			left = append(left, e.Key+e.Channel+e.Text)
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(&b, "%s\n%q\nleft %v\n", strings.Join(lines, "\n"), states, left)
	return b.String()
}
