// Peers times locks of other libraries for evidence bench. It is in a module of its own, so that
// users of our locks do not download them.
//
//	peers ADDR LOCK WARMUP ROUNDS
//
// LOCK is a name in lockers. WARMUP is the number of rounds that it plays before it measures; with -1
// it measures hand-overs. It prints a JSON array of nanoseconds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockstep/bench/measure"
)

const (
	key   = "peers"
	lease = 30 * time.Second
)

// lockers has functions that make a client of a lock. A lock that polls does so at the interval of its
// authors, or every millisecond.
var lockers = map[string]func(*redis.Client) measure.Locker{
	"redsync": func(c *redis.Client) measure.Locker {
		return redsyncLock{redsync.New(goredis.NewPool(c)).NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt32))}
	},
	"redsync-1ms": func(c *redis.Client) measure.Locker {
		return redsyncLock{redsync.New(goredis.NewPool(c)).NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt32),
			redsync.WithRetryDelay(time.Millisecond))}
	},
	"redislock": func(c *redis.Client) measure.Locker {
		return &redislockLock{client: redislock.New(c), every: 100 * time.Millisecond} // as in its README
	},
	"redislock-1ms": func(c *redis.Client) measure.Locker {
		return &redislockLock{client: redislock.New(c), every: time.Millisecond}
	},
}

type redsyncLock struct{ m *redsync.Mutex }

func (l redsyncLock) Lock() error { return l.m.Lock() }

func (l redsyncLock) Unlock() error {
	ok, err := l.m.Unlock()
	if err == nil && !ok {
		err = errors.New("redsync did not unlock")
	}
	return err
}

type redislockLock struct {
	client *redislock.Client
	every  time.Duration
	held   *redislock.Lock
}

func (l *redislockLock) Lock() (err error) {
	l.held, err = l.client.Obtain(context.Background(), key, lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(l.every)})
	return err
}

func (l *redislockLock) Unlock() error { return l.held.Release(context.Background()) }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("peers ADDR LOCK WARMUP ROUNDS")
	}
	connect, ok := lockers[args[1]]
	warmup, err1 := strconv.Atoi(args[2])
	rounds, err2 := strconv.Atoi(args[3])
	if !ok || err1 != nil || err2 != nil {
		return fmt.Errorf("cannot read %q", args)
	}
	locker := func() measure.Locker {
		return connect(redis.NewClient(&redis.Options{Addr: args[0], DisableIdentity: true}))
	}
	var took []time.Duration
	var err error
	if warmup < 0 {
		took, err = measure.HandOver(locker(), locker(), rounds)
	} else {
		took, err = measure.Uncontended(locker(), warmup, rounds)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}
