package redistest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// setnx is a lock as people write it: SET NX PX with a random value, and a script that
// compares and deletes. It knows nothing of Lockstep.
type setnx struct {
	rdb    *redis.Client
	name   string
	exists bool // asks EXISTS first, and then sets without NX: a bug
	value  string
	asked  time.Time // before the try that was granted
}

const lease = 5 * time.Second

func (l *setnx) TryLock(ctx context.Context) (bool, error) {
	value, asked := rand.Text(), time.Now()
	ok, err := l.take(ctx, value)
	if ok {
		l.value, l.asked = value, asked
	}
	return ok, err
}

func (l *setnx) take(ctx context.Context, value string) (bool, error) {
	if !l.exists {
		err := l.rdb.SetArgs(ctx, l.name, value, redis.SetArgs{Mode: "NX", TTL: lease}).Err()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil, err
	}
	n, err := l.rdb.Exists(ctx, l.name).Result()
	if n > 0 || err != nil {
		return false, err
	}
	err = l.rdb.Set(ctx, l.name, value, lease).Err()
	return err == nil, err
}

func (l *setnx) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// unsimulated is a lock that also sends a command which real servers know, and simulated ones do not.
type unsimulated struct{ setnx }

func (l *unsimulated) Lock(ctx context.Context) error {
	l.rdb.Do(ctx, "LCS", l.name, l.name)
	return l.setnx.Lock(ctx)
}

// retry tries to take a lock until it succeeds or fails, or ctx ends.
func retry(ctx context.Context, try func(context.Context) (bool, error)) error {
	for {
		ok, err := try(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

func (l *setnx) Unlock(ctx context.Context) error {
	if l.value == "" {
		return locktest.ErrNotHeld
	}
	n, err := l.rdb.Eval(ctx, compareAndDelete, []string{l.name}, l.value).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

type client struct {
	rdb    *redis.Client
	exists bool
}

func (c client) Lock(name string) (locktest.Lock, error) {
	return &setnx{rdb: c.rdb, name: name, exists: c.exists}, nil
}

func (c client) Close() error { return c.rdb.Close() }

func subjectOf(name string, exists bool) locktest.Subject {
	return locktest.Subject{
		Name: name, Servers: redistest.Servers(1), Lease: lease, State: redistest.Value(nil),
		Open: func(p *locktest.Process) (locktest.Client, error) {
			return client{redis.NewClient(redistest.Options(p, 0)), exists}, nil
		},
	}
}
