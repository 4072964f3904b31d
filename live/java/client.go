//go:build linux

package java

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockstep/interop/library"
	"lockstep/live"
	"lockstep/lockimpl"
	"lockstep/model"
)

// member is the name of the client in its JVM. warmer is the name of the client that sends the
// first renewal. operator is the name of the thread whose calls have no owner.
const (
	member   = "client"
	warmer   = "warmer"
	operator = "operator"
)

// pool is the library's default for the size of the pool of connections.
const pool = 64

// client is a client of the library in a JVM of its own.
type client struct {
	jvm    *library.Library
	kind   string
	reply  func(lockimpl.Owner, model.Role) (string, bool)
	owners []string

	mu     sync.Mutex
	made   map[string]bool // the names that have a lock object
	closed bool
}

// start starts the JVM of a client, and makes it call each operation once, since the first calls
// load the library's code.
func start(release, kind string, o live.ForeignOptions) (live.ForeignClient, error) {
	path, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	jvm, err := library.Start(release, library.Options{Java: path, Classpath: o.Built, Start: o.Spawn})
	if err != nil {
		return nil, err
	}
	c := &client{jvm: jvm, kind: kind, reply: o.Reply, made: map[string]bool{}}
	if err := c.connect(o); err != nil {
		jvm.Stop()
		return nil, err
	}
	return c, nil
}

func (c *client) connect(o live.ForeignOptions) error {
	f := library.Fields{"client", member, "address", o.Addrs[0], "watchdog", o.Watchdog.Milliseconds(), "connections", pool}
	if d := o.ResponseTimeout; d != nil {
		f = append(f, "response", d.Milliseconds())
	}
	if n := o.RetryAttempts; n != nil {
		f = append(f, "retry_attempts", *n)
	}
	if n := o.PoolSize; n != nil {
		f = append(f, "connections", *n)
	}
	if d := o.FairWait; d != nil {
		f = append(f, "fair_wait", d.Milliseconds())
	}
	if err := c.create(f); err != nil {
		return err
	}
	if err := c.jvm.Beat(live.BeatEvery, live.BeatGap, o.Gap); err != nil {
		return err
	}
	threads := max(o.Threads, 2) // the warm-up needs two, since one waits for the other
	for n := 1; n <= threads; n++ {
		a, err := c.jvm.Ask("thread", library.Fields{"client", member, "thread", n})
		if err != nil {
			return err
		}
		if n <= o.Threads {
			c.owners = append(c.owners, a.Owner())
		}
	}
	lock := o.Locks[0] + ":" + c.owners[0] // a lock that only this client uses, with the prefix of the run
	if err := c.warmUp(lock); err != nil {
		return err
	}
	return c.warmUpRenewal(o.Addrs[0], lock)
}

// create makes the library's client. On a busy machine its connections may take longer than its
// response timeout; then create tries again.
func (c *client) create(f library.Fields) (err error) {
	for range 5 {
		if _, err = c.jvm.Ask("client", f); err == nil {
			return nil
		}
	}
	return err
}

// warmUp makes some calls of each kind, so that the lock sends every script except that of a
// renewal. With the newer releases, the first use of a script that the server does not know takes
// three requests. On a busy machine, loading the code of the library may take longer than the
// client's response timeout, so warmUp repeats a round that fails.
func (c *client) warmUp(lock string) error {
	const rounds, most = 5, 20
	good := 0
	var err error
	for n := 0; good < rounds && n < most; n++ {
		if err = c.warmUpOnce(lock); err == nil {
			good++
			continue
		}
		_, _ = c.call(2, "force_unlock", lock, nil)
	}
	if good < rounds {
		return err
	}
	return nil
}

func (c *client) warmUpOnce(lock string) error {
	if _, err := c.call(1, "lock", lock, library.Fields{"lease", 60_000}); err != nil {
		return err
	}
	for _, wait := range []library.Fields{nil, {"wait", 20, "lease", 60_000}} { // the second leaves the queue of a fair lock
		a, err := c.call(2, "try_lock", lock, wait)
		if err != nil {
			return err
		}
		if a.Value() != "false" {
			return fmt.Errorf("a try for the lock of another thread gave %s", a.Value())
		}
	}
	waiting := c.jvm.Send("call", c.fields(2, "try_lock", lock, library.Fields{"wait", 2000, "lease", 60_000}))
	time.Sleep(30 * time.Millisecond)
	_, err := c.call(1, "unlock", lock, nil)
	a := <-waiting
	if err := errors.Join(err, a.Err()); err != nil {
		return err
	}
	if a.Value() != "true" {
		return fmt.Errorf("a try for the lock that was free gave %s", a.Value())
	}
	for _, op := range []string{"is_locked", "hold_count", "remain_ttl", "force_unlock"} {
		if _, err := c.call(2, op, lock, nil); err != nil {
			return err
		}
	}
	return nil
}

// warmUpRenewal makes the JVM send a renewal. The client of the scenario renews after a third of
// its watchdog timeout, which may be long, so another client with a short timeout does it.
func (c *client) warmUpRenewal(addr, lock string) error {
	const watchdog, most = 1500 * time.Millisecond, 5
	whose := library.Fields{"client", warmer}
	a, err := c.jvm.Ask("client", append(whose, "address", addr, "watchdog", watchdog.Milliseconds()))
	if err != nil {
		return err
	}
	defer func() { _, _ = c.jvm.Ask("close", whose) }()
	if a.Value() != fmt.Sprint(watchdog.Milliseconds()) {
		return nil // in 3.4.2 the watchdog timeout is a constant; that release sends the text of each script every time
	}
	call := func(op string) (library.Answer, error) {
		return c.jvm.Ask("call", append(whose, "thread", 1, "kind", c.kind, "lock", lock+":renewed", "op", op))
	}
	for range most {
		if _, err := call("lock"); err != nil {
			return err
		}
		renewed := false
		for left := int64(0); left >= 0 && !renewed; time.Sleep(20 * time.Millisecond) {
			before := left
			if a, err = call("remain_ttl"); err != nil {
				return err
			}
			if left, err = strconv.ParseInt(a.Value(), 10, 64); err != nil {
				return err
			}
			renewed = before > 0 && left > before
		}
		if renewed {
			_, err := call("unlock")
			return err
		}
		if _, err := call("force_unlock"); err != nil { // fails if the hold ended while the machine stood still
			return err
		}
	}
	return fmt.Errorf("the client renewed none of %d holds", most)
}

// fields are the words of a call.
func (c *client) fields(thread any, op, lock string, more library.Fields) library.Fields {
	return append(library.Fields{"client", member, "thread", thread, "kind", c.kind, "lock", lock, "op", op}, more...)
}

// call makes a call and waits for its end.
func (c *client) call(thread any, op, lock string, more library.Fields) (library.Answer, error) {
	return c.jvm.Ask("call", c.fields(thread, op, lock, more))
}

// Owners implements live.ForeignClient.
func (c *client) Owners() []string { return c.owners }

// Pid implements live.ForeignClient.
func (c *client) Pid() int { return c.jvm.Pid() }

// GetLock implements lockimpl.Client.
func (c *client) GetLock(name string) (lockimpl.Lock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &lock{c: c, name: name, again: c.made[name]}
	c.made[name] = true
	return l, nil
}

// Close implements lockimpl.Client.
func (c *client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_, err := c.jvm.Ask("close", library.Fields{"client", member})
	return err
}

func (c *client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// lock stands for a lock object of the library.
type lock struct {
	c     *client
	name  string
	again bool // the client has another object of the name
}

// Name implements lockimpl.Lock.
func (l *lock) Name() string { return l.name }

// do makes a call on a thread. It interrupts the thread when ctx ends, and returns when the
// call does.
func (l *lock) do(ctx context.Context, thread any, op string, more library.Fields) (library.Answer, error) {
	if l.again {
		more = append(more, "object", "fresh")
	}
	answer := l.c.jvm.Send("call", l.c.fields(thread, op, l.name, more))
	var a library.Answer
	select {
	case a = <-answer:
	case <-ctx.Done():
		l.c.jvm.Send("interrupt", library.Fields{"client", member, "thread", thread, "where", "now"})
		a = <-answer
	}
	return a, l.explain(ctx, op, a)
}

// explain translates an exception of the library into the error that the port would return.
func (l *lock) explain(ctx context.Context, op string, a library.Answer) error {
	err := a.Err()
	if err == nil {
		return nil
	}
	takes := op != "unlock" && op != "force_unlock"
	switch name := a.Exception(); {
	case l.c.isClosed():
		return fmt.Errorf("%w: %w", lockimpl.ErrClosed, err)
	case name == "IllegalMonitorStateException" && takes:
		return fmt.Errorf("%w: %w", lockimpl.ErrReentry, err)
	case name == "IllegalMonitorStateException":
		return fmt.Errorf("%w: %w", lockimpl.ErrNotHeld, err)
	case name == "InterruptedException":
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case a.InterruptedUnderWay():
		return fmt.Errorf("%w: %w: %w", lockimpl.ErrUnknownOutcome, context.Cause(ctx), err)
	case strings.HasPrefix(a["message"], "Subscribe timeout"):
		return err
	case name == "RedisResponseTimeoutException", name == "RedisTimeoutException", name == "RedisConnectionException",
		strings.HasSuffix(a["cause"], "TimeoutException"), strings.HasSuffix(a["cause"], "RedisConnectionException"):
		return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
	}
	return err
}

// Lock implements lockimpl.Lock.
func (l *lock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	op := "lock"
	if opt.Interruptible {
		op = "lock_interruptibly"
	}
	_, err := l.do(ctx, o, op, lease(opt.Lease))
	return err
}

func lease(d time.Duration) library.Fields {
	if d == 0 {
		return nil
	}
	return library.Fields{"lease", d.Milliseconds()}
}

// TryLock implements lockimpl.Lock.
func (l *lock) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return l.try(ctx, o, nil)
}

// TryLockTimed implements lockimpl.Lock.
func (l *lock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if opt.Unit == time.Second && opt.Wait%time.Second == 0 && opt.Lease%time.Second == 0 {
		f := library.Fields{"unit", "SECONDS", "wait", int64(opt.Wait / time.Second)}
		if opt.Lease != 0 {
			f = append(f, "lease", int64(opt.Lease/time.Second))
		}
		return l.try(ctx, o, f)
	}
	return l.try(ctx, o, append(library.Fields{"wait", opt.Wait.Milliseconds()}, lease(opt.Lease)...))
}

func (l *lock) try(ctx context.Context, o lockimpl.Owner, f library.Fields) (bool, error) {
	a, err := l.do(ctx, o, "try_lock", f)
	return a.Value() == "true", err
}

// Unlock implements lockimpl.Lock. The library does not say whether the thread still holds the lock
// at a lower level, but the server's reply to the script did.
func (l *lock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	if _, err := l.do(ctx, o, "unlock", nil); err != nil {
		return 0, err
	}
	if reply, ok := l.c.reply(o, model.RoleUnlock); ok && reply == "0" {
		return lockimpl.StillHeld, nil
	}
	return lockimpl.Released, nil
}

// ForceUnlock implements lockimpl.Lock. In 3.4.2 the method returns nothing; it counts as having
// freed the lock.
func (l *lock) ForceUnlock(ctx context.Context) (bool, error) {
	a, err := l.do(ctx, operator, "force_unlock", nil)
	return a.Value() == "true" || a.Value() == "ok", err
}

// IsLocked implements lockimpl.Lock.
func (l *lock) IsLocked(ctx context.Context) (bool, error) {
	a, err := l.do(ctx, operator, "is_locked", nil)
	return a.Value() == "true", err
}

// IsHeldBy implements lockimpl.Lock.
func (l *lock) IsHeldBy(ctx context.Context, o lockimpl.Owner) (bool, error) {
	a, err := l.do(ctx, o, "is_held", nil)
	return a.Value() == "true", err
}

// HoldCount implements lockimpl.Lock.
func (l *lock) HoldCount(ctx context.Context, o lockimpl.Owner) (int, error) {
	a, err := l.do(ctx, o, "hold_count", nil)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(a.Value())
}

// RemainTimeToLive implements lockimpl.Lock.
func (l *lock) RemainTimeToLive(ctx context.Context) (time.Duration, error) {
	a, err := l.do(ctx, operator, "remain_ttl", nil)
	if err != nil {
		return 0, err
	}
	ms, err := strconv.ParseInt(a.Value(), 10, 64)
	return time.Duration(ms) * time.Millisecond, err
}
