// Package luatest has the parts that tests of Lua scripts share: servers to run them on, and mutants
// to see that the tests would notice a change.
package luatest

import (
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/lockimpl/redisserver"
)

// StartServer starts a server, such as redis-server, for the time of a test, and returns a client
// of it; see redisserver.Start.
func StartServer(t *testing.T, program string) *redis.Client {
	t.Helper()
	t.Cleanup(runtime.GC) // its timers are not for the bubbles
	c := redis.NewClient(&redis.Options{
		Addr: redisserver.Start(t, program).Addr, Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
