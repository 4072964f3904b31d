package redisson

import (
	"testing"
	"time"

	"lockstep/lockimpl"
)

func unchecked(cfg *Config) { cfg.UncheckedArguments = true }

// Without UncheckedArguments such arguments are refused: see
// TestInvalidArgumentsAreRefusedBeforeAnythingIsSent.

// A lease is sent in whole milliseconds, and PEXPIRE with 0 or less deletes: the lock is granted,
// and nothing of it remains.
func TestALeaseThatIsNotSentAsAPositiveNumberLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		what  string
		lease time.Duration
		sent  string
		by    string
	}{
		{"half a millisecond", 500 * time.Microsecond, "0", allReleases},
		{"negative, where only -1 means none", -5 * time.Second, "-5000", "3.4.2 3.11.0 3.12.4"},
	} {
		t.Run(c.what, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				if !k.isOneOf(c.by) {
					return // see TestALeaseThatMeansNone
				}
				l := b.lock(b.client(k.Release, "c1", unchecked), k, "x")
				b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: c.lease}))
				same(b.t, "lease of lock", b.leaseSent("c1", k.acquire()), c.sent)
				same(b.t, "keys", b.keys(), nil)
				b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Lease: c.lease}))
				same(b.t, "lease of try", b.leaseSent("c1", k.acquire()), c.sent)
				same(b.t, "keys", b.keys(), nil)

				// A re-entry with such a lease ends the hold with all its levels.
				b.must(b.lock(b.client(k.Release, "c2"), k, "y").Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
				again := b.lock(b.client(k.Release, "c2", unchecked), k, "y")
				b.must(again.Lock(background, 1, lockimpl.LockOptions{Lease: c.lease}))
				same(b.t, "keys after a re-entry", b.keys(), nil)
				b.until(time.Minute)
				same(b.t, "renewals", b.renewals(k.Release, "c1"), nil)
			})
		})
	}
}

// Before 3.17.1, only the lease -1 means no lease. From then on every lease that is not positive
// means that.
func TestALeaseThatMeansNone(t *testing.T) {
	for _, c := range []struct {
		what  string
		lease time.Duration
		by    string
	}{
		{"-1 ms", -time.Millisecond, allReleases},
		{"-5 s", -5 * time.Second, "3.21.3 3.43.0 4.7.0"},
		{"-500 us", -500 * time.Microsecond, "3.21.3 3.43.0 4.7.0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				if !k.isOneOf(c.by) {
					return // such a lease is sent
				}
				l := b.lock(b.client(k.Release, "c1", unchecked), k, "x")
				b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: c.lease}))
				same(b.t, "time to live", b.m.TTL("x"), 30*time.Second)
				b.until(5 * time.Minute)
				same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"}) // renewed
				b.released(lockimpl.Released)(l.Unlock(background, 1))
				b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Lease: c.lease}))
				b.until(10 * time.Minute)
				same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
			})
		})
	}
}

// A negative wait is one attempt. A caller that queues does so with the client's wait, and then
// leaves.
func TestANegativeWaitIsOneAttempt(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c0"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		l := b.lock(b.client(k.Release, "c1", unchecked), k, "x")
		b.tried(false)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: -time.Second}))
		same(b.t, "time", b.now(), 0)
		same(b.t, "attempts", len(b.runs("c1", k.acquire().Name)), 1)
		same(b.t, "keys", b.keys(), []string{"x"})
		if k.fair {
			wait := byRelease[string]{"3.4.2 3.11.0 3.12.4": "5000", "3.21.3 3.43.0 4.7.0": "300000"}.forRelease(b.t, k.Release)
			same(b.t, "wait", waitOf(b.t, k.Release, b.runs("c1", k.acquire().Name)[0]), wait)
		}
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: -1}))
	})
}

// An empty name, or a name with a brace that is not closed, works on a single server. Its keys are
// those of prefixName.
func TestNamesThatBreakInAClusterWorkOnOneServer(t *testing.T) {
	for _, c := range []struct{ name, tag string }{{"", "{}"}, {"a{b", "a{b"}, {"}a{", "}a{"}} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				holder := b.lock(b.client(k.Release, "c0", unchecked), k, c.name)
				b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
				same(b.t, "keys", b.keys(), []string{c.name})
				lock := b.beginLock(background, b.lock(b.client(k.Release, "c1", unchecked), k, c.name), 1, lockimpl.LockOptions{})
				channel := "redisson_lock__channel:" + c.tag
				if k.fair {
					channel += ":c1:1"
				}
				same(b.t, "channels", b.channels(), []string{channel})
				b.until(time.Second)
				b.released(lockimpl.Released)(holder.Unlock(background, 1))
				lock.grantedAt(time.Second)
			})
		})
	}
}

// The fenced lock accepts the same arguments.
func TestUncheckedArgumentsOfTheFencedLock(t *testing.T) {
	on(t, "4.7.0", func(b *bench, rel *Release) {
		c := b.client(rel, "c1", unchecked)
		token, ok, err := b.fenced(c, "a{b").TryLockTimedAndGetToken(background, 1, lockimpl.TryOptions{Lease: 500 * time.Microsecond})
		b.must(err)
		same(b.t, "granted with a token, and nothing held", [2]any{token, ok}, [2]any{int64(1), true})
		same(b.t, "keys", b.keys(), []string{"redisson_lock_token:a{b"})
		_, err = b.fenced(c, "a{b").LockAndGetToken(background, 1, lockimpl.LockOptions{Lease: -time.Second})
		b.must(err)
		same(b.t, "time to live", b.m.TTL("a{b"), 30*time.Second)
	})
}
