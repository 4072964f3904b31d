package lockimpl

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bare says which of the bare locks a client makes. They are what is found in
// code bases, faults included; none has a watchdog, a queue or, but for
// StringReentrant, re-entry, and all wait by polling.
type Bare string

// The bare locks.
const (
	// None grants everything and asks nobody: the control that must fail.
	None Bare = "none"
	// SetNXDel is SET NX PX, then DEL whoever holds it.
	SetNXDel Bare = "setnx-del"
	// SetNXGetDel is SET NX PX, then GET, compare in the client, DEL.
	SetNXGetDel Bare = "setnx-get-del"
	// SetNXCad is SET NX PX, then compare and delete in one script.
	SetNXCad Bare = "setnx-cad"
	// StringReentrant keeps the owner's name in one string: the owner may
	// enter again, but there is no place to count how often.
	StringReentrant Bare = "string-reentrant"
)

// The bare locks' constants: how often a waiter asks, and the lease of a hold
// for which none was named.
const (
	BarePoll  = 100 * time.Millisecond
	BareLease = 30 * time.Second
)

var (
	//go:embed scripts/compare_and_delete.lua
	compareAndDelete string
	//go:embed scripts/acquire_string_reentrant.lua
	acquireStringReentrant string

	compareAndDeleteScript       = redis.NewScript(compareAndDelete)
	acquireStringReentrantScript = redis.NewScript(acquireStringReentrant)
)

// BareScripts are the scripts of the bare locks: what each is for, and its text.
var BareScripts = map[string]string{
	compareAndDelete:       "unlock",
	acquireStringReentrant: "acquire",
}

// BareClient makes bare locks. It does not own rdb: Close leaves it open.
type BareClient struct {
	kind   Bare
	rdb    redis.UniversalClient
	id     string
	closed atomic.Bool
	// retries: rdb sends a command again that failed.
	retries bool
}

// NewBareClient makes a client. Owners are written to Redis as ID:OWNER, with
// id unique among all clients.
func NewBareClient(kind Bare, rdb redis.UniversalClient, id string) *BareClient {
	return &BareClient{kind: kind, rdb: rdb, id: id, retries: Retries(rdb)}
}

// Retries says whether rdb sends a command again that failed, or may: then the
// error that it gives back is of the last try, and says nothing of those before.
func Retries(rdb redis.UniversalClient) bool {
	single, ok := rdb.(*redis.Client)
	return !ok || single.Options().MaxRetries > 0
}

// GetLock implements Client.
func (c *BareClient) GetLock(name string) (Lock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if c.kind == None {
		return noneLock{name}, nil
	}
	return &bareLock{c: c, name: name}, nil
}

// Close implements Client.
func (c *BareClient) Close() error {
	c.closed.Store(true)
	return nil
}

type bareLock struct {
	c    *BareClient
	name string
}

func (l *bareLock) Name() string             { return l.name }
func (l *bareLock) token(o Owner) string     { return fmt.Sprintf("%s:%d", l.c.id, o) }
func (l *bareLock) doing(verb string) string { return fmt.Sprintf("%s %q", verb, l.name) }

// open refuses a call on a closed client.
func (l *bareLock) open(verb string) error {
	if l.c.closed.Load() {
		return fmt.Errorf("%s: %w", l.doing(verb), ErrClosed)
	}
	return nil
}

func (l *bareLock) attempt(ctx context.Context, o Owner, lease time.Duration) (bool, error) {
	if err := l.open("lock"); err != nil {
		return false, err
	}
	if lease == 0 {
		lease = BareLease
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

func (l *bareLock) poll(ctx context.Context, o Owner, lease time.Duration, until time.Time) (bool, error) {
	for {
		ok, err := l.attempt(ctx, o, lease)
		if ok || err != nil {
			return ok, err
		}
		pause := BarePoll
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

func (l *bareLock) Lock(ctx context.Context, o Owner, opt LockOptions) error {
	if err := CheckLease(opt.Lease); err != nil {
		return err
	}
	_, err := l.poll(ctx, o, opt.Lease, time.Time{})
	return err
}

func (l *bareLock) TryLock(ctx context.Context, o Owner) (bool, error) {
	return l.attempt(ctx, o, 0)
}

func (l *bareLock) TryLockTimed(ctx context.Context, o Owner, opt TryOptions) (bool, error) {
	if err := CheckTry(opt); err != nil {
		return false, err
	}
	return l.poll(ctx, o, opt.Lease, time.Now().Add(opt.Wait))
}

func (l *bareLock) Unlock(ctx context.Context, o Owner) (Release, error) {
	if err := l.open("unlock"); err != nil {
		return 0, err
	}
	n, err := l.release(ctx, o)
	if err != nil {
		return 0, l.c.outcome(l.doing("unlock"), err)
	}
	if n == 0 {
		return 0, fmt.Errorf("%s: %w", l.doing("unlock"), ErrNotHeld)
	}
	return Released, nil
}

func (l *bareLock) release(ctx context.Context, o Owner) (int64, error) {
	switch l.c.kind {
	case SetNXDel:
		return l.c.rdb.Del(ctx, l.name).Result()
	case SetNXGetDel:
		holder, err := l.c.rdb.Get(ctx, l.name).Result()
		if errors.Is(err, redis.Nil) || err == nil && holder != l.token(o) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
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

func (l *bareLock) IsHeldBy(ctx context.Context, o Owner) (bool, error) {
	if err := l.open("look at"); err != nil {
		return false, err
	}
	holder, err := l.c.rdb.Get(ctx, l.name).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && holder == l.token(o), l.c.outcome(l.doing("look at"), err)
}

func (l *bareLock) HoldCount(ctx context.Context, o Owner) (int, error) {
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

func (l noneLock) Name() string                                 { return l.name }
func (noneLock) Lock(context.Context, Owner, LockOptions) error { return nil }
func (noneLock) TryLock(context.Context, Owner) (bool, error)   { return true, nil }
func (noneLock) Unlock(context.Context, Owner) (Release, error) { return Released, nil }
func (noneLock) ForceUnlock(context.Context) (bool, error)      { return true, nil }
func (noneLock) IsLocked(context.Context) (bool, error)         { return false, nil }
func (noneLock) IsHeldBy(context.Context, Owner) (bool, error)  { return false, nil }
func (noneLock) HoldCount(context.Context, Owner) (int, error)  { return 0, nil }
func (noneLock) TryLockTimed(context.Context, Owner, TryOptions) (bool, error) {
	return true, nil
}
func (noneLock) RemainTimeToLive(context.Context) (time.Duration, error) {
	return -2 * time.Millisecond, nil
}

// outcome wraps an error of the client with what was being done, and with
// ErrUnknownOutcome where the command may have run. Of a client that retries only
// the last error is known, and an earlier attempt may have run.
func (c *BareClient) outcome(doing string, err error) error {
	if err == nil {
		return nil
	}
	if c.retries || MayHaveRun(err) {
		return fmt.Errorf("%s: %w: %w", doing, ErrUnknownOutcome, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// MayHaveRun says whether the command that failed with err may have been
// executed all the same. Not so when the server refused it, when the
// connection could not be made or written to, or when no connection was free. It
// is of one try: see [Retries].
func MayHaveRun(err error) bool {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op == "read"
}
