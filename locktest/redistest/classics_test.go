package redistest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// watching is a setnx that watches its key, reads it and deletes it, and has a transaction for that unless
// it is bare.
type watching struct {
	setnx
	bare bool
}

func (l *watching) Unlock(ctx context.Context) error {
	return l.rdb.Watch(ctx, func(tx *redis.Tx) error {
		switch value, err := tx.Get(ctx, l.name).Result(); {
		case err == redis.Nil || err == nil && value != l.value:
			return locktest.ErrNotHeld
		case err != nil:
			return err
		case l.bare:
			return tx.Del(ctx, l.name).Err()
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Del(ctx, l.name).Err() })
		if errors.Is(err, redis.TxFailedErr) {
			return locktest.ErrNotHeld
		}
		return err
	}, l.name)
}

// woken is a setnx whose unlock publishes a message, by which it wakes its waiters. A waiter that is hasty
// asks how long the lease lasts, listens, and does not ask for the lock again before it waits.
type woken struct {
	setnx
	hasty bool
}

const deleteAndPublish = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("publish", ARGV[2], "free")
return redis.call("del", KEYS[1])`

func (l *woken) channel() string { return l.name + ":free" }

func (l *woken) Lock(ctx context.Context) error {
	if ok, err := l.TryLock(ctx); ok || err != nil {
		return err
	}
	left, err := l.rdb.PTTL(ctx, l.name).Result()
	if err != nil {
		return err
	}
	sub := l.rdb.Subscribe(ctx, l.channel())
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	messages := sub.Channel()
	for hasty := l.hasty; ; hasty = false {
		if !hasty {
			if ok, err := l.TryLock(ctx); ok || err != nil {
				return err
			}
			left = 500 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-messages:
		case <-time.After(max(left, time.Millisecond)):
		}
	}
}

func (l *woken) Unlock(ctx context.Context) error {
	n, err := l.rdb.Eval(ctx, deleteAndPublish, []string{l.name}, l.value, l.channel()).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// inTurn is a lock whose calls take turns in their process, or only those that lock.
type inTurn struct {
	*watched
	turn chan struct{}
	all  bool
}

func (l *inTurn) Lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return locktest.ErrBusy
	}
	defer func() { <-l.turn }()
	return l.watched.Lock(ctx)
}

func (l *inTurn) Unlock(ctx context.Context) error {
	if l.all {
		l.turn <- struct{}{}
		defer func() { <-l.turn }()
	}
	return l.watched.Unlock(ctx)
}

// owned is a setnx that grants the lock to whoever has the value of its holder.
type owned struct {
	setnx
	mine string
}

const takeOrHave = `
if redis.call("get", KEYS[1]) == ARGV[1] then return 1 end
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end
return 0`

func (l *owned) TryLock(ctx context.Context) (bool, error) {
	n, err := l.rdb.Eval(ctx, takeOrHave, []string{l.name}, l.mine, lease.Milliseconds()).Int()
	if n == 1 {
		l.value = l.mine
	}
	return n == 1, err
}

func (l *owned) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func unrenewed(name string, lock func() func(*redis.Client, string) locktest.Lock) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), lock()}, nil
	}
	return s
}

// each returns a lock that is made anew for each name.
func each(lock func(setnx) locktest.Lock) func() func(*redis.Client, string) locktest.Lock {
	return func() func(*redis.Client, string) locktest.Lock {
		return func(rdb *redis.Client, name string) locktest.Lock { return lock(setnx{rdb: rdb, name: name}) }
	}
}

// perProcess returns a lock that has something in common with the others of its process.
func perProcess[T any](common func() T, lock func(setnx, T) locktest.Lock) func() func(*redis.Client, string) locktest.Lock {
	return func() func(*redis.Client, string) locktest.Lock {
		c := common()
		return func(rdb *redis.Client, name string) locktest.Lock { return lock(setnx{rdb: rdb, name: name}, c) }
	}
}

// turns returns a renewed lock whose calls take turns in their process, or only those that lock.
func turns(name string, all bool) locktest.Subject {
	s := renewedSubject(name, nil)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt, turn := redistest.Options(p, 0), make(chan struct{}, 1)
		opt.ReadTimeout = lease / 10
		return anyClient{redis.NewClient(opt), func(rdb *redis.Client, name string) locktest.Lock {
			return &inTurn{&watched{lock: setnx{rdb: rdb, name: name}}, turn, all}
		}}, nil
	}
	return s
}

// classics are locks with a failure for which locks are known, each with its neighbour without it.
var classics = []struct {
	wrong, right   locktest.Subject
	story, finding string
}{
	{renewedSubject("renews in two commands", func(l *watched) locktest.Lock { l.bare, l.asks = true, true; return l }),
		renewedSubject("renews in one command", func(l *watched) locktest.Lock { return l }),
		"other-holder-before-request-2-of-a-renewal", "breaks misdelete: renew of a/1 (PEXPIRE, "},
	{fencedSubject("draws its token before it waits", true),
		fencedSubject("draws its token with the lock", false),
		"other-hold-before-request-2-of-an-acquire", "breaks fencing: a/1 was told the token 1 "},
	{unrenewed("watches without a transaction", each(func(l setnx) locktest.Lock { return &watching{l, true} })),
		unrenewed("watches with a transaction", each(func(l setnx) locktest.Lock { return &watching{l, false} })),
		"other-holder-before-request-3-of-an-unlock", "breaks mutual-exclusion: c/1 was granted "},
	{unrenewed("listens after the message", each(func(l setnx) locktest.Lock { return &woken{l, true} })),
		unrenewed("asks again once it listens", each(func(l setnx) locktest.Lock { return &woken{l, false} })),
		"release-after-request-2-of-a-waiter", "breaks liveness: b/1 waited for "},
	{turns("lets an unlock wait for a waiter of its process", true), turns("lets waiters of a process take turns", false),
		"two-threads-of-one-process-at-once", "breaks liveness: "},
	{unrenewed("grants a process what it has", perProcess(rand.Text, func(l setnx, mine string) locktest.Lock { return &owned{l, mine} })),
		unrenewed("grants a handle what it has", each(func(l setnx) locktest.Lock { return &owned{l, rand.Text()} })),
		"two-threads-of-one-process-at-once", "breaks mutual-exclusion: a/2 was granted "},
	{unrenewed("reads and deletes", each(func(l setnx) locktest.Lock { return &twoSteps{l} })),
		unrenewed("reads and deletes at once", each(func(l setnx) locktest.Lock { return &l })),
		"other-holder-before-request-2-of-an-unlock", "breaks misdelete: unlock of a/1 (DEL, "},
}

func init() {
	for _, c := range classics {
		wrong[c.wrong.Name] = c.wrong
	}
}

// A story finds each of the classic failures, whatever traits the lock claims. Its neighbour without the
// failure keeps its promises in all stories.
func TestEachClassicFailureHasAStory(t *testing.T) {
	for _, c := range classics {
		t.Run(c.wrong.Name, func(t *testing.T) {
			text, passed := outcome(t, t.TempDir(), c.wrong.Name, nil, "-test.run=^TestJudged$/stories")
			if passed {
				t.Errorf("%s passes:\n%s", c.wrong.Name, text)
			}
			mustContain(t, text, "--- FAIL: TestJudged/stories/"+c.story+" ", c.wrong.Name+" "+c.finding)
			locktest.Run(t, c.right, locktest.Options{Runs: 1, Faults: "none"})
		})
	}
}
