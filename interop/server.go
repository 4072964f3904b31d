package interop

import (
	"strconv"
	"testing"

	"lockstep/lockimpl/redisserver"
)

// Server is a redis-server of its own on loopback.
type Server = redisserver.Server

// databases is the number of databases of a Server: enough for every party of a test.
const databases = 64

// StartServer starts a redis-server with that many databases, for the time of a test; args come
// after its own.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return redisserver.Start(t, "redis-server", append([]string{"--databases", strconv.Itoa(databases)}, args...)...)
}
