package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// A connection that was lost before a hold began ends no hold.
func TestALossIsOfItsHold(t *testing.T) {
	over := func(k *link) bool {
		select {
		case <-k.lost:
			return true
		default:
			return false
		}
	}
	k := &link{lost: make(chan struct{})}
	for _, s := range []zk.State{zk.StateHasSession, zk.StateDisconnected, zk.StateHasSession} {
		k.became(zk.Event{State: s})
	}
	if !over(k) {
		t.Error("a loss ended no hold")
	}
	k.begin()
	if over(k) {
		t.Error("a loss before the hold ended it")
	}
	k.became(zk.Event{State: zk.StateDisconnected})
	k.begin()
	if !over(k) {
		t.Error("a hold that begins without a connection lasts")
	}
}
