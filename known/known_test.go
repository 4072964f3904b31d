package known

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/report/sentence"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// story is a scenario that shows a defect at its smallest.
type story struct {
	id, judge string
	locks     string
	steps     string // the rest of the file
}

// stories show each defect at its smallest. A test fails if a port no longer has the
// defect, or if a judge no longer sees it.
var stories = []story{
	{"late-unlock", "mutual-exclusion", "setnx-cad, string-reentrant", `
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 4s}}, {unlock: x}, {at: 5s}, {lock: {name: x, lease: 30s}}, {at: 20s}]
  b/1: [{at: 12s}, {try_lock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: delay, for: 10s}
`},
	{"R-waits-for-subscription", "liveness", "redisson@3.12.4, redisson@4.7.0", `
network: {latency: 1ms}
processes: {a: {}, d: {}}
steps:
  a/1: [{try_lock: x}, {unlock: x}]
  d/1: [{at: 500us}, {try_lock: {name: x, wait: 20s}}]
faults:
  - {when: {direction: reply, channel: "redisson_lock__channel:*x*", nth: 1}, do: hold}
`},
	{"R-4871", "linearizable", "redisson@3.21.3", `
network: {latency: 1ms}
processes: {a: {}}
steps:
  a/1: [{with_lock: {name: x, steps: [{at: 10002500us}]}}]
faults:
  - {when: {direction: reply, script: unlock, nth: 1}, do: drop}
`},
	{"R-force-unlock-resend", "linearizable", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}]
  b/1: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: force_unlock, direction: reply, nth: 1}, do: drop}
`},
	{"R-fair-free-unlock", "linearizable", "redisson-fair@4.7.0", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  a/2: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: delay, for: 100us}
`},
	{"R-watchdog-forgotten-timer", "lease", "redisson-fair@3.4.2", `
network: {latency: 102ms}
watchdog: 5s
processes: {b: {threads: 2}}
steps:
  b/1: [{at: 1804ms}, {try_lock: x}, {unlock: x}, {try_lock: x}, {unlock: x}]
  b/2: [{at: 0s}, {lock: x}, {at: 1800ms}, {unlock: x}]
`},
	// The thread in front had no answer to its leave command.
	{"R-leaver-in-front", "linearizable", "redisson-fair@3.4.2", `
network: {latency: 5ms..200ms}
processes: {a: {threads: 2, client: {response_timeout: 300ms}}, b: {threads: 3}}
steps:
  a/1: [{try_lock: {name: y, wait: 0s}}, {try_lock: {name: x, wait: 0s}}]
  a/2: [{try_lock: {name: x, wait: 0s}}, {try_lock: x}]
  b/1: [{with_lock: {name: x}}, {try_lock: {name: x, wait: 0s}}]
  b/2: [{sleep: 0s}, {with_lock: {name: y, steps: [{with_lock: {name: x, wait: 0s, unlock: always}}]}}]
  b/3: [{try_lock: {name: x, wait: 0s}}, {unlock: x}, {try_lock: x}]
seeds: 115993190654072..115993190654072
`},
	{"R-watchdog-reentry-left", "lease", "redisson@3.43.0", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {lock: x}, {unlock: x}, {unlock: x}]
  a/2: [{at: 1s}, {lock: x}]
`},
	// An unlock is lost, and the renewals of the levels that its thread has left go on.
	{"R-watchdog-reentry-left", "liveness", "redisson@3.43.0, redisson-fair@3.43.0", `
network: {latency: 5ms}
watchdog: 15s
processes: {a: {}, c: {}}
steps:
  a/1: [{at: 4s}, {lock: x}]
  c/1: [{lock: x}, {lock: x}, {lock: x}, {unlock: x}, {unlock: x}, {unlock: x}, {lock: x}, {unlock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 3}, do: drop}
`},
	// The second thread's hold ends, too, while the first one's timer runs.
	{"R-watchdog-attempted-lease", "lease", "redisson@3.12.4", `
network: {latency: 50ms}
watchdog: 1s
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}]
  a/2: [{try_lock: {name: x, lease: 8s}}, {lock: x}]
`},
	{"R-watchdog-long-timer", "lease", "redisson@3.4.2", `
network: {latency: 50ms}
watchdog: 5s
processes: {c: {}}
steps:
  c/1: [{lock: y}, {at: 1800ms}, {try_lock: {name: y, lease: 20s}}, {try_lock: y}]
`},
	// The message that wakes the waiter comes just after the bound.
	{"R-sleeps-on-old-lease", "liveness", "redisson@3.4.2", `
network: {latency: 5ms..20ms}
processes: {a: {}, c: {threads: 3}}
steps:
  a/1: [{unlock: x}, {with_lock: {name: x}}]
  c/1: [{lock: x}]
  c/2: [{with_lock: {name: x, lease: 80ms, steps: [{sleep: 1200ms}]}}]
  c/3: [{lock: x}, {unlock: x}]
seeds: 3..3
`},
	{"R-watchdog-timer-left", "lease", "redisson@3.4.2, redisson-fair@3.4.2", `
network: {latency: 5ms}
watchdog: 2s
processes: {a: {}, b: {lock_objects: per_call}}
steps:
  a/1: [{at: 10ms}, {force_unlock: x}]
  b/1: [{lock: x}, {at: 10010us}, {try_lock: {name: x, lease: 1s}}]
`},
	{"R-watchdog-leased-rest", "liveness", "redisson-fair@3.4.2", `
network: {latency: 20ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{at: 1ms}, {lock: y}]
  b/1: [{lock: {name: y, lease: 1s}}, {lock: y}, {sleep: 3s}, {unlock: y}]
`},
	{"R-watchdog-levels-left", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {at: 2s}, {lock: x}, {unlock: x}]
  b/1: [{at: 1s}, {force_unlock: x}]
`},
	{"R-watchdog-levels-left", "lease", "redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 2s}, {lock: {name: x, lease: 10s}}, {at: 11s}]
  b/1: [{at: 1s}, {force_unlock: x}]
`},
	{"R-watchdog-stopped-by-force-unlock", "lease", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {sleep: 60s}]
  a/2: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: force_unlock, direction: request}, do: drop}
`},
	{"R-watchdog-one-at-a-time", "lease", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
watchdog: 3s
processes: {a: {}}
steps:
  a/1: [{lock: x}, {sleep: 60s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 2900ms}
`},
	{"R-watchdog-late-renewal", "lease", "redisson@3.4.2, redisson@3.21.3", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 10500ms}, {unlock: x}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: error, with: "TRYAGAIN injected"}
`},
	{"R-watchdog-stopped-by-failed-unlock", "lease", "redisson@3.12.4, redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {unlock: x}, {unlock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: error, with: "ERR injected"}
`},
	// The acquire with a lease arrives when its call has ended with an error.
	{"R-reentry-cuts-lease", "mutual-exclusion", "redisson@3.4.2", `
network: {latency: 1ms}
processes: {a: {}, c: {}}
steps:
  a/1: [{at: 5s}, {try_lock: x}]
  c/1: [{try_lock: {name: x, lease: 1ms}}, {try_lock: x}]
faults:
  - {when: {script: acquire, nth: 1}, do: delay, for: 4s}
`},
	// The client is paused between the renewal that is lost and the one that it sends again.
	{"R-watchdog-late-renewal", "lease", "redisson@4.7.0, redisson-nonreentrant-fair@4.7.0", `
network: {latency: 5ms}
watchdog: 15s
processes: {a: {}}
steps:
  a/1: [{try_lock: x}, {at: 5025ms}, {unlock: x}]
faults:
  - {at: 5027ms, pause: a, for: 40s}
  - {when: {script: renew, direction: request, nth: 1}, do: drop}
`},
	{"R-watchdog-first-thread", "lease", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
processes: {a: {threads: 2}, b: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {lock: x}]
  a/2: [{at: 2s}, {lock: x}, {sleep: 50s}]
  b/1: [{at: 1s}, {force_unlock: x}]
`},
	{"R-watchdog-stopped-by-old-answer", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 10110ms}, {unlock: x}, {at: 10260ms}, {lock: x}, {sleep: 50s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 150ms}
  - {when: {script: renew, direction: reply, nth: 1}, do: delay, for: 150ms}
`},
	{"R-watchdog-requeue", "lease", "redisson@3.4.2, redisson-fair@3.4.2", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 10110ms}, {unlock: x}, {at: 10130ms}, {lock: x}, {at: 10500ms}, {unlock: x}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 150ms}
  - {when: {script: renew, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
	{"R-watchdog-forgotten-timer", "lease", "redisson@3.4.2, redisson-fair@3.4.2", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 10110ms}, {unlock: x}, {at: 10260ms}, {lock: x}, {at: 10500ms}, {lock: x}, {unlock: x}, {at: 10800ms}, {unlock: x}, {sleep: 20s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 150ms}
  - {when: {script: renew, direction: reply, nth: 1}, do: delay, for: 150ms}
`},
	// The server of an interrupted try lacks the script. Its client loads it, and sends the acquire again.
	{"R-2714", "tidy", "redisson@4.7.0", `
network: {latency: 1s}
processes: {a: {}, b: {}}
steps:
  a/1: [{try_lock: {name: x, lease: 1s}}]
  b/1: [{at: 1500ms}, {interrupt: a/1}]
faults: [{at: 500ms, server: flush_scripts}]
`},
	{"R-watchdog-forgotten-timer", "lease", "redisson@3.4.2", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {at: 10110ms}, {unlock: x}]
  a/2: [{at: 10112ms}, {lock: x}, {at: 10500ms}, {unlock: x}, {sleep: 20s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: delay, for: 150ms}
  - {when: {script: renew, direction: reply, nth: 1}, do: delay, for: 150ms}
`},
	{"R-watchdog-leased-level", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {lock: {name: x, lease: 40s}}, {unlock: x}, {sleep: 60s}]
`},
	{"R-1593", "mutual-exclusion", "redisson@3.4.2, redisson-fair@3.4.2", `
processes: {a: {}, b: {threads: 2}}
steps:
  a/1: [{lock: x}, {at: 20s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: {name: x, interruptible: false}}, {sleep: 5s}, {unlock: x}]
  b/2: [{at: 5s}, {interrupt: b/1}]
`},
	{"R-2714", "lease", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{at: 1s}, {try_lock: x}, {sleep: 20s}]
  b/1: [{at: 1001ms}, {interrupt: a/1}]
faults:
  - {when: {script: acquire, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
	{"R-2714", "lease", "redisson-fair@3.12.4, redisson-fair@3.21.3", `
processes: {a: {threads: 2}, b: {}}
steps:
  a/1: [{lock: x}, {at: 34s}, {unlock: x}]
  a/2: [{at: 32s}, {interrupt: b/1}]
  b/1: [{at: 1s}, {lock: x}, {sleep: 20s}]
`},
	{"R-watchdog-one-at-a-time", "lease", "redisson@4.7.0", `
watchdog: 5s
processes: {a: {}}
steps:
  a/1: [{lock: x}, {sleep: 20s}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: drop}
`},
	// The renewal of another lock of the client is lost twice, and answered when the hold is
	// about to end.
	{"R-watchdog-one-at-a-time", "lease", "redisson@4.7.0, redisson-fenced@4.7.0", `
network: {latency: 1ms}
watchdog: 8s
processes: {b: {threads: 2}}
steps:
  b/1: [{at: 4s}, {lock: x}, {sleep: 20s}]
  b/2: [{lock: y}]
faults:
  - {when: {script: renew, direction: request, nth: 1}, do: drop}
  - {when: {script: renew, direction: request, nth: 2}, do: drop}
`},
	// Meanwhile c asks again with every round trip. The slow network limits their number.
	{"R-4153", "liveness", "redisson-fair@4.7.0", `
network: {latency: 100ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: x}, {at: 40s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}, {unlock: x}]
  c/1: [{at: 35s}, {lock: x}]
faults:
  - {at: 5s, key: "redisson_lock_timeout:{x}", do: delete}
`},
	{"R-sleeps-on-old-lease", "liveness", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
processes: {a: {}, b: {threads: 2}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  b/1: [{at: 100ms}, {lock: {name: x, lease: 100ms}}]
  b/2: [{at: 100ms}, {lock: {name: x, lease: 100ms}}]
`},
	{"R-4743", "fifo", "redisson-fair@3.21.3, redisson-fair@4.7.0", `
watchdog: 9s
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: x}, {at: 10s}, {unlock: x}]
  b/1: [{at: 1s}, {try_lock: {name: x, wait: 10s, unit: seconds}}]
  c/1: [{at: 2s}, {lock: x}]
`},
	{"R-fair-sleeps-unqueued", "liveness", "redisson-fair@4.7.0", `
processes: {a: {}, b: {client: {fair_wait: 1s}}}
steps:
  a/1: [{lock: x}, {at: 40s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}]
`},
	{"R-fair-told-neighbours-deadline", "liveness", "redisson-fair@4.7.0", `
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
	{"R-watchdog-attempted-lease", "lease", "redisson@3.4.2, redisson-fair@3.12.4", `
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {sleep: 50s}]
  a/2: [{at: 100us}, {lock: {name: x, lease: 100s}}]
`},
	{"R-watchdog-shared-timer", "lease", "redisson@3.4.2", `
processes: {a: {threads: 2}}
steps:
  a/1: [{at: 1s}, {unlock: x}]
  a/2: [{at: 1020ms}, {lock: x}, {sleep: 50s}]
faults:
  - {when: {script: unlock, direction: reply, nth: 1}, do: delay, for: 50ms}
`},
	{"R-watchdog-shared-timer", "mutual-exclusion", "redisson@3.4.2, redisson-fair@3.4.2", `
processes: {a: {threads: 3}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  a/2: [{at: 1020ms}, {lock: x}, {sleep: 50s}]
  a/3: [{at: 2s}, {lock: x}]
faults:
  - {when: {script: unlock, direction: reply, nth: 1}, do: delay, for: 50ms}
`},
	{"R-watchdog-attempted-lease", "traffic", "redisson@3.12.4", `
network: {latency: 5ms}
processes: {a: {}, b: {threads: 2, client: {response_timeout: 302ms}}}
steps:
  a/1: [{at: 1ms}, {try_lock: {name: x, wait: 500ms}}]
  b/1: [{at: 2ms}, {try_lock: {name: x, wait: 0s, lease: 20ms}}]
  b/2: [{try_lock: {name: x, wait: 0s}}, {sleep: 400ms}, {unlock: x}]
`},
	{"R-watchdog-attempted-lease", "traffic", "redisson@3.4.2", `
watchdog: 1s
network: {latency: 800us}
processes: {a: {threads: 2, client: {response_timeout: 302ms}}}
steps:
  a/1: [{try_lock: x}, {sleep: 2s}, {unlock: x}]
  a/2: [{at: 100us}, {try_lock: {name: x, wait: 1500ms, lease: 3ms}}]
`},
	{"R-fair-late-turn", "fifo", "redisson-fair@4.7.0", `
processes: {b: {}, c: {}, d: {}}
steps:
  b/1: [{at: 4s}, {try_lock: x}, {sleep: 4s}, {unlock: x}, {lock: x}]
  c/1: [{at: 4s}, {lock: {name: x, lease: 1s}}]
  d/1: [{at: 4s}, {lock: {name: x, lease: 1s}}, {lock: x}]
faults:
  - {when: {process: d, direction: request, script: acquire, nth: 1}, do: delay, for: 6s}
`},
	{"R-wall-clock-wait", "wait-bound", "redisson@3.21.3, redisson-fair@4.7.0", `
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {sleep: 10s}, {unlock: x}]
  b/1: [{at: 1s}, {try_lock: {name: x, wait: 2s}}]
faults:
  - {at: 2s, wall_clock: b, step: -3s}
`},
	{"R-zero-wait", "traffic", "redisson@3.4.2, redisson@3.21.3, redisson@4.7.0", `
network: {latency: 10us}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 1s}}, {sleep: 2s}]
  b/1: [{at: 100us}, {lock: x}]
`},
	// Each attempt is three commands: INFO, the script, WAIT.
	{"R-zero-wait", "traffic", "redisson@3.21.3+replicas", `
network: {latency: 10us}
server: {replicas: 1, lag: 10us}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 1s}}, {sleep: 2s}]
  b/1: [{at: 100us}, {lock: x}]
`},
	{"R-zero-wait", "traffic", "redisson@4.7.0", `
network: {latency: 100us}
processes: {a: {threads: 2}, b: {threads: 2}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 1ms}}]
  a/2: [{lock: x}, {sleep: 2ms}, {lock: x}]
  b/1: [{lock: x}]
  b/2: [{lock: {name: x, lease: 1ms}}]
  c/1: [{lock: x}]
`},
	{"R-watchdog-until-answer", "lease", "redisson@3.21.3, redisson@4.7.0", `
watchdog: 5s
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 2s}, {unlock: x}]
  b/1: [{at: 2100ms}, {interrupt: a/1}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: drop}
`},
	{"R-partial-unlock-lease", "mutual-exclusion", "redisson@3.21.3, redisson@4.7.0", `
processes: {a: {lock_objects: per_call}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 60s}}, {lock: {name: x, lease: 60s}}, {unlock: x}, {sleep: 50s}]
  b/1: [{at: 1s}, {lock: x}]
`},
	{"R-fair-free-unlock", "hold-count", "redisson-fair@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  b/1: [{at: 500ms}, {interrupt: a/1}]
faults:
  - {when: {script: acquire, direction: request, nth: 1}, do: delay, for: 1050ms}
  - {when: {script: unlock, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
	{"R-leaver-in-front", "linearizable", "redisson-fair@3.4.2, redisson-fair@4.7.0", `
network: {latency: 10ms}
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}]
  b/1: [{at: 995ms}, {try_lock: {name: x, wait: 0s}}]
  c/1: [{at: 1100ms}, {try_lock: {name: x, wait: 0s}}]
  d/1: [{at: 1200ms}, {try_lock: {name: x, wait: 0s}}]
faults:
  - {when: {script: leave, direction: request, every: 1}, do: delay, for: 150ms}
`},
	// The thread in front was not to wait. The answer to its try is lost, and it is granted the lock when it asks again.
	{"R-leaver-in-front", "linearizable", "redisson-fair@3.11.0", `
network: {latency: 5ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 10ms}, {unlock: x}, {try_lock: {name: x, wait: 0s}}]
  b/1: [{at: 1ms}, {try_lock: {name: x, wait: 0s}}]
faults:
  - {partition: b, at: 7ms, for: 1s}
`},
	// Its process crashes, and its place stays.
	{"R-leaver-in-front", "linearizable", "redisson-fair@3.4.2", `
network: {latency: 5ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 30ms}, {unlock: x}, {try_lock: x}]
  b/1: [{at: 1ms}, {try_lock: {name: x, wait: 0s}}]
faults:
  - {at: 2ms, crash: b}
`},
	{"R-1104", "fifo", "redisson-fair@3.11.0", `
processes: {a: {}, b: {}, c: {}, d: {}, e: {}}
steps:
  a/1: [{lock: x}, {at: 33s}, {unlock: x}]
  b/1: [{at: 1s}, {try_lock: {name: x, wait: 2s}}]
  c/1: [{at: 1100ms}, {try_lock: {name: x, wait: 3s}}]
  d/1: [{at: 1200ms}, {lock: x}]
  e/1: [{at: 32s}, {lock: x}]
`},
	{"R-fair-deadline-drift", "liveness", "redisson-fair@3.4.2", `
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1: [{lock: {name: x, lease: 5s}}]
  b/1: [{at: 50ms}, {repeat: {until: 3s, steps: [{try_lock: {name: x, wait: 500ms}}]}}]
  c/1: [{at: 100ms}, {repeat: {until: 3s, steps: [{try_lock: {name: x, wait: 500ms}}]}}]
  d/1: [{at: 2800ms}, {lock: x}]
`},
	{"R-fair-unplaced", "liveness", "redisson-fair@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: 36s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}]
faults:
  - {at: 5s, key: "redisson_lock_queue:{x}", do: delete}
`},
	{"R-4153", "tidy", "redisson-fair@4.7.0", `
network: {latency: 50ms}
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: {name: x, lease: 300ms}}]
  a/2: [{at: 1ms}, {lock: x}]
faults:
  - {at: 230ms, key: "redisson_lock_timeout:{x}", do: delete}
`},
	// The place that is left over takes a turn, or blocks the free lock.
	{"R-4153", "fifo", "redisson-fair@3.43.0, redisson-fair@4.7.0", `
network: {latency: 50ms}
processes: {a: {}, b: {threads: 2}}
steps:
  a/1: [{lock: x}, {unlock: x}, {at: 200ms}, {lock: x}]
  b/1: [{repeat: {times: 2, steps: [{lock: x}, {unlock: x}]}}]
  b/2: [{repeat: {times: 2, steps: [{lock: x}, {unlock: x}]}}]
faults:
  - {at: 60ms, key: "redisson_lock_timeout:{x}", do: delete}
`},
	{"R-4153", "linearizable", "redisson-fair@3.43.0, redisson-fair@4.7.0", `
network: {latency: 5ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: x}, {at: 110ms}, {unlock: x}]
  b/1: [{at: 80ms}, {lock: {name: x, lease: 1s}}]
  c/1: [{at: 2s}, {try_lock: x}]
faults:
  - {at: 100ms, key: "redisson_lock_timeout:{x}", do: expire}
`},
	// Behind it c asks again with every round trip.
	{"R-sleep-begun-anew", "liveness", "redisson-fair@4.7.0", `
network: {latency: 100ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 10s}}, {at: 8s}, {interrupt: b/1}]
  b/1: [{at: 1s}, {lock: x}]
  c/1: [{at: 2s}, {lock: x}]
`},

	// Behind it c asks again with every round trip.
	{"R-fair-dead-place", "liveness", "redisson-fair@3.12.4, redisson-fair@4.7.0", `
network: {latency: 100ms}
processes: {a: {client: {fair_wait: 5s}}, b: {client: {fair_wait: 5s}}, c: {client: {fair_wait: 5s}}}
steps:
  a/1: [{lock: x}, {at: 5s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}]
  c/1: [{at: 2s}, {lock: x}]
faults:
  - {at: 3s, crash: b}
`},

	// Replicas that are late.
	{"R-5698", "lease", "redisson@3.21.3+replicas, redisson@3.43.0+replicas", `
watchdog: 15s
processes: {a: {}}
server: {replicas: 1, lag: 300ms..600ms}
steps:
  a/1: [{lock: x}, {sleep: 100s}]
`},
	{"R-told-after-replicas", "liveness", "redisson@3.21.3+replicas", `
network: {latency: 60ms}
processes: {a: {}, b: {}, c: {}}
server: {replicas: 1, lag: 480ms}
steps:
  a/1: [{lock: {name: x, lease: 5s}}]
  b/1: [{at: 1s}, {lock: x}]
  c/1: [{at: 1300ms}, {lock: y}]
`},
	{"R-given-back-unqueued", "fifo", "redisson-fair@3.21.3+replicas, redisson-fair@4.7.0+replicas", `
network: {latency: 10ms}
processes: {a: {}, b: {}}
server: {replicas: 1, lag: 1s}
steps:
  a/1: [{lock: x}]
  b/1: [{at: 1500ms}, {lock: x}]
`},
	{"R-fair-front-sends-again", "liveness", "redisson-fair@3.43.0+replicas", `
network: {latency: 50ms}
processes: {a: {client: {response_timeout: 150ms}}, b: {}, c: {}}
server: {replicas: 1, lag: 100ms}
steps:
  a/1: [{at: 1s}, {lock: x}]
  b/1: [{lock: x}, {at: 1300ms}, {unlock: x}]
  c/1: [{at: 1200ms}, {lock: x}]
`},
	{"R-watchdog-late-renewal", "lease", "redisson@4.7.0+replicas", `
network: {latency: 100ms}
processes: {a: {}}
server: {replicas: 1, lag: 1ms}
steps:
  a/1: [{lock: x}, {at: 10300ms}, {unlock: x}]
`},
	// c is left with the deadline of d, which takes its turn early, less the wait of d.
	{"R-fair-thrown-out-by-hold", "fifo", "redisson-fair@4.7.0", `
network: {latency: 50ms}
processes: {a: {}, b: {threads: 2}, c: {}, d: {}}
steps:
  a/1: [{at: 4100ms}, {try_lock: x}]
  b/1: [{at: 480ms}, {lock: {name: x, lease: 900ms}}]
  b/2: [{at: 500ms}, {lock: {name: x, lease: 3s}}, {at: 3870ms}, {unlock: x}, {unlock: x}]
  c/1: [{at: 3930ms}, {try_lock: {name: x, wait: 1s}}]
  d/1: [{at: 500ms}, {lock: x}, {unlock: x}]
`},
	{"R-fair-negative-wait", "fifo", "redisson-fair@3.21.3", `
network: {latency: 50ms}
watchdog: 5s
processes: {a: {client: {fair_wait: 1s}}, b: {client: {fair_wait: 5s}}, c: {}}
steps:
  a/1: [{at: 7s}, {lock: x}, {at: 16980ms}, {unlock: x}]
  b/1: [{at: 7100ms}, {lock: x}]
  c/1: [{at: 6990ms}, {lock: x}, {at: 11180ms}, {unlock: x}, {lock: x}, {sleep: 4s}, {unlock: x}]
`},
	{"R-watchdog-first-thread", "mutual-exclusion", "redisson@3.21.3", `
watchdog: 1s
processes: {a: {}, b: {}, c: {threads: 2}}
steps:
  a/1: [{at: 6s}, {try_lock: x}]
  b/1: [{at: 300us}, {force_unlock: x}]
  c/1: [{at: 2ms}, {try_lock: x}, {at: 3s}, {try_lock: x}, {at: 4500ms}, {unlock: x}, {sleep: 4s}]
  c/2: [{try_lock: x}, {at: 1s}, {unlock: x}]
`},
	{"R-watchdog-attempted-lease", "lease", "redisson-fair@3.12.4", `
network: {latency: 20ms}
watchdog: 3s
processes: {b: {threads: 2}}
steps:
  b/1: [{at: 3500ms}, {lock: {name: x, lease: 60ms}}]
  b/2: [{lock: x}, {lock: x}, {at: 3600ms}, {unlock: x}, {sleep: 1s}]
`},
	{"R-zero-wait", "traffic", "redisson@4.7.0", `
processes: {a: {}, c: {}}
steps:
  a/1: [{repeat: {times: 14, steps: [{lock: {name: x, lease: 2ms}}, {sleep: 1600us}]}}]
  c/1: [{sleep: 150us}, {lock: x}]
`},
	// The answers to messages that wake the client are not counted.
	{"R-zero-wait", "traffic", "redisson@4.7.0", `
processes: {a: {}, c: {threads: 2}, d: {}}
steps:
  a/1: [{repeat: {times: 24, steps: [{lock: {name: x, lease: 2ms}}, {sleep: 1600us}]}}]
  c/1: [{sleep: 150us}, {lock: x}]
  c/2: [{repeat: {times: 8, steps: [{lock: y}, {sleep: 300us}, {unlock: y}]}}]
  d/1: [{repeat: {times: 8, steps: [{lock: y}, {sleep: 300us}, {unlock: y}]}}]
`},
	{"SETNX-acquire-resend-busy", "hold-count", "setnx-del, setnx-get-del, setnx-cad", `
processes: {a: {client: {response_timeout: 80ms, retry_attempts: 1}}}
steps:
  a/1: [{try_lock: x}]
faults:
  - {when: {script: acquire, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
	{"SETNX-acquire-resend-busy", "liveness", "setnx-cad", `
network: {latency: 30ms..62ms}
processes: {a: {client: {response_timeout: 100ms, retry_attempts: 3}}, b: {}}
steps:
  a/1: [{sleep: 4s}, {unlock: y}, {lock: {name: y, lease: 800ms}}]
  b/1: [{sleep: 80ms}, {repeat: {times: 3, steps: [{lock: y}, {sleep: 3s}, {unlock: y}]}}]
seeds: 21..21
`},
	{"SETNX-force-unlock-resend", "linearizable", "setnx-del, setnx-cad, string-reentrant", `
processes: {a: {}, b: {client: {response_timeout: 80ms, retry_attempts: 1}}}
steps:
  a/1: [{lock: x}]
  b/1: [{at: 1s}, {force_unlock: x}]
faults:
  - {when: {script: unlock, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
	{"SETNX-acquire-resend", "hold-count", "setnx-cad", `
network: {latency: 150ms..150100us}
processes: {b: {}, d: {client: {response_timeout: 200ms, retry_attempts: 1}}}
steps:
  b/1: [{sleep: 1100ms}, {force_unlock: y}]
  d/1: [{sleep: 1s}, {try_lock: y}, {unlock: y}]
seeds: 1..5
`},
	{"SETNX-unlock-resend", "hold-count", "setnx-del, setnx-get-del, setnx-cad, string-reentrant", `
processes: {a: {client: {response_timeout: 80ms, retry_attempts: 1}}}
steps:
  a/1: [{try_lock: x}, {unlock: x}]
faults:
  - {when: {script: unlock, direction: reply, nth: 1}, do: delay, for: 100ms}
`},
	{"SETNX-misdelete", "workload", "setnx-del", `
resources: {stock: {start: 21}}
processes: {a: {threads: 2}, b: {}, c: {threads: 2}}
network: {latency: 50ms}
steps:
  a/2: [{sleep: 4s}, {try_lock: {name: x, wait: 1500ms}}, {sleep: 2s}, {use: {resource: stock, for: 0s}}]
  b/1: [{at: 4900ms}, {force_unlock: x}, {try_lock: {name: x, wait: 2s}}, {use: {resource: stock, for: 1s}}]
  c/1: [{at: 6600ms}, {force_unlock: x}]
  c/2: [{at: 3800ms}, {lock: x}, {at: 6900ms}, {unlock: x}]
`},
	// b asks again before its deadline, and its attempt arrives after it.
	{"R-fair-thrown-out-by-hold", "fifo", "redisson-fair@4.7.0", `
network: {latency: 20ms..80ms}
processes: {a: {}, b: {client: {fair_wait: 1s}}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 1s}}, {at: 930ms}, {lock: {name: x, lease: 940ms}}]
  b/1: [{at: 100ms}, {lock: x}]
  c/1: [{at: 2010ms}, {try_lock: x}]
`},
	{"R-1593", "mutual-exclusion", "redisson@3.4.2", `
network: {latency: 1ms}
processes: {a: {}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 1ms}}, {sleep: 1s}, {lock: x}]
  c/1: [{sleep: 4ms}, {lock: x}, {at: 1006ms}, {interrupt: a/1}]
`},
	// The lease that ended was the lease of an earlier hold.
	{"R-1593", "mutual-exclusion", "redisson@3.4.2", `
network: {latency: 1ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{sleep: 120s}, {interrupt: c/1}]
  b/1: [{repeat: {times: 3, steps: [{lock: x}, {sleep: 40s}, {unlock: x}]}}]
  c/1: [{repeat: {times: 2, steps: [{lock: {name: x, lease: 40s}}, {sleep: 40s}]}}]
`},
	{"R-watchdog-forgotten-timer", "lease", "redisson@3.4.2", `
network: {latency: 1ms}
watchdog: 10s
processes: {a: {threads: 2}}
steps:
  a/1: [{try_lock: x}, {sleep: 4s}, {unlock: x}]
  a/2: [{at: 6s}, {try_lock: x}, {sleep: 1s}, {unlock: x}]
faults:
  - {when: {direction: request, script: renew, nth: 1}, do: reset}
`},
	{"R-waits-for-subscription", "liveness", "redisson@3.4.2", `
network: {latency: 1ms..1.1ms}
processes: {a: {}, b: {threads: 2}}
steps:
  a/1: [{at: 8s}, {lock: x}, {unlock: x}]
  b/1: [{at: 8s}, {repeat: {times: 2, steps: [{lock: x}, {sleep: 30s}, {unlock: x}]}}]
  b/2: [{at: 30s}, {repeat: {times: 2, steps: [{lock: x}]}}]
faults:
  - {when: {process: b, direction: request, channel: "redisson_lock__channel:*x*", nth: 1}, do: drop}
  - {when: {direction: request, command: SUBSCRIBE, nth: 3}, do: delay, for: 2s}
`},
	{"R-waits-for-subscription", "liveness", "redisson-fair@3.11.0, redisson-fair@4.7.0", `
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: x}, {at: 1200ms}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}, {unlock: x}]
  c/1: [{at: 1100ms}, {lock: x}, {unlock: x}]
faults:
  - {when: {process: b, direction: request, command: SUBSCRIBE}, until: 3800ms, do: hold}
`},
	{"R-fair-free-unlock", "linearizable", "redisson-fair@4.7.0", `
network: {latency: 5ms}
processes: {a: {}, b: {wall_clock: {offset: 30s}, client: {fair_wait: 1s}}, c: {}, d: {}}
steps:
  a/1: [{at: 200ms}, {lock: x}, {unlock: x}]
  b/1: [{at: 2s}, {lock: x}, {unlock: x}]
  c/1: [{unlock: x}, {at: 2100ms}, {lock: x}, {unlock: x}]
  d/1: [{at: 100ms}, {lock: x}, {at: 5s}, {unlock: x}]
`},
	{"R-fair-free-unlock", "linearizable", "redisson-fair@4.7.0", `
network: {latency: 5ms}
processes: {a: {}, b: {wall_clock: {offset: 30s}, client: {fair_wait: 1s}}, c: {}, d: {}}
steps:
  a/1: [{at: 100ms}, {lock: x}, {unlock: x}]
  b/1: [{at: 2s}, {lock: x}, {unlock: x}]
  c/1: [{at: 2100ms}, {lock: x}, {unlock: x}, {at: 100s}, {unlock: x}]
  d/1: [{lock: x}, {at: 5s}, {unlock: x}]
`},
	{"R-fair-thrown-out-by-acquire", "fifo", "redisson-fair@3.12.4, redisson-fair@3.21.3", `
network: {latency: 5ms}
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1: [{at: 50ms}, {lock: x}]
  b/1: [{at: 10ms}, {lock: x}, {unlock: x}, {lock: x}]
  c/1: [{lock: x}, {at: 1s}, {unlock: x}]
  d/1: [{at: 40ms}, {lock: x}]
faults:
  - {at: 70ms, crash: d}
`},
	{"R-fair-thrown-out-unanswered", "fifo", "redisson-fair@3.21.3", `
network: {latency: 160ms}
processes: {a: {threads: 2, client: {fair_wait: 1s}}, b: {client: {response_timeout: 300ms, fair_wait: 100ms}}}
steps:
  a/1: [{lock: {name: x, lease: 100ms}}]
  b/1: [{at: 30ms}, {lock: x}]
  a/2: [{at: 60ms}, {lock: x}]
`},
	{"R-partial-unlock-lease", "liveness", "redisson-fair@3.21.3, redisson@4.7.0", `
network: {latency: 40ms}
processes: {a: {lock_objects: per_call}, b: {}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 200ms}}, {lock: {name: x, lease: 800ms}}, {unlock: x}]
  b/1: [{at: 2s}, {lock: x}, {unlock: x}]
  c/1: [{at: 3200ms}, {force_unlock: x}]
`},
	{"R-4818", "workload", "redisson@3.21.3, redisson@4.7.0", `
resources: {stock: {start: 14}}
processes: {b: {threads: 2}, c: {}, d: {}}
steps:
  d/1: [{at: 500ms}, {lock: x}, {at: 5500ms}, {use: {resource: stock}}]
  c/1: [{at: 1s}, {force_unlock: x}, {lock: x}, {at: 5s}, {unlock: x}]
  b/2: [{lock: {name: x, lease: 1ms}}]
  b/1: [{at: 3s}, {lock: x}, {use: {resource: stock, for: 1s}}]
`},
	{"R-7223", "fifo", "redisson-fair@4.7.0", `
network: {latency: 5ms..200ms}
processes: {a: {}, b: {threads: 3, client: {response_timeout: 300ms}}}
steps:
  a/1: [{sleep: 4870ms}, {lock: y}, {sleep: 900ms}, {unlock: y}, {lock: y}]
  b/1: [{sleep: 5630ms}, {try_lock: {name: y, wait: 1s}}]
  b/2: [{lock: y}, {lock: y}, {unlock: y}, {unlock: y}]
  b/3: [{lock: x}]
seeds: 554..554
`},
	{"R-fair-sleeps-on-old-lease", "liveness", "redisson-fair@4.7.0", `
network: {latency: 50ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 20s}}, {at: 5500ms}, {unlock: x}]
  b/1: [{at: 5s}, {try_lock: {name: x, wait: 0s}}]
  c/1: [{at: 5010ms}, {lock: x}, {unlock: x}]
faults:
  - {when: {process: b, script: leave, direction: request}, do: delay, for: 1s}
`},
	{"R-6025-late", "hold-count", "redisson@3.21.3", `
processes: {a: {}, c: {}}
steps:
  a/1: [{lock: x}, {sleep: 5s}, {unlock: x}]
  c/1: [{at: 1ms}, {lock: x}, {unlock: x}]
faults:
  - {when: {process: c, direction: request, nth: 1}, do: hold}
  - {when: {direction: request, nth: 2}, from: 1s, do: hold}
`},
	{"R-4818", "lease", "redisson@4.7.0, redisson-fair@4.7.0", `
watchdog: 1s
processes: {a: {}}
steps:
  a/1: [{try_lock: {name: x, lease: 2ms}}, {try_lock: x}, {at: 1s}, {try_lock: x}, {sleep: 1s}]
`},
	{"R-4818", "mutual-exclusion", "redisson@3.21.3, redisson@3.43.0, redisson-fenced@4.7.0", `
network: {latency: 1ms}
processes: {c: {threads: 2}}
steps:
  c/2: [{lock: {name: x, lease: 2ms}}, {sleep: 1s}, {lock: x}]
  c/1: [{sleep: 0s}, {lock: x}, {lock: x}, {unlock: x}]
`},
	{"R-4818-long", "lease", "redisson@3.21.3, redisson@4.7.0, redisson-fenced@4.7.0", `
processes: {b: {threads: 2}}
steps:
  b/1: [{lock: {name: y, lease: 40s}}]
  b/2: [{lock: y}, {lock: y}, {unlock: y}]
`},
	{"R-7223", "fifo", "redisson-fair@4.7.0", `
# It leaves in time, and returns late.
network: {latency: 5ms..200ms}
processes: {a: {threads: 2}, b: {client: {response_timeout: 300ms}}}
steps:
  a/1: [{sleep: 1s}, {repeat: {times: 2, steps: [{try_lock: {name: x, wait: 1s, lease: 500ms}}, {sleep: 4s}]}}]
  a/2: [{repeat: {times: 2, steps: [{try_lock: x}, {unlock: x}]}}, {sleep: 6s}, {try_lock: x}]
  b/1: [{sleep: 5s}, {repeat: {times: 2, steps: [{try_lock: {name: x, wait: 2s, lease: 800ms}}, {sleep: 800ms}]}}]
seeds: 140503247819507..140503247819507
`},
	{"R-try-ends-unsubscribed", "fifo", "redisson-fair@4.7.0", `
network: {latency: 102ms..200ms}
processes: {a: {}, b: {client: {response_timeout: 300ms}}}
steps:
  a/1: [{repeat: {times: 2, steps: [{try_lock: {name: x, wait: 1s}}]}}]
  b/1: [{repeat: {times: 2, steps: [{try_lock: {name: x, wait: 2s, lease: 800ms}}, {sleep: 600ms}]}}]
seeds: 3..3
`},
	{"R-fair-sleeps-unqueued", "workload", "redisson-fair@3.12.4, redisson-fair@3.21.3", `
resources: {stock: {start: 10, end: 9}}
processes: {a: {}, b: {client: {fair_wait: 1s}}}
steps:
  a/1: [{lock: x}, {at: 40s}, {unlock: x}]
  b/1: [{at: 1s}, {with_lock: {name: x, steps: [{use: {resource: stock, for: 1s}}]}}]
`},
	{"R-4818", "workload", "redisson@4.7.0", `
resources: {stock: {start: 10}}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 1s}}, {at: 2s}, {lock: x}, {use: {resource: stock, for: 3s}}]
  b/1: [{at: 2500ms}, {lock: x}, {use: {resource: stock, for: 3s}}]
`},
	{"STRING-reentry", "hold-count", "string-reentrant", `
processes: {a: {}}
steps:
  a/1: [{try_lock: x}, {try_lock: x}]
`},
	{"STRING-reentry", "mutual-exclusion", "string-reentrant", `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {unlock: x}, {at: 2s}, {unlock: x}]
  b/1: [{at: 1s}, {try_lock: x}]
`},
	{"R-2018", "linearizable", "redisson@3.4.2", `
processes: {a: {}}
steps:
  a/1: [{unlock: x}]
`},
	{"R-late-unlock", "mutual-exclusion", "redisson@3.4.2", `
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 4s}}, {unlock: x}, {at: 15s}, {lock: {name: x, lease: 30s}}, {at: 40s}]
  b/1: [{at: 25s}, {try_lock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: delay, for: 20s}
`},
	{"R-late-unlock", "mutual-exclusion", "redisson@4.7.0", `
network: {latency: 1ms}
processes: {a: {client: {response_timeout: 1s, retry_attempts: 0}}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 4s}}, {unlock: x}, {at: 5s}, {lock: {name: x, lease: 30s}}, {at: 20s}]
  b/1: [{at: 12s}, {try_lock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 1}, do: delay, for: 10s}
`},
	{"R-6025", "hold-count", "redisson-fair@3.12.4, redisson@3.21.3", `
network: {latency: 50ms}
processes: {a: {client: {response_timeout: 1ms}}}
steps:
  a/1: [{lock: x}]
`},
	{"R-1602", "liveness", "redisson@3.4.2", `
network: {latency: 1ms}
processes: {a: {threads: 2}}
steps:
  a/1: [{lock: x}, {unlock: x}]
  a/2: [{lock: x}]
faults:
  - {when: {script: unlock, nth: 1}, until: 40s, do: reset}
`},
	{"R-watchdog-unknown-level", "lease", "redisson@3.4.2", `
network: {latency: 1ms}
processes: {a: {client: {response_timeout: 2ms}}}
steps:
  a/1: [{lock: x}, {with_lock: {name: x}}]
faults:
  - {when: {direction: reply, nth: 1}, do: delay, for: 1ms}
`},
	{"R-2515", "lease", "redisson@3.11.0", `
processes: {b: {}, c: {}}
steps:
  b/1: [{at: 1s}, {force_unlock: x}]
  c/1: [{lock: x}, {at: 2s}, {unlock: x}]
`},
	{"R-3194", "lease", "redisson-fair@3.11.0, redisson-fair@3.12.4", `
network: {latency: 50ms}
watchdog: 1s
processes: {a: {}, b: {}}
steps:
  a/1: [{unlock: x}, {force_unlock: y}]
  b/1: [{lock: y}, {sleep: 1s}, {lock: y}, {sleep: 1s}]
`},
	{"R-5623", "lease", "redisson@3.21.3, redisson-fair@3.21.3", `
network: {latency: 50ms}
processes: {b: {}}
steps:
  b/1: [{try_lock: {name: x, lease: 1s}}, {try_lock: {name: x, lease: 1s}}, {try_lock: {name: x, lease: 1s}}, {unlock: x}, {unlock: x}]
`},
	{"R-watchdog-level-taken", "lease", "redisson@3.12.4", `
network: {latency: 1ms}
processes: {c: {}}
steps:
  c/1: [{at: 137ms}, {try_lock: x}, {try_lock: x}, {unlock: x}]
faults:
  - {at: 141ms, key: x, do: expire}
`},
	{"R-fair-failed-lock-keeps-place", "tidy", "redisson-fair@3.4.2", `
network: {latency: 5ms}
processes: {a: {client: {response_timeout: 5ms}}, b: {}}
steps:
  a/1: [{sleep: 0s}, {lock: x}]
  b/1: [{lock: x}]
`},
	{"R-fair-ghost", "liveness", "redisson-fair@3.21.3", `
network: {latency: 1ms}
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{try_lock: y}]
  b/1: [{try_lock: x}, {unlock: x}, {lock: y}, {lock: y}]
  c/1: [{unlock: y}, {unlock: y}, {unlock: y}, {lock: y}, {unlock: y}]
faults:
  - {when: {}, until: 1m0s, do: hold}
`},
	{"R-2099", "liveness", "redisson-fair@3.4.2", `
network: {latency: 1ms}
processes: {a: {threads: 2}, b: {}}
steps:
  a/1: [{try_lock: x}]
  a/2: [{lock: x}]
  b/1: [{lock: x}]
faults:
  - {at: 1s, crash: a}
`},
	{"R-4705", "liveness", "redisson-fair@3.11.0, redisson-fair@3.12.4", `
network: {latency: 1ms}
processes: {b: {}, c: {}, d: {}}
steps:
  b/1: [{sleep: 1s}, {lock: x}]
  c/1: [{sleep: 0s}, {lock: {name: x, lease: 1s}}]
  d/1: [{lock: {name: x, lease: 2s}}]
`},
	{"R-fair-zero-wait-behind-dead", "traffic", "redisson-fair@3.43.0, redisson-fair@4.7.0", `
network: {latency: 10ms}
processes: {a: {threads: 2, client: {fair_wait: 1s}}, b: {}}
steps:
  a/1: [{sleep: 1ms}, close]
  a/2: [{at: 0s}, {lock: y}]
  b/1: [{lock: y}, {unlock: y}, {lock: y}, {unlock: y}]
`},
}

func TestDefectsAreNamed(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range stories {
		for lock := range strings.SplitSeq(c.locks, ", ") {
			t.Run(lock+"/"+c.judge+": "+c.id, func(t *testing.T) {
				v := runStory(t, h.For(t), c, lock)
				found, n := 0, NewNamer(h, v, All)
				for _, f := range v.Findings {
					if f.Judge != c.judge || f.Class != judges.ClassBug {
						continue
					}
					// Later findings may have another defect, but each has one.
					found++
					named := n.Name(f)
					if named.ID == "" || found == 1 && named.ID != c.id {
						t.Errorf("%s\nis named %q", sentence.Finding(f), named.ID)
					}
					if named.Cause != nil {
						checkCause(t, v, *named.Cause)
					}
				}
				if found == 0 {
					t.Errorf("%s found nothing: %v", c.judge, v.Findings)
				}
			})
		}
	}
}

// Twelve overlaps happen, each with a fault that excuses it. Without that fault the next fault excuses the
// overlap, and it happens again, so it is a bug. Each replay is played, and each finding named, once: a
// namer that remembered nothing would play twelve to the fifth.
func TestAReplayIsPlayedOnce(t *testing.T) {
	text := `lockstep: 1
name: drawn
about: drawn
locks: [redisson@3.12.4]
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {lock: {name: x, lease: 5s}}, {unlock: x}, {sleep: 90s}]
  b/1: [{at: 40s}, {repeat: {times: 12, steps: [{lock: x}, {unlock: x}]}}]
faults:
`
	for i := range 5 {
		text += fmt.Sprintf("  - {at: %d00ms, key: x, do: expire}\n", 5+i)
	}
	h := sim.NewHost(t)
	v := play.Run(h, scenariotest.Parse(t, text), scenariotest.Lock(t, "redisson@3.12.4"), 1)
	asked := 0
	counter := Defect{ID: "counter", Applies: func(*subject.Subject) bool { asked++; return false }}
	n, overlaps := NewNamer(h, v, slices.Concat([]Defect{counter}, All)), 0
	for _, f := range v.Findings {
		if f.Judge != model.JudgeMutualExclusion {
			continue
		}
		overlaps++
		if !f.Convicted {
			t.Errorf("%s: no replay says so", sentence.Finding(f))
		}
		if named := n.Name(f); named.ID != "R-watchdog-attempted-lease" {
			t.Errorf("%s\nis named %q", sentence.Finding(f), named.ID)
		}
	}
	faults := 0
	for len(n.replays) > 0 {
		if faults++; len(n.replays) > 1 {
			t.Fatalf("%d replays without %d faults", len(n.replays), faults)
		}
		for _, n = range n.replays {
		}
	}
	if overlaps != 12 || faults != 5 {
		t.Errorf("%d overlaps, replays without %d faults", overlaps, faults)
	}
	if asked > 12*5 {
		t.Errorf("%d findings were named, of 12 in each of 5 replays", asked)
	}
}

// checkCause checks that a cause names something that is in the record.
func checkCause(t *testing.T, v play.Verdict, c Cause) {
	t.Helper()
	run := trace.New(v.Played.Record)
	if c.InReplay {
		return
	}
	for _, number := range c.Msgs {
		if run.Command(number) == nil {
			t.Errorf("%s: there is no such command", c)
		}
	}
	if c.Op > 0 && run.Call(c.Op) == nil || c.Fault > len(v.Played.Record.Params.Faults)+1 {
		t.Errorf("%s: there is no such call or fault", c)
	}
	ends := v.Played.Record.Events[len(v.Played.Record.Events)-1].AtNs
	if c.AtNs < 0 || c.AtNs > ends {
		t.Errorf("%s: the record ends at %s", c, model.At(ends))
	}
	if strings.HasSuffix(c.String(), ": ") {
		t.Errorf("%q has no words for people", c.Kind)
	}
}

// No campaign names a row for which OutOfReach gives a reason.
func TestNoCampaignNamesWhatIsOutOfReach(t *testing.T) {
	files, err := filepath.Glob("../results/explore/*/verdicts.jsonl")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d campaigns (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var g struct{ Defect string }
			if err := json.Unmarshal(line, &g); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if row := Row(g.Defect); row != "" && OutOfReach[row] != "" {
				t.Errorf("%s names %s, the row %s", file, g.Defect, row)
			}
		}
	}
}

// Every known defect has an ID of its own and a story. Every row of the track record
// belongs to a defect, or OutOfReach says why no campaign names it.
func TestDefectsHaveStories(t *testing.T) {
	rows := map[string]bool{} // whether a defect has the row
	all, err := scenarios.Tagged("track-record")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range all {
		rows[sc.Name] = OutOfReach[sc.Name] != ""
	}
	for name := range OutOfReach {
		if _, ok := rows[name]; !ok {
			t.Errorf("%q is out of reach, and no row", name)
		}
	}
	ids := map[string]bool{}
	for _, d := range All {
		if ids[d.ID] || !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(d.ID) {
			t.Errorf("%q is no ID, or another defect has it", d.ID)
		}
		ids[d.ID] = true
		if d.Title == "" || len(d.Story) < 80 || len(d.Judges) == 0 {
			t.Errorf("%q has no title, no story or no judge", d.ID)
		}
		if _, ok := rows[d.Row]; d.Row != "" && !ok {
			t.Errorf("%q is the row %s, which is none", d.ID, d.Row)
		}
		rows[d.Row] = true
		if !slices.ContainsFunc(stories, func(s story) bool { return s.id == d.ID }) {
			t.Errorf("no story in this file shows %s", d.ID)
		}
	}
	for row, told := range rows {
		if !told {
			t.Errorf("no defect is the row %s, and nothing says why", row)
		}
	}
}
