package reference

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
	"lockstep/lockimpl/redisclient"
)

// The defaults of Config.
const (
	DefaultWatchdogTimeout = 30 * time.Second
	DefaultHeartbeat       = 3 * time.Second
)

const (
	// valid is how old an attempt may be when the server runs it, and patience for
	// how long a request that may have run is sent again.
	valid    = 30 * time.Second
	patience = 30 * time.Second
	// pollEvery bounds how long a waiter sleeps; it asks pollsPerHeartbeat times
	// in a heartbeat, if that is sooner.
	pollEvery         = 500 * time.Millisecond
	pollsPerHeartbeat = 6
	// After an error the next try waits for retryMin, then twice as long each
	// time, up to retryMax, and up to half of that by chance.
	retryMin = 100 * time.Millisecond
	retryMax = time.Second
	// When a connection is there again, all waiters ask within spread.
	spread = 20 * time.Millisecond
	// answerWithin is how long one attempt is waited for, or half a heartbeat if
	// that is less, if the go-redis client does not give up sooner.
	answerWithin = time.Second
	// refusals is how many errors a server may answer to a request before the
	// caller gets the last: it is not going to change its mind.
	refusals = 3
)

// Memory is the time for which the server remembers its last action for an owner. It is as long as a
// request may be sent again and an attempt may take, so that no request that it has forgotten can run
// any more.
const Memory = valid + patience

// Config is how a client is set up. Zero values mean the defaults.
type Config struct {
	// ID tells this client from all others, also from itself before a restart;
	// empty: a random one.
	ID string
	// WatchdogTimeout is how long a hold without lease outlives its process; a
	// third of it is how often it is renewed. At least one second.
	WatchdogTimeout time.Duration
	// Heartbeat is how long a waiter of the fair lock keeps its place without
	// being heard of. All clients should have the same. At least one second.
	Heartbeat time.Duration
	// Environment gives ID when it is empty, and the jitter of retries. The wall
	// clock is not read.
	Environment lockimpl.Environment
	// Log gets what a program may want to know of its holds, with the keys lock
	// and owner: at Warn a renewal that failed (err), at Error a hold that is
	// lost. nil: nothing.
	Log *slog.Logger
	// Observer is told of calls and holds, for metrics. nil: nobody is.
	Observer lockimpl.Observer
}

// Client makes the locks of one process. It implements lockimpl.Client for the
// plain lock.
type Client struct {
	rdb       redis.UniversalClient
	retries   bool // rdb sends a command again that failed
	id        string
	watchdog  time.Duration
	heartbeat time.Duration
	env       lockimpl.Environment
	log       *slog.Logger
	observer  lockimpl.Observer
	answer    time.Duration // how long one is waited for
	requests  atomic.Int64  // numbers the requests, from 1
	handles   atomic.Int64  // numbers the owners of handles, from 1
	clock     serverClock
	channels  channels
	holds     holds

	closing context.Context
	close   context.CancelFunc
}

// NewClient makes a client on rdb. An answer is waited for one second, or for
// rdb's ReadTimeout where that is shorter, before a request is sent again; what
// is given up keeps its connection until the ReadTimeout. It sends nothing. Close does not
// close rdb. A duration of the Config that is too short gives ErrInvalid.
func NewClient(rdb redis.UniversalClient, cfg Config) (*Client, error) {
	c := &Client{rdb: rdb, retries: redisclient.Retries(rdb), id: cfg.ID, watchdog: cfg.WatchdogTimeout, heartbeat: cfg.Heartbeat, env: cfg.Environment.WithDefaults(), log: cfg.Log, observer: lockimpl.Unobserved(cfg.Observer)}
	if c.id == "" {
		c.id = c.env.NewID(0)
	}
	if c.watchdog == 0 {
		c.watchdog = DefaultWatchdogTimeout
	}
	if c.heartbeat == 0 {
		c.heartbeat = DefaultHeartbeat
	}
	if least := time.Second; c.watchdog < least || c.heartbeat < least {
		return nil, fmt.Errorf("%w: watchdog timeout %v and heartbeat %v must be at least %v", lockimpl.ErrInvalid, c.watchdog, c.heartbeat, least)
	}
	c.answer = min(answerWithin, c.heartbeat/2)
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.closing, c.close = context.WithCancel(context.Background())
	c.channels = channels{client: c, open: map[string]*channel{}}
	c.holds = holds{client: c, open: map[holdKey]*hold{}}
	return c, nil
}

// NewLock makes a lock whose waiters compete. A name that does not work as a
// key gives ErrInvalid.
func (c *Client) NewLock(name string) (*Lock, error) { return c.lock(name, plainScripts) }

// NewFairLock makes a lock whose waiters are served in the order of their first
// tries. A name must not be used for locks of both kinds.
func (c *Client) NewFairLock(name string) (*Lock, error) { return c.lock(name, fairScripts) }

// GetLock is NewLock for code that knows only lockimpl.Client.
func (c *Client) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.NewLock(name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (c *Client) lock(name string, s *scripts) (*Lock, error) {
	if err := lockimpl.CheckName(name); err != nil {
		return nil, err
	}
	return &Lock{c: c, name: name, scripts: s}, nil
}

// Close ends renewals and subscriptions without unlocking: what this client
// holds ends with its lease. Calls under way come back with ErrClosed.
func (c *Client) Close() error {
	c.close()
	c.holds.closeAll()
	c.channels.closeAll()
	return nil
}

// owner is the caller that asks for a lock.
type owner struct {
	name   string         // as the server knows it
	jitter lockimpl.Owner // whose jitter it draws
}

// owner gives the owner that callers name by a number.
func (c *Client) owner(o lockimpl.Owner) owner {
	return owner{c.id + ":" + strconv.FormatInt(int64(o), 10), o}
}

// backoff is the pause before retry number n, from 0; most at most. However long
// it is, no two owners ask in step.
func (c *Client) backoff(o owner, n int, most time.Duration) time.Duration {
	full := min(retryMin<<min(n, 10), most)
	return full/2 + c.env.Jitter(o.jitter, full/2)
}

// poll bounds how long a waiter sleeps.
func (c *Client) poll() time.Duration { return min(pollEvery, c.heartbeat/pollsPerHeartbeat) }

// ChannelName is where a lock's waiters are woken: the plain lock's by an empty
// message, the fair lock's by the owner who is next.
func ChannelName(lock string) string { return prefixed("reference_channel", lock) }

// QueueName is the list of a fair lock's waiters, head first.
func QueueName(lock string) string { return prefixed("reference_queue", lock) }

// DeadlinesName is the sorted set of a fair lock's waiters by the server's
// millisecond until which their places stay.
func DeadlinesName(lock string) string { return prefixed("reference_deadlines", lock) }

// TokenName is the last fencing token, which goes after a minute without a new
// hold.
func TokenName(lock string) string { return prefixed("reference_token", lock) }

// MemoryName is the key that remembers the newest request of an owner, CLIENT:OWNER, for a minute.
func MemoryName(lock, owner string) string { return prefixed("reference_memory", lock) + ":" + owner }

// prefixed keeps a lock's keys in one slot of a cluster.
func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// serverClock is an estimate of the server's clock.
type serverClock struct {
	mu    sync.Mutex
	known bool
	ms    int64     // what it said
	heard time.Time // when that came, by the process's own clock
}

func (s *serverClock) said(ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.ms, s.heard = true, ms, time.Now()
}

// now gives the server's time in ms, behind by at most what its answer took.
func (s *serverClock) now() (ms int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ms + time.Since(s.heard).Milliseconds(), s.known
}
