package redistest_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// extended is a setnx whose holder can extend it.
type extended struct {
	setnx
	script string // compareAndExpire, or a wrong one; "" asks nobody
}

const (
	anybodysExpire   = `if redis.call("exists", KEYS[1]) == 1 then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`
	setAgain         = `redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1`
	compareAndExpire = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`
)

func (l *extended) Extend(ctx context.Context) error {
	if l.script == "" {
		return nil
	}
	n, err := l.rdb.Eval(ctx, l.script, []string{l.name}, l.value, lease.Milliseconds()).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

func extendedSubject(name, script string) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &extended{setnx{rdb: rdb, name: name}, script}
		}}, nil
	}
	return s
}

func TestALockThatIsExtended(t *testing.T) {
	locktest.Run(t, extendedSubject("extended", compareAndExpire), locktest.Options{Runs: longtest.Size(t, 20, 300)})
}

func TestWrongExtensions(t *testing.T) {
	for name, want := range map[string][]string{
		"extends nothing":          {"extends nothing breaks mutual-exclusion: ", "the story extended-hold", "lock orders: granted"},
		"extends another's hold":   {"extends another's hold breaks mutual-exclusion: a/1 extended its hold on orders at 6.502s while b/1 believed to hold it", "the story late-extension"},
		"takes it by extending it": {"takes it by extending it breaks ", "fingerprint: story.late-extension.mutual-exclusion"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=1")
			if passed {
				t.Errorf("it passed:\n%s", text)
			}
			mustContain(t, text, want...)
		})
	}
}
