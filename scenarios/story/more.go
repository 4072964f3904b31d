package story

// reentrant returns why a story in which a holder takes the lock again does not apply to a lock; "": it applies.
func reentrant(l Lock) string {
	if !l.Reentrant {
		return "the lock cannot be taken again by its holder"
	}
	return ""
}

// named returns why a story in which callers name leases does not apply to a lock; "": it applies.
func named(l Lock) string {
	if !l.Leases {
		return "no caller of the lock can name a lease"
	}
	return leased(l)
}

// both joins two reasons for which a story may not apply to a lock: the story applies if neither does.
func both(one, other func(Lock) string) func(Lock) string {
	return func(l Lock) string {
		if why := one(l); why != "" {
			return why
		}
		return other(l)
	}
}

var more = []Story{
	{
		Name: "message-that-wakes-nobody", applies: always,
		About:     "The messages of the server to its waiters are lost for a while.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {channel: "*", direction: reply}, until: {0.25}, do: drop}`,
	},
	{
		Name: "taken-again-with-a-lease", applies: both(reentrant, named),
		About:     "The holder takes the lock again before its lease is over, and works on. The lease begins anew, and an unlock of one level leaves it as it is.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: {name: orders, lease: {0.4}}}, {sleep: {0.3}}, {lock: {name: orders, lease: {0.4}}}, {lock: {name: orders, lease: {0.4}}}, {sleep: {0.2}}, {unlock: orders}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "forced-open",
		applies: func(l Lock) string {
			if !l.Forces {
				return "nobody can free the lock by force"
			}
			return ""
		},
		About:     "The lock is freed by force while one has it and another waits. The waiter gets it at once.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  c/1: [{at: {0.2}}, {force_unlock: orders}]`,
	},
	{
		Name: "server-that-stands-still", applies: always,
		About:     "The servers answer nobody for a while. One has the lock, and another asks for it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, server: stall, for: {0.3}}`,
	},
	{
		Name: "waiter-that-is-interrupted", applies: always,
		About:     "A waiter is interrupted. It has not got the lock, and is not in the way of those behind it. Later it comes back.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: {name: orders, interruptible: true}}, {at: {0.8}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.2}}, {interrupt: b/1}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
	},
	{
		Name: "renewal-that-the-server-refuses", applies: renewed,
		About:     "The server answers one renewal with an error. The holder must keep its hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, script: renew, nth: 1}, from: {0.05}, do: error, with: ERR injected}`,
	},
	{
		Name: "lost-answers-to-an-acquire", applies: always,
		About:     "The server grants the lock, and no answer comes. The caller does not know, and unlocks to be sure.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {sleep: {3}}]
  b/1: [{at: {0.5}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire}, do: drop}`,
	},
	{
		Name: "lease-that-the-caller-names", applies: named,
		About:     "The lease that the caller named ends, and the waiter gets the lock then, and not before.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: {name: orders, lease: 1700ms}}, {sleep: 4s}, {unlock: orders}]
  b/1: [{at: 1s}, {lock: {name: orders, lease: 5s}}, {sleep: 4s}, {unlock: orders}]
  c/1: [{at: 4050ms}, {lock: orders}, {sleep: 100ms}, {unlock: orders}]`,
	},
	{
		Name: "leases-that-end-in-a-queue", applies: named,
		About:     "Nobody unlocks. Each waiter gets the lock when the lease before it is over.",
		processes: "{a: {}, b: {}, c: {}, d: {}}",
		steps: `
  a/1: [{lock: {name: orders, lease: {0.1}}}]
  b/1: [{at: {0.01}}, {try_lock: {name: orders, wait: {0.8}, lease: {0.1}}}]
  c/1: [{at: {0.02}}, {try_lock: {name: orders, wait: {0.8}, lease: {0.1}}}]
  d/1: [{at: {0.03}}, {try_lock: {name: orders, wait: {0.8}, lease: {0.1}}}]`,
	},
	{
		Name: "hold-after-one-that-is-gone", applies: renewed,
		About:     "The servers lose their data while a thread has the lock. The next hold of the thread must be renewed like any other.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1}}, {unlock: orders}, {sleep: {0.1}}, {lock: orders}, {sleep: {2}}, {unlock: orders}]
  b/1: [{at: {1.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
	{
		Name: "waiter-that-cannot-be-interrupted", applies: always,
		About:     "A waiter is interrupted in a call that says nothing of interrupts. If it returns without the lock, it must not say that it has it.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: {name: orders, interruptible: false}}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.2}}, {interrupt: b/1}, {sleep: {0.5}}, {lock: orders}, {unlock: orders}]`,
	},
	{
		Name: "acquire-that-is-interrupted-on-its-way", applies: always,
		About:     "The request of an acquire is late, and its caller is interrupted before it arrives. Nobody must keep the lock for ever.",
		processes: "{a: {}, b: {threads: 2}}",
		steps: `
  a/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{try_lock: {name: orders, wait: {0.5}}}, {sleep: {2}}]
  b/2: [{at: {0.02}}, {interrupt: b/1}]`,
		faults: `
  - {when: {process: b, direction: request, script: acquire}, until: {0.03}, do: delay, for: {0.05}}`,
	},
	{
		Name: "late-request-of-an-unlock", applies: leased,
		About:     "The request of an unlock arrives when its caller has given up and has the lock anew. It must not end that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: unlock}, until: {1}, do: delay, for: {2}}`,
	},
	{
		Name: "head-that-dies-before-an-expiry", applies: named,
		About:     "The holder does not unlock, and the first waiter dies. The second gets the lock when the lease is over.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: {name: orders, lease: {0.3}}}]
  b/1: [{at: {0.02}}, {lock: orders}, {unlock: orders}]
  c/1: [{at: {0.04}}, {lock: {name: orders, lease: {0.3}}}]`,
		faults: `
  - {at: {0.1}, crash: b}`,
	},
	{
		Name: "late-request-of-an-acquire", applies: leased,
		About:     "The request of an acquire arrives after its caller has given up. What it leaves must not stay in the way.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{sleep: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {at: {3}}, {lock: orders}, {unlock: orders}]
  b/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}, {at: {1.7}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {1.72}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: acquire}, until: {1}, do: delay, for: {1.5}}`,
	},
	{
		Name: "tries-in-vain", applies: always,
		About:     "Tries with a bounded wait end while another has the lock. Who comes later gets it, and so do those who try again.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {try_lock: {name: orders, wait: {0.2}}}, {at: {0.7}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
	},
	{
		Name: "queue-of-four", applies: always,
		About:     "Three wait for the holder, and each takes the lock in turn. Nothing fails.",
		processes: "{a: {}, b: {}, c: {}, d: {threads: 2}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {lock: orders}, {unlock: orders}]
  b/1: [{at: {0.01}}, {lock: orders}, {sleep: {0.02}}, {unlock: orders}]
  c/1: [{at: {0.02}}, {lock: orders}, {sleep: {0.02}}, {unlock: orders}]
  d/1: [{at: {0.03}}, {lock: orders}, {sleep: {0.02}}, {unlock: orders}]
  d/2: [{at: {0.04}}, {lock: orders}, {sleep: {0.02}}, {unlock: orders}]`,
	},
	{
		Name: "dead-waiter-between-two-others", applies: always,
		About:     "Of three waiters the second dies. The first takes the lock in turn, and the third gets it soon after, or after the time for which the dead one keeps its place.",
		processes: "{a: {}, b: {}, c: {}, d: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.15}}, {lock: orders}, {unlock: orders}]
  d/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.25}, crash: c}`,
	},
	{
		Name: "try-in-seconds", applies: always,
		About:     "A try names its wait in seconds. It waits for seconds, and keeps its place as long.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {try_lock: {name: orders, wait: 50s, unit: seconds}}, {unlock: orders}]
  c/1: [{at: {0.2}}, {lock: orders}, {unlock: orders}]`,
	},
	{
		Name: "try-whose-answers-are-lost", applies: leased,
		About:     "A thread waits in a try, and hears no answer any more. When its time is over it waits no longer, and is not in the way of others.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {2}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {try_lock: {name: orders, wait: {0.4}}}]
  c/1: [{at: {2.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: reply, script: acquire}, from: {0.06}, until: {1.8}, do: drop}`,
	},
	{
		Name: "tries-at-once", applies: always,
		About:     "Three try a free lock at the same instant, again and again. One of them gets it.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{repeat: {times: 4, steps: [{with_lock: {name: orders, wait: 0s, unlock: when_granted, steps: [{sleep: 20ms}]}}, {sleep: 100ms}]}}]
  b/1: [{repeat: {times: 4, steps: [{with_lock: {name: orders, wait: 0s, unlock: when_granted, steps: [{sleep: 20ms}]}}, {sleep: 100ms}]}}]
  c/1: [{repeat: {times: 4, steps: [{with_lock: {name: orders, wait: 0s, unlock: when_granted, steps: [{sleep: 20ms}]}}, {sleep: 100ms}]}}]`,
	},
	{
		Name: "taken-again", applies: reentrant,
		About:     "The holder takes the lock again, and gives up one level. Others must wait until it has given up all.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "acquire-that-is-interrupted", applies: always,
		About:     "The server grants the lock, the answer is late, and the caller is interrupted before it comes. Nobody must keep the lock for ever.",
		processes: "{a: {}, b: {threads: 2}}",
		steps: `
  a/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{try_lock: {name: orders, wait: {0.5}}}, {sleep: {2}}]
  b/2: [{at: {0.02}}, {interrupt: b/1}]`,
		faults: `
  - {when: {process: b, direction: reply, script: acquire}, until: {0.03}, do: delay, for: {0.05}}`,
	},
	{
		Name: "waiters-that-die", applies: always,
		About:     "Two of three waiters die. The third gets the lock soon after it is free, or after the time for which the dead keep their places.",
		processes: "{a: {}, b: {}, c: {}, d: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {unlock: orders}]
  c/1: [{at: {0.15}}, {lock: orders}, {unlock: orders}]
  d/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.25}, crash: b}
  - {at: {0.25}, crash: c}`,
	},
	{
		Name: "holder-that-dies-in-its-acquire", applies: always,
		About:     "The caller dies while its acquire is under way.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1}}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: 1ms, crash: a}`,
	},
	{
		Name: "lost-requests-of-an-unlock", applies: leased,
		About:     "No request of an unlock arrives. Its caller gets an error, and others get the lock after a lease at the latest.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {sleep: {3}}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: unlock}, do: drop}`,
	},
	{
		Name: "unlock-that-the-server-refuses", applies: leased,
		About:     "The server answers an unlock with an error. Others get the lock after a lease at the latest.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {sleep: {3}}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, script: unlock}, do: error, with: ERR injected}`,
	},
	{
		Name: "acquire-sent-again", applies: always,
		About:     "The first answer to an acquire is lost. A client that sends it again must not count it twice.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, do: drop}`,
	},
	{
		Name: "answer-to-a-waiter-that-is-lost", applies: always,
		About:     "The answer to an acquire of a waiter is lost, and so is what it asks later.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: reply, script: acquire}, until: {1}, do: drop}`,
	},
	{
		Name: "connection-that-ends-in-an-acquire", applies: always,
		About:     "The connection ends while the answer to an acquire is under way.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, do: reset}`,
	},
	{
		Name: "renewals-that-are-lost", applies: renewed,
		About:     "No renewal arrives for two leases. Another gets the lock. Later the first takes it again, and keeps it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {2}}, {unlock: orders}, {at: {3}}, {lock: orders}, {sleep: {2}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.3}}, {unlock: orders}, {at: {3.2}}, {lock: orders}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: renew}, until: {2}, do: drop}`,
	},
	{
		Name: "holder-behind-a-partition", applies: leased,
		About:     "The holder hears nothing until its lease is over and another has the lock.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, partition: [a], for: {1.3}}`,
	},
	{
		Name: "waiter-behind-a-partition", applies: always,
		About:     "A waiter hears nothing while the lock becomes free. It gets the lock when it hears again.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.4}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.15}, partition: [b], for: {0.2}}`,
	},
	{
		Name: "server-that-restarts-with-its-data", applies: always,
		About:     "The servers start again with their data while one has the lock and another waits.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart, keep_data: true}`,
	},
	{
		Name: "short-tries-without-end", applies: always,
		About:     "Two try again and again for a moment while another has the lock. When it is free, who waits for it must get it soon.",
		processes: "{a: {}, b: {}, c: {}, d: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.01}}, {repeat: {times: 25, steps: [{with_lock: {name: orders, wait: {0.02}, unlock: when_granted, steps: []}}]}}]
  c/1: [{at: {0.02}}, {repeat: {times: 25, steps: [{with_lock: {name: orders, wait: {0.02}, unlock: when_granted, steps: []}}]}}]
  d/1: [{at: {0.65}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
	},
	{
		Name: "short-tries-of-the-dead", applies: named,
		About:     "Three try again and again for a moment, and two of them die. Then the lock is free, and who waits for it must get it soon.",
		processes: "{a: {}, b: {}, c: {}, d: {}}",
		steps: `
  a/1: [{lock: {name: orders, lease: {0.47}}}]
  b/1: [{at: {0.01}}, {repeat: {times: 30, steps: [{with_lock: {name: orders, wait: {0.02}, unlock: when_granted, steps: []}}]}}]
  c/1: [{at: {0.02}}, {repeat: {times: 30, steps: [{with_lock: {name: orders, wait: {0.02}, unlock: when_granted, steps: []}}]}}]
  d/1: [{at: {0.03}}, {repeat: {times: 10, steps: [{with_lock: {name: orders, wait: {0.02}, unlock: when_granted, steps: []}}]}}, {at: {0.4}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		faults: `
  - {at: {0.36}, crash: b}
  - {at: {0.36}, crash: c}`,
	},
}
