package play

import (
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// untilText returns the text of a scenario with a rule that keeps messages until something has happened.
func untilText(lock, steps, faults string) string {
	return "lockstep: 1\nname: t\nlocks: [" + lock + "]\nnetwork: {latency: 1ms}\nprocesses: {a: {}, b: {threads: 2}, c: {}}\n" +
		"steps:" + steps + "\nfaults: [" + faults + "]\n"
}

// A rule ends at the instant at which the last of the things for which it waits has happened, and what it
// has kept arrives a millisecond later.
func TestARuleWaitsForWhatHappensElsewhere(t *testing.T) {
	const steps = "\n  a/1: [{lock: {name: x, lease: 3s}}, {sleep: 100ms}, {unlock: x}]" +
		"\n  b/1: [{at: 50ms}, {lock: {name: x, lease: 2s}}, {sleep: 1s}, {unlock: x}]"
	for _, c := range []struct{ rule, lock, steps, faults, ends, want string }{
		{"the grant of another thread", "setnx-cad", steps,
			"{when: {process: a, direction: request, script: unlock}, do: hold, until: {granted: b/1}}", "3.01s",
			"a/1 lock granted@2ms, b/1 lock granted@3.01s, a/1 unlock not_held@3.012s, b/1 unlock released@4.012s"},
		{"the grant of any thread of a process", "setnx-cad", steps,
			"{when: {process: a, direction: request, script: unlock}, do: hold, until: {granted: b}}", "3.01s",
			"a/1 lock granted@2ms, b/1 lock granted@3.01s, a/1 unlock not_held@3.012s, b/1 unlock released@4.012s"},
		{"the end of a lease", "setnx-cad", steps,
			"{when: {process: a, direction: request, script: unlock}, do: hold, until: {ended: x}}", "3.002s",
			"a/1 lock granted@2ms, a/1 unlock not_held@3.004s, b/1 lock granted@3.01s, b/1 unlock released@4.012s"},
		{"a grant and then the end of a lease", "setnx-cad", steps + "\n  c/1: [{at: 1s}, {lock: y}]",
			"{when: {process: a, direction: request, script: unlock}, do: hold, until: {ended: x, granted: c}}", "3.002s",
			"a/1 lock granted@2ms, c/1 lock granted@1.002s, a/1 unlock not_held@3.004s, b/1 lock granted@3.01s, b/1 unlock released@4.012s"},
		{"the end of a lease and then a grant", "setnx-cad", steps,
			"{when: {process: a, direction: request, script: unlock}, do: hold, until: {granted: b, ended: x}}", "3.01s",
			"a/1 lock granted@2ms, b/1 lock granted@3.01s, a/1 unlock not_held@3.012s, b/1 unlock released@4.012s"},
		{"what happens before from does not count", "setnx-cad",
			"\n  a/1: [{lock: x}, {unlock: x}, {at: 1s}, {lock: x}, {unlock: x}]\n  b/1: [{at: 2s}, {lock: x}]\n  b/2: [{at: 100ms}, {lock: x}, {unlock: x}]",
			"{when: {process: a, direction: request, script: unlock}, from: 500ms, do: hold, until: {granted: b}}", "31.072s",
			"a/1 lock granted@2ms, a/1 unlock released@4ms, b/2 lock granted@102ms, b/2 unlock released@104ms, a/1 lock granted@1.002s, a/1 unlock unknown@6.002s, b/1 lock granted@31.072s"},
		{"a published message", "redisson@4.7.0", "\n  a/1: [{lock: x}, {at: 1s}, {unlock: x}]\n  c/1: [{at: 500ms}, {try_lock: y}, {try_lock: x}]",
			`{when: {process: c, direction: request}, do: hold, until: {published: "redisson_lock__channel:*"}}`, "1.001s",
			"a/1 lock granted@2ms, a/1 unlock released@1.002s, c/1 try_lock granted@1.003s, c/1 try_lock granted@1.005s"},
		{"the second request of another process", "setnx-cad", "\n  a/1: [{lock: x}, {at: 1s}, {unlock: x}]\n  b/1: [{at: 900ms}, {lock: x}]",
			"{when: {process: a, direction: request, script: unlock}, do: hold, until: {executed: {process: b, script: acquire, nth: 3}}}", "1.105s",
			"a/1 lock granted@2ms, a/1 unlock released@1.107s, b/1 lock granted@1.208s"},
		{"all requests of an unlock but the first", "setnx-get-del", steps,
			"{when: {process: a, direction: request, after: 2}, do: hold, until: {granted: b/1}}", "3.01s",
			"a/1 lock granted@2ms, b/1 lock granted@3.01s, a/1 unlock released@3.012s, b/1 unlock not_held@4.012s"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			sc, err := scenarios.Parse("t.yaml", []byte(untilText(c.lock, c.steps, c.faults)), subject.Find)
			if err != nil {
				t.Fatal(err)
			}
			h, l := sim.NewHost(t), scenariotest.Lock(t, c.lock)
			p := Play(h, sc, l, sim.NewSeeded(1))
			if got := seen(t, p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if again := Play(h, sc, l, sim.NewSeeded(1)); again.Record.Digest() != p.Record.Digest() {
				t.Error("two runs differ")
			}
			ends := ""
			for _, e := range p.Record.Events {
				if e.Kind == model.KindCalm {
					break
				}
				if e.Kind == model.KindFaultEnd {
					ends = time.Duration(e.AtNs).Round(time.Millisecond).String()
				}
			}
			if ends != c.ends {
				t.Errorf("the rule ends at %q, want %q", ends, c.ends)
			}
		})
	}
}

// A run in which a rule has kept a message for something that did not happen is undecided, and says so. If the
// rule met no message, or what it waited for has happened, the run is as good as any other.
func TestARunInVainIsUndecided(t *testing.T) {
	const steps = "\n  a/1: [{lock: x}, {sleep: 100ms}, {unlock: x}]\n  b/1: [{at: 200ms}, {lock: x}, {unlock: x}]\n  c/1: [{at: 100s}, {lock: y}]"
	for _, c := range []struct {
		faults string
		word   Word
		why    string
	}{
		{"{when: {process: b, direction: request}, do: hold, until: {granted: b/1}}", VerdictUndecided,
			"a message was kept to the end by hold request of b until b/1 is granted a lock, which did not happen"},
		{"{when: {process: a, nth: 50}, do: hold, until: {granted: c}}, {when: {process: b, direction: request}, from: 150ms, do: hold, until: {granted: a, ended: y}}", VerdictUndecided,
			"a message was kept to the end by hold request of b until a is granted a lock and a hold of y ends, which did not happen"},
		{"{when: {process: b, direction: request, nth: 50}, do: hold, until: {granted: b/1}}", VerdictHeld, ""},
		{"{when: {process: b, direction: request}, do: hold, until: {granted: a}}", VerdictHeld, ""},
	} {
		sc, err := scenarios.Parse("t.yaml", []byte(untilText("setnx-cad", steps, c.faults)), subject.Find)
		if err != nil {
			t.Fatal(err)
		}
		v := Run(sim.NewHost(t), sc, scenariotest.Lock(t, "setnx-cad"), 1)
		if v.Word != c.word || v.Why != c.why || v.AsExpected != (c.word == VerdictHeld) {
			t.Errorf("%s: %s, %q", c.faults, v.Word, v.Why)
		}
		told := false
		for _, e := range v.Played.Record.Events {
			told = told || e.Kind == model.KindFaultEnd && strings.HasSuffix(e.Text, ", which has not happened")
		}
		if told != (c.word == VerdictUndecided) {
			t.Errorf("%s: the record says that it was in vain: %t", c.faults, told)
		}
	}
}
