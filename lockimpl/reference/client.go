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
	// valid is the maximal age of an attempt when the server runs it. patience is the time for
	// which a request that may have run is sent again.
	valid    = 30 * time.Second
	patience = 30 * time.Second
	// pollEvery bounds how long a waiter sleeps; it asks pollsPerHeartbeat times per heartbeat, if
	// that is more often.
	pollEvery         = 500 * time.Millisecond
	pollsPerHeartbeat = 6
	// After an error the next try waits for retryMin, then twice as long each time, up to retryMax.
	// Chance adds up to half of that.
	retryMin = 100 * time.Millisecond
	retryMax = time.Second
	// When a connection is restored, all waiters ask within spread.
	spread = 20 * time.Millisecond
	// answerWithin is the time for which the client waits for the answer to an attempt: half a
	// heartbeat if that is less, and shorter if the go-redis client gives up sooner.
	answerWithin = time.Second
	// refusals is the number of errors that a server may answer to a request. Then the caller gets
	// the last one, since more tries will not help.
	refusals = 3
)

// Memory is the time for which the server remembers its last action for an owner. It is the sum of
// the time for which a request may be sent again and the maximal age of an attempt, so no request
// that the server has forgotten can still run.
const Memory = valid + patience

// Config is how a client is set up. Zero values mean the defaults.
type Config struct {
	// ID distinguishes this client from all others, even from the same process before a restart.
	// Empty: a random one.
	ID string
	// WatchdogTimeout is the time for which a hold without a lease outlives its process. The hold
	// is renewed after each third of it. At least one second.
	WatchdogTimeout time.Duration
	// Heartbeat is the time for which a waiter of the fair lock keeps its place without asking
	// again. All clients should have the same. At least one second.
	Heartbeat time.Duration
	// Environment draws an empty ID, and the jitter of retries. The lock does not read the wall
	// clock.
	Environment lockimpl.Environment
	// Log receives the troubles of holds, with the keys lock and owner: at Warn a failed renewal
	// (with the key err), at Error a lost hold. nil: nothing.
	Log *slog.Logger
	// Observer receives calls and holds, for metrics. nil: no observer.
	Observer lockimpl.Observer
}

// Client makes the locks of one process. It implements lockimpl.Client for the
// plain lock.
type Client struct {
	rdb       redis.UniversalClient
	retries   bool // rdb sends a failed command again
	id        string
	watchdog  time.Duration
	heartbeat time.Duration
	env       lockimpl.Environment
	log       *slog.Logger
	observer  lockimpl.Observer
	answer    time.Duration // the time for which the client waits for one
	requests  atomic.Int64  // numbers the requests, from 1
	handles   atomic.Int64  // numbers the owners of handles, from 1
	clock     serverClock
	channels  channels
	holds     holds

	closing context.Context
	close   context.CancelFunc
}

// NewClient makes a client on rdb. The client waits one second for an answer, or rdb's ReadTimeout
// if that is shorter, before it sends a request again. An attempt that it gives up keeps its
// connection until the ReadTimeout. NewClient sends nothing. Close does not close rdb. The error is
// ErrInvalid if a duration of the Config is too short.
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

// NewLock makes a lock whose waiters compete. The error is ErrInvalid if the name does not work as
// a key.
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

// Close ends renewals and subscriptions without unlocking: the holds of this client end with their
// leases. Calls under way return ErrClosed.
func (c *Client) Close() error {
	c.close()
	c.holds.closeAll()
	c.channels.closeAll()
	return nil
}

// owner is the caller that asks for a lock.
type owner struct {
	name   string         // as the server knows it
	jitter lockimpl.Owner // the owner whose jitter it draws
}

// owner returns the owner that callers name by a number.
func (c *Client) owner(o lockimpl.Owner) owner {
	return owner{c.id + ":" + strconv.FormatInt(int64(o), 10), o}
}

// backoff returns the pause before retry number n, from 0, at most most. Jitter keeps owners from
// asking in step, however long the pause is.
func (c *Client) backoff(o owner, n int, most time.Duration) time.Duration {
	full := min(retryMin<<min(n, 10), most)
	return full/2 + c.env.Jitter(o.jitter, full/2)
}

// poll returns the longest sleep of a waiter.
func (c *Client) poll() time.Duration { return min(pollEvery, c.heartbeat/pollsPerHeartbeat) }

// ChannelName is the channel that wakes a lock's waiters. The message is empty on the plain lock,
// and the next owner on the fair lock.
func ChannelName(lock string) string { return prefixed("reference_channel", lock) }

// QueueName is the key of the list of a fair lock's waiters, head first.
func QueueName(lock string) string { return prefixed("reference_queue", lock) }

// DeadlinesName is the key of the sorted set of a fair lock's waiters. The score of a waiter is the
// server's millisecond until which it keeps its place.
func DeadlinesName(lock string) string { return prefixed("reference_deadlines", lock) }

// TokenName is the key of the last fencing token, which Redis deletes after a minute without a new
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
	ms    int64     // the server's time in its last answer
	heard time.Time // when that answer came, by the process's own clock
}

func (s *serverClock) said(ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.ms, s.heard = true, ms, time.Now()
}

// now returns the server's time in ms. It is behind by at most the time that the server's answer
// took.
func (s *serverClock) now() (ms int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ms + time.Since(s.heard).Milliseconds(), s.known
}
