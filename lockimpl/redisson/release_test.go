package redisson

import (
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

// The rows of the specification's tables for these releases.
func TestTableOfReleases(t *testing.T) {
	type row struct {
		version, acquire, unlock, renew, fairAcquire string
		watchdog                                     Watchdog
		resend                                       []ScriptKind
		attempts                                     int
		scriptCache, falseOnTimeout                  bool
		fairWait                                     time.Duration
	}
	var got []row
	for _, r := range Releases {
		got = append(got, row{r.Version, r.Acquire.Name, r.Unlock.Name, r.Renew.Name, r.FairAcquire.Name,
			r.Watchdog, r.Resend, r.RetryAttempts, r.ScriptCache, r.FalseOnTimeout, r.FairWait})
	}
	same(t, "releases", got, []row{
		{"3.43.0", "acquire_merged", "unlock_latch", "renew_owner", "fair_acquire_lock_ttl", // G11, W8, F7
			WatchdogEntryQueue, []ScriptKind{KindRenew, KindForceUnlock}, 3, false, false, 300 * time.Second},
		{"4.7.0", "acquire_merged", "unlock_latch", "renew_batch", "fair_acquire_scored_last", // G14, W9, F9
			WatchdogTask, []ScriptKind{KindRenew, KindForceUnlock, KindLeave}, 4, true, true, 300 * time.Second},
	})
}

// 1.3: 13.5 s with a constant delay; (3000 + 1000 to 2000) × 4 with a drawn
// one; and never 0, which Redis refuses after the lock is gone (issue 5392).
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

// prefixName: the hash tag is the whole name, unless the name has a brace.
func TestNamesOfKeysAndChannels(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ChannelName("x"), "redisson_lock__channel:{x}"},
		{ChannelName("a{b}"), "redisson_lock__channel:a{b}"},
		{ChannelName("a}b"), "redisson_lock__channel:{a}b}"},
		{WaiterChannel("x", "c1:7"), "redisson_lock__channel:{x}:c1:7"},
		{QueueName("x"), "redisson_lock_queue:{x}"},
		{QueueName("{a}b"), "redisson_lock_queue:{a}b"},
		{DeadlinesName("x"), "redisson_lock_timeout:{x}"},
		{latchName("x", "1"), "redisson_unlock_latch:{x}:1"},
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
