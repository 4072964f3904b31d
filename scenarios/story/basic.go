package story

import "slices"

// Basic are the stories of which each lock should be judged: the plainest first, then the classic failures, and
// then those about names.
var Basic = slices.Concat(plainest, classics, names)

var plainest = []Story{
	{
		Name: "one-after-the-other", applies: always,
		About:     "Two processes take the lock in turn, and nothing fails.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "pause-past-the-lease", applies: leased,
		About:     "The holder stands still until its lease is over and another has the lock. Then it unlocks.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, pause: a, for: {1.5}}`,
	},
	{
		Name: "late-unlock", applies: unrenewed,
		About:     "The holder works longer than its lease, and unlocks when another has the lock. A third must not get in.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  c/1: [{at: {1.32}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "crashed-holder", applies: leased,
		About:     "The holder dies. The waiter gets the lock when the lease is over, and not before.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, crash: a}`,
	},
	{
		Name: "lost-answer-to-the-acquire", applies: leased,
		About:     "The server grants the lock, and the answer is lost. Whoever comes later gets the lock after a lease at the latest.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.5}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, do: drop}`,
	},
	{
		Name: "lost-answer-to-a-try", applies: both(tries, leased),
		About:     "The server grants the lock to a try, and the connection ends before the answer; later an answer is lost. A client that sends the try again must not take its own hold for that of another, and leave it behind.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{try_lock: orders}, {at: {0.7}}, {unlock: orders}, {at: {2}}, {try_lock: orders}, {at: {2.95}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {at: {2.5}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, do: reset}
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, from: {1.9}, do: drop}`,
	},
	{
		Name: "lost-answer-to-the-unlock", applies: always,
		About:     "The unlock runs, and its answer is lost. Another takes the lock, and the first may unlock again.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock}, do: drop}`,
	},
	{
		Name: "unlock-sent-again", applies: always,
		About:     "The unlock runs, and only its first answer is lost. A client that retries sends it again, and the second request finds nothing to free.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.25}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock, nth: 1}, from: {0.2}, do: drop}`,
	},
	{
		Name: "unlock-twice", applies: always,
		About:     "A thread unlocks twice, and the second unlock comes when another has the lock.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {sleep: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]`,
	},
	{
		Name: "unlock-in-two-steps", applies: leased,
		About:     "The second request of an unlock, if it sends one, comes when the lease is over and another has the lock.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock, nth: 2}, do: delay, for: {1.5}}`,
	},
	{
		Name: "two-threads-of-one-process", applies: always,
		About:     "A thread unlocks twice, and the second unlock comes when another thread of its process has the lock.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.2}}, {unlock: orders}]
  a/2: [{at: {0.1}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.25}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "hold-of-another-thread", applies: always,
		// The first lock of a/2 may fail, since a restart has ended its connection.
		About:     "All that the servers keep is lost while a thread has the lock. Another thread of its process takes it, and must keep it when the first one unlocks.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  a/2: [{at: {0.25}}, {lock: orders}, {unlock: orders}, {at: {0.3}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  b/1: [{at: {0.45}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, {loss}}`,
	},
	{
		Name: "try-of-a-held-lock", applies: tries,
		About:     "A thread tries the lock while another has it. It must be told at once, and not wait.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {try_lock: {name: orders, want: [busy, unknown]}}]`,
	},
	{
		Name:  "second-lock-of-the-holder",
		About: "A thread that has the lock takes it again, and nothing fails. It must be granted at once.",
		applies: func(l Lock) string {
			if l.Idempotent {
				return ""
			}
			return reentrant(l)
		},
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "level-that-is-left-for-three-leases", applies: both(reentrant, renewed),
		About:     "A thread takes the lock twice, unlocks once, and works for three leases. Nothing fails, and it must keep its hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "try-that-gave-up", applies: always,
		About:     "A try with a bounded wait ends while another has the lock, and nobody asks for the lock when it is free. Its client must not take it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.8}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {try_lock: {name: orders, wait: {0.1}}}]`,
	},
	{
		Name: "slow-network", applies: leased,
		About:     "Every message takes a tenth of the lease, so that a hold is a good part over when its holder learns of it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {direction: request}, do: delay, for: {0.1}}`,
	},
	{
		Name: "hold-of-three-leases", applies: renewed,
		About:     "A process has two locks for three leases, one of them for the second time, and nothing fails. It must keep both holds.",
		processes: "{a: {threads: 2}, b: {threads: 2}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {lock: orders}, {sleep: {3}}, {unlock: orders}]
  a/2: [{at: {0.1}}, {lock: stock}, {sleep: {3}}, {unlock: stock}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/2: [{at: {0.3}}, {lock: stock}, {sleep: {0.1}}, {unlock: stock}]`,
	},
	{
		Name: "renewal-that-fails-once", applies: renewedTwice,
		About:     "The first renewal is lost, and the next ones would come through. The holder must keep its hold, and the lock must not give it up.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: {name: orders, want: [released, unknown]}}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: firstRenewalLost,
	},
	{
		Name: "holder-that-is-cut-off-for-a-while", applies: renewedTwice,
		// A lock that renews at least twice in a lease sends a renewal between the end of the partition and that of the lease.
		About:     "The holder's process hears nothing while a renewal is due, and hears again before half of the lease is over. The holder must keep its hold, and the lock must not give it up.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: {name: orders, want: [released, unknown]}}]
  b/1: [{at: {0.15}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, partition: [a], for: {0.28}}`,
	},
	{
		Name: "try-of-the-holder", applies: both(tries, alone),
		About:     "The holder tries to take the lock again, and is refused. Its hold goes on as before, and its unlock ends it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {try_lock: orders}, {sleep: {0.2}}, {unlock: orders}, {at: {0.5}}, {lock: orders}, {try_lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {at: {0.6}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "unlock-of-another-thread-during-renewals", applies: renewed,
		About:     "Another thread of the holder's process unlocks without a hold. The lease of the holder is renewed all the same.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  a/2: [{at: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "extension-of-a-renewed-hold", applies: both(extends, renewed),
		About:     "The holder extends its hold, which is renewed by itself. The renewals go on.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.2}}, {extend: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "server-restarts-without-its-data", applies: always,
		About:     "The servers lose their data while the lock is held, and another asks for it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
	{
		Name: "lock-after-a-restart", applies: always,
		// A call after the restart may meet a connection of the client's pool that has ended.
		About:     "The servers restart with their data while nobody has the lock. A process that took it before must be granted it again, and then another without waiting for a lease.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.5}}, {sleep: 20s}, {repeat: {times: 20, steps: [{lock: orders}, {unlock: orders}, {sleep: {0.1}}]}}, {at: {49}}, {sleep: 60s}, {lock: orders}, {unlock: orders}, {sleep: {0.5}}, {lock: {name: orders, want: [granted]}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {unlock: orders}, {at: {5}}, {sleep: 30s}, {repeat: {times: 20, steps: [{lock: orders}, {unlock: orders}, {sleep: {0.1}}]}}, {at: {49.2}}, {sleep: 60s}, {lock: orders}, {unlock: orders}, {sleep: {0.4}}, {try_lock: {name: orders, wait: {0.4}, want: [granted]}}, {unlock: orders}]`,
		faults: `
  - {at: {0.3}, server: restart, keep_data: true}`,
	},
	{
		Name: "extension-after-a-restart", applies: extends,
		About:     "The servers restart with their data while nobody has the lock. A process that extended a hold before must be able to do so again.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {extend: orders}, {unlock: orders}, {at: {0.5}}, {sleep: 20s}, {repeat: {times: 20, steps: [{lock: orders}, {extend: orders}, {unlock: orders}, {sleep: {0.1}}]}}, {lock: orders}, {extend: {name: orders, want: [extended]}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {unlock: orders}]`,
		faults: `
  - {at: {0.3}, server: restart, keep_data: true}`,
	},
	{
		Name:      "extended-hold",
		About:     "The holder extends its hold twice and works longer than a lease. Another must not get in.",
		applies:   extends,
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {extend: orders}, {sleep: {0.6}}, {extend: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name:      "late-extension",
		About:     "The holder extends its hold when the lease is over and another has the lock.",
		applies:   both(extends, unrenewed),
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.3}}, {extend: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  c/1: [{at: {1.35}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name:  "crashed-holder-of-a-lock-without-leases",
		About: "The holder dies. The waiter gets the lock when the session of the dead is over, or never.",
		applies: func(l Lock) string {
			if l.Lease > 0 {
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
		Name:      "hold-that-is-gone",
		About:     "The servers lose their data while the lock is held for the second time, and nobody else asks for it. The holder must be told.",
		applies:   tellsInTime,
		processes: "{a: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {lock: orders}, {sleep: {3}}, {sleep: 10s}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}`,
	},
	{
		Name: "second-hold-that-is-gone", applies: tellsInTime,
		About:     "The servers lose their data twice, in two holds of the same thread, and nobody else asks for the lock. The holder must be told each time.",
		processes: "{a: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {2}}, {unlock: orders}, {at: {2.1}}, {lock: orders}, {sleep: {3}}, {sleep: 10s}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, server: restart}
  - {at: {2.3}, server: restart}`,
	},
}

// tellsInTime returns why a story in which a holder must learn of the end of its hold before its lease is over does not apply to
// a lock; "": it applies.
func tellsInTime(l Lock) string {
	switch {
	case !l.Watched:
		return "the lock has no Lost, by which its holder would be told"
	case !l.Renewed:
		return "the lock does not renew its lease, so that it does not learn of the end before the lease is over"
	}
	return ""
}

// LongHold shows whether a lock renews its lease. It is none of the stories by which locks are judged.
var LongHold = Story{
	Name: "hold-past-the-lease", applies: leased,
	About:     "A process holds the lock for longer than a lease, and nothing fails.",
	processes: "{a: {}}",
	steps: `
  a/1: [{lock: orders}, {sleep: {1.5}}, {unlock: orders}]`,
}

// names are the stories about locks with names that are alike.
var names = []Story{
	{
		Name: "names-that-begin-alike", applies: always,
		About:     "One process has orders2 while another locks and unlocks orders, and then the other way round. Neither lock ends, takes or waits for the hold of the other.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders2}, {at: {0.7}}, {unlock: orders2}, {at: {1.1}}, {lock: orders2}, {sleep: {0.1}}, {unlock: orders2}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {at: {1}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  c/1: [{at: {0.3}}, {lock: orders2}, {sleep: {0.1}}, {unlock: orders2}, {at: {1.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
}
