package zookeeper_test

import (
	"testing"

	"lockstep/locktest/drawntest"
	"lockstep/peers/zookeeper"
)

// In these runs threads begin a session while their process is cut off from the server.
func TestDrawnRunsRepeat(t *testing.T) {
	drawntest.Repeats(t, zookeeper.Closing, 323, 1104, 1105, 1534)
}
