package redistest_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// displacing is a watched whose Lock ends the renewals of the last hold of its process.
type displacing struct{ lonely }

func (l displacing) Lock(ctx context.Context) error {
	if last := l.last.Load(); last != nil && last != l.watched {
		last.stop()
	}
	err := l.watched.Lock(ctx)
	if err == nil {
		l.last.Store(l.watched)
	}
	return err
}

// digested is a setnx whose scripts the process has loaded once. If it is hasty, it sends their digests alone.
type digested struct {
	setnx
	loaded *sync.Once
	hasty  bool
}

var deleteMine, expireMine = redis.NewScript(compareAndDelete), redis.NewScript(compareAndExpire)

func (l *digested) TryLock(ctx context.Context) (bool, error) {
	l.loaded.Do(func() { _, _ = deleteMine.Load(ctx, l.rdb), expireMine.Load(ctx, l.rdb) })
	return l.setnx.TryLock(ctx)
}

func (l *digested) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *digested) run(ctx context.Context, s *redis.Script, args ...any) error {
	run := s.Run
	if l.hasty {
		run = s.EvalSha
	}
	n, err := run(ctx, l.rdb, []string{l.name}, args...).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

func (l *digested) Unlock(ctx context.Context) error { return l.run(ctx, deleteMine, l.value) }

// extendable is a digested with an Extend.
type extendable struct{ *digested }

func (l extendable) Extend(ctx context.Context) error {
	return l.run(ctx, expireMine, l.value, lease.Milliseconds())
}

func digestedSubject(name string, hasty, extends bool) locktest.Subject {
	return unrenewed(name, perProcess(func() *sync.Once { return new(sync.Once) }, func(l setnx, loaded *sync.Once) locktest.Lock {
		d := &digested{l, loaded, hasty}
		if extends {
			return extendable{d}
		}
		return d
	}))
}

// hub wakes the waiters of a process by the messages of one subscription.
type hub struct {
	sub  *redis.PubSub
	free atomic.Pointer[chan struct{}] // closed by the next message
}

func (h *hub) wake() {
	next := make(chan struct{})
	if old := h.free.Swap(&next); old != nil {
		close(*old)
	}
}

// listen wakes waiters until the subscription is closed, or until its first error if it is hasty.
func (h *hub) listen(hasty bool) {
	for {
		_, err := h.sub.ReceiveMessage(context.Background())
		if err != nil && hasty || errors.Is(err, redis.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond)
		}
		h.wake()
	}
}

// summoned is a setnx that waits for its hub as long as the lease lasts.
type summoned struct {
	woken
	hub *hub
}

func (l *summoned) Lock(ctx context.Context) error {
	for {
		free := *l.hub.free.Load()
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		left, err := l.rdb.PTTL(ctx, l.name).Result()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-free:
		case <-time.After(max(left, time.Millisecond)):
		}
	}
}

type hubClient struct {
	rdb *redis.Client
	hub *hub
}

func (c hubClient) Lock(name string) (locktest.Lock, error) {
	return &summoned{woken{setnx: setnx{rdb: c.rdb, name: name}}, c.hub}, nil
}

func (c hubClient) Close() error { return cmp.Or(c.hub.sub.Close(), c.rdb.Close()) }

func hubSubject(name string, hasty bool) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		rdb := redis.NewClient(redistest.Options(p, 0))
		h := &hub{sub: rdb.PSubscribe(context.Background(), "*:free")}
		h.wake()
		go h.listen(hasty)
		return hubClient{rdb, h}, nil
	}
	return s
}

// quorum is a lock on three servers. It extends its hold if that many of them say so: fewer than two are a bug.
type quorum struct {
	rdbs    []*redis.Client
	name    string
	value   string
	need    int
	renewed bool
	over    *time.Timer // closes lost when the lease is over
	lost    chan struct{}
	stop    context.CancelFunc
}

// ask counts the servers that answer a script with 1.
func (l *quorum) ask(ctx context.Context, script string, args ...any) (n int, failed error) {
	for _, rdb := range l.rdbs {
		ok, err := rdb.Eval(ctx, script, []string{l.name}, args...).Int()
		n, failed = n+ok, cmp.Or(failed, err)
	}
	return n, failed
}

const takeOnce = `if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end return 0`

func (l *quorum) TryLock(ctx context.Context) (bool, error) {
	value, asked := rand.Text(), time.Now()
	n, err := l.ask(ctx, takeOnce, value, lease.Milliseconds())
	if n < 2 || time.Since(asked) > lease/2 {
		_, given := l.ask(context.WithoutCancel(ctx), compareAndDelete, value)
		if n == 0 {
			return false, cmp.Or(err, given)
		}
		return false, given
	}
	l.value, l.lost = value, make(chan struct{})
	lost := l.lost
	l.over = time.AfterFunc(time.Until(asked.Add(lease)), func() { close(lost) })
	var held context.Context
	held, l.stop = context.WithCancel(context.Background())
	if l.renewed {
		go l.renew(held, value, l.over)
	}
	return true, nil
}

func (l *quorum) renew(held context.Context, value string, over *time.Timer) {
	for {
		select {
		case <-held.Done():
			return
		case <-time.After(lease / 4):
		}
		asked := time.Now()
		n, err := l.ask(held, compareAndExpire, value, lease.Milliseconds())
		if errors.Is(err, redis.ErrClosed) || n >= l.need && held.Err() == nil && !over.Reset(time.Until(asked.Add(lease))) {
			over.Stop()
			return
		}
	}
}

func (l *quorum) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *quorum) Lost() <-chan struct{} { return l.lost }

func (l *quorum) Unlock(ctx context.Context) error {
	if l.stop == nil {
		return locktest.ErrNotHeld
	}
	l.stop()
	l.over.Stop()
	switch n, err := l.ask(ctx, compareAndDelete, l.value); {
	case n >= 2:
		return nil
	case err != nil:
		return err
	}
	return locktest.ErrNotHeld
}

// prolongable is a quorum with an Extend.
type prolongable struct{ *quorum }

func (l prolongable) Extend(ctx context.Context) error {
	if l.stop == nil {
		return locktest.ErrNotHeld
	}
	asked := time.Now()
	switch n, err := l.ask(ctx, compareAndExpire, l.value, lease.Milliseconds()); {
	case n >= l.need && l.over.Reset(time.Until(asked.Add(lease))):
		return nil
	case err != nil:
		return err
	}
	return locktest.ErrNotHeld
}

type quorumClient struct {
	rdbs []*redis.Client
	lock func(quorum) locktest.Lock
}

func (c quorumClient) Lock(name string) (locktest.Lock, error) {
	return c.lock(quorum{rdbs: c.rdbs, name: name}), nil
}

func (c quorumClient) Close() error {
	var failed error
	for _, rdb := range c.rdbs {
		failed = cmp.Or(failed, rdb.Close())
	}
	return failed
}

func quorumSubject(name string, need int, renewed bool) locktest.Subject {
	s := subjectOf(name, false)
	s.Servers, s.State, s.Renewed = redistest.Servers(3), redistest.Value(nil), renewed
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		c := quorumClient{lock: func(l quorum) locktest.Lock {
			if l.need, l.renewed = need, renewed; renewed {
				return &l
			}
			return prolongable{&l}
		}}
		for i := range 3 {
			opt := redistest.Options(p, i)
			opt.DialTimeout, opt.ReadTimeout, opt.MaxRetries = lease/20, lease/20, -1
			c.rdbs = append(c.rdbs, redis.NewClient(opt))
		}
		return c, nil
	}
	return s
}
