package subject_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/linearizability/judges"
	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// This file is a whole example of a user's own lock, from its code to its verdict. It has
// the three parts that CONTRIBUTING.md lists. Many code bases have this lock: SET NX PX
// with a random value, a goroutine that renews the key, and a script that compares and
// deletes.

const (
	ownUnlock = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	ownRenew  = `if redis.call('GET', KEYS[1]) == ARGV[2] then return redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return 0`
)

// ownClient and ownLock implement the lock. They do not know that they are simulated. The
// random part of a value comes from lockimpl.Environment.
type ownClient struct {
	rdb     *redis.Client
	id      string
	timeout time.Duration // of a hold without a lease, until the next renewal
	env     lockimpl.Environment
	closed  context.Context
	close   context.CancelFunc
}

func (c *ownClient) GetLock(name string) (lockimpl.Lock, error) {
	if err := lockimpl.CheckName(name); err != nil {
		return nil, err
	}
	return &ownLock{ownClient: c, name: name, holds: map[lockimpl.Owner]ownHold{}}, nil
}

func (c *ownClient) Close() error {
	c.close()
	return nil
}

type ownLock struct {
	*ownClient
	name  string
	mu    sync.Mutex // never held over a call to Redis
	holds map[lockimpl.Owner]ownHold
}

type ownHold struct {
	value string
	stop  context.CancelFunc
}

func (l *ownLock) Name() string { return l.name }

func (l *ownLock) attempt(ctx context.Context, o lockimpl.Owner, lease time.Duration) (bool, error) {
	if l.closed.Err() != nil {
		return false, lockimpl.ErrClosed
	}
	// The value ends with the owner, so that the world can read the server's state.
	value := fmt.Sprintf("%s:%s:%d", l.env.NewID(o), l.id, o)
	px := lease
	if lease == 0 {
		px = l.timeout
	}
	err := l.rdb.Do(ctx, "SET", l.name, value, "NX", "PX", px.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %q: %w: %w", l.name, lockimpl.ErrUnknownOutcome, err)
	}
	renewing, stop := context.WithCancel(l.closed)
	if lease == 0 {
		go l.renew(renewing, value)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[o] = ownHold{value, stop}
	return true, nil
}

func (l *ownLock) renew(ctx context.Context, value string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.timeout / 3):
		}
		kept, err := l.rdb.Eval(ctx, ownRenew, []string{l.name}, l.timeout.Milliseconds(), value).Int()
		if err == nil && kept == 0 {
			return
		}
	}
}

func (l *ownLock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	for end := time.Now().Add(opt.Wait); ; {
		got, err := l.attempt(ctx, o, opt.Lease)
		left := time.Until(end)
		if got || err != nil || left <= 0 {
			return got, err
		}
		select {
		case <-time.After(min(left, 100*time.Millisecond)):
		case <-ctx.Done():
			return false, ctx.Err()
		case <-l.closed.Done():
			return false, lockimpl.ErrClosed
		}
	}
}

func (l *ownLock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	_, err := l.TryLockTimed(ctx, o, lockimpl.TryOptions{Wait: 24 * 365 * time.Hour, Lease: opt.Lease})
	return err
}

func (l *ownLock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return l.attempt(ctx, o, 0)
}

func (l *ownLock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	l.mu.Lock()
	hold, ok := l.holds[o]
	delete(l.holds, o)
	l.mu.Unlock()
	if !ok {
		return 0, lockimpl.ErrNotHeld
	}
	hold.stop()
	freed, err := l.rdb.Eval(ctx, ownUnlock, []string{l.name}, hold.value).Int()
	switch {
	case err != nil:
		return 0, fmt.Errorf("unlock %q: %w: %w", l.name, lockimpl.ErrUnknownOutcome, err)
	case freed == 0:
		return 0, lockimpl.ErrNotHeld
	}
	return lockimpl.Released, nil
}

func (l *ownLock) ForceUnlock(ctx context.Context) (bool, error) {
	n, err := l.rdb.Del(ctx, l.name).Result()
	return n > 0, err
}

func (l *ownLock) IsLocked(ctx context.Context) (bool, error) {
	n, err := l.rdb.Exists(ctx, l.name).Result()
	return n > 0, err
}

func (l *ownLock) HoldCount(ctx context.Context, o lockimpl.Owner) (int, error) {
	value, err := l.rdb.Get(ctx, l.name).Result()
	if errors.Is(err, redis.Nil) || err == nil && !strings.HasSuffix(value, fmt.Sprintf(":%s:%d", l.id, o)) {
		return 0, nil
	}
	return 1, err
}

func (l *ownLock) IsHeldBy(ctx context.Context, o lockimpl.Owner) (bool, error) {
	n, err := l.HoldCount(ctx, o)
	return n > 0, err
}

func (l *ownLock) RemainTimeToLive(ctx context.Context) (time.Duration, error) {
	return l.rdb.PTTL(ctx, l.name).Result()
}

// own returns the subject of the lock. The lock is kept in one string, so the subject needs
// only its name, its client and its scripts.
func own() *subject.Subject {
	return &subject.Subject{
		Name: "own", About: "SET NX PX with a random value, renewed",
		Traits: model.Traits{Uncounted: true},
		Times: func(watchdog time.Duration) model.Timing {
			return model.Timing{Watchdog: watchdog, RenewalPeriod: watchdog / 3}
		},
		Open: func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			ro := onredis.Options(p, o)
			onredis.Retries(ro, o)
			rdb := goredis.NewClient(p, ro)
			c := &ownClient{rdb: rdb, id: p.Name(), timeout: o.Watchdog, env: subject.Environment(p)}
			c.closed, c.close = context.WithCancel(context.Background())
			p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
			return c, nil
		},
		Servers:       onredis.OneString(map[string]model.Role{ownUnlock: model.RoleUnlock, ownRenew: model.RoleRenew}),
		Keys:          onredis.OneKey,
		Interruptible: true,
	}
}

func TestALockOfOnesOwn(t *testing.T) {
	h, lock := sim.NewHost(t), own()
	for _, c := range []struct{ scenario, breaks string }{
		{"misdelete", ""},
		{"crashed-holder", ""},
		{"one-at-a-time", ""},
		{"a-lease-ends", ""},
		{"one-failed-renewal-ends-it", ""},
		{"failed-unlock-renewed-forever", ""},
		{"unlock-of-a-free-lock", ""},
		{"reentrant", ""},                      // n/a: the lock has no re-entry
		{"available", "mutual-exclusion"},      // a failover loses a lock that waits for no replica
		{"acquire-reply-lost", "linearizable"}, // after a lost grant, unlock says not_held of a held lock
	} {
		t.Run(c.scenario, func(t *testing.T) {
			sc, err := scenarios.Find(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			v := play.RunTwice(h, sc, lock, 1)
			if got := broken(v); got != c.breaks || v.Word == play.VerdictNondeterministic || (v.Word == play.VerdictNotApplicable) != (c.scenario == "reentrant") {
				t.Errorf("broken: %q (%s %s); want %q", got, v.Word, v.Why, c.breaks)
			}
		})
	}
}

// broken returns the judges that a run broke, in the order of its findings.
func broken(v play.Verdict) string {
	var names []string
	for _, f := range v.Findings {
		if f.Verdict == judges.Broken {
			names = append(names, f.Judge)
		}
	}
	return strings.Join(slices.Compact(names), " ")
}
