package planted

import (
	"time"

	"lockstep/lockimpl/redisson"
)

// The locks in which bugs are planted.
const (
	plain     = "redisson@4.7.0"
	fair      = "redisson-fair@4.7.0"
	fenced    = "redisson-fenced@4.7.0"
	reference = "reference"
	inOrder   = "reference-fair"
	watched   = "reference-watched"
	handles   = "reference-handle"
)

// The judges.
const (
	misdelete       = "misdelete"
	liveness        = "liveness"
	linearizable    = "linearizable"
	holdCount       = "hold-count"
	lease           = "lease"
	mutualExclusion = "mutual-exclusion"
	traffic         = "traffic"
	fifo            = "fifo"
	tidy            = "tidy"
	fencing         = "fencing"
	waitBound       = "wait-bound"
)

// Profiles of explore.
const (
	simple = "simple"
	full   = "full"
)

var (
	unlock  = []string{"unlock"}
	acquire = []string{"acquire"}
	renew   = []string{"renew"}
	leave   = []string{"leave"}
	force   = []string{"force_unlock"}
	purge   = []string{"acquire", "unlock", "force_unlock"}
	request = []string{"acquire", "unlock", "force_unlock", "leave"}
)

// renewText renews one hold, in the words of redisson 4.7.0.
var renewText = func() string {
	rel, err := redisson.Find("4.7.0")
	if err != nil {
		panic("planted: " + err.Error())
	}
	return rel.Renew.Text
}()

// Bugs is the table, by where the bug is.
var Bugs = []*Bug{
	// Scripts of the plain lock.
	{Name: "unlock-by-anyone", Base: plain, What: "unlock does not look whether the caller holds the lock.",
		Judge: misdelete, Profile: full, Runs: 300, Seed: 2,
		Edit: &Edit{unlock, "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then\n    return nil\nend\nlocal levels", "local levels"}},
	{Name: "unlock-leaves-the-key", Base: plain, What: "The last unlock counts down to zero and does not delete the lock.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{unlock, "redis.call('del', KEYS[1])\nredis.call(ARGV[4]", "redis.call(ARGV[4]"}},
	{Name: "unlock-tells-nobody", Base: plain, What: "The last unlock publishes nothing.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{unlock, "redis.call(ARGV[4], KEYS[2], ARGV[1])\n", ""}},
	{Name: "unlock-tells-another-channel", Base: plain, What: "The last unlock publishes to the channel of another lock.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{unlock, "redis.call(ARGV[4], KEYS[2], ARGV[1])", "redis.call(ARGV[4], KEYS[2] .. ':x', ARGV[1])"}},
	{Name: "unlock-takes-all-levels", Base: plain, What: "An unlock gives the lock up whatever level is left.",
		Judge: linearizable, Profile: simple, Runs: 300, Seed: 14,
		Edit: &Edit{unlock, "local levels = redis.call('hincrby', KEYS[1], ARGV[3], -1)\nif levels > 0 then\n    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[3]", "local levels = 0\nif levels > 0 then\n    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[3]"}},
	{Name: "unlock-takes-two-levels", Base: plain, What: "An unlock takes two levels and says that it took one.",
		Judge: holdCount, Profile: simple, Runs: 300, Seed: 14,
		Edit: &Edit{unlock, "ARGV[3], -1)\nif levels > 0 then\n    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[3]", "ARGV[3], -2) + 1\nif levels > 0 then\n    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[3]"}},
	{Name: "partial-unlock-ends-the-lease", Base: plain, What: "An unlock that leaves a level takes the time to live from the key.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 14,
		Edit: &Edit{unlock, "    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[3]", "    redis.call('persist', KEYS[1])\n    redis.call('set', KEYS[3]"}},
	{Name: "acquire-without-lease", Base: plain, What: "The key of a new hold has no time to live.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{acquire, "local free = redis.call('exists', KEYS[1]) == 0\nif free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n    redis.call('pexpire', KEYS[1], ARGV[1])\n",
			"local free = redis.call('exists', KEYS[1]) == 0\nif free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n"}},
	{Name: "reentry-without-lease", Base: plain, What: "Entering again does not start the lease anew.",
		Judge: mutualExclusion, Profile: full, Runs: 300, Seed: 21,
		Edit: &Edit{acquire, "local free = redis.call('exists', KEYS[1]) == 0\nif free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n    redis.call('pexpire', KEYS[1], ARGV[1])\n",
			"local free = redis.call('exists', KEYS[1]) == 0\nif free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n    if free then redis.call('pexpire', KEYS[1], ARGV[1]) end\n"}},
	{Name: "acquire-grants-to-all", Base: plain, What: "The lock is granted to whoever asks, beside the one who has it.",
		Judge: mutualExclusion, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{acquire, "if free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby'", "if true then\n    redis.call('hincrby'"}},
	{Name: "reentry-not-counted", Base: plain, What: "Entering again leaves the count at one.",
		Judge: holdCount, Profile: simple, Runs: 300, Seed: 14,
		Edit: &Edit{acquire, "if free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby'", "if free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hset'"}},
	{Name: "acquire-without-pause", Base: plain, What: "A waiter is told that the lock is free in 0 ms.",
		Judge: traffic, Profile: simple, Runs: 300, Seed: 6,
		Edit: &Edit{acquire, "    redis.call('pexpire', KEYS[1], ARGV[1])\n    return nil\nend\nreturn redis.call('pttl', KEYS[1])\n", "    redis.call('pexpire', KEYS[1], ARGV[1])\n    return nil\nend\nreturn 0\n"}},
	{Name: "renewal-by-anyone", Base: plain, What: "A renewal does not look whose hold it renews.",
		Judge: misdelete, Faults: "pause,partition,network", Profile: full, Runs: 500, Seed: 2,
		Edit: &Edit{renew, "redis.call('hexists', KEYS[i], ARGV[i + 1])", "redis.call('exists', KEYS[i])"}},
	{Name: "renewal-shortens", Base: plain, What: "A renewal asks for a quarter of the lease.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{renew, "redis.call('pexpire', KEYS[i], ARGV[1])", "redis.call('pexpire', KEYS[i], math.floor(ARGV[1] / 4))"}},
	{Name: "renewal-does-nothing", Base: plain, What: "A renewal answers that it renewed and does not.",
		Judge: lease, Profile: full, Runs: 300, Seed: 7,
		Edit: &Edit{renew, "        redis.call('pexpire', KEYS[i], ARGV[1])\n", ""}},
	{Name: "force-unlock-tells-nobody", Base: plain, What: "A forced unlock publishes nothing.",
		Judge: liveness, Profile: full, Runs: 1000, Seed: 226,
		Edit: &Edit{force, "redis.call(ARGV[2], KEYS[2], ARGV[1])\n", ""}},

	// Scripts of the fair lock.
	{Name: "fair-take-out-of-turn", Base: fair, What: "Whoever comes when the lock is free takes it, past the queue.",
		Judge: fifo, Profile: simple, Runs: 300, Seed: 4,
		Edit: &Edit{acquire, "\n    and (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then\n    redis.call('lpop', KEYS[2])", " then\n    redis.call('lrem', KEYS[2], 0, ARGV[2])"}},
	{Name: "fair-last-in-first-out", Base: fair, What: "A waiter is put in front of the queue.",
		Judge: fifo, Profile: simple, Runs: 300, Seed: 4,
		Edit: &Edit{acquire, "redis.call('rpush', KEYS[2], ARGV[2])", "redis.call('lpush', KEYS[2], ARGV[2])"}},
	{Name: "fair-purge-takes-one-more", Base: fair, What: "Who throws a dead head out of the queue throws out the next one with it.",
		Judge: tidy, Faults: "crash", Profile: full, Runs: 500, Seed: 10,
		Edit: &Edit{purge, "    redis.call('zrem', KEYS[3], head)\n    redis.call('lpop', KEYS[2])\nend\n", "    redis.call('zrem', KEYS[3], head)\n    redis.call('lpop', KEYS[2])\n    redis.call('lpop', KEYS[2])\nend\n"}},
	{Name: "fair-deadline-without-wait", Base: fair, What: "A waiter's deadline leaves out its wait.",
		Judge: fifo, Profile: simple, Runs: 300, Seed: 13,
		Edit: &Edit{acquire, "now + ttl + wait", "now + ttl"}},
	{Name: "fair-deadlines-moved-twice", Base: fair, What: "Who takes the lock moves the deadlines of all others up by two waits.",
		Judge: fifo, Profile: simple, Runs: 300, Seed: 13,
		Edit: &Edit{acquire, "redis.call('zincrby', KEYS[3], -wait, waiter)", "redis.call('zincrby', KEYS[3], -2 * wait, waiter)"}},
	{Name: "fair-take-keeps-the-deadline", Base: fair, What: "Who takes the lock leaves its deadline behind.",
		Judge: tidy, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{acquire, "    redis.call('lpop', KEYS[2])\n    redis.call('zrem', KEYS[3], ARGV[2])\n", "    redis.call('lpop', KEYS[2])\n"}},
	{Name: "fair-unlock-wakes-the-last", Base: fair, What: "The last unlock wakes the end of the queue.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 56,
		Edit: &Edit{unlock, "redis.call('set', KEYS[5], 1, 'px', ARGV[6])\nlocal head = redis.call('lindex', KEYS[2], 0)", "redis.call('set', KEYS[5], 1, 'px', ARGV[6])\nlocal head = redis.call('lindex', KEYS[2], -1)"}},
	{Name: "fair-unlock-wakes-all", Base: fair, What: "The last unlock publishes to the channel of the plain lock.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{unlock, "if head then\n    redis.call(ARGV[5], KEYS[4] .. ':' .. head, ARGV[1])\nend\nreturn 1", "if head then\n    redis.call(ARGV[5], KEYS[4], ARGV[1])\nend\nreturn 1"}},
	{Name: "fair-leave-keeps-the-deadline", Base: fair, What: "Who leaves the queue leaves its deadline behind.",
		Judge: tidy, Profile: full, Runs: 500, Seed: 2,
		Edit: &Edit{leave, "redis.call('zrem', KEYS[2], ARGV[1])\n", ""}},
	{Name: "fair-leave-keeps-the-place", Base: fair, What: "Who leaves the queue leaves its entry behind.",
		Judge: tidy, Profile: full, Runs: 500, Seed: 2,
		Edit: &Edit{leave, "redis.call('lrem', KEYS[1], 0, ARGV[1])\n", ""}},
	{Name: "fair-reentry-not-counted", Base: fair, What: "Entering the fair lock again leaves the count at one.",
		Judge: holdCount, Profile: simple, Runs: 300, Seed: 8,
		Edit: &Edit{acquire, "if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n", "if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then\n"}},
	{Name: "fair-take-without-lease", Base: fair, What: "A hold of the fair lock has no time to live until it is renewed.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 1,
		Edit: &Edit{acquire, "    redis.call('hset', KEYS[1], ARGV[2], 1)\n    redis.call('pexpire', KEYS[1], ARGV[1])\n", "    redis.call('hset', KEYS[1], ARGV[2], 1)\n"}},
	{Name: "fair-unlock-by-anyone", Base: fair, What: "Unlock of the fair lock does not look whether the caller holds it.",
		Judge: misdelete, Profile: full, Runs: 300, Seed: 1,
		Edit: &Edit{unlock, "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then\n    return nil\nend\nlocal levels = redis.call('hincrby', KEYS[1], ARGV[3], -1)\nif levels > 0 then\n    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[5]", "local levels = redis.call('hincrby', KEYS[1], ARGV[3], -1)\nif levels > 0 then\n    redis.call('pexpire', KEYS[1], ARGV[2])\n    redis.call('set', KEYS[5]"}},

	// The script of the fenced lock.
	{Name: "fenced-same-token", Base: fenced, What: "Every hold has the token 1.",
		Judge: fencing, Profile: simple, Runs: 300, Seed: 2,
		Edit: &Edit{acquire, "redis.call('incr', KEYS[2])\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n    redis.call('pexpire', KEYS[1], ARGV[1])\n    return nil", "redis.call('set', KEYS[2], 1)\n    redis.call('hincrby', KEYS[1], ARGV[2], 1)\n    redis.call('pexpire', KEYS[1], ARGV[1])\n    return nil"}},

	// Choices of the release.
	{Name: "renewal-goes-on", Base: plain, What: "No answer to an unlock ends the renewal.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 2,
		Release: func(r *redisson.Release) { r.StopsRenewal = nil }},
	{Name: "interrupted-is-locked", Base: plain, What: "lock() comes back from an interrupted wait as if it had the lock.",
		Judge: linearizable, Faults: "interrupt", Profile: full, Runs: 300, Seed: 38,
		Release: func(r *redisson.Release) { r.LockReturnsInterrupted = true }},
	{Name: "resends-acquire", Base: plain, What: "An acquire whose reply is lost is sent again.",
		Judge: holdCount, Faults: "network", Profile: simple, Runs: 500, Seed: 7,
		Release: func(r *redisson.Release) { r.Resend = append([]redisson.ScriptKind{redisson.KindAcquire}, r.Resend...) }},

	// Clients of the plain and of the fair lock.
	{Name: "sleeps-before-it-asks-again", Base: plain, What: "A waiter that has subscribed does not ask again before it sleeps.",
		Judge: liveness, Profile: simple, Runs: 500, Seed: 101, Send: sleepsFirst},
	{Name: "lease-rounded-down", Base: plain, What: "A lease is sent in whole seconds, rounded down.",
		Judge: mutualExclusion, Profile: simple, Runs: 300, Seed: 25, Send: changing("acquire", 0, roundedTo(time.Second, false))},
	{Name: "lease-rounded-up", Base: plain, What: "A lease is sent in whole minutes, rounded up.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 2, Send: changing("acquire", 0, roundedTo(60*time.Second, true))},
	{Name: "client-without-id", Base: plain, What: "All clients call themselves the same, so that their threads are one owner.",
		Judge: mutualExclusion, Profile: simple, Runs: 300, Seed: 2, Send: changing("acquire", 1, anonymous)},
	{Name: "unlock-as-first-thread", Base: plain, What: "Every unlock names the first thread of the client as the owner.",
		Judge: linearizable, Profile: full, Runs: 300, Seed: 2, Send: changing("unlock", 2, firstThread)},
	{Name: "renewal-as-another", Base: plain, What: "The renewal names an owner that nobody is.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 2,
		Send: changing("renew", 1, func(o any) any { return o.(string) + "0" })},
	{Name: "renews-every-third-time", Base: plain, What: "Of three renewals that are due one is sent.",
		Judge: lease, Profile: full, Runs: 300, Seed: 7,
		Send: func(next Sender) Sender { return answering("renew", renewsLess())(next) }},
	{Name: "renews-after-unlock", Base: plain, What: "A renewal follows each release.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 2, Send: renewsTheReleased},
	{Name: "milliseconds-for-microseconds", Base: plain, What: "A waiter takes the milliseconds that it is told to wait for microseconds.",
		Judge: traffic, Profile: simple, Runs: 300, Seed: 1,
		Send: misreading("acquire", func(reply any, err error) (any, error) {
			if ms, ok := reply.(int64); ok {
				return ms / 1000, err
			}
			return reply, err
		})},
	{Name: "failed-renewal-is-lost", Base: reference, What: "A renewal that fails once is taken for the loss of the hold.",
		Judge: lease, Faults: "watchdog", Profile: full, Runs: 300, Seed: 45,
		Send: misreading("renew", func(reply any, err error) (any, error) {
			if err != nil {
				return int64(0), nil
			}
			return reply, nil
		})},
	{Name: "leave-not-sent", Base: fair, What: "A timed try that gives up does not leave the queue.",
		Judge: tidy, Profile: full, Runs: 300, Seed: 2,
		Send: answering("leave", func(Command) (any, bool) { return nil, true })},
	{Name: "listens-elsewhere", Base: plain, What: "Waiters subscribe to a channel on which nothing is published.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 2, Conn: wrongChannel},
	{Name: "wake-ups-lost", Base: plain, What: "Of two wake-ups that a client gets it loses one.",
		Judge: liveness, Profile: simple, Runs: 300, Seed: 1, Conn: hearsEverySecond},
	{Name: "waits-twice-as-long", Base: plain, What: "A timed try waits for twice its wait.",
		Judge: waitBound, Profile: simple, Runs: 300, Seed: 10, Call: twiceAsLong},
	{Name: "unknown-is-locked", Base: plain, What: "lock() whose answer is lost returns as if it had the lock.",
		Judge: linearizable, Faults: "network", Profile: simple, Runs: 500, Seed: 39, Call: grantedByError},
	{Name: "time-up-is-locked", Base: plain, What: "A timed try says that it has the lock when its time is up.",
		Judge: mutualExclusion, Profile: simple, Runs: 300, Seed: 6, Call: grantedByTime},
	{Name: "error-is-released", Base: plain, What: "unlock() says that the lock was released whatever the server said.",
		Judge: linearizable, Profile: full, Runs: 300, Seed: 2, Call: releasedByError},
	{Name: "unknown-is-failed", Base: plain, What: "lock() whose answer is lost says that nothing happened.",
		Judge: holdCount, Faults: "network", Profile: simple, Runs: 500, Seed: 79, Call: failsUnknown},
	{Name: "enters-again-by-memory", Base: plain, What: "An owner that thinks it holds the lock enters again without asking.",
		Judge: holdCount, Profile: simple, Runs: 300, Seed: 16, Call: remembersHolds},

	// The reference locks.
	{Name: "reference-acquire-repeated", Base: reference, What: "An acquire that is sent again is not known again.",
		Judge: holdCount, Faults: "network", Profile: simple, Runs: 500, Seed: 32,
		Edit: &Edit{acquire, "if holder == owner and redis.call('hget', KEYS[1], 'request') == call then\n    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}\nend\nif newest > tonumber(call) and answered == 'granted' then\n    return {'over', now} -- that hold is gone\nend\nif newest == number then", "if false then"}},
	{Name: "reference-unlock-repeated", Base: reference, What: "An unlock that is sent again takes another level.",
		Judge: holdCount, Faults: "network", Profile: simple, Runs: 500, Seed: 29,
		Edit: &Edit{unlock, "if newest == number then\n    return {answered, now}\nend\n", ""}},
	{Name: "reference-overtaken", Base: reference, What: "A request that a newer one of its owner has overtaken runs all the same.",
		Judge: holdCount, Faults: "network", Profile: full, Runs: 2000, Seed: 40,
		Edit: &Edit{request, "if newest > number then\n    return {'over', now}\nend\n", ""}},
	{Name: "reference-token-repeated", Base: reference, What: "The token grows only when the server still knows the last.",
		Judge: fencing, Profile: simple, Runs: 500, Seed: 1,
		Edit: &Edit{acquire, "math.max(last + 1, stamp)", "math.max(last, 1)"}},
	{Name: "reference-place-not-kept", Base: inOrder, What: "A waiter that asks again does not defend its place.",
		Judge: liveness, Profile: simple, Runs: 500, Seed: 25,
		Edit: &Edit{acquire, "if newest > tonumber(call) and redis.call('zscore', KEYS[5], owner) then", "if false then"}},
	{Name: "reference-dead-stay", Base: inOrder, What: "Waiters whose time is over keep their places.",
		Judge: liveness, Faults: "crash", Profile: full, Runs: 500, Seed: 38,
		Edit: &Edit{request, "redis.call('zrangebyscore', KEYS[5], '-inf', now)", "redis.call('zrangebyscore', KEYS[5], '-inf', 0)"}},
	{Name: "reference-depart-stays", Base: inOrder, What: "Who gives an acquire up stays in the queue.",
		Judge: tidy, Profile: full, Runs: 500, Seed: 4,
		Edit: &Edit{leave, "redis.call('zrem', KEYS[5], owner)\nredis.call('lrem', KEYS[4], 0, owner)\nif head == owner", "if head == owner"}},
	{Name: "reference-out-of-turn", Base: inOrder, What: "A free lock is taken by whoever asks first.",
		Judge: fifo, Profile: simple, Runs: 500, Seed: 24,
		Edit: &Edit{acquire, "if not holder and (not head or head == owner) then", "if not holder then"}},
	{Name: "reference-renewal-does-nothing", Base: reference, What: "A renewal leaves the time to live as it is.",
		Judge: lease, Profile: full, Runs: 300, Seed: 14,
		Edit: &Edit{renew, "    redis.call('pexpire', KEYS[1], ARGV[3])\n", ""}},
	{Name: "reference-told-of-no-loss", Base: watched, What: "A renewal that kept the hold is taken for one that found it gone, and the holder is told so.",
		Judge: lease, Profile: simple, Runs: 300, Seed: 9,
		Send: misreading("renew", func(reply any, err error) (any, error) {
			if reply == int64(1) {
				return int64(0), err
			}
			return reply, err
		})},
	{Name: "reference-handles-of-one-owner", Base: handles, What: "All handles of a client have one owner.",
		Judge: mutualExclusion, Profile: full, Runs: 300, Seed: 1, Send: sharedHandle},
	{Name: "reference-handle-asks-anew", Base: handles, What: "A Release that is sent again is another request.",
		Judge: linearizable, Faults: "network", Profile: full, Runs: 300, Seed: 10, Send: unlocksAnew},
	{Name: "reference-handle-error-is-released", Base: handles, What: "Release says that the hold was given up whatever the server said.",
		Judge: linearizable, Profile: full, Runs: 300, Seed: 1, Call: releasedByError},
}
