package story

// The stories in this file are about calls that send several requests, about single tries, which must not
// be refused when nobody has the lock, about holds that end at the edge of their lease, and about many
// callers at once.

var requests = []Story{
	{
		Name: "threads-of-one-process-take-turns", applies: always,
		About:     "Two threads of a process ask for the lock at one time, and so does another process. One of them has it at a time.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {lock: orders}, {sleep: {0.02}}, {unlock: orders}]
  a/2: [{at: {0.02}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.04}}, {lock: orders}, {sleep: {0.02}}, {unlock: orders}]`,
	},
	{
		Name: "callers-at-one-instant", applies: always,
		About:     "Three ask for a free lock at the same instant. One has it at a time, and each of them gets it.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "two-locks-of-one-process", applies: always,
		About:     "Two threads of a process have a lock each. An unlock frees the lock that it names, and not the other.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  a/2: [{at: 2ms}, {lock: stock}, {sleep: {0.1}}, {unlock: stock}]
  b/1: [{at: {0.4}}, {lock: orders}, {unlock: orders}]`,
	},
	{
		Name: "waiter-when-the-data-is-lost", applies: always,
		About:     "The servers lose their data while one has the lock and another waits. Nobody must wait for ever.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
	{
		Name: "work-until-the-lease-is-nearly-over", applies: unrenewed,
		About:     "The holder works until just before the end of its lease. Nobody else must get the lock before the end.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.94}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "unlock-just-after-the-lease", applies: leased,
		About:     "The holder stands still until just after its lease. What it sends then must not keep the next one waiting.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, pause: a, for: {0.92}}`,
	},
	{
		Name: "unlock-a-while-after-the-lease", applies: leased,
		About:     "The holder stands still until its lease is over, and unlocks then. Nobody else has had the lock, and the unlock must say that the hold was over.",
		processes: "{a: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, pause: a, for: {1}}`,
	},
	{
		Name: "late-acquire-without-renewals", applies: renewed,
		About:     "The third request of an acquire is late, and no renewal arrives. The holder counts its lease from the request, and the server from its arrival.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.82}}, {unlock: orders}]
  b/1: [{at: {0.4}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: acquire, nth: 3}, do: delay, for: {0.2}}
  - {when: {process: a, direction: request, script: renew}, do: drop}`,
	},
	{
		Name: "late-requests-of-waiters", applies: leased,
		About:     "The requests of two waiters arrive when their tries are over. They must not be in the way of those who wait.",
		processes: "{a: {}, b: {threads: 2}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.65}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {try_lock: {name: orders, wait: {0.2}}}]
  b/2: [{at: {0.055}}, {try_lock: {name: orders, wait: {0.2}}}]
  c/1: [{at: {0.6}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: request, script: acquire}, until: {0.3}, do: delay, for: {0.5}}`,
	},
	{
		Name: "two-of-three-that-are-interrupted", applies: tries,
		About:     "Three ask for a free lock at one instant, and two of them are interrupted at once. What these leave must not refuse a later try.",
		processes: "{a: {}, b: {threads: 2}, c: {}}",
		steps: `
  a/1: [{try_lock: orders}, {at: {0.1}}, {try_lock: orders}]
  b/1: [{lock: {name: orders, interruptible: true}}, {unlock: orders}]
  b/2: [{interrupt: b/1}, {interrupt: c/1}]
  c/1: [{lock: {name: orders, interruptible: true}}, {unlock: orders}]`,
	},
	{
		Name: "second-request-of-an-acquire-late", applies: leased,
		About:     "The second request of a waiter arrives when the waiter has the lock. It must not end its hold.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  b/1: [{at: {0.02}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  c/1: [{at: {1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: request, script: acquire, nth: 2}, do: delay, for: {1.1}}`,
	},
	{
		Name: "unlock-of-an-earlier-hold-late", applies: leased,
		About:     "The request of an unlock is late, and its caller locks anew. It arrives when the caller has the lock again, and must not end that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  b/1: [{at: {1.05}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: unlock, nth: 1}, do: delay, for: {1.1}}`,
	},
	{
		Name: "try-after-an-interrupted-acquire", applies: tries,
		About:     "An acquire is interrupted, and its answer is lost. What it leaves must not refuse a later try.",
		processes: "{a: {}, b: {threads: 2}}",
		steps: `
  a/1: [{at: {0.5}}, {try_lock: orders}]
  b/1: [{lock: {name: orders, interruptible: true}}, {sleep: {1.5}}]
  b/2: [{at: {0.01}}, {interrupt: b/1}]`,
		faults: `
  - {when: {process: b, direction: reply, script: acquire}, until: {0.02}, do: drop}`,
	},
	{
		Name: "tries-whose-second-answer-is-lost", applies: tries,
		About:     "A try has an answer to its first request, and its connection ends before the second one. It must not say that another has the lock, and must leave nothing that refuses a later try.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{at: {0.1}}, {lock: orders}, {unlock: orders}, {at: {0.5}}, {try_lock: orders}]
  b/1: [{lock: orders}, {unlock: orders}, {at: {0.7}}, {try_lock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 2}, from: {0.49}, do: reset}`,
	},
	{
		Name: "first-try-whose-second-answer-is-lost", applies: tries,
		About:     "The first try of a process has an answer to its first request, and its connection ends before the second one. Then another asks for the lock, which nobody has.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{try_lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 2}, do: reset}`,
	},
	{
		Name: "third-answer-to-an-acquire-lost", applies: always,
		About:     "A waiter has answers to two requests, and its connection ends before the third one. Later it asks again. It must not be in its own way, or in that of others.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}, {at: {2.5}}, {lock: orders}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {unlock: orders}, {at: {0.6}}, {lock: orders}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: reply, script: acquire, nth: 3}, do: reset}`,
	},
	{
		Name: "try-after-an-unlock-that-failed-in-part", applies: tries,
		About:     "The server refuses the first request of an unlock. What stays must not refuse a try once the lock is given up.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.02}}, {unlock: orders}, {unlock: orders}]
  b/1: [{at: {0.1}}, {try_lock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: unlock, nth: 1}, do: error, with: ERR injected}`,
	},
	{
		Name: "late-answer-to-a-refused-renewal", applies: renewed,
		About:     "The server refuses a renewal, and what the client asks after it has late answers. If the hold is given up, its holder must be told before another gets the lock.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.3}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: renew, nth: 1}, from: {0.05}, do: error, with: ERR injected}
  - {when: {process: a, direction: reply, script: renew}, do: delay, for: {0.04}}`,
	},
	{
		Name: "try-after-a-lost-message", applies: tries,
		About:     "What the server says by itself is lost for a while, and with it a connection. A try that does not wait must not wait for a new one.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{at: 2ms}, {try_lock: {name: orders, wait: 0s}}, {at: {0.2}}, {try_lock: {name: orders, wait: 0s}}]
  b/1: [{lock: orders}, {sleep: {0.004}}, {unlock: orders}]`,
		faults: `
  - {when: {channel: "*", direction: reply}, until: {0.15}, do: drop}`,
	},
	{
		Name: "try-behind-a-refused-try", applies: tries,
		About:     "A try is refused, and the second request that it sends is late. Then the lock is free, and another try must not be refused for the sake of the first one.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.01}}, {unlock: orders}, {at: {0.2}}, {try_lock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {at: {0.22}}, {unlock: orders}]
  c/1: [{at: {0.03}}, {lock: orders}, {unlock: orders}, {at: {0.26}}, {try_lock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: acquire, nth: 2}, from: {0.19}, do: delay, for: {0.15}}`,
	},
	{
		Name: "key-that-an-operator-deletes", applies: named,
		About:     "An operator deletes a key of the lock while one has it and another waits. Then a third comes.",
		processes: "{a: {}, b: {}, c: {threads: 2}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.4}}, {unlock: orders}]
  b/1: [{at: {0.03}}, {lock: {name: orders, lease: {0.3}}}, {unlock: orders}]
  c/1: [{at: {0.4}}, {lock: {name: orders, interruptible: true}}, {unlock: orders}]
  c/2: [{at: {1.6}}, {interrupt: c/1}]`,
		faults: `
  - {at: {0.15}, key: "{key}", do: delete}`,
	},
	{
		Name: "try-that-hears-nothing-more", applies: leased,
		About:     "A try hears the answer to its first request, and then none. It ends when its time is over, and is not in the way of others.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {2}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {try_lock: {name: orders, wait: {0.4}}}]
  c/1: [{at: {2.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: reply, script: acquire, nth: 2}, do: drop}
  - {when: {process: b, direction: reply, script: acquire, nth: 3}, do: drop}
  - {when: {process: b, direction: reply, script: acquire, nth: 4}, do: drop}
  - {when: {process: b, direction: reply, script: acquire, nth: 5}, do: drop}
  - {when: {process: b, direction: reply, script: acquire, nth: 6}, do: drop}`,
	},
	{
		Name: "long-queue", applies: always,
		About:     "Many wait for a long time, and each asks as often as it does.",
		processes: "{a: {}, b: {threads: 3}, c: {threads: 3}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  b/1: [{at: {0.01}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  b/2: [{at: {0.02}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  b/3: [{at: {0.03}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  c/1: [{at: {0.04}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  c/2: [{at: {0.05}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]
  c/3: [{at: {0.06}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]`,
	},
}
