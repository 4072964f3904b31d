package redistest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// transacted is a lock in a field of a hash, which a transaction takes together with its expiry.
type transacted struct {
	setnx
	pipelined bool // sends no MULTI and EXEC: a bug
	lenient   bool // takes an error of the server for a lock that another holds: a bug
}

func (l *transacted) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	transact := l.rdb.TxPipelined
	if l.pipelined {
		transact = l.rdb.Pipelined
	}
	var taken *redis.BoolCmd
	_, err := transact(ctx, func(p redis.Pipeliner) error {
		taken = p.HSetNX(ctx, l.name, "owner", value)
		p.Do(ctx, "PEXPIRE", l.name, lease.Milliseconds(), "NX")
		return nil
	})
	if refusal := redis.Error(nil); l.lenient && errors.As(err, &refusal) { // an aborted transaction, too
		return false, nil
	}
	if err != nil || !taken.Val() {
		return false, err
	}
	l.value = value
	return true, nil
}

func (l *transacted) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *transacted) Unlock(ctx context.Context) error {
	n, err := l.rdb.Eval(ctx, `if redis.call("hget", KEYS[1], "owner") == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`, []string{l.name}, l.value).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

func transactedSubject(name string, lock transacted) locktest.Subject {
	s := subjectOf(name, false)
	s.State = func(snap locktest.Snapshot, lock string) *locktest.State {
		owner := redistest.Keys(snap, 0).Hash(lock)["owner"]
		if owner == "" {
			return nil
		}
		return &locktest.State{Owner: owner, Expires: time.Duration(redistest.Keys(snap, 0).ExpiresMs(lock)) * time.Millisecond}
	}
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			l := lock
			l.rdb, l.name = rdb, name
			return &l
		}}, nil
	}
	return s
}

func init() {
	for name, lock := range map[string]transacted{
		"takes it in a pipeline":        {pipelined: true},
		"takes an error for a busy one": {lenient: true},
	} {
		wrong[name] = transactedSubject(name, lock)
	}
}

// A refused command of a transaction leaves no part of it, so the lock never stays without an expiry.
func TestALockByATransaction(t *testing.T) {
	t.Parallel()
	locktest.Run(t, transactedSubject("takes it in a transaction", transacted{}), locktest.Options{Runs: longtest.Size(t, 40, 1000), Profile: "orderly", Faults: "network"})
}

func TestWrongLocksByATransaction(t *testing.T) {
	for name, want := range map[string]string{
		"takes it in a pipeline":        " breaks lease: the hold of ",
		"takes an error for a busy one": " answered busy, but the lock was free",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, "-test.run=^TestJudged$/^explore$", "-lockstep.runs=100", "-lockstep.seed=4", "-lockstep.profile=orderly", "-lockstep.faults=network")
			if passed {
				t.Errorf("it passed:\n%s", text)
			}
			mustContain(t, text, want)
		})
	}
}
