package nats

import (
	"testing"

	"lockstep/locktest"
)

const stories = "testdata/stories/*.yaml"

func TestKV(t *testing.T) { locktest.Run(t, KV, locktest.Options{Scenarios: stories}) }

func TestBlind(t *testing.T) {
	locktest.Run(t, Blind, locktest.Options{Faults: "none", Scenarios: stories})
}

func TestKeyTTL(t *testing.T) {
	locktest.Run(t, KeyTTL, locktest.Options{Faults: "none", Scenarios: stories})
}
