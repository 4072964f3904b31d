package leases

import (
	"context"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
)

func later(ctx context.Context, rdb *redis.Client, token string) {
	if rdb.SetNX(ctx, "lock:a", token, 0).Val() {
		rdb.Expire(ctx, "lock:a", time.Minute) // want `dies between SETNX and this EXPIRE.* \(no-lease\)`
	}
}

func old(c redigo.Conn, token string) {
	if n, err := c.Do("SETNX", "lock:b", token); err == nil && n == 1 {
		c.Do("EXPIRE", "lock:b", 60) // want `no-lease`
	}
}

func together(ctx context.Context, rdb *redis.Client, token string) {
	p := rdb.Pipeline()
	p.SetNX(ctx, "lock:c", token, 0)
	p.Expire(ctx, "lock:c", time.Minute) // want `every try extends the lease.* \(no-lease\)`
	p.Exec(ctx)
}

func without(ctx context.Context, rdb *redis.Client) {
	if rdb.SetNX(ctx, "lock:d", "x", 0).Val() { // want `the lock has no lease.* \(no-lease\)`
		rdb.Del(ctx, "lock:d")
	}
}

// A mark that stays: nobody gives it up.
func once(ctx context.Context, rdb *redis.Client) bool {
	return rdb.SetNX(ctx, "leader:first", "x", 0).Val()
}

// A counter is no lock.
func acquireToken(ctx context.Context, rdb *redis.Client) bool {
	rdb.SetNX(ctx, "rate", 0, 0)
	rdb.Expire(ctx, "rate", time.Minute)
	return rdb.Incr(ctx, "rate").Val() < 10
}

// With its lease.
func right(ctx context.Context, rdb *redis.Client, token string) bool {
	return rdb.SetNX(ctx, "lock:e", token, time.Minute).Val()
}

// The value is the end of the lease, and whoever finds it over takes the lock.
func takeOver(c redigo.Conn, end int64) {
	if n, err := c.Do("SETNX", "lock:f", end); err == nil && n == 1 {
		c.Do("EXPIRE", "lock:f", 60)
	}
	c.Do("GETSET", "lock:f", end) // want `getset-lock`
}

// A counter that another function counts down is no lock either.
func lockTickets(ctx context.Context, rdb *redis.Client) bool {
	ok := rdb.SetNX(ctx, "tickets", 10, 0).Val()
	rdb.Expire(ctx, "tickets", time.Minute)
	return ok
}

func buy(ctx context.Context, rdb *redis.Client) bool { return rdb.Decr(ctx, "tickets").Val() >= 0 }
