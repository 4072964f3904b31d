package scenarios

import (
	"reflect"
	"testing"

	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"

	"go.yaml.in/yaml/v3"
)

// A written scenario loads and equals the scenario that was written.
func TestAScenarioIsWrittenAsItWasRead(t *testing.T) {
	for _, sc := range builtinAndOdd(t) {
		sc.SetFile("written.yaml")
		again, err := Parse(sc.File, []byte(sc.Text), subject.Find)
		if err != nil {
			t.Errorf("%s: what was written does not load: %v\n%s", sc.Name, err, sc.Text)
			continue
		}
		if !reflect.DeepEqual(sc, again) {
			t.Errorf("%s: read as\n%+v\nwritten and read as\n%+v\n%s", sc.Name, sc, again, sc.Text)
		}
	}
}

// builtinAndOdd returns the built-in scenarios and odd.
func builtinAndOdd(t *testing.T) []*Scenario {
	t.Helper()
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	sc, err := Parse("odd.yaml", []byte(odd), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	return append(all, sc)
}

// Any text is read back unchanged.
func TestAtoms(t *testing.T) {
	for _, s := range []string{" x", "a: b", "null", "~", "true", "No", "{x}", "[y]", "*", "a*", "-", "- x", "1", "-1", "0x1f", "1e3", "1:30", "2026-11-21",
		"say \"no\"", "back\\slash", "#x", "x #y", "é", "a\tb", "a\nb", "\x00", "💡", "'", "!x", "&x", "%x", "@x", "`", "x:", ","} {
		for _, text := range []string{"a: " + atom(s), "{a: " + atom(s) + "}", "a: [" + atom(s) + "]"} {
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(text), &n); err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			value := n.Content[0].Content[1]
			if len(value.Content) > 0 {
				value = value.Content[0]
			}
			if value.Kind != yaml.ScalarNode || value.Value != s || value.Tag == "!!null" {
				t.Errorf("%q is written %s and read %q (%s)", s, text, value.Value, value.Tag)
			}
		}
	}
}

// odd has fields and values that no built-in scenario has.
const odd = `lockstep: 1
name: odd
about: "two  blanks, a colon: and\nlines that are long enough to be folded if it were not for them, which is what this is for"
source: "null"
locks: [redisson@4.7.0+replicas, setnx-del]
network: {latency: 0}
server: {replicas: 2, lag: 1ms..1500ms}
resources:
  stock: {start: 3, never_below: -1, end: 0}
  safe: {start: 1, fence: "{x}y: z"}
processes:
  a: {threads: 2, lock_objects: per_call, wall_clock: {offset: -1500ms, drift_ppm: -20}, client: {response_timeout: 90s, retry_attempts: 0, pool_size: 2, fair_wait: 0}}
  b: {}
steps:
  a/1:
    - lock: {name: "{x}y: z", lease: 1ms, interruptible: true, want: [granted, error], reply: nil}
    - repeat: {until: 5s, steps: [sleep: 1s, close]}
    - repeat: {times: 2, steps: [{with_lock: {name: "null", lease: 2s, wait: 0, unlock: always, steps: [{use: {resource: stock, take: 0, for: 1us, want: sold_out}}]}}]}
    - use: {resource: safe, want: [refused, sold_out]}
    - try_lock: {name: 5, wait: 1s, lease: 1s, unit: seconds, want: busy, reply: -2}
    - with_lock: {name: x}
    - read: {name: x, holds: 0, locked: false, ttl: free, queue: [], deadlines: {b/1: 1s..2s}}
    - read: {name: x, ttl: endless, queue: [a/1, b/1], deadlines: {}}
    - published: {name: x, to: all, count: 0}
  b/1:
    - at: 1h
    - interrupt: a/1
    - unlock: {name: x, want: still_held, reply: 0}
    - force_unlock: {name: x, want: [released, not_held]}
faults:
  - {at: 1s, crash: a}
  - {at: 1s, pause: a, for: 1ns}
  - {at: 1s, partition: a, for: 1s}
  - {at: 1s, partition: [a, b], for: 1s}
  - {at: 1s, wall_clock: b, step: -1s}
  - {at: 1s, server: restart}
  - {at: 1s, server: restart, keep_data: true}
  - {at: 1s, server: failover}
  - {at: 1s, server: flush_scripts}
  - {at: 1s, server: stall, for: 2s}
  - {at: 1s, server: wall_clock, step: -1500ms, servers: [2]}
  - {at: 1s, key: "*", do: delete}
  - {at: 1s, key: x, do: expire}
  - {when: {process: a, direction: reply, command: evalsha, script: leave, channel: "a*: b", nth: 3}, from: 1s, until: 2s, do: delay, for: 3s}
  - {when: {every: 2}, do: error, with: "ERR \"quoted\" and more"}
  - {when: {}, do: hold, until: 1s}
  - {when: {process: a, after: 2}, do: hold, until: {granted: a/1}}
  - {when: {}, from: 1s, do: hold, until: {granted: a, ended: "{x}y: z", published: "a*: b"}}
  - {when: {}, do: drop, until: {executed: {process: b, command: evalsha, script: leave, channel: "a*: b", nth: 3}}}
expect:
  redisson@4.7.0+replicas: {held: [], reach: [renewed]}
  setnx-del: {bug: [misdelete, lease], reach: [stale_unlock], in: some}
reach: [handed_over]
seeds: 2..7
`
