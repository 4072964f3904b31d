package deletes

import (
	"context"

	"github.com/redis/go-redis/v9"
)

func cleanUp(ctx context.Context, rdb *redis.Client) { rdb.Del(ctx, "lock:report") }
