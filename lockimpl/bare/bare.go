// Package bare holds the locks on Redis that people write in an afternoon, faults
// included. They know nothing of a simulation.
package bare

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisclient"
)

// Kind says which of the bare locks a client makes. Such locks are found in
// code bases, faults included; none has a watchdog, a queue or, but for
// StringReentrant, re-entry, and all wait by polling.
type Kind string

// The bare locks.
const (
	// None grants every acquire without asking a server. It is the control that must fail.
	None Kind = "none"
	// SetNXDel is SET NX PX, then DEL whoever holds it.
	SetNXDel Kind = "setnx-del"
	// SetNXGetDel is SET NX PX, then GET, compare in the client, DEL.
	SetNXGetDel Kind = "setnx-get-del"
	// SetNXCad is SET NX PX with a value per owner, then compare and delete in one script. Redis advises a
	// value per hold, without which a late unlock ends a later hold of the same owner.
	SetNXCad Kind = "setnx-cad"
	// StringReentrant keeps the owner's name in one string: the owner may
	// enter again, but there is no place to count how often.
	StringReentrant Kind = "string-reentrant"
)

// The bare locks' constants: how often a waiter asks, and the lease of a hold
// for which none was named.
const (
	Poll  = 100 * time.Millisecond
	Lease = 30 * time.Second
)

var (
	//go:embed scripts/compare_and_delete.lua
	compareAndDelete string
	//go:embed scripts/acquire_string_reentrant.lua
	acquireStringReentrant string

	compareAndDeleteScript       = redis.NewScript(compareAndDelete)
	acquireStringReentrantScript = redis.NewScript(acquireStringReentrant)
)

// Scripts are the scripts of the bare locks: the purpose of each, and its text.
var Scripts = map[string]string{
	compareAndDelete:       "unlock",
	acquireStringReentrant: "acquire",
}

// Client makes bare locks. It does not own rdb: Close leaves it open.
type Client struct {
	kind   Kind
	rdb    redis.UniversalClient
	id     string
	closed atomic.Bool
	// retries: rdb sends a failed command again.
	retries bool
}

// NewClient makes a client. Owners are written to Redis as ID:OWNER, with
// id unique among all clients.
func NewClient(kind Kind, rdb redis.UniversalClient, id string) *Client {
	return &Client{kind: kind, rdb: rdb, id: id, retries: redisclient.Retries(rdb)}
}

// GetLock implements Client.
func (c *Client) GetLock(name string) (lockimpl.Lock, error) {
	if err := lockimpl.CheckName(name); err != nil {
		return nil, err
	}
	if c.kind == None {
		return noneLock{name}, nil
	}
	return &bareLock{c: c, name: name}, nil
}

// Close implements Client.
func (c *Client) Close() error {
	c.closed.Store(true)
	return nil
}

type bareLock struct {
	c    *Client
	name string
}

func (l *bareLock) Name() string                  { return l.name }
func (l *bareLock) token(o lockimpl.Owner) string { return fmt.Sprintf("%s:%d", l.c.id, o) }
func (l *bareLock) doing(verb string) string      { return fmt.Sprintf("%s %q", verb, l.name) }

// open refuses a call on a closed client.
func (l *bareLock) open(verb string) error {
	if l.c.closed.Load() {
		return fmt.Errorf("%s: %w", l.doing(verb), lockimpl.ErrClosed)
	}
	return nil
}

func (l *bareLock) attempt(ctx context.Context, o lockimpl.Owner, lease time.Duration) (bool, error) {
	if err := l.open("lock"); err != nil {
		return false, err
	}
	if lease == 0 {
		lease = Lease
	}
	var err error
	if l.c.kind == StringReentrant {
		err = acquireStringReentrantScript.Run(ctx, l.c.rdb, []string{l.name}, lease.Milliseconds(), l.token(o)).Err()
	} else {
		err = l.c.rdb.Do(ctx, "SET", l.name, l.token(o), "NX", "PX", lease.Milliseconds()).Err()
	}
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, l.c.outcome(l.doing("lock"), err)
}

func (l *bareLock) poll(ctx context.Context, o lockimpl.Owner, lease time.Duration, until time.Time) (bool, error) {
	for {
		ok, err := l.attempt(ctx, o, lease)
		if ok || err != nil {
			return ok, err
		}
		pause := Poll
		if !until.IsZero() {
			left := time.Until(until)
			if left <= 0 {
				return false, nil
			}
			pause = min(pause, left)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false, fmt.Errorf("%s: %w", l.doing("lock"), ctx.Err())
		}
	}
}

func (l *bareLock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	if err := lockimpl.CheckLease(opt.Lease); err != nil {
		return err
	}
	_, err := l.poll(ctx, o, opt.Lease, time.Time{})
	return err
}

func (l *bareLock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return l.attempt(ctx, o, 0)
}

func (l *bareLock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if err := lockimpl.CheckTry(opt); err != nil {
		return false, err
	}
	return l.poll(ctx, o, opt.Lease, time.Now().Add(opt.Wait))
}

func (l *bareLock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	if err := l.open("unlock"); err != nil {
		return 0, err
	}
	n, err := l.release(ctx, o)
	if err != nil {
		return 0, l.c.outcome(l.doing("unlock"), err)
	}
	if n == 0 {
		return 0, fmt.Errorf("%s: %w", l.doing("unlock"), lockimpl.ErrNotHeld)
	}
	return lockimpl.Released, nil
}

func (l *bareLock) release(ctx context.Context, o lockimpl.Owner) (int64, error) {
	switch l.c.kind {
	case SetNXDel:
		//lockvet:ignore delete-unchecked This is the mistake of the lock setnx-del.
		return l.c.rdb.Del(ctx, l.name).Result()
	case SetNXGetDel:
		holder, err := l.c.rdb.Get(ctx, l.name).Result()
		if errors.Is(err, redis.Nil) || err == nil && holder != l.token(o) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		//lockvet:ignore compare-then-delete This is the mistake of the lock setnx-get-del.
		return l.c.rdb.Del(ctx, l.name).Result()
	default:
		return compareAndDeleteScript.Run(ctx, l.c.rdb, []string{l.name}, l.token(o)).Int64()
	}
}

func (l *bareLock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.open("force unlock"); err != nil {
		return false, err
	}
	n, err := l.c.rdb.Del(ctx, l.name).Result()
	return n > 0, l.c.outcome(l.doing("force unlock"), err)
}

func (l *bareLock) IsLocked(ctx context.Context) (bool, error) {
	if err := l.open("look at"); err != nil {
		return false, err
	}
	n, err := l.c.rdb.Exists(ctx, l.name).Result()
	return n > 0, l.c.outcome(l.doing("look at"), err)
}

func (l *bareLock) IsHeldBy(ctx context.Context, o lockimpl.Owner) (bool, error) {
	if err := l.open("look at"); err != nil {
		return false, err
	}
	holder, err := l.c.rdb.Get(ctx, l.name).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && holder == l.token(o), l.c.outcome(l.doing("look at"), err)
}

func (l *bareLock) HoldCount(ctx context.Context, o lockimpl.Owner) (int, error) {
	held, err := l.IsHeldBy(ctx, o)
	if held {
		return 1, err
	}
	return 0, err
}

func (l *bareLock) RemainTimeToLive(ctx context.Context) (time.Duration, error) {
	if err := l.open("look at"); err != nil {
		return 0, err
	}
	ms, err := l.c.rdb.Do(ctx, "PTTL", l.name).Int64()
	return time.Duration(ms) * time.Millisecond, l.c.outcome(l.doing("look at"), err)
}

// noneLock grants everything, its client closed or not.
type noneLock struct{ name string }

func (l noneLock) Name() string                                                   { return l.name }
func (noneLock) Lock(context.Context, lockimpl.Owner, lockimpl.LockOptions) error { return nil }
func (noneLock) TryLock(context.Context, lockimpl.Owner) (bool, error)            { return true, nil }
func (noneLock) Unlock(context.Context, lockimpl.Owner) (lockimpl.Release, error) {
	return lockimpl.Released, nil
}
func (noneLock) ForceUnlock(context.Context) (bool, error)              { return true, nil }
func (noneLock) IsLocked(context.Context) (bool, error)                 { return false, nil }
func (noneLock) IsHeldBy(context.Context, lockimpl.Owner) (bool, error) { return false, nil }
func (noneLock) HoldCount(context.Context, lockimpl.Owner) (int, error) { return 0, nil }
func (noneLock) TryLockTimed(context.Context, lockimpl.Owner, lockimpl.TryOptions) (bool, error) {
	return true, nil
}
func (noneLock) RemainTimeToLive(context.Context) (time.Duration, error) {
	return -2 * time.Millisecond, nil
}

// outcome wraps an error of the client with the name of the work, and with
// ErrUnknownOutcome if the command may have run. A client that retries reports only
// its last error, and an earlier attempt may have run.
func (c *Client) outcome(doing string, err error) error {
	if err == nil {
		return nil
	}
	if c.retries || redisclient.MayHaveRun(err) {
		return fmt.Errorf("%s: %w: %w", doing, lockimpl.ErrUnknownOutcome, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
