package story

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// classics are the failures for which locks are known. None of them depends on the traits that a lock
// claims: a rule waits until the moment has come at which the failure shows, and a lock that does not do
// what the story is about keeps its promises.
var classics = slices.Concat([]Story{
	{
		Name: "holder-that-is-cut-off", applies: always,
		About:     "The holder has the lock for the second time. It hears nothing until its lease is over and another has the lock, and works on. If the lock tells its holder of a loss, it must tell in time.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {lock: orders}, {sleep: {8}}, {sleep: 10s}, {unlock: orders}]
  b/1: [{at: {0.6}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]`,
		faults: `
  - {at: {0.25}, partition: [a], for: {2.5}}`,
	},
	{
		Name: "holder-that-is-cut-off-from-a-majority", applies: both(leased, several),
		About:     "The holder reaches fewer than half of the servers until its lease is over and another has the lock. What these servers answer must not prolong its hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {4}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]`,
		faults: `
  - {at: {0.25}, partition: [a], for: {2.5}, servers: {majority}}`,
	},
	{
		Name: "extension-by-less-than-a-majority", applies: both(extends, several),
		About:     "The holder reaches fewer than half of the servers when it extends its hold, until its lease is over and another has the lock. What these servers answer must not prolong its hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.6}}, {extend: orders}, {sleep: {0.8}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]`,
		faults: `
  - {at: {0.25}, partition: [a], for: {2.5}, servers: {majority}}`,
	},
	{
		Name: "client-closed-after-the-lease", applies: leased,
		About:     "The holder is cut off until its lease is over and another has the lock. Then its client is shut down, which must not end that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {1.5}}, close]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]`,
		faults: `
  - {at: {0.05}, partition: [a], for: {1.2}}`,
	},
	{
		Name: "late-answers-to-an-acquire", applies: leased,
		About:     "The answers to an acquire are late, and nothing renews the hold. The lease counts from the request, and the holder must not believe in it until it is over from the answer on.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {1.5}}, {unlock: orders}]
  b/1: [{at: {0.4}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire}, until: {0.4}, do: delay, for: {0.2<1500ms}}
  - {when: {process: a, direction: request, script: renew}, do: drop}`,
	},
	{
		Name: "late-answers-to-renewals", applies: leased,
		About:     "The answers to renewals are late, and then the holder hears nothing. Its lease counts from the last renewal that it sent, and not from the answer.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {4}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: renew}, until: {1}, do: delay, for: 300ms}
  - {at: {0.8}, partition: [a], for: {4}}`,
	},
	{
		Name: "late-answer-to-an-extension", applies: both(extends, unrenewed),
		About:     "The answer to the second extension of a hold is late. The hold lasts for a lease from the request on, and the holder must not believe in it until a lease from the answer on is over.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {0.05}}, {extend: orders}, {at: {0.2}}, {extend: orders}, {sleep: {1.5}}, {unlock: orders}]
  b/1: [{at: {0.6}}, {lock: orders}, {sleep: {0.8}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: renew}, from: {0.15}, do: delay, for: {0.2<1500ms}}`,
	},
	{
		Name: "long-hold-beside-another-thread", applies: both(renewed, alone),
		About:     "A thread has the lock for three leases, while another of its process waits for the same lock, as one of another process does. The hold must be renewed as without them.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  a/2: [{at: {0.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "wake-up-long-after-the-connections-ended", applies: always,
		// Each process uses the lock again before, so that its clients find their connections ended.
		About:     "The servers end all connections. Long after that, when both processes have used the lock again, one waits for the other. The waiter must get the lock as if nothing had happened.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}, {at: {0.5}}, {sleep: 20s}, {repeat: {times: 10, steps: [{lock: orders}, {unlock: orders}, {sleep: {0.1}}]}}, {at: {10}}, {sleep: 40s}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {unlock: orders}, {at: {0.55}}, {sleep: 20s}, {repeat: {times: 10, steps: [{lock: orders}, {unlock: orders}, {sleep: {0.1}}]}}, {at: {10.05}}, {sleep: 40s}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		faults: `
  - {at: {0.3}, server: restart, keep_data: true}`,
	},
	{
		Name: "unlock-again-in-the-hold-of-another-thread", applies: both(renewed, alone),
		About:     "The answer to an unlock is late, and another thread of the process takes the lock. The unlock is called again, after which the hold of the other must be renewed as before.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.1}}, {lock: orders}, {at: {0.2}}, {unlock: orders}, {at: {0.9}}, {unlock: orders}]
  a/2: [{at: {0.25}}, {lock: orders}, {sleep: {4}}, {unlock: orders}]
  b/1: [{at: {2.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock}, from: {0.15}, until: {0.3}, do: delay, for: {0.5}}`,
	},
	{
		Name: "two-threads-of-one-process-at-once", applies: always,
		About:     "Two threads of a process want the lock at the same time, and one of another process. Each gets it in turn.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}, {at: {0.8}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  a/2: [{at: {0.1}}, {lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  b/1: [{at: {0.15}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
	{
		Name: "queue-that-is-deleted", applies: always,
		About:     "An operator deletes all that the servers keep while one has the lock and another waits, and a third takes the lock before the waiter hears of it. The waiter must not be granted for a place that it no longer has.",
		processes: "{a: {}, b: {}, c: {}, d: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  b/1: [{at: {0.21}}, {lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  c/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  d/1: [{at: {0.7}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.2}, key: "*", do: delete}
  - {when: {process: c, direction: reply}, from: {0.19}, do: hold, until: {granted: b/1}}`,
	},
	{
		Name: "acquire-that-is-granted-twice", applies: leased,
		About:     "The connection ends before the answer to an acquire, the lease of that hold ends, and another has the lock before the caller asks again. Its next hold is as good as a first one.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  c/1: [{at: {1.5}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: acquire, nth: 1}, do: reset}
  - {when: {process: a, direction: request, script: acquire, after: 1}, do: hold, until: {granted: b/1}}`,
	},
	{
		Name: "unlock-sent-again-in-the-next-hold", applies: always,
		About:     "The connection ends before the answer to an unlock, and the unlock is sent again when another thread of its process has the lock. It must not end that hold.",
		processes: "{a: {threads: 2}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  a/2: [{at: {0.05}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  b/1: [{at: {0.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock, nth: 1}, do: reset}
  - {when: {process: a, direction: request, script: unlock, after: 1}, do: hold, until: {granted: a/2}}`,
	},
	{
		Name: "failed-unlock-sent-again-in-a-hold-of-its-thread", applies: always,
		// The first hold loads the scripts of the lock.
		About:     "The connection ends before each answer to an unlock, and its thread has the lock again. If the unlock is sent again later, it must not end that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.05}}, {lock: orders}, {unlock: orders}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  b/1: [{at: {0.4}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: reply, script: unlock}, from: {0.04}, until: {0.3}, do: reset}`,
	},
	{
		Name: "unlock-given-up-that-comes-in-the-next-hold", applies: unrenewed, // a session that is kept alive keeps the first hold, too
		// The first hold loads the scripts of the lock.
		About:     "The request of an unlock comes when its thread has given the call up and has the lock again. It must not end that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.01}}, {lock: orders}, {at: {0.02}}, {unlock: orders}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  b/1: [{at: {1.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: a, direction: request, script: unlock}, from: {0.02}, until: {0.9}, do: delay, for: {1.1}}`,
	},
	{
		Name: "two-at-one-instant-and-an-unlock-too-many", applies: always,
		About:     "Two ask at one instant, and the requests of the second come when the first has unlocked. The first unlocks once more, and must not end the hold of the second.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.02}}, {unlock: orders}, {at: {0.1}}, {unlock: orders}]
  b/1: [{lock: orders}, {sleep: {0.2}}, {unlock: orders}]
  c/1: [{at: {0.12}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: request, script: acquire}, do: hold, until: {granted: a/1, ended: orders}}`,
	},
	{
		Name: "wake-up-that-is-lost-with-a-waiter", applies: always,
		About:     "The connection of the first waiter ends while the answer that wakes it is under way. The second must get the lock all the same.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {0.2}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]
  c/1: [{at: {0.15}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		faults: `
  - {when: {process: b, direction: reply}, from: {0.19}, until: {0.21}, do: reset}`,
	},
	{
		Name: "token-after-a-long-time", applies: fenced,
		About:     "Nobody has the lock for thirty leases. The next token must be greater than the last one all the same.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {30}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
	},
},
	requestsOf(1, 5, Story{
		Name: "release-after-request-%d-of-a-waiter", applies: always,
		About:     "The holder releases the lock just after request %d of a waiter, whom no message tells of it any more. The waiter must get the lock all the same.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.05}}, {lock: orders}, {at: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.12}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock}, from: {0.04}, do: hold, until: {executed: {process: b, script: acquire, nth: {request}}}}`,
	}),
	requestsOf(1, 3, Story{
		Name: "release-before-answer-%d-to-a-waiter", applies: always,
		About:     "The holder releases the lock while the answer to request %d of a waiter is under way, and whatever wakes the waiter comes before that answer. The waiter must get the lock all the same.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.09}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: b, direction: reply, script: acquire, nth: {request}}, do: delay, for: {0.05<300ms}}`,
	}),
	requestsOf(1, 4, Story{
		Name: "release-by-request-2-after-request-%d-of-a-waiter", applies: always,
		About:     "The holder sends the second request of its unlock just after request %d of a waiter. The waiter must get the lock all the same.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.05}}, {lock: orders}, {at: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.12}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock, after: 1}, from: {0.04}, do: hold, until: {executed: {process: b, script: acquire, nth: {request}}}}`,
	}),
	requestsOf(1, 4, Story{
		Name: "other-holder-before-request-%d-of-an-unlock", applies: leased,
		// The unlock begins just before the end of the lease, so that no client gives the request up.
		About:     "Request %d of an unlock comes when the lease is over and another has the lock. It must not end that hold.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.97}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]
  c/1: [{at: {1.1}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock{after}}, do: hold, until: {granted: b/1}}
  - {servers: [{server}], when: {process: a, direction: request, script: renew}, from: {0.1}, do: hold, until: {granted: b/1}}`,
	}),
	requestsOf(2, 3, Story{
		Name: "request-%d-of-an-unlock-in-the-next-hold", applies: leased,
		// The first hold loads the scripts of the lock. The unlock begins before a renewal is due, since an unlock may wait for the
		// renewal that is under way.
		About:     "Request %d of an unlock comes when another has had the lock for some time. It must not end that hold, even if an earlier request of the unlock found its own hold and prolonged it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.9}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock{after}}, from: {0.1}, do: delay, for: {1.5}}`,
	}),
	requestsOf(2, 3, Story{
		Name: "two-take-over-at-request-%d", applies: leased,
		// c/1 waits first, since a lock with a queue grants it first.
		About:     "The holder dies, and two waiters find its lease over. Request %d with which one of them takes the lock comes when the other has it.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}]
  b/1: [{at: {0.9}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  c/1: [{at: {0.8}}, {lock: orders}, {sleep: {0.4}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, crash: a}`,
		eachServer: `
  - {servers: [{server}], when: {process: b, direction: request, script: acquire{after}}, from: {1}, do: hold, until: {granted: c/1}}`,
	}),
	requestsOf(2, 3, Story{
		Name: "first-waiter-late-at-request-%d", applies: leased,
		About:     "The holder dies, and two waiters find its lease over. Request %d with which the one that waited first takes the lock comes when the other has it.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}]
  b/1: [{at: {0.9}}, {lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  c/1: [{at: {0.8}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		faults: `
  - {at: {0.1}, crash: a}`,
		eachServer: `
  - {servers: [{server}], when: {process: c, direction: request, script: acquire{after}}, from: {1}, do: hold, until: {granted: b/1}}`,
	}),
	requestsOf(1, 4, Story{
		Name: "release-before-request-%d-of-a-waiter", applies: always,
		About:     "Request %d of a waiter is late, and the holder releases the lock before it comes. The waiter must get the lock all the same.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {0.06<500ms}}, {unlock: orders}]
  b/1: [{at: {0.05<450ms}}, {lock: orders}, {sleep: {0.05}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: b, direction: request, script: acquire, nth: {request}}, do: delay, for: {0.03<200ms}}`,
	}),
	requestsOf(2, 5, Story{
		Name: "last-holder-before-request-%d-of-a-waiter", applies: always,
		About:     "A waiter finds the lock free, and its request %d, with which it may take the lock, comes when the last holder has the lock again. It must not end that hold, though the lock is as the waiter saw it.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {0.05}}, {unlock: orders}, {at: {0.1}}, {lock: orders}, {sleep: {0.4}}, {unlock: orders}]
  b/1: [{at: {0.07}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: b, direction: request, script: acquire{after}}, from: {0.06}, do: hold, until: {granted: a/1}}`,
	}),
	requestsOf(2, 3, Story{
		Name: "other-holder-before-request-%d-after-a-lost-one", applies: leased,
		About:     "The connection ends with the first request of an acquire, and request %d comes when another has the lock. It must not end that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.1}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: acquire, nth: 1}, do: reset}
  - {servers: [{server}], when: {process: a, direction: request, script: acquire{after}}, do: hold, until: {granted: b/1}}`,
	}),
	requestsOf(2, 3, Story{
		Name: "other-holder-before-request-%d-after-a-lost-answer", applies: leased,
		About:     "The answer to the first request of an acquire is lost, and request %d, which may take the hold back, comes when another has the lock. It must not end that hold.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.9}}, {lock: orders}, {sleep: {0.6}}, {unlock: orders}]
  c/1: [{at: {1.3}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: reply, script: acquire, nth: 1}, do: drop}
  - {servers: [{server}], when: {process: a, direction: request, script: acquire{after}}, do: hold, until: {granted: b/1}}`,
	}),
	requestsOf(1, 3, Story{
		Name: "long-hold-after-lost-answer-%d", applies: renewed,
		About:     "The answer to request %d of an acquire is lost. A holder that gets the lock all the same works for three leases, and what it has must be renewed.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.6}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: reply, script: acquire, nth: {request}}, do: drop}`,
	}),
	[]Story{{
		Name: "unlock-after-a-renewal-without-an-answer", applies: renewedTwice,
		// The first hold loads the scripts of the lock.
		About:     "A renewal runs, and the connection ends before its answer. Whatever the renewal changed, the unlock must end the hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.52}}, {unlock: orders}, {at: {0.6}}, {lock: orders}, {sleep: {0.52}}, {unlock: orders}]
  b/1: [{at: {0.7}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: reply, script: renew, nth: 1}, from: {0.65}, do: reset}`,
	}, {
		Name: "unlock-after-an-extension-without-an-answer", applies: extends,
		// The first hold loads the scripts of the lock.
		About:     "An extension runs, and the connection ends before its answer. Whatever the extension changed, the unlock must end the hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {extend: orders}, {unlock: orders}, {at: {0.1}}, {lock: orders}, {sleep: {0.2}}, {extend: orders}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: reply, script: renew, nth: 1}, from: {0.29}, do: reset}`,
	}, {
		Name: "renewal-that-comes-after-the-unlock", applies: renewed,
		About:     "A renewal is late, and comes when its hold was given up. It must not take the lock, and another gets it at once.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  b/1: [{at: {0.75}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: renew, nth: 1}, from: {0.05}, do: hold, until: {ended: orders}}`,
	}, {
		Name: "unlock-beside-a-renewal-of-two-holds", applies: renewedTwice,
		// Each pair is for another lock: one that renews at a quarter, at a third, or at half of the lease.
		About:     "A process has pairs of holds, and a renewal is late, and comes when the first hold of a pair was given up. The second hold must be renewed all the same.",
		processes: "{a: {threads: 3}}",
		steps: `
  a/1: [{lock: orders}, {lock: stock}, {at: {0.26}}, {unlock: orders}, {at: {3}}, {unlock: {name: stock, want: [released, unknown]}}]
  a/2: [{at: {0.004}}, {lock: orders2}, {lock: stock2}, {at: {0.343}}, {unlock: orders2}, {at: {3}}, {unlock: {name: stock2, want: [released, unknown]}}]
  a/3: [{at: {0.008}}, {lock: orders3}, {lock: stock3}, {at: {0.51}}, {unlock: orders3}, {at: {3}}, {unlock: {name: stock3, want: [released, unknown]}}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: renew}, from: {0.05}, until: {0.6}, do: delay, for: {0.025<1500ms}}`,
	}, {
		Name: "re-entry-after-the-lease", applies: both(reentrant, leased),
		About:     "The lease ends while the renewals are late, and another gets the lock. The thread that had it locks again, and must wait for the other.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {at: {1.2}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: renew}, from: {0.05}, do: hold, until: {granted: b/1}}`,
	}},
	requestsOf(2, 3, Story{
		Name: "waiter-before-request-%d-of-an-unlock", applies: always,
		About:     "Request %d of an unlock is late, and a waiter that the requests before have woken finds the lock still held. It must get the lock when it is free.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: unlock{after}}, do: delay, for: {0.05}}`,
	}),
	requestsOf(1, 3, Story{
		Name: "other-holder-before-request-%d-of-a-renewal", applies: renewed,
		// The hold of c ends when b has had the lock for a second, and has not yet renewed it: a request that comes at once sets the
		// end that the hold has anyway, where a server counts whole seconds.
		About:     "Request %d of the renewals comes when the lease is over and another has the lock. It must not prolong that hold.",
		processes: "{a: {}, b: {}, c: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]
  c/1: [{lock: stock}, {at: {1.17}}, {unlock: stock}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: renew{after}}, from: {0.05}, do: hold, until: {granted: b/1, ended: stock}}`,
	}),
	requestsOf(1, 3, Story{
		Name: "late-request-%d-of-a-renewal", applies: renewed,
		// A stream that its client has closed does not deliver what a rule held, and delivers what is late.
		About:     "Request %d of the renewals comes when another has had the lock for some time. It must not prolong that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {3}}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {1}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: renew{after}}, from: {0.05}, do: delay, for: {1.1}}`,
	}),
	requestsOf(1, 3, Story{
		Name: "other-holder-before-request-%d-of-an-extension", applies: both(extends, unrenewed),
		// The extension begins just before the end of the lease, so that no client gives the request up.
		About:     "Request %d of an extension comes when the lease is over and another has the lock. It must not prolong that hold.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.97}}, {extend: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.05}}, {lock: orders}, {sleep: {0.5}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: renew{after}}, do: hold, until: {granted: b/1}}`,
	}),
	requestsOf(1, 3, Story{
		Name: "other-holder-after-request-%d-of-an-acquire", applies: leased,
		// The process has its connection and its scripts from the hold before. No client gives the call up, since
		// the timers of the process stand still, too.
		About:     "A process stands still while the answer to request %d of its acquire is under way, until the lease is over and another has the lock. The requests that follow must not harm that hold, and no token may be greater than that of the other.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {unlock: orders}, {at: {0.05<1s}}, {lock: orders}, {unlock: orders}]
  b/1: [{at: {0.2}}, {lock: orders}, {sleep: {0.7}}, {unlock: orders}]`,
		faults: `
  - {at: {0.06<1100ms}, pause: a, for: {1.5}}`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: reply, script: acquire, nth: {request}}, from: {0.045<900ms}, do: delay, for: {0.02<300ms}}`,
	}),
	requestsOf(2, 4, Story{
		Name: "other-hold-before-request-%d-of-an-acquire", applies: always,
		About:     "Request %d of an acquire comes when another has had the lock and given it up. A token that was drawn before is smaller than that of the other.",
		processes: "{a: {}, b: {}}",
		steps: `
  a/1: [{lock: orders}, {sleep: {0.1}}, {unlock: orders}]
  b/1: [{at: {0.02}}, {lock: orders}, {sleep: {0.03}}, {unlock: orders}]`,
		eachServer: `
  - {servers: [{server}], when: {process: a, direction: request, script: acquire{after}}, do: hold, until: {granted: b/1, ended: orders}}`,
	}),
)

// requestsOf returns the story for each request from the first to the last: in its name and in About %d is
// the number of the request, and {after} lets a rule meet that request and those behind it.
func requestsOf(first, last int, s Story) (stories []Story) {
	for n := first; n <= last; n++ {
		of, after := s, ""
		if n > 1 {
			after = fmt.Sprintf(", after: %d", n-1)
		}
		of.Name, of.About = fmt.Sprintf(s.Name, n), fmt.Sprintf(s.About, n)
		of.eachServer = strings.NewReplacer("{after}", after, "{request}", strconv.Itoa(n)).Replace(s.eachServer)
		stories = append(stories, of)
	}
	return stories
}
