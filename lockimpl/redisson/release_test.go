package redisson

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

func TestFind(t *testing.T) {
	for _, r := range Releases {
		if got, err := Find(r.Version); err != nil || got != r {
			t.Errorf("Find(%q) gave %v, %v", r.Version, got, err)
		}
	}
	if got, err := Find(""); err != nil || got.Version != "4.7.0" {
		t.Errorf("Find of nothing gave %v, %v; want the newest", got, err)
	}
	if NewClient(nil, Config{}).rel.Version != "4.7.0" {
		t.Error("a client that names no release is not of the newest")
	}
	for _, unknown := range []string{"4.7", "v4.7.0", "newest"} {
		_, err := Find(unknown)
		if err == nil || !strings.Contains(err.Error(), "3.43.0, 4.7.0") {
			t.Errorf("Find(%q) gave the error %v; want one that lists the known releases", unknown, err)
		}
	}
}

// The rows of the table for the releases that are ported.
func TestTableOfReleases(t *testing.T) {
	scripts := func(r *Release) (names []string) {
		for _, s := range r.Scripts() {
			names = append(names, string(s.Kind)+": "+variant(s))
		}
		return names
	}
	type row struct {
		version                                    string
		scripts                                    []string
		fairWait                                   time.Duration
		fairOwnWait                                bool
		watchdog                                   Watchdog
		leaseField                                 LeaseField
		onlyMinusOne                               bool
		stopsRenewal                               []UnlockAnswer
		patientReply, returnsInterrupted           bool
		falseOnTimeout                             bool
		resend                                     []ScriptKind
		resendDelay                                Delay
		attempts                                   int
		retryDelay                                 Delay
		refusals                                   []string
		refusalDelay                               Delay
		loadingForever                             bool
		scriptCache                                bool
		sync                                       Sync
		requestKept, sharded, fenced, nonReentrant bool
	}
	constant := Delay{Fixed: 1500 * time.Millisecond}
	drawn := Delay{Min: time.Second, Max: 2 * time.Second}
	aSecond := Delay{Fixed: time.Second}
	first := []string{"ASK", "LOADING", "MOVED", "TRYAGAIN"}
	more := []string{"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MOVED", "TRYAGAIN"}
	most := []string{"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MOVED", "READONLY", "TRYAGAIN"}
	all := []ScriptKind{KindAcquire, KindForceUnlock, KindLeave, kindRead, KindRenew, KindUnlock}
	released, held, notHeld, failed := AnswerReleased, AnswerStillHeld, AnswerNotHeld, AnswerError
	var told []string
	for _, want := range []row{
		{
			version: "3.4.2",
			scripts: []string{ // G4 and F2
				"acquire: acquire_hset + reenter", "unlock: unlock_lenient", "force_unlock: force_unlock", "renew: renew_owner",
				"acquire: fair_acquire_first + purge_strict + take + reenter", "acquire: fair_try_acquire + purge_strict + take + reenter",
				"leave: fair_leave", "unlock: fair_unlock + purge_strict", "force_unlock: fair_force_unlock + purge_strict",
			},
			fairWait: 5 * time.Second, watchdog: WatchdogTimer, leaseField: FieldOfAttempt, onlyMinusOne: true,
			stopsRenewal: []UnlockAnswer{released}, patientReply: true, returnsInterrupted: true,
			attempts: 3, retryDelay: constant, refusals: first, refusalDelay: aSecond, loadingForever: true, sync: SyncNone,
		},
		{
			version: "3.11.0",
			scripts: []string{ // G5 and F3
				"acquire: acquire_hset + reenter", "unlock: unlock_owner", "force_unlock: force_unlock", "renew: renew_owner",
				"acquire: fair_acquire_first + purge_strict + take + reenter", "acquire: fair_try_acquire + purge_strict + take + reenter",
				"leave: fair_leave_head", "unlock: fair_unlock + purge_strict", "force_unlock: fair_force_unlock + purge_strict",
			},
			fairWait: 5 * time.Second, watchdog: WatchdogEntry, leaseField: FieldOfAttempt, onlyMinusOne: true,
			stopsRenewal: []UnlockAnswer{released, held, failed},
			resend:       all, attempts: 3, retryDelay: constant, refusals: first, refusalDelay: aSecond, sync: SyncNone,
		},
		{
			version: "3.12.4",
			scripts: []string{ // G6 and F4
				"acquire: acquire_hincrby + reenter", "unlock: unlock_owner", "force_unlock: force_unlock", "renew: renew_owner",
				"acquire: fair_acquire_deadline + purge_strict + take_chained + reenter", "acquire: fair_try_acquire_wait + purge_strict + take_chained + reenter",
				"leave: fair_leave_behind", "unlock: fair_unlock + purge_strict", "force_unlock: fair_force_unlock + purge_strict",
			},
			fairWait: 5 * time.Second, watchdog: WatchdogEntry, leaseField: FieldOfAttempt, onlyMinusOne: true,
			stopsRenewal: []UnlockAnswer{released, held, notHeld, failed},
			resend:       all, attempts: 3, retryDelay: constant, refusals: first, refusalDelay: aSecond, sync: SyncNone,
		},
		{
			version: "3.21.3",
			scripts: []string{ // G8 and F5
				"acquire: acquire_merged", "unlock: unlock_owner", "force_unlock: force_unlock", "renew: renew_owner",
				"acquire: fair_acquire_deadline + purge_strict + take_chained + reenter", "acquire: fair_try_acquire_wait + purge_strict + take_chained + reenter",
				"leave: fair_leave_behind", "unlock: fair_unlock + purge_strict", "force_unlock: fair_force_unlock + purge_strict",
				"acquire: acquire_fenced", "acquire: acquire_token",
			},
			fairWait: 300 * time.Second, fairOwnWait: true, watchdog: WatchdogEntryDropped, leaseField: FieldUntilUnlock,
			stopsRenewal: []UnlockAnswer{released, held, notHeld, failed},
			resend:       all, resendDelay: constant, attempts: 3, retryDelay: constant,
			refusals: more, refusalDelay: constant, sync: SyncAsked, fenced: true,
		},
		{
			version: "3.43.0",
			scripts: []string{ // G11 and F7
				"acquire: acquire_merged", "unlock: unlock_latch", "force_unlock: force_unlock_command", "renew: renew_owner",
				"acquire: fair_acquire_lock_ttl + purge_tolerant + take_chained + reenter", "acquire: fair_try_acquire_wait + purge_tolerant + take_chained + reenter",
				"leave: fair_leave_behind", "unlock: fair_unlock_latch + purge_tolerant", "force_unlock: fair_force_unlock_command + purge_tolerant",
				"acquire: acquire_fenced", "acquire: acquire_token",
			},
			fairWait: 300 * time.Second, fairOwnWait: true, watchdog: WatchdogEntryQueue, leaseField: FieldUntilRelease,
			stopsRenewal: []UnlockAnswer{released, held, notHeld, failed},
			resend:       []ScriptKind{KindForceUnlock, kindRead, KindRenew}, resendDelay: constant,
			attempts: 3, retryDelay: constant, refusals: most, refusalDelay: constant, sync: SyncThrown, sharded: true, fenced: true,
		},
		{
			version: "4.7.0",
			scripts: []string{ // G14 and F9
				"acquire: acquire_merged", "unlock: unlock_latch", "force_unlock: force_unlock_command", "renew: renew_batch",
				"acquire: fair_acquire_scored_last + purge_tolerant + take_chained + reenter", "acquire: fair_try_acquire_wait + purge_tolerant + take_chained + reenter",
				"leave: fair_leave_behind", "unlock: fair_unlock_latch + purge_tolerant", "force_unlock: fair_force_unlock_command + purge_tolerant",
				"acquire: acquire_fenced", "acquire: acquire_token",
				"acquire: acquire_hincrby + refuse_reentry",
				"acquire: fair_acquire_scored_last + purge_tolerant + take_chained + refuse_reentry",
				"acquire: fair_try_acquire_wait + purge_tolerant + take_chained + refuse_reentry",
			},
			fairWait: 300 * time.Second, fairOwnWait: true, watchdog: WatchdogTask, leaseField: FieldUntilRelease,
			stopsRenewal:   []UnlockAnswer{released, held, notHeld, failed},
			falseOnTimeout: true,
			resend:         []ScriptKind{KindForceUnlock, KindLeave, kindRead, KindRenew}, resendDelay: drawn,
			attempts: 4, retryDelay: drawn, refusals: most, refusalDelay: drawn, scriptCache: true,
			sync: SyncCached, requestKept: true, sharded: true, fenced: true, nonReentrant: true,
		},
	} {
		told = append(told, want.version)
		r, err := Find(want.version)
		if err != nil {
			t.Error(err)
			continue
		}
		sorted := slices.Sorted(slices.Values(r.Resend))
		refusals := slices.Sorted(slices.Values(r.Refusals))
		same(t, want.version, row{
			r.Version, scripts(r), r.FairWait, r.FairOwnWait, r.Watchdog, r.LeaseField, r.OnlyMinusOne, r.StopsRenewal,
			r.PatientReply, r.LockReturnsInterrupted, r.FalseOnTimeout, sorted, r.ResendDelay, r.RetryAttempts, r.RetryDelay,
			refusals, r.RefusalDelay, r.LoadingForever,
			r.ScriptCache, r.Sync, r.RequestKept, r.Sharded(), r.Fenced != nil, r.NonReentrant != nil,
		}, want)
	}
	var versions []string
	for _, r := range Releases {
		versions = append(versions, r.Version)
	}
	same(t, "releases of the table, and those that the tests have rows and lists for (byRelease, isOneOf)", versions, told)
	same(t, "all releases, where a test lists them", strings.Fields(allReleases), told)
}

// The latch lives for 13.5 s with a constant delay, and for (3000 + 1000 to 2000) × 4 ms with a
// drawn one. It is never 0, which Redis refuses after the lock is gone (issue 5392).
func TestLifeOfTheUnlockLatch(t *testing.T) {
	for _, c := range []struct {
		version  string
		attempts int
		share    float64 // of the jitter
		want     time.Duration
	}{
		{"3.43.0", 0, 0, 13500 * time.Millisecond},
		{"3.43.0", 0, 1, 13500 * time.Millisecond},
		{"3.43.0", -1, 0, 4500 * time.Millisecond},
		{"4.7.0", 0, 0, 16 * time.Second},
		{"4.7.0", 0, 1, 20 * time.Second},
		{"4.7.0", -1, 0, 4 * time.Second},
	} {
		rel, err := Find(c.version)
		if err != nil {
			t.Fatal(err)
		}
		client := NewClient(nil, Config{Release: rel, RetryAttempts: c.attempts, Environment: lockimpl.Environment{
			Jitter: func(_ lockimpl.Owner, max time.Duration) time.Duration { return time.Duration(c.share * float64(max)) },
		}})
		same(t, c.version+" life of the latch", client.latchLife(1), c.want)
	}
}

func TestOptions(t *testing.T) {
	got := Options(&redis.Options{})
	same(t, "resends of go-redis", got.MaxRetries, -1)
	same(t, "read timeout", got.ReadTimeout, 3*time.Second)
	same(t, "pool", got.PoolSize, 64)
	got = Options(&redis.Options{MaxRetries: 5, ReadTimeout: time.Second, PoolSize: 2})
	same(t, "resends of go-redis", got.MaxRetries, -1)
	same(t, "read timeout", got.ReadTimeout, time.Second)
	same(t, "pool", got.PoolSize, 2)
}

// The hash tag that prefixName makes is the whole name, unless the name has a brace.
func TestNamesOfKeysAndChannels(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ChannelName("x"), "redisson_lock__channel:{x}"},
		{ChannelName("a{b}"), "redisson_lock__channel:a{b}"},
		{ChannelName("a}b"), "redisson_lock__channel:{a}b}"},
		{WaiterChannel("x", "c1:7"), "redisson_lock__channel:{x}:c1:7"},
		{QueueName("x"), "redisson_lock_queue:{x}"},
		{QueueName("{a}b"), "redisson_lock_queue:{a}b"},
		{DeadlinesName("x"), "redisson_lock_timeout:{x}"},
		{LatchName("x", "1"), "redisson_unlock_latch:{x}:1"},
		{TokenName("x"), "redisson_lock_token:{x}"},
	} {
		if c.got != c.want {
			t.Errorf("name %q; want %q", c.got, c.want)
		}
	}
}

// A client's id is 32 hexadecimal digits of its own unless it was named.
func TestIDOfAClient(t *testing.T) {
	a, b := NewClient(nil, Config{}), NewClient(nil, Config{})
	if len(a.ID()) != 32 || strings.Trim(a.ID(), "0123456789abcdef") != "" || a.ID() == b.ID() {
		t.Errorf("ids %q and %q; want two of 32 hexadecimal digits", a.ID(), b.ID())
	}
	same(t, "named id", NewClient(nil, Config{ID: "c1"}).ID(), "c1")
	same(t, "owner", NewClient(nil, Config{ID: "c1"}).owner(-7), "c1:-7")
}
