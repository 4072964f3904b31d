package strangers

import (
	"context"
	"errors"
	"math/rand"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

const (
	lease = 6 * time.Second
	// requestTime is the longest time of one try of a request.
	requestTime = 800 * time.Millisecond
	// drift is the margin for clocks that run apart, of locks on several servers.
	drift = lease/50 + 10*time.Millisecond
	// pollPause is the shortest pause between two requests of a waiter that polls.
	pollPause = 100 * time.Millisecond
	// fallback is the longest time that a waiter waits for a message.
	fallback = time.Second
	// retryPause is the pause after a request that failed.
	retryPause = 200 * time.Millisecond
	// shortLease is the lease of the first request of InTwoLeases.
	shortLease = lease / 3
	// mostTries is the number of tries of an unlock that sends its request again.
	mostTries = 5
)

// errDoubt says that a call does not know what its requests did.
var errDoubt = errors.New("strangers: a request may have run, or may run later")

// client is the client of one process.
type client struct {
	p     Plumbing
	m     Mutation
	nodes []*redis.Client

	ctx    context.Context // ends with the client
	cancel context.CancelFunc
	all    sync.WaitGroup // of the goroutines
	jobs   chan job       // for Dispatched

	mu     sync.Mutex // held for moments only
	closed bool
	random *rand.Rand
	holds  []*hold // that Ticker and Pipeline renew
	shared map[string]*shared
}

// shared is what the threads of a process share about a lock, for the value Process.
type shared struct {
	turn  chan struct{} // has an element while a thread holds the lock or asks for it
	value string        // "": the next acquire draws it
}

func open(proc *locktest.Process, p Plumbing, m Mutation) (locktest.Client, error) {
	c := &client{p: p, m: m, random: rand.New(rand.NewSource(int64(proc.Rand().Uint64()))), shared: map[string]*shared{}, jobs: make(chan job)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for i := range p.Servers {
		opt := redistest.Options(proc, i)
		opt.ContextTimeoutEnabled = true
		opt.ReadTimeout, opt.WriteTimeout, opt.DialTimeout = requestTime, requestTime, requestTime
		if p.Retry == ByClient {
			opt.MaxRetries, opt.MinRetryBackoff, opt.MaxRetryBackoff = 2, 20*time.Millisecond, 60*time.Millisecond
		}
		rdb := redis.NewClient(opt)
		if p.Renewal == Hook {
			rdb.AddHook(starter{})
		}
		if p.Taking == Dispatched {
			rdb.AddHook(dispatcher{c})
		}
		c.nodes = append(c.nodes, rdb)
	}
	if p.Taking == Dispatched {
		c.start(c.dispatch)
	}
	if p.Renewal == Ticker || p.Renewal == Pipeline {
		c.start(c.tick)
	}
	return c, nil
}

// start runs f in a goroutine. It returns false if the client is closed.
func (c *client) start(f func()) bool {
	if !c.enter() {
		return false
	}
	go func() {
		defer c.all.Done()
		f()
	}()
	return true
}

// enter counts the caller among the goroutines for which Close waits. It returns false if the client is closed.
func (c *client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.all.Add(1)
	}
	return !c.closed
}

// Close ends the goroutines of the client. It releases nothing.
func (c *client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.all.Wait()
	var err error
	for _, rdb := range c.nodes {
		err = errors.Join(err, rdb.Close())
	}
	return err
}

// draw returns a number of the chance of the process.
func (c *client) draw() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Uint64()
}

func (c *client) newValue() string {
	if c.m == ConstantValue {
		return "locked"
	}
	return strconv.FormatUint(c.draw(), 36)
}

// majority is the number of servers that a hold needs.
func (c *client) majority() int {
	if c.m == MinoritySuffices {
		return 1
	}
	return c.p.Servers/2 + 1
}

// Lock implements locktest.Client.
func (c *client) Lock(name string) (locktest.Lock, error) {
	l := &lock{c: c, name: name, random: rand.New(rand.NewSource(int64(c.draw())))}
	if c.p.Value == Process {
		c.mu.Lock()
		if c.shared[name] == nil {
			c.shared[name] = &shared{turn: make(chan struct{}, 1)}
		}
		l.shared = c.shared[name]
		c.mu.Unlock()
	}
	return l.offering(c.p), nil
}

// lock is the handle of one thread.
type lock struct {
	c      *client
	name   string
	random *rand.Rand
	shared *shared // for the value Process
	own    string  // the value, for Handle; "": the next acquire draws it
	h      *hold   // the last hold that was granted, until an unlock ended it for sure; nil: none
	level  int     // of h, for Counted
}

// The parts of a handle that not every plumbing has.
type (
	trying   struct{ l *lock }
	telling  struct{ l *lock }
	numbered struct{ l *lock }
	extended struct{ l *lock }
)

func (x trying) TryLock(ctx context.Context) (bool, error) {
	switch err := x.l.acquire(ctx, false); {
	case errors.Is(err, locktest.ErrBusy):
		return false, nil
	default:
		return err == nil, err
	}
}

func (x telling) Lost() <-chan struct{} {
	if x.l.h == nil {
		return nil
	}
	return x.l.h.lost
}

func (x numbered) Token() (uint64, bool) {
	if x.l.h == nil {
		return 0, false
	}
	return x.l.h.token, true
}

func (x extended) Extend(ctx context.Context) error { return x.l.extend(ctx) }

// offering returns the handle with the methods of its plumbing.
func (l *lock) offering(p Plumbing) locktest.Lock {
	try, tell, number, extend := trying{l}, telling{l}, numbered{l}, extended{l}
	switch {
	case p.Wake == Head:
		return l
	case p.Lost && p.Fenced && p.Extends:
		return struct {
			*lock
			trying
			telling
			numbered
			extended
		}{l, try, tell, number, extend}
	case p.Lost && p.Fenced:
		return struct {
			*lock
			trying
			telling
			numbered
		}{l, try, tell, number}
	case p.Lost && p.Extends:
		return struct {
			*lock
			trying
			telling
			extended
		}{l, try, tell, extend}
	case p.Fenced && p.Extends:
		return struct {
			*lock
			trying
			numbered
			extended
		}{l, try, number, extend}
	case p.Lost:
		return struct {
			*lock
			trying
			telling
		}{l, try, tell}
	case p.Fenced:
		return struct {
			*lock
			trying
			numbered
		}{l, try, number}
	case p.Extends:
		return struct {
			*lock
			trying
			extended
		}{l, try, extend}
	}
	return struct {
		*lock
		trying
	}{l, try}
}

// Lock implements locktest.Lock.
func (l *lock) Lock(ctx context.Context) error { return l.acquire(ctx, true) }

// acquire takes the lock. Without wait it asks once.
func (l *lock) acquire(ctx context.Context, wait bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.c.p.Levels != Flat && l.h != nil && l.h.live() {
		return l.enter(ctx)
	}
	if l.c.p.Wake == Head {
		return l.queue(ctx)
	}
	if l.shared != nil {
		if !wait {
			select {
			case l.shared.turn <- struct{}{}:
			default:
				return errDoubt // the thread whose turn it is may not have the lock
			}
		} else {
			select {
			case l.shared.turn <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	granted, err := l.compete(ctx, wait)
	if granted == nil {
		l.forgetValue(err)
		if l.shared != nil {
			<-l.shared.turn
		}
		return err
	}
	l.h, l.level = granted, 1
	return nil
}

// forgetValue lets the next acquire draw a value if a request with this one may still arrive.
func (l *lock) forgetValue(err error) {
	if errors.Is(err, locktest.ErrBusy) || l.c.m == ValueKept {
		return
	}
	l.own = ""
	if l.shared != nil {
		l.shared.value = ""
	}
}

// value returns the value of the next hold.
func (l *lock) value() string {
	switch l.c.p.Value {
	case Handle:
		if l.own == "" || l.h != nil && l.c.m != ValueKept { // an unlock of the last hold may still arrive
			l.own = l.c.newValue()
		}
		return l.own
	case Process:
		if l.shared.value == "" {
			l.shared.value = l.c.newValue()
		}
		return l.shared.value
	}
	return l.c.newValue()
}

// compete asks for the lock until it is granted, or ctx ends. It returns nil and the error for the caller if it is
// not granted.
func (l *lock) compete(ctx context.Context, wait bool) (*hold, error) {
	value := l.value()
	doubt := (l.c.p.Retry == ByClient || l.c.p.Servers > 1) && l.c.m != RetriedTakeRefused
	var w waiter
	defer func() { w.stop() }()
	for {
		h, err := l.take(ctx, value, wait)
		switch {
		case h != nil:
			return h, nil
		case err != nil && l.c.m == BusyAfterError:
			return nil, locktest.ErrBusy
		case err != nil && l.c.p.Retry == ByLock && wait && ctx.Err() == nil && !errors.Is(err, redis.ErrClosed):
			doubt = l.c.m != RetriedTakeRefused
			l.pause(ctx, retryPause)
		case err != nil:
			if l.c.p.Wake == HandOver {
				_ = l.leave(value)
			}
			if l.c.p.Taking == CleansUp {
				l.c.start(func() { l.c.cleanUp(l.name, value) })
			}
			return nil, err
		}
		if wait && ctx.Err() == nil && err == nil {
			l.await(ctx, &w)
		}
		if !wait || ctx.Err() != nil {
			if l.c.p.Wake == HandOver && wait && l.leave(value) != nil || doubt {
				return nil, errDoubt
			}
			return nil, locktest.ErrBusy
		}
		if l.c.p.Servers > 1 {
			value = l.c.newValue() // the request that deletes the old one may still arrive
		}
	}
}

// enter takes a lock that the handle holds once more.
func (l *lock) enter(ctx context.Context) error {
	sent := time.Now()
	n, err := l.c.eval(ctx, 0, l.c.p.takeScript(l.c.m), l.keys(), l.h.value, lease.Milliseconds(), l.level+1).Int()
	switch {
	case err != nil:
		l.own = "" // the request may still arrive, and must not change the count of the next hold
		return err
	case n <= 0:
		l.h.end()
		return errDoubt
	case !l.h.heard(sent.Add(lease)): // its end was told meanwhile
		_, _ = l.c.release(ctx, l.name, l.h.value)
		return errDoubt
	}
	if l.c.p.Levels == Counted {
		l.level++
	}
	return nil
}

// Unlock implements locktest.Lock.
func (l *lock) Unlock(ctx context.Context) error {
	h := l.h
	if h == nil {
		return locktest.ErrNotHeld
	}
	if l.c.p.Levels == Counted && l.level > 1 && l.c.m != LevelsForgotten {
		return l.lower(ctx)
	}
	if l.c.p.Stop != After && l.c.m != RenewalGoesOn {
		h.halt(l.c.p.Stop == Waits)
	}
	freed, doubt, err := l.releaseTrying(ctx, h.value)
	if l.c.p.Stop == After && l.c.m != RenewalGoesOn {
		h.halt(true)
	}
	h.giveUp(err == nil && freed)
	switch {
	case err != nil && l.c.m == ForgottenAfterError:
		l.h, l.own = nil, ""
		return err
	case err != nil:
		return err // h stays, so that another unlock sends its value
	case freed:
		l.h = nil
		return nil
	}
	l.h = nil
	if l.c.m != ValueKept {
		l.own = ""
	}
	if l.c.m == AlwaysReleased {
		return nil
	}
	if doubt && l.c.m != NotHeldAfterRetry {
		return errDoubt
	}
	return locktest.ErrNotHeld
}

// releaseTrying releases a value, and tries again after an error if the lock does so. With doubt, a value that
// is gone may have been deleted by a request before.
func (l *lock) releaseTrying(ctx context.Context, value string) (freed, doubt bool, err error) {
	doubt = l.c.p.Retry == ByClient
	for try := 1; ; try++ {
		freed, err = l.c.release(ctx, l.name, value)
		if err == nil || l.c.p.Retry != ByLock || try == mostTries && l.c.p.Wake != Head || ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
			return freed, doubt, err
		}
		doubt = true
		l.pause(ctx, retryPause)
	}
}

// lower gives up one level of several. After an error the level counts as given up.
func (l *lock) lower(ctx context.Context) error {
	l.level--
	n, err := l.c.eval(ctx, 0, lowerScript, l.keys(), l.h.value, l.level).Int()
	switch {
	case err != nil:
		l.own = "" // as in enter
		return err
	case n == 1:
		return nil
	case n == 2: // an earlier request with this number ran
		return errDoubt
	}
	l.h.end()
	l.h.giveUp(false)
	l.h, l.level, l.own = nil, 0, ""
	return locktest.ErrNotHeld
}

// extend sets the lease of the hold anew.
func (l *lock) extend(ctx context.Context) error {
	if l.h == nil {
		return locktest.ErrNotHeld
	}
	if !l.h.live() {
		return errDoubt // its end was told
	}
	sent := time.Now()
	kept, gone, err := l.c.renew(ctx, l.name, l.h.value)
	if l.c.m == LeaseFromReply {
		sent = time.Now()
	}
	switch {
	case kept && l.h.heard(sent.Add(lease)):
		return nil
	case gone:
		l.h.end()
		return locktest.ErrNotHeld
	case err != nil:
		return err
	}
	return errDoubt
}

// pause waits for d and a part of it that is drawn, or until ctx ends.
func (l *lock) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d + time.Duration(l.random.Int63n(int64(d/4))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
