package scripts

import (
	"context"
	"crypto/rand"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
)

const frees = `
-- get the key out of the way
redis.call('del', KEYS[1])
return redis.call('publish', KEYS[2], ARGV[1])`

var (
	release = redis.NewScript(frees)
	renew   = redis.NewScript(`return redis.call("PEXPIRE", KEYS[1], ARGV[1])`)
	checked = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
	// The answer of HEXISTS is no comparison in words, and decides nevertheless.
	levels = redis.NewScript(`if redis.call("HEXISTS", KEYS[1], ARGV[1]) > 0 then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end`)
	set    = redis.NewScript(`redis.call("DEL", KEYS[1]) return redis.call("SET", KEYS[1], ARGV[1])`)
	// A script that is given another text.
	changed = redis.NewScript(`return redis.call("DEL", KEYS[1])`)
)

func init() { changed = redis.NewScript(`return 0`) }

type lock struct {
	rdb   *redis.Client
	key   string
	token string
}

func (l *lock) Lock(ctx context.Context) bool {
	return l.rdb.SetNX(ctx, l.key, l.token, time.Second).Val()
}

func (l *lock) Unlock(ctx context.Context) {
	release.Run(ctx, l.rdb, []string{l.key, "freed"}, "now") // want `DEL removes the lock taken at scripts.go:37 whoever holds it; .* \(delete-unchecked\)`
}

func (l *lock) UnlockByText(ctx context.Context) {
	l.rdb.Eval(ctx, `return redis.call("DEL", KEYS[1])`, []string{l.key}) // want `delete-unchecked`
}

func (l *lock) UnlockByWords(ctx context.Context) {
	l.rdb.Do(ctx, "EVAL", `return redis.call("UNLINK", KEYS[1])`, 1, l.key) // want `delete-unchecked`
}

func (l *lock) Renew(ctx context.Context) {
	renew.Run(ctx, l.rdb, []string{l.key}, 1000) // want `this extension does not compare.* \(extend-unchecked\)`
}

func (l *lock) Right(ctx context.Context) {
	checked.Run(ctx, l.rdb, []string{l.key}, l.token)
	levels.Run(ctx, l.rdb, []string{l.key}, l.token, 1000)
	set.Run(ctx, l.rdb, []string{l.key}, l.token)
	changed.Run(ctx, l.rdb, []string{l.key})
	release.Run(ctx, l.rdb, []string{"seen", l.key}, "now") // it deletes the first key
}

func (l *lock) ForceUnlock(ctx context.Context) { release.Run(ctx, l.rdb, []string{l.key, "freed"}) }

// A cache is no lock.
func drop(ctx context.Context, rdb *redis.Client, key string) {
	if rdb.SetNX(ctx, key, 1, time.Minute).Val() {
		release.Run(ctx, rdb, []string{key, "dropped"})
	}
}

func old(c redigo.Conn) {
	if reply, err := redigo.String(c.Do("SET", "lock:old", rand.Text(), "NX", "PX", 1000)); err == nil && reply == "OK" {
		c.Do("EVAL", frees, 2, "lock:old", "freed") // want `delete-unchecked`
		c.Do("EVAL", frees, 2, "old", "freed")
	}
}

// The rest of the lease says nothing of its owner.
func (l *lock) RenewInTime(ctx context.Context) {
	l.rdb.Eval(ctx, `if redis.call("TTL", KEYS[1]) <= 5 then return redis.call("EXPIRE", KEYS[1], 10) end`, []string{l.key}) // want `extend-unchecked`
}
