// Package redistest gives the subjects of package locktest simulated Redis servers, and
// options with which go-redis reaches them.
//
// Clients of RESP2 and of RESP3 reach the servers by [locktest.Process.DialContext]. In
// RESP3 the servers know CLIENT TRACKING.
package redistest

import (
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	_ "lockstep/scenarios/subject/builtin" // for programs of lockmain.Main: they are locks on Redis
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// Servers returns n independent Redis servers. They know nothing of one another. A subject
// with n below 1, or with a wrong option, is refused when it is judged.
func Servers(n int, options ...Option) locktest.Servers {
	var s servers
	var errs []error
	for _, o := range options {
		errs = append(errs, o(&s.config))
	}
	s.wrong = errors.Join(errs...)
	s.Servers = locktest.Independent(n, 6379, func() sim.Server { return simredis.New(s.config) })
	return s
}

// servers implements locktest.Checked.
type servers struct {
	locktest.Servers
	config simredis.Config
	wrong  error
}

// Check implements locktest.Checked.
func (s servers) Check() error { return s.wrong }

// Option is an option of Servers: see Release and Notify.
type Option func(*simredis.Config) error

// Release makes the servers answer as a release of Redis or of Valkey does, such as "7.0", "8.4" or "valkey 9.0". A
// command or an option that the release does not have is answered as the release answers it. Without this option the
// servers know each simulated command of any release, and call themselves Redis 7.2.
func Release(name string) Option {
	return func(c *simredis.Config) (err error) {
		c.Release, err = simredis.ParseRelease(name)
		return err
	}
}

// Notify sets notify-keyspace-events to a value such as "KEA" when the servers start. A restart and a failover set it to
// that value again.
func Notify(events string) Option {
	return func(c *simredis.Config) error {
		c.Notify = events
		return simredis.CheckNotify(events)
	}
}

// Options returns the options with which a go-redis client of p reaches server i, counted
// from 0. They are the options of the redis package but for these: the client does not
// send a command again by itself (MaxRetries is -1), speaks RESP2, and asks for no
// maintenance notifications. Set MaxRetries to send commands again. Do not set
// MinIdleConns: connections that nobody asked for have no place in a schedule.
func Options(p *locktest.Process, i int) *redis.Options {
	return goredis.Options(p.Sim(), p.Addr(i))
}

// NewClient returns a go-redis client of p with these Options, which is closed with the
// process.
func NewClient(p *locktest.Process, i int) *redis.Client {
	rdb := goredis.NewClient(p.Sim(), Options(p, i))
	p.OnClose(func() { _ = rdb.Close() })
	return rdb
}

// Keyspace gives a State function the keys of one server. Absent keys, and keys of
// another type, read as empty.
type Keyspace = simredis.Keyspace

// Keys returns the keys of server i, counted from 0.
func Keys(s locktest.Snapshot, i int) Keyspace {
	return s.Server(i).(*simredis.Server).At(int64(s.Now()))
}

// Value returns the State of a lock that keeps the value of its holder in one string. key
// returns the key of a lock; nil: the name of the lock. On several servers the holder is
// the value that a majority has, and its hold ends when the majority does.
func Value(key func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	if key == nil {
		key = func(lock string) string { return lock }
	}
	return func(s locktest.Snapshot, lock string) *locktest.State {
		v := votes{}
		for i := range s.Servers() {
			v.count(Keys(s, i), key(lock))
		}
		return v.state(s.Servers())
	}
}

// Majority returns the State of a lock that keeps the value of its holder in n keys of the one
// server. key returns the key with a number, counted from 0, of a lock. The holder is the value
// that a majority of the keys has, and its hold ends when the majority does.
func Majority(n int, key func(i int, lock string) string) func(locktest.Snapshot, string) *locktest.State {
	return func(s locktest.Snapshot, lock string) *locktest.State {
		v := votes{}
		for i := range n {
			v.count(Keys(s, 0), key(i, lock))
		}
		return v.state(n)
	}
}

// votes has for each value when the keys end that have it.
type votes map[string][]int64

func (v votes) count(keys Keyspace, key string) {
	if value, ok := keys.String(key); ok {
		v[value] = append(v[value], keys.ExpiresMs(key))
	}
}

// state returns the hold of the value that a majority of n keys has; nil if there is none.
func (v votes) state(n int) *locktest.State {
	majority := n/2 + 1
	for value, at := range v { // at most one value has a majority
		if len(at) < majority {
			continue
		}
		slices.SortFunc(at, func(a, b int64) int { return compareEnds(b, a) })
		state := &locktest.State{Owner: value, Expires: time.Duration(at[majority-1]) * time.Millisecond}
		if at[majority-1] < 0 {
			state.Expires = -1
		}
		return state
	}
	return nil
}

// compareEnds compares two ends of keys in milliseconds. A negative one is never.
func compareEnds(a, b int64) int {
	switch {
	case a == b, a < 0 && b < 0:
		return 0
	case a < 0, b >= 0 && a > b:
		return 1
	}
	return -1
}
