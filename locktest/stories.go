package locktest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"lockstep/scenarios"
)

// story is a schedule of the literature, told for the lease of a subject.
type story struct {
	name  string
	about string
	// applies returns why the story does not apply to the subject; "": it does.
	applies func(s Subject, o offers) string
	// steps and faults are parts of a scenario file. In them {N} is the lease times N,
	// rounded to milliseconds. eachServer is a fault that each server has: {server} is its number.
	processes, steps, faults, eachServer string
}

func always(Subject, offers) string { return "" }

// leased is the applies of a story about a lease.
func leased(s Subject, _ offers) string {
	if s.Lease == 0 {
		return "the story is about a lease, and the lock has none"
	}
	return ""
}

// renewed is the applies of a story about renewals.
func renewed(s Subject, _ offers) string {
	if !s.Renewed {
		return "the lock does not renew its lease"
	}
	return ""
}

// firstRenewalLost loses the first renewal of a hold, whenever it is sent. Some locks renew their session as
// soon as they have it, before the lock is granted; from leaves these renewals alone.
const firstRenewalLost = `
  - {servers: [{server}], when: {process: a, direction: request, script: renew, nth: 1}, from: {0.05}, do: drop}`

// pace takes the place of the lease in stories for a lock without one.
const pace = 5 * time.Second

// stories are played by every Run, in this order.
var stories = []story{
	{
		name: "one-after-the-other", applies: always,
		about:     "Two processes take the lock in turn, and nothing fails.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		name: "pause-past-the-lease", applies: leased,
		about:     "The holder stands still until its lease is over and another has the lock. Then it unlocks.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, pause: a, for: {1.5}}`,
	},
	{
		name:  "late-unlock",
		about: "The holder works longer than its lease, and unlocks when another has the lock. A third must not get in.",
		applies: func(s Subject, _ offers) string {
			if s.Renewed {
				return "the lock renews its lease, so that a living holder is never late"
			}
			return leased(s, offers{})
		},
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  c/1: [{at: {1.32}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		name: "crashed-holder", applies: leased,
		about:     "The holder dies. The waiter gets the lock when the lease is over, and not before.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, crash: a}`,
	},
	{
		name: "lost-answer-to-the-acquire", applies: leased,
		about:     "The server grants the lock, and the answer is lost. Whoever comes later gets the lock after a lease at the latest.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.5}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, do: drop}`,
	},
	{
		name: "lost-answer-to-the-unlock", applies: always,
		about:     "The unlock runs, and its answer is lost. Another takes the lock, and the first may unlock again.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock}, do: drop}`,
	},
	{
		name: "unlock-sent-again", applies: always,
		about:     "The unlock runs, and only its first answer is lost. A client that retries sends it again, and the second request finds nothing to free.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.25}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock, nth: 1}, from: {0.2}, do: drop}`,
	},
	{
		name: "unlock-twice", applies: always,
		about:     "A thread unlocks twice, and the second unlock comes when another has the lock.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]`,
	},
	{
		name: "unlock-in-two-steps", applies: leased,
		about:     "The second request of an unlock, if it sends one, comes when the lease is over and another has the lock.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock, nth: 2}, do: delay, for: {1.5}}`,
	},
	{
		name: "two-threads-of-one-process", applies: always,
		about:     "A thread unlocks twice, and the second unlock comes when another thread of its process has the lock.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.2}}, {unlock: orders}]
  a/2: [{at: {0.1}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.25}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		name: "hold-of-another-thread", applies: always,
		// The first lock of a/2 may fail, since the restart has ended its connection.
		about:     "The servers lose their data while a thread has the lock. Another thread of its process takes it, and must keep it when the first one unlocks.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  a/2: [{at: {0.25}}, {lock: orders}, {unlock: orders}, {at: {0.3}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.45}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
	{
		name:  "try-of-a-held-lock",
		about: "A thread tries the lock while another has it. It must be told at once, and not wait.",
		applies: func(_ Subject, o offers) string {
			if !o.try {
				return "the lock has no TryLock"
			}
			return ""
		},
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {try_lock: {name: orders, want: busy}}]`,
	},
	{
		name: "slow-network", applies: leased,
		about:     "Every message takes a tenth of the lease, so that a hold is a good part over when its holder learns of it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {direction: request}, do: delay, for: {0.1}}`,
	},
	{
		name: "hold-of-three-leases", applies: renewed,
		about:     "The holder works for three leases, and nothing fails. It must keep its hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		name: "renewal-that-fails-once", applies: renewed,
		about:     "The first renewal is lost, and the next ones would come through. The holder must keep its hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: firstRenewalLost,
	},
	{
		name:  "hold-given-up-in-time-to-renew",
		about: "The first renewal is lost, and the next ones would come through. The server keeps the hold, and the lock must not give it up.",
		applies: func(s Subject, o offers) string {
			switch {
			case !s.Renewed:
				return renewed(s, o)
			case !o.watched:
				return "the lock has no Lost, and gives no hold up by itself"
			case s.renewEvery() > s.Lease/2:
				return "the lock renews too seldom to keep a hold when a renewal fails, by its RenewEvery"
			}
			return ""
		},
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: {name: orders, want: [released, unknown]}}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: firstRenewalLost,
	},
	{
		name: "server-restarts-without-its-data", applies: always,
		about:     "The servers lose their data while the lock is held, and another asks for it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
	{
		name:  "extended-hold",
		about: "The holder extends its hold twice and works longer than a lease. Another must not get in.",
		applies: func(s Subject, o offers) string {
			if !o.extends {
				return "the lock has no Extend"
			}
			return leased(s, o)
		},
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {extend: orders}, {sleep: {0.6}}, {extend: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		name:  "late-extension",
		about: "The holder extends its hold when the lease is over and another has the lock.",
		applies: func(s Subject, o offers) string {
			switch {
			case !o.extends:
				return "the lock has no Extend"
			case s.Renewed:
				return "the lock renews its lease, so that a living holder is never late"
			}
			return leased(s, o)
		},
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.3}}, {extend: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  c/1: [{at: {1.35}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		name:  "crashed-holder-of-a-lock-without-leases",
		about: "The holder dies. The waiter gets the lock when the session of the dead is over, or never.",
		applies: func(s Subject, _ offers) string {
			if s.Lease > 0 {
				return "the lock has a lease"
			}
			return ""
		},
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, crash: a}`,
	},
	{
		name:  "hold-that-is-gone",
		about: "The servers lose their data while the lock is held, and nobody else asks for it. The holder must be told.",
		applies: func(s Subject, o offers) string {
			switch {
			case !o.watched:
				return "the lock has no Lost, by which its holder would be told"
			case !s.Renewed:
				return "the lock does not renew its lease, so that it does not learn of the end before the lease is over"
			}
			return ""
		},
		processes: "{a: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {sleep: 10s}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
}

// leasePattern matches a multiple of the lease.
var leasePattern = regexp.MustCompile(`\{[0-9.]+\}`)

// scenario returns the story as a scenario for a subject.
func (s story) scenario(lock Subject) *scenarios.Scenario {
	sc, err := scenarios.Parse(s.name+".yaml", []byte(s.text(lock.Name, lock.Lease, len(lock.Servers.Nodes()))), scenarios.AnyLock)
	if err != nil {
		panic("locktest: " + err.Error())
	}
	return sc
}

// text writes the story as a scenario file for a lock with that lease on so many servers.
func (s story) text(lock string, lease time.Duration, servers int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lockstep: 1\nname: %s\nabout: %q\nlocks: [%q]\nprocesses: %s\nsteps:%s\n", s.name, s.about, lock, s.processes, s.steps)
	faults := s.faults
	for i := range servers {
		faults += strings.ReplaceAll(s.eachServer, "{server}", strconv.Itoa(i+1))
	}
	if faults != "" {
		fmt.Fprintf(&b, "faults:%s\n", faults)
	}
	if lease == 0 {
		lease = pace
	}
	return leases(b.String(), lease)
}

// leases replaces each {N}, where N is a decimal number, by the lease times N.
func leases(text string, lease time.Duration) string {
	return leasePattern.ReplaceAllStringFunc(text, func(part string) string {
		var times float64
		if _, err := fmt.Sscanf(part, "{%g}", &times); err != nil {
			panic("locktest: " + part + " is no multiple of a lease")
		}
		return time.Duration(times * float64(lease)).Round(time.Millisecond).String()
	})
}
