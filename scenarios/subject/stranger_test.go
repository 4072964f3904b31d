package subject_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/linearizability/judges"
	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// The scripts of a fair and fenced lock that no table names. The hold is a hash. Waiters ask every
// 50 ms and stand in a list until they hold the lock.
const (
	ticketAcquire = `
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then return redis.call('HGET', KEYS[1], 'token') end
if not redis.call('LPOS', KEYS[2], ARGV[1]) then redis.call('RPUSH', KEYS[2], ARGV[1]) end
if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('LINDEX', KEYS[2], NEXT) ~= ARGV[1] then return false end
redis.call('LREM', KEYS[2], 0, ARGV[1])
local token = TOKEN
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', token)
redis.call('PEXPIRE', KEYS[1], 30000)
return tostring(token)`
	ticketUnlock = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`
)

// ticket returns such a lock. next is the place in the queue that is served. token is the
// Lua expression of a hold's token.
func ticket(next, token string) *subject.Subject {
	acquire := strings.NewReplacer("NEXT", next, "TOKEN", token).Replace(ticketAcquire)
	queue := func(lock string) string { return lock + ":queue" }
	count := func(lock string) string { return lock + ":count" }
	return &subject.Subject{
		Name: "ticket", About: "a lock that no table knows",
		Traits: model.Traits{Fair: true, Fenced: true, Uncounted: true, NoWatchdog: true},
		Times: func(time.Duration) model.Timing {
			return model.Timing{Watchdog: 30 * time.Second, FairWait: time.Minute}
		},
		Open: func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			rdb := goredis.NewClient(p, onredis.Options(p, o))
			p.OnClose(func() { _ = rdb.Close() })
			return ticketClient{rdb: rdb, id: p.Name(), acquire: acquire}, nil
		},
		Servers: &onredis.Protocol{
			Scripts: map[string]model.Role{acquire: model.RoleAcquire, ticketUnlock: model.RoleUnlock},
			Parties: func(_ model.Role, keys, argv, _ []string) (of, owners []string) {
				return keys[:1], onredis.Owners(argv[:1])
			},
			State: func(keys simredis.Keyspace, lock string) *model.LockState {
				s := &model.LockState{Queue: onredis.Owners(keys.List(queue(lock)))}
				if hash := keys.Hash(lock); len(hash) > 0 {
					s.Owner, s.Count, s.ExpiresMs = onredis.Owner(hash["owner"]), 1, keys.ExpiresMs(lock)
					s.Token, _ = strconv.ParseInt(hash["token"], 10, 64)
				}
				return s
			},
		},
		Keys: func(lock string) []string { return []string{lock, queue(lock), count(lock)} },
		Kept: func(lock string) []string { return []string{queue(lock), count(lock)} },
	}
}

type ticketClient struct {
	rdb         *redis.Client
	id, acquire string
}

func (c ticketClient) GetLock(name string) (lockimpl.Lock, error) {
	return ticketLock{ticketClient: c, name: name}, nil
}

func (c ticketClient) Close() error { return nil }

// rest has the methods that the test does not call.
type rest struct{ lockimpl.Lock }

// A ticketLock has the methods that the scenario of this test calls.
type ticketLock struct {
	rest
	ticketClient
	name string
}

func (l ticketLock) owner(o lockimpl.Owner) string { return fmt.Sprintf("%s:%d", l.id, o) }

func (l ticketLock) Lock(ctx context.Context, o lockimpl.Owner, _ lockimpl.LockOptions) error {
	for {
		_, err := l.rdb.Eval(ctx, l.acquire, []string{l.name, l.name + ":queue", l.name + ":count"}, l.owner(o)).Text()
		switch {
		case err == nil:
			return nil
		case err != redis.Nil:
			return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l ticketLock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	freed, err := l.rdb.Eval(ctx, ticketUnlock, []string{l.name}, l.owner(o)).Int()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
	case freed == 0:
		return 0, lockimpl.ErrNotHeld
	}
	return lockimpl.Released, nil
}

// Traits determine how a lock is judged. Its name and its origin do not.
func TestAStrangersLockIsJudgedForOrderAndTokens(t *testing.T) {
	const text = `lockstep: 1
name: three
locks: [ticket]
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [lock: x, sleep: 2s, unlock: x]
  b/1: [at: 500ms, lock: x, sleep: 1s, unlock: x]
  c/1: [at: 1s, lock: x, sleep: 1s, unlock: x]
`
	sc, err := scenarios.Parse("three.yaml", []byte(text), scenarios.AnyLock)
	if err != nil {
		t.Fatal(err)
	}
	h := sim.NewHost(t)
	for _, c := range []struct{ rule, next, token, breaks string }{
		{"the first in the queue is served, with a token of its own", "0", "redis.call('INCR', KEYS[3])", ""},
		{"the last is served", "-1", "redis.call('INCR', KEYS[3])", "fifo"},
		{"each has the same token", "0", "7", "fencing"},
		{"both", "-1", "7", "fifo fencing"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			v := play.RunTwice(h, sc, ticket(c.next, c.token), 1)
			if got := broken(v); got != c.breaks || v.Word == play.VerdictNondeterministic {
				t.Errorf("broken: %q (%s %s); want %q", got, v.Word, v.Why, c.breaks)
			}
			for _, f := range v.Findings {
				if f.Class != judges.ClassBug {
					t.Errorf("%s is a %s", f.Judge, f.Class)
				}
			}
		})
	}
}
