package onredis

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/scenarios/subject"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// Options returns the settings of a process's go-redis client. The scenario may set the
// response timeout and the size of the pool. Options leaves the retries to Retries.
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

// retryBackoff is the wait between two attempts of go-redis to send a command.
const retryBackoff = 8 * time.Millisecond

// Retries sets the number of times that go-redis itself sends a command again, if the
// scenario gives that number.
func Retries(ro *redis.Options, o subject.Options) {
	if o.RetryAttempts != nil {
		// The bounds are equal because the jitter between them comes from the global
		// random source. go-redis reads 0 as its default of 3, and -1 as none.
		ro.MaxRetries, ro.MinRetryBackoff, ro.MaxRetryBackoff = cmp.Or(*o.RetryAttempts, -1), retryBackoff, retryBackoff
	}
}
