package subject

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// RedisOptions returns the settings of a process's go-redis client, with those that the
// scenario sets. Retries adds the number of times that go-redis itself sends a command
// again.
func RedisOptions(p *sim.Process, o Options) *redis.Options {
	ro := goredis.Options(p, o.Addr)
	if o.ResponseTimeout != nil {
		ro.ReadTimeout = *o.ResponseTimeout
	}
	if o.PoolSize != nil {
		ro.PoolSize = *o.PoolSize
	}
	return ro
}

// retryBackoff is the wait between go-redis's own retries.
const retryBackoff = 8 * time.Millisecond

// Retries sets the number of times that go-redis itself sends a command again, where
// the scenario sets one.
func Retries(ro *redis.Options, o Options) {
	if o.RetryAttempts != nil {
		// The bounds are equal because the jitter between them comes from the global
		// random source. go-redis reads 0 as its default of 3, and -1 as none.
		ro.MaxRetries, ro.MinRetryBackoff, ro.MaxRetryBackoff = cmp.Or(*o.RetryAttempts, -1), retryBackoff, retryBackoff
	}
}

// Environment returns the clock, the IDs and the jitter that a process of a world gives
// to a lock.
func Environment(p *sim.Process) lockimpl.Environment {
	return lockimpl.Environment{
		Now:    p.Now,
		NewID:  func(o lockimpl.Owner) string { return p.NewID(int64(o)) },
		Jitter: func(o lockimpl.Owner, max time.Duration) time.Duration { return p.Jitter(int64(o), max) },
	}
}
