// Package redislock has the signatures of redislock that the tests need.
package redislock

import (
	"context"
	"time"
)

type Lock struct{}

func (*Lock) Refresh(ctx context.Context, ttl time.Duration, opt any) error { return nil }
func (*Lock) Release(ctx context.Context) error                             { return nil }
