package values

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

const release = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end`

func fixed(ctx context.Context, rdb *redis.Client) {
	if rdb.SetNX(ctx, "lock:a", "locked", time.Minute).Val() { // want `every holder writes the same value.* \(fixed-value\)`
		rdb.Eval(ctx, release, []string{"lock:a"}, "locked")
	}
}

func random(ctx context.Context, rdb *redis.Client) {
	token := rand.Text()
	if rdb.SetNX(ctx, "lock:b", token, time.Minute).Val() {
		rdb.Eval(ctx, release, []string{"lock:b"}, token)
	}
}

// A lock that nobody gives up ends with its lease, and its value means nothing.
func oncePerMinute(ctx context.Context, rdb *redis.Client) bool {
	return rdb.SetNX(ctx, "lock:minute", 1, time.Minute).Val()
}
