package redistest_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// drawing is a setnx whose values come from a source that nobody can seed.
type drawing struct {
	setnx
	p *locktest.Process
}

func (l *drawing) Lock(ctx context.Context) error {
	for {
		l.value = l.p.Value(strconv.FormatUint(rand.Uint64(), 36))
		if ok, err := l.take(ctx, l.value); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			l.value = ""
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// constant marks every hold with the same value, as many locks do.
type constant struct{ setnx }

func (l *constant) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.take(ctx, "1")
	if ok {
		l.value = "1"
	}
	return ok, err
}

func (l *constant) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// Such a value belongs to the thread that took the lock with it last. A failure that rests on it has a hint.
func TestALockWithOneValueForAllHolds(t *testing.T) {
	t.Parallel()
	text, passed := outcome(t, t.TempDir(), "marks every hold with 1", nil, "-lockstep.runs=1")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, "--- PASS: TestJudged/stories/one-after-the-other", "--- PASS: TestJudged/stories/crashed-holder",
		"marks every hold with 1 breaks misdelete: unlock of a/1", "ended the hold of b/1 on orders at",
		"hint: the holds of a/1 and b/1 have the same value on the server, so a request of a/1 cannot tell them apart; each hold needs a value of its own")
	if hints := strings.Count(text, "hint: "); hints < strings.Count(text, "fingerprint: ")-strings.Count(text, "as in the story ") {
		t.Errorf("%d hints:\n%s", hints, text)
	}
}

// Process.Value makes such a lock repeat.
func TestALockWhoseValuesCannotBeSeeded(t *testing.T) {
	s := subjectOf("drawing", false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &drawing{setnx{rdb: rdb, name: name}, p}
		}}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 20, Faults: "none"})
}
