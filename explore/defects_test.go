package explore

import (
	"strings"
	"testing"

	"lockstep/linearizability"
	"lockstep/scenarios"
	"lockstep/sim"
)

// Each of these shows a defect at its smallest, so that a port that had it no
// longer, or a judge that no longer saw it, would be found out.
func TestDefectsAreNamed(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		name, judge string
		locks       string
		steps       string // and what else the file has
	}{
		{"a waiter asks for nothing until its subscription is confirmed", "liveness", "redisson@3.21.3, redisson@4.7.0", `
network: {latency: 1ms}
processes: {a: {}, d: {}}
steps:
  a/1: [{try_lock: x}, {unlock: x}]
  d/1: [{at: 500us}, {try_lock: {name: x, wait: 20s}}]
faults:
  - {when: {direction: reply, channel: "redisson_lock__channel:*x*", nth: 1}, do: hold}
`},
		{"an unlock that is sent again", "linearizable", "redisson@3.21.3", `
network: {latency: 1ms}
processes: {a: {}}
steps:
  a/1: [{with_lock: {name: x, steps: [{at: 10002500us}]}}]
faults:
  - {when: {direction: reply, script: unlock, nth: 1}, do: drop}
`},
		{"a force_unlock that is sent again", "linearizable", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}]
  b/1: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: force_unlock, direction: reply, nth: 1}, do: drop}
`},
		{"a free fair lock can be unlocked by anyone", "linearizable", "redisson-fair@4.7.0", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  a/2: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: delay, for: 100us}
`},
		{"a hold that others ended leaves its levels with the watchdog", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {at: 2s}, {lock: x}, {unlock: x}]
  b/1: [{at: 1s}, {force_unlock: x}]
`},
		{"a hold that others ended leaves its levels with the watchdog", "lease", "redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 2s}, {lock: {name: x, lease: 10s}}, {at: 11s}]
  b/1: [{at: 1s}, {force_unlock: x}]
`},
		{"a force_unlock ends the renewal of its client's hold", "lease", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {sleep: 60s}]
  a/2: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: force_unlock, direction: request}, do: drop}
`},
		{"no renewal is sent before the one before has its answer", "lease", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
watchdog: 3s
processes: {a: {}}
steps:
  a/1: [{lock: x}, {sleep: 60s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 2900ms}
`},
		{"a renewal that was lost, late or could not leave", "lease", "redisson@3.4.2, redisson@3.21.3", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 10500ms}, {unlock: x}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: error, with: "TRYAGAIN injected"}
`},
		{"the watchdog asks for the first thread of a client only", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {threads: 2}, b: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {lock: x}]
  a/2: [{at: 2s}, {lock: x}, {sleep: 50s}]
  b/1: [{at: 1s}, {force_unlock: x}]
`},
		{"a renewal that found nothing is answered when the thread has locked again", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 10010ms}, {unlock: x}, {at: 10060ms}, {lock: x}, {sleep: 50s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 50ms}
  - {when: {script: renew, direction: reply, nth: 1}, do: delay, for: 50ms}
`},
		{"an unlock of a level with a lease takes a level off the watchdog", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {lock: {name: x, lease: 40s}}, {unlock: x}, {sleep: 60s}]
`},
		{"an interrupted acquire that is granted all the same", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{at: 1s}, {try_lock: x}, {sleep: 20s}]
  b/1: [{at: 1001ms}, {interrupt: a/1}]
faults:
  - {when: {script: acquire, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
		{"no renewal is sent before the one before has its answer", "lease", "redisson@4.7.0", `
watchdog: 5s
processes: {a: {}}
steps:
  a/1: [{lock: x}, {sleep: 20s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: drop}
`},
		// Behind it c asks again with every round trip; a slow network keeps that short.
		{"who stands in the queue without a score", "liveness", "redisson-fair@4.7.0", `
network: {latency: 100ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: x}, {at: 40s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}, {unlock: x}]
  c/1: [{at: 35s}, {lock: x}]
faults:
  - {at: 5s, key: "redisson_lock_timeout:{x}", do: delete}
`},
		{"a waiter sleeps on the time to live that it was told", "liveness", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {threads: 2}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  b/1: [{at: 100ms}, {lock: {name: x, lease: 100ms}}]
  b/2: [{at: 100ms}, {lock: {name: x, lease: 100ms}}]
`},
		{"a tryLock in seconds without a lease", "fifo", "redisson-fair@3.21.3, redisson-fair@4.7.0", `
watchdog: 9s
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: x}, {at: 10s}, {unlock: x}]
  b/1: [{at: 1s}, {try_lock: {name: x, wait: 10s, unit: seconds}}]
  c/1: [{at: 2s}, {lock: x}]
`},
		{"a waiter that was thrown out of the queue while it slept", "liveness", "redisson-fair@4.7.0", `
processes: {a: {}, b: {client: {fair_wait: 1s}}}
steps:
  a/1: [{lock: x}, {at: 40s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}]
`},
		{"a waiter that was thrown out of the queue and queues again", "liveness", "redisson-fair@4.7.0", `
processes: {a: {}, b: {client: {fair_wait: 1s}}, c: {client: {fair_wait: 60s}}}
steps:
  a/1:
    - lock: {name: x, lease: 10s}
    - at: 9s
    - lock: {name: x, lease: 10s}
    - at: 18s
    - lock: {name: x, lease: 10s}
    - at: 20s
    - repeat: {times: 3, steps: [{unlock: x}]}
  b/1: [{at: 1s}, {lock: x}]
  c/1: [{at: 12s}, {lock: {name: x, lease: 500ms}}]
`},
		{"a hold without lease starts with the lease", "workload", "redisson@4.7.0", `
resources: {stock: {start: 10}}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 1s}}, {at: 2s}, {lock: x}, {use: {resource: stock, for: 3s}}]
  b/1: [{at: 2500ms}, {lock: x}, {use: {resource: stock, for: 3s}}]
`},
	} {
		for lock := range strings.SplitSeq(c.locks, ", ") {
			t.Run(lock+"/"+c.judge+": "+c.name, func(t *testing.T) {
				l := mustFind(t, lock)
				text := "lockstep: 1\nname: drawn\nabout: drawn\nlocks: [" + lock + "]\n" + c.steps[1:]
				if !strings.Contains(text, "network:") {
					text += "network: {latency: 100us}\n"
				}
				sc := loadDrawn(t, text)
				v := scenarios.Run(h.For(t), sc, l, 1)
				for _, f := range v.Findings {
					if f.Judge == c.judge && f.Class == linearizability.ClassBug {
						if name := DefectOf(h, v, f); !strings.HasPrefix(name, c.name) {
							t.Errorf("%s\nis named %q", f.Why, name)
						}
						return
					}
				}
				t.Errorf("%s found nothing: %v", c.judge, v.Findings)
			})
		}
	}
}
