package deletes

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/mediocregopher/radix/v3"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// A lock whose key is a field.
type lock struct {
	rdb  *redis.Client
	name string
}

func (l *lock) Lock(ctx context.Context) bool {
	return l.rdb.SetNX(ctx, l.name, rand.Text(), time.Second).Val()
}

func (l *lock) Unlock(ctx context.Context) {
	l.rdb.Del(ctx, l.name) // want `DEL removes the lock taken at deletes.go:23 whoever holds it; .* \(delete-unchecked\)`
}

// An operator removes the key on purpose.
func (l *lock) ForceUnlock(ctx context.Context) { l.rdb.Del(ctx, l.name) }

// Another key of the type.
type other struct {
	rdb  *redis.Client
	data string
}

func (o *other) Drop(ctx context.Context) { o.rdb.Del(ctx, o.data) }

// A lock in one function.
func work(ctx context.Context, rdb *redis.Client, id int) {
	key := fmt.Sprintf("lock:order:%d", id)
	if !rdb.SetNX(ctx, key, 1, time.Minute).Val() {
		return
	}
	defer rdb.Del(ctx, key) // want `delete-unchecked`
}

// The same with SET and its options, and with keys that are chosen by the caller.
func tryLock(ctx context.Context, rdb *redis.Client, resource string) bool {
	return rdb.SetArgs(ctx, resource, rand.Text(), redis.SetArgs{Mode: "NX", TTL: time.Second}).Err() == nil
}

func acquireByName(ctx context.Context, rdb *redis.Client) {
	if rdb.Do(ctx, "SET", "lock:named", rand.Text(), "NX", "PX", 1000).Err() == nil {
		rdb.Do(ctx, "DEL", "lock:named") // want `delete-unchecked`
	}
}

func unlock(ctx context.Context, rdb *redis.Client, resource string) {
	rdb.Del(ctx, resource) // want `delete-unchecked`
}

// A script compares and deletes.
func checked(ctx context.Context, rdb *redis.Client, id int) {
	key, token := fmt.Sprintf("mutex:%d", id), rand.Text()
	if rdb.SetNX(ctx, key, token, time.Minute).Val() {
		rdb.Eval(ctx, `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end`, []string{key}, token)
	}
}

// A cache is no lock, though it has functions that set and delete any key.
type cache struct{ rdb *redis.Client }

func (c cache) SetNX(ctx context.Context, key string, v any, ttl time.Duration) bool {
	return c.rdb.SetNX(ctx, key, v, ttl).Val()
}
func (c cache) Del(ctx context.Context, key string) { c.rdb.Del(ctx, key) }

// A lock on such a wrapper is one.
func locked(ctx context.Context, c cache) {
	if c.SetNX(ctx, "lock:report", rand.Text(), time.Minute) {
		c.Del(ctx, "lock:report") // want `delete-unchecked`
	}
	if c.SetNX(ctx, "seen:report", rand.Text(), time.Minute) {
		c.Del(ctx, "block:report")
	}
}

func memory(ctx context.Context, mc *memcache.Client) {
	if mc.Add(&memcache.Item{Key: "lock:mail", Value: []byte(rand.Text()), Expiration: 60}) == nil {
		mc.Delete("lock:mail") // want `delete-unchecked`
		mc.Delete("mail")
	}
}

func old(c redigo.Conn) {
	if reply, err := redigo.String(c.Do("SET", "lock:old", rand.Text(), "NX", "PX", 1000)); err == nil && reply == "OK" {
		c.Do("DEL", "lock:old") // want `delete-unchecked`
		c.Do("DEL", "old")
	}
}

func built(ctx context.Context, c rueidis.Client) {
	if c.Do(ctx, c.B().Set().Key("lock:built").Value(rand.Text()).Nx().PxMilliseconds(1000).Build()).Error() == nil {
		c.Do(ctx, c.B().Del().Key("lock:built").Build()) // want `delete-unchecked`
		c.Do(ctx, c.B().Del().Key("built").Build())
	}
}

// An account that is locked is no lock, and neither is a leaderboard.
func lockAccount(ctx context.Context, rdb *redis.Client) {
	_ = rdb.SetNX(ctx, "account:locked", 1, time.Hour).Err()
	rdb.SetNX(ctx, "account:locked", 1, time.Hour)
	rdb.Del(ctx, "account:locked")
}

func ranks(ctx context.Context, rdb *redis.Client) bool {
	rdb.Del(ctx, "leaderboard")
	return rdb.SetNX(ctx, "leaderboard", 1, time.Hour).Val()
}

// Comments silence a rule if they give a reason.
func silenced(ctx context.Context, rdb *redis.Client) {
	if rdb.SetNX(ctx, "lock:silent", rand.Text(), time.Minute).Val() {
		rdb.Del(ctx, "lock:silent") //lockvet:ignore delete-unchecked The work takes a millisecond.
		//lockvet:ignore delete-unchecked The work takes a millisecond.
		rdb.Del(ctx, "lock:silent")
	}
	/* want `gives no reason` */ //lockvet:ignore delete-unchecked
	rdb.Del(ctx, "lock:silent")  // want `delete-unchecked`
	/* want `names no rule` */  //lockvet:ignore all The work takes a millisecond.
	rdb.Del(ctx, "lock:silent") // want `delete-unchecked`
	//lockvet:ignore no-lease The work takes a millisecond.
	rdb.Del(ctx, "lock:silent") // want `delete-unchecked`
}

// A key that is made of itself.
func grow(ctx context.Context, rdb *redis.Client) {
	var key string
	for range 3 {
		key = key + "x"
		rdb.Del(ctx, key)
	}
}

// Keys that a method makes.
type repo struct {
	rdb *redis.Client
	ttl time.Duration
}

func (r *repo) lockKey(city string) string  { return "busy:" + city }
func (r *repo) cacheKey(city string) string { return "city:" + city }

func (r *repo) Begin(ctx context.Context, city string) bool {
	return r.rdb.SetNX(ctx, r.lockKey(city), "1", r.ttl).Val()
}

func (r *repo) End(ctx context.Context, city string) {
	r.rdb.Del(ctx, r.lockKey(city)) // want `delete-unchecked`
	r.rdb.Del(ctx, r.cacheKey(city))
}

// An unlock that is a function literal.
func obtain(ctx context.Context, rdb *redis.Client, id string) func() {
	key := "lock:" + id
	if ok, err := rdb.SetNX(ctx, key, rand.Text(), time.Minute).Result(); !ok || err != nil {
		return nil
	}
	return func() {
		rdb.Del(ctx, key) // want `delete-unchecked`
		rdb.Del(ctx, "page:"+id)
	}
}

// A locker hands its key to the hold that it returns.
type locker struct {
	rdb    *redis.Client
	prefix string
}

type hold struct {
	rdb       *redis.Client
	key, data string
}

func (l *locker) Lock(ctx context.Context, key string) *hold {
	if !l.rdb.SetNX(ctx, key, rand.Text(), time.Minute).Val() {
		return nil
	}
	return &hold{rdb: l.rdb, key: key, data: "data"}
}

func (l *locker) LockWithPrefix(ctx context.Context, name string) *hold {
	full := l.prefix + name
	if !l.rdb.SetNX(ctx, full, rand.Text(), time.Minute).Val() {
		return nil
	}
	return &hold{l.rdb, full, "data"}
}

func (h *hold) Release(ctx context.Context) {
	h.rdb.Del(ctx, h.key) // want `delete-unchecked`
	h.rdb.Del(ctx, h.data)
}

// GETDEL deletes before anybody compares.
func (h *hold) ReleaseAndLook(ctx context.Context, token string) bool {
	return h.rdb.GetDel(ctx, h.key).Val() == token // want `delete-unchecked`
}

// A page that is handed on is no hold.
type page struct {
	rdb *redis.Client
	key string
}

func load(ctx context.Context, rdb *redis.Client, key string) *page {
	if !rdb.SetNX(ctx, key, "page", time.Minute).Val() {
		return nil
	}
	return &page{rdb, key}
}

func (p *page) Drop(ctx context.Context) { p.rdb.Del(ctx, p.key) }

// The text of the first key names no lock, and its variable does.
func scan(ctx context.Context, rdb *redis.Client, id string) {
	lockKey, pageKey := fmt.Sprintf("scanning:%s", id), fmt.Sprintf("page:%s", id)
	if rdb.SetNX(ctx, lockKey, "1", time.Minute).Val() {
		defer rdb.Del(ctx, lockKey) // want `delete-unchecked`
	}
	if rdb.SetNX(ctx, pageKey, "1", time.Minute).Val() {
		defer rdb.Del(ctx, pageKey)
	}
}

func words(p *radix.Pool) {
	var reply string
	if p.Do(radix.Cmd(&reply, "SET", "lock:words", rand.Text(), "NX", "EX", "60")) == nil && reply == "OK" {
		p.Do(radix.Cmd(nil, "DEL", "lock:words"))     // want `delete-unchecked`
		p.Do(radix.FlatCmd(nil, "DEL", "lock:words")) // want `delete-unchecked`
		p.Do(radix.Cmd(nil, "DEL", "words"))
	}
}
