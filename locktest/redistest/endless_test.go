package redistest_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// endless is a setnx without a lease.
type endless struct {
	setnx
	keeps bool // Unlock does nothing: a bug
}

func (l *endless) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	ok, err := l.rdb.SetNX(ctx, l.name, value, 0).Result()
	if ok {
		l.value = value
	}
	return ok, err
}

func (l *endless) Lock(ctx context.Context) error {
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *endless) Unlock(ctx context.Context) error {
	if l.keeps {
		return nil
	}
	return l.setnx.Unlock(ctx)
}

func endlessSubject(name string, keeps bool) locktest.Subject {
	s := subjectOf(name, false)
	s.Lease = 0
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &endless{setnx: setnx{rdb: rdb, name: name}, keeps: keeps}
		}}, nil
	}
	return s
}

// A lock without a lease is lost with a holder that dies. That is a limit.
func TestALockWithoutALease(t *testing.T) {
	locktest.Run(t, endlessSubject("endless", false), locktest.Options{Runs: longtest.Size(t, 15, 300)})
}

func TestWhatIsSaidOfALockWithoutALease(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "endless", nil, "-lockstep.runs=40", "-lockstep.faults=crash")
	if !passed {
		t.Errorf("it failed:\n%s", text)
	}
	mustContain(t, text, "n/a: the story is about a lease, and the lock has none", "limit, liveness: b/1 waited for orders", "limit, liveness (")
	text, passed = outcome(t, t.TempDir(), "keeps every hold", nil, "-lockstep.runs=1")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, "keeps every hold breaks ", "cause: ", "an unlock of orders by a/1 had returned, and the server still held it for a/1")
	if strings.Contains(text, "cause: server and clients agreed") {
		t.Errorf("a cause names none:\n%s", text)
	}
}
