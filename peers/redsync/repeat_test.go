package redsync_test

import (
	"testing"

	"lockstep/locktest/drawntest"
	"lockstep/peers/redsync"
)

// In these runs a client is closed while two of its threads wait, and while one thread waits for five
// servers.
func TestDrawnRunsRepeat(t *testing.T) {
	drawntest.Repeats(t, redsync.Subject(1), 1155, 1177)
	drawntest.Repeats(t, redsync.Subject(5), 1415)
}
