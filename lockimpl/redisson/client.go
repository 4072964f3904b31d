package redisson

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

// Config has the settings of a Redisson configuration file. Zero values mean the release's defaults.
type Config struct {
	Release  *Release // nil: the newest
	Topology Topology // of the servers; the zero value is Single
	// ID distinguishes this client from all others (the UUID); empty: a random one.
	ID string
	// WatchdogTimeout is lockWatchdogTimeout.
	WatchdogTimeout time.Duration
	// FairWait is the wait of a waiter that names none.
	FairWait time.Duration
	// ResponseTimeout must be the ReadTimeout of the go-redis client.
	ResponseTimeout time.Duration
	// RetryAttempts is the maximal number of resends; negative: none.
	RetryAttempts int
	// TimerWheel puts the client's timers on a wheel, as in the library: each renewal, resend and
	// timeout comes at the next tick, up to 100 ms late. Waits for a message are always exact.
	// Environment.Jitter draws when the first tick comes.
	TimerWheel bool
	// UncheckedArguments accepts the arguments that the Java library accepts, and does with them
	// what the release does: a lease below a millisecond, a negative lease or wait, a name that
	// breaks in a cluster. Without it such arguments are refused with ErrInvalid before anything is
	// sent.
	UncheckedArguments bool
	// WatchHolds lets HoldContext tell a holder that its hold is lost. The library does not have
	// this. It sends nothing.
	WatchHolds bool
	// Observer receives calls and holds, for metrics. It makes the client watch its holds, as
	// WatchHolds does. nil: no observer. The library does not have this. It sends nothing.
	Observer    lockimpl.Observer
	Environment lockimpl.Environment
	// Log receives the actions of the watchdog, with the keys lock and owner. Debug: the renewals
	// of a hold begin, it was renewed, or a level less is renewed. Info: a renewal found the lock
	// not held. Error, with the key err: a renewal failed. nil: nothing.
	Log *slog.Logger
}

// Client is one Redisson client: an id, subscriptions and a watchdog for all
// its locks. It implements lockimpl.Client for the plain lock; GetFairLock
// makes fair ones.
type Client struct {
	rel       *Release
	topology  Topology
	rdb       redis.UniversalClient
	id        string
	watchdogT time.Duration
	fairWait  time.Duration
	response  time.Duration
	attempts  int
	unchecked bool
	env       lockimpl.Environment
	log       *slog.Logger
	wheel     *wheel // nil: timers are exact

	watchdog watchdog
	holds    *holds // nil: not watched
	observer lockimpl.Observer
	owners   atomic.Int64 // the number that NewOwner has returned
	asking   asking
	channels subscriptions
	replicas atomic.Int64 // as INFO reported
	loaded   sync.Map     // SHAs of the scripts that this client loaded

	closing context.Context
	close   context.CancelFunc
	once    sync.Once
}

// NewClient makes a client on rdb, which must not resend by itself
// (MaxRetries -1) and whose ReadTimeout is the response timeout; Options gives
// such options. Close does not close rdb.
func NewClient(rdb redis.UniversalClient, cfg Config) *Client {
	rel := cfg.Release
	if rel == nil {
		rel = Releases[len(Releases)-1]
	}
	c := &Client{
		rel: rel, topology: cfg.Topology, rdb: rdb, id: cfg.ID,
		watchdogT: orElse(cfg.WatchdogTimeout, DefaultWatchdog),
		fairWait:  orElse(cfg.FairWait, rel.FairWait),
		response:  orElse(cfg.ResponseTimeout, ResponseTimeout),
		attempts:  rel.RetryAttempts,
		unchecked: cfg.UncheckedArguments,
		env:       cfg.Environment.WithDefaults(),
		log:       cfg.Log,
		observer:  lockimpl.Unobserved(cfg.Observer),
	}
	if cfg.RetryAttempts != 0 {
		c.attempts = max(0, cfg.RetryAttempts)
	}
	if cfg.TimerWheel {
		c.wheel = newWheel(tickOf(rel.RetryDelay.draw(c.attempts, 0, c.env), c.response), c.env)
	}
	if c.id == "" {
		c.id = c.env.NewID(0)
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.closing, c.close = context.WithCancel(context.Background())
	c.channels.client = c
	c.watchdog = newWatchdog(c)
	if cfg.WatchHolds || cfg.Observer != nil {
		c.holds = &holds{observer: c.observer, open: map[holdKey]*hold{}}
	}
	return c
}

func orElse(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// Options sets the options that the port needs: no resends by go-redis, the response timeout as
// read timeout, and Redisson's pool of 64.
func Options(opt *redis.Options) *redis.Options {
	opt.MaxRetries = -1
	opt.ReadTimeout = orElse(opt.ReadTimeout, ResponseTimeout)
	if opt.PoolSize == 0 {
		opt.PoolSize = 64
	}
	return opt
}

// ID is the client's id, the first half of every owner it writes.
func (c *Client) ID() string { return c.id }

// GetLock makes a plain lock object.
func (c *Client) GetLock(name string) (lockimpl.Lock, error) {
	return c.object(name, family{
		acquire: c.rel.Acquire, tryAcquire: c.rel.Acquire,
		unlock: c.rel.Unlock, forceUnlock: c.rel.ForceUnlock,
	})
}

// GetFairLock makes a fair lock object.
func (c *Client) GetFairLock(name string) (lockimpl.Lock, error) {
	return c.object(name, c.fair(c.rel.FairAcquire, c.rel.FairTryAcquire))
}

// GetFencedLock makes an object of the lock whose holds are numbered. It returns ErrInvalid if the
// release has none.
func (c *Client) GetFencedLock(name string) (FencedLock, error) {
	f := c.rel.Fenced
	if f == nil {
		return nil, c.lacks("fenced lock")
	}
	l, err := c.newLock(name, family{
		acquire: f.Acquire, tryAcquire: f.Acquire,
		unlock: c.rel.Unlock, forceUnlock: c.rel.ForceUnlock,
	})
	if err != nil {
		return nil, err
	}
	return fencedLock{l}, nil
}

// GetNonReentrantLock makes a plain lock object that refuses its own holder with ErrReentry. It
// returns ErrInvalid if the release has none.
func (c *Client) GetNonReentrantLock(name string) (lockimpl.Lock, error) {
	n := c.rel.NonReentrant
	if n == nil {
		return nil, c.lacks("non-reentrant lock")
	}
	return c.object(name, family{
		acquire: n.Acquire, tryAcquire: n.Acquire,
		unlock: c.rel.Unlock, forceUnlock: c.rel.ForceUnlock,
	})
}

// GetNonReentrantFairLock makes a fair lock object that refuses its own holder with ErrReentry. It
// returns ErrInvalid if the release has none.
func (c *Client) GetNonReentrantFairLock(name string) (lockimpl.Lock, error) {
	n := c.rel.NonReentrant
	if n == nil {
		return nil, c.lacks("non-reentrant lock")
	}
	return c.object(name, c.fair(n.FairAcquire, n.FairTryAcquire))
}

func (c *Client) fair(acquire, tryAcquire Script) family {
	return family{
		acquire: acquire, tryAcquire: tryAcquire, leave: &c.rel.FairLeave,
		unlock: c.rel.FairUnlock, forceUnlock: c.rel.FairForceUnlock,
	}
}

func (c *Client) lacks(what string) error {
	return fmt.Errorf("%w: the port of redisson %s has no %s", lockimpl.ErrInvalid, c.rel.Version, what)
}

func (c *Client) object(name string, f family) (lockimpl.Lock, error) {
	l, err := c.newLock(name, f)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (c *Client) newLock(name string, f family) (*lock, error) {
	if err := lockimpl.CheckName(name); err != nil && !c.unchecked {
		return nil, err
	}
	return &lock{c: c, name: name, family: f, leaseField: c.watchdogT}, nil
}

// Close ends the watchdog and the subscriptions without unlocking: each hold of this client ends
// with its lease.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.close()
		c.watchdog.stop()
		c.holds.closed()
		c.channels.closeAll()
	})
	return nil
}

func (c *Client) owner(o lockimpl.Owner) string {
	return c.id + ":" + strconv.FormatInt(int64(o), 10)
}

func (c *Client) nowMillis() int64 { return c.env.Now().UnixMilli() }

// publishCommand is the command that publishes the release of a lock.
func (c *Client) publishCommand() string {
	if c.sharded() {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

func (c *Client) latchLife(o lockimpl.Owner) time.Duration {
	attempts := max(c.attempts, 1)
	return (c.response + c.rel.RetryDelay.draw(attempts, o, c.env)) * time.Duration(attempts)
}

// ChannelName is the channel on which the releases of a plain lock are published. The names of the
// waiters' channels of a fair lock begin with it.
func ChannelName(lock string) string { return prefixName("redisson_lock__channel", lock) }

// WaiterChannel is the channel of one waiter of the fair lock.
func WaiterChannel(lock, owner string) string { return ChannelName(lock) + ":" + owner }

// QueueName is the key of the list of a fair lock's waiters, head first.
func QueueName(lock string) string { return prefixName("redisson_lock_queue", lock) }

// DeadlinesName is the key of the sorted set of a fair lock's waiters by deadline, in milliseconds
// of the clients' epoch.
func DeadlinesName(lock string) string { return prefixName("redisson_lock_timeout", lock) }

// TokenName is the key of the counter of a fenced lock's tokens.
func TokenName(lock string) string { return prefixName("redisson_lock_token", lock) }

// LatchName is the key under which an unlock leaves its answer, by the id of its request.
func LatchName(lock, request string) string {
	return prefixName("redisson_unlock_latch", lock) + ":" + request
}

func prefixName(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}
