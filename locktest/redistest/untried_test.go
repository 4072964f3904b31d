package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// misspelt is an endless lock with a command that no server knows.
type misspelt struct {
	endless
	lock, unlock bool // which calls send it
}

func (l *misspelt) Lock(ctx context.Context) error {
	if l.lock {
		return l.rdb.Do(ctx, "STE", l.name, "1", "NX").Err()
	}
	return l.endless.Lock(ctx)
}

func (l *misspelt) TryLock(ctx context.Context) (bool, error) {
	if l.lock {
		return false, l.Lock(ctx)
	}
	return l.endless.TryLock(ctx)
}

func (l *misspelt) Unlock(ctx context.Context) error {
	if l.unlock {
		return l.rdb.Do(ctx, "DLE", l.name).Err()
	}
	return l.endless.Unlock(ctx)
}

// wrapping is a setnx whose Unlock never returns nil.
type wrapping struct{ setnx }

func (l *wrapping) Unlock(ctx context.Context) error {
	return fmt.Errorf("unlock: %w", l.setnx.Unlock(ctx))
}

// once is a setnx whose Lock does not wait.
type once struct{ setnx }

func (l *once) Lock(ctx context.Context) error {
	ok, err := l.TryLock(ctx)
	if err == nil && !ok {
		err = errors.New("failed to acquire the lock")
	}
	return err
}

// kept is an endless lock whose holder can ask for another lease.
type kept struct {
	endless
	script string
}

func (l *kept) Extend(ctx context.Context) error {
	n, err := l.rdb.Eval(ctx, l.script, []string{l.name}, l.value, 0).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

const compareOnly = `if redis.call("get", KEYS[1]) == ARGV[1] then return 1 end return 0`

func init() {
	add := func(name string, lock func(endless) locktest.Lock) {
		s := endlessSubject(name, false)
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
				return lock(endless{setnx: setnx{rdb: rdb, name: name}})
			}}, nil
		}
		wrong[name] = s
	}
	wrong["never says that it freed"] = unrenewed("never says that it freed", each(func(l setnx) locktest.Lock { return &wrapping{l} }))
	wrong["tries once"] = unrenewed("tries once", each(func(l setnx) locktest.Lock { return &once{l} }))
	again := unrenewed("cannot be taken again", each(func(l setnx) locktest.Lock { return &once{l} }))
	again.Reentrant = true
	wrong["cannot be taken again"] = again
	slow := unrenewed("connects when it likes", each(func(l setnx) locktest.Lock { return &l }))
	slow.Reconnect = time.Hour
	wrong["connects when it likes"] = slow
	sleeps := unrenewed("sleeps for a lease", each(func(l setnx) locktest.Lock { return &l }))
	sleeps.Waits = lease
	wrong["sleeps for a lease"] = sleeps
	add("asks in vain", func(l endless) locktest.Lock { return &misspelt{l, true, false} })
	add("frees nothing", func(l endless) locktest.Lock { return &misspelt{l, false, true} })
	add("grants and frees", func(l endless) locktest.Lock { return &misspelt{l, false, false} })
	add("expires at once when it is extended", func(l endless) locktest.Lock { return &kept{l, compareAndExpire} })
	add("stays when it is extended", func(l endless) locktest.Lock { return &kept{l, compareOnly} })
}

// A test that has shown nothing fails, with the first error of each kind of call. What a lock breaks is told
// first.
func TestATestThatShowsNothingFails(t *testing.T) {
	for name, want := range map[string][]string{
		"asks in vain": {
			"asks in vain cannot be judged: in the story one-after-the-other, in which nothing fails, no call was granted the lock; the first error is \"outcome unknown: ERR unknown command 'STE'",
			"Mend the lock, its adapter, or the options of its client",
		},
		"frees nothing": {
			"frees nothing cannot be judged: in the story one-after-the-other, in which nothing fails, no unlock ever worked: none of 1 that ended before a fault did",
			"; the first error is \"outcome unknown: ERR unknown command 'DLE'",
		},
		"cannot be taken again": {"cannot be taken again cannot be judged: no second lock of a holder ever worked: none of ", "; the first error is \"outcome unknown: failed to acquire the lock\""},
		"keeps every hold":      {"keeps every hold breaks ", "keeps every hold cannot be judged: nobody ever got the lock after the hold of another was over: none of "},
		"grants and frees":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=10")
			if passed != (want == nil) {
				t.Errorf("it passed: %v:\n%s", passed, text)
			}
			mustContain(t, text, want...)
			if strings.Contains(text, " is undecided") || want == nil && strings.Contains(text, "cannot be judged") {
				t.Errorf("it says more:\n%s", text)
			}
			if bug := strings.Index(text, name+" breaks "); bug > strings.Index(text, " cannot be judged") {
				t.Errorf("what the lock breaks comes last:\n%s", text)
			}
		})
	}
}

// A test that passes says what it did not try, without -v.
func TestAPassSaysWhatItDidNotTry(t *testing.T) {
	for name, want := range map[string][]string{
		"grants and frees": {
			"not tried: several threads in one process: drawn schedules had one thread per process, as the profile simple has; Options.Profile orderly and full draw more\n",
			"not tried: faults of the class watchdog: the lock renews nothing\n",
			"not tried: these faults of servers, which the servers of the lock do not have: isolation\n",
			"extended-hold, late-extension, extension-by-less-than-a-majority, late-answer-to-an-extension, unlock-after-an-extension-without-an-answer, other-holder-before-request-1-of-an-extension, ", "other-holder-before-request-3-of-an-extension: the lock has no Extend\n",
		},
		"says why it has no State": {"not tried: what the servers hold: there is no State (nobody can read the server), so these judges were not asked: misdelete, ", "mutual-exclusion\n"},
		"never says that it freed": {"not tried: what the calls of unlock say: ", " worked, and none returned nil; the first error is \"outcome unknown: unlock: %!w(<nil>)\", after which no judge asks what the call did\n"},
		"tries once":               {"not tried: waiters: of ", " that found the lock held, ", " returned without it before the hold was over (the first: \"outcome unknown: failed to acquire the lock\"); Lock must wait until its context ends\n"},
		"connects when it likes":   {"not tried: a call that asks no more when it has lost its connection: its client may take 1h0m0s to connect again (Reconnect), and a run ends when nothing has happened for "},
		"sleeps for a lease":       {"not tried: a waiter that nobody wakes: it may wait for a free lock for 5s by design (Waits), which is no less than the Lease of 5s\n"},
		"is not asked for traffic": {"not tried: traffic: Subject.Promises switches the judge off (it asks often)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=5", "-test.v=false")
			if !passed || !strings.HasSuffix(text, "PASS\n") {
				t.Errorf("it failed:\n%s", text)
			}
			mustContain(t, text, want...)
			for line := range strings.Lines(text) {
				if line != "PASS\n" && !strings.HasPrefix(line, "locktest: "+name+": not tried: ") {
					t.Errorf("another line: %q", line)
				}
			}
		})
	}
	text, _ := outcome(t, t.TempDir(), "grants and frees", nil, "-lockstep.runs=5", "-lockstep.profile=orderly", "-lockstep.faults=pause", "-test.v=false")
	mustContain(t, text, "not tried: faults of the classes network, crash, partition, clock, server, operator, watchdog, interrupt in drawn schedules: Options.Faults leaves them out\n")
	if strings.Contains(text, "several threads") || strings.Contains(text, "Reconnect") || strings.Contains(text, "nobody wakes") {
		t.Errorf("the profile orderly has several threads, and the client connects at once:\n%s", text)
	}
}

// A lock without a lease may have an Extend, which must not end the hold.
func TestAnExtensionWithoutALease(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "expires at once when it is extended", nil, "-lockstep.runs=1")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, "breaks mutual-exclusion: b/1 was granted orders at ", "renew of a/1 had ended it at ", "the story extended-hold: ")
	for _, profile := range []string{"simple", "full"} {
		locktest.Run(t, wrong["stays when it is extended"], locktest.Options{Runs: longtest.Size(t, 20, 300), Profile: profile})
	}
}
