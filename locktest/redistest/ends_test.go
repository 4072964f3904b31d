package redistest_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// written is a lock that keeps the end of its hold in a field of a hash, which Redis does not end.
type written struct {
	rdb         *redis.Client
	name, owner string
}

const (
	nowMs     = `local t = redis.call("time"); local now = t[1] * 1000 + math.floor(t[2] / 1000) `
	takeField = nowMs + `local ends = redis.call("hget", KEYS[1], "ends")
if ends and tonumber(ends) > now then return 0 end
return redis.call("hset", KEYS[1], "owner", ARGV[1], "ends", string.format("%.0f", now + ARGV[2])) >= 0 and 1`
	freeField = nowMs + `if redis.call("hget", KEYS[1], "owner") ~= ARGV[1] or tonumber(redis.call("hget", KEYS[1], "ends")) <= now then return 0 end
return redis.call("del", KEYS[1])`
)

func (l *written) TryLock(ctx context.Context) (bool, error) {
	owner := rand.Text()
	n, err := l.rdb.Eval(ctx, takeField, []string{l.name}, owner, lease.Milliseconds()).Int()
	if n == 1 {
		l.owner = owner
	}
	return n == 1, err
}

func (l *written) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *written) Unlock(ctx context.Context) error {
	n, err := l.rdb.Eval(ctx, freeField, []string{l.name}, l.owner).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// A hold whose end is only written in a value ends at that instant. Without that the next holder would
// seem to end it.
func TestAHoldWhoseEndIsInAValue(t *testing.T) {
	s := subjectOf("an end in a value", false)
	s.State = func(s locktest.Snapshot, lock string) *locktest.State {
		keys := redistest.Keys(s, 0)
		fields := keys.Hash(lock)
		ms, _ := strconv.ParseInt(fields["ends"], 10, 64)
		ends := time.Duration(ms-keys.StartMs()) * time.Millisecond
		if len(fields) == 0 || ends <= s.Now() {
			return nil
		}
		return &locktest.State{Owner: fields["owner"], Expires: ends}
	}
	s.Kept = func(lock string) []string { return []string{lock} } // nobody deletes the hash of a hold that has ended
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &written{rdb: rdb, name: name}
		}}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 100, Faults: "network,crash,pause"})
}
