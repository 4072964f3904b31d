package redistest_test

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
)

// standing is a setnx whose waiters stand in a list. Each keeps its place by asking, and loses it when it has not asked for
// a while.
type standing struct {
	setnx
	apart bool // the first of the list takes the lock with a request of its own: a bug
}

func (l *standing) places() string { return l.name + ":queue" }

func (l *standing) deadlines() string { return l.name + ":deadlines" }

// ask stands in the list, and returns 1 for the first one if the lock is free. It takes the lock for the first one if it
// is told a lease.
const ask = `
local t = redis.call("time")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
while true do
  local head = redis.call("lindex", KEYS[2], 0)
  if not head or tonumber(redis.call("zscore", KEYS[3], head) or 0) >= now then break end
  redis.call("lpop", KEYS[2])
  redis.call("zrem", KEYS[3], head)
end
if not redis.call("zscore", KEYS[3], ARGV[1]) then redis.call("rpush", KEYS[2], ARGV[1]) end
redis.call("zadd", KEYS[3], now + 2000, ARGV[1])
if redis.call("lindex", KEYS[2], 0) ~= ARGV[1] or redis.call("exists", KEYS[1]) == 1 then return 0 end
if ARGV[2] ~= "" then
  redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
  redis.call("lpop", KEYS[2])
  redis.call("zrem", KEYS[3], ARGV[1])
end
return 1`

// takeAndLeave takes the lock, and leaves the list.
const takeAndLeave = `
redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
redis.call("lrem", KEYS[2], 0, ARGV[1])
redis.call("zrem", KEYS[3], ARGV[1])
return 1`

func (l *standing) Lock(ctx context.Context) error {
	value, keys := rand.Text(), []string{l.name, l.places(), l.deadlines()}
	var told any = lease.Milliseconds()
	if l.apart {
		told = ""
	}
	err := retry(ctx, func(ctx context.Context) (bool, error) {
		asked := time.Now()
		n, err := l.rdb.Eval(ctx, ask, keys, value, told).Int()
		if n == 1 && l.apart {
			err = l.rdb.Eval(ctx, takeAndLeave, keys, value, lease.Milliseconds()).Err()
		}
		if n != 1 || err != nil {
			return false, err
		}
		l.value, l.asked = value, asked
		return true, nil
	})
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		l.rdb.TxPipelined(clean, func(p redis.Pipeliner) error {
			p.LRem(clean, l.places(), 0, value)
			return p.ZRem(clean, l.deadlines(), value).Err()
		})
	}
	return err
}

func (l *standing) TryLock(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := l.Lock(ctx)
	if err == locktest.ErrBusy {
		return false, nil
	}
	return err == nil, err
}

func standingSubject(name string, apart bool) locktest.Subject {
	s := unrenewed(name, each(func(l setnx) locktest.Lock { return &standing{l, apart} }))
	s.Kept = func(lock string) []string { return []string{lock + ":queue", lock + ":deadlines"} }
	return s
}
