package etcd_test

import (
	"testing"

	"lockstep/locktest/drawntest"
	"lockstep/peers/etcd"
)

// In these runs connections break while several threads wait. Requests that go on at one instant, watches
// that begin anew, and headers in the order of a map made them differ.
func TestDrawnRunsRepeat(t *testing.T) { drawntest.Repeats(t, etcd.Mutex, 15, 26, 37, 240, 836) }

// In these runs threads of a process begin the session that they share, and operators delete keys.
func TestDrawnRunsOfOneSessionRepeat(t *testing.T) {
	drawntest.Repeats(t, etcd.OneSession, 3, 15, 26, 37, 162, 240)
}
