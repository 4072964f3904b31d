package nats_test

import (
	"os"
	"testing"

	"lockstep/peers/nats"
	"lockstep/scenarios/subject"
)

// The scenarios of this package are of several of its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(nats.KV.Name, nats.OnTime.Name, nats.Blind.Name, nats.KeyTTL.Name)
	os.Exit(m.Run())
}
