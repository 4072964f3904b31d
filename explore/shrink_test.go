package explore

import (
	"strings"
	"testing"

	"lockstep/linearizability"
	"lockstep/scenarios"
	"lockstep/sim"
)

// bloated are failures of known kinds under much that has nothing to do with
// them.
var bloated = []struct {
	name, lock, judge string
	class             linearizability.Class
	seed              uint64
	text              string
}{
	{"an unlock deletes another's hold after a pause", "setnx-del", "misdelete", linearizability.ClassBug, 3, `lockstep: 1
name: late
about: A thread is paused past its lease and unlocks.
locks: [setnx-del, setnx-cad]
network: {latency: 200us..7ms}
resources: {stock: {start: 100}, other: {start: 7}}
processes: {a: {threads: 3}, b: {threads: 2, wall_clock: {offset: 20ms}}, c: {}, d: {threads: 4, client: {pool_size: 5}}}
steps:
  a/1:
    - sleep: 130ms
    - repeat:
        times: 3
        steps:
          - with_lock: {name: orders, lease: 3750ms, unlock: always, steps: [{use: {resource: stock, take: 2, for: 1s}}, {sleep: 20ms}]}
          - sleep: 77ms
    - try_lock: {name: other, lease: 3s}
  a/2: [{lock: spare}, {sleep: 1s}, {unlock: spare}, {read: {name: spare, locked: false}}]
  a/3: [{at: 3s}, {try_lock: {name: orders, wait: 4s, lease: 2s}}, {unlock: orders}]
  b/*:
    - at: 1s
    - with_lock: {name: orders, lease: 10s, steps: [{use: {resource: stock, take: 1, for: 4s}}]}
  c/1: [{lock: orders}, {sleep: 200ms}, {unlock: orders}, close]
  d/*: [{sleep: 400ms}, {try_lock: other}, {use: {resource: other}}, {unlock: other}]
faults:
  - {at: 500ms, pause: c, for: 100ms}
  - {at: 600ms, pause: a, for: 5300ms}
  - {when: {process: d, script: acquire, direction: reply, nth: 2}, do: delay, for: 30ms}
  - {at: 9s, partition: [b, c], for: 400ms}
  - {at: 30s, crash: d}
seeds: 1..20
`},
	{"one unlock takes two levels", "redisson@3.21.3", "hold-count", linearizability.ClassBug, 5, `lockstep: 1
name: twice
locks: [redisson@3.21.3]
processes: {a: {threads: 2}, b: {threads: 3}, c: {threads: 2}}
steps:
  a/1:
    - repeat: {times: 2, steps: [{sleep: 120ms}, {lock: {name: orders, lease: 60s}}, {lock: {name: orders, lease: 50s}}, {sleep: 2s}, {unlock: orders}, {sleep: 3s}, {unlock: orders}]}
  a/2: [{sleep: 3s}, {with_lock: {name: spare, steps: [{sleep: 2s}]}}]
  b/*: [{at: 1s}, {try_lock: {name: orders, wait: 20s, lease: 9s}}, {sleep: 1s}, {unlock: orders}]
  c/1: [{at: 4s}, {lock: orders}, {sleep: 12s}, {unlock: orders}]
  c/2: [{lock: spare}, {sleep: 500ms}, {unlock: spare}]
faults:
  - {when: {process: c, script: renew, direction: reply, every: 3}, do: delay, for: 15ms}
  - {when: {process: a, script: unlock, direction: reply, nth: 1}, do: drop}
  - {when: {process: b, channel: "*", direction: reply, nth: 3}, do: drop}
  - {at: 40s, server: flush_scripts}
  - {at: 50s, pause: b, for: 1s}
`},
	{"one failed renewal ends the watchdog", "redisson@3.21.3", "lease", linearizability.ClassBug, 2, `lockstep: 1
name: renewal
locks: [redisson@3.21.3]
watchdog: 27s
processes: {a: {threads: 2}, b: {threads: 2}, c: {client: {retry_attempts: 2}}}
steps:
  a/1: [{sleep: 1200ms}, {lock: orders}, {sleep: 70s}, {unlock: orders}, {lock: orders}, {unlock: orders}]
  a/2: [{sleep: 2s}, {lock: spare}, {sleep: 4s}, {unlock: spare}]
  b/1: [{at: 2s}, {lock: {name: orders, lease: 40s}}, {sleep: 30s}, {unlock: orders}]
  b/2: [{at: 3s}, {try_lock: {name: orders, wait: 20s}}, {unlock: orders}]
  c/1: [{at: 30s}, {try_lock: orders}, {try_lock: spare}, {unlock: spare}]
faults:
  - {when: {process: a, script: renew, direction: request, nth: 2}, do: error, with: "ERR injected"}
  - {at: 5s, pause: c, for: 2s}
  - {when: {process: b, script: acquire, direction: request, nth: 1}, do: delay, for: 40ms}
  - {at: 80s, server: stall, for: 100ms}
`},
	{"a waiter of the fair lock sleeps on an old lease", "redisson-fair@3.12.4", "liveness", linearizability.ClassBug, 1, `lockstep: 1
name: sleeper
locks: [redisson-fair@3.12.4, redisson-fair@4.7.0]
processes: {a: {}, b: {threads: 2}, c: {}, d: {}}
steps:
  a/1: [{lock: {name: orders, lease: 30s}}, {at: 2200ms}, {unlock: orders}, {sleep: 40s}, {lock: orders}, {unlock: orders}]
  b/1: [{at: 500ms}, {lock: {name: orders, lease: 1100ms}}, {sleep: 60s}]
  b/2: [{at: 300ms}, {lock: {name: spare, lease: 1s}}, {unlock: spare}]
  c/1: [{at: 1s}, {lock: {name: orders, lease: 1s}}, {unlock: orders}]
  d/1: [{at: 90s}, {lock: {name: orders, lease: 5s}}, {unlock: orders}]
faults:
  - {at: 100s, pause: a, for: 3s}
  - {when: {process: d, script: unlock, direction: reply}, do: delay, for: 20ms}
`},
	{"no lock at all", "none", "mutual-exclusion", linearizability.ClassBug, 1, `lockstep: 1
name: nothing
locks: [none]
resources: {stock: {start: 40, never_below: 0, end: 28}}
processes: {a: {threads: 6}, b: {threads: 6}}
steps:
  a/*: [{with_lock: {name: orders, steps: [{use: {resource: stock, for: 2s}}]}}]
  b/*: [{sleep: 100ms}, {with_lock: {name: orders, steps: [{use: {resource: stock, for: 2s}}]}}]
faults:
  - {at: 1s, pause: a, for: 200ms}
  - {at: 20s, crash: b}
`},
	{"the holder pauses past its lease", "redisson@4.7.0", "mutual-exclusion", linearizability.ClassLimit, 1, `lockstep: 1
name: pause
locks: [redisson@4.7.0]
processes: {a: {threads: 2}, b: {}, c: {}}
steps:
  a/1: [{sleep: 200ms}, {lock: {name: orders, lease: 4s}}, {sleep: 2s}, {unlock: orders}]
  a/2: [{lock: spare}, {sleep: 2s}, {unlock: spare}]
  b/1: [{at: 1s}, {lock: {name: orders, lease: 9s}}, {sleep: 4s}, {unlock: orders}]
  c/1: [{at: 2s}, {lock: {name: orders, lease: 9s}}, {sleep: 4s}, {unlock: orders}]
faults:
  - {at: 900ms, pause: a, for: 20s}
  - {at: 40s, pause: b, for: 1s}
`},
}

func fails(t *testing.T, h *sim.Host, text, lock, judge string, class linearizability.Class, seed uint64) Failure {
	t.Helper()
	s := &shrinker{from: Failure{Verdict: scenarios.Verdict{Scenario: &scenarios.Scenario{File: "my.yaml"}}}}
	sc, err := s.load(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := scenarios.FindLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	v := scenarios.Run(h, sc, l, seed)
	f, ok := First(v, judge)
	if !ok || f.Class != class {
		t.Fatalf("%s is not broken as a %s: %+v", judge, class, v.Findings)
	}
	return Failure{Verdict: v, Finding: f, Seeded: true}
}

func TestWhatIsPlantedBecomesSmall(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range bloated {
		t.Run(c.name, func(t *testing.T) {
			h := h.For(t)
			f := fails(t, h, c.text, c.lock, c.judge, c.class, c.seed)
			small, phases := ShrinkInPhases(h, f, 2000)
			runs := 0
			for _, p := range phases {
				runs += p.Runs
				t.Logf("%-10s %4d runs  %s", p.Name, p.Runs, p.Did)
			}
			g, n := Needs(h, f)
			t.Logf("%d runs, %d events before, %d now; group %s in %d runs\n%s", runs, Size(f.Verdict), Size(small.Verdict), g.Key(), n, small.Verdict.Scenario.Text)
			_ = strings.TrimSpace
		})
	}
}
