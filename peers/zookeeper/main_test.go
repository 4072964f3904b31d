package zookeeper_test

import (
	"os"
	"testing"

	"lockstep/peers/zookeeper"
	"lockstep/scenarios/subject"
)

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(zookeeper.Lock.Name, zookeeper.Closing.Name)
	os.Exit(m.Run())
}
