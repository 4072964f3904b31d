package extends

import (
	"context"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
)

type lock struct {
	rdb        *redis.Client
	key, token string
}

func (l *lock) Lock(ctx context.Context) bool {
	if !l.rdb.SetNX(ctx, l.key, l.token, time.Second).Val() {
		return false
	}
	go func() {
		for range time.Tick(time.Second / 3) {
			l.rdb.Expire(ctx, l.key, time.Second) // want `this extension does not compare.* \(extend-unchecked\)`
		}
	}()
	return true
}

func (l *lock) Extend(ctx context.Context) error {
	if l.rdb.Get(ctx, l.key).Val() != l.token {
		return context.Canceled
	}
	return l.rdb.Expire(ctx, l.key, time.Second).Err() // want `this extension comes after the comparison.* \(extend-unchecked\)`
}

func (l *lock) ExtendInScript(ctx context.Context) error {
	return l.rdb.Eval(ctx, `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], 1000) end`, []string{l.key}, l.token).Err()
}

// Another key gets another lease.
func (l *lock) Touch(ctx context.Context) { l.rdb.Expire(ctx, "seen", time.Minute) }

// SET overwrites the value and the lease.
func (l *lock) Overwrite(ctx context.Context) {
	l.rdb.Set(ctx, l.key, l.token, time.Second) // want `this extension does not compare.* \(extend-unchecked\)`
	l.rdb.Set(ctx, "seen", l.token, time.Second)
}

func (l *lock) OverwriteByWords(c redigo.Conn) {
	c.Do("SET", l.key, l.token, "EX", 10) // want `extend-unchecked`
	c.Do("SET", l.key+":owner", l.token, "EX", 10)
}

// The holder renews with the command that takes the lock.
type leader struct {
	rdb *redis.Client
	key string
	id  string
}

func (l *leader) Lead(ctx context.Context) bool {
	if l.rdb.SetNX(ctx, l.key, l.id, time.Second).Val() {
		l.rdb.Expire(ctx, l.key, time.Minute) // the lease has just begun
		return true
	}
	if owner, err := l.rdb.Get(ctx, l.key).Result(); err != nil || owner != l.id {
		return false
	}
	return l.rdb.Expire(ctx, l.key, time.Second).Val() // want `this extension comes after the comparison.* \(extend-unchecked\)`
}
