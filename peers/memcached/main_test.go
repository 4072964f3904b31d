package memcached_test

import (
	"os"
	"testing"

	"lockstep/peers/memcached"
	"lockstep/scenarios/subject"
)

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(memcached.Add.Name, memcached.AddForever.Name, memcached.CAS.Name)
	os.Exit(m.Run())
}
