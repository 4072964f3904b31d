// Package redisclient answers questions about go-redis clients that several locks ask.
package redisclient

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Retries reports whether rdb may send a failed command again. If so, the error of a command
// belongs to the last try, and says nothing of the tries before.
func Retries(rdb redis.UniversalClient) bool {
	single, ok := rdb.(*redis.Client)
	return !ok || single.Options().MaxRetries > 0
}

// MayHaveRun reports whether the command that failed with err may still have been executed. It was
// not executed if the server refused it, if the connection could not be made or written to, or if
// no connection was free. The answer holds for one try: see [Retries].
func MayHaveRun(err error) bool {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op == "read"
}
