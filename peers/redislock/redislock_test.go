package redislock

import (
	"testing"

	"lockstep/locktest"
)

func TestRedislock(t *testing.T) { locktest.Run(t, Subject, locktest.Options{}) }
