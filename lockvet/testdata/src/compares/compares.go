package compares

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const key = "orders.lock"

func lock(ctx context.Context, rdb *redis.Client, token string) bool {
	return rdb.SetNX(ctx, key, token, time.Second).Val()
}

func unlock(ctx context.Context, rdb *redis.Client, token string) error {
	owner, err := rdb.Get(ctx, key).Result()
	if err != nil || owner != token {
		return err
	}
	return rdb.Del(ctx, key).Err() // want `may end between the comparison and this DEL.* \(compare-then-delete\)`
}

// The value is read and not compared.
func shout(ctx context.Context, rdb *redis.Client) {
	println(rdb.Get(ctx, key).Val())
	rdb.Del(ctx, key) // want `delete-unchecked`
}

// The transaction fails if the key changes after the comparison.
func optimistic(ctx context.Context, rdb *redis.Client, token string) error {
	return rdb.Watch(ctx, func(tx *redis.Tx) error {
		if tx.Get(ctx, key).Val() != token {
			return nil
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, key)
			return nil
		})
		return err
	}, key)
}
