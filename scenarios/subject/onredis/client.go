package onredis

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/scenarios/subject"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// Options returns the settings of a process's go-redis client, with those that the
// scenario sets. Retries adds the number of times that go-redis itself sends a command
// again.
func Options(p *sim.Process, o subject.Options) *redis.Options {
	ro := goredis.Options(p, o.Addrs[0])
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
func Retries(ro *redis.Options, o subject.Options) {
	if o.RetryAttempts != nil {
		// The bounds are equal because the jitter between them comes from the global
		// random source. go-redis reads 0 as its default of 3, and -1 as none.
		ro.MaxRetries, ro.MinRetryBackoff, ro.MaxRetryBackoff = cmp.Or(*o.RetryAttempts, -1), retryBackoff, retryBackoff
	}
}
