package play

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/scenarios/scenariotest"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// The test checks each fault from the side of the callers: how every call ends, and
// when. Read steps check what the server holds meanwhile. a/1 holds from the start
// and unlocks at 5 s. b/1 wants the lock from 1 s on.
func TestWhatCallersOfALockSeeOfAFault(t *testing.T) {
	const (
		bare, plain = "setnx-cad", "redisson@4.7.0"

		wait = "\n  b/1: [{at: 1s}, {lock: {name: x, lease: 20s}}, {unlock: x}]"
	)
	hold := func(reads string) string {
		return "\n  a/1: [{lock: {name: x, lease: 20s}}, {at: 4500ms}, {read: {name: x, " + reads + "}}, {at: 5s}, {unlock: x}]"
	}
	// again makes a/1 lock once more, on the connection that it has then.
	again := func(reads string) string { return strings.TrimSuffix(hold(reads), "]") + ", {at: 10s}, {try_lock: x}]" }
	interrupt := func(at string) string {
		return "\n  b/1: [{at: 1s}, {lock: {name: x, lease: 5s, interruptible: true}}, {at: 2s}]" +
			"\n  b/2: [{at: " + at + "}, {interrupt: b/1}, {at: 2s}, {read: {name: x, locked: true}}, {at: 7s}, {try_lock: x}]"
	}
	for _, c := range []struct {
		rule, steps, faults string
		want                map[string]string // by lock
	}{
		{"crash: the hold ends with its lease", "\n  a/1: [{lock: {name: x, lease: 3s}}, {sleep: 1s}, {unlock: x}]" + wait,
			"{at: 500ms, crash: a}", map[string]string{
				bare:  "a/1 lock granted@2ms, b/1 lock granted@3.042s, b/1 unlock released@3.044s",
				plain: "a/1 lock granted@2ms, b/1 lock granted@3.004s, b/1 unlock released@3.006s",
			}},
		{"pause: the lease runs out in it, and the holder learns of it afterwards", hold("locked: false") + wait,
			"{at: 2s, pause: a, for: 30s}", map[string]string{
				bare:  "a/1 lock granted@2ms, b/1 lock granted@20.076s, b/1 unlock released@20.078s, a/1 unlock not_held@32.002s",
				plain: "a/1 lock granted@2ms, b/1 lock granted@20.004s, b/1 unlock released@20.006s, a/1 unlock not_held@32.002s",
			}},
		{"partition: the unlock does not get through", hold("holds: 1") + wait,
			"{at: 4s, partition: a, for: 60s}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock unknown@10s, b/1 lock granted@20.076s, b/1 unlock released@20.078s",
				plain: "a/1 lock granted@2ms, a/1 unlock unknown@8.002s, b/1 lock granted@20.004s, b/1 unlock released@20.006s",
			}},
		{"the wall clock: a fair waiter's deadline is an hour later", "\n  a/1: [{lock: {name: x, lease: 20s}}, {at: 2s}," +
			" {read: {name: x, queue: [b/1], deadlines: {b/1: 1h5m20s}}}, {at: 5s}, {unlock: x}]" + wait,
			"{at: 500ms, wall_clock: b, step: 1h}", map[string]string{
				"redisson-fair@4.7.0": "a/1 lock granted@2ms, a/1 unlock released@5.002s, b/1 lock granted@5.004s, b/1 unlock released@5.006s",
			}},
		{"restart with its data: the hold is still there", again("holds: 1"),
			"{at: 2s, server: restart, keep_data: true}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock error@5s, a/1 try_lock busy@10.002s",
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.896s, a/1 try_lock granted@10.006s",
			}},
		{"restart without its data: the hold is gone", again("locked: false"),
			"{at: 2s, server: restart}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock error@5s, a/1 try_lock granted@10.002s",
				plain: "a/1 lock granted@2ms, a/1 unlock not_held@5.896s, a/1 try_lock granted@10.006s",
			}},
		{"failover: the last write is gone, which is the hold", again("locked: false"),
			"{at: 2s, server: failover, lose_last: 1}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock error@5s, a/1 try_lock granted@10.002s",
				plain: "a/1 lock granted@2ms, a/1 unlock not_held@5.896s, a/1 try_lock granted@10.006s",
			}},
		{"failover: nothing is lost but the connections", again("holds: 1"),
			"{at: 2s, server: failover}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock error@5s, a/1 try_lock busy@10.002s",
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.896s, a/1 try_lock granted@10.006s",
			}},
		// The bare lock sends the text (EVAL), Redisson loads it (SCRIPT LOAD) and asks again.
		{"script flush: a script is asked for in vain, and sent", hold("holds: 1"),
			"{at: 2s, server: flush_scripts}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock released@5.004s",
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.006s",
			}},
		{"stall: the answer comes at its end", hold("holds: 1"),
			"{at: 4900ms, server: stall, for: 2s}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock released@6.901s",
				plain: "a/1 lock granted@2ms, a/1 unlock released@6.901s",
			}},
		{"stall: longer than a client waits", hold("holds: 1"),
			"{at: 4900ms, server: stall, for: 10s}", map[string]string{
				bare:  "a/1 lock granted@2ms, a/1 unlock unknown@10s",
				plain: "a/1 lock granted@2ms, a/1 unlock unknown@8.002s",
			}},
		{"an operator deletes the key", hold("locked: false") + wait,
			"{at: 3s, key: x, do: delete}", map[string]string{
				bare:  "a/1 lock granted@2ms, b/1 lock granted@3.042s, b/1 unlock released@3.044s, a/1 unlock not_held@5.002s",
				plain: "a/1 lock granted@2ms, a/1 unlock not_held@5.002s, b/1 lock granted@20.004s, b/1 unlock released@20.006s",
			}},
		{"the key is evicted", hold("locked: false") + wait,
			`{at: 3s, key: "?", do: expire}`, map[string]string{
				bare:  "a/1 lock granted@2ms, b/1 lock granted@3.042s, b/1 unlock released@3.044s, a/1 unlock not_held@5.002s",
				plain: "a/1 lock granted@2ms, a/1 unlock not_held@5.002s, b/1 lock granted@20.004s, b/1 unlock released@20.006s",
			}},
		{"interrupt: of a call that waits", hold("holds: 1") + "\n  b/1: [{at: 1s}, {lock: {name: x, interruptible: true}}]" +
			"\n  b/2: [{at: 2s}, {interrupt: b/1}, {at: 6s}, {try_lock: x}]",
			"", map[string]string{
				bare:  "a/1 lock granted@2ms, b/1 lock error@2s, a/1 unlock released@5.002s, b/2 try_lock granted@6.002s",
				plain: "a/1 lock granted@2ms, b/1 lock error@2s, a/1 unlock released@5.002s, b/2 try_lock granted@6.002s",
			}},
		// go-redis waits for the answer although its context has ended; Redisson gives the answer
		// up.
		{"interrupt: of a call that is answered", interrupt("1001500us"),
			"", map[string]string{
				bare:  "b/1 lock granted@1.002s, b/2 try_lock granted@7.002s",
				plain: "b/1 lock unknown@1.002s, b/2 try_lock granted@7.002s",
			}},
		{"interrupt: of a call whose command is under way", interrupt("1000500us"),
			"", map[string]string{
				bare:  "b/1 lock granted@1.002s, b/2 try_lock granted@7.002s",
				plain: "b/1 lock unknown@1.001s, b/2 try_lock granted@7.002s",
			}},
		{"interrupt: between calls, of nothing", interrupt("1500ms"),
			"", map[string]string{
				bare:  "b/1 lock granted@1.002s, b/2 try_lock granted@7.002s",
				plain: "b/1 lock granted@1.002s, b/2 try_lock granted@7.002s",
			}},
		{"watchdog death: the hold ends 30 s after the last renewal", "\n  a/1: [{lock: x}, {at: 39500ms}," +
			" {read: {name: x, holds: 1, ttl: 400ms..600ms}}, {at: 40500ms}, {read: {name: x, locked: false}}, {at: 41s}, {unlock: x}]",
			"{when: {process: a, script: renew, direction: request}, from: 15s, do: drop}", map[string]string{
				plain: "a/1 lock granted@2ms, a/1 unlock not_held@41.002s",
			}},
		{"watchdog: a renewal answered with an error", "\n  a/1: [{lock: x}, {at: 41s}, {unlock: x}]",
			"{when: {process: a, script: renew, nth: 1}, do: error, with: ERR injected}", map[string]string{
				plain:             "a/1 lock granted@2ms, a/1 unlock released@41.002s",
				"redisson@3.43.0": "a/1 lock granted@2ms, a/1 unlock not_held@41.002s",
			}},
		{"subscription: nothing is lost, and the message wakes", hold("holds: 1") + wait,
			"", map[string]string{
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.002s, b/1 lock granted@5.004s, b/1 unlock released@5.006s",
			}},
		{"subscription: the message is lost, and the lease's end wakes", hold("holds: 1") + wait,
			`{when: {process: b, channel: "*", direction: reply, nth: 2}, do: drop}`, map[string]string{
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.002s, b/1 lock granted@20.004s, b/1 unlock released@20.006s",
			}},
		{"subscription: cut off when the message comes", hold("holds: 1") + wait,
			"{at: 2s, partition: b, for: 4s}", map[string]string{
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.002s, b/1 lock granted@20.004s, b/1 unlock released@20.006s",
			}},
		{"subscription: reset by the message", hold("holds: 1") + wait,
			`{when: {process: b, channel: "redisson_lock__channel:*", direction: reply, nth: 2}, do: reset}`, map[string]string{
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.002s, b/1 lock granted@20.004s, b/1 unlock released@20.006s",
			}},
		{"subscription: reset before the message, and there again", hold("holds: 1") + wait,
			"{at: 2s, server: restart, keep_data: true}", map[string]string{
				plain: "a/1 lock granted@2ms, a/1 unlock released@5.896s, b/1 lock granted@6.685s, b/1 unlock released@6.687s",
			}},
		{"subscription: its acknowledgement resets it", hold("holds: 1") + wait,
			`{when: {process: b, command: SUBSCRIBE, direction: reply}, do: reset}`, map[string]string{
				plain: "a/1 lock granted@2ms, b/1 lock error@1.003s, b/1 unlock not_held@1.005s, a/1 unlock released@5.002s",
			}},
	} {
		for lock, want := range c.want {
			t.Run(c.rule+", "+lock, func(t *testing.T) {
				if got := seen(t, playText(t, lock, c.steps, c.faults)); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

// A fair lock has three keys. The loss of each has another effect.
func TestAnyKeyOfALockCanGo(t *testing.T) {
	const queued, deadlines = "queue: [b/1, c/1]", "deadlines: {b/1: 5m10s, c/1: 10m10s}"
	for key, reads := range map[string]string{
		"nothing":                 "locked: true, " + queued + ", " + deadlines,
		"x":                       "locked: false, " + queued + ", " + deadlines,
		"redisson_lock_queue:{x}": "locked: true, queue: [], " + deadlines,
		"redisson_lock_timeout:*": "locked: true, " + queued,
		"redisson_lock_*:{x}":     "locked: true, queue: []",
		"*":                       "locked: false, queue: []",
	} {
		for _, do := range []string{"delete", "expire"} {
			t.Run(do+" "+key, func(t *testing.T) {
				p := playText(t, "redisson-fair", `
  a/1: [{lock: {name: x, lease: 10s}}, {at: 4s}, {read: {name: x, `+reads+`}}]
  b/1: [{at: 1s}, {lock: x}]
  c/1: [{at: 2s}, {lock: x}]`, fmt.Sprintf("{at: 3s, key: %q, do: %s}", key, do))
				seen(t, p)
				for _, e := range p.Record.Events {
					if e.Kind == model.KindState && e.AtNs > int64(2900*time.Millisecond) {
						if gone := len(e.State.Deadlines) == 0; gone != !strings.Contains(reads, "deadlines") {
							t.Errorf("deadlines are gone: %v, with %s", gone, key)
						}
						break
					}
				}
			})
		}
	}
}

// A rule matches the commands of a lock by their roles.
func TestARuleMeetsTheScriptOfALock(t *testing.T) {
	for _, c := range []struct{ lock, script, steps, want string }{
		{"setnx-del", "acquire", "a/1: [{lock: x}]", "a/1 lock error@2ms"},
		{"setnx-del", "unlock", "a/1: [{lock: x}, {unlock: x}]", "a/1 lock granted@2ms, a/1 unlock error@4ms"},
		{"setnx-get-del", "unlock", "a/1: [{lock: x}, {unlock: x}]", "a/1 lock granted@2ms, a/1 unlock error@6ms"},
		{"setnx-cad", "unlock", "a/1: [{lock: x}, {unlock: x}]", "a/1 lock granted@2ms, a/1 unlock error@4ms"},
		{"string-reentrant", "acquire", "a/1: [{lock: x}]", "a/1 lock error@2ms"},
		{"redisson", "acquire", "a/1: [{lock: x}]", "a/1 lock error@2ms"},
		{"redisson", "unlock", "a/1: [{lock: x}, {unlock: x}]", "a/1 lock granted@2ms, a/1 unlock error@4ms"},
		{"redisson", "force_unlock", "a/1: [{lock: x}, {force_unlock: x}]", "a/1 lock granted@2ms, a/1 force_unlock error@4ms"},
		{"redisson-fair", "leave", "a/1: [{lock: x}, {at: 5s}]\n  b/1: [{at: 1s}, {try_lock: {name: x, wait: 1s}}]",
			"a/1 lock granted@2ms, b/1 try_lock_timed error@2.002s"},
	} {
		for _, direction := range []string{"request", "reply"} {
			t.Run(c.script+" "+direction+" of "+c.lock, func(t *testing.T) {
				p := playText(t, c.lock, "\n  "+c.steps, "{when: {script: "+c.script+", direction: "+direction+"}, do: error, with: ERR injected}")
				if got := seen(t, p); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		}
	}
}

// playText plays steps and faults in a network of exactly 1 ms.
func playText(t *testing.T, lock, steps, faults string) Played {
	t.Helper()
	text := "lockstep: 1\nname: t\nlocks: [" + lock + "]\nnetwork: {latency: 1ms}\nprocesses: {a: {}, b: {threads: 2}, c: {}}\n" +
		"steps:" + steps + "\nfaults: [" + faults + "]\n"
	sc, err := scenarios.Parse("t.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	return Play(sim.NewHost(t), sc, scenariotest.Lock(t, lock), sim.NewSeeded(1))
}

// seen returns how the calls of a run ended, and when. It leaves out calls that
// waited to the end of the run. A read step that fails is an error.
func seen(t *testing.T, p Played) string {
	t.Helper()
	var calls []string
	for _, e := range p.Record.Events {
		switch {
		case e.Kind == model.KindReturn && e.Outcome != model.Waiting:
			at := time.Duration(e.AtNs).Round(time.Millisecond)
			calls = append(calls, fmt.Sprintf("%s/%d %s %s@%v", e.Process, e.Thread, e.Action, e.Outcome, at))
		case e.Kind == model.KindCheck && !e.Met:
			t.Error(e.Text)
		case e.Kind == model.KindDefect, e.Kind == model.KindLeft && e.Text != "":
			t.Errorf("%s: %s", e.Kind, e.Text)
		}
	}
	return strings.Join(calls, ", ")
}
