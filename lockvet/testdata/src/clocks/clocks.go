package clocks

import (
	"context"
	"database/sql"
	"time"

	"github.com/redis/go-redis/v9"
)

func lock(ctx context.Context, rdb *redis.Client) bool {
	until := time.Now().Add(time.Minute).UnixNano()
	if rdb.SetNX(ctx, "lock:a", until, 0).Val() {
		return true
	}
	held, err := rdb.Get(ctx, "lock:a").Int64()
	if err != nil || time.Now().UnixNano() < held { // want `another clock.* \(wall-clock\)`
		return false
	}
	old, err := rdb.GetSet(ctx, "lock:a", until).Int64() // want `GETSET overwrites the value of whoever holds the lock.* \(getset-lock\)`
	return err == nil && old == held
}

func stale(ctx context.Context, rdb *redis.Client) bool {
	at, err := rdb.Get(ctx, "lock:a").Time()
	return err == nil && at.Before(time.Now()) // want `wall-clock`
}

// GETSET and GET of a key that is no lock.
func swap(ctx context.Context, rdb *redis.Client) bool {
	rdb.GetSet(ctx, "last", 1)
	at, err := rdb.Get(ctx, "last").Time()
	return err == nil && at.Before(time.Now())
}

// The clock of this process measures its own wait.
func wait(ctx context.Context, rdb *redis.Client) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		println(rdb.Get(ctx, "lock:a").Val())
	}
}

func row(ctx context.Context, db *sql.DB, me string) {
	now := time.Now()
	db.ExecContext(ctx, `UPDATE locks SET owner = $1, expires_at = $2 WHERE name = 'a' AND expires_at < $3`, me, now.Add(time.Minute), now) // want `compare it with the time of the database \(wall-clock\)`
	db.ExecContext(ctx, `UPDATE locks SET owner = $1, expires_at = now() + interval '1 minute' WHERE name = 'a' AND expires_at < now()`, me)
	db.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at < $1`, now)
}
